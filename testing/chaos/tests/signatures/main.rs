//! Our signatures of requests to AWS beside those of AWS's own library.

use std::time::{Duration, UNIX_EPOCH};

use aws_credential_types::Credentials as Theirs;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use leasehold_wire::dynamodb::{Request, Target};
use leasehold_wire::sigv4::{Credentials, Signer};

/// The headers that AWS's library adds to the request, by name.
fn theirs(request: &Request, url: &str, region: &str, key: &Credentials, unix_ms: u64) -> Vec<(String, String)> {
    let token = key.session_token.clone();
    let identity = Theirs::new(key.access_key_id.clone(), key.secret_access_key.clone(), token, None, "a test").into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name("dynamodb")
        .time(UNIX_EPOCH + Duration::from_millis(unix_ms))
        .settings(SigningSettings::default())
        .build()
        .unwrap()
        .into();
    let headers = [("content-type", "application/x-amz-json-1.0"), ("x-amz-target", request.target.header())];
    let body = SignableBody::Bytes(&request.body);
    let signable = SignableRequest::new("POST", url, headers.into_iter(), body).unwrap();
    let (added, _) = sign(signable, &params).unwrap().into_parts();
    let (headers, _) = added.into_parts();
    headers.into_iter().map(|header| (header.name().to_owned(), header.value().to_owned())).collect()
}

#[test]
fn signatures_match_the_aws_library() {
    let keys = [
        ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", None),
        ("ASIAEXAMPLE", "s", Some("IQoJb3JpZ2luX2VjEXAMPLE//////////+/==")),
        ("a", &"long".repeat(40), Some("t")),
    ];
    let hosts = [
        ("https://dynamodb.eu-west-1.amazonaws.com/", "dynamodb.eu-west-1.amazonaws.com"),
        ("http://127.0.0.1:8000/", "127.0.0.1:8000"),
        ("https://localhost:8443", "localhost:8443"),
    ];
    let bodies = ["", "{}", r#"{"TableName":"locks","Key":{"key":{"S":"é\u001f+/ "}}}"#];
    let times = [0, 951_782_399_999, 951_782_400_000, 1_440_938_160_000, 1_799_999_999_999, 4_107_542_400_001];
    let mut signer = Signer::new();
    let mut compared = 0;
    for (id, secret, token) in keys {
        let key = Credentials {
            access_key_id: id.into(),
            secret_access_key: secret.into(),
            session_token: token.map(Into::into),
        };
        for ((url, host), body) in hosts.iter().zip(bodies).chain(hosts.iter().rev().zip(bodies)) {
            for (region, unix_ms) in ["eu-west-1", "us-gov-west-1"].into_iter().cycle().zip(times) {
                let request = Request { target: Target::UpdateItem, body: body.into() };
                let ours = signer.sign(&request, host, region, &key, unix_ms);
                for (name, value) in theirs(&request, url, region, &key, unix_ms) {
                    let found = ours.iter().find(|(ours, _)| *ours == name).map(|(_, value)| value);
                    assert_eq!(found, Some(value.as_str()), "{name} for {url} in {region} at {unix_ms} ms");
                    compared += 1;
                }
            }
        }
    }
    // Two headers for each, and the token of two keys.
    assert_eq!(compared, 3 * 6 * 6 * 2 + 2 * 6 * 6);
}
