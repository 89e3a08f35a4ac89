//! `redis://`, `rediss://`, `redis+unix:`: one Redis or Valkey; `redis+cluster://`, `redis+sentinel://`: several.

use std::fmt;
use std::path::PathBuf;

use leasehold_core::member::Durability;
pub(crate) use leasehold_wire::redis::Address;
use url::Url;
use zeroize::Zeroizing;

use super::Said;
use super::parameters::Parameters;
use super::text::{decoded, has_unencoded_login, login, with_login};

/// The address of a Redis, and the login. Neither `Debug` nor `Display` shows the password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RedisUrl {
    pub(crate) place: RedisPlace,
    pub(crate) db: u32,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<Zeroizing<String>>,
    pub(crate) replicas: Option<u32>,
    pub(crate) durability: Durability,
    pub(crate) tls: TlsFiles,
    /// The login to Sentinels, which have users of their own.
    pub(crate) sentinel: SentinelLogin,
}

/// User and password for Sentinels, or neither.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct SentinelLogin {
    pub(crate) username: Option<String>,
    pub(crate) password: Option<Zeroizing<String>>,
}

/// The socket, or the servers that know its address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RedisPlace {
    Tcp {
        host: String,
        port: u16,
    },
    Tls {
        host: String,
        port: u16,
    },
    Unix {
        path: PathBuf,
    },
    /// Some nodes of a Redis Cluster.
    Cluster {
        seeds: Vec<Address>,
        wire: Wire,
    },
    /// Sentinels, and their name of the master.
    Sentinel {
        sentinels: Vec<Address>,
        master: String,
        wire: Wire,
    },
}

/// The encryption of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Wire {
    Plain,
    Tls,
}

/// Certificates in PEM files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TlsFiles {
    /// The authorities that are trusted instead of those of the operating system.
    pub(crate) ca: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

const SIGNS: &str = "in a user or password, / ? # and @ are written %2F, %3F, %23 and %40";
const PORT: u16 = 6379;
const MOST_DATABASES: u32 = 1_000_000;
const SENTINEL_PORT: u16 = 26_379;
const MOST_HOSTS: usize = 100;
const DURABLE: &str = "a server with appendfsync always and without eviction";

/// The part behind the scheme.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    One,
    Unix,
    Cluster,
    Sentinel,
}

fn kind(scheme: &str) -> (Kind, Wire) {
    let (name, kind) = match scheme.split_once('+') {
        Some((name, "unix")) => (name, Kind::Unix),
        Some((name, "cluster")) => (name, Kind::Cluster),
        Some((name, "sentinel")) => (name, Kind::Sentinel),
        Some((name, _)) => (name, Kind::One),
        None => (scheme, Kind::One),
    };
    (kind, if matches!(name, "rediss" | "valkeys") { Wire::Tls } else { Wire::Plain })
}

/// The hosts of a url, and the url with only the first one.
fn split_hosts(text: &str) -> (Vec<&str>, String) {
    let Some((scheme, rest)) = text.split_once("://") else { return (Vec::new(), text.to_owned()) };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let (user, hosts) = authority.rsplit_once('@').map_or(("", authority), |(user, hosts)| (user, hosts));
    let hosts: Vec<&str> = hosts.split(',').collect();
    let at = if authority.contains('@') { "@" } else { "" };
    let first = hosts.first().copied().unwrap_or_default();
    let alone = format!("{scheme}://{user}{at}{first}{tail}");
    (hosts, alone)
}

fn address(host: &str, default: u16) -> Option<Address> {
    let url = Url::parse(&format!("redis://{host}")).ok()?;
    let name = url.host_str()?.trim_matches(['[', ']']).to_owned();
    let is_bare = url.username().is_empty() && url.path().trim_matches('/').is_empty();
    (is_bare && !name.is_empty()).then(|| Address { host: name, port: url.port().unwrap_or(default) })
}

pub(super) fn parse(text: &str) -> Result<Said, String> {
    RedisUrl::parse(text).map(Said::whole)
}

