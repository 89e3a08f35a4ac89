//! TLS, the same for all stores behind sockets: the trusted certificates, and the client's own.

mod files;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use rustls::client::{Resumption, WantsClientCert};
use rustls::{ClientConfig, ConfigBuilder};
use rustls_platform_verifier::BuilderVerifierExt;

use self::files::Shown;
use self::files::Trusted;

/// The parameters `cert` and `key`: files with the client's certificate and its key.
pub(super) type OwnCertificate<'a> = Option<(&'a Path, &'a Path)>;

/// A configuration that trusts the certificates in the PEM file `ca`, or the authorities of the operating system, and shows the
/// client's own certificate. Make it once: reading the authorities takes 20 ms. The files are read again for each connection, in
/// case that they have changed, so no connection continues the session of an earlier one.
///
/// # Errors
/// A file cannot be read, certificate and key do not belong together, or the system has no authorities.
pub(super) fn config(ca: Option<&Path>, own: OwnCertificate<'_>) -> Result<ClientConfig, String> {
    let trusting = trusting(ca)?;
    let mut config = match own {
        Some((certificate, key)) => trusting.with_client_cert_resolver(Arc::new(Shown::read(certificate, key)?)),
        None => trusting.with_no_client_auth(),
    };
    if ca.is_some() || own.is_some() {
        config.resumption = Resumption::disabled();
    }
    Ok(config)
}

fn trusting(ca: Option<&Path>) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, String> {
    // No effect where the application has installed its own.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match ca {
        Some(file) => {
            let trusted = Arc::new(Trusted::read(file)?);
            Ok(ClientConfig::builder().dangerous().with_custom_certificate_verifier(trusted))
        }
        None => ClientConfig::builder().with_platform_verifier().map_err(|error| {
            format!("{error}; install the package ca-certificates, or name a file in the parameter ca")
        }),
    }
}

/// Parts of messages of the system and of the library, each with its advice. The first one counts.
const ADVICE: [(&str, &str); 8] = [
    ("certificate expired", EXPIRED),
    ("certificate: Expired", EXPIRED),
    ("certificate not valid yet", NOT_YET),
    ("certificate: NotValidYet", NOT_YET),
    ("not valid for", OTHER_NAME),
    ("certificate", UNKNOWN),
    ("InvalidContentType", NO_TLS),
    ("Connection refused", "; is the server running, and is this its port?"),
];

const EXPIRED: &str = "; the server needs a new certificate, unless the clock of this machine is wrong";
const NOT_YET: &str = "; is the clock of this machine right?";
const OTHER_NAME: &str = "; write the host in the store url as the server's certificate names it, or add the name to \
                          the certificate";
const UNKNOWN: &str = "; if the server's certificate is from your own authority, or signs itself, name its file in the \
                       parameter ca";

/// Advice for a failed connection, by the message of the system or the library; it is appended to that message.
pub(super) fn advice(said: &str) -> &'static str {
    let found = ADVICE.iter().find(|(part, _)| said.contains(part));
    found.map_or("", |(_, advice)| advice)
}

/// Appended to the message where a server does not answer in TLS.
pub(super) const NO_TLS: &str = "; the server accepted the connection and does not answer in TLS: name its port for \
                                 TLS, or write the store url without TLS (redis:// instead of rediss://, http instead \
                                 of https)";
