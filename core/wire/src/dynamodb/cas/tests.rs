use super::*;
use alloc::vec;

fn settings() -> Settings {
    Settings::new("items").unwrap()
}

fn ok(body: &Json) -> Response {
    Response { status: 200, date: None, body: body.to_string().into_bytes() }
}

fn failed(body: Json) -> Response {
    Response { status: 400, date: None, body: body.to_string().into_bytes() }
}

fn conflict(item: &Json) -> Response {
    failed(json!({ "__type": "x#ConditionalCheckFailedException", "Item": item }))
}

fn sent(update: &Update) -> Json {
    serde_json::from_slice(&update.request().body).unwrap()
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
    let mut update = Update::new(&settings(), "counter", 4).unwrap();
    let body = item.map_or(json!({}), |item| json!({ "Item": item }));
    assert_eq!(update.answer(Ok(&ok(&body))), Next::Decide);
    update.write(vec![id], [id; 16]).unwrap();
    update
}

fn unknown() -> Outcome {
    Outcome::Unknown(Fault::of(FaultKind::Timeout))
}

#[test]
fn a_first_write_wants_no_item_and_the_next_one_the_item_that_was_read() {
    let mut first = writing(None, 1);
    assert_eq!(sent(&first)["ConditionExpression"], "attribute_not_exists(#pk)");
    assert_eq!(sent(&first)["Key"], json!({ "key": { "S": "cas\u{1f}counter" } }));
    let item = applied(&first);
    let Next::Done(written) = first.answer(Ok(&ok(&json!({ "Attributes": item })))) else { panic!() };
    assert_eq!((written.version, written.value.as_slice()), (1, [1].as_slice()));

    let second = writing(Some(&item), 2);
    assert_eq!(sent(&second)["ConditionExpression"], "#version = :seen AND #writes = :by");
    let values = &sent(&second)["ExpressionAttributeValues"];
    assert_eq!((&values[":seen"], &values[":version"]), (&json!({ "N": "1" }), &json!({ "N": "2" })));
    assert_eq!(values[":by"], item["writeIds"]);
}

#[test]
fn a_lost_answer_is_cleared_up_by_sending_the_same_again() {
    let mut update = writing(None, 1);
    let (body, item) = (sent(&update), applied(&update));
    assert_eq!(update.answer(Err(unknown())), Next::Pause(Backoff::NORMAL, 0));
    assert_eq!(sent(&update), body);
    assert!(matches!(update.answer(Ok(&conflict(&item))), Next::Done(item) if item.version == 1));

    // Others have written since, on top of it.
    let mut update = writing(None, 1);
    let (_, mut item) = (update.answer(Err(unknown())), applied(&update));
    for id in 2..=8 {
        item = applied(&writing(Some(&item), id));
    }
    assert!(matches!(update.clone().answer(Ok(&conflict(&item))), Next::Done(item) if item.version == 1));
    item = applied(&writing(Some(&item), 9));
    assert!(matches!(update.answer(Ok(&conflict(&item))), Next::Failed(Failure::Unknown(_))), "it is forgotten");
}

#[test]
fn a_lost_answer_of_a_write_that_others_forestalled_leads_to_another_decision() {
    let base = applied(&writing(None, 1));
    let mut update = writing(Some(&base), 2);
    assert_eq!(update.answer(Err(unknown())), Next::Pause(Backoff::NORMAL, 0));
    let mut item = applied(&writing(Some(&base), 3));
    item = applied(&writing(Some(&item), 4));
    assert_eq!(update.answer(Ok(&conflict(&item))), Next::Pause(Backoff::NORMAL, 1));
    assert_eq!(update.request().target, Target::GetItem);
    assert_eq!(update.answer(Ok(&ok(&json!({ "Item": item })))), Next::Decide);
    assert_eq!(update.current().map(|item| item.version), Some(3));

    // Not the item that was read: made again, or written by somebody who keeps no ids.
    for writes in [json!({ "S": format!("{:032x}", 7) }), json!({ "S": format!("{0:032x} {0:032x}", 7) })] {
        let mut update = writing(Some(&base), 2);
        update.answer(Err(unknown()));
        let mut other = item.clone();
        other["writeIds"] = writes;
        assert!(matches!(update.answer(Ok(&conflict(&other))), Next::Failed(Failure::Unknown(_))));
    }
}

#[test]
fn it_ends_after_so_many_tries_and_says_whether_it_may_have_been_written() {
    let base = applied(&writing(None, 1));
    let mut update = writing(Some(&base), 2);
    let other = applied(&writing(Some(&base), 3));
    for n in 0..3 {
        assert_eq!(update.answer(Ok(&conflict(&other))), Next::Pause(Backoff::NORMAL, n));
        assert_eq!(update.answer(Ok(&ok(&json!({ "Item": base })))), Next::Decide);
        update.write(vec![2], [2; 16]).unwrap();
    }
    assert_eq!(update.answer(Ok(&conflict(&other))), Next::Failed(Failure::Contended));
    assert_eq!(update.tries(), 4);

    let throttled = failed(json!({ "__type": "x#ThrottlingException" }));
    let mut update = writing(None, 1);
    for n in 0..3 {
        assert_eq!(update.answer(Ok(&throttled)), Next::Pause(Backoff::THROTTLED, n));
    }
    assert!(matches!(update.answer(Ok(&throttled)), Next::Failed(Failure::Unavailable(_))));

    let denied = failed(json!({ "__type": "x#AccessDeniedException" }));
    assert!(matches!(writing(None, 1).answer(Ok(&denied)), Next::Failed(Failure::Refused(Refusal::Denied(_)))));
    let mut update = writing(None, 1);
    update.answer(Err(unknown()));
    assert!(matches!(update.answer(Ok(&denied)), Next::Failed(Failure::Unknown(_))), "the first one may have arrived");
    let mut update = writing(None, 1);
    update.answer(Ok(&ok(&json!({}))));
    assert!(matches!(update.answer(Ok(&denied)), Next::Failed(Failure::Unknown(_))), "no answer to this");
}

