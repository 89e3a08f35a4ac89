//! Objects of storage services: rounds of several requests, refusals, lost replies, and settings.

use std::time::Duration;

use leasehold_core::config::Wait;
use leasehold_core::{Config, Event, Failure, LostReason, NodeConfig, NodeId};
use leasehold_wire::client::{
    Access, AccessSignature, AccountKey, Credentials, HttpRequest, ObjectsService, ObjectsStore, Plaintext, Response,
    Store, WireClient,
};

use super::common::{Host, UNIX_MS, aws, bearer, header, http, lost, not_sent};

const NO_BLOB: &[(&str, &str)] = &[("x-ms-error-code", "BlobNotFound")];

fn of(service: ObjectsService) -> ObjectsStore {
    let (url, place, region) = match service {
        ObjectsService::S3 => ("https://s3.eu-west-1.amazonaws.com", "locks", "eu-west-1"),
        ObjectsService::AzureBlob => ("https://acme.blob.core.windows.net", "locks", ""),
        ObjectsService::Gcs | ObjectsService::GcsXml => ("https://storage.googleapis.com", "locks", ""),
        ObjectsService::CosmosDb => ("https://acme.documents.azure.com", "db/locks", ""),
    };
    ObjectsStore {
        service,
        url: url.into(),
        place: place.into(),
        prefix: "leasehold/".into(),
        region: region.into(),
        access: Access::WithCredentials,
        plaintext: Plaintext::Refused,
    }
}

fn account_key() -> Credentials {
    Credentials::AccountKey(AccountKey { key: "aHVudGVyMg==".into() })
}

fn signature(query: &str) -> Credentials {
    Credentials::AccessSignature(AccessSignature { query: query.into(), expires_unix_ms: None })
}

fn azure() -> Host {
    let mut host = Host::new(1, vec![Store::Objects(of(ObjectsService::AzureBlob))]);
    host.give(0, account_key());
    host
}

fn written(request: &HttpRequest) -> String {
    assert_eq!(request.method, "PUT");
    String::from_utf8(request.body.clone()).unwrap()
}

fn hold(host: &mut Host) -> String {
    host.acquire(1, Wait::Forever);
    host.answer_http(404, NO_BLOB, "");
    let body = written(&host.http[0]);
    host.answer_http(201, &[("etag", "\"1\"")], "");
    assert!(matches!(host.last_event(), Event::Acquired { .. }), "{:?}", host.events);
    body
}

/// The object of a lock: its version, and its body.
#[derive(Default)]
struct Blob {
    version: u64,
    body: String,
    /// Every body that was written.
    written: Vec<String>,
}

impl Blob {
    fn answer(&mut self, request: &HttpRequest) -> Response {
        let etag = format!("\"{}\"", self.version);
        if request.method == "GET" {
            return match self.version {
                0 => http(404, NO_BLOB, ""),
                _ => http(200, &[("etag", etag.as_str())], &self.body),
            };
        }
        let holds = match self.version {
            0 => header(request, "if-none-match") == Some("*"),
            _ => header(request, "if-match") == Some(etag.as_str()),
        };
        if !holds {
            return http(412, &[("x-ms-error-code", "ConditionNotMet")], "");
        }
        (self.version, self.body) = (self.version + 1, written(request));
        assert!(!self.written.contains(&self.body), "no body occurs twice");
        self.written.push(self.body.clone());
        http(201, &[("etag", format!("\"{}\"", self.version).as_str())], "")
    }

    /// Serves until the lock is granted.
    fn grant(&mut self, host: &mut Host) -> u64 {
        loop {
            match (host.token(), host.http.pop_front()) {
                (Some(token), _) => return token,
                (None, Some(request)) => {
                    let answer = self.answer(&request);
                    host.answer(request.id, answer);
                }
                (None, None) => host.sleep(),
            }
        }
    }
}

#[test]
fn a_lost_reply_to_a_write_is_no_second_grant() {
    for is_applied in [true, false] {
        let (mut host, mut blob) = (azure(), Blob::default());
        host.acquire(1, Wait::Forever);
        host.answer_http(404, NO_BLOB, "");
        let write = host.http.pop_front().unwrap();
        if is_applied {
            blob.answer(&write);
        }
        host.answer(write.id, lost());
        assert_eq!(host.token(), None, "nobody knows");
        blob.grant(&mut host);
        assert_eq!(blob.written.len(), 1, "its own record is known by its nonce");
        // The same for a release.
        host.release(1);
        let write = host.http.pop_front().unwrap();
        if is_applied {
            blob.answer(&write);
        }
        host.answer(write.id, lost());
        while !host.events.iter().any(|event| matches!(event, Event::Released { .. })) {
            match host.http.pop_front() {
                Some(request) => {
                    let answer = blob.answer(&request);
                    host.answer(request.id, answer);
                }
                None => host.sleep(),
            }
        }
        assert!(blob.body.contains("\"released\":true"), "{}", blob.body);
    }
}

