//! Tables that are missing, of another shape, far away, or not to be looked at: told when connecting, or harmless.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::common::log::Log;
use crate::common::on_dynamodb::{set_keys, table_of, through};
use crate::common::{PATIENCE, Role, connect_patiently, ms, role_args, say};
use crate::gateway::{Gateway, describing, error, operation};
use crate::{new_table, new_url, server};
use leasehold::blocking::Client;
use leasehold::table::{self, Made, NewTable};
use leasehold::{Error, ErrorKind};
use leasehold_servers::dynamodb::Server;
use leasehold_servers::proxy::Proxy;
use serde_json::{Value, json};

#[track_caller]
fn says(error: &Error, kind: ErrorKind, words: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "no {word:?} in {error}");
    }
}

#[track_caller]
fn refused(url: &str) -> Error {
    Client::connect(url).expect_err(url)
}

/// A table before which a gateway stands, and its url through that.
fn behind_a_gateway() -> (Arc<Server>, Gateway, String) {
    let server = Arc::new(server());
    let url = new_table(&server);
    let gateway = Gateway::before(&server);
    let url = through(&url, gateway.address());
    (server, gateway, url)
}

fn forbid_looking(gateway: &Gateway) {
    gateway.answer(|request| {
        let is_look = operation(request) == Some("DescribeTable");
        is_look.then(|| error(400, "AccessDeniedException", "not authorized to perform: dynamodb:DescribeTable"))
    });
}

#[test]
fn a_table_that_is_missing_or_deleted_is_reported() {
    let server = server();
    let url = new_url(&server);
    says(&refused(&url), ErrorKind::StoreRefused, &[table_of(&url), "leasehold table create"]);
    table::create(&url, &NewTable::default()).unwrap();
    let client = Client::connect(&url).unwrap();
    server.command("DeleteTable", &json!({"TableName": table_of(&url)}));
    let error = client.lock("job").wait(ms(1_000)).acquire().unwrap_err();
    says(&error, ErrorKind::StoreRefused, &[table_of(&url), "leasehold table create"]);
    table::create(&url, &NewTable::default()).unwrap();
    client.lock("job").wait(PATIENCE).acquire().unwrap().release().unwrap();
}

#[test]
fn a_table_with_another_key_is_reported_with_both_keys() {
    let server = server();
    let plain = new_table(&server);
    let sorted = format!("{}&key=pk&sort_key=sk", new_url(&server));
    table::create(&sorted, &NewTable::default()).unwrap();
    let client = Client::connect(&sorted).unwrap();
    client.lock("job").acquire().unwrap().release().unwrap();
    let item = json!({"pk": {"S": "job"}, "sk": {"S": "-"}});
    let found = server.command("GetItem", &json!({"TableName": table_of(&sorted), "Key": item}));
    assert_eq!(found["Item"]["isReleased"], json!({"S": "1"}));
    let shorter = sorted.replace("&sort_key=sk", "");
    says(&refused(&shorter), ErrorKind::StoreRefused, &["\"pk\" (S) and \"sk\" (S)", "uses \"pk\" (S)"]);
    says(&refused(&format!("{plain}&key=other")), ErrorKind::StoreRefused, &["\"key\" (S)", "uses \"other\" (S)"]);
    // Where the description is not to be had, the first row tells as much.
    let server = Arc::new(server);
    let gateway = Gateway::before(&server);
    forbid_looking(&gateway);
    for url in [shorter.as_str(), &format!("{plain}&key=other")] {
        let (_, rest) = url.split_once(&server.endpoint()).unwrap();
        let error = refused(&format!("{}{rest}", through(url, gateway.address())));
        says(&error, ErrorKind::StoreRefused, &["does not fit the table", "partition key"]);
    }
}

/// As AWS says it may be.
#[test]
fn a_table_that_is_made_is_waited_for_until_it_is_known() {
    let server = Arc::new(server());
    let gateway = Gateway::before(&server);
    let looks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&looks);
    gateway.answer(move |request| {
        let is_early = operation(request) == Some("DescribeTable") && counted.fetch_add(1, Ordering::SeqCst) < 3;
        is_early.then(|| error(400, "ResourceNotFoundException", "Requested resource not found: Table: unknown"))
    });
    let url = through(&new_url(&server), gateway.address());
    assert_eq!(table::create(&url, &NewTable::default()).unwrap().made, Made::New);
    assert_eq!(looks.load(Ordering::SeqCst), 4);
    // Where that may not be seen at all, waiting does not help.
    forbid_looking(&gateway);
    let error = table::create(&through(&new_url(&server), gateway.address()), &NewTable::default()).unwrap_err();
    says(&error, ErrorKind::StoreRefused, &["dynamodb:DescribeTable is needed"]);
}

