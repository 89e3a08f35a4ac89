//! The part of `wit/leasehold.wit` that offers `leasehold_wire::client`.

use std::collections::BTreeSet;

use leasehold_core::op::{Outcome, TransportFault};
use leasehold_wire::client::{
    Access, AccessSignature, AccountKey, AwsCredentials, BearerToken, Credentials, DynamodbStore, EtcdStore,
    HttpRequest, HttpResponse, Input, ObjectsService, ObjectsStore, Output, PasswordLogin, Plaintext, PostgresStore,
    RedisCommands, RedisHttpStore, RedisStore, Response, SetupError, SortKey, Store,
};
use leasehold_wire::postgres::{Notify, RefusalTime};
use leasehold_wire::rest::Dialect;
use leasehold_wire::sigv4::Credentials as Keys;

use super::mirrors::{Shape, mirror, mirrored, shape};
use super::{Source, Wit, assert_none, differences, is_name_of, names_of, type_differences};

/// Methods that only the one with stores has.
pub(crate) const METHODS: [&str; 2] = ["create-wired", "set-credentials"];

mirrored! { own:
    struct RedisStore { retention, replicas }
    struct RedisHttpStore { dialect, url, access, retention, plaintext }
    enum Dialect { Upstash, Webdis }
    enum Access { Anonymous, WithCredentials }
    enum Plaintext { Refused, Allowed }
    struct DynamodbStore { table, region, url, key, sort_key, expires, plaintext }
    struct EtcdStore { url, prefix, access, plaintext }
    struct SortKey { name, value }
    struct PostgresStore { schema, notify }
    enum Notify { Off, On }
    enum RefusalTime { AtLogin, InSession, AtTheEnd }
    struct ObjectsStore { service, url, place, prefix, region, access, plaintext }
    enum ObjectsService { S3, AzureBlob, Gcs, GcsXml, CosmosDb }
    enum Store {
        Operations, Redis(RedisStore), RedisHttp(RedisHttpStore), Dynamodb(DynamodbStore), Etcd(EtcdStore),
        Objects(ObjectsStore), Postgres(PostgresStore),
    }
    struct BearerToken { token, expires_unix_ms }
    struct AccountKey { key }
    struct AccessSignature { query, expires_unix_ms }
    struct PasswordLogin { user, password }
    enum Credentials {
        Aws(AwsCredentials), Token(BearerToken), Password(PasswordLogin), AccountKey(AccountKey),
        AccessSignature(AccessSignature),
    }
    struct HttpRequest { id, node, deadline, method, url, headers, body }
    struct RedisCommands { id, node, deadline, commands }
    struct HttpResponse { status, headers, body }
}

/// Records of the one are several in the other.
#[test]
fn what_stores_are_told_has_its_counterpart() {
    let wit = Wit::parse();
    let own = own().into_iter().filter(|(name, _)| *name != "Credentials");
    let mut found: Vec<String> = own.flat_map(|(name, shape)| type_differences(&wit, name, &shape)).collect();
    let (_, keys) = mirror!(struct Keys { access_key_id, secret_access_key, session_token });
    let (_, aws) = mirror!(struct AwsCredentials { keys, expires_unix_ms });
    let (Shape::Fields(keys), Shape::Fields(aws)) = (keys, aws) else { panic!("structs") };
    let both = keys.into_iter().chain(aws).filter(|name| *name != "keys");
    found.extend(differences("AwsCredentials", both, &names_of(wit.fields("aws-credentials").expect("a record"))));
    assert_none(&found);
    let cases: Vec<&str> = wit.cases("credentials").into_keys().collect();
    assert_eq!(cases, ["access-signature", "account-key", "aws", "password", "token"]);
}

