//! Buckets and containers whose settings harm locks, and what the doctor says of them.

use std::collections::HashMap;
use std::sync::Mutex;

use leasehold::blocking::Client;
use leasehold::{ErrorKind, Finding, Severity};
use leasehold_servers::answers::{Reply, Request, Server};
use leasehold_servers::http;
use leasehold_servers::objects::{AZURE_ACCOUNT, Api};

use crate::common::{PATIENCE, on_objects};
use crate::{client, server};

fn with(status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Reply {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Reply::Answer { status, headers, body: body.into() }
}

/// The findings of these checks, in their order.
fn found(client: &Client, check: &str) -> Vec<Finding> {
    client.doctor().unwrap().into_iter().filter(|finding| finding.check == check).collect()
}

#[track_caller]
fn is(client: &Client, check: &str, severity: Severity, words: &str) {
    let found = found(client, check);
    let says = |finding: &&Finding| finding.severity == severity && finding.what.contains(words);
    assert!(found.iter().any(|finding| says(&finding)), "{check}, {severity:?}, {words}: {found:?}");
    assert!(found.iter().all(|finding| (finding.severity == Severity::Good) == finding.advice.is_empty()), "{found:?}");
}

#[test]
fn settings_of_a_bucket_of_s3_are_told() {
    let server = server(Api::S3);
    let client = client(&server.url("p"));
    is(&client, "objects.versions", Severity::Good, "not kept");
    let set = |setting: &str, body: &str| {
        let set = server.request("PUT", &format!("/locks?{setting}"), body);
        assert_eq!(set.status, 200, "{}", set.text());
    };
    let rule = |prefix: &str, action: &str| {
        format!(
            "<LifecycleConfiguration><Rule><ID>tidy</ID><Filter><Prefix>{prefix}</Prefix></Filter><Status>Enabled</Status>\
             {action}</Rule></LifecycleConfiguration>"
        )
    };
    let expires = "<Expiration><Days>7</Days></Expiration>";
    set("lifecycle", &rule("logs/", expires));
    is(&client, "objects.lifecycle", Severity::Good, "no rule");
    set("lifecycle", &rule("p/", expires));
    is(&client, "objects.lifecycle", Severity::Problem, "\"tidy\" deletes");
    set("lifecycle", &rule("", "<Transition><Days>30</Days><StorageClass>STANDARD_IA</StorageClass></Transition>"));
    is(&client, "objects.lifecycle", Severity::Warning, "a month");
    set("versioning", "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>");
    is(&client, "objects.versions", Severity::Warning, "old versions");
    is(&client, "objects.retention", Severity::Good, "overwritten");

    let enabled = [("x-amz-bucket-object-lock-enabled", "true")];
    assert_eq!(http::request(server.address(), "PUT", "/kept", &enabled, "").unwrap().status, 200);
    let rule = "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>\
                <Mode>GOVERNANCE</Mode><Days>1</Days></DefaultRetention></Rule></ObjectLockConfiguration>";
    let set = server.request("PUT", "/kept?object-lock", rule);
    assert_eq!(set.status, 200, "{}", set.text());
    let kept = Client::connect(server.url("p").replace("s3://locks/", "s3://kept/")).unwrap();
    let error = kept.lock("a").wait(PATIENCE).acquire().map(drop).unwrap_err();
    assert!(error.to_string().contains("object lock"), "{error}");
}

/// Keeps objects under conditions, and answers everything else as `settings` say.
fn cloud(settings: impl Fn(&Request) -> Reply + Send + Sync + 'static, writes: &'static [(&str, &str)]) -> Server {
    let objects = Mutex::new(HashMap::<String, (u64, Vec<u8>)>::new());
    Server::start(move |request: &Request| {
        let mut objects = objects.lock().unwrap();
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let upload = path.starts_with("/upload/");
        if !upload && !path.ends_with(".json") {
            return settings(request);
        }
        let text = request.text();
        let parts: Vec<&str> = text.split("\r\n").filter(|line| line.starts_with('{')).collect();
        let path = path.replace("%2F", "/");
        let key = if upload { parts[0] } else { &path };
        let key = key.rsplit('/').next().unwrap().split(".json").next().unwrap().to_owned();
        let is = objects.get(&key).map_or(0, |(version, _)| *version);
        if request.method == "GET" {
            let missing = [("x-ms-error-code", "BlobNotFound")];
            return match objects.get(&key) {
                Some((version, body)) => {
                    let version = version.to_string();
                    with(200, &[("ETag", &format!("\"{version}\"")), ("x-goog-generation", &version)], body.clone())
                }
                None => with(404, &missing, "No such object"),
            };
        }
        let wanted = match request.header("if-match") {
            Some(etag) => etag.trim_matches('"'),
            None => query.split('&').find_map(|pair| pair.strip_prefix("ifGenerationMatch=")).unwrap_or("0"),
        };
        if wanted != is.to_string() {
            let code = [("x-ms-error-code", if wanted == "0" { "BlobAlreadyExists" } else { "ConditionNotMet" })];
            return with(if wanted == "0" && !upload { 409 } else { 412 }, &code, "{}");
        }
        let body = if upload { parts[1].as_bytes().to_vec() } else { request.body.clone() };
        objects.insert(key, (is + 1, body));
        let etag = format!("\"{}\"", is + 1);
        let headers = [&[("ETag", etag.as_str())], writes].concat();
        let extra = if upload { format!("{{\"generation\":\"{}\"}}", is + 1) } else { String::new() };
        with(if upload { 200 } else { 201 }, &headers, extra)
    })
}

#[test]
fn settings_of_a_container_of_azure_are_told() {
    on_objects::set_keys();
    let server = cloud(
        |request| match request.path.split_once('?').map(|(_, query)| query) {
            Some("restype=container") => {
                with(200, &[("x-ms-has-immutability-policy", "true"), ("x-ms-has-legal-hold", "false")], "")
            }
            Some("comp=properties&restype=service") => with(
                200,
                &[],
                "<?xml version=\"1.0\"?><StorageServiceProperties><DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days>\
                 </DeleteRetentionPolicy></StorageServiceProperties>",
            ),
            _ => with(403, &[("x-ms-error-code", "AuthorizationPermissionMismatch")], ""),
        },
        &[("x-ms-version-id", "2026-11-26T08:00:00.0000000Z")],
    );
    let account = AZURE_ACCOUNT;
    let client = client(&format!("azblob://{account}/locks/p?endpoint={}/{account}", server.url()));
    is(&client, "objects.retention", Severity::Problem, "an immutability policy");
    is(&client, "objects.versions", Severity::Warning, "old versions");
    is(&client, "objects.versions", Severity::Warning, "7 days");
    is(&client, "objects.lifecycle", Severity::Good, "policy of the account");
}

#[test]
fn settings_of_a_bucket_of_google_are_told() {
    const BUCKET: &str = r#"{"softDeletePolicy":{"retentionDurationSeconds":"604800"},"retentionPolicy":{"retentionPeriod":"1"},
        "lifecycle":{"rule":[{"action":{"type":"Delete"},"condition":{"age":30,"matchesPrefix":["p"]}}]}}"#;
    let told = cloud(|_| with(200, &[], BUCKET), &[]);
    let client = client(&format!("gs://locks/p?endpoint={}", told.url()));
    is(&client, "objects.versions", Severity::Warning, "7 days");
    is(&client, "objects.retention", Severity::Problem, "a retention policy");
    is(&client, "objects.lifecycle", Severity::Problem, "deletes");
}