#[test]
fn a_renewal_without_an_answer_is_late_and_then_lost() {
    let mut host = azure();
    hold(&mut host);
    while !host.events.iter().any(|event| matches!(event, Event::Lost { .. })) {
        host.sleep();
        while let Some(request) = host.http.pop_front() {
            host.answer(request.id, not_sent());
        }
    }
    let Event::Lost { reason, .. } = host.last_event() else { panic!("{:?}", host.events) };
    assert_eq!(*reason, LostReason::Expired);
}

#[test]
fn a_record_of_another_client_ends_the_lease() {
    let mut host = azure();
    let body = hold(&mut host);
    host.sleep();
    host.answer_http(412, &[("x-ms-error-code", "ConditionNotMet")], "");
    let stolen = body.replace("\"owner\":\"me\"", "\"owner\":\"thief\"");
    let nonce = stolen.split("\"nonce\":\"").nth(1).unwrap()[..32].to_owned();
    host.answer_http(200, &[("etag", "\"9\"")], &stolen.replace(&nonce, &"0b".repeat(16)));
    let Event::Lost { reason, .. } = host.last_event() else { panic!("{:?}", host.events) };
    assert!(matches!(reason, LostReason::TakenOver { .. }), "{reason:?}");
}

/// Of everything else a fixed key says that the server is right.
#[test]
fn a_refused_token_waits_for_another_and_a_refused_key_does_not() {
    let refused = &[("x-ms-error-code", "AuthenticationFailed")];
    for (credentials, waits) in [(bearer("OLD"), true), (signature("sv=1&sig=OLD"), true), (account_key(), false)] {
        let mut host = Host::new(1, vec![Store::Objects(of(ObjectsService::AzureBlob))]);
        host.give(0, credentials);
        host.asked.clear();
        host.acquire(1, Wait::Once);
        host.answer_http(403, refused, "");
        assert_eq!((host.asked.as_slice(), host.http.is_empty()), (&[0][..], true));
        let failed = host.events.iter().any(|event| matches!(event, Event::Failed { .. }));
        assert_eq!(failed, !waits, "{:?}", host.events);
        if waits {
            host.give(0, bearer("NEW"));
            assert_eq!(header(&host.http[0], "authorization"), Some("Bearer NEW"));
            // Once only.
            host.answer_http(403, refused, "");
            assert!(host.http.is_empty());
        }
    }
}

