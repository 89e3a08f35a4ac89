//! Guards for items in DynamoDB against holders that do not know that they are too late, on a real table.

use leasehold::ErrorKind;
use leasehold::fence::{DynamodbGuard, Error, Shown};
use leasehold_servers::dynamodb::{Server, table_name};
use serde_json::{Map, Value, json};

use crate::on_one_server;

const OLD: u64 = 33;
const NEW: u64 = 34;
const MAX: u64 = (1 << 53) - 1;

/// A table of invoices, as somebody has it who knows nothing of locks. The mark's name is a reserved word with a dot.
struct Invoices<'a> {
    server: &'a Server,
    table: String,
    guard: DynamodbGuard,
}

/// The refusal of a request.
#[derive(Debug)]
enum Refused {
    ByGuard(Error),
    ByOwnCondition,
}

impl<'a> Invoices<'a> {
    fn new(server: &'a Server) -> Self {
        let table = table_name();
        let made = json!({
            "TableName": table,
            "KeySchema": [{ "AttributeName": "id", "KeyType": "HASH" }],
            "AttributeDefinitions": [{ "AttributeName": "id", "AttributeType": "S" }],
            "BillingMode": "PAY_PER_REQUEST",
        });
        server.command("CreateTable", &made);
        Self { server, table, guard: DynamodbGuard::new("size.of").unwrap() }
    }

    fn maps(&self, token: u64, own: Value) -> (Map<String, Value>, Map<String, Value>) {
        let names = self.guard.names().into_iter().map(|(short, name)| (short.to_owned(), name.into())).collect();
        let values = DynamodbGuard::values(token).unwrap();
        let values = values.into_iter().map(|(short, digits)| (short.to_owned(), json!({ "N": digits })));
        (names, values.chain(own.as_object().unwrap().clone()).collect())
    }

    fn update(&self, id: &str, token: u64, update: &str, condition: &str, own: Value) -> Result<Value, Value> {
        let (names, values) = self.maps(token, own);
        let body = json!({
            "TableName": self.table,
            "Key": { "id": { "S": id } },
            "UpdateExpression": update,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        });
        let response = self.server.request("UpdateItem", &body);
        let answer: Value = serde_json::from_slice(&response.body).unwrap();
        if response.status == 200 {
            return Ok(answer["Attributes"].clone());
        }
        assert!(answer["__type"].as_str().unwrap().contains("ConditionalCheckFailed"), "{answer}");
        Err(answer["Item"].clone())
    }

    fn claim(&self, id: &str, token: u64) -> Result<Value, Refused> {
        let update = format!("SET {}", DynamodbGuard::set());
        let claimed = self.update(id, token, &update, DynamodbGuard::claim_condition(), json!({}));
        claimed.map_err(|item| refused(DynamodbGuard::refusal_of_claim(id, token, self.shown(&item))))
    }

    fn write(&self, id: &str, token: u64, total: u64) -> Result<Value, Refused> {
        self.write_if(id, token, total, DynamodbGuard::check_condition())
    }

    fn write_if(&self, id: &str, token: u64, total: u64, condition: &str) -> Result<Value, Refused> {
        let update = format!("SET balance = :balance, {} REMOVE draft", DynamodbGuard::set());
        let written = self.update(id, token, &update, condition, json!({ ":balance": { "N": total.to_string() } }));
        written.map_err(|item| refused(DynamodbGuard::refusal(id, token, self.shown(&item))))
    }

    fn shown<'i>(&self, item: &'i Value) -> Shown<'i> {
        match (item, &item["size.of"]) {
            (Value::Null, _) => Shown::Nothing,
            (_, Value::Null) => Shown::Unmarked,
            (_, mark) => Shown::Mark(mark["N"].as_str().unwrap_or_default()),
        }
    }

    fn put(&self, item: Value) {
        self.server.command("PutItem", &json!({ "TableName": self.table, "Item": item }));
    }

    fn get(&self, id: &str) -> Value {
        let key = json!({ "TableName": self.table, "Key": { "id": { "S": id } }, "ConsistentRead": true });
        self.server.command("GetItem", &key)["Item"].clone()
    }

    fn total(&self, id: &str) -> u64 {
        self.get(id)["balance"]["N"].as_str().unwrap().parse().unwrap()
    }
}

fn refused(error: Option<Error>) -> Refused {
    error.map_or(Refused::ByOwnCondition, Refused::ByGuard)
}

