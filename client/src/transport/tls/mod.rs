//! TLS, the same for all stores behind sockets: the trusted authorities, and the client's certificate.

use std::fmt;
use std::path::Path;

use rustls::client::WantsClientCert;
use rustls::pki_types::CertificateDer;
#[cfg(any(feature = "redis", feature = "etcd"))]
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

/// A configuration that trusts the authorities in a PEM file, or those of the operating system. Make it once: reading
/// those takes 20 ms.
///
/// # Errors
/// The file cannot be read, or the system has no authorities.
pub(super) fn trusting(ca: Option<&Path>) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, String> {
    // No effect where the application has installed its own.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match ca {
        Some(file) => Ok(ClientConfig::builder().with_root_certificates(roots(file)?)),
        None => ClientConfig::builder().with_platform_verifier().map_err(|error| {
            format!("{error}; install the package ca-certificates, or name a file in the parameter ca")
        }),
    }
}

/// A configuration with a client certificate.
///
/// # Errors
/// A file cannot be read, or the two do not belong together.
#[cfg(any(feature = "redis", feature = "etcd"))]
pub(super) fn showing(
    tls: ConfigBuilder<ClientConfig, WantsClientCert>,
    certificate: &Path,
    key: &Path,
) -> Result<ClientConfig, String> {
    let chain = certificates(certificate)?;
    let secret = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|error| wrong(key, &error))?;
    tls.with_client_auth_cert(chain, secret).map_err(|error| wrong(certificate, &error))
}

/// Advice for a failed connection, by the message of the system or the library; it is appended to that message.
pub(super) fn advice(said: &str) -> &'static str {
    if said.contains("certificate") {
        "; if the server's certificate is from your own authority, name its file in the parameter ca"
    } else if said.contains("InvalidContentType") {
        NO_TLS
    } else if said.contains("Connection refused") {
        "; is the server running, and is this its port?"
    } else {
        ""
    }
}

/// Appended to the message where a server does not answer in TLS.
pub(super) const NO_TLS: &str = "; the server accepted the connection and does not answer in TLS: name its port for \
                                 TLS, or write the store url without TLS (redis:// instead of rediss://, http instead \
                                 of https)";

fn roots(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| wrong(file, &error))?;
    }
    Ok(roots)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = read(file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| wrong(file, &error))?;
    if found.is_empty() {
        return Err(wrong(file, &"there is no certificate in it; it must be a PEM file"));
    }
    Ok(found)
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| wrong(file, &error))
}

fn wrong(file: &Path, what: &dyn fmt::Display) -> String {
    format!("the certificate file {}: {what}", file.display())
}
