//! Certificates that are trusted, and what is said of the others.

use std::path::Path;
use std::time::Duration;

use leasehold_servers::pem;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use super::advice;
use super::files::Trusted;

// In 2020, 2025 and 2040.
const PAST: u64 = 1_577_880_000;
const NOW: u64 = 1_735_732_800;
const FUTURE: u64 = 2_208_988_800;

/// A certificate as `openssl req -x509` makes it: an authority that is a server.
fn signed_by_itself(names: &[&str], common_name: &str) -> (String, CertificateDer<'static>) {
    let issuer = CertifiedIssuer::self_signed(params(names, common_name, true), KeyPair::generate().unwrap()).unwrap();
    (pem("CERTIFICATE", issuer.der()), issuer.der().clone())
}

fn params(names: &[&str], common_name: &str, is_authority: bool) -> CertificateParams {
    let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    params.distinguished_name.push(DnType::CommonName, common_name);
    (params.not_before, params.not_after) = (date_time_ymd(2024, 1, 1), date_time_ymd(2026, 1, 1));
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    params
}

/// Tells what is wrong with a certificate of `host`.
fn verify(ca: &Path, shown: &CertificateDer<'_>, host: &str, at: u64) -> Result<(), String> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let trusted = Trusted::read(ca).unwrap();
    let (host, at) = (ServerName::try_from(host).unwrap(), UnixTime::since_unix_epoch(Duration::from_secs(at)));
    let verified = trusted.verify_server_cert(shown, &[], &host, &[], at);
    verified.map(drop).map_err(|error| error.to_string())
}

#[test]
fn a_certificate_that_signs_itself_is_trusted_where_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    for (names, common_name, host, at, expected) in [
        (&[][..], "localhost", "localhost", NOW, Ok(())),
        (&[], "127.0.0.1", "127.0.0.1", NOW, Ok(())),
        (&["redis.example", "127.0.0.1"], "redis", "redis.example", NOW, Ok(())),
        (&["redis.example", "127.0.0.1"], "redis", "127.0.0.1", NOW, Ok(())),
        (&["*.redis.example"], "x", "a.redis.example", NOW, Ok(())),
        (&[], "localhost", "other", NOW, Err("not valid for name")),
        (&[], "", "other", NOW, Err("not valid for name")),
        // Names count where there are some.
        (&["redis.example"], "localhost", "localhost", NOW, Err("not valid for name")),
        (&[], "localhost", "localhost", FUTURE, Err("expired")),
        (&[], "localhost", "localhost", PAST, Err("not valid yet")),
    ] {
        let (pem, shown) = signed_by_itself(names, common_name);
        std::fs::write(&ca, pem).unwrap();
        match (verify(&ca, &shown, host, at), expected) {
            (Ok(()), Ok(())) => {}
            (Err(said), Err(words)) if said.contains(words) => {}
            (found, expected) => panic!("{names:?}, {common_name}, {host}: {found:?} and not {expected:?}"),
        }
        // Another one with the same names is another.
        let (_, other) = signed_by_itself(names, common_name);
        verify(&ca, &other, host, NOW).unwrap_err();
    }
}

#[test]
fn what_an_authority_has_signed_is_trusted_as_ever() {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    let key = KeyPair::generate().unwrap();
    let authority = params(&[], "an authority", true);
    std::fs::write(&ca, pem("CERTIFICATE", authority.self_signed(&key).unwrap().der())).unwrap();
    let issuer = Issuer::new(authority, key);
    let shown = params(&["redis.example"], "x", false).signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap();
    verify(&ca, shown.der(), "redis.example", NOW).unwrap();
    verify(&ca, shown.der(), "x", NOW).unwrap_err();
}

#[test]
fn each_fault_of_a_certificate_has_advice_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    let (pem, shown) = signed_by_itself(&["redis.example"], "x");
    std::fs::write(&ca, pem).unwrap();
    let (_, stranger) = signed_by_itself(&["redis.example"], "y");
    for (shown, host, at, words) in [
        (&shown, "redis.example", FUTURE, "a new certificate"),
        (&shown, "redis.example", PAST, "the clock"),
        (&shown, "other.example", NOW, "as the server's certificate names it"),
        (&stranger, "redis.example", NOW, "the parameter ca"),
    ] {
        let said = verify(&ca, shown, host, at).unwrap_err();
        let advice = advice(&said);
        assert!(advice.contains(words), "{said}: {advice}");
        assert_eq!(advice.contains("parameter ca"), words.contains("parameter ca"), "{said}: {advice}");
    }
}
