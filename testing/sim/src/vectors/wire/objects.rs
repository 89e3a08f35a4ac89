//! Objects of storage services, with each kind of credentials.

use leasehold_core::config::Wait;
use leasehold_wire::client::{Access, ObjectsService, ObjectsStore, Plaintext, Store};

use super::dynamodb::keys;
use super::scenario::Scenario;
use crate::format::{Credentials, WireVector};

pub(super) const ALL: &[fn() -> WireVector] =
    &[objects_s3, objects_azure, objects_gcs, objects_hmac, objects_cosmos, objects_clock, objects_errors];

/// A record that another client has released.
const RELEASED: &str = r#"{"counter":1800000000000000,"lease":{"data":null,"nonce":"0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b","owner":"host-b","released":true,"seq":7,"since_ms":1700000000000,"ttl_ns":20000000000}}"#;

fn objects(service: ObjectsService, url: &str, place: &str, region: &str) -> Store {
    Store::Objects(ObjectsStore {
        service,
        url: url.to_owned(),
        place: place.to_owned(),
        prefix: "leasehold/".to_owned(),
        region: region.to_owned(),
        access: Access::WithCredentials,
        plaintext: Plaintext::Refused,
    })
}

fn azure() -> Store {
    objects(ObjectsService::AzureBlob, "https://acme.blob.core.windows.net", "locks", "")
}

fn gcs(service: ObjectsService) -> Store {
    objects(service, "https://storage.googleapis.com", "locks", "")
}

fn token(token: &str, expires_unix_ms: Option<u64>) -> Credentials {
    Credentials::Token { token: token.to_owned(), expires_unix_ms }
}

fn account_key() -> Credentials {
    Credentials::AccountKey { key: "QWNjb3VudEtleU9mVGVzdHM=".to_owned() }
}

impl Scenario {
    fn etag(&mut self, status: u16, etag: &str, body: &str) -> &mut Self {
        self.http(status, &[("ETag", etag)], body)
    }

    fn code(&mut self, status: u16, code: &str) -> &mut Self {
        let body = format!("<Error><Code>{code}</Code></Error>");
        self.http(status, &[("Content-Type", "application/xml"), ("x-ms-error-code", code)], &body)
    }
}

fn objects_s3() -> WireVector {
    let mut s = Scenario::new(
        "objects_s3",
        "An object is read, and written where nobody has written since. What was written from here needs no read.",
        &[objects(ObjectsService::S3, "https://locks.s3.eu-west-1.amazonaws.com", "", "eu-west-1")],
    );
    s.acquire(1, "invoice/42", Wait::Once)
        .give(0, keys("AKIDEXAMPLE", None))
        .code(404, "NoSuchKey")
        .etag(200, "\"1\"", "");
    s.wake_until_sent().etag(200, "\"2\"", "");
    s.release(1).etag(200, "\"3\"", "");
    s.acquire(2, "invoice/42", Wait::Once)
        .code(412, "PreconditionFailed")
        .etag(200, "\"4\"", RELEASED)
        .etag(200, "\"5\"", "");
    s.release(2).lost().wake_until_sent().etag(200, "\"6\"", RELEASED);
    s.told()
}

fn objects_azure() -> WireVector {
    let mut s = Scenario::new(
        "objects_azure",
        "Azure Blob Storage takes the key of an account, a shared access signature or a token; one that is refused was not \
         used, and the request is sent again with the next.",
        &[azure()],
    );
    s.acquire(1, "invoice/42", Wait::Once).give(0, account_key()).code(404, "BlobNotFound").etag(201, "\"0x1\"", "");
    s.give(0, Credentials::AccessSignature { query: "?sv=2021-12-02&sig=abc%3D".to_owned(), expires_unix_ms: None });
    s.release(1).code(403, "AuthenticationFailed").give(0, token("NEW", None)).etag(201, "\"0x2\"", "");
    s.acquire(2, "another", Wait::Once).code(404, "BlobNotFound").code(409, "BlobAlreadyExists");
    s.etag(200, "\"0x3\"", RELEASED).etag(201, "\"0x4\"", "");
    s.told()
}

