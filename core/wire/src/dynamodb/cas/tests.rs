use super::*;
use crate::cas::{Next, Update};
use alloc::vec::Vec;

fn settings() -> Settings {
    Settings::new("items").unwrap()
}

fn name(text: &str) -> Resource {
    Resource::new(text).unwrap()
}

fn ok(body: &Json) -> HttpResponse {
    HttpResponse::new(200, body.to_string().into_bytes())
}

fn failed(body: Json) -> HttpResponse {
    HttpResponse::new(400, body.to_string().into_bytes())
}

fn conflict(item: &Json) -> HttpResponse {
    failed(json!({ "__type": "x#ConditionalCheckFailedException", "Item": item }))
}

fn sent(update: &Update) -> Json {
    serde_json::from_slice(&request(&settings(), &name("counter"), update.ask()).unwrap().body).unwrap()
}

fn answered(ask: Ask<'_>, response: &HttpResponse) -> Answer {
    answer(&settings(), &name("counter"), ask, Ok(response))
}

/// The item as a write leaves it.
fn applied(update: &Update) -> Json {
    let body = sent(update);
    let values = &body["ExpressionAttributeValues"];
    json!({
        "key": body["Key"]["key"], "version": values[":version"], "value": values[":value"], "writeIds": values[":writes"],
    })
}

/// An update that has read `item` and is about to write one byte.
fn writing(item: Option<&Json>, id: u8) -> Update {
    let mut update = Update::new(4);
    let body = item.map_or(json!({}), |item| json!({ "Item": item }));
    assert_eq!(update.answer(answered(Ask::Read, &ok(&body))), Next::Decide);
    update.write([id].into(), [id; 16]).unwrap();
    update
}

#[test]
fn a_first_write_wants_no_item_and_the_next_one_the_item_that_was_read() {
    let first = writing(None, 1);
    assert_eq!(sent(&first)["ConditionExpression"], "attribute_not_exists(#pk)");
    assert_eq!(sent(&first)["Key"], json!({ "key": { "S": "cas\u{1f}counter" } }));
    let item = applied(&first);
    assert_eq!(answered(first.ask(), &ok(&json!({ "Attributes": item }))), Answer::Written);

    let second = writing(Some(&item), 2);
    assert_eq!(sent(&second)["ConditionExpression"], "#version = :seen AND #writes = :by");
    let values = &sent(&second)["ExpressionAttributeValues"];
    assert_eq!((&values[":seen"], &values[":version"]), (&json!({ "N": "1" }), &json!({ "N": "2" })));
    assert_eq!(values[":by"], item["writeIds"]);
    // An answer to another write.
    assert!(matches!(answered(second.ask(), &ok(&json!({ "Attributes": item }))), Answer::Failed(Outcome::Unknown(_))));
}

#[test]
fn an_item_of_another_program_needs_no_ids() {
    let item = json!({ "key": { "S": "cas\u{1f}counter" }, "version": { "N": "7" }, "value": { "B": "Zg==" } });
    let update = writing(Some(&item), 1);
    assert_eq!(sent(&update)["ConditionExpression"], "#version = :seen AND attribute_not_exists(#writes)");
    assert_eq!(applied(&update)["version"], json!({ "N": "8" }));
}

#[test]
fn a_conflict_shows_what_is_there() {
    let base = applied(&writing(None, 1));
    let update = writing(Some(&base), 2);
    let other = applied(&writing(Some(&base), 3));
    let Answer::Found(Some(shown)) = answered(update.ask(), &conflict(&other)) else { panic!("it shows nothing") };
    assert_eq!((shown.version, shown.value.as_slice()), (2, [3].as_slice()));
    let gone = failed(json!({ "__type": "x#ConditionalCheckFailedException" }));
    assert_eq!(answered(update.ask(), &gone), Answer::Found(None));
    assert!(matches!(answered(Ask::Read, &conflict(&other)), Answer::Failed(Outcome::Unknown(_))), "no read has that");
}

#[test]
fn rows_of_others_are_refused() {
    let item = applied(&writing(None, 1));
    let with = |field: &str, value: Json| {
        let mut item = item.clone();
        item[field] = value;
        item
    };
    let mut others = Vec::from([
        with("ownerName", json!({ "S": "java" })),
        with("key", json!({ "S": "cas\u{1f}another" })),
        with("version", json!({ "N": "0" })),
        with("version", json!({ "S": "1" })),
        with("value", json!({ "S": "x" })),
        with("writeIds", json!({ "S": "x" })),
        with("writeIds", json!({ "N": "1" })),
    ]);
    others.push(json!([]));
    for other in others {
        for answer in [
            answered(Ask::Read, &ok(&json!({ "Item": other }))),
            answered(writing(Some(&item), 2).ask(), &conflict(&other)),
        ] {
            assert!(matches!(answer, Answer::Failed(Outcome::NotApplied(Refusal::Denied(_)))), "{other}: {answer:?}");
        }
    }
    let throttled = answered(Ask::Read, &failed(json!({ "__type": "x#ThrottlingException" })));
    assert!(matches!(throttled, Answer::Failed(Outcome::NotApplied(Refusal::Throttled(_)))));
}

#[test]
fn a_table_whose_key_is_called_as_an_attribute_is_refused() {
    for key in [VERSION, VALUE, WRITES] {
        let settings = settings().key(key).unwrap();
        assert!(request(&settings, &name("counter"), Ask::Read).is_err());
    }
    assert!(request(&settings().sort_key(VALUE, "-").unwrap(), &name("counter"), Ask::Read).is_err());
}
