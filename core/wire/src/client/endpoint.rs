//! The address of a server behind HTTP.

use alloc::borrow::ToOwned;
use alloc::string::String;

use super::store::Plaintext;

/// Controls whether an address may have a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paths {
    None,
    Allowed,
}

/// Scheme, host, port and path of a server, in the one spelling that HTTP clients do not change: the host is part of what
/// is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// Without a slash at its end.
    base: String,
    scheme: Scheme,
    host: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

impl Endpoint {
    /// # Errors
    /// What is wrong with it. The address itself is not repeated, for it may hold what should not be there.
    pub(super) fn parse(url: &str, paths: Paths) -> Result<Self, &'static str> {
        let (scheme, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (Scheme::Https, rest),
            (None, Some(rest)) => (Scheme::Http, rest),
            (None, None) => return Err("the url must begin with https:// or http://"),
        };
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        if authority.contains('@') {
            return Err("the url has a user, password or token: give them as credentials");
        }
        let path = path.trim_end_matches('/');
        if paths == Paths::None && !path.is_empty() {
            return Err("the url has a path: name the host alone");
        }
        if !path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-._~%".contains(&byte)) || has_dots(path) {
            return Err(
                "the path of the url has characters that are not allowed: write letters, digits, - . _ ~ and %",
            );
        }
        let authority = authority.to_ascii_lowercase();
        let (host, port) = divided(&authority).ok_or("the url has no valid host")?;
        let number = port.parse::<u16>();
        if !port.is_empty() && (number.is_err() || port.starts_with(['0', '+'])) {
            return Err("the port of the url is no number up to 65535");
        }
        let usual = match scheme {
            Scheme::Http => "80",
            Scheme::Https => "443",
        };
        // HTTP clients leave it out of the header `Host`.
        let host = if port.is_empty() || port == usual { host.to_owned() } else { [host, ":", port].concat() };
        let scheme_text = match scheme {
            Scheme::Http => "http://",
            Scheme::Https => "https://",
        };
        Ok(Self { base: [scheme_text, &host, path].concat(), scheme, host })
    }

    /// Where a request goes to, below the address.
    pub(super) fn url(&self, path: &str) -> String {
        [self.base.as_str(), path].concat()
    }

    /// As the header `Host` has it.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Returns true if secrets may be sent there.
    pub(super) fn keeps_secrets(&self, plaintext: Plaintext) -> bool {
        self.scheme == Scheme::Https || plaintext == Plaintext::Allowed || is_loopback(&self.host)
    }
}

/// HTTP clients would walk along such a path.
fn has_dots(path: &str) -> bool {
    path.split('/').any(|part| matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | ".."))
}

/// Host and port; the port is empty where there is none.
fn divided(authority: &str) -> Option<(&str, &str)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let end = rest.find(']')?;
        let (address, port) = (rest.get(..end)?, rest.get(end + 1..)?);
        let is_address = address.contains(':') && address.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b':');
        let port = if port.is_empty() { port } else { port.strip_prefix(':').filter(|port| !port.is_empty())? };
        return is_address.then_some((authority.get(..end + 2)?, port));
    }
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    let is_name =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let is_host = host.len() <= 253 && host.strip_suffix('.').unwrap_or(host).split('.').all(is_name);
    (is_host && !authority.ends_with(':')).then_some((host, port))
}

fn is_loopback(host: &str) -> bool {
    let name = if host.starts_with('[') { host } else { host.split(':').next().unwrap_or(host) };
    let is_v4 = || {
        let mut parts = name.split('.');
        parts.next() == Some("127") && parts.clone().count() == 3 && parts.all(|part| part.parse::<u8>().is_ok())
    };
    name == "localhost" || name.ends_with(".localhost") || name.starts_with("[::1]") || is_v4()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_spelling() {
        for (given, url, host) in [
            ("https://dynamodb.eu-west-1.amazonaws.com", "https://dynamodb.eu-west-1.amazonaws.com/", None),
            ("https://Example.COM:443/", "https://example.com/", None),
            ("https://example.com:80", "https://example.com:80/", None),
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000/", None),
            ("http://127.0.0.1:80", "http://127.0.0.1/", None),
            ("http://[::1]:8000", "http://[::1]:8000/", None),
            ("http://host:7379/a/b%20c/", "http://host:7379/a/b%20c/", Some("host:7379")),
        ] {
            let endpoint = Endpoint::parse(given, Paths::Allowed).unwrap();
            assert_eq!(endpoint.url("/"), url);
            let shown = url.split("//").nth(1).unwrap().trim_end_matches('/');
            assert_eq!(endpoint.host(), host.unwrap_or(shown));
        }
    }

    #[test]
    fn what_no_server_is_called_is_refused() {
        for wrong in [
            "",
            "ftp://host",
            "host",
            "https://",
            "https://:80",
            "https://user@host",
            "https://:pw@host",
            "https://a b",
            "https://host:",
            "https://host:0",
            "https://host:65536",
            "https://host:+1",
            "https://host:08",
            "https://host?x",
            "https://host/#x",
            "https://host/a?b",
            "https://host/..",
            "https://host/a/%2e%2E/b",
            "https://[::1",
            "https://[x]",
            "https://[cafe]",
            "https://[::g]",
            "https://[::1]x",
            "https://[::1]:",
            "https://a..b",
            "https://hö.st",
            "https://host\r\nx: y",
            "https://host/\u{7f}",
        ] {
            assert!(Endpoint::parse(wrong, Paths::Allowed).is_err(), "{wrong}");
        }
        assert!(Endpoint::parse("https://host/path", Paths::None).is_err());
        assert!(Endpoint::parse("https://host/", Paths::None).is_ok());
    }

    #[test]
    fn secrets_stay_on_this_machine_unless_they_are_hidden() {
        for (url, expected) in [
            ("https://host", true),
            ("http://localhost:8000", true),
            ("http://a.localhost", true),
            ("http://127.9.8.7:8000", true),
            ("http://[::1]:8000", true),
            ("http://host", false),
            ("http://127.0.0.1.example.com", false),
            ("http://127.1.2", false),
            ("http://localhost.example.com", false),
            ("http://[::2]", false),
        ] {
            let endpoint = Endpoint::parse(url, Paths::None).unwrap();
            assert_eq!(endpoint.keeps_secrets(Plaintext::Refused), expected, "{url}");
            assert!(endpoint.keeps_secrets(Plaintext::Allowed));
        }
    }
}
