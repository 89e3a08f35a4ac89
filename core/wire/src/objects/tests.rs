use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use super::*;
use crate::sigv4::{Credentials, Signer};
use crate::{Exchange as _, Progress};
use leasehold_core::member::{Bootstrap, Durability, LossId, Membership, Phase, QuorumId, RETENTION};
use leasehold_core::op::{Acquire, Applied, DenialKind, FaultKind, Finish, Op, Release, Renew};
use leasehold_core::{LockId, Nonce, Owner, Seq, Token};

const TTL: Duration = Duration::from_secs(30);
const NOW: u64 = 1_700_000_000_000;
const ALL: [Service; 4] = [Service::S3, Service::AzureBlob, Service::Gcs, Service::CosmosDb];

type Meanwhile = fn(&mut Bucket);

mod behind;
mod races;
mod trials;

/// The part of a storage service that locks need: one that was checked against real servers.
struct Bucket {
    service: Service,
    objects: BTreeMap<String, (u64, Vec<u8>)>,
    version: u64,
    requests: usize,
    /// Is done before the request of this number.
    meanwhile: Option<(usize, Meanwhile)>,
    /// Reads of this object are behind: they show this instead, so many times.
    behind: Option<(String, (u64, Vec<u8>), usize)>,
}

impl Bucket {
    fn new(service: Service) -> Self {
        Self { service, objects: BTreeMap::new(), version: 0, requests: 0, meanwhile: None, behind: None }
    }

    fn codec(&self) -> Codec {
        codec(self.service)
    }

    fn put(&mut self, key: &str, body: &[u8]) -> u64 {
        self.version += 1;
        self.objects.insert(key.into(), (self.version, body.into()));
        self.version
    }

    fn header(name: &str, value: impl ToString) -> Vec<(String, String)> {
        vec![(name.into(), value.to_string())]
    }

