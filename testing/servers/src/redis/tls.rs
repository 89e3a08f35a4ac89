//! A certificate for 127.0.0.1 and the throwaway authority behind it.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair, KeyUsagePurpose,
};

use crate::process::write_file;

/// Files for one server, valid as long as anybody could want.
#[derive(Debug)]
pub struct Tls {
    pub(crate) port: u16,
    /// The certificate of the authority.
    pub authority: PathBuf,
    pub(crate) authority_pem: String,
    /// The certificate of the server.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl Tls {
    /// Writes them into a folder.
    #[track_caller]
    pub fn new(folder: &Path) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(DnType::CommonName, "an authority for tests");
        let authority = must("an authority", CertifiedIssuer::self_signed(params, key()));

        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let mut params = must("names", CertificateParams::new(names));
        // As a client's, etcd takes it only so.
        params.distinguished_name = DistinguishedName::new();
        let key = key();
        let certificate = must("a certificate", params.signed_by(&key, &authority));

        let authority_pem = pem("CERTIFICATE", authority.der());
        Self {
            port: 0,
            authority: write_file(folder, "ca.pem", &authority_pem),
            authority_pem,
            certificate: write_file(folder, "server.pem", pem("CERTIFICATE", certificate.der())),
            key: write_file(folder, "server.key", pem("PRIVATE KEY", key.serialized_der())),
        }
    }

    /// Options of `redis-server`. Clients need no certificate.
    pub(crate) fn options(&self) -> Vec<(&'static str, String)> {
        let path = |path: &Path| path.display().to_string();
        vec![
            ("--tls-port", self.port.to_string()),
            ("--tls-cert-file", path(&self.certificate)),
            ("--tls-key-file", path(&self.key)),
            ("--tls-ca-cert-file", path(&self.authority)),
            ("--tls-auth-clients", "no".to_owned()),
        ]
    }
}

#[track_caller]
fn key() -> KeyPair {
    must("a key", KeyPair::generate())
}

#[track_caller]
fn must<T>(what: &str, made: Result<T, impl Display>) -> T {
    made.unwrap_or_else(|error| panic!("cannot make {what} for TLS: {error}"))
}

/// A file for TLS: `CERTIFICATE` or `PRIVATE KEY`.
pub fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut lines = format!("-----BEGIN {label}-----\n");
    for start in (0..text.len()).step_by(64) {
        lines.push_str(&text[start..text.len().min(start + 64)]);
        lines.push('\n');
    }
    lines + &format!("-----END {label}-----\n")
}
