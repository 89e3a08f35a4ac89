use alloc::format;
use alloc::vec;

use super::*;
use crate::dynamodb::{Codec, Settings};

/// AWS's published test suite for signatures has one key, one time and one scope.
fn suite_key(session_token: Option<&str>) -> Credentials {
    Credentials {
        access_key_id: "AKIDEXAMPLE".into(),
        secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
        session_token: session_token.map(Into::into),
    }
}

const TIME: &str = "20150830T123600Z";
const UNIX_MS: u64 = 1_440_938_160_000;
const SUITE: Scope<'static> = Scope { scheme: &AWS, region: "us-east-1", service: "service" };
const TOKEN: &str = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

#[test]
fn signatures_are_those_that_aws_published() {
    let host = ("host", String::from("example.amazonaws.com"));
    let date = ("x-amz-date", String::from(TIME));
    let form = ("content-type", String::from("application/x-www-form-urlencoded"));
    let token = ("x-amz-security-token", String::from(TOKEN));
    let spaced = ("my-header1", String::from(" value1 "));
    let mut signer = Signer::new();
    for (name, method, headers, body, signed, signature) in [
        (
            "get-vanilla",
            "GET",
            vec![&host, &date],
            "",
            "host;x-amz-date",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        (
            "post-vanilla",
            "POST",
            vec![&host, &date],
            "",
            "host;x-amz-date",
            "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
        ),
        (
            "post-x-www-form-urlencoded",
            "POST",
            vec![&form, &host, &date],
            "Param1=value1",
            "content-type;host;x-amz-date",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
        (
            "post-sts-header-before",
            "POST",
            vec![&host, &date, &token],
            "",
            "host;x-amz-date;x-amz-security-token",
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
        ),
    ] {
        let expected = format!(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders={signed}, \
             Signature={signature}"
        );
        let digest = hex(&Sha256::digest(body.as_bytes()));
        let target = Target { method, path: "/", query: "", digest: &digest };
        let made = signer.authorize(&target, &headers, &SUITE, &suite_key(None), TIME);
        assert_eq!(made, expected, "{name}");
    }
    let bare = [&host, &("my-header1", String::from("value1")), &date];
    let spaced = [&host, &spaced, &date];
    let key = suite_key(None);
    let target = Target { method: "GET", path: "/", query: "", digest: &hex(&Sha256::digest(b"")) };
    let sign = |headers: &[_]| Signer::new().authorize(&target, headers, &SUITE, &key, TIME);
    assert_eq!(sign(&bare), sign(&spaced), "spaces around a value are not signed");
}

#[test]
fn a_key_is_derived_anew_for_another_day_region_or_secret() {
    let request = Codec::new(Settings::new("locks").unwrap()).look();
    let key = suite_key(None);
    let mut other = suite_key(None);
    other.secret_access_key.push('x');
    let mut signer = Signer::new();
    let mut seen = vec![];
    for (region, key, unix_ms) in [
        ("eu-west-1", &key, UNIX_MS),
        ("eu-west-2", &key, UNIX_MS),
        ("eu-west-1", &other, UNIX_MS),
        ("eu-west-1", &key, UNIX_MS + 86_400_000),
        ("eu-west-1", &key, UNIX_MS),
    ] {
        let made = signer.sign(&request, "localhost:8000", region, key, unix_ms);
        let fresh = Signer::new().sign(&request, "localhost:8000", region, key, unix_ms);
        assert_eq!(made, fresh);
        seen.push(made);
    }
    assert_eq!(seen[0], seen[4]);
    assert!((1..4).all(|at| !seen[..at].contains(&seen[at])));
}

#[test]
fn the_headers_of_a_request_are_these() {
    let request = Codec::new(Settings::new("locks").unwrap()).look();
    let host = "dynamodb.eu-west-1.amazonaws.com";
    let headers = Signer::new().sign(&request, host, "eu-west-1", &suite_key(Some("tok")), UNIX_MS);
    let all: Vec<_> = headers.iter().collect();
    assert_eq!(all[0], ("content-type", "application/x-amz-json-1.0"));
    assert_eq!(all[1], ("x-amz-date", TIME));
    assert_eq!(all[2], ("x-amz-security-token", "tok"));
    assert_eq!(all[3], ("x-amz-target", "DynamoDB_20120810.GetItem"));
    assert_eq!(all[4].0, "authorization");
    let signed = "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target,";
    assert!(all[4].1.contains(signed) && all[4].1.contains("/20150830/eu-west-1/dynamodb/aws4_request"));
    let other_host = Signer::new().sign(&request, "elsewhere", "eu-west-1", &suite_key(Some("tok")), UNIX_MS);
    assert_ne!(headers, other_host);
}

#[test]
fn no_secret_is_shown() {
    let key = suite_key(Some(TOKEN));
    let request = Codec::new(Settings::new("locks").unwrap()).look();
    let mut signer = Signer::new();
    let headers = signer.sign(&request, "host", "eu-west-1", &key, UNIX_MS);
    let text = format!("{key:?} {headers:?} {signer:?}");
    assert!(
        text.contains("AKIDEXAMPLE") && !text.contains("wJalr") && !text.contains("AQoD") && !text.contains("AWS4")
    );
    assert!(text.contains("\"x-amz-security-token\"") && text.ends_with("Signer { .. }"), "{text}");
}

/// Made apart from this code, from the rules that Google documents.
#[test]
fn signatures_are_those_of_google() {
    let codec = objects::Codec::new(objects::Service::Gcs, "/locks", "leasehold/").with_xml();
    let resource = leasehold_core::Resource::new("invoice/42").unwrap();
    let ops = [leasehold_core::op::LockOp {
        lock: leasehold_core::LockId::new(1),
        resource,
        op: leasehold_core::op::Op::Read,
    }];
    let exchange = codec.begin(&objects::Memory::default(), &ops, 0);
    let key = Credentials {
        access_key_id: "GOOGEXAMPLE".into(),
        secret_access_key: suite_key(None).secret_access_key.clone(),
        session_token: None,
    };
    let request = &crate::Exchange::requests(&exchange)[0];
    let host = "storage.googleapis.com";
    let headers = Signer::new().sign_google_object(request, host, "auto", &key, 1_700_000_000_000);
    let authorization = headers.iter().find(|(name, _)| *name == "authorization").unwrap().1;
    assert!(
        authorization.starts_with("GOOG4-HMAC-SHA256 Credential=GOOGEXAMPLE/20231114/auto/storage/goog4_request, ")
    );
    assert!(authorization.ends_with("=d3de7e5d032a3a52dfd05b26d2c1e3d68011b6b2cf9a05d2cec5eaa02de2f603"));
}
