//! Processes that share a table: killed, and stopped for longer than their lease lasts.

use std::net::SocketAddr;

use crate::common::on_dynamodb::{attribute, counter, is_held, row, table_of};
use crate::common::{PATIENCE, Role, eventually, ms, role_args, say, stay};
use crate::{new_table, server};
use leasehold::blocking::Client;
use leasehold_servers::dynamodb::{ACCESS_KEY_ID, REGION};
use leasehold_servers::http;
use serde_json::json;

/// The row that the lock protects: it takes writes of the latest holder only.
const PROTECTED: &str = "protected";

/// Returns true if the row took the write.
fn guarded_write(address: SocketAddr, url: &str, token: u64, text: &str) -> bool {
    let body = json!({
        "TableName": table_of(url), "Key": {"key": {"S": PROTECTED}},
        "UpdateExpression": "SET fence = :t, said = :text",
        "ConditionExpression": "attribute_not_exists(fence) OR fence <= :t",
        "ExpressionAttributeValues": {":t": {"N": token.to_string()}, ":text": {"S": text}},
    });
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={ACCESS_KEY_ID}/20260101/{REGION}/dynamodb/aws4_request, \
                                 SignedHeaders=host, Signature=none"
    );
    let headers = [
        ("X-Amz-Target", "DynamoDB_20120810.UpdateItem"),
        ("Content-Type", "application/x-amz-json-1.0"),
        ("Authorization", &authorization),
    ];
    let response = http::request(address, "POST", "/", &headers, body.to_string()).unwrap();
    let refused = response.text().contains("ConditionalCheckFailedException");
    assert!(response.status == 200 || refused, "{}", response.text());
    !refused
}

/// Holds `job` and tells what happens to it; in the end it writes, whatever has happened meanwhile.
#[test]
#[ignore = "a role of other tests"]
fn role_holder() {
    let Some(args) = role_args() else { return };
    let (address, url) = args.split_once(' ').unwrap();
    let client = Client::connect(url).unwrap();
    let lease = client.lock("job").ttl(ms(4_000)).owner("holder").acquire().unwrap();
    lease.on_lost(|error| say(format!("lost: {error}")));
    say(lease.token());
    stay();
    say(guarded_write(address.parse().unwrap(), url, lease.token(), "holder"));
    stay();
}

#[test]
fn a_killed_holder_is_succeeded_after_its_ttl() {
    let server = server();
    let url = new_table(&server);
    let mut holder = Role::start("processes::role_holder", &format!("{} {url}", server.address()));
    let token: u64 = holder.says().parse().unwrap();
    let client = Client::connect(&url).unwrap();
    assert!(client.lock("job").try_acquire().unwrap().is_none());
    let version = || attribute(&row(&server, &url, "job"), "recordVersionNumber").to_owned();
    let before = version();
    eventually("it is renewed", || version() != before);
    holder.kill();
    holder.wait();
    assert!(is_held(&row(&server, &url, "job")), "nobody has released it");
    let lease = client.lock("job").wait(PATIENCE).acquire().unwrap();
    assert!(lease.token() > token);
    assert_eq!(counter(&row(&server, &url, "job")), lease.token());
}

#[test]
fn a_stopped_holder_is_succeeded_told_and_refused_when_it_wakes() {
    let server = server();
    let url = new_table(&server);
    let mut holder = Role::start("processes::role_holder", &format!("{} {url}", server.address()));
    let token: u64 = holder.says().parse().unwrap();
    holder.signal(libc::SIGSTOP);
    let client = Client::connect(&url).unwrap();
    let lease = client.lock("job").ttl(ms(60_000)).wait(PATIENCE).acquire().unwrap();
    assert!(lease.token() > token);
    assert!(guarded_write(server.address(), &url, lease.token(), "successor"));
    holder.signal(libc::SIGCONT);
    assert!(holder.says().starts_with("lost: "));
    holder.close_input();
    assert_eq!(holder.says(), "false", "it writes all the same, in vain");
    assert_eq!(row(&server, &url, PROTECTED)["said"], json!({"S": "successor"}));
    lease.check(ms(1)).unwrap();
    assert_eq!(client.inspect("job").unwrap().unwrap().token, Some(lease.token()), "the loser released nothing");
}
