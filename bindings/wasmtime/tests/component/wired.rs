//! Requests in the formats of stores, made by the component and taken back by it.

use leasehold_wasmtime::client::{
    Event, Failure, HttpResponse, LockEvent, Output, RedisCommands, RedisReplies, Response,
};
use leasehold_wasmtime::ops::DenialKind;
use leasehold_wasmtime::stores::{
    Access, AccessSignature, AccountKey, AwsCredentials, BearerToken, Credentials, Dialect, DynamodbStore, EtcdStore,
    ObjectsService, ObjectsStore, RedisCommand, RedisHttpStore, RedisStore, Store,
};
use leasehold_wasmtime::types::{ConfigError, RefusedStore, WrongStoreCount};
use leasehold_wasmtime::{CallError, Client, Guard, HostError, Limits, Reader, Redis};

use crate::dice::Dice;
use crate::{FRESH, SEED, at, component, config, options};

fn wired(stores: &[Store]) -> Result<Client, CallError<ConfigError>> {
    Client::create_wired(component(), Limits::default(), &config(), stores, &SEED, at(0))
}

fn redis() -> Store {
    Store::Redis(RedisStore { retention_ms: None, replicas: None })
}

fn commands(output: Output) -> RedisCommands {
    if let Output::RedisCommands(commands) = output { commands } else { panic!("{output:?}") }
}

fn reply(client: &mut Client, id: u64, replies: &[u8]) -> Output {
    let response = Response::RedisReplies(RedisReplies { replies: replies.to_vec() });
    client.handle_response(id, &response, at(2)).expect("a call");
    client.poll_output(at(2)).expect("a call")
}

#[test]
fn a_script_that_the_server_does_not_know_is_sent_whole() {
    let mut client = wired(&[redis()]).expect("a client");
    client.acquire(1, "invoice/42", &options(), &FRESH, at(1)).expect("a lock");
    let asked = commands(client.poll_output(at(1)).expect("a call"));
    assert_eq!(asked.commands[0].args[0], b"EVALSHA");
    let again = commands(reply(&mut client, asked.id, b"-NOSCRIPT No matching script\r\n"));
    assert_eq!(again.commands[0].args[0], b"EVAL");
    assert_ne!(again.id, asked.id, "ids are never reused");
    let told = reply(&mut client, again.id, b"-NOPERM this user has no permissions\r\n");
    let Output::Event(LockEvent { lock: 1, event: Event::Failed(failed) }) = told else { panic!("{told:?}") };
    let Failure::Refused(denial) = failed.failure else { panic!("{failed:?}") };
    assert_eq!(denial.kind, DenialKind::Permission, "{}", denial.detail);
}

