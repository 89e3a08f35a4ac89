//! The kinds of stores, in one table, and the error for a url of none of them.

use super::{Said, without_secrets};

/// A kind of store.
pub(super) struct Kind {
    #[cfg(test)]
    name: &'static str,
    /// The schemes of its urls.
    pub(super) schemes: &'static [&'static str],
    /// The beginnings of urls that errors offer, as the guide writes them.
    written: &'static [&'static str],
    /// Reads a url; asks neither the environment nor files.
    pub(super) parse: fn(&str) -> Result<Said, String>,
}

/// A row of the table; without the feature, its urls are known and refused.
macro_rules! kind {
    ($feature:literal, $name:literal, $parse:path, $schemes:expr, $written:expr) => {
        Kind {
            #[cfg(test)]
            name: $feature,
            schemes: &$schemes,
            written: &$written,
            #[cfg(feature = $feature)]
            parse: $parse,
            #[cfg(not(feature = $feature))]
            parse: |_| Err(concat!("this build has no ", $name, ": enable the feature `", $feature, "`").to_owned()),
        }
    };
}

/// Every kind of store: a new one is a row here, and files of its own.
#[rustfmt::skip]
static KINDS: [Kind; 8] = [
    Kind {
        #[cfg(test)]
        name: "memory",
        schemes: &["memory"], written: &["memory:"], parse: super::memory::parse,
    },
    kind!("sqlite", "SQLite", super::sqlite::parse, ["sqlite"], ["sqlite:"]),
    kind!(
        "redis", "Redis", super::redis::parse,
        ["redis", "rediss", "redis+unix", "valkey", "valkeys", "valkey+unix", "redis+cluster", "rediss+cluster",
         "valkey+cluster", "valkeys+cluster", "redis+sentinel", "rediss+sentinel", "valkey+sentinel", "valkeys+sentinel"],
        ["redis://", "rediss://", "redis+unix:", "redis+cluster://", "redis+sentinel://"]
    ),
    kind!(
        "http", "Redis over HTTP", super::http::parse,
        ["upstash", "upstash+https", "upstash+http", "webdis+https", "webdis+http"],
        ["upstash+https://", "upstash:", "webdis+http://"]
    ),
    kind!("dynamodb", "DynamoDB", super::dynamodb::parse, ["dynamodb"], ["dynamodb://"]),
    kind!("etcd", "etcd", super::etcd::parse, ["etcd", "etcds"], ["etcd://"]),
    kind!("postgres", "PostgreSQL", super::postgres::parse, ["postgres", "postgresql"], ["postgres://"]),
    kind!(
        "objects", "object stores", super::objects::parse,
        ["s3", "azblob", "gs", "cosmos"], ["s3://", "azblob://", "gs://", "cosmos://"]
    ),
];

/// The kind of store to which a scheme belongs.
pub(super) fn of(scheme: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.schemes.contains(&scheme))
}

/// The beginnings of all urls that this version knows.
fn known() -> impl Iterator<Item = &'static str> {
    KINDS.iter().flat_map(|kind| kind.written).copied()
}

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
            let known: Vec<&str> = known().collect();
            let (last, most) = known.split_last().map_or(("", String::new()), |(last, most)| (*last, most.join(", ")));
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
    let nearest = || known().min_by_key(typos).filter(|known| (1..=most).contains(&typos(known)));
    let in_capitals = || known().find(|known| typos(known) == 0);
    other.or_else(in_capitals).or_else(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_is_of_one_kind_and_the_guide_writes_urls_of_it() {
        let all: Vec<&str> = KINDS.iter().flat_map(|kind| kind.schemes).copied().collect();
        for kind in &KINDS {
            for scheme in kind.schemes {
                assert_eq!(all.iter().filter(|other| *other == scheme).count(), 1, "{scheme}");
            }
            for beginning in kind.written {
                let (scheme, _) = beginning.split_once(':').unwrap();
                assert!(kind.schemes.contains(&scheme), "{beginning}");
                assert!(include_str!("mod.rs").contains(&format!("/// `{beginning}")), "{beginning} has no docs");
            }
        }
        assert!(OTHER_NAMES.iter().all(|(_, meant)| known().any(|beginning| beginning == *meant)));
    }

    /// As CONTRIBUTING lists it.
    #[test]
    fn a_kind_has_all_that_a_new_store_touches() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let text = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
        let [client, cli] = ["client/Cargo.toml", "cli/Cargo.toml"].map(text);
        let [suites, differential] =
            ["client/tests/conformance/main.rs", "testing/differential/tests/differential.rs"].map(text);
        for Kind { name, schemes, .. } in &KINDS {
            for path in [format!("client/src/url/{name}.rs"), format!("client/src/transport/{name}")] {
                assert!(root.join(&path).exists() || root.join(format!("{path}.rs")).exists(), "no {path}");
            }
            let is_feature = |manifest: &str| manifest.contains(&format!("\n{name} = ["));
            assert!(*name == "memory" || is_feature(&client) && is_feature(&cli), "{name} is no feature");
            // Redis over HTTP is measured as Redis, whose scripts it sends.
            assert!(*name == "http" || differential.contains(name), "no differential test of {name}");
            let is_suite = |suite: &str| suites.contains(&format!("fn {suite}("));
            let suite = |scheme: &&str| scheme.split('+').next().is_some_and(is_suite);
            assert!(is_suite(name) || schemes.iter().any(suite), "no suite of {name}");
        }
    }

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