#[test]
fn the_right_to_look_at_the_table_is_not_needed() {
    let (_server, gateway, url) = behind_a_gateway();
    forbid_looking(&gateway);
    let client = Client::connect(&url).unwrap();
    let lease = client.lock("job").ttl(ms(20_000)).acquire().unwrap();
    lease.check(ms(1)).unwrap();
    lease.release().unwrap();
    let error = refused(&format!("{url}&require_strong=true"));
    says(&error, ErrorKind::StoreRefused, &["cannot be read", "dynamodb:DescribeTable"]);
}

#[test]
fn replicas_that_lag_are_warned_of_or_refused() {
    let (_server, gateway, url) = behind_a_gateway();
    let described = |more: Value| {
        gateway.answer(move |request| (operation(request) == Some("DescribeTable")).then(|| describing(&more)));
    };
    let strictly = format!("{url}&require_strong=true");
    let connect = |url: &str| {
        let log = Log::default();
        let client = tracing::subscriber::with_default(log.clone(), || connect_patiently(url));
        client.lock("job").acquire().unwrap().release().unwrap();
        log.has("dynamodb.replicas WARN", &["us-east-1", "hold the same lock"])
    };
    let replicas = json!([{"RegionName": "us-east-1"}, {"RegionName": "eu-central-1"}]);
    for consistency in [json!({}), json!({"MultiRegionConsistency": "EVENTUAL"})] {
        let mut more = json!({"Replicas": replicas, "GlobalTableVersion": "2019.11.21"});
        more.as_object_mut().unwrap().extend(consistency.as_object().unwrap().clone());
        described(more);
        assert!(connect(&url));
        says(&refused(&strictly), ErrorKind::StoreRefused, &["us-east-1, eu-central-1", "lag behind"]);
    }
    described(json!({"Replicas": replicas, "MultiRegionConsistency": "STRONG",
                     "GlobalTableWitnesses": [{"RegionName": "us-east-2"}]}));
    assert!(!connect(&url) && !connect(&strictly));
    described(json!({"TableStatus": "CREATING"}));
    says(&refused(&url), ErrorKind::StoreUnavailable, &["being created"]);
    described(json!({"TableStatus": "ARCHIVED"}));
    says(&refused(&url), ErrorKind::StoreRefused, &["ARCHIVED"]);
}

#[test]
fn an_endpoint_that_is_not_reached_is_named_in_time() {
    set_keys();
    let proxy = Proxy::to(([127, 0, 0, 1], 9).into());
    let url = through("dynamodb://locks?", proxy.address());
    let address = proxy.address().to_string();
    for silence in [false, true] {
        if silence {
            proxy.black_hole();
        }
        let start = Instant::now();
        says(&refused(&url), ErrorKind::StoreUnavailable, &[&address]);
        assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    }
    drop(proxy);
    says(&refused(&url), ErrorKind::StoreUnavailable, &[&address, "refused"]);
    let nowhere = "dynamodb://locks?region=eu-west-1&endpoint=https://no-such-host.invalid";
    says(&refused(nowhere), ErrorKind::StoreUnavailable, &["no-such-host.invalid"]);
}

/// With an environment that says nothing of AWS.
#[test]
#[ignore = "a role of other tests"]
fn role_of_a_foreign_client() {
    let Some(url) = role_args() else { return };
    let ours: Vec<String> = std::env::vars().map(|(name, _)| name).filter(|name| name.starts_with("AWS_")).collect();
    let folder = tempfile::tempdir().unwrap();
    for name in ours {
        // SAFETY: nothing else runs in this process yet that reads the environment.
        unsafe { std::env::remove_var(name) };
    }
    // SAFETY: as above.
    unsafe {
        std::env::set_var("HOME", folder.path());
        std::env::set_var("AWS_EC2_METADATA_DISABLED", "true");
    }
    say(refused("dynamodb://locks"));
    say(refused(&url));
}

#[test]
fn a_missing_region_or_key_names_all_places_searched() {
    let server = server();
    let role = Role::start("tables::role_of_a_foreign_client", &new_table(&server));
    let error = role.says();
    assert!(error.contains("region") && error.contains("AWS_REGION"), "{error}");
    let error = role.says_within(2 * PATIENCE);
    assert!(error.contains("AWS_ACCESS_KEY_ID") && error.contains("profile"), "{error}");
}
