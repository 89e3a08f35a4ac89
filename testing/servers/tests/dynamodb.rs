//! The rig's DynamoDB is AWS's own DynamoDB Local.

use std::net::{TcpListener, TcpStream};

use leasehold_servers::dynamodb::{Server, table_name};
use serde_json::json;

#[test]
fn dynamodb_is_local_and_stops_when_dropped() {
    let server = Server::start();
    let table = table_name();
    server.command(
        "CreateTable",
        &json!({
            "TableName": table,
            "KeySchema": [{"AttributeName": "key", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "key", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        }),
    );
    let put = json!({
        "TableName": table,
        "Item": {"key": {"S": "a"}, "n": {"N": "1"}},
        "ConditionExpression": "attribute_not_exists(#k)",
        "ExpressionAttributeNames": {"#k": "key"},
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    });
    server.command("PutItem", &put);
    let refused = server.request("PutItem", &put);
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("ConditionalCheckFailedException"), "{}", refused.text());
    assert!(refused.text().contains(r#""n":{"N":"1"}"#), "{}", refused.text());

    // Where it listens on all addresses, another address of this machine cannot have the port.
    #[cfg(target_os = "linux")]
    drop(TcpListener::bind(("127.0.0.2", server.port())).unwrap());
    let address = server.address();
    assert!(server.is_running());
    drop(server);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn paused_dynamodb_resumes() {
    let server = Server::start();
    let pid = server.pid();
    server.stop_process();
    server.continue_process();
    assert_eq!(server.command("ListTables", &json!({})), json!({"TableNames": []}));
    assert_eq!(server.pid(), pid);
    server.kill();
    assert!(!server.is_running());
}
