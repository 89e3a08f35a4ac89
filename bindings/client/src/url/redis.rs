//! `redis://`, `rediss://`, `redis+unix:`: one Redis or Valkey.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;

use url::Url;
use zeroize::Zeroizing;

use super::{decoded, without_secrets};
use crate::error::Error;

/// Where a Redis is, and how to get in. Neither `Debug` nor `Display` show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl {
    pub(crate) place: RedisPlace,
    pub(crate) db: u32,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<Zeroizing<String>>,
    pub(crate) replicas: Option<u32>,
    pub(crate) tls: TlsFiles,
}

/// The socket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RedisPlace {
    Tcp { host: String, port: u16 },
    Tls { host: String, port: u16 },
    Unix { path: PathBuf },
}

/// Certificates in PEM files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TlsFiles {
    /// Trusted instead of those of the operating system.
    pub(crate) ca: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

const PORT: u16 = 6379;
const MOST_DATABASES: u32 = 1_000_000;
const PARAMETERS: &str = "db, username, password, wait_replicas, ca, cert and key";

impl RedisUrl {
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let shown = without_secrets(text);
        let wrong = |what: &str| Error::config(format!("store url {shown:?}: {what}"));
        if text.contains('#') {
            return Err(wrong("a # in a password is written %23"));
        }
        let url = Url::parse(text).map_err(|error| wrong(&format!("{error}; write redis://host:6379/0")))?;
        let mut parsed = Self {
            place: RedisPlace::Unix { path: PathBuf::new() },
            db: 0,
            username: decoded(url.username()).ok_or_else(|| wrong("the user name is not UTF-8"))?,
            password: match url.password() {
                None => None,
                Some(password) => {
                    decoded(password).ok_or_else(|| wrong("the password is not UTF-8"))?.map(Zeroizing::new)
                }
            },
            replicas: None,
            tls: TlsFiles::default(),
        };
        let path = decoded(url.path()).ok_or_else(|| wrong("the path is not UTF-8"))?.unwrap_or_default();
        parsed.place = match url.scheme() {
            "redis+unix" | "valkey+unix" => match path.strip_prefix('/') {
                Some(file) if !file.is_empty() && url.host_str().is_none_or(str::is_empty) => {
                    RedisPlace::Unix { path: PathBuf::from(&path) }
                }
                Some(_) | None => {
                    return Err(wrong("name the socket by its whole path, as redis+unix:///run/redis.sock"));
                }
            },
            scheme => {
                let host = url.host_str().map(|host| host.trim_matches(['[', ']']).to_owned());
                let host = host.filter(|host| !host.is_empty());
                let host = host.ok_or_else(|| wrong("the host is missing; write redis://host:6379/0"))?;
                let port = url.port().unwrap_or(PORT);
                let number = path.strip_prefix('/').unwrap_or(&path);
                if !number.is_empty() {
                    parsed.db = database(number).ok_or_else(|| wrong(&not_a_database(number)))?;
                }
                if matches!(scheme, "rediss" | "valkeys") {
                    RedisPlace::Tls { host, port }
                } else {
                    RedisPlace::Tcp { host, port }
                }
            }
        };
        for (name, value) in url.query_pairs() {
            parsed.set(&name, value.into_owned()).map_err(|what| wrong(&what))?;
        }
        parsed.check().map_err(|what| wrong(&what))?;
        Ok(parsed)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        match name {
            "db" => self.db = database(&value).ok_or_else(|| not_a_database(&value))?,
            "username" | "user" => self.username = Some(value),
            "password" => self.password = Some(Zeroizing::new(value)),
            "wait_replicas" => {
                let count = value.parse().ok().filter(|count| (1..=100).contains(count));
                self.replicas = Some(count.ok_or_else(|| {
                    format!("wait_replicas is {value:?}; write how many replicas must confirm, 1 to 100")
                })?);
            }
            "ca" => self.tls.ca = Some(PathBuf::from(value)),
            "cert" => self.tls.cert = Some(PathBuf::from(value)),
            "key" => self.tls.key = Some(PathBuf::from(value)),
            _ if name.contains('@') => return Err("a ? in a password is written %3F".to_owned()),
            _ => return Err(format!("there is no parameter {name:?}; there are {PARAMETERS}")),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        if self.tls != TlsFiles::default() && !matches!(self.place, RedisPlace::Tls { .. }) {
            return Err("certificates are used with rediss:// only".to_owned());
        }
        if self.tls.cert.is_some() != self.tls.key.is_some() {
            return Err("cert and key belong together: name both files".to_owned());
        }
        if self.username.is_some() && self.password.is_none() {
            return Err("a user name without a password; write redis://user:password@host".to_owned());
        }
        Ok(())
    }
}