#[test]
fn settings_that_are_not_shown_are_no_fault() {
    let silent = cloud(|_| with(403, &[], r#"{"error":{"errors":[{"reason":"forbidden"}]}}"#), &[]);
    let client = client(&format!("gs://locks/p?endpoint={}", silent.url()));
    for check in ["objects.versions", "objects.retention", "objects.lifecycle"] {
        is(&client, check, Severity::Good, "storage.buckets.get");
    }
    let asked = silent.asked();
    assert!(asked.iter().any(|request| request.path.starts_with("/storage/v1/b/locks?fields=")), "{asked:?}");
}

#[test]
fn a_bucket_that_may_only_be_read_refuses_locks_with_the_right_that_they_take() {
    on_objects::set_keys();
    let denied = "<Error><Code>AccessDenied</Code><Message>hunter2</Message></Error>";
    let read_only = Server::start(move |request: &Request| match request.method.as_str() {
        "GET" => Reply::new(404, "<Error><Code>NoSuchKey</Code></Error>"),
        _ => Reply::new(403, denied),
    });
    let reader = Client::connect(format!("s3://locks?region=eu-west-1&endpoint={}", read_only.url())).unwrap();
    let error = reader.lock("a").wait(PATIENCE).acquire().map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
    let shown = error.to_string();
    assert!(shown.contains("s3:PutObject") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn keys_that_have_expired_are_refused_with_the_place_that_they_come_from() {
    on_objects::set_keys();
    let expired = "<Error><Code>ExpiredToken</Code><Message>hunter2</Message></Error>";
    let server = Server::start(move |_: &Request| Reply::new(400, expired));
    let error = Client::connect(format!("s3://locks?region=eu-west-1&endpoint={}", server.url())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
    let shown = error.to_string();
    assert!(shown.contains("the keys of the environment") && !shown.contains("hunter2"), "{shown}");
}
