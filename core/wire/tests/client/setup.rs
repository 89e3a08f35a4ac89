//! Stores that make no sense are refused before anything is sent.

use std::time::Duration;

use leasehold_core::config::Poll;
use leasehold_core::member::RETENTION;
use leasehold_core::{Config, Monotonic, NodeConfig, NodeId, Now};
use leasehold_wire::client::{
    Access, DynamodbStore, Input, Output, Plaintext, RedisHttpStore, RedisStore, SetupError, SortKey, Store, WireClient,
};
use leasehold_wire::rest::Dialect;

use super::common::{aws, bearer, dynamodb_store, redis_http};

const NOW: Now = Now { monotonic: Monotonic::from_ns(1), unix_ms: 1 };

fn made(stores: Vec<Store>) -> Result<WireClient, SetupError> {
    let node = NodeConfig { watch: true, ..NodeConfig::default() };
    WireClient::new(Config::new(vec![node; stores.len().max(1)]).unwrap(), stores, [0; 32], NOW)
}

#[test]
fn each_node_has_a_store() {
    assert_eq!(made(Vec::new()).unwrap_err(), SetupError::Stores { count: 0, nodes: 1 });
    assert!(made(vec![Store::Operations, Store::Redis(RedisStore::default())]).is_ok());
}

#[test]
fn a_store_decides_how_it_is_polled() {
    let stores = vec![
        Store::Dynamodb(dynamodb_store()),
        redis_http(Dialect::Webdis, Access::Anonymous),
        Store::Redis(RedisStore::default()),
        Store::Operations,
    ];
    let client = made(stores).unwrap();
    let decided: Vec<_> = client.config().nodes().iter().map(|node| (node.poll, node.watch, node.batch)).collect();
    assert_eq!(
        decided,
        [(Poll::Read, false, 32), (Poll::Acquire, false, 100), (Poll::Acquire, true, 100), (Poll::Acquire, true, 100)]
    );
}

#[test]
fn settings_that_no_store_has_are_refused_with_the_node() {
    let dynamodb = |change: fn(&mut DynamodbStore)| {
        let mut store = dynamodb_store();
        change(&mut store);
        Store::Dynamodb(store)
    };
    let http = |change: fn(&mut RedisHttpStore)| {
        let mut store = RedisHttpStore {
            dialect: Dialect::Upstash,
            url: "https://host".into(),
            access: Access::WithCredentials,
            retention: RETENTION,
            plaintext: Plaintext::Refused,
        };
        change(&mut store);
        Store::RedisHttp(store)
    };
    for (wrong, words) in [
        (dynamodb(|store| store.table = "a b".into()), "not the name of a table"),
        (dynamodb(|store| store.key = Some(String::new())), "key"),
        (dynamodb(|store| store.sort_key = Some(SortKey { name: "key".into(), value: "-".into() })), "sort key"),
        (dynamodb(|store| store.expires = Some("ownerName".into())), "expiry"),
        (dynamodb(|store| store.region = "eu west".into()), "region"),
        (dynamodb(|store| store.region = String::new()), "region"),
        (dynamodb(|store| store.table = "arn:aws:dynamodb:us-east-1:123456789012:table/locks".into()), "Region"),
        (dynamodb(|store| store.url = "https://host/path".into()), "path"),
        (dynamodb(|store| store.url = "http://host".into()), "everybody"),
        (http(|store| store.url = "redis://host".into()), "https://"),
        (http(|store| store.url = "https://user:password@host".into()), "credentials"),
        (http(|store| store.url = "http://host".into()), "everybody"),
    ] {
        let error = made(vec![Store::Operations, wrong]).unwrap_err();
        assert!(matches!(error, SetupError::Store { node, .. } if node == NodeId::new(1)), "{error}");
        assert!(error.to_string().contains(words) && !error.to_string().contains("password@"), "{error}");
    }
    for right in [
        dynamodb(|store| store.url = "http://127.0.0.1:8000".into()),
        dynamodb(|store| (store.url, store.plaintext) = ("http://host".into(), Plaintext::Allowed)),
        http(|store| (store.url, store.access) = ("http://host:7379/below".into(), Access::Anonymous)),
    ] {
        assert!(made(vec![right]).is_ok());
    }
    let redis = |retention| made(vec![Store::Redis(RedisStore { retention, replicas: None })]);
    let century = Duration::from_secs(3_153_600_000);
    for retention in [Duration::ZERO, Duration::from_micros(999), century + Duration::from_nanos(1)] {
        let error = redis(retention).unwrap_err();
        assert!(matches!(error, SetupError::Config(_)), "{error}");
    }
    assert!(redis(Duration::from_millis(1)).is_ok() && redis(century).is_ok());
}

#[test]
fn a_step_with_wrong_credentials_does_nothing() {
    let mut client = made(vec![redis_http(Dialect::Upstash, Access::WithCredentials)]).unwrap();
    let acquire = || {
        Input::Core(leasehold_core::Input::Acquire {
            lock: leasehold_core::LockId::new(1),
            resource: leasehold_core::Resource::new("r").unwrap(),
            options: leasehold_core::LockOptions::builder().build().unwrap(),
        })
    };
    let set = |credentials| Input::SetCredentials { node: NodeId::new(0), credentials };
    let mut outputs = Vec::new();
    assert!(client.step(&[1; 16], NOW, vec![acquire(), set(aws("AKID", None))], &mut outputs).is_err());
    assert!(outputs.is_empty() && client.is_idle());
    let wake_at = client.step(&[1; 16], NOW, vec![acquire(), set(bearer("token"))], &mut outputs).unwrap();
    assert!(matches!(&outputs[..], [Output::HttpRequest(_)]), "{outputs:?}");
    assert!(wake_at < Monotonic::FAR);
}
