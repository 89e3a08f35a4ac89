//! Store urls: the kind and the address of a store.

#[cfg(feature = "objects")]
pub(crate) mod azure;
#[cfg(feature = "dynamodb")]
pub(crate) mod dynamodb;
#[cfg(feature = "etcd")]
pub(crate) mod etcd;
#[cfg(feature = "http")]
pub(crate) mod http;
#[cfg(feature = "objects")]
pub(crate) mod objects;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "redis")]
pub(crate) mod redis;
mod scheme;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

#[cfg(feature = "dynamodb")]
pub use self::dynamodb::DynamodbUrl;
#[cfg(feature = "etcd")]
pub use self::etcd::EtcdUrl;
#[cfg(feature = "http")]
pub use self::http::HttpUrl;
#[cfg(feature = "objects")]
pub use self::objects::ObjectsUrl;
#[cfg(feature = "postgres")]
pub use self::postgres::PostgresUrl;
#[cfg(feature = "redis")]
pub use self::redis::RedisUrl;
use crate::error::Error;

/// A store, as its url names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "a client has a few of them, and features decide which is the largest")]
pub enum StoreUrl {
    /// `memory:` for a store of its own, `memory:NAME` for one shared by name within this process.
    Memory {
        /// The name, if it is shared.
        name: Option<String>,
    },
    /// `sqlite:PATH`: a file shared by the processes of one machine.
    Sqlite {
        /// The file.
        path: PathBuf,
    },
    /// `redis://[user:password@]host[:6379][/db]`, `rediss://` with TLS, `redis+unix:///path/to.sock`: one Redis or
    /// Valkey. Parameters: `db`, `username`, `password`, `wait_replicas` (a grant counts only after this many replicas
    /// have confirmed it), `durable=yes` (in a quorum: a restart loses nothing, which is true only with `appendfsync
    /// always` and without eviction), and for TLS `ca`, `cert`, `key` (PEM files).
    ///
    /// `redis+cluster://[user:password@]host[:6379][,host...]`: a Redis Cluster, by any of its nodes.
    /// `redis+sentinel://[user:password@]host[:26379][,host...]/master-name[/db]`: the master that Sentinels name, with
    /// `sentinel_username` and `sentinel_password` for the Sentinels themselves. `rediss+...` is with TLS.
    #[cfg(feature = "redis")]
    Redis(RedisUrl),
    /// `upstash+https://:TOKEN@host`, or `upstash:` for the environment variables `UPSTASH_REDIS_REST_URL` and
    /// `UPSTASH_REDIS_REST_TOKEN`; `webdis+http://[user:password@]host[:7379]`, `webdis+https://`: one Redis behind
    /// HTTP. Parameters: `ca` (a PEM file, trusted instead of the operating system's certificates), `plaintext=allow`
    /// (otherwise `http` sends a token or password only to loopback), `durable=yes` (as for `redis://`). Proxies in the
    /// environment are used with `LEASEHOLD_PROXY=environment` only.
    #[cfg(feature = "http")]
    Http(HttpUrl),
    /// `dynamodb://TABLE?region=eu-west-1`: a table of DynamoDB. Keys come from where AWS's tools keep them:
    /// environment, profiles, roles. Parameters:
    ///
    /// - `region`, else `AWS_REGION`, `AWS_DEFAULT_REGION`, the profile's `region`; `profile`, else `AWS_PROFILE`, else
    ///   `default`. A profile that the url names comes before the environment, with its region and its keys;
    /// - `endpoint` (scheme, host, port), else `AWS_ENDPOINT_URL_DYNAMODB`, `AWS_ENDPOINT_URL`, the profile's
    ///   `endpoint_url`, else the region's own: `fips=true`, `dualstack=true` choose among those. `plaintext=allow` lets it
    ///   be `http` beyond loopback; `ca` is a PEM file, trusted instead of the operating system's certificates;
    /// - `key`, the partition key (default `key`); `sort_key` with `sort_key_value` (default `-`), where the table has one;
    ///   `expires`, the attribute of the table's TTL;
    /// - `require_strong=true` refuses a table whose replicas in other regions lag behind; `durable=no` says
    ///   that a restart may lose records, which is otherwise assumed only of endpoints on loopback.
    #[cfg(feature = "dynamodb")]
    Dynamodb(DynamodbUrl),
    /// `etcd://[user:password@]host[:2379][,host...]`, or `etcds://` with TLS: the keys of one etcd (3.4 or newer), by any of
    /// its members. Parameters: `prefix` of the keys (default `leasehold/`), `user` and `password`, `plaintext=allow`
    /// (otherwise a password goes only to loopback without TLS), and for TLS `ca`, `cert`, `key` (PEM files).
    #[cfg(feature = "etcd")]
    Etcd(EtcdUrl),
    /// `s3://BUCKET[/PREFIX]?region=eu-west-1`, `azblob://ACCOUNT/CONTAINER[/PREFIX]`, `gs://BUCKET[/PREFIX]`,
    /// `cosmos://ACCOUNT/DATABASE/CONTAINER[/PREFIX]`: objects of Amazon S3 and services with its API, Azure Blob Storage,
    /// or Google Cloud Storage, or documents of Azure Cosmos DB, below a prefix (default `leasehold/`). Keys come from where the tools of each cloud keep them: environment, files, workload and machine
    /// identities. Parameters: `endpoint` (scheme, host, port), which else is the cloud's own or that of
    /// `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL` or `STORAGE_EMULATOR_HOST`; `ca`, a PEM file that is trusted instead of the
    /// operating system's certificates; `plaintext=allow` (otherwise `http` is for loopback only); `durable=no` (in a
    /// quorum: a restart may lose records, which is otherwise assumed only of endpoints on loopback); and for S3 `region`
    /// and `profile` as for DynamoDB.
    #[cfg(feature = "objects")]
    Objects(ObjectsUrl),
    /// `postgres://user:password@host[:5432]/database` or `postgresql://`: the table `leasehold` of a PostgreSQL server,
    /// directly or through PgBouncer in any mode; `leasehold store create` makes it. Parameters:
    ///
    /// - `schema`, where the table is (default `public`); `host=/run/postgresql`, the folder of a socket;
    /// - `sslmode`: `verify-full`, which is the default beyond loopback, or `disable`; `ca` or `sslrootcert`, a PEM file
    ///   that is trusted instead of the operating system's certificates;
    /// - `listen=HOST:PORT`, the server's own address past a pooler, or `listen=yes`: releases are notified, so that
    ///   waiters need not poll. All clients of a table should name it;
    /// - `durable=yes` (in a quorum: a failover loses nothing, which is true only with synchronous replication).
    #[cfg(feature = "postgres")]
    Postgres(PostgresUrl),
}

