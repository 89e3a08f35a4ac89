//! `upstash+https://`, `upstash:`, `webdis+http://`: one Redis behind HTTP.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use leasehold_core::member::Durability;
use leasehold_wire::rest::Dialect;
use url::Url;
use zeroize::Zeroizing;

use super::Said;
use super::environment::EnvVars;
use super::parameters::{NO_PROXY, Parameters, Plaintext};
use super::place::{Draft, Place};
pub(crate) use super::reach::Exposure;
use super::reach::host_of;
use super::text::{is_misread, login, with_login};

/// The address of a Redis behind HTTP, and the login. Neither `Debug` nor `Display` shows the token or password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct HttpUrl {
    pub(crate) dialect: Dialect,
    /// Without credentials and parameters; its path has no trailing slash, so that another path may follow.
    pub(crate) base: String,
    pub(crate) reach: Exposure,
    pub(crate) login: Login,
    pub(crate) durability: Durability,
    /// PEM file with certificates that are trusted instead of those of the operating system.
    pub(crate) ca: Option<PathBuf>,
}

/// The login.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Login {
    Nobody,
    Token(Zeroizing<String>),
    Basic { user: String, password: Zeroizing<String> },
}

/// The variables of Upstash's documentation.
const URL_VARIABLE: &str = "UPSTASH_REDIS_REST_URL";
const TOKEN_VARIABLE: &str = "UPSTASH_REDIS_REST_TOKEN";
const DURABLE: &str = "a server with appendfsync always and without eviction";
const WEBDIS_PORT: u16 = 7379;
const SIGNS: &str = "in a token or password, / \\ ? # and @ are written %2F, %5C, %3F, %23 and %40";

/// `upstash:`, whose server and token are in the environment.
#[derive(PartialEq)]
struct OfEnvironment {
    parameters: String,
}

pub(super) fn parse(text: &str) -> Result<Said, String> {
    let Some(parameters) = text.strip_prefix("upstash:") else { return HttpUrl::parse(text).map(Said::whole) };
    OfEnvironment::parse(parameters).map(|draft| Said::open(text, draft))
}

impl OfEnvironment {
    fn parse(parameters: &str) -> Result<Self, String> {
        if !parameters.is_empty() && !parameters.starts_with('?') {
            let form = "write upstash: alone, or upstash+https://:TOKEN@host";
            return Err(format!("it takes the server from the environment and names none itself; {form}"));
        }
        Ok(Self { parameters: parameters.to_owned() })
    }

