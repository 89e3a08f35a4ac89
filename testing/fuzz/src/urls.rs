//! Urls of stores: a url that was read reads the same again, and no secret is ever shown.

use arbitrary::{Result, Unstructured};
use leasehold::{StoreUrl, fuzzing};

use crate::values::{self, SECRET};

const SCHEMES: [&str; 21] = [
    "redis",
    "rediss",
    "valkey",
    "redis+unix",
    "redis+cluster",
    "rediss+cluster",
    "redis+sentinel",
    "upstash+https",
    "upstash+http",
    "webdis+http",
    "webdis+https",
    "dynamodb",
    "sqlite",
    "memory",
    "upstash",
    "etcd",
    "postgres",
    "s3",
    "azblob",
    "gs",
    "cosmos",
];

/// The text as it is, and a url that is made of parts.
pub fn run(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        read(text, parsed(text));
    }
    // The run ends where the bytes end.
    let _ = made_of_parts(&mut Unstructured::new(bytes));
}

/// Parses a url in an environment with few variables.
fn parsed(url: &str) -> std::result::Result<StoreUrl, leasehold::Error> {
    fuzzing::url(url, |name| match name {
        "AWS_REGION" => Some("eu-west-1".to_owned()),
        "UPSTASH_REDIS_REST_URL" => Some("https://calm.upstash.io".to_owned()),
        "UPSTASH_REDIS_REST_TOKEN" => Some(SECRET.to_owned()),
        _ => None,
    })
}

fn read(text: &str, url: std::result::Result<StoreUrl, leasehold::Error>) {
    let url = match url {
        Ok(url) => url,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let shown = url.to_string();
    // Names of files and of masters are shown as they are, and need not be a part of a url then.
    let is_plain = match shown.split(':').next().unwrap_or_default() {
        "memory" | "sqlite" => false,
        kind if kind.starts_with("redis") => !text.contains('%') && !shown.contains(['?', '#', '@', '\\']),
        // A server that wants a token is shown without it, and is not taken so.
        kind if kind.starts_with("upstash") => false,
        // It is shown without its user, which every url must have.
        "postgres" => false,
        _ => true,
    };
    if is_plain {
        let again = parsed(&shown).unwrap_or_else(|error| panic!("{text:?} shows as {shown:?}: {error}"));
        assert_eq!(again.to_string(), shown, "{text:?}");
        assert_eq!(again.node_name().ok(), url.node_name().ok(), "{text:?}");
    }
    if shown.starts_with("dynamodb:") {
        let full = |url: &StoreUrl| url.handed_on().expect("it was resolved").into_string().expect("it is UTF-8");
        let full_url = full(&url);
        let again = parsed(&full_url).unwrap_or_else(|error| panic!("{text:?} in full is {full_url:?}: {error}"));
        assert_eq!((full(&again), again.to_string()), (full_url, url.to_string()), "{text:?}");
    }
}

/// A url with the secret where secrets stand, among characters that should have been encoded.
fn made_of_parts(u: &mut Unstructured<'_>) -> Result<()> {
    let scheme = *u.choose(&SCHEMES)?;
    let sign =
        |u: &mut Unstructured<'_>| Ok(*u.choose(&["", "/", "?", "#", "@", ":", "%", "%40", "&", "=", "[", "\\", ","])?);
    let user = *u.choose(&["", "user", "default", "a%3Ab"])?;
    let login = format!("{user}:{}{SECRET}{}", sign(u)?, sign(u)?);
    let hosts = ["host", "host:6379", "[::1]:7", "a,b:1", "127.0.0.1", "", "host:x", "é.example"];
    let host = *u.choose(&hosts)?;
    let tails = [
        "",
        "/0",
        "/main/3",
        "?db=2",
        "?durable=yes",
        "/?ca=/a.pem",
        "?plaintext=allow",
        "?region=eu-west-1",
        "?wait_replicas=1",
        "?x=y",
        "/a/b",
        "?sentinel_username=me",
        "?key=id&sort_key=range",
        "/db?schema=a&listen=b:1",
    ];
    let mut url = format!("{scheme}://{login}@{host}{}", u.choose(&tails)?);
    if values::chance(u, 40) {
        let name = *u.choose(&["password", "sentinel_password"])?;
        url = format!("{scheme}://{host}?{name}={SECRET}");
    }
    // A path or the name of a store in memory is no place for secrets.
    if scheme != "sqlite" && scheme != "memory" {
        match parsed(&url) {
            // It stands in fields of its own, and nowhere else.
            Ok(url) => not_told(&[url.to_string(), format!("{url:?}"), url.node_name().expect("it was resolved")]),
            Err(error) => not_told(&[error.to_string(), format!("{error:?}")]),
        }
    }
    Ok(())
}

fn not_told(texts: &[String]) {
    for text in texts {
        assert!(!text.contains(SECRET), "{text}");
    }
}
