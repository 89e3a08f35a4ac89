//! Store urls: the kind and the address of a store.
//!
//! A url is read in two steps. Parsing takes the text alone. Resolving then looks into the environment and into files of the
//! user for what the text leaves open, and gives a [`Place`], which can be opened.

#[cfg(feature = "objects")]
pub(crate) mod azure;
#[cfg(feature = "dynamodb")]
pub(crate) mod dynamodb;
pub(crate) mod environment;
#[cfg(feature = "etcd")]
pub(crate) mod etcd;
#[cfg(feature = "http")]
pub(crate) mod http;
mod kinds;
pub(crate) mod memory;
#[cfg(feature = "objects")]
pub(crate) mod objects;
#[cfg(feature = "network")]
mod parameters;
pub(crate) mod place;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "network")]
pub(crate) mod reach;
#[cfg(feature = "redis")]
pub(crate) mod redis;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;
#[cfg(feature = "network")]
mod text;

use std::ffi::OsString;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use self::environment::EnvVars;
use self::place::{Draft, Place, Site};
#[cfg(any(feature = "http", feature = "dynamodb", feature = "etcd"))]
pub(crate) use self::reach::Exposure;
use crate::error::Error;

/// A store, as its url names it. Neither `Debug` nor `Display` shows a secret.
///
/// `"memory:jobs".parse::<StoreUrl>()` takes the text alone. What it leaves to the environment and to files of the user is
/// looked up by [`StoreUrl::resolved`], which connecting does too.
///
/// # In this process
/// `memory:` for a store of its own, `memory:NAME` for one shared by name within this process.
///
/// # Files
/// `sqlite:PATH`: a file shared by the processes of one machine.
///
/// # Redis
/// `redis://[user:password@]host[:6379][/db]`, or with TLS
/// `rediss://`, or by a socket
/// `redis+unix:///path/to.sock`: one Redis or
/// Valkey. Parameters: `db`, `username`, `password`, `wait_replicas` (a grant counts only after this many replicas
/// have confirmed it), `durable=yes` (in a quorum: a restart loses nothing, which is true only with `appendfsync
/// always` and without eviction), and for TLS `ca`, `cert`, `key` (PEM files).
///
/// `redis+cluster://[user:password@]host[:6379][,host...]`: a Redis Cluster, by any of its nodes.
/// `redis+sentinel://[user:password@]host[:26379][,host...]/master-name[/db]`: the master that Sentinels name, with
/// `sentinel_username` and `sentinel_password` for the Sentinels themselves. `rediss+...` is with TLS.
///
/// # Redis over HTTP
/// `upstash+https://:TOKEN@host`, or
/// `upstash:` for the environment variables `UPSTASH_REDIS_REST_URL` and
/// `UPSTASH_REDIS_REST_TOKEN`;
/// `webdis+http://[user:password@]host[:7379]`, `webdis+https://`: one Redis behind
/// HTTP. Parameters: `ca` (a PEM file, trusted instead of the operating system's certificates), `plaintext=allow`
/// (otherwise `http` sends a token or password only to loopback), `durable=yes` (as for `redis://`). Proxies in the
/// environment are used with `LEASEHOLD_PROXY=environment` only.
///
/// # DynamoDB
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
///
/// # etcd
/// `etcd://[user:password@]host[:2379][,host...]`, or `etcds://` with TLS: the keys of one etcd (3.4 or newer), by any of
/// its members. Parameters: `prefix` of the keys (default `leasehold/`), `user` and `password`, `plaintext=allow`
/// (otherwise a password goes only to loopback without TLS), and for TLS `ca`, `cert`, `key` (PEM files).
///
/// # PostgreSQL
/// `postgres://user:password@host[:5432]/database` or `postgresql://`: the table `leasehold` of a PostgreSQL server,
/// directly or through PgBouncer in any mode; `leasehold store create` makes it. Parameters:
///
/// - `schema`, where the table is (default `public`); `host=/run/postgresql`, the folder of a socket;
/// - `sslmode`: `verify-full`, which is the default beyond loopback, or `disable`; `ca` or `sslrootcert`, a PEM file
///   that is trusted instead of the operating system's certificates;
/// - `listen=HOST:PORT`, the server's own address past a pooler, or `listen=yes`: releases are notified, so that
///   waiters need not poll. All clients of a table should name it;
/// - `durable=yes` (in a quorum: a failover loses nothing, which is true only with synchronous replication).
///
/// # Objects
/// `s3://BUCKET[/PREFIX]?region=eu-west-1`,
/// `azblob://ACCOUNT/CONTAINER[/PREFIX]`,
/// `gs://BUCKET[/PREFIX]`,
/// `cosmos://ACCOUNT/DATABASE/CONTAINER[/PREFIX]`: objects of Amazon S3 and services with its API, Azure Blob Storage,
/// or Google Cloud Storage, or documents of Azure Cosmos DB, below a prefix (default `leasehold/`). Keys come from where the
/// tools of each cloud keep them: environment, files, workload and machine
/// identities. Parameters: `endpoint` (scheme, host, port), which else is the cloud's own or that of
/// `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL` or `STORAGE_EMULATOR_HOST`; `ca`, a PEM file that is trusted instead of the
/// operating system's certificates; `plaintext=allow` (otherwise `http` is for loopback only); `durable=no` (in a
/// quorum: a restart may lose records, which is otherwise assumed only of endpoints on loopback); and for S3 `region`
/// and `profile` as for DynamoDB.
#[derive(Clone)]
pub struct StoreUrl(Said);

