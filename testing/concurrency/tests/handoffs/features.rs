//! The answers to urls of a build without any store: this one has none.

use leasehold_concurrency::{ErrorKind, StoreUrl};

const MANIFEST: &str = include_str!("../../../../client/Cargo.toml");

#[test]
fn a_url_of_a_store_that_was_left_out_names_its_feature() {
    for (url, feature) in [
        ("redis://localhost", "redis"),
        ("rediss+cluster://a,b", "redis"),
        ("upstash+https://:hunter2@host", "http"),
        ("webdis+http://localhost", "http"),
        ("dynamodb://locks?region=eu-west-1", "dynamodb"),
        ("etcds://localhost", "etcd"),
        ("s3://bucket", "objects"),
        ("azblob://account/container", "objects"),
        ("gs://bucket", "objects"),
        ("cosmos://account/database/container", "objects"),
        ("postgresql://localhost/app", "postgres"),
    ] {
        let error = url.parse::<StoreUrl>().expect_err(url);
        assert_eq!(error.kind(), ErrorKind::Config, "{url}");
        assert!(error.to_string().contains(&format!("enable the feature `{feature}`")), "{url}: {error}");
        assert!(MANIFEST.contains(&format!("\n{feature} = [")), "{feature}");
    }
}
