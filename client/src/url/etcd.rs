//! `etcd://host[:2379][,host...]`: the keys of one etcd below a prefix.

use std::fmt;
use std::path::PathBuf;

use leasehold_core::member::Durability;
use url::Url;
use zeroize::Zeroizing;

use super::Said;
use super::parameters::{Parameters, Plaintext};
use super::reach::Exposure;
use super::reach::is_loopback;
use super::text::{decoded, is_misread, with_login};

/// The addresses of the members of one etcd, the login, and the prefix of the keys. Neither `Debug` nor `Display` shows the
/// password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct EtcdUrl {
    /// Host and port of each.
    pub(crate) hosts: Vec<String>,
    pub(crate) reach: Exposure,
    pub(crate) login: Option<(String, Zeroizing<String>)>,
    pub(crate) prefix: String,
    /// PEM file with certificates that are trusted instead of those of the operating system.
    pub(crate) ca: Option<PathBuf>,
    /// PEM files: the client's certificate, and its key.
    pub(crate) shown: Option<(PathBuf, PathBuf)>,
    pub(crate) durability: Durability,
}

const FORM: &str = "write etcd://host:2379, or etcds://host:2379 with TLS; several hosts are separated by commas";
const SIGNS: &str = "in a user or password, / ? # , and @ are written %2F, %3F, %23, %2C and %40";
const DURABLE: &str = "a server that loses nothing in a restart";
const PORT: u16 = 2379;

pub(super) fn parse(text: &str) -> Result<Said, String> {
    EtcdUrl::parse(text).map(Said::whole)
}

impl EtcdUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        with_login(text, SIGNS, is_misread, || Self::of(text))
    }

    fn of(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.split_once("://").ok_or(FORM)?;
        let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (login, hosts) = place.rsplit_once('@').map_or(("", place), |(login, hosts)| (login, hosts));
        let hosts = hosts.trim_end_matches('/').split(',').map(host).collect::<Result<Vec<_>, _>>()?;
        let tls = scheme == "etcds";
        let reach = match hosts.iter().all(|(_, is_here)| *is_here) {
            _ if tls => Exposure::Tls,
            true => Exposure::Loopback,
            false => Exposure::Plaintext,
        };
        let (name, secret) = login.split_once(':').unwrap_or((login, ""));
        let mut given = Parameters::of(parameters)?;
        let prefix = given.raw("prefix").map_or_else(|| "leasehold/".to_owned(), |prefix| (*prefix).clone());
        let user = given.text("user")?.map_or_else(|| decoded(name, "user"), |user| Ok(Some(user)))?;
        let password = match given.secret("password")? {
            None => decoded(secret, "password")?.map(Zeroizing::new),
            password => password,
        };
        let plaintext = given.plaintext()?;
        let (ca, shown) = (given.file("ca")?, given.certificate()?);
        // A restart loses nothing. Data that is older, or of another cluster, is noticed by other means.
        let durability = given.durability(DURABLE)?.unwrap_or(Durability::Declared);
        given.finish("")?;
        let login = match (user, password) {
            (Some(user), Some(password)) => Some((user, password)),
            (None, None) => None,
            (Some(_), None) => return Err("the password is missing".to_owned()),
            (None, Some(_)) => return Err("the user is missing".to_owned()),
        };
        if !tls && (ca.is_some() || shown.is_some()) {
            return Err("certificates are used with TLS only: write etcds://".to_owned());
        }
        if login.is_some() && reach == Exposure::Plaintext && plaintext == Plaintext::ToLoopback {
            return Err("without TLS everybody on the network path could read the password; write etcds://, or add \
                        ?plaintext=allow where the network is trusted"
                .to_owned());
        }
        let hosts = hosts.into_iter().map(|(host, _)| host).collect();
        Ok(Self { hosts, reach, login, prefix, ca, shown, durability })
    }

    pub(crate) fn host(&self) -> Option<&str> {
        match self.hosts.as_slice() {
            [host] => host.rsplit_once(':').map(|(host, _)| host),
            _ => None,
        }
    }
}

/// Host and port, and whether it is this machine.
fn host(text: &str) -> Result<(String, bool), String> {
    let url = Url::parse(&format!("http://{text}")).map_err(|error| format!("{error}; {FORM}"))?;
    // The parser drops the port that is usual for HTTP.
    let port = if text.ends_with(":80") { 80 } else { url.port().unwrap_or(PORT) };
    match url.host().filter(|_| url.path() == "/" && url.username().is_empty()) {
        Some(host) => Ok((format!("{host}:{port}"), is_loopback(&host))),
        None => Err(FORM.to_owned()),
    }
}

impl fmt::Display for EtcdUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.reach == Exposure::Tls { "etcds" } else { "etcd" };
        write!(f, "{scheme}://{}", self.hosts.join(","))?;
        if self.prefix == "leasehold/" { Ok(()) } else { write!(f, "?prefix={}", self.prefix) }
    }
}

impl fmt::Debug for EtcdUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        EtcdUrl::parse(text).unwrap_err()
    }

    #[test]
    fn urls_are_read() {
        let url = EtcdUrl::parse("etcd://a,B:80,[::1]:1?prefix=x/").unwrap();
        assert_eq!((url.to_string().as_str(), url.host()), ("etcd://a:2379,b:80,[::1]:1?prefix=x/", None));
        let url = EtcdUrl::parse("etcds://me:hun%2Fter2@a/").unwrap();
        assert_eq!((url.to_string().as_str(), url.host(), url.reach), ("etcds://a:2379", Some("a"), Exposure::Tls));
        let login = url.login.unwrap();
        assert_eq!((login.0.as_str(), login.1.as_str()), ("me", "hun/ter2"));
        assert!(EtcdUrl::parse("etcd://localhost?user=me&password=hunter2").unwrap().login.is_some());
        assert!(EtcdUrl::parse("etcd://a?user=me&password=hunter2&plaintext=allow").unwrap().login.is_some());
    }

    #[test]
    fn odd_urls_are_refused_without_their_secrets() {
        for (url, words) in [
            ("etcd://", FORM),
            ("etcd://a/b", FORM),
            ("etcd://a,,b", FORM),
            ("etcd://a:x", FORM),
            ("etcd://me@a", "password is missing"),
            ("etcd://a?password=hunter2", "user is missing"),
            ("etcd://me:hunter2@a", "without TLS"),
            ("etcd://a?ca=x", "TLS only"),
            ("etcds://a?cert=x", "belong together"),
            ("etcd://a?lease=1", "there is no parameter \"lease\""),
            ("etcd://me:hun?ter2@a", SIGNS),
        ] {
            assert!(refused(url).contains(words), "{url}: {}", refused(url));
            assert!(!refused(url).contains("ter2"), "{}", refused(url));
        }
    }
}