/// The exposure of requests on the network.
#[cfg(any(feature = "http", feature = "dynamodb", feature = "etcd"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reach {
    /// Only the server can read requests.
    Tls,
    /// Only this machine can read requests.
    Loopback,
    /// Everybody on the way can read requests.
    Plaintext,
}

impl StoreUrl {
    /// The default store: `leasehold/locks.db` in the user's state folder (`$XDG_STATE_HOME`, else `~/.local/state`).
    ///
    /// # Errors
    /// Neither `XDG_STATE_HOME` nor `HOME` names an absolute folder.
    pub fn default_store() -> Result<Self, Error> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
        match state {
            Some(state) => Ok(Self::Sqlite { path: state.join("leasehold/locks.db") }),
            None => Err(Error::config(
                "no store is named, and there is no home folder to keep one in: name a store, such as sqlite:locks.db",
            )),
        }
    }
}

impl StoreUrl {
    /// The store's name among the nodes of a quorum: the url without user, password and parameters, the same for all
    /// clients that reach the store by the same way. Files are named by their real path where they exist.
    pub fn node_name(&self) -> String {
        match self {
            Self::Memory { .. } => self.to_string(),
            Self::Sqlite { path } => {
                let real = std::fs::canonicalize(path).or_else(|_| std::path::absolute(path));
                let real = real.as_ref().unwrap_or(path).display().to_string();
                // By this Windows marks the paths of files that are there, and no others.
                format!("sqlite:{}", real.strip_prefix(r"\\?\").unwrap_or(&real))
            }
            // Different spellings of a host are the same.
            #[cfg(feature = "redis")]
            Self::Redis(url) => match &url.place {
                redis::RedisPlace::Unix { .. } => self.to_string(),
                redis::RedisPlace::Tcp { .. }
                | redis::RedisPlace::Tls { .. }
                | redis::RedisPlace::Cluster { .. }
                | redis::RedisPlace::Sentinel { .. } => self.to_string().to_ascii_lowercase(),
            },
            #[cfg(feature = "http")]
            Self::Http(_) => self.to_string(),
            #[cfg(feature = "dynamodb")]
            Self::Dynamodb(_) => self.to_string(),
            #[cfg(feature = "etcd")]
            Self::Etcd(_) => self.to_string(),
            #[cfg(feature = "objects")]
            Self::Objects(_) => self.to_string(),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => self.to_string(),
        }
    }
}

impl StoreUrl {
    /// The machine of the store; `None` where the url names servers that know it.
    pub(crate) fn machine(&self) -> Option<String> {
        match self {
            Self::Memory { .. } | Self::Sqlite { .. } => Some(HERE.to_owned()),
            #[cfg(feature = "redis")]
            Self::Redis(url) => match &url.place {
                redis::RedisPlace::Unix { .. } => Some(HERE.to_owned()),
                redis::RedisPlace::Tcp { host, .. } | redis::RedisPlace::Tls { host, .. } => Some(machine(host)),
                redis::RedisPlace::Cluster { .. } | redis::RedisPlace::Sentinel { .. } => None,
            },
            #[cfg(feature = "http")]
            Self::Http(url) => url.host().as_deref().map(machine),
            // Tables of one region fail together.
            #[cfg(feature = "dynamodb")]
            Self::Dynamodb(url) => url.host().as_deref().map(machine),
            #[cfg(feature = "etcd")]
            Self::Etcd(url) => url.host().map(machine),
            #[cfg(feature = "objects")]
            Self::Objects(url) => url.host().as_deref().map(machine),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => Some(url.place.host().map_or_else(|| HERE.to_owned(), machine)),
        }
    }
}

const HERE: &str = "this machine";

/// The normal form of a host name.
#[cfg(feature = "network")]
fn machine(host: &str) -> String {
    let bare = host.trim_matches(['[', ']']);
    let parsed = if bare.contains(':') { url::Host::parse(&format!("[{bare}]")) } else { url::Host::parse(bare) };
    match parsed {
        Ok(url::Host::Domain(name)) if is_loopback(&url::Host::Domain(name.as_str())) => HERE.to_owned(),
        Ok(url::Host::Ipv4(address)) if is_loopback(&url::Host::Ipv4(address)) => HERE.to_owned(),
        Ok(url::Host::Ipv6(address)) if is_loopback(&url::Host::Ipv6(address)) => HERE.to_owned(),
        Ok(host) => host.to_string(),
        Err(_) => host.to_ascii_lowercase(),
    }
}

/// Tells if a parameter is switched on.
#[cfg(feature = "dynamodb")]
fn is_true(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "true" | "yes" => Ok(true),
        "false" | "no" => Ok(false),
        _ => Err(format!("{name} is {value:?}; write {name}=true, or leave it out")),
    }
}

#[cfg(feature = "network")]
fn is_loopback(host: &url::Host<&str>) -> bool {
    match host {
        url::Host::Domain(name) => *name == "localhost" || name.ends_with(".localhost"),
        url::Host::Ipv4(address) => address.is_loopback(),
        url::Host::Ipv6(address) => address.to_canonical().is_loopback(),
    }
}

impl FromStr for StoreUrl {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self, Error> {
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err(Error::config(format!(
                "store url {url:?} has no scheme; write sqlite:PATH, redis://HOST or memory:, such as sqlite:locks.db"
            )));
        };
        match scheme {
            "memory" if rest.starts_with('/') => Err(Error::config(format!(
                "store url {url:?}: a memory store has a name, not a path; write memory: or memory:NAME"
            ))),
            "memory" => Ok(Self::Memory { name: (!rest.is_empty()).then(|| rest.to_owned()) }),
            "sqlite" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                if path.is_empty() {
                    return Err(Error::config(format!(
                        "store url {url:?} has no path; write sqlite:PATH, such as sqlite:locks.db or \
                         sqlite:/var/lib/app/locks.db"
                    )));
                }
                if path == ":memory:" {
                    return Err(Error::config(format!(
                        "store url {url:?}: a SQLite database in memory is not shared; write memory: instead"
                    )));
                }
                if path.contains(['?', '\0']) {
                    return Err(Error::config(format!(
                        "store url {url:?}: sqlite takes a plain path without parameters or NUL"
                    )));
                }
                Ok(Self::Sqlite { path: PathBuf::from(path) })
            }
            #[cfg(feature = "redis")]
            "redis" | "rediss" | "redis+unix" | "valkey" | "valkeys" | "valkey+unix" | "redis+cluster"
            | "rediss+cluster" | "valkey+cluster" | "valkeys+cluster" | "redis+sentinel" | "rediss+sentinel"
            | "valkey+sentinel" | "valkeys+sentinel" => Ok(Self::Redis(RedisUrl::parse(url)?)),
            #[cfg(not(feature = "redis"))]
            "redis" | "rediss" | "redis+unix" | "valkey" | "valkeys" | "valkey+unix" | "redis+cluster"
            | "rediss+cluster" | "valkey+cluster" | "valkeys+cluster" | "redis+sentinel" | "rediss+sentinel"
            | "valkey+sentinel" | "valkeys+sentinel" => {
                Err(Error::config("this build has no Redis: enable the feature `redis`"))
            }
            #[cfg(feature = "http")]
            "upstash" | "upstash+https" | "upstash+http" | "webdis+https" | "webdis+http" => {
                Ok(Self::Http(HttpUrl::parse(url, |name| std::env::var(name).ok())?))
            }
            #[cfg(not(feature = "http"))]
            "upstash" | "upstash+https" | "upstash+http" | "webdis+https" | "webdis+http" => {
                Err(Error::config("this build has no Redis over HTTP: enable the feature `http`"))
            }
            #[cfg(feature = "dynamodb")]
            "dynamodb" => Ok(Self::Dynamodb(DynamodbUrl::parse(url, &crate::aws::EnvVars::of_process())?)),
            #[cfg(not(feature = "dynamodb"))]
            "dynamodb" => Err(Error::config("this build has no DynamoDB: enable the feature `dynamodb`")),
            #[cfg(feature = "etcd")]
            "etcd" | "etcds" => Ok(Self::Etcd(EtcdUrl::parse(url)?)),
            #[cfg(not(feature = "etcd"))]
            "etcd" | "etcds" => Err(Error::config("this build has no etcd: enable the feature `etcd`")),
            #[cfg(feature = "objects")]
            "s3" | "azblob" | "gs" | "cosmos" => {
                Ok(Self::Objects(ObjectsUrl::parse(url, &crate::aws::EnvVars::of_process())?))
            }
            #[cfg(not(feature = "objects"))]
            "s3" | "azblob" | "gs" | "cosmos" => {
                Err(Error::config("this build has no object stores: enable the feature `objects`"))
            }
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => Ok(Self::Postgres(PostgresUrl::parse(url)?)),
            #[cfg(not(feature = "postgres"))]
            "postgres" | "postgresql" => {
                Err(Error::config("this build has no PostgreSQL: enable the feature `postgres`"))
            }
            _ => Err(Error::config(scheme::unknown(scheme, url))),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory { name } => write!(f, "memory:{}", name.as_deref().unwrap_or_default()),
            Self::Sqlite { path } => write!(f, "sqlite:{}", path.display()),
            #[cfg(feature = "redis")]
            Self::Redis(url) => url.fmt(f),
            #[cfg(feature = "http")]
            Self::Http(url) => url.fmt(f),
            #[cfg(feature = "dynamodb")]
            Self::Dynamodb(url) => url.fmt(f),
            #[cfg(feature = "etcd")]
            Self::Etcd(url) => url.fmt(f),
            #[cfg(feature = "objects")]
            Self::Objects(url) => url.fmt(f),
            #[cfg(feature = "postgres")]
            Self::Postgres(url) => url.fmt(f),
        }
    }
}

