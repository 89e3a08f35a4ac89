//! `postgres://user:password@host[:5432]/database`: one table of PostgreSQL.

use std::fmt;
use std::path::PathBuf;

use leasehold_core::member::Durability;
use url::Url;
use zeroize::Zeroizing;

use super::Said;
use super::parameters::Parameters;
use super::reach::is_here;
use super::text::{decoded, is_misread, login, with_login};

/// The address of a PostgreSQL server or its pooler, the login, and the schema of the table. Neither `Debug` nor `Display`
/// shows the password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PostgresUrl {
    pub(crate) place: PostgresPlace,
    pub(crate) user: String,
    pub(crate) password: Option<Zeroizing<String>>,
    pub(crate) database: String,
    pub(crate) schema: String,
    pub(crate) tls: Tls,
    /// The server itself, past a pooler, where notifications of releases arrive.
    pub(crate) listen: Option<PostgresPlace>,
    pub(crate) durability: Durability,
    /// The name under which the server lists connections.
    pub(crate) application: String,
    /// An option that a provider reads at the start of a connection, such as `endpoint=NAME`.
    pub(crate) options: Option<String>,
}

/// The socket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PostgresPlace {
    Tcp { host: String, port: u16 },
    Unix { folder: PathBuf, port: u16 },
}

/// The encryption of connections. A certificate is always verified.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Tls {
    Off,
    /// With the authorities in a PEM file, or those of the operating system.
    On {
        ca: Option<PathBuf>,
    },
}

const FORM: &str = "write postgres://user:password@host/database";
const SIGNS: &str = "in a user or password, / ? # and @ are written %2F, %3F, %23 and %40";
const DURABLE: &str = "a server whose failover loses nothing that was acknowledged (synchronous replication)";
/// Parameters of other clients that change nothing here, with the values that say what is so anyway, and why others are
/// refused.
const AS_EVER: [(&str, &[&str], &str); 4] = [
    ("channel_binding", &["disable", "prefer", "require"], "certificates are verified in any case; leave it out"),
    ("gssencmode", &["disable", "prefer"], "there is no encryption but TLS; leave it out"),
    ("pgbouncer", &["true", "false"], "poolers need no parameter; leave it out"),
    ("target_session_attrs", &["any", "primary", "read-write"], "locks need a server that writes; leave it out"),
];
const PORT: u16 = 5432;
/// The longest name of PostgreSQL, in bytes; it cuts longer ones.
const LONGEST_NAME: usize = 63;

pub(super) fn parse(text: &str) -> Result<Said, String> {
    PostgresUrl::parse(text).map(Said::whole)
}