    fn answer(&mut self, request: &Request) -> HttpResponse {
        self.requests += 1;
        if let Some((_, act)) = self.meanwhile.take_if(|(at, _)| *at == self.requests) {
            act(self);
        }
        let sent =
            |name: &str| request.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
        let key = |path: &str| percent_decoded(path.rsplit_once("/locks/").map_or("", |(_, key)| key));
        let named = match self.service {
            Service::S3 | Service::AzureBlob | Service::CosmosDb => "etag",
            Service::Gcs => "x-goog-generation",
        };
        let shown =
            |version: u64| if self.service == Service::Gcs { version.to_string() } else { format!("\"{version}\"") };
        if request.method == Method::Get {
            let key = match self.service {
                Service::S3 | Service::AzureBlob => key(&request.path),
                Service::Gcs => percent_decoded(request.path.strip_prefix("/storage/v1/b/locks/o/").unwrap()),
                Service::CosmosDb => key_of_id(request.path.strip_prefix("/dbs/a/colls/locks/docs/").unwrap()),
            };
            let behind = self.behind.as_mut().filter(|(of, _, left)| *of == key && *left > 0).map(|(_, old, left)| {
                *left -= 1;
                &*old
            });
            return match (behind.or(self.objects.get(&key)), self.service) {
                (Some((version, body)), Service::CosmosDb) => {
                    let mut fields: serde_json::Value = serde_json::from_slice(body).unwrap();
                    fields["_etag"] = format!("\"{version}\"").into();
                    fields["_ts"] = 1.into();
                    let body = fields.to_string().into_bytes();
                    HttpResponse { status: 200, headers: Self::header(named, shown(*version)), body }
                }
                (Some((version, body)), _) => {
                    HttpResponse { status: 200, headers: Self::header(named, shown(*version)), body: body.clone() }
                }
                (None, Service::S3) => response(404, "<Error><Code>NoSuchKey</Code></Error>"),
                (None, Service::AzureBlob) => {
                    HttpResponse { headers: Self::header("x-ms-error-code", "BlobNotFound"), ..response(404, "") }
                }
                (None, Service::Gcs) => response(404, "No such object: locks/a"),
                (None, Service::CosmosDb) => response(404, r#"{"code":"NotFound"}"#),
            };
        }
        let (key, wanted, body) = match self.service {
            Service::S3 | Service::AzureBlob => {
                let wanted = sent("if-match").or_else(|| sent("if-none-match").map(|_| "0".into())).unwrap();
                (key(&request.path), wanted.trim_matches('"').to_string(), request.body.clone())
            }
            Service::Gcs => {
                let text = String::from_utf8(request.body.clone()).unwrap();
                let mut parts = text.split("\r\n").filter(|line| line.starts_with('{'));
                let named: serde_json::Value = serde_json::from_str(parts.next().unwrap()).unwrap();
                let wanted = request.query.split('&').find_map(|pair| pair.strip_prefix("ifGenerationMatch=")).unwrap();
                (named["name"].as_str().unwrap().into(), wanted.into(), parts.next().unwrap().into())
            }
            Service::CosmosDb => {
                let fields: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
                let id = fields["id"].as_str().unwrap();
                assert_eq!(sent("x-ms-documentdb-partitionkey").unwrap(), format!("[\"{id}\"]"));
                let wanted = sent("if-match").unwrap_or("0".into()).trim_matches('"').to_string();
                (key_of_id(id), wanted, request.body.clone())
            }
        };
        let is = self.objects.get(&key).map_or(0, |(version, _)| *version).to_string();
        match (is == wanted, self.service, wanted.as_str()) {
            (true, _, _) => {
                let version = self.put(&key, &body);
                let shown = if self.service == Service::Gcs { version.to_string() } else { format!("\"{version}\"") };
                HttpResponse { status: 200, headers: Self::header(named, shown), body: Vec::new() }
            }
            (false, Service::CosmosDb, "0") => response(409, r#"{"code":"Conflict"}"#),
            (false, Service::AzureBlob, "0") => {
                HttpResponse { headers: Self::header("x-ms-error-code", "BlobAlreadyExists"), ..response(409, "") }
            }
            (false, _, _) => response(412, ""),
        }
    }

    /// Marks it as a node.
    fn join(&mut self) {
        let marker = Marker {
            quorum: QuorumId([1; 16]),
            max_ttl_ms: 60_000,
            stamp: LossId([3; 16]),
            phase: Phase::Member,
            run: None,
        };
        let codec = self.codec();
        let found = codec.found(&self.answer(&codec.look())).unwrap();
        assert_eq!(found, FoundMarker::default());
        let marked = self.answer(&codec.mark(&found, Some(&marker)));
        assert_eq!(codec.marked(&marked), Ok(true));
        let again = self.answer(&codec.mark(&found, Some(&marker)));
        assert_eq!(codec.marked(&again), Ok(false), "what was found is there no more");
        let found = codec.found(&self.answer(&codec.look())).unwrap();
        assert_eq!((found.marker.as_ref(), found.text.as_slice()), (Some(&marker), marker.text().as_bytes()));
    }

    fn ask(&mut self, op: Op) -> Outcome {
        self.with(&mut Memory::default(), "a", op)
    }

    fn with(&mut self, memory: &mut Memory, name: &str, op: Op) -> Outcome {
        let op = LockOp { lock: LockId::new(1), resource: Resource::new(name).unwrap(), op };
        let mut exchange = self.codec().begin(memory, &[op], NOW);
        loop {
            let answers = exchange.requests().iter().map(|request| Ok(self.answer(request))).collect();
            if let Progress::Done(mut outcomes) = exchange.answers(memory, answers) {
                return outcomes.remove(0);
            }
        }
    }
}

fn key_of_id(id: &str) -> String {
    percent_decoded(id).replace(':', "/").replace('=', "%")
}

fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes: Vec<u8> = parts.next().unwrap().bytes().collect();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend(part[2..].bytes());
    }
    String::from_utf8(bytes).unwrap()
}

fn codec(service: Service) -> Codec {
    let root = match service {
        Service::S3 | Service::AzureBlob => "/locks",
        Service::Gcs => "locks",
        Service::CosmosDb => "/dbs/a/colls/locks",
    };
    Codec::new(service, root, "prod/")
}