/// The store, as far as the url says it.
#[derive(Clone)]
enum Said {
    /// The url says all, or the rest was looked up.
    Whole(Arc<dyn Place>),
    /// The rest is elsewhere.
    Open { shown: String, draft: Arc<dyn Draft> },
}

impl Said {
    fn whole(place: impl Place) -> Self {
        Self::Whole(Arc::new(place))
    }

    #[cfg(any(feature = "dynamodb", feature = "http"))]
    fn open(text: &str, draft: impl Draft) -> Self {
        Self::Open { shown: without_secrets(text), draft: Arc::new(draft) }
    }
}

impl StoreUrl {
    /// The default store: `leasehold/locks.db` in the user's state folder (`$XDG_STATE_HOME`, else `~/.local/state`).
    ///
    /// # Errors
    /// Neither `XDG_STATE_HOME` nor `HOME` names an absolute folder.
    pub fn default_store() -> Result<Self, Error> {
        #[cfg(feature = "sqlite")]
        return sqlite::SqliteUrl::of_user().map(|url| Self(Said::whole(url)));
        #[cfg(not(feature = "sqlite"))]
        "sqlite:locks.db".parse()
    }

    /// The url with what it leaves to the environment and to files of the user, such as the region of a table.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for what is missing or wrong there.
    pub fn resolved(&self) -> Result<Self, Error> {
        self.place().map(|place| Self(Said::Whole(place)))
    }

    /// The store's name among the nodes of a quorum: the url without user, password and parameters, the same for all
    /// clients that reach the store by the same way. Files are named by their real path where they exist.
    ///
    /// # Errors
    /// As for [`StoreUrl::resolved`].
    pub fn node_name(&self) -> Result<String, Error> {
        Ok(self.place()?.node_name())
    }

    /// The url for people, without secrets; files by their full paths, because a relative one means another file in
    /// another folder.
    pub fn shown(&self) -> String {
        match &self.0 {
            Said::Whole(place) => place.shown(),
            Said::Open { shown, .. } => shown.clone(),
        }
    }

    /// The url for another process, where the text that names the store here may lead elsewhere in another folder or
    /// environment: files by their full paths, tables with all that was [resolved](Self::resolved). It has no secrets.
    pub fn handed_on(&self) -> Option<OsString> {
        match &self.0 {
            Said::Whole(place) => place.handed_on(),
            Said::Open { .. } => None,
        }
    }

    /// Tells if the store lives and ends with one process, so that it locks out no other.
    pub fn is_of_one_process(&self) -> bool {
        match &self.0 {
            Said::Whole(place) => place.facts().site == Site::Process,
            Said::Open { .. } => false,
        }
    }

    /// # Errors
    /// As for [`StoreUrl::resolved`].
    pub(crate) fn place(&self) -> Result<Arc<dyn Place>, Error> {
        self.place_in(&EnvVars::of_process())
    }

    /// As [`StoreUrl::place`], in another environment.
    pub(crate) fn place_in(&self, env: &EnvVars) -> Result<Arc<dyn Place>, Error> {
        match &self.0 {
            Said::Whole(place) => Ok(Arc::clone(place)),
            Said::Open { shown, draft } => draft.resolve(env).map_err(|what| wrong(shown, &what)),
        }
    }

