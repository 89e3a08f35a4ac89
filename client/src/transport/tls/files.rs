//! Certificates and keys in files, which may be replaced while the program runs.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tracing::Level;
use zeroize::Zeroizing;

use crate::host::sync::Mutex;
use crate::reports;

/// A value that is made of files, and made again when they have changed.
struct Kept<T> {
    files: Vec<PathBuf>,
    make: fn(&[PathBuf], &[Text]) -> Result<T, String>,
    last: Mutex<Last<T>>,
}

type Text = Zeroizing<Vec<u8>>;

struct Last<T> {
    /// The contents that were seen last, whether or not they could be used.
    seen: Vec<Text>,
    made: Arc<T>,
}

impl<T> Kept<T> {
    fn read(files: Vec<PathBuf>, make: fn(&[PathBuf], &[Text]) -> Result<T, String>) -> Result<Self, String> {
        let seen = texts(&files)?;
        let made = Arc::new(make(&files, &seen)?);
        Ok(Self { files, make, last: Mutex::new(Last { seen, made }) })
    }

    /// The value for a new connection. That of before stays while the files cannot be used: they may be half replaced.
    fn now(&self) -> Arc<T> {
        let found = texts(&self.files);
        let mut last = self.last.lock();
        if let Ok(found) = found
            && found != last.seen
        {
            match (self.make)(&self.files, &found) {
                Ok(made) => last.made = Arc::new(made),
                Err(what) => reports::queue(Level::WARN, move || {
                    tracing::warn!(target: "leasehold", what = %what, "the files for TLS have changed but cannot be \
                                                                       used, so the former ones stay in use");
                }),
            }
            last.seen = found;
        }
        Arc::clone(&last.made)
    }
}

impl<T> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt(f)
    }
}

/// The certificates of a PEM file: authorities, and certificates of servers themselves.
#[derive(Debug)]
pub(super) struct Trusted(Kept<Roots>);

struct Roots {
    authorities: Arc<WebPkiServerVerifier>,
    /// All of them, each with its subject.
    certificates: Vec<(CertificateDer<'static>, Vec<u8>)>,
}

impl Trusted {
    /// # Errors
    /// The file cannot be read.
    pub(super) fn read(file: &Path) -> Result<Self, String> {
        Kept::read(vec![file.to_owned()], roots).map(Self)
    }
}

fn roots(files: &[PathBuf], texts: &[Text]) -> Result<Roots, String> {
    let (Some(file), Some(text)) = (files.first(), texts.first()) else { return Err("no file".to_owned()) };
    let found = certificates(file, text)?;
    let mut roots = RootCertStore::empty();
    for certificate in &found {
        roots.add(certificate.clone()).map_err(|error| wrong(file, &error))?;
    }
    let subjects = roots.roots.iter().map(|root| root.subject.to_vec());
    let certificates = found.into_iter().zip(subjects).collect();
    let authorities = WebPkiServerVerifier::builder(Arc::new(roots)).build().map_err(|error| wrong(file, &error))?;
    Ok(Roots { authorities, certificates })
}

impl Roots {
    /// Accepts a certificate of an authority that a server shows as its own, if the file has exactly that one. Its dates
    /// were checked before.
    fn verify_itself(&self, shown: &CertificateDer<'_>, host: &ServerName<'_>) -> Result<(), Error> {
        let named = verify_server_name(&ParsedCertificate::try_from(shown)?, host);
        let names_nobody = |error: &Error| {
            matches!(error, Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. })
                if presented.is_empty())
        };
        let subject = self.certificates.iter().find(|(known, _)| known == shown).map(|(_, subject)| subject);
        match (named, subject) {
            (_, None) => Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)),
            // Made without names, as `openssl req -x509` does where nobody asks for some.
            (Err(error), Some(subject))
                if names_nobody(&error) && common_name(subject).eq_ignore_ascii_case(&host.to_str()) =>
            {
                Ok(())
            }
            (named, Some(_)) => named,
        }
    }
}

/// The common name of a subject; empty where it has none.
fn common_name(subject: &[u8]) -> &str {
    /// The identifier 2.5.4.3, encoded.
    const COMMON_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];
    let start = subject.windows(COMMON_NAME.len()).position(|part| part == COMMON_NAME);
    let Some([_, length, text @ ..]) = start.and_then(|start| subject.get(start + COMMON_NAME.len()..)) else {
        return "";
    };
    text.get(..usize::from(*length)).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default()
}

/// Tells if a certificate failed for nothing but being that of an authority. This comes after the check of its dates.
fn is_authority(error: &Error) -> bool {
    matches!(error, Error::InvalidCertificate(CertificateError::Other(why))
        if format!("{why:?}").contains("CaUsedAsEndEntity"))
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let roots = self.0.now();
        match roots.authorities.verify_server_cert(shown, between, host, ocsp, now) {
            Err(error) if is_authority(&error) => {
                roots.verify_itself(shown, host).map(|()| ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.last.lock().made.authorities.verify_tls12_signature(message, shown, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.last.lock().made.authorities.verify_tls13_signature(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.last.lock().made.authorities.supported_verify_schemes()
    }
}

/// A client's certificate and its key.
#[derive(Debug)]
pub(super) struct Shown(Kept<Arc<CertifiedKey>>);

impl Shown {
    /// # Errors
    /// A file cannot be read, or the two do not belong together.
    pub(super) fn read(certificate: &Path, key: &Path) -> Result<Self, String> {
        Kept::read(vec![certificate.to_owned(), key.to_owned()], pair).map(Self)
    }
}

fn pair(files: &[PathBuf], texts: &[Text]) -> Result<Arc<CertifiedKey>, String> {
    let ([certificate, key], [chain, secret]) = (files, texts) else { return Err("no files".to_owned()) };
    let chain = certificates(certificate, chain)?;
    let secret = PrivateKeyDer::from_pem_slice(secret).map_err(|error| wrong(key, &error))?;
    let provider = CryptoProvider::get_default().ok_or_else(|| wrong(key, &"there is no cryptography"))?;
    let made = CertifiedKey::from_der(chain, secret, provider).map_err(|error| wrong(certificate, &error))?;
    Ok(Arc::new(made))
}

impl ResolvesClientCert for Shown {
    fn resolve(&self, _authorities: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&*self.0.now()))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

fn certificates(file: &Path, text: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let found = found.map_err(|error| wrong(file, &error))?;
    if found.is_empty() {
        return Err(wrong(file, &"there is no certificate in it; it must be a PEM file"));
    }
    Ok(found)
}

fn texts(files: &[PathBuf]) -> Result<Vec<Text>, String> {
    files.iter().map(|file| std::fs::read(file).map(Text::new).map_err(|error| wrong(file, &error))).collect()
}

fn wrong(file: &Path, what: &dyn fmt::Display) -> String {
    format!("the certificate file {}: {what}", file.display())
}