impl RedisUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (kind, wire) = kind(text.split_once(':').map_or(text, |(scheme, _)| scheme));
        let is_misread = |text: &str| text.contains('#') || kind != Kind::Unix && has_unencoded_login(text);
        with_login(text, SIGNS, is_misread, || Self::of(text, kind, wire))
    }

    fn of(text: &str, kind: Kind, wire: Wire) -> Result<Self, String> {
        let (hosts, first) = match kind {
            Kind::One | Kind::Unix => (Vec::new(), text.to_owned()),
            Kind::Cluster | Kind::Sentinel => split_hosts(text),
        };
        let url = Url::parse(&first).map_err(|error| format!("{error}; write {}", example(kind)))?;
        let path = decoded(url.path(), "path")?.unwrap_or_default();
        let behind = path.strip_prefix('/').unwrap_or(&path);
        let port = if kind == Kind::Sentinel { SENTINEL_PORT } else { PORT };
        let named = || {
            let all: Option<Vec<Address>> = hosts.iter().map(|host| address(host, port)).collect();
            let all = all.filter(|all| !all.is_empty() && all.len() <= MOST_HOSTS);
            all.ok_or_else(|| format!("name 1 to {MOST_HOSTS} hosts, with commas, as {}", example(kind)))
        };
        let (place, db) = match kind {
            Kind::Unix => match path.strip_prefix('/') {
                Some(file) if !file.is_empty() && url.host_str().is_none_or(str::is_empty) => {
                    (RedisPlace::Unix { path: PathBuf::from(&path) }, "")
                }
                Some(_) | None => {
                    return Err("name the socket by its full path, as redis+unix:///run/redis.sock".to_owned());
                }
            },
            Kind::One => {
                let host = url.host_str().map(|host| host.trim_matches(['[', ']']).to_owned());
                let host = host.filter(|host| !host.is_empty());
                let host = host.ok_or("the host is missing; write redis://host:6379/0")?;
                let port = url.port().unwrap_or(PORT);
                match wire {
                    Wire::Tls => (RedisPlace::Tls { host, port }, behind),
                    Wire::Plain => (RedisPlace::Tcp { host, port }, behind),
                }
            }
            Kind::Cluster => {
                if !behind.is_empty() && behind != "0" {
                    let form = "write redis+cluster://host:6379,host:6379";
                    return Err(format!("a cluster has only the database 0; {form}"));
                }
                (RedisPlace::Cluster { seeds: named()?, wire }, "")
            }
            Kind::Sentinel => {
                let (master, db) = behind.split_once('/').unwrap_or((behind, ""));
                if master.is_empty() {
                    let what = "the name that Sentinels have for the master is missing; write";
                    return Err(format!("{what} {}", example(kind)));
                }
                (RedisPlace::Sentinel { sentinels: named()?, master: master.to_owned(), wire }, db)
            }
        };
        let db = if db.is_empty() { 0 } else { database(db)? };
        let (username, password) = login(&url)?;
        let mut given = Parameters::of(url.query().unwrap_or_default())?;
        let user = given.unlisted("user").map(|user| (*user).clone());
        let parsed = Self {
            place,
            db: given.text("db")?.map_or(Ok(db), |db| database(&db))?,
            username: given.text("username")?.or(user).or(username),
            password: given.secret("password")?.or(password),
            replicas: given.text("wait_replicas")?.map(|count| replicas(&count)).transpose()?,
            durability: given.durability(DURABLE)?.unwrap_or(Durability::NotDeclared),
            tls: {
                let (ca, (cert, key)) = (given.file("ca")?, given.certificate()?.unzip());
                TlsFiles { ca, cert, key }
            },
            sentinel: SentinelLogin {
                username: given.text("sentinel_username")?,
                password: given.secret("sentinel_password")?,
            },
        };
        let schemes = "rediss://, rediss+cluster://, rediss+sentinel:// or valkeys://";
        for name in ["tls", "ssl"] {
            let why = format!("there is no parameter {name:?}; TLS is chosen by the scheme: {schemes}");
            given.refuse(&[name], &why)?;
        }
        given.finish("")?;
        parsed.check()?;
        Ok(parsed)
    }

    fn check(&self) -> Result<(), String> {
        if self.tls != TlsFiles::default() && !self.is_encrypted() {
            return Err("certificates are used with rediss:// only".to_owned());
        }
        if self.username.is_some() && self.password.is_none() {
            return Err("the password is missing after the user name; write redis://user:password@host".to_owned());
        }
        if self.sentinel.username.is_some() && self.sentinel.password.is_none() {
            return Err("sentinel_username needs sentinel_password".to_owned());
        }
        let asks_sentinels = matches!(self.place, RedisPlace::Sentinel { .. });
        if self.sentinel != SentinelLogin::default() && !asks_sentinels {
            return Err("sentinel_username and sentinel_password are used with redis+sentinel:// only".to_owned());
        }
        if self.db != 0 && matches!(self.place, RedisPlace::Cluster { .. }) {
            return Err("a cluster has only the database 0".to_owned());
        }
        Ok(())
    }

    /// Tells if connections use TLS.
    pub(crate) fn is_encrypted(&self) -> bool {
        match &self.place {
            RedisPlace::Tls { .. } => true,
            RedisPlace::Tcp { .. } | RedisPlace::Unix { .. } => false,
            RedisPlace::Cluster { wire, .. } | RedisPlace::Sentinel { wire, .. } => *wire == Wire::Tls,
        }
    }

    /// The hosts that the url names.
    pub(crate) fn hosts(&self) -> Vec<&str> {
        match &self.place {
            RedisPlace::Tcp { host, .. } | RedisPlace::Tls { host, .. } => vec![host],
            RedisPlace::Unix { .. } => Vec::new(),
            RedisPlace::Cluster { seeds: all, .. } | RedisPlace::Sentinel { sentinels: all, .. } => {
                all.iter().map(|address| address.host.as_str()).collect()
            }
        }
    }
}