/// A url without user, password and parameters, for messages.
fn without_secrets(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        let plain = url.split(['?', '#']).next().unwrap_or_default();
        // The slashes or the scheme are missing.
        let scheme = plain.split_once(':').map_or("", |(scheme, _)| scheme);
        return if url.contains('@') { format!("{scheme}:...") } else { plain.to_owned() };
    };
    // A password that was not encoded may contain characters that end the host.
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let host = host.split(['?', '#']).next().unwrap_or_default();
    // A parameter may contain the same character.
    let is_doubtful = rest.find(['?', '#']).is_some_and(|end| rest[end..].contains('@'));
    if is_doubtful || host.starts_with(':') { format!("{scheme}://...") } else { format!("{scheme}://{host}") }
}

/// Tells if an `@` stands in the path, or in the name of a parameter. Then the host is not one, but the beginning of a
/// user, token or password that was not encoded, and no part of the url can be shown.
#[cfg(any(feature = "redis", feature = "http", feature = "etcd", feature = "postgres"))]
fn has_unencoded_login(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let in_path = place.split_once('/').is_some_and(|(_, path)| path.contains('@'));
    in_path || parameters.split('&').filter_map(|pair| pair.split('=').next()).any(|name| name.contains('@'))
}

/// Tells if a sign of a login that was not encoded makes the url mean something else. Web servers end the host at a
/// backslash; among the parameters, it is part of a path of Windows.
#[cfg(any(feature = "http", feature = "etcd", feature = "postgres"))]
fn is_misread(url: &str) -> bool {
    let place = url.split_once('?').map_or(url, |(place, _)| place);
    place.contains('\\') || url.contains('#') || has_unencoded_login(url)
}