    /// The place, if it is of this type.
    #[cfg(any(test, feature = "dynamodb", feature = "postgres"))]
    pub(crate) fn of<T: Place>(&self) -> Option<&T> {
        match &self.0 {
            Said::Whole(place) => (&**place as &dyn std::any::Any).downcast_ref(),
            Said::Open { .. } => None,
        }
    }
}

impl From<Arc<dyn Place>> for StoreUrl {
    fn from(place: Arc<dyn Place>) -> Self {
        Self(Said::Whole(place))
    }
}

impl FromStr for StoreUrl {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self, Error> {
        let Some((scheme, _)) = url.split_once(':') else {
            return Err(Error::config(format!(
                "store url {url:?} has no scheme; write sqlite:PATH, redis://HOST or memory:, such as sqlite:locks.db"
            )));
        };
        let Some(kind) = kinds::of(scheme) else { return Err(Error::config(kinds::unknown(scheme, url))) };
        (kind.parse)(url).map(Self).map_err(|what| wrong(&without_secrets(url), &what))
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Said::Whole(place) => place.fmt(f),
            Said::Open { shown, .. } => f.write_str(shown),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

impl PartialEq for StoreUrl {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Said::Whole(one), Said::Whole(two)) => one.is_same(&**two),
            (Said::Open { shown: one, draft }, Said::Open { shown: two, draft: other }) => {
                one == two && draft.is_same(&**other)
            }
            (Said::Whole(_), Said::Open { .. }) | (Said::Open { .. }, Said::Whole(_)) => false,
        }
    }
}

impl Eq for StoreUrl {}

/// Of what is shown, since the hash of a password could give it away.
impl Hash for StoreUrl {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to_string().hash(state);
    }
}

pub(crate) const HERE: &str = "this machine";

fn wrong(shown: &str, what: &str) -> Error {
    Error::config(format!("store url {shown:?}: {what}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        url.parse::<StoreUrl>().unwrap_err().to_string()
    }

    #[test]
    fn known_urls_are_read() {
        let read = |url: &str| url.parse::<StoreUrl>().unwrap();
        assert_eq!(read("memory:").of(), Some(&memory::MemoryUrl { name: None }));
        assert_eq!(read("memory:jobs").of(), Some(&memory::MemoryUrl { name: Some("jobs".into()) }));
        #[cfg(feature = "sqlite")]
        for url in ["sqlite:/a/b.db", "sqlite:///a/b.db"] {
            assert_eq!(read(url).of(), Some(&sqlite::SqliteUrl { path: "/a/b.db".into() }));
            assert!(
                read(url) == read("sqlite:/a/b.db") && read(url) != read("memory:") && read(url) != read("sqlite:b")
            );
        }
        assert_eq!(read("sqlite:b.db").to_string(), "sqlite:b.db");
    }

    #[test]
    fn a_nodes_name_depends_on_its_address_only() {
        let name = |url: &str| url.parse::<StoreUrl>().unwrap().node_name().unwrap();
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
        let machine = |url: &str| url.parse::<StoreUrl>().unwrap().place().unwrap().machine();
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

    #[cfg(feature = "objects")]
    #[test]
    fn parsing_takes_the_text_alone_and_resolving_the_rest() {
        for (text, variable, shown) in [
            ("dynamodb://locks", "AWS_REGION", "dynamodb://locks?region=eu-west-1"),
            ("s3://locks", "AWS_REGION", "s3://locks?region=eu-west-1"),
        ] {
            let url: StoreUrl = text.parse().unwrap();
            assert_eq!((url.to_string(), url.handed_on()), (text.to_owned(), None));
            let said = url.place_in(&EnvVars::new(|_| None)).unwrap_err().to_string();
            assert!(said.contains(&format!("store url {text:?}: the region is missing")), "{said}");
            let env = EnvVars::new(move |name| (name == variable).then(|| "eu-west-1".to_owned()));
            let resolved = StoreUrl::from(url.place_in(&env).unwrap());
            assert_eq!((resolved.to_string(), resolved.resolved().unwrap()), (shown.to_owned(), resolved.clone()));
            assert!(url != resolved && url == text.parse().unwrap());
            assert_ne!(url, format!("{text}?profile=a").parse().unwrap());
        }
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