#[track_caller]
fn by_guard(result: Result<Value, Refused>) -> Error {
    match result.unwrap_err() {
        Refused::ByGuard(error) => error,
        Refused::ByOwnCondition => panic!("the guard says that it let this through"),
    }
}

#[track_caller]
fn assert_stale(result: Result<Value, Refused>) {
    let error = by_guard(result);
    let message = error.to_string();
    assert_eq!(error.kind(), ErrorKind::StaleToken, "{message}");
    assert!(message.contains("33") && message.contains("34"), "{message}");
}

#[test]
fn what_the_guard_promises() {
    on_one_server(&[
        (
            "a_holder_writes_repeatedly_until_its_successor_claims",
            a_holder_writes_repeatedly_until_its_successor_claims,
        ),
        (
            "a_claim_before_the_read_keeps_a_late_write_from_being_written_over",
            a_claim_before_the_read_keeps_a_late_write_from_being_written_over,
        ),
        (
            "an_item_that_is_gone_refuses_writes_and_one_that_says_so_refuses_claims_too",
            an_item_that_is_gone_refuses_writes_and_one_that_says_so_refuses_claims_too,
        ),
        ("a_check_needs_a_claim_and_a_mark_that_is_a_token", a_check_needs_a_claim_and_a_mark_that_is_a_token),
        (
            "a_failed_condition_of_ones_own_is_not_taken_for_the_guards",
            a_failed_condition_of_ones_own_is_not_taken_for_the_guards,
        ),
        ("a_guarded_item_decides_about_others_in_a_transaction", a_guarded_item_decides_about_others_in_a_transaction),
        ("tokens_are_compared_as_numbers_up_to_the_largest", tokens_are_compared_as_numbers_up_to_the_largest),
    ]);
}

fn a_holder_writes_repeatedly_until_its_successor_claims(server: &Server) {
    let invoices = Invoices::new(server);
    invoices.put(json!({ "id": { "S": "42" }, "balance": { "N": "100" }, "draft": { "BOOL": true } }));
    invoices.claim("42", OLD).unwrap();
    let first_read = invoices.claim("42", OLD).unwrap();
    assert_eq!((&first_read["balance"]["N"], &first_read["size.of"]["N"]), (&json!("100"), &json!("33")));
    for total in [110, 120] {
        invoices.write("42", OLD, total).unwrap();
    }
    invoices.claim("42", NEW).unwrap();
    invoices.write("42", NEW, 130).unwrap();
    assert_stale(invoices.write("42", OLD, 999));
    assert_stale(invoices.claim("42", OLD));
    assert_eq!((invoices.total("42"), &invoices.get("42")["draft"]), (130, &Value::Null));
}

fn a_claim_before_the_read_keeps_a_late_write_from_being_written_over(server: &Server) {
    let invoices = Invoices::new(server);
    invoices.put(json!({ "id": { "S": "42" }, "balance": { "N": "100" } }));
    invoices.claim("42", OLD).unwrap();
    let stale = invoices.total("42") + 1;
    // The old holder sleeps with its sum in hand; the new one claims, reads, and has not written yet.
    invoices.claim("42", NEW).unwrap();
    let fresh = invoices.total("42") + 10;
    assert_stale(invoices.write("42", OLD, stale));
    invoices.write("42", NEW, fresh).unwrap();
    assert_eq!(invoices.total("42"), 110);
}

fn an_item_that_is_gone_refuses_writes_and_one_that_says_so_refuses_claims_too(server: &Server) {
    let invoices = Invoices::new(server);
    invoices.claim("gone", NEW).unwrap();
    server.command("DeleteItem", &json!({ "TableName": invoices.table, "Key": { "id": { "S": "gone" } } }));
    let error = by_guard(invoices.write("gone", OLD, 1));
    assert!(error.kind() == ErrorKind::StaleToken && error.to_string().contains("gone"), "{error}");
    assert_eq!(invoices.get("gone"), Value::Null, "a late write brings nothing back");

    invoices.claim("tombstone", OLD).unwrap();
    invoices.claim("tombstone", NEW).unwrap();
    let buried = format!("SET deleted = :yes, {}", DynamodbGuard::set());
    let yes = json!({ ":yes": { "BOOL": true } });
    invoices.update("tombstone", NEW, &buried, DynamodbGuard::check_condition(), yes).unwrap();
    assert_stale(invoices.write("tombstone", OLD, 1));
    assert_stale(invoices.claim("tombstone", OLD));
    assert_eq!(invoices.get("tombstone")["deleted"]["BOOL"], json!(true));
}