fn objects_gcs() -> WireVector {
    let mut s = Scenario::new(
        "objects_gcs",
        "Google's JSON API takes a token, and another is asked for before it expires.",
        &[gcs(ObjectsService::Gcs)],
    );
    s.acquire(1, "invoice/42", Wait::Once).give(0, token("OLD", Some(1_700_000_310_000)));
    s.http(404, &[], "No such object: locks/leasehold/lock/invoice%2F42.json");
    s.http(200, &[], r#"{"generation":"17"}"#);
    s.release(1).http(401, &[], "{}").give(0, token("NEW", None)).http(200, &[], r#"{"generation":"18"}"#);
    s.told()
}

fn objects_hmac() -> WireVector {
    let mut s = Scenario::new(
        "objects_hmac",
        "Google's XML API takes an HMAC key, and signatures much like those of AWS.",
        &[gcs(ObjectsService::GcsXml)],
    );
    s.acquire(1, "invoice/42", Wait::Once).give(0, keys("GOOGEXAMPLE", None)).code(404, "NoSuchKey");
    s.http(200, &[("x-goog-generation", "17")], "");
    s.release(1).code(412, "PreconditionFailed").http(200, &[("x-goog-generation", "18")], RELEASED);
    s.told()
}

fn objects_cosmos() -> WireVector {
    let mut s = Scenario::new(
        "objects_cosmos",
        "A document of Cosmos DB is created by a request of its own. A read begins again where it was created meanwhile.",
        &[objects(ObjectsService::CosmosDb, "https://acme.documents.azure.com", "db/locks", "")],
    );
    s.acquire(1, "invoice/42", Wait::Once).give(0, account_key());
    s.http(404, &[], r#"{"code":"NotFound"}"#).http(409, &[], r#"{"code":"Conflict"}"#);
    s.etag(200, "\"0001\"", RELEASED).etag(200, "\"0002\"", "{}");
    s.give(0, token("entra", None));
    s.release(1).etag(200, "\"0003\"", "{}");
    s.told()
}

fn objects_clock() -> WireVector {
    let mut s = Scenario::new(
        "objects_clock",
        "A request that is refused for its date is signed once more, by the service's clock, and so are all others.",
        &[azure()],
    );
    let late = "<Error><AuthenticationErrorDetail>Request date header too old</AuthenticationErrorDetail></Error>";
    let headers = [("x-ms-error-code", "AuthenticationFailed"), ("Date", "Tue, 14 Nov 2023 23:13:20 GMT")];
    s.acquire(1, "invoice/42", Wait::Once).give(0, account_key()).http(403, &headers, late);
    s.code(404, "BlobNotFound").etag(201, "\"0x1\"", "");
    s.acquire(2, "another", Wait::Once).http(403, &headers, late).http(403, &headers, late);
    s.told()
}

fn objects_errors() -> WireVector {
    let mut s = Scenario::new(
        "objects_errors",
        "What the service refuses was not done; what it fails at, or a proxy, may have been, if it was a write.",
        &[azure()],
    );
    s.give(0, account_key());
    for (lock, (status, code)) in (1..).zip([
        (404, "ContainerNotFound"),
        (403, "AuthorizationPermissionMismatch"),
        (403, "AuthenticationFailed"),
        (503, "ServerBusy"),
        (429, ""),
        (500, "InternalError"),
        (301, ""),
    ]) {
        s.acquire(lock, &format!("lock {lock}"), Wait::Once).code(status, code);
    }
    s.acquire(20, "page", Wait::Once).http(200, &[], "<html>");
    s.acquire(21, "write", Wait::Once).code(404, "BlobNotFound").code(500, "OperationTimedOut");
    s.told()
}