#[test]
fn rows_of_locks_and_of_others_are_left_alone() {
    let good = applied(&writing(None, 1));
    let with = |name: &str, value: Json| {
        let mut item = good.clone();
        item[name] = value;
        item
    };
    for item in [
        with("recordVersionNumber", json!({ "S": "x" })),
        with("fencingToken", json!({ "N": "1" })),
        with("key", json!({ "S": "counter" })),
        with("version", json!({ "N": "0" })),
        with("version", json!({ "N": "1.5" })),
        with("version", json!({ "N": "9007199254740992" })),
        with("value", json!({ "S": "text" })),
        with("writeIds", json!({ "S": "x" })),
        with("writeIds", json!({ "S": "7".repeat(31) })),
        with("writeIds", json!({ "S": "x".repeat(32) })),
        with("writeIds", json!({ "S": vec!["7".repeat(32); 9].join(" ") })),
        with("writeIds", json!({ "N": "1" })),
        json!({ "key": good["key"] }),
        json!([]),
    ] {
        let mut update = Update::new(&settings(), "counter", 4).unwrap();
        let next = update.answer(Ok(&ok(&json!({ "Item": item }))));
        assert!(matches!(next, Next::Failed(Failure::Refused(Refusal::Denied(_)))), "{item}: {next:?}");
        let next = writing(Some(&good), 2).answer(Ok(&conflict(&item)));
        assert!(matches!(next, Next::Failed(Failure::Refused(Refusal::Denied(_)))), "{item}: {next:?}");
    }
    let mut foreign = good.clone();
    foreign.as_object_mut().unwrap().remove("writeIds");
    let update = writing(Some(&foreign), 2);
    assert_eq!(sent(&update)["ConditionExpression"], "#version = :seen AND attribute_not_exists(#writes)");
}

#[test]
fn names_values_and_tables_are_bounded() {
    for name in ["", "a\u{1f}b", "a\nb"] {
        assert!(Update::new(&settings(), name, 1).is_err());
    }
    let versions = Settings::new("items").unwrap().key("version").unwrap();
    assert!(Update::new(&versions, "counter", 1).is_err());
    let mut update = Update::new(&settings(), "counter", 0).unwrap();
    assert!(update.write(vec![], [1; 16]).is_err(), "nothing was read yet");
    update.answer(Ok(&ok(&json!({}))));
    assert!(update.write(vec![0; MAX_VALUE + 1], [1; 16]).is_err());
    update.write(vec![0; MAX_VALUE], [1; 16]).unwrap();
    assert!(update.request().body.len() < crate::rest::MAX_BODY);
    assert!(matches!(update.answer(Err(unknown())), Next::Failed(Failure::Unknown(_))), "tried once at least");
    let last = json!({
        "key": { "S": "cas\u{1f}counter" }, "version": { "N": "9007199254740991" }, "value": { "B": "" },
    });
    let mut update = Update::new(&settings(), "counter", 1).unwrap();
    assert_eq!(update.answer(Ok(&ok(&json!({ "Item": last })))), Next::Decide);
    assert!(update.write(vec![], [1; 16]).is_err());
    let mut last_but_one = last;
    last_but_one["version"] = json!({ "N": "9007199254740990" });
    assert_eq!(
        sent(&writing(Some(&last_but_one), 1))["ExpressionAttributeValues"][":version"]["N"],
        "9007199254740991"
    );
}

#[test]
fn an_item_is_read_without_an_update() {
    let body: Json = serde_json::from_slice(&get(&settings(), "counter").unwrap().body).unwrap();
    assert_eq!((&body["Key"]["key"]["S"], &body["ConsistentRead"]), (&json!("cas\u{1f}counter"), &json!(true)));
    let got = |name: &str, response: &Response| got(&settings(), name, response);
    assert_eq!(got("counter", &ok(&json!({}))), Ok(None));
    let item = applied(&writing(None, 7));
    let shown = got("counter", &ok(&json!({ "Item": item }))).unwrap().unwrap();
    assert_eq!((shown.version, shown.value.as_slice()), (1, [7].as_slice()));
    assert_eq!(format!("{shown:?}"), "version 1 with 1 bytes");

    let is_denied = |outcome| matches!(outcome, Err(Outcome::NotApplied(Refusal::Denied(_))));
    assert!(is_denied(got("", &ok(&json!({})))));
    assert!(is_denied(got("another", &ok(&json!({ "Item": item })))));
    assert!(is_denied(got("counter", &failed(json!({ "__type": "x#AccessDeniedException" })))));
    assert!(matches!(got("counter", &conflict(&item)), Err(Outcome::Unknown(_))), "no read has such an answer");
    let throttled = got("counter", &failed(json!({ "__type": "x#ThrottlingException" })));
    assert!(matches!(throttled, Err(Outcome::NotApplied(Refusal::Throttled(_)))));
}