#[test]
fn a_request_to_dynamodb_waits_for_credentials_and_is_signed() {
    let table = Store::Dynamodb(DynamodbStore {
        table: "locks".into(),
        region: "eu-central-1".into(),
        url: "https://dynamodb.eu-central-1.amazonaws.com".into(),
        key: None,
        sort_key: None,
        expires: None,
        plaintext: None,
    });
    let mut client = wired(&[table]).expect("a client");
    client.acquire(1, "invoice/42", &options(), &FRESH, at(1)).expect("a lock");
    let Output::NeedCredentials(node) = client.poll_output(at(1)).expect("a call") else { panic!("credentials first") };
    let aws = AwsCredentials {
        access_key_id: "AKIDEXAMPLE".into(),
        secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
        session_token: None,
        expires_unix_ms: None,
    };
    client.set_credentials(node.node, &Credentials::Aws(aws), at(1)).expect("keys for a table");
    let request = client.poll_output(at(1)).expect("a call");
    let Output::HttpRequest(request) = request else { panic!("{request:?}") };
    assert_eq!(
        (request.method.as_str(), request.url.as_str()),
        ("POST", "https://dynamodb.eu-central-1.amazonaws.com/")
    );
    let signature = request.headers.iter().find(|header| header.name == "authorization").expect("a signature");
    assert!(signature.value.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20231114/eu-central-1/dynamodb/"));
    assert!(String::from_utf8(request.body).expect("UTF-8").contains("invoice/42"));
    let denied = br#"{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"not authorized"}"#;
    let response = HttpResponse { status: 400, headers: Vec::new(), body: denied.to_vec() };
    client.handle_response(request.id, &Response::HttpResponse(response), at(2)).expect("a call");
    let told = client.poll_output(at(2)).expect("a call");
    let Output::Event(LockEvent { event: Event::Failed(failed), .. }) = told else { panic!("{told:?}") };
    assert!(matches!(failed.failure, Failure::Refused(_)), "{failed:?}");
}

#[test]
fn a_request_to_etcd_is_a_transaction() {
    let url = "https://etcd.example:2379".to_owned();
    let etcd = Store::Etcd(EtcdStore { url, prefix: None, access: Access::Anonymous, plaintext: None });
    let mut client = wired(&[etcd]).expect("a client");
    client.acquire(1, "invoice/42", &options(), &FRESH, at(1)).expect("a lock");
    let mut answer = |body: &[u8]| {
        let request = client.poll_output(at(1)).expect("a call");
        let Output::HttpRequest(request) = request else { panic!("{request:?}") };
        assert_eq!(request.url, "https://etcd.example:2379/v3/kv/txn");
        let response = HttpResponse { status: 200, headers: Vec::new(), body: body.to_vec() };
        client.handle_response(request.id, &Response::HttpResponse(response), at(1)).expect("a call");
        String::from_utf8(request.body).expect("UTF-8")
    };
    let read = answer(br#"{"header":{},"succeeded":true,"responses":[{"response_range":{}}]}"#);
    assert!(read.contains("requestRange") && !read.contains("requestPut"), "{read}");
    let write = answer(br#"{"header":{},"succeeded":true,"responses":[{"response_put":{}}]}"#);
    assert!(write.contains("requestPut") && write.contains("mod_revision"), "{write}");
    let told = client.poll_output(at(1)).expect("a call");
    assert!(matches!(told, Output::Event(LockEvent { event: Event::Acquired(_), .. })), "{told:?}");
}

#[test]
fn a_request_for_an_object_carries_the_credentials_of_its_service() {
    let objects = |service, url: &str, place: &str, region: Option<&str>| {
        Store::Objects(ObjectsStore {
            service,
            url: url.into(),
            place: place.into(),
            prefix: None,
            region: region.map(Into::into),
            access: Access::WithCredentials,
            plaintext: None,
        })
    };
    let keys = || AwsCredentials {
        access_key_id: "AKIDEXAMPLE".into(),
        secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
        session_token: None,
        expires_unix_ms: None,
    };
    let token = || Credentials::Token(BearerToken { token: "a-token".into(), expires_unix_ms: None });
    let azure = || objects(ObjectsService::AzureBlob, "https://acme.blob.core.windows.net", "locks", None);
    let google = |service| objects(service, "https://storage.googleapis.com", "locks", None);
    let s3 = objects(ObjectsService::S3, "https://locks.s3.eu-west-1.amazonaws.com", "", Some("eu-west-1"));
    let cosmos = objects(ObjectsService::CosmosDb, "https://acme.documents.azure.com", "db/locks", None);
    for (store, credentials, authorization) in [
        (s3, Credentials::Aws(keys()), "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20231114/eu-west-1/s3/aws4_request"),
        (azure(), Credentials::AccountKey(AccountKey { key: "QUJD".into() }), "SharedKey acme:"),
        (azure(), token(), "Bearer a-token"),
        (google(ObjectsService::Gcs), token(), "Bearer a-token"),
        (
            google(ObjectsService::GcsXml),
            Credentials::Aws(keys()),
            "GOOG4-HMAC-SHA256 Credential=AKIDEXAMPLE/20231114/",
        ),
        (cosmos, token(), "type%3Daad%26ver%3D1.0%26sig%3Da-token"),
    ] {
        let mut client = wired(std::slice::from_ref(&store)).expect("a client");
        client.acquire(1, "invoice/42", &options(), &FRESH, at(1)).expect("a lock");
        assert!(matches!(client.poll_output(at(1)).expect("a call"), Output::NeedCredentials(_)));
        client.set_credentials(0, &credentials, at(1)).expect("credentials of this service");
        let Output::HttpRequest(request) = client.poll_output(at(1)).expect("a call") else { panic!("{store:?}") };
        assert_eq!((request.method.as_str(), request.body.len()), ("GET", 0), "{store:?}");
        let signed = request.headers.iter().find(|header| header.name == "authorization").expect("a signature");
        assert!(signed.value.starts_with(authorization), "{store:?}: {}", signed.value);
    }
    let mut client = wired(&[azure()]).expect("a client");
    let signature = AccessSignature { query: "?sv=1&sig=secret".into(), expires_unix_ms: None };
    client.set_credentials(0, &Credentials::AccessSignature(signature), at(1)).expect("a signature");
    client.acquire(1, "invoice/42", &options(), &FRESH, at(1)).expect("a lock");
    let Output::HttpRequest(request) = client.poll_output(at(1)).expect("a call") else { panic!("a request") };
    assert!(request.url.ends_with("/locks/leasehold/lock/invoice%252F42.json?sv=1&sig=secret"), "{}", request.url);
    assert!(client.set_credentials(0, &Credentials::Aws(keys()), at(1)).is_err(), "those of another cloud");
}

#[test]
fn stores_that_make_no_sense_are_named() {
    let refused = |stores: &[Store]| wired(stores).err();
    let count = ConfigError::Stores(WrongStoreCount { count: 2, nodes: 1 });
    assert_eq!(refused(&[redis(), redis()]), Some(CallError::Refused(count)));
    let webdis = Store::RedisHttp(RedisHttpStore {
        dialect: Dialect::Webdis,
        url: "ftp://somewhere".into(),
        access: Access::Anonymous,
        retention_ms: None,
        plaintext: None,
    });
    let Some(CallError::Refused(ConfigError::Store(RefusedStore { node: 0, detail }))) = refused(&[webdis]) else {
        panic!("refused")
    };
    assert!(detail.contains("http"), "{detail}");
}

#[test]
fn commands_become_bytes_and_bytes_replies() {
    let mut redis = Redis::new(component(), Limits::default()).expect("an instance");
    let ping = RedisCommand { args: vec![b"PING".to_vec()] };
    let get = RedisCommand { args: vec![b"GET".to_vec(), b"\r\n".to_vec()] };
    assert_eq!(
        redis.encode(&[ping, get]).as_deref(),
        Ok(&b"*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$2\r\n\r\n\r\n"[..])
    );
    let channel = redis.channel("invoice/42").expect("a name");
    assert_eq!(redis.released_by(&channel, b"invoice/42"), Ok(Some("invoice/42".into())));
    assert_eq!(redis.released_by(&channel, b"invoice/43"), Ok(None));
    assert_eq!(redis.channel(""), Err(CallError::Refused(ConfigError::EmptyResource)));

    let mut reader = Reader::create(component(), Limits::default(), None).expect("a reader");
    reader.push(b":1\r\n+O").expect("a call");
    assert_eq!(reader.take(2), Ok(None));
    reader.push(b"K\r\n:3\r\n").expect("a call");
    assert_eq!(reader.take(2), Ok(Some(b":1\r\n+OK\r\n".to_vec())));
    reader.push(b"HTTP/1.1 400\r\n").expect("a call");
    assert!(matches!(reader.take(2), Err(CallError::Refused(_))));
}

#[test]
fn a_reader_of_nothing_is_refused() {
    let made = Reader::create(component(), Limits::default(), Some(0)).err();
    assert!(matches!(made, Some(CallError::Refused(ConfigError::ZeroLimit(_)))), "{made:?}");
}

#[test]
fn random_bytes_never_trap_a_reader() {
    let mut dice = Dice::new(1);
    for _ in 0..500 {
        let bound = dice.is_one_in(2).then(|| 1 + u32::try_from(dice.below(100)).expect("a small number"));
        let mut reader = Reader::create(component(), Limits::default(), bound).expect("a reader");
        for _ in 0..10 {
            reader.push(&dice.replies()).expect("an answer");
            let count =
                if dice.is_one_in(8) { u32::MAX } else { u32::try_from(dice.below(3)).expect("a small number") };
            let taken: Result<_, CallError<_>> = reader.take(count);
            assert!(!matches!(taken, Err(CallError::Host(HostError::Trap(_) | HostError::OutOfFuel))), "{taken:?}");
        }
    }
}

#[test]
fn guards_in_stores_have_their_texts() {
    let mut guard = Guard::create(component(), Limits::default(), None).expect("a guard");
    let dynamodb = guard.dynamodb().expect("a call");
    assert!(dynamodb.claim.contains(&dynamodb.name) && dynamodb.assign.ends_with(&dynamodb.value), "{dynamodb:?}");
    let redis = guard.redis().expect("a call");
    assert!(redis.claim.starts_with(&redis.function) && redis.check_and_set.contains("ARGV[2]"), "{redis:?}");
}