/// Tells if an `@` stands among the parameters. Then a parameter may be the rest of a password that was not encoded,
/// and must not be shown in an error.
#[cfg(any(feature = "redis", feature = "http", feature = "etcd", feature = "postgres"))]
fn has_doubtful_parameters(url: &str) -> bool {
    url.split_once('?').is_some_and(|(_, parameters)| parameters.contains('@'))
}

/// The name of a parameter, if it looks like one and not like something misplaced.
#[cfg(feature = "dynamodb")]
fn parameter(name: &str) -> String {
    let is_name = name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if is_name { format!("{name:?}") } else { "\"...\"".to_owned() }
}

/// Reads the parameter `durable`: the store loses nothing in a restart.
#[cfg(feature = "network")]
fn durability(value: &str) -> Result<leasehold_core::member::Durability, String> {
    match value {
        "yes" => Ok(leasehold_core::member::Durability::Declared),
        "no" => Ok(leasehold_core::member::Durability::NotDeclared),
        _ => Err(format!(
            "durable is {value:?}; write durable=yes for a server with appendfsync always and without eviction, or \
             leave it out"
        )),
    }
}

/// A decoded part of a url; `Some(None)` where it is empty, `None` where it is not UTF-8.
#[cfg(any(feature = "redis", feature = "http", feature = "etcd", feature = "postgres"))]
fn decoded(text: &str) -> Option<Option<String>> {
    let bytes: Vec<u8> = percent(text);
    let text = String::from_utf8(bytes).ok()?;
    Some(Some(text).filter(|text| !text.is_empty()))
}