    fn resolved(&self, env: &EnvVars) -> Result<HttpUrl, String> {
        let given = |name: &str| {
            env.variable(name).ok_or_else(|| {
                format!(
                    "the server is taken from the environment, where {name} is not set; set it, or write \
                     upstash+https://:TOKEN@host"
                )
            })
        };
        let (address, token) = (given(URL_VARIABLE)?, Zeroizing::new(given(TOKEN_VARIABLE)?));
        if !address.starts_with("https://") && !address.starts_with("http://") {
            return Err(format!(
                "{URL_VARIABLE} must begin with https://; it is the REST url that Upstash shows, not the one for \
                 redis-cli"
            ));
        }
        let address = Zeroizing::new(address + &self.parameters);
        let url = Url::parse(&address).map_err(|error| format!("{URL_VARIABLE} is not a url: {error}"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(format!("{URL_VARIABLE} has a user or password; the token belongs in {TOKEN_VARIABLE}"));
        }
        HttpUrl::of(Dialect::Upstash, &url, url.port(), Login::Token(token))
    }
}

impl Draft for OfEnvironment {
    fn resolve(&self, env: &EnvVars) -> Result<Arc<dyn Place>, String> {
        Ok(Arc::new(self.resolved(env)?))
    }
}

impl HttpUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        with_login(text, SIGNS, is_misread, || Self::named(text))
    }

    fn named(text: &str) -> Result<Self, String> {
        let (dialect, address) = match text.split_once('+') {
            Some(("upstash", address)) => (Dialect::Upstash, address),
            Some(("webdis", address)) => (Dialect::Webdis, address),
            Some(_) | None => return Err("write upstash+https:// or webdis+http://".to_owned()),
        };
        let form = match dialect {
            Dialect::Upstash => "upstash+https://:TOKEN@host",
            Dialect::Webdis => "webdis+http://host:7379",
        };
        if !address.starts_with("https://") && !address.starts_with("http://") {
            return Err(format!("the host is missing; write {form}"));
        }
        // The parser must not know the scheme: it would drop a port that is the scheme's default.
        let unreadable = |error| format!("{error}; write {form}; {SIGNS}");
        let literal = Url::parse(text).map_err(unreadable)?;
        let url = Url::parse(address).map_err(unreadable)?;
        let port = match dialect {
            Dialect::Upstash => literal.port(),
            Dialect::Webdis => literal.port().or((url.scheme() == "http").then_some(WEBDIS_PORT)),
        };
        let (user, secret) = login(&url)?;
        Self::of(dialect, &url, port, login_of(dialect, user, secret)?)
    }

    fn of(dialect: Dialect, url: &Url, port: Option<u16>, login: Login) -> Result<Self, String> {
        let host = url.host().ok_or("the host is missing")?;
        let mut base = format!("{}://{host}", url.scheme());
        if let Some(port) = port {
            base.push_str(&format!(":{port}"));
        }
        base.push_str(url.path().trim_end_matches('/'));
        let mut given = Parameters::of(url.query().unwrap_or_default())?;
        let parsed = Self {
            dialect,
            base,
            reach: Exposure::of(url.scheme(), &host),
            login,
            ca: given.file("ca")?,
            durability: given.durability(DURABLE)?.unwrap_or(Durability::NotDeclared),
        };
        let plaintext = given.plaintext()?;
        given.refuse(
            &["wait_replicas"],
            "wait_replicas is not possible over HTTP: the server pools its connections to Redis, and WAIT covers the \
             writes of one connection only; use redis:// or rediss:// instead",
        )?;
        given.refuse(&["proxy"], NO_PROXY)?;
        given.finish("")?;
        parsed.check(plaintext)?;
        Ok(parsed)
    }

    fn check(&self, plaintext: Plaintext) -> Result<(), String> {
        self.reach.check(self.ca.is_some(), plaintext)?;
        let secret = match &self.login {
            Login::Nobody => return Ok(()),
            Login::Token(token) => {
                if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                    return Err(
                        "the token has spaces or characters beyond ASCII, which no token has; copy it again".into()
                    );
                }
                "token"
            }
            Login::Basic { .. } => "password",
        };
        if self.reach == Exposure::Plaintext && plaintext == Plaintext::ToLoopback {
            let scheme = self.scheme();
            return Err(format!(
                "over http everybody on the network path could read the {secret}; write {scheme}+https://, or add \
                 ?plaintext=allow where the network is trusted"
            ));
        }
        Ok(())
    }

    pub(crate) fn host(&self) -> Option<String> {
        host_of(&self.base)
    }

    pub(crate) fn scheme(&self) -> &'static str {
        match self.dialect {
            Dialect::Upstash => "upstash",
            Dialect::Webdis => "webdis",
        }
    }
}

fn login_of(dialect: Dialect, user: Option<String>, secret: Option<Zeroizing<String>>) -> Result<Login, String> {
    match (dialect, user, secret) {
        (Dialect::Upstash, None, Some(token)) => Ok(Login::Token(token)),
        (Dialect::Upstash, None, None) => Err(
            "the token is missing; write upstash+https://:TOKEN@host, or upstash: to take both from the environment"
                .to_owned(),
        ),
        (Dialect::Upstash, Some(_), _) => Err("the token must follow a colon, without a user name; write \
                                               upstash+https://:TOKEN@host"
            .to_owned()),
        (Dialect::Webdis, None, None) => Ok(Login::Nobody),
        (Dialect::Webdis, Some(user), Some(_)) if user.contains(':') => {
            Err("a user name of HTTP has no colon".to_owned())
        }
        (Dialect::Webdis, Some(user), Some(password)) => Ok(Login::Basic { user, password }),
        (Dialect::Webdis, Some(_), None) | (Dialect::Webdis, None, Some(_)) => {
            Err("user and password belong together; write webdis+http://user:password@host".to_owned())
        }
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.scheme(), self.base)
    }
}