fn example(kind: Kind) -> &'static str {
    match kind {
        Kind::One => "redis://host:6379/0",
        Kind::Unix => "redis+unix:///run/redis.sock",
        Kind::Cluster => "redis+cluster://host:6379,host:6379",
        Kind::Sentinel => "redis+sentinel://host:26379,host:26379/master-name/0",
    }
}

fn listed(all: &[Address]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn database(text: &str) -> Result<u32, String> {
    let db = text.parse().ok().filter(|db| *db <= MOST_DATABASES && !text.starts_with('+'));
    db.ok_or_else(|| format!("{text:?} is not a database number; write redis://host:6379/0"))
}

fn replicas(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| (1..=100).contains(count));
    count.ok_or_else(|| format!("wait_replicas is {text:?}; write how many replicas must confirm, 1 to 100"))
}

fn scheme(wire: Wire) -> &'static str {
    match wire {
        Wire::Plain => "redis",
        Wire::Tls => "rediss",
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = |host: &str| if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        match &self.place {
            RedisPlace::Tcp { host: name, port } => write!(f, "redis://{}:{port}/{}", host(name), self.db),
            RedisPlace::Tls { host: name, port } => write!(f, "rediss://{}:{port}/{}", host(name), self.db),
            RedisPlace::Unix { path } => write!(f, "redis+unix://{}?db={}", path.display(), self.db),
            RedisPlace::Cluster { seeds, wire } => write!(f, "{}+cluster://{}", scheme(*wire), listed(seeds)),
            RedisPlace::Sentinel { sentinels, master, wire } => {
                write!(f, "{}+sentinel://{}/{master}/{}", scheme(*wire), listed(sentinels), self.db)
            }
        }
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> RedisUrl {
        RedisUrl::parse(text).unwrap()
    }

    fn refused(text: &str) -> String {
        RedisUrl::parse(text).unwrap_err()
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
    fn several_hosts_are_read() {
        let at = |host: &str, port| Address { host: host.into(), port };
        let cluster = url("redis+cluster://us%65r:p%40,ss@a:7000,[::1]:7001,c?wait_replicas=1");
        let seeds = vec![at("a", 7000), at("::1", 7001), at("c", 6379)];
        assert_eq!(cluster.place, RedisPlace::Cluster { seeds, wire: Wire::Plain });
        assert_eq!((cluster.username.as_deref(), cluster.replicas), (Some("user"), Some(1)));
        assert_eq!(cluster.password.as_ref().map(|p| p.as_str()), Some("p@,ss"));
        assert_eq!(cluster.to_string(), "redis+cluster://a:7000,[::1]:7001,c:6379");
        let sentinel = url("valkeys+sentinel://:p@a,b:5/my%20master/3?sentinel_username=u&sentinel_password=w&ca=x");
        let sentinels = vec![at("a", 26379), at("b", 5)];
        assert_eq!(sentinel.place, RedisPlace::Sentinel { sentinels, master: "my master".into(), wire: Wire::Tls });
        assert_eq!((sentinel.db, sentinel.sentinel.username.as_deref()), (3, Some("u")));
        assert_eq!(sentinel.sentinel.password.as_ref().map(|p| p.as_str()), Some("w"));
        assert!(!format!("{sentinel} {sentinel:?}").contains('w'), "{sentinel}");
    }

    #[test]
    fn errors_name_the_wrong_part_and_the_right_form() {
        for (text, words) in [
            ("redis://", "redis://host:6379/0"),
            ("redis://host/abc", "\"abc\" is not a database number"),
            ("redis://host/-1", "not a database number"),
            ("redis://host/1/2", "not a database number"),
            ("redis://host:99999", "port"),
            ("redis://host?tsl=1", "there is no parameter \"tsl\"; there are db, username"),
            ("redis://host?tls=1", "TLS is chosen by the scheme: rediss://"),
            ("redis://host/0?ssl=true", "there is no parameter \"ssl\""),
            ("redis://host?wait_replicas=0", "1 to 100"),
            ("redis://host?ca=x", "rediss:// only"),
            ("rediss://host?cert=x", "cert and key"),
            ("redis://user@host", "password is missing"),
            ("redis://:pass#word@host", "%23"),
            ("redis://u:12/hunter2@host", "%2F"),
            ("redis://u:12?hunter2@host", "%3F"),
            ("redis+cluster://u:12/hunter2@a,b", "%2F"),
            ("redis+unix://run/redis.sock", "full path"),
            ("redis+unix://", "full path"),
            ("redis+cluster://", "redis+cluster://host:6379,host:6379"),
            ("redis+cluster://a,,b", "1 to 100 hosts"),
            ("redis+cluster://a,b:x", "1 to 100 hosts"),
            ("redis+cluster://a/1", "only the database 0"),
            ("redis+cluster://a?db=1", "only the database 0"),
            ("redis+cluster://a?ca=x", "rediss:// only"),
            ("redis+sentinel://a,b", "name that Sentinels have"),
            ("redis+sentinel://a/m/x", "not a database number"),
            ("redis+sentinel://a/m?sentinel_username=u", "needs sentinel_password"),
            ("redis://a?sentinel_password=u", "redis+sentinel:// only"),
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