impl PostgresUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        with_login(text, SIGNS, is_misread, || Self::named(text))
    }

    fn named(text: &str) -> Result<Self, String> {
        if has_several_hosts(text) {
            return Err(
                "there are several hosts: name one that leads to the server which writes, such as a name or address that \
                 moves with it; for servers that hold locks together, write several urls, which make a quorum"
                    .to_owned(),
            );
        }
        let (address, has_host) = with_host(text);
        let url = Url::parse(&address).map_err(|error| format!("{error}; {FORM}; {SIGNS}"))?;
        if url.cannot_be_a_base() {
            return Err(FORM.to_owned());
        }
        Self::of(&url, has_host)
    }

    fn of(url: &Url, has_host: bool) -> Result<Self, String> {
        let (user, password) = login(url)?;
        let user = user.ok_or_else(|| format!("the user is missing; {FORM}"))?;
        let database = decoded(url.path().trim_start_matches('/'), "database")?.unwrap_or_else(|| user.clone());
        let port = url.port().unwrap_or(PORT);
        let host = url.host_str().filter(|host| has_host && !host.is_empty());
        let host = host.map(|host| decoded(host, "host")).transpose()?.flatten();
        // A folder is written into the place of the host as %2Frun%2Fpostgresql.
        let (host, mut socket) = match host {
            Some(folder) if folder.starts_with('/') => (None, Some(PathBuf::from(folder))),
            // The scheme is none that the parser knows, so that it leaves capitals as they are.
            host => (host.map(|host| host.to_ascii_lowercase()), None),
        };
        let mut given = Parameters::of(url.query().unwrap_or_default())?;
        let named = |what: &str, name: Option<Zeroizing<String>>, usual: &str| {
            identifier(what, name.as_ref().map_or(usual, |name| name))
        };
        let schema = named("schema", given.raw("schema"), "public")?;
        let ssl = given.text("sslmode")?.map(|mode| ssl_mode(&mode)).transpose()?;
        let root = given.unlisted("sslrootcert").filter(|file| file.as_str() != "system");
        let ca = given.file("ca")?.or(root.map(|file| PathBuf::from(&*file)));
        let listen = given.raw("listen");
        match given.raw("host") {
            Some(folder) if !folder.starts_with('/') => {
                return Err("host is the folder of a socket, such as host=/run/postgresql".to_owned());
            }
            Some(folder) if socket.is_some() => {
                return Err(format!("there are two hosts, of which one is {}: name one", *folder));
            }
            Some(folder) => socket = Some(PathBuf::from(&*folder)),
            None => {}
        }
        let durability = given.durability(DURABLE)?.unwrap_or(Durability::NotDeclared);
        let application = named("application_name", given.raw("application_name"), "leasehold")?;
        let options = given.raw("options").map(|text| endpoint_option(&text)).transpose()?;
        for (name, values, why) in AS_EVER {
            if let Some(value) = given.unlisted(name).filter(|value| !values.contains(&value.as_str())) {
                return Err(format!("{name} is {:?}, but {why}", *value));
            }
        }
        // Attempts end early enough for the lease in any case.
        if given.unlisted("connect_timeout").is_some_and(|seconds| seconds.parse::<u32>().is_err()) {
            return Err("connect_timeout is no number of seconds; leave it out".to_owned());
        }
        given.finish("; leave it out")?;
        let place = match (host, socket) {
            (Some(host), None) => PostgresPlace::Tcp { host, port },
            (None, Some(folder)) => PostgresPlace::Unix { folder, port },
            (Some(_), Some(_)) => return Err("there are two hosts, one of them a parameter: name one".to_owned()),
            (None, None) => return Err(format!("the host is missing; {FORM}")),
        };
        let encrypted = ssl.unwrap_or(if place.is_here() && ca.is_none() { Encrypted::No } else { Encrypted::Yes });
        let tls = match encrypted {
            Encrypted::No if ca.is_some() => return Err("ca is used with TLS only: leave sslmode out".to_owned()),
            Encrypted::No => Tls::Off,
            Encrypted::Yes => Tls::On { ca },
        };
        let listen = listen.map(|to| direct(&to, &place)).transpose()?;
        let database = identifier("database", &database)?;
        Ok(Self { place, user, password, database, schema, tls, listen, durability, application, options })
    }
}

/// Tells if the part with the host has a comma, which no host has.
fn has_several_hosts(text: &str) -> bool {
    let (_, rest) = text.split_once("://").unwrap_or(("", text));
    let authority = &rest[..rest.find(['/', '?']).unwrap_or(rest.len())];
    authority.rsplit('@').next().is_some_and(|hosts| hosts.contains(','))
}

/// An option that a provider reads. Settings of the session would change what statements do.
fn endpoint_option(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    match text.split_once('=') {
        Some((name, value))
            if !name.starts_with('-') && !value.is_empty() && name.bytes().chain(value.bytes()).all(is_plain) =>
        {
            Ok(text.to_owned())
        }
        _ => Err("options may name an endpoint of a provider, such as options=endpoint%3DNAME, and no settings: give those to \
                  the user, by ALTER ROLE ... SET"
            .to_owned()),
    }
}

/// The url with a host, which the parser wants behind a user, and tells if it had one.
fn with_host(text: &str) -> (Zeroizing<String>, bool) {
    let start = text.find("://").map_or(0, |at| at + 3);
    let end = text[start..].find(['/', '?']).map_or(text.len(), |at| start + at);
    let (before, after) = text.split_at(end);
    let port = before.rfind('@').map_or(end, |at| at + 1);
    if port < end && !before[port..].starts_with(':') || !before.contains('@') {
        return (Zeroizing::new(text.to_owned()), true);
    }
    (Zeroizing::new(format!("{}socket{}{after}", &before[..port], &before[port..])), false)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Encrypted {
    No,
    Yes,
}

fn ssl_mode(mode: &str) -> Result<Encrypted, String> {
    match mode {
        "disable" => Ok(Encrypted::No),
        "require" | "verify-ca" | "verify-full" => Ok(Encrypted::Yes),
        _ => Err(format!(
            "sslmode is {mode:?}; write sslmode=verify-full (require means the same here: certificates are always \
             verified), or sslmode=disable where the network is trusted"
        )),
    }
}

fn identifier(what: &str, name: &str) -> Result<String, String> {
    if name.is_empty() || name.len() > LONGEST_NAME || name.contains(char::is_control) {
        return Err(format!("the {what} is {name:?}; a name has 1 to {LONGEST_NAME} bytes"));
    }
    Ok(name.to_owned())
}

/// The place of notifications: `yes` where the url names the server itself, else its host and port.
fn direct(text: &str, place: &PostgresPlace) -> Result<PostgresPlace, String> {
    if text == "yes" {
        return Ok(place.clone());
    }
    let unreadable = || {
        format!(
            "listen is {text:?}; write listen=HOST:PORT, the server's own address past its pooler, or listen=yes where \
             the url names it already"
        )
    };
    // `true` or `1`, which people write for yes, would otherwise be taken for a host.
    let is_a_switch = SWITCHES.contains(&text.to_ascii_lowercase().as_str());
    if is_a_switch || text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(unreadable());
    }
    let url = Url::parse(&format!("postgres://{text}")).map_err(|_| unreadable())?;
    let is_plain = url.username().is_empty() && url.password().is_none() && url.path().is_empty();
    match url.host_str().filter(|host| is_plain && !host.is_empty()) {
        Some(host) => Ok(PostgresPlace::Tcp { host: host.to_ascii_lowercase(), port: url.port().unwrap_or(PORT) }),
        None => Err(unreadable()),
    }
}