impl fmt::Debug for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> HttpUrl {
        HttpUrl::parse(text).unwrap()
    }

    fn refused(text: &str) -> String {
        HttpUrl::parse(text).unwrap_err()
    }

    fn token(url: &HttpUrl) -> Option<&str> {
        match &url.login {
            Login::Token(token) => Some(token),
            Login::Nobody | Login::Basic { .. } => None,
        }
    }

    #[test]
    fn every_part_of_a_url_is_read() {
        let upstash = url("upstash+https://:AX%3D_-%2F@EU1-calm-1.upstash.io");
        assert_eq!((upstash.dialect, upstash.reach), (Dialect::Upstash, Exposure::Tls));
        assert_eq!((upstash.base.as_str(), token(&upstash)), ("https://eu1-calm-1.upstash.io", Some("AX=_-/")));
        let webdis = url("webdis+http://cache");
        assert_eq!((webdis.dialect, webdis.reach), (Dialect::Webdis, Exposure::Plaintext));
        assert!(webdis.base == "http://cache:7379" && webdis.login == Login::Nobody);
        let full = url("webdis+https://us%65r:p%40ss%2Fword@[::1]:7000/some/way/?ca=/etc/ca.pem");
        assert_eq!((full.base.as_str(), full.reach), ("https://[::1]:7000/some/way", Exposure::Tls));
        let login = Login::Basic { user: "user".into(), password: Zeroizing::new("p@ss/word".into()) };
        assert!(full.login == login && full.ca == Some("/etc/ca.pem".into()));
        assert_eq!(url(r"webdis+https://cache?ca=C:\certificates\ca.pem").ca, Some(r"C:\certificates\ca.pem".into()));
    }

    #[test]
    fn a_port_is_kept_as_it_was_given() {
        for (text, base) in [
            ("webdis+http://cache:80", "http://cache:80"),
            ("webdis+https://cache", "https://cache"),
            ("webdis+https://cache:443", "https://cache:443"),
            ("webdis+http://cache/", "http://cache:7379"),
            ("upstash+http://:t@127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("upstash+http://:t@localhost", "http://localhost"),
        ] {
            assert_eq!(url(text).base, base, "{text}");
        }
    }

    #[test]
    fn errors_name_the_wrong_part_and_the_right_form() {
        for (text, words) in [
            ("upstash+https://", "upstash+https://:TOKEN@host"),
            ("upstash+https:host", "the host is missing"),
            ("upstash+https://host", "the token is missing"),
            ("upstash+https://token@host", "follow a colon"),
            ("upstash+https://default:token@host", "without a user name"),
            ("upstash+https://:to%20ken@host", "no token has"),
            ("upstash+https://:to%0Aken@host", "no token has"),
            ("upstash+https://:tok#en@host", "%23"),
            ("upstash+https://:tok/en@host", "%2F"),
            ("upstash+https://:tok?en@host", "%3F"),
            ("upstash+https://:t@host:99999", "port"),
            ("upstash+https://:t@host?wait_replicas=1", "pools its connections"),
            ("upstash+https://:t@host?proxy=x", "cannot name a proxy"),
            ("upstash+https://:t@host?db=1", "there is no parameter \"db\""),
            ("upstash+https://:t@host?plaintext=yes", "plaintext=allow"),
            ("upstash+https://:t@host?plaintext=allow", "http only"),
            ("webdisk+http://host", "write upstash+https:// or webdis+http://"),
            ("webdis+http://user@host", "user and password belong together"),
            ("webdis+http://:password@localhost", "user and password belong together"),
            ("webdis+http://a%3Ab:password@localhost", "colon"),
            ("webdis+http://localhost/#x", "%23"),
            (r"webdis+http://u:hunter2\@localhost", "%5C"),
            ("webdis+http://default:12/hunter2@host", "%2F"),
            ("webdis+https://u:12?hunter2@host", "%3F"),
            ("webdis+https://u:12?ca=x&hunter2@host", "%3F"),
            ("webdis+http://localhost?ca=x", "https only"),
        ] {
            let said = refused(text);
            assert!(said.contains(words), "{text}: {said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn secrets_need_tls_or_permission() {
        for host in ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]"] {
            assert_eq!(url(&format!("upstash+http://:token@{host}")).reach, Exposure::Loopback, "{host}");
        }
        for host in ["host", "localhost.example", "10.0.0.1", "[2001:db8::1]", "0.0.0.0"] {
            for user in ["upstash+http://:token", "webdis+http://user:token"] {
                let said = refused(&format!("{user}@{host}"));
                assert!(said.contains("+https://") && said.contains("?plaintext=allow"), "{said}");
                assert_eq!(url(&format!("{user}@{host}?plaintext=allow")).reach, Exposure::Plaintext);
            }
            assert_eq!(url(&format!("webdis+http://{host}")).reach, Exposure::Plaintext);
        }
    }

    #[test]
    fn the_environment_names_the_server() {
        let read = |text: &str, address: &'static str, token: &'static str| {
            let env = EnvVars::new(move |name: &str| match name {
                URL_VARIABLE => Some(address.to_owned()),
                TOKEN_VARIABLE => Some(token.to_owned()),
                other => panic!("{other} is nobody's business"),
            });
            OfEnvironment::parse(text.strip_prefix("upstash:").unwrap())?.resolved(&env)
        };
        let found = read("upstash:", "https://calm-1.upstash.io/\n", " hunter2 ").unwrap();
        assert_eq!((found.to_string().as_str(), token(&found)), ("upstash+https://calm-1.upstash.io", Some("hunter2")));
        for (text, address, words) in [
            ("upstash:", "calm-1.upstash.io", "must begin with https://"),
            ("upstash:", "rediss://default:hunter2@calm-1.upstash.io", "not the one for redis-cli"),
            ("upstash:", "https://:hunter2@calm-1.upstash.io", TOKEN_VARIABLE),
            ("upstash:", "http://calm-1.upstash.io", "plaintext=allow"),
            ("upstash:", "https://", "not a url"),
            ("upstash:host", "https://calm-1.upstash.io", "names none itself"),
            ("upstash:?db=1", "https://calm-1.upstash.io", "there is no parameter"),
        ] {
            let said = read(text, address, "hunter2").unwrap_err();
            assert!(said.contains(words) && !said.contains("hunter2"), "{text} {address}: {said}");
        }
        assert!(read("upstash:", "", "").unwrap_err().contains(URL_VARIABLE));
        let said = read("upstash:", "https://host", "").unwrap_err();
        assert!(said.contains(TOKEN_VARIABLE), "{said}");
        let trusted = read("upstash:?plaintext=allow", "http://host", "t").unwrap();
        assert_eq!(trusted.reach, Exposure::Plaintext);
    }

    #[test]
    fn no_secret_is_ever_shown() {
        for text in ["upstash+https://:hunter2@host", "webdis+https://user:hunter2@host/way"] {
            let url = url(text);
            let shown = format!("{url} {url:?}");
            assert!(!shown.contains("hunter2") && !shown.contains("user"), "{shown}");
        }
        for text in [
            "upstash+http://:hunter2@host",
            "upstash+https://hunter2@host",
            "upstash+https://:hunter2@host?nope=1",
            "upstash+https://:hunter2@host:x",
            "upstash+https://:hunter2#@host",
            "upstash+https://:hunter2/@host",
            "upstash+https://:hunter2?@host",
            "webdis+http://hunter2@host?x=hunter2",
        ] {
            assert!(!refused(text).contains("hunter2"), "{}", refused(text));
        }
    }
}