fn response(status: u16, body: &str) -> HttpResponse {
    HttpResponse::new(status, body.as_bytes().to_vec())
}

fn nonce(of: u8) -> Nonce {
    Nonce::from_bytes([of; 16])
}

fn acquire_in(of: u8, member: Option<Membership>) -> Op {
    Op::Acquire(Box::new(Acquire {
        owner: Owner::new("worker").unwrap(),
        member,
        ..Acquire::new(nonce(of), Seq::new(1), TTL)
    }))
}

fn acquire(of: u8) -> Op {
    acquire_in(of, None)
}

fn member(bootstrap: Bootstrap) -> Membership {
    Membership {
        quorum: QuorumId([1; 16]),
        max_ttl_ms: 60_000,
        durability: Durability::Declared,
        fresh: LossId([2; 16]),
        waited_out: None,
        bootstrap,
        retention: RETENTION,
    }
}

fn release(of: u8) -> Op {
    Op::Release(Release { nonce: nonce(of), quorum: None })
}

fn renew(of: u8, quorum: Option<Durability>) -> Op {
    Op::Renew(Renew { nonce: nonce(of), seq: Seq::new(2), record_ttl: TTL, quorum })
}

fn granted(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Applied(Applied::Acquired { counter }) => counter.get(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lock_passes_from_one_to_the_next_on_every_service() {
    for service in ALL {
        let mut bucket = Bucket::new(service);
        assert_eq!(granted(&bucket.ask(acquire(1))), 1, "{service:?}");
        assert!(matches!(bucket.ask(acquire(2)), Outcome::NotApplied(Refusal::Conflict(_))));
        assert!(matches!(bucket.ask(release(2)), Outcome::NotApplied(Refusal::Conflict(_))));
        assert_eq!(bucket.ask(renew(1, None)), Outcome::Applied(Applied::Renewed));
        assert_eq!(bucket.ask(release(1)), Outcome::Applied(Applied::Released));
        assert_eq!(granted(&bucket.ask(acquire(2))), 2);
        let (token, owner) = (Token::new(2).unwrap(), Owner::new("worker").unwrap());
        let finish = Finish { nonce: nonce(2), token, counter: token, keep: TTL, owner, about: None, quorum: None };
        assert!(matches!(bucket.ask(Op::Finish(Box::new(finish))), Outcome::Applied(Applied::Finished)));
    }
}

#[test]
fn what_was_written_here_needs_no_read() {
    for service in ALL {
        let (mut bucket, mut memory) = (Bucket::new(service), Memory::default());
        for (op, requests) in
            [(acquire(1), 2), (renew(1, None), 1), (release(1), 1), (acquire(2), 1), (release(2), 1), (Op::Read, 1)]
        {
            let before = bucket.requests;
            assert!(matches!(bucket.with(&mut memory, "a", op.clone()), Outcome::Applied(_)), "{op:?}");
            assert_eq!(bucket.requests - before, requests, "{service:?}: {op:?}");
        }
        // A memory that is out of date costs two requests more.
        assert_eq!(granted(&bucket.ask(acquire(3))), 3);
        let before = bucket.requests;
        assert!(matches!(bucket.with(&mut memory, "a", acquire(4)), Outcome::NotApplied(Refusal::Conflict(_))));
        assert_eq!(bucket.requests - before, 2);
    }
}

#[test]
fn a_node_votes_only_under_the_marker_that_it_was_asked_under() {
    for service in ALL {
        let mut bucket = Bucket::new(service);
        let asked = |bootstrap| acquire_in(1, Some(member(bootstrap)));
        // Nobody knows what an unmarked node has forgotten.
        let abstains = bucket.ask(asked(Bootstrap::No));
        assert!(matches!(abstains, Outcome::NotApplied(Refusal::Abstains { .. })), "{service:?}: {abstains:?}");
        assert!(!bucket.objects.contains_key("prod/lock/a.json"), "nothing of the lock was written");
        let mut bucket = Bucket::new(service);
        bucket.join();
        assert_eq!(granted(&bucket.ask(asked(Bootstrap::No))), 1);
        let marker = bucket.objects["prod/quorum.json"].1.clone();
        // The node loses its marker after the lock was written: it counts no more.
        bucket.ask(release(1));
        bucket.requests = 0;
        bucket.meanwhile = Some((4, |bucket| {
            bucket.objects.remove("prod/quorum.json");
        }));
        assert!(matches!(bucket.ask(acquire_in(2, Some(member(Bootstrap::No)))), Outcome::Unknown(_)));
        let missing = bucket.ask(renew(7, Some(Durability::Declared)));
        assert!(matches!(missing, Outcome::NotApplied(Refusal::Abstains { .. })), "{missing:?}");
        bucket.put("prod/quorum.json", &marker);
        assert!(matches!(bucket.ask(renew(7, Some(Durability::Declared))), Outcome::NotApplied(Refusal::Conflict(_))));
        bucket.put("prod/quorum.json", b"{}");
        match bucket.ask(asked(Bootstrap::No)) {
            Outcome::NotApplied(Refusal::Denied(denial)) => assert_eq!(denial.kind, DenialKind::CorruptRecord),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_remembered_marker_is_read_again_before_it_counts() {
    let (mut bucket, mut memory) = (Bucket::new(Service::S3), Memory::default());
    bucket.join();
    let vote = |of| acquire_in(of, Some(member(Bootstrap::No)));
    assert_eq!(granted(&bucket.with(&mut memory, "a", vote(1))), 1);
    bucket.objects.clear();
    let lost = bucket.with(&mut memory.clone(), "a", renew(1, Some(Durability::Declared)));
    assert!(matches!(lost, Outcome::NotApplied(Refusal::Abstains { .. })), "a refusal: {lost:?}");
    let lost = bucket.with(&mut memory, "b", vote(2));
    assert!(matches!(lost, Outcome::Unknown(_)), "a grant: {lost:?}");
}

#[test]
fn requests_are_those_of_each_service() {
    let shown = |request: &Request| {
        let headers: Vec<String> = request.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        format!("{:?} {}?{} {}", request.method, request.path, request.query, headers.join(", "))
    };
    let key = |service| codec(service).key(&Resource::new("a/ü").unwrap()).text;
    assert_eq!(key(Service::S3), "prod/lock/a%2F%C3%BC.json");
    for (service, read, created) in [
        (
            Service::S3,
            "Get /locks/prod/lock/a%252F%25C3%25BC.json? ",
            "Put /locks/prod/lock/a%252F%25C3%25BC.json? if-none-match: *, content-type: application/json",
        ),
        (
            Service::AzureBlob,
            "Get /locks/prod/lock/a%252F%25C3%25BC.json? x-ms-version: 2021-12-02",
            "Put /locks/prod/lock/a%252F%25C3%25BC.json? x-ms-version: 2021-12-02, if-none-match: *, \
             content-type: application/json, x-ms-blob-type: BlockBlob",
        ),
        (
            Service::Gcs,
            "Get /storage/v1/b/locks/o/prod%2Flock%2Fa%252F%25C3%25BC.json?alt=media ",
            "Post /upload/storage/v1/b/locks/o?ifGenerationMatch=0&uploadType=multipart \
             content-type: multipart/related; boundary=leasehold-5e1f",
        ),
        (
            Service::CosmosDb,
            "Get /dbs/a/colls/locks/docs/prod%3Alock%3Aa%3D2F%3DC3%3DBC.json? x-ms-version: 2018-12-31, \
             x-ms-documentdb-partitionkey: [\"prod:lock:a=2F=C3=BC.json\"]",
            "Post /dbs/a/colls/locks/docs? x-ms-version: 2018-12-31, \
             x-ms-documentdb-partitionkey: [\"prod:lock:a=2F=C3=BC.json\"], content-type: application/json",
        ),
    ] {
        let codec = codec(service);
        assert_eq!(shown(&codec.read(&key(service))), read);
        assert_eq!(shown(&codec.write(&key(service), None, b"{}")), created);
    }
}

#[test]
fn a_name_that_does_not_fit_is_cut_and_kept_in_the_object() {
    let long = "ü".repeat(512);
    let other = long.clone() + "x";
    let (mut bucket, mut memory) = (Bucket::new(Service::S3), Memory::default());
    assert_eq!(granted(&bucket.with(&mut memory, &long, acquire(1))), 1);
    assert_eq!(granted(&bucket.with(&mut memory, &other[2..], acquire(1))), 1);
    assert!(bucket.objects.keys().all(|key| key.len() == 1024 && key.contains('!')));
    let keys: String = bucket.objects.keys().map(|key| format!("<Key>{key}</Key>")).collect();
    let page = format!("<ListBucketResult>{keys}<Key>prod/lock/a%2Fb.json</Key><Key>prod/x</Key></ListBucketResult>");
    let codec = bucket.codec();
    let found = codec.listed(&response(200, &page)).unwrap();
    assert_eq!(found.names, [Resource::new("a/b").unwrap()]);
    let names: Vec<_> = found.reads.iter().map(|read| codec.name_in(&bucket.answer(read)).unwrap().unwrap()).collect();
    assert_eq!(names.len(), 2);
    assert!(names.contains(&Resource::new(&long).unwrap()), "{names:?}");
}

#[test]
fn pages_of_names_are_read() {
    let gcs = codec(Service::Gcs);
    let page = r#"{"items":[{"name":"prod/lock/b.json"},{"name":"prod/lock/%zz.json"}],"nextPageToken":"n=="}"#;
    let names = gcs.listed(&response(200, page)).unwrap();
    assert_eq!((names.names.len(), names.next.as_deref()), (1, Some(&b"n=="[..])));
    assert!(gcs.list("a b", b"n==").query.ends_with("&pageToken=n%3D%3D&prefix=prod%2Flock%2Fa%2520b"));
    let azure = codec(Service::AzureBlob);
    let page = "<EnumerationResults><Blobs><Blob><Name>prod/lock/b.json</Name></Blob></Blobs><NextMarker /></EnumerationResults>";
    assert_eq!(azure.listed(&response(200, page)).unwrap().next, None);
    assert!(codec(Service::S3).listed(&response(200, "<html>")).is_err());
    let cosmos = codec(Service::CosmosDb);
    let headers = vec![("x-ms-continuation".into(), "t~1".into())];
    let page = r#"{"Documents":["prod:lock:b=2F.json","prod:quorum.json"]}"#;
    let names = cosmos.listed(&HttpResponse { headers, ..response(200, page) }).unwrap();
    assert_eq!((&names.names[..], names.next.as_deref()), (&[Resource::new("b/").unwrap()][..], Some(&b"t~1"[..])));
    let asked = cosmos.list("b/", b"t~1");
    assert!(!asked.writes() && asked.headers.contains(&("x-ms-continuation", "t~1".into())));
    assert!(core::str::from_utf8(&asked.body).unwrap().contains("\"prod:lock:b=2F\""));
}

#[test]
fn answers_without_success_are_judged() {
    let azure = |status, code: &str| {
        let headers = vec![("x-ms-error-code".to_string(), code.to_string())];
        (Service::AzureBlob, HttpResponse { headers, ..response(status, "") })
    };
    let s3 = |status, code: &str| (Service::S3, response(status, &format!("<Error><Code>{code}</Code></Error>")));
    let gcs = |status, reason: &str| {
        (Service::Gcs, response(status, &format!(r#"{{"error":{{"errors":[{{"reason":"{reason}"}}]}}}}"#)))
    };
    let cosmos = |status, more: &str| {
        let headers = vec![("x-ms-substatus".to_string(), more.to_string())];
        (Service::CosmosDb, HttpResponse { headers, ..response(status, r#"{"code":"Some","message":"words"}"#) })
    };
    let late = r#"{"code":"Forbidden","message":"The authorization token is not valid at the current time."}"#;
    let kind = |(service, response): &(Service, HttpResponse)| match codec(*service).classify(response) {
        Outcome::NotApplied(Refusal::Denied(denial)) => format!("denied {:?}", denial.kind),
        Outcome::NotApplied(Refusal::Throttled(_)) => "throttled".into(),
        Outcome::NotApplied(Refusal::Unavailable(_)) => "unavailable".into(),
        Outcome::NotApplied(Refusal::NeedsCredentials(_)) => "credentials".into(),
        Outcome::Unknown(fault) if fault.kind == FaultKind::Server => "unknown".into(),
        other => format!("{other:?}"),
    };
    for (answer, meaning) in [
        (s3(404, "NoSuchBucket"), "denied Other"),
        (s3(403, "AccessDenied"), "denied Permission"),
        (s3(403, "RequestTimeTooSkewed"), "credentials"),
        (s3(400, "ExpiredToken"), "credentials"),
        (s3(403, "InvalidAccessKeyId"), "credentials"),
        (s3(301, "PermanentRedirect"), "denied Other"),
        (s3(503, "SlowDown"), "throttled"),
        (s3(400, "RequestTimeout"), "unknown"),
        (s3(409, "OperationAborted"), "unavailable"),
        (s3(503, "ServiceUnavailable"), "unknown"),
        (s3(500, "InternalError"), "unknown"),
        (s3(501, "NotImplemented"), "denied Other"),
        (azure(404, "ContainerNotFound"), "denied Other"),
        (azure(409, "ContainerBeingDeleted"), "denied Other"),
        (azure(403, "AuthenticationFailed"), "credentials"),
        (azure(403, "AuthorizationPermissionMismatch"), "denied Permission"),
        (azure(412, "LeaseIdMissing"), "denied Other"),
        (azure(503, "ServerBusy"), "throttled"),
        (azure(500, "OperationTimedOut"), "unknown"),
        (gcs(401, "authError"), "credentials"),
        (gcs(403, "forbidden"), "denied Permission"),
        (gcs(429, "rateLimitExceeded"), "throttled"),
        (gcs(403, "rateLimitExceeded"), "throttled"),
        (gcs(403, "userRateLimitExceeded"), "throttled"),
        (gcs(503, "backendError"), "unknown"),
        (cosmos(401, "0"), "credentials"),
        ((Service::CosmosDb, response(403, late)), "credentials"),
        (cosmos(403, "0"), "denied Permission"),
        (cosmos(403, "3"), "unavailable"),
        (cosmos(404, "1003"), "denied Other"),
        (cosmos(408, "0"), "unknown"),
        (cosmos(410, "1002"), "unknown"),
        (cosmos(429, "3200"), "throttled"),
        (cosmos(404, "1002"), "unavailable"),
        (cosmos(449, "0"), "unavailable"),
        (cosmos(503, "0"), "unknown"),
        ((Service::Gcs, response(502, "<html>oops</html>")), "unknown"),
        ((Service::S3, response(302, "<html>")), "denied Other"),
    ] {
        assert_eq!(kind(&answer), meaning, "{answer:?} {:?}", answer.1.body);
    }
    let moved = HttpResponse { headers: vec![("x-amz-bucket-region".into(), "eu-west-3".into())], ..response(301, "") };
    assert!(format!("{:?}", codec(Service::S3).classify(&moved)).contains("?region=eu-west-3"));
    // A success that shows no version is none.
    for service in ALL {
        let codec = codec(service);
        assert!(matches!(codec.heard_write(Ok(&response(200, "<html>"))), Heard::Failed(Outcome::Unknown(_))));
        assert!(matches!(codec.heard_read(Ok(&response(200, "<html>"))), Heard::Failed(Outcome::Unknown(_))));
    }
}

#[test]
fn lost_replies_are_unknown_only_where_something_may_be_written() {
    let codec = codec(Service::S3);
    let lost = || Err(Outcome::Unknown(leasehold_core::op::Fault::of(FaultKind::Timeout)));
    let op = LockOp { lock: LockId::new(1), resource: Resource::new("a").unwrap(), op: acquire(1) };
    let mut memory = Memory::default();
    let mut exchange = codec.begin(&memory, core::slice::from_ref(&op), NOW);
    let outcomes = exchange.answers(&mut memory, vec![lost()]);
    assert!(matches!(&outcomes, Progress::Done(outcomes) if matches!(outcomes[..], [Outcome::NotApplied(_)])));
    let mut exchange = codec.begin(&memory, &[op], NOW);
    let missing = response(404, "<Error><Code>NoSuchKey</Code></Error>");
    assert_eq!(exchange.answers(&mut memory, vec![Ok(missing)]), Progress::Again);
    let outcomes = exchange.answers(&mut memory, vec![lost()]);
    assert!(matches!(&outcomes, Progress::Done(outcomes) if matches!(outcomes[..], [Outcome::Unknown(_)])));
}

/// "Example: GET Object" and "PUT Object" of AWS's documentation sign other headers than we send, so this vector was made
/// with botocore 1.44.
#[test]
fn signatures_are_those_of_aws() {
    let credentials = Credentials {
        access_key_id: "AKIAIOSFODNN7EXAMPLE".into(),
        secret_access_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
        session_token: Some("token".into()),
    };
    let codec = Codec::new(Service::S3, "", "prod/");
    let request = codec.write("prod/lock/a%2Fb.json", None, b"{}");
    let headers = Signer::new().sign_object(
        &request,
        "locks.s3.eu-west-1.amazonaws.com",
        "eu-west-1",
        &credentials,
        1_440_938_160_000,
    );
    let authorization = headers.iter().find(|(name, _)| *name == "authorization").unwrap().1.to_string();
    assert_eq!(authorization, SIGNED);
}

const SIGNED: &str = "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20150830/eu-west-1/s3/aws4_request, \
    SignedHeaders=content-type;host;if-none-match;x-amz-content-sha256;x-amz-date;x-amz-security-token, \
    Signature=e42ea7cbfa774174ee30f6cb02b99d98dd323fe776cf6140d87baa1a956495ad";

/// The example of "Access control on Azure Cosmos DB resources" in Microsoft's documentation.
#[test]
fn signatures_are_those_of_cosmos_db() {
    let key = "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw==";
    let path = "/dbs/ToDoList".to_string();
    let mut request = Request { path, ..codec(Service::CosmosDb).account() };
    cosmos::set_date(&mut request, 1_493_254_272_000);
    assert!(request.headers.contains(&("x-ms-date", "Thu, 27 Apr 2017 00:51:12 GMT".into())));
    let date = "Thu, 27 Apr 2017 00:51:12 GMT";
    let signed = with_key(Method::Get, &request.path, date, key).unwrap();
    assert_eq!(signed, "type%3Dmaster%26ver%3D1.0%26sig%3Dc09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu%2Bc%2Bc%3D");
    assert_eq!(with_key(Method::Get, &request.path, date, "no base64!"), None);
    assert_eq!(cosmos::with_token("a.b"), "type%3Daad%26ver%3D1.0%26sig%3Da.b");
}

#[test]
fn accounts_and_containers_that_cannot_keep_locks_are_refused() {
    let codec = codec(Service::CosmosDb);
    let account = r#"{"writableLocations":[{}],"enableMultipleWriteLocations":false,
        "userConsistencyPolicy":{"defaultConsistencyLevel":"Session"}}"#;
    let found = codec.properties(&response(200, account)).unwrap();
    assert!(found.reads_may_be_stale() && !found.has_several_write_regions);
    let strong = codec.properties(&response(200, &account.replace("Session", "Strong"))).unwrap();
    assert!(!strong.reads_may_be_stale());
    for several in [account.replace("false", "true"), account.replace("[{}]", "[{},{}]")] {
        assert!(codec.properties(&response(200, &several)).unwrap().has_several_write_regions, "{several}");
    }
    assert!(codec.properties(&response(401, "")).is_err());
    let container = |body: &str| codec.check_container(&response(200, body));
    let id = r#""partitionKey":{"paths":["/id"]}"#;
    assert_eq!(container(&format!("{{{id}}}")), Ok(()));
    assert_eq!(container(&format!(r#"{{{id},"defaultTtl":-1}}"#)), Ok(()));
    for wrong in [&format!(r#"{{{id},"defaultTtl":3600}}"#), r#"{"partitionKey":{"paths":["/pk"]}}"#, "{}", "[]"] {
        assert!(container(wrong).is_err(), "{wrong}");
    }
}