#[test]
fn a_token_is_asked_for_before_it_expires() {
    let mut host = Host::new(1, vec![Store::Objects(of(ObjectsService::Gcs))]);
    let Credentials::Token(mut token) = bearer("OLD") else { panic!("a token") };
    token.expires_unix_ms = Some(UNIX_MS + 301_000);
    host.give(0, Credentials::Token(token));
    host.asked.clear();
    host.acquire(1, Wait::Once);
    host.answer_http(404, &[], "Not Found");
    host.answer_http(200, &[], r#"{"generation":"1"}"#);
    assert!(host.asked.is_empty());
    while host.asked.is_empty() {
        host.sleep();
        while let Some(request) = host.http.pop_front() {
            assert_eq!(header(&request, "authorization"), Some("Bearer OLD"));
            host.answer(request.id, http(200, &[], r#"{"generation":"2"}"#));
        }
        assert!(host.now.unix_ms < UNIX_MS + 60_000, "before it expires");
    }
}

#[test]
fn a_signature_is_in_the_url_and_not_shown() {
    let mut host = Host::new(1, vec![Store::Objects(of(ObjectsService::AzureBlob))]);
    host.give(0, signature("?sv=1&sig=hunter2"));
    host.acquire(1, Wait::Once);
    let request = &host.http[0];
    assert_eq!(
        request.url,
        "https://acme.blob.core.windows.net/locks/leasehold/lock/invoice%252F42.json?sv=1&sig=hunter2"
    );
    assert_eq!(header(request, "authorization"), None);
    assert!(!format!("{request:?} {:?}", signature("sig=hunter2")).contains("hunter2"), "{request:?}");
}

#[test]
fn credentials_of_another_kind_are_refused() {
    use ObjectsService::{AzureBlob, CosmosDb, Gcs, GcsXml, S3};
    let hmac = || {
        let Credentials::Aws(mut keys) = aws("GOOG", None) else { panic!("keys") };
        keys.keys.session_token = None;
        Credentials::Aws(keys)
    };
    for (service, credentials, fits) in [
        (S3, aws("AKID", None), true),
        (S3, bearer("t"), false),
        (S3, account_key(), false),
        (AzureBlob, account_key(), true),
        (AzureBlob, bearer("t"), true),
        (AzureBlob, signature("sig=x"), true),
        (AzureBlob, signature("hunter2"), false),
        (AzureBlob, aws("AKID", None), false),
        (AzureBlob, Credentials::AccountKey(AccountKey { key: "no base64!".into() }), false),
        (Gcs, bearer("t"), true),
        (Gcs, hmac(), false),
        (GcsXml, hmac(), true),
        (GcsXml, bearer("t"), true),
        (GcsXml, aws("with a session", None), false),
        (CosmosDb, account_key(), true),
        (CosmosDb, bearer("t"), true),
        (CosmosDb, signature("sig=x"), false),
    ] {
        let mut host = Host::new(1, vec![Store::Objects(of(service))]);
        let set = host.client.set_credentials(NodeId::new(0), credentials, host.now);
        assert_eq!(set.is_ok(), fits, "{service:?}: {set:?}");
        assert!(!format!("{set:?}").contains("hunter2"), "{set:?}");
    }
    let anonymous = ObjectsStore { access: Access::Anonymous, ..of(Gcs) };
    let mut host = Host::new(1, vec![Store::Objects(anonymous)]);
    assert!(host.client.set_credentials(NodeId::new(0), bearer("t"), host.now).is_err());
    host.acquire(1, Wait::Once);
    assert_eq!((host.http.len(), header(&host.http[0], "authorization")), (1, None));
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    use ObjectsService::{AzureBlob, CosmosDb, Gcs, S3};
    let made = |stores: Vec<ObjectsStore>| {
        let config = Config::new(vec![NodeConfig::default(); stores.len()]).unwrap();
        let now = Host::new(1, vec![Store::Operations]).now;
        WireClient::new(config, stores.into_iter().map(Store::Objects).collect(), [0; 32], now)
    };
    for (service, change, words) in [
        (S3, (|store: &mut ObjectsStore| store.region = String::new()) as fn(&mut ObjectsStore), "region"),
        (S3, |store| store.place = "a/b".into(), "BUCKET"),
        (S3, |store| store.place = "..".into(), "BUCKET"),
        (S3, |store| store.url = "https://host/path".into(), "path"),
        (S3, |store| store.url = "http://host".into(), "everybody"),
        (AzureBlob, |store| store.place = String::new(), "CONTAINER"),
        (AzureBlob, |store| store.place = "a/b/c".into(), "CONTAINER"),
        (Gcs, |store| store.place = "a?b".into(), "BUCKET"),
        (Gcs, |store| store.prefix = "no-slash".into(), "prefix"),
        (Gcs, |store| store.prefix = "../".into(), "prefix"),
        (CosmosDb, |store| store.place = "db".into(), "DATABASE"),
    ] {
        let mut store = of(service);
        change(&mut store);
        let error = made(vec![store]).unwrap_err().to_string();
        assert!(error.contains(words), "{service:?}: {error}");
    }
    let hosted = ObjectsStore { place: String::new(), url: "https://locks.s3.amazonaws.com".into(), ..of(S3) };
    assert!(made(vec![hosted]).is_ok());
    let emulator = ObjectsStore { place: "account/locks".into(), url: "http://127.0.0.1:1".into(), ..of(AzureBlob) };
    assert!(made(vec![emulator]).is_ok());
    assert!(made(vec![of(AzureBlob), of(Gcs), of(S3)]).is_ok());
    let error = made(vec![of(AzureBlob), of(Gcs), of(CosmosDb)]).unwrap_err().to_string();
    assert!(error.contains("node of a quorum"), "{error}");
}

/// The meaning of each answer for an acquisition that does not wait.
#[test]
fn faults_are_told_apart() {
    let found = "<Error><Code>NoSuchBucket</Code></Error>";
    for (answer, expected) in [
        (http(404, &[("x-ms-error-code", "ContainerNotFound")], found), "Refused"),
        (http(403, &[("x-ms-error-code", "AuthorizationPermissionMismatch")], ""), "Refused"),
        (http(301, &[("location", "https://elsewhere")], ""), "Refused"),
        (http(429, &[], ""), "Throttled"),
        (http(503, &[("x-ms-error-code", "ServerBusy")], ""), "Throttled"),
        (http(503, &[], "<html>"), "Unavailable"),
        (http(500, &[], ""), "Unavailable"),
        (http(200, &[], "<html>"), "Unavailable"),
        (http(200, &[("etag", "\"1\"")], "{\"counter\":"), "Refused"),
        (lost(), "Unavailable"),
        (not_sent(), "Unavailable"),
        (Response::Redis(Vec::new()), "Unavailable"),
    ] {
        let mut host = azure();
        host.acquire(1, Wait::Once);
        let mut answers = 0;
        while !host.events.iter().any(|event| matches!(event, Event::Failed { .. })) {
            match host.http.pop_front() {
                Some(request) => host.answer(request.id, answer.clone()),
                None => host.pass(Duration::from_millis(200)),
            }
            answers += 1;
            assert!(answers < 100, "{answer:?}: {:?}", host.events);
        }
        let Event::Failed { failure, .. } = host.last_event() else { panic!("{:?}", host.events) };
        let told = match failure {
            Failure::Refused(_) => "Refused",
            Failure::Throttled(_) => "Throttled",
            Failure::Unavailable(_) => "Unavailable",
            other => panic!("{other:?}"),
        };
        assert_eq!(told, expected, "{answer:?}: {failure:?}");
    }
}
