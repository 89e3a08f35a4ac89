//! The error for a url whose scheme this version does not know.

use super::without_secrets;

/// The beginnings of urls that this version knows, as the guide writes them.
const KNOWN: [&str; 17] = [
    "memory:",
    "sqlite:",
    "redis://",
    "rediss://",
    "redis+unix:",
    "redis+cluster://",
    "redis+sentinel://",
    "upstash+https://",
    "upstash:",
    "webdis+http://",
    "dynamodb://",
    "etcd://",
    "postgres://",
    "s3://",
    "azblob://",
    "gs://",
    "cosmos://",
];

/// Other names under which people look for one of them.
const OTHER_NAMES: [(&str, &str); 13] = [
    ("azure", "azblob://"),
    ("cosmosdb", "cosmos://"),
    ("dynamo", "dynamodb://"),
    ("file", "sqlite:"),
    ("gcs", "gs://"),
    ("google", "gs://"),
    ("http", "webdis+http://"),
    ("https", "upstash+https://"),
    ("pg", "postgres://"),
    ("r2", "s3://"),
    ("redis+ssl", "rediss://"),
    ("redis+tls", "rediss://"),
    ("unix", "redis+unix:"),
];

/// So many letters may be wrong, missing, too many or in another order.
const MOST_TYPOS: usize = 2;

pub(super) fn unknown(scheme: &str, url: &str) -> String {
    let url = without_secrets(url);
    match meant(scheme) {
        Some(meant) => format!("store url {url:?} has the unknown scheme {scheme:?}; did you mean {meant}?"),
        None if is_host_and_port(&url) => {
            format!("store url {url:?} has no scheme; write the kind of store before the host, such as redis://{url}")
        }
        None => {
            let [most @ .., last] = &KNOWN;
            let most = most.join(", ");
            format!("store url {url:?} has the unknown scheme {scheme:?}; this version knows {most} and {last}")
        }
    }
}

fn is_host_and_port(url: &str) -> bool {
    url.split_once(':').is_some_and(|(_, port)| port.starts_with(|first: char| first.is_ascii_digit()))
}

fn meant(scheme: &str) -> Option<&'static str> {
    let scheme = scheme.to_ascii_lowercase();
    // SQLAlchemy names the driver after the database.
    let scheme = scheme.strip_prefix("postgresql+").map_or(scheme.as_str(), |_| "pg");
    let other = OTHER_NAMES.iter().find_map(|(name, known)| (*name == scheme).then_some(*known));
    let typos = |known: &&str| strsim::osa_distance(scheme, known.trim_end_matches(['/', ':']));
    // In a short name, so many wrong letters would make it any other.
    let most = MOST_TYPOS.min(scheme.chars().count() / 2);
    let nearest = || KNOWN.iter().copied().min_by_key(typos).filter(|known| (1..=most).contains(&typos(known)));
    let in_capitals = || KNOWN.iter().copied().find(|known| typos(known) == 0);
    other.or_else(in_capitals).or_else(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_scheme_is_named() {
        for (scheme, known) in [
            ("reds", Some("redis://")),
            ("REDIS", Some("redis://")),
            ("redsi", Some("redis://")),
            ("sqlite3", Some("sqlite:")),
            ("postgre", Some("postgres://")),
            ("pg", Some("postgres://")),
            ("postgresql+psycopg2", Some("postgres://")),
            ("gcs", Some("gs://")),
            ("dynamdb", Some("dynamodb://")),
            ("consul", None),
            ("mysql", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(meant(scheme), known, "{scheme}");
        }
    }

    #[test]
    fn a_host_and_a_port_lack_a_scheme() {
        let message = unknown("localhost", "localhost:6379");
        assert!(message.ends_with("such as redis://localhost:6379"), "{message}");
    }

    #[test]
    fn the_message_has_no_secret() {
        let message = unknown("reds", "reds://user:hunter2@host/?password=hunter2");
        assert_eq!(message, r#"store url "reds://host/" has the unknown scheme "reds"; did you mean redis://?"#);
        assert!(unknown("consul", "consul://host").ends_with(", gs:// and cosmos://"));
    }
}