fn a_check_needs_a_claim_and_a_mark_that_is_a_token(server: &Server) {
    let invoices = Invoices::new(server);
    invoices.put(json!({ "id": { "S": "42" }, "balance": { "N": "100" } }));
    let error = by_guard(invoices.write("42", OLD, 1));
    assert!(error.kind() == ErrorKind::Config && error.to_string().contains("never claimed"), "{error}");
    for mark in [json!({ "S": "0" }), json!({ "N": "34.5" }), json!({ "N": "9007199254740992" }), json!({ "L": [] })] {
        invoices.put(json!({ "id": { "S": "42" }, "balance": { "N": "100" }, "size.of": mark }));
        for result in [invoices.write("42", OLD, 1), invoices.claim("42", OLD)] {
            let error = by_guard(result);
            assert!(error.kind() == ErrorKind::StoreRefused && error.to_string().contains("no token"), "{error}");
        }
    }
    assert_eq!(invoices.total("42"), 100);
}

fn a_failed_condition_of_ones_own_is_not_taken_for_the_guards(server: &Server) {
    let invoices = Invoices::new(server);
    invoices.put(json!({ "id": { "S": "42" }, "balance": { "N": "100" } }));
    let both = |own: &str| format!("{} AND ({own})", DynamodbGuard::check_condition());
    invoices.claim("42", OLD).unwrap();
    invoices.write_if("42", OLD, 1, &both("balance > :balance OR balance = :balance")).unwrap();
    assert!(matches!(invoices.write_if("42", OLD, 2, &both("balance > :balance")), Err(Refused::ByOwnCondition)));
    invoices.claim("42", NEW).unwrap();
    assert_stale(invoices.write_if("42", OLD, 2, &both("balance > :balance OR balance < :balance")));
    assert_eq!(invoices.total("42"), 1);
    // A claim with more to it: only of what is there.
    let update = format!("SET {}", DynamodbGuard::set());
    let there = format!("{} AND attribute_exists(id)", DynamodbGuard::claim_condition());
    let item = invoices.update("43", NEW, &update, &there, json!({})).unwrap_err();
    assert!(DynamodbGuard::refusal_of_claim("43", NEW, invoices.shown(&item)).is_none());
    assert_eq!(invoices.get("43"), Value::Null);
}

fn a_guarded_item_decides_about_others_in_a_transaction(server: &Server) {
    let invoices = Invoices::new(server);
    for id in ["a", "b"] {
        invoices.claim(id, OLD).unwrap();
    }
    let both = |token: u64, total: u64| {
        let (names, values) = invoices.maps(token, json!({ ":balance": { "N": total.to_string() } }));
        let update = format!("SET balance = :balance, {}", DynamodbGuard::set());
        let write = |id: &str| {
            json!({ "Update": {
                "TableName": invoices.table, "Key": { "id": { "S": id } }, "UpdateExpression": update,
                "ConditionExpression": DynamodbGuard::check_condition(),
                "ExpressionAttributeNames": names, "ExpressionAttributeValues": values,
            } })
        };
        server.request("TransactWriteItems", &json!({ "TransactItems": [write("a"), write("b")] })).status
    };
    assert_eq!(both(OLD, 7), 200);
    // The second of two that one lock protects is claimed by the successor, and neither is written any more.
    invoices.claim("b", NEW).unwrap();
    assert_eq!(both(OLD, 8), 400);
    assert_eq!((invoices.total("a"), invoices.total("b")), (7, 7));
}

fn tokens_are_compared_as_numbers_up_to_the_largest(server: &Server) {
    let invoices = Invoices::new(server);
    for token in [0, 9, 10, 99_999_999_999_999, 100_000_000_000_000, MAX - 1, MAX] {
        invoices.claim("42", token).unwrap();
        invoices.write("42", token, 1).unwrap();
    }
    let stale = by_guard(invoices.write("42", MAX - 1, 1));
    assert!(stale.to_string().contains(&MAX.to_string()) && stale.to_string().contains(&(MAX - 1).to_string()));
    assert_eq!(DynamodbGuard::values(MAX + 1).unwrap_err().kind(), ErrorKind::Config);
    for name in ["", "a\nb", &"x".repeat(256)] {
        assert_eq!(DynamodbGuard::new(name).unwrap_err().kind(), ErrorKind::Config);
    }
}