fn database(text: &str) -> Option<u32> {
    text.parse().ok().filter(|db| *db <= MOST_DATABASES && !text.starts_with('+'))
}

fn not_a_database(text: &str) -> String {
    if text.contains('@') {
        return "a / in a password is written %2F".to_owned();
    }
    format!("{text:?} is no database number; write redis://host:6379/0")
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = |host: &str| if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        match &self.place {
            RedisPlace::Tcp { host: name, port } => write!(f, "redis://{}:{port}/{}", host(name), self.db),
            RedisPlace::Tls { host: name, port } => write!(f, "rediss://{}:{port}/{}", host(name), self.db),
            RedisPlace::Unix { path } => write!(f, "redis+unix://{}?db={}", path.display(), self.db),
        }
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisUrl({self})")
    }
}

impl Hash for RedisUrl {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.place, self.db, &self.username, &self.tls).hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> RedisUrl {
        RedisUrl::parse(text).unwrap()
    }

    fn refused(text: &str) -> String {
        RedisUrl::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn every_part_of_a_url_is_read() {
        let plain = url("redis://localhost");
        assert_eq!(plain.place, RedisPlace::Tcp { host: "localhost".into(), port: 6379 });
        assert_eq!((plain.db, &plain.username, &plain.password), (0, &None, &None));
        let full = url("rediss://us%65r:p%40ss%2Fword@[::1]:7000/3?wait_replicas=2&ca=/etc/ca.pem&cert=c&key=k");
        assert_eq!(full.place, RedisPlace::Tls { host: "::1".into(), port: 7000 });
        assert_eq!((full.db, full.username.as_deref()), (3, Some("user")));
        assert_eq!(full.password.as_ref().map(|password| password.as_str()), Some("p@ss/word"));
        assert_eq!((full.replicas, full.tls.ca), (Some(2), Some("/etc/ca.pem".into())));
        let socket = url("redis+unix:///run/my%20redis.sock?db=2&password=secret");
        assert_eq!(socket.place, RedisPlace::Unix { path: "/run/my redis.sock".into() });
        assert_eq!((socket.db, socket.password.as_ref().map(|p| p.as_str())), (2, Some("secret")));
        assert_eq!(url("redis://:only@host").password.as_ref().map(|p| p.as_str()), Some("only"));
        assert_eq!(url("valkey://host:1/"), url("redis://host:1"));
    }

    #[test]
    fn a_wrong_part_is_named_with_what_would_be_right() {
        for (text, words) in [
            ("redis://", "redis://host:6379/0"),
            ("redis://host/abc", "\"abc\" is no database number"),
            ("redis://host/-1", "no database number"),
            ("redis://host/1/2", "no database number"),
            ("redis://host:99999", "port"),
            ("redis://host?tls=1", "there is no parameter \"tls\""),
            ("redis://host?wait_replicas=0", "1 to 100"),
            ("redis://host?ca=x", "rediss:// only"),
            ("rediss://host?cert=x", "cert and key"),
            ("redis://user@host", "without a password"),
            ("redis://:pass#word@host", "%23"),
            ("redis+unix://run/redis.sock", "whole path"),
            ("redis+unix://", "whole path"),
        ] {
            let said = refused(text);
            assert!(said.contains(words), "{text}: {said}");
        }
    }

    #[test]
    fn no_secret_is_ever_shown() {
        for text in ["redis://u:hunter2@host/1", "redis+unix:///s?password=hunter2", "rediss://:hunter2@host"] {
            let url = url(text);
            let shown = format!("{url} {url:?}");
            assert!(!shown.contains("hunter2"), "{shown}");
        }
        for text in ["redis://u:hunter2@host/x", "redis://:hunter2@host?nope=1", "redis://h?password=hunter2&db=x"] {
            assert!(!refused(text).contains("hunter2"), "{}", refused(text));
        }
    }
}