/// The variants that both clients share have the cases of both.
#[test]
fn shared_variants_have_the_cases_of_both() {
    fn output(output: &Output) -> Option<&'static str> {
        match output {
            Output::Core(_) => None,
            Output::HttpRequest(_) => Some("http-request"),
            Output::RedisCommands(_) => Some("redis-commands"),
            Output::Statement(_) => Some("statement"),
        }
    }
    fn input(input: &Input) -> Option<&'static str> {
        match input {
            Input::Core(_) => None,
            Input::Response { id: _, response: _ } => Some("response"),
            Input::SetCredentials { node: _, credentials: _ } => Some("set-credentials"),
        }
    }
    fn response(response: &Response) -> &'static str {
        match response {
            Response::Outcomes(_) => "outcomes",
            Response::Http(_) => "http-response",
            Response::Redis(_) => "redis-replies",
            Response::Postgres(Ok(_)) => "rows",
            Response::Postgres(Err(_)) => "server-error",
            Response::Fault(TransportFault::NotSent(_)) => "not-sent",
            Response::Fault(TransportFault::Unknown(_)) => "unknown",
        }
    }
    fn refusal(error: &SetupError) -> Option<&'static str> {
        match error {
            SetupError::Config(_) => None,
            SetupError::Stores { count: _, nodes: _ } => Some("stores"),
            SetupError::Store { node: _, denial: _ } => Some("store"),
        }
    }
    // Only that they compile: each knows all cases there are.
    let _ = (output as fn(&_) -> _, input as fn(&_) -> _, response as fn(&_) -> _, refusal as fn(&_) -> _);
    let _ = |outcomes: Vec<Outcome>| Response::Outcomes(outcomes);

    let wit = Wit::parse();
    let has = |variant: &str, cases: &[&str]| {
        let there: BTreeSet<&str> = wit.cases(variant).into_keys().collect();
        cases.iter().for_each(|case| assert!(there.contains(case), "{variant}.{case}"));
    };
    has("output", &["transmit", "http-request", "redis-commands", "statement", "need-credentials"]);
    has("input", &["response", "set-credentials"]);
    has("response", &["outcomes", "http-response", "redis-replies", "rows", "server-error", "not-sent", "unknown"]);
    has("config-error", &["stores", "store"]);
    for (record, fields) in [
        ("wrong-store-count", &["count", "nodes"][..]),
        ("refused-store", &["node", "detail"]),
        ("new-credentials", &["node", "credentials"]),
        ("redis-replies", &["replies"]),
        ("statement", &["id", "node", "deadline-ns", "sql", "params"]),
        ("rows", &["rows"]),
        ("server-error", &["code", "message", "when"]),
        ("http-header", &["name", "value"]),
    ] {
        assert_eq!(names_of(wit.fields(record).expect("a record")), fields, "{record}");
    }
}

#[test]
fn the_client_with_stores_has_the_methods_of_the_other() {
    let wit = Wit::parse();
    let source = Source::read(&["wire/client/mod.rs", "wire/resp/reader.rs"]);
    let mut found = Vec::new();
    for (resource, name, made) in [("client", "WireClient", "create-wired"), ("reader", "Reader", "create")] {
        let mut there = wit.methods(resource);
        if name == "WireClient" {
            assert!(there.remove("create").is_some());
        }
        let here = source.methods(name);
        assert!(here.len() > 2, "the source of {name} was not understood: {here:?}");
        for (method, params) in here.iter().filter(|(method, _)| *method != "config") {
            let counterpart =
                if method == "new" { Some(made) } else { there.keys().copied().find(|wit| is_name_of(wit, method)) };
            match counterpart.and_then(|wit| there.remove(wit)) {
                Some(wit) => found.extend(differences(method, params.iter().map(String::as_str), &wit)),
                None => found.push(format!("{name}::{method} has no counterpart")),
            }
        }
        found.extend(there.keys().map(|method| format!("{resource}.{method} has no counterpart in {name}")));
    }
    assert_none(&found);
}

#[test]
fn free_functions_are_few() {
    let wit = Wit::parse();
    let is_free = |function: &&wit_parser::Function| matches!(function.kind, wit_parser::FunctionKind::Freestanding);
    let free: BTreeSet<&str> = wit.functions.iter().filter(is_free).map(|free| free.name.as_str()).collect();
    let known = [
        "attempts-resource",
        "channel",
        "count-attempt",
        "dynamodb",
        "encode",
        "fail-attempt",
        "keep-attempts",
        "limit-attempts",
        "newest-resource",
        "period-key",
        "plan-run",
        "read-about",
        "read-attempts",
        "read-run",
        "redis",
        "released-by",
        "run-resource",
    ];
    assert_eq!(free, known.into());
}