const SWITCHES: [&str; 10] = ["true", "false", "on", "off", "no", "y", "n", "t", "f", "enable"];

impl PostgresPlace {
    /// Tells if nothing leaves this machine.
    pub(crate) fn is_here(&self) -> bool {
        match self {
            Self::Unix { .. } => true,
            Self::Tcp { host, .. } => is_here(host),
        }
    }

    pub(crate) fn host(&self) -> Option<&str> {
        match self {
            Self::Tcp { host, .. } => Some(host),
            Self::Unix { .. } => None,
        }
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sign = '?';
        match &self.place {
            PostgresPlace::Tcp { host, port } => write!(f, "postgres://{host}:{port}/{}", self.database)?,
            PostgresPlace::Unix { folder, port } => {
                write!(f, "postgres://:{port}/{}?host={}", self.database, folder.display())?;
                sign = '&';
            }
        }
        if self.schema == "public" { Ok(()) } else { write!(f, "{sign}schema={}", self.schema) }
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> PostgresUrl {
        PostgresUrl::parse(text).unwrap()
    }

    fn refused(text: &str) -> String {
        PostgresUrl::parse(text).unwrap_err()
    }

    fn tcp(host: &str, port: u16) -> PostgresPlace {
        PostgresPlace::Tcp { host: host.to_owned(), port }
    }

    #[test]
    fn a_url_names_server_login_and_table() {
        let named = url("postgresql://app:hunter2@DB.example/prod?schema=jobs");
        assert_eq!((named.place.clone(), named.user.as_str()), (tcp("db.example", 5432), "app"));
        assert_eq!(named.password.as_ref().map(|password| password.as_str()), Some("hunter2"));
        assert_eq!((named.database.as_str(), named.schema.as_str()), ("prod", "jobs"));
        assert_eq!(named.tls, Tls::On { ca: None });
        assert_eq!(named.to_string(), "postgres://db.example:5432/prod?schema=jobs");
        let plain = url("postgres://app@localhost:6432");
        assert_eq!((plain.database.as_str(), plain.schema.as_str(), plain.tls), ("app", "public", Tls::Off));
        assert_eq!(url("postgres://a%40b:p%2Fq@[::1]/d").user, "a@b");
    }

    #[test]
    fn sockets_are_named_by_their_folder() {
        let socket = url("postgres://app@/prod?host=/run/postgresql");
        assert_eq!(socket.place, PostgresPlace::Unix { folder: "/run/postgresql".into(), port: 5432 });
        assert_eq!((socket.tls.clone(), socket.to_string().contains("/run/postgresql")), (Tls::Off, true));
        let other = PostgresPlace::Unix { folder: "/run/postgresql".into(), port: 5433 };
        assert_eq!(url("postgres://app:p@:5433/prod?host=/run/postgresql").place, other);
        assert!(refused("postgres://app@host/prod?host=/run/postgresql").contains("two hosts"));
        assert!(refused("postgres://app@/prod?host=other").contains("folder of a socket"));
    }

    #[test]
    fn certificates_are_verified_unless_tls_is_off() {
        let tls = |text: &str| url(&format!("postgres://app@db/prod?{text}")).tls;
        assert_eq!(tls("sslmode=disable"), Tls::Off);
        for mode in ["require", "verify-ca", "verify-full"] {
            assert_eq!(tls(&format!("sslmode={mode}")), Tls::On { ca: None });
        }
        assert_eq!(tls("sslrootcert=/ca.pem"), Tls::On { ca: Some("/ca.pem".into()) });
        assert_eq!(url("postgres://app@localhost/prod?ca=/ca.pem").tls, Tls::On { ca: Some("/ca.pem".into()) });
        assert!(refused("postgres://app@db/prod?sslmode=prefer").contains("sslmode=verify-full"));
        assert!(refused("postgres://app@db/prod?sslmode=disable&ca=/ca.pem").contains("with TLS only"));
    }

    #[test]
    fn notifications_come_from_the_server_itself() {
        let listen = |text: &str| url(&format!("postgres://app@pooler:6432/prod?listen={text}")).listen;
        assert_eq!(listen("yes"), Some(tcp("pooler", 6432)));
        assert_eq!(listen("DB:5433"), Some(tcp("db", 5433)));
        assert_eq!(listen("db"), Some(tcp("db", 5432)));
        for odd in ["", "a:b:c", "db/x", "true", "1", "On", "no", "FALSE", "5432"] {
            assert!(refused(&format!("postgres://app@pooler/prod?listen={odd}")).contains("listen=HOST:PORT"), "{odd}");
        }
    }

    #[test]
    fn urls_of_providers_are_taken_as_they_are_printed() {
        for text in [
            "postgresql://app:hunter2@ep-x-123.eu.aws.neon.tech/prod?sslmode=require&channel_binding=require",
            "postgres://app:hunter2@ep-x.neon.tech/prod?sslmode=require&options=endpoint%3Dep-x",
            "postgres://app.ref:hunter2@pooler.supabase.com:6543/postgres?pgbouncer=true",
            "postgresql://app:hunter2@db/prod?connect_timeout=15&application_name=worker",
            "postgresql://app:hunter2@db/prod?sslmode=verify-full&sslrootcert=system&target_session_attrs=read-write",
        ] {
            assert!(matches!(url(text).tls, Tls::On { ca: None }), "{text}");
        }
        let named = url("postgres://app@db/prod?application_name=worker&options=endpoint%3Dep-x");
        assert_eq!((named.application.as_str(), named.options.as_deref()), ("worker", Some("endpoint=ep-x")));
        let folder = PostgresPlace::Unix { folder: "/Run/postgresql".into(), port: 5433 };
        assert_eq!(url("postgres://app:p@%2FRun%2Fpostgresql:5433/prod").place, folder);
        for (text, words) in [
            ("postgres://app:hunter2@a:5432,b:5432/prod?target_session_attrs=read-write", "several hosts"),
            ("postgres://app@a,b/prod", "several hosts"),
            ("postgres://app@db/prod?target_session_attrs=standby", "a server that writes"),
            ("postgres://app@db/prod?channel_binding=maybe", "leave it out"),
            ("postgres://app@db/prod?options=-c%20search_path%3Dx", "ALTER ROLE"),
            ("postgres://app@db/prod?options=--x%3Dy", "ALTER ROLE"),
            ("postgres://app@db/prod?connect_timeout=soon", "number of seconds"),
            ("postgres://app@db/prod?connection_limit=1", "leave it out"),
            ("postgres://app@%2Frun%2Fpg/prod?host=/run", "two hosts"),
        ] {
            assert!(refused(text).contains(words), "{text}: {}", refused(text));
        }
    }

    #[test]
    fn bad_urls_name_the_wrong_part() {
        for (text, words) in [
            ("postgres://host/db", "user is missing"),
            ("postgres:app@host", "postgres://user:password@host/database"),
            ("postgres://app@/db", "host is missing"),
            ("postgres://app@host/db?pool=3", "no parameter \"pool\""),
            ("postgres://app@host/db?schema=", "schema is \"\""),
            ("postgres://app@host/db?durable=maybe", "synchronous replication"),
            ("postgres://app@host:x/db", "port"),
        ] {
            assert!(refused(text).contains(words), "{text}: {}", refused(text));
        }
        assert_eq!(url("postgres://app@host/db?durable=yes").durability, Durability::Declared);
    }

    #[test]
    fn no_secret_is_ever_shown() {
        let url = url("postgres://user:hunter2@host/db");
        let shown = format!("{url} {url:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("user"), "{shown}");
        for text in [
            "postgres://user:hunter2@host:x/db",
            "postgres://user:hun/ter2@host/db",
            "postgres://user:hunter2#@host/db",
            "postgres://user:hunter2?@host/db",
            "postgres://u:?nope=hunter2@host/db",
            "postgres:user:hunter2@host/db",
            "postgres://user:hunter2@host/db?nope=1",
        ] {
            assert!(!refused(text).contains("unter2") && !refused(text).contains("ter2"), "{}", refused(text));
        }
    }
}
