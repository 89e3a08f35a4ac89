//! Identifies the server, and the version of Redis that it corresponds to.

use crate::transport::info::{Fields, printable};

/// The fields in which compatible servers report their own version.
const RELATIVES: [(&str, &str); 6] = [
    ("valkey_version", "Valkey"),
    ("keydb_version", "KeyDB"),
    ("dragonfly_version", "Dragonfly"),
    ("kvrocks_version", "Kvrocks"),
    ("garnet_version", "Garnet"),
    ("upstash_version", "Upstash"),
];

/// A server's name, and the version of Redis that it corresponds to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) shown: String,
    /// The major version of Redis that it reports; `None` if that is not a number.
    pub(super) major: Option<u64>,
}

impl Version {
    /// Reads the reply to `INFO`, or else to `HELLO`.
    pub(super) fn of(info: Option<&Fields>, hello: Option<&Fields>) -> Option<Self> {
        let (name, version, like) = match info {
            Some(info) => {
                let like = info.get("redis_version");
                let relative = RELATIVES.iter().find_map(|(field, name)| Some((*name, info.get(field)?)));
                let of_keydb = || {
                    let program = info.get("executable")?.rsplit('/').next()?;
                    program.starts_with("keydb").then_some(("KeyDB", like?))
                };
                let (name, version) = relative.or_else(of_keydb).or(like.map(|like| ("Redis", like)))?;
                (name.to_owned(), version, like)
            }
            None => {
                let (name, version) = (hello?.get("server")?, hello?.get("version")?);
                let name = if name == "redis" { "Redis".to_owned() } else { printable(name) };
                (name, version, Some(version))
            }
        };
        let major = like.and_then(|like| like.trim_start_matches('v').split('.').next()?.parse().ok());
        let mut shown = format!("{name} {}", printable(version));
        if let Some(like) = like.filter(|like| *like != version) {
            shown.push_str(&format!(", which answers as Redis {}", printable(like)));
        }
        Some(Self { shown, major })
    }
}

#[cfg(test)]
mod tests {
    use leasehold_wire::resp::Value;

    use super::*;

    fn version(info: &str) -> Option<(String, Option<u64>)> {
        Version::of(Some(&Fields::of_text(info)), None).map(|version| (version.shown, version.major))
    }

    #[test]
    fn servers_are_recognised_by_their_names() {
        for (info, shown, major) in [
            ("# Server\r\nredis_version:7.0.15\r\n", "Redis 7.0.15", Some(7)),
            ("redis_version:4.0.9\r\n", "Redis 4.0.9", Some(4)),
            ("redis_version:10.1\r\n", "Redis 10.1", Some(10)),
            (
                "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n",
                "Valkey 8.0.1, which answers as Redis 7.2.4",
                Some(7),
            ),
            ("redis_version:6.3.4\r\nexecutable:/usr/bin/keydb-server\r\n", "KeyDB 6.3.4", Some(6)),
            (
                "redis_version:7.4.0\r\ndragonfly_version:df-v1.27.1\r\n",
                "Dragonfly df-v1.27.1, which answers as Redis 7.4.0",
                Some(7),
            ),
            ("redis_version:odd\u{1b}[1m\r\n", "Redis odd [1m", None),
        ] {
            assert_eq!(version(info), Some((shown.to_owned(), major)), "{info}");
        }
        assert_eq!(version("# Server\r\n"), None);
    }

    #[test]
    fn without_info_the_greeting_is_used() {
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let pairs = vec![bulk("server"), bulk("valkey"), bulk("version"), bulk("8.0.1"), bulk("proto")];
        let hello = Fields::of_pairs(&Value::Array(pairs));
        let expected = Version { shown: "valkey 8.0.1".to_owned(), major: Some(8) };
        assert_eq!(Version::of(None, Some(&hello)), Some(expected));
        assert_eq!(Version::of(None, Some(&Fields::of_pairs(&Value::Nil))), None);
    }
}