/// Undoes percent-encoding, the only encoding of a path or password in a url.
#[cfg(any(feature = "redis", feature = "http", feature = "etcd", feature = "postgres"))]
fn percent(text: &str) -> Vec<u8> {
    let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let mut ahead = bytes.clone();
        let code = (byte == b'%').then(|| Some(digit(ahead.next())? * 16 + digit(ahead.next())?)).flatten();
        match code.and_then(|code| u8::try_from(code).ok()) {
            Some(code) => {
                decoded.push(code);
                bytes = ahead;
            }
            None => decoded.push(byte),
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        url.parse::<StoreUrl>().unwrap_err().to_string()
    }

    #[test]
    fn known_urls_are_read() {
        assert_eq!("memory:".parse::<StoreUrl>().unwrap(), StoreUrl::Memory { name: None });
        assert_eq!("memory:jobs".parse::<StoreUrl>().unwrap(), StoreUrl::Memory { name: Some("jobs".into()) });
        for url in ["sqlite:/a/b.db", "sqlite:///a/b.db"] {
            assert_eq!(url.parse::<StoreUrl>().unwrap(), StoreUrl::Sqlite { path: "/a/b.db".into() });
        }
        assert_eq!("sqlite:b.db".parse::<StoreUrl>().unwrap().to_string(), "sqlite:b.db");
    }

    #[test]
    fn a_nodes_name_depends_on_its_address_only() {
        let name = |url: &str| url.parse::<StoreUrl>().unwrap().node_name();
        assert_eq!(name("memory:jobs"), "memory:jobs");
        #[cfg(unix)]
        {
            let folder = tempfile::tempdir().unwrap();
            let real = folder.path().canonicalize().unwrap();
            std::fs::write(real.join("a.db"), "").unwrap();
            std::os::unix::fs::symlink(real.join("a.db"), real.join("b.db")).unwrap();
            assert_eq!(name(&format!("sqlite:{}/b.db", real.display())), format!("sqlite:{}/a.db", real.display()));
        }
        assert_eq!(
            name("sqlite:not-there.db"),
            format!("sqlite:{}", std::env::current_dir().unwrap().join("not-there.db").display())
        );
        #[cfg(feature = "redis")]
        assert_eq!(name("redis://user:hunter2@Cache?durable=yes"), "redis://cache:6379/0");
        #[cfg(feature = "http")]
        assert_eq!(name("upstash+https://:hunter2@Calm.upstash.io?durable=yes"), "upstash+https://calm.upstash.io");
        #[cfg(feature = "redis")]
        assert!(refused("redis://cache?durable=maybe").contains("appendfsync always"));
    }

    #[cfg(feature = "redis")]
    #[test]
    fn machines_are_told_apart_by_their_hosts() {
        let machine = |url: &str| url.parse::<StoreUrl>().unwrap().machine();
        for here in
            ["memory:", "sqlite:a", "redis://localhost", "redis://127.0.0.9", "redis://[::1]", "redis+unix:///a"]
        {
            assert_eq!(machine(here).as_deref(), Some(HERE), "{here}");
        }
        for elsewhere in ["redis+cluster://localhost,other", "redis+sentinel://localhost,other/main"] {
            assert_eq!(machine(elsewhere), None, "{elsewhere}");
        }
        assert_eq!(machine("redis://Cache:1"), machine("rediss://cache:2"));
        assert_ne!(machine("redis://cache"), machine("redis://other"));
        #[cfg(feature = "http")]
        assert_eq!(machine("webdis+http://localhost:7379").as_deref(), Some(HERE));
        #[cfg(feature = "http")]
        assert_eq!(machine("webdis+http://cache"), machine("redis://cache"));
    }

    #[test]
    fn bad_urls_name_the_wrong_part_and_the_right_form() {
        assert!(refused("locks.db").contains("no scheme") && refused("locks.db").contains("sqlite:locks.db"));
        assert!(refused("sqlite:").contains("no path"));
        assert!(refused("sqlite::memory:").contains("memory:"));
        assert!(refused("sqlite:a?mode=ro").contains("without parameters"));
        assert!(refused("consul://host").contains("\"consul\""));
    }

    #[test]
    fn secrets_in_a_url_are_not_repeated() {
        let message = refused("consul://user:hunter2@host/0?password=hunter2");
        assert!(!message.contains("hunter2") && message.contains("consul://host/0"), "{message}");
        for url in [
            "redis:user:hunter2@host",
            "redis:/:hunter2@host/0",
            "user:hunter2@host:6379",
            "redis://default:12/hunter2@host",
            "redis://u:12?hunter2@host",
            "etcd://:hunter2",
            "etcd://:hun#ter2@host",
            "etcd://u:hun/ter2@host",
            "etcd://u:h?unter2@host",
            "etcd://host?a=x@hunter2",
            "redis://u:?hunter2=@host",
            "redis://u:?x&hunter2=@host",
            "redis://u:?db=hunter2@host",
            "redis+sentinel://u:?hunter2=@host/main",
            "webdis+https://u:?hunter2=@host",
            r"webdis+https://u:\hunter2@host",
            r"upstash+https://:\hunter2@host",
            "webdis+https://u:?durable=hunter2@host",
        ] {
            assert!(!refused(url).contains("unter2") && !refused(url).contains("hun"), "{}", refused(url));
        }
    }
}
