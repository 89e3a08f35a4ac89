//! Rows of DynamoDB: several requests for one operation, several operations in one request of the core, and the clock that
//! signatures go by.

use std::time::Duration;

use leasehold_core::config::Wait;
use leasehold_core::{Event, Failure, LockId, LostReason, NodeId, Output as CoreOutput};
use leasehold_wire::client::{HttpRequest, Output, Store};
use serde_json::{Value as Json, json};

use super::common::{Host, aws, dynamodb_store, header, http, lost, not_sent};

const SKEWED: &str = r#"{"__type":"com.amazon.coral.service#InvalidSignatureException",
    "message":"Signature expired: 20231114T221320Z is now earlier than 20231114T225820Z"}"#;

const EXPIRED: &str = r#"{"__type":"com.amazonaws.dynamodb.v20120810#ExpiredTokenException"}"#;

fn host() -> Host {
    let mut host = Host::new(1, vec![Store::Dynamodb(dynamodb_store())]);
    host.give(0, aws("AKID", None));
    host
}

fn target(request: &HttpRequest) -> &str {
    header(request, "x-amz-target").unwrap().trim_start_matches("DynamoDB_20120810.")
}

fn body(request: &HttpRequest) -> Json {
    serde_json::from_slice(&request.body).unwrap()
}

/// The row as it is after a write was carried out: what the write says, in the attributes that it names. A counter that is
/// computed becomes `counter`.
fn written(request: &HttpRequest, counter: u64) -> Json {
    let asked = body(request);
    let (names, values) = (&asked["ExpressionAttributeNames"], &asked["ExpressionAttributeValues"]);
    let mut row = asked["Key"].clone();
    let update = asked["UpdateExpression"].as_str().unwrap();
    let sets = update.strip_prefix("SET ").unwrap().split(" REMOVE ").next().unwrap();
    for assignment in sets.split(", ") {
        let (name, value) = assignment.split_once(" = ").unwrap();
        let value = if value.contains('+') { json!({ "N": counter.to_string() }) } else { values[value].clone() };
        row[names[name].as_str().unwrap()] = value;
    }
    row
}

fn carried_out(host: &mut Host, request: &HttpRequest) {
    assert_eq!((target(request), request.method), ("UpdateItem", "POST"));
    let row = json!({ "Attributes": written(request, 0) }).to_string();
    host.answer(request.id, http(200, &[], &row));
}

fn refused(host: &mut Host, request: &HttpRequest, row: Option<Json>) {
    let mut body = json!({ "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException" });
    if let Some(row) = row {
        body["Item"] = row;
    }
    host.answer(request.id, http(400, &[], &body.to_string()));
}

fn hold(host: &mut Host, lock: u64) {
    host.acquire_named(lock, &format!("lock {lock}"), Wait::Forever);
    let write = host.http.pop_front().unwrap();
    assert_eq!(write.url, "https://dynamodb.eu-west-1.amazonaws.com/");
    carried_out(host, &write);
    assert!(matches!(host.last_event(), Event::Acquired { .. }), "{:?}", host.events);
}

#[test]
fn a_free_row_is_taken_and_freed() {
    let mut host = host();
    host.acquire(1, Wait::Forever);
    let write = host.http.pop_front().unwrap();
    let mut row = written(&write, 0);
    carried_out(&mut host, &write);
    host.release(1);
    let write = host.http.pop_front().unwrap();
    row["isReleased"] = json!({ "S": "1" });
    host.answer(write.id, http(200, &[], &json!({ "Attributes": row }).to_string()));
    assert!(matches!(host.last_event(), Event::Released { confirmed: true, .. }), "{:?}", host.events);
    assert!(host.client.is_idle());
}

#[test]
fn a_row_that_was_deleted_under_its_holder_tells_the_loss() {
    let mut host = host();
    hold(&mut host, 1);
    host.release(1);
    let write = host.http.pop_front().unwrap();
    refused(&mut host, &write, None);
    let lost = Event::Lost { lock: LockId::new(1), reason: LostReason::RecordGone };
    assert_eq!(*host.last_event(), lost, "{:?}", host.events);
    assert!(host.client.is_idle());
}

#[test]
fn a_counter_above_the_floor_takes_a_second_write() {
    let mut host = host();
    host.acquire(1, Wait::Once);
    let first = host.http.pop_front().unwrap();
    let row = json!({
        "key": { "S": "invoice/42" },
        "ownerName": { "S": "pod-7" },
        "leaseDuration": { "S": "20000" },
        "recordVersionNumber": { "S": "c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3:0000000007" },
        "isReleased": { "S": "1" },
        "fencingToken": { "N": "1800000000000000" },
    });
    refused(&mut host, &first, Some(row));
    let second = host.http.pop_front().unwrap();
    assert_eq!(second.deadline, first.deadline);
    assert!(second.id > first.id);
    let row = written(&second, 1_800_000_000_000_001);
    host.answer(second.id, http(200, &[], &json!({ "Attributes": row }).to_string()));
    assert_eq!(host.token(), Some(1_800_000_000_000_001), "{:?}", host.events);
}

#[test]
fn a_clock_that_is_off_is_set_by_the_servers_once() {
    let mut host = host();
    host.acquire(1, Wait::Once);
    assert_eq!(header(&host.http[0], "x-amz-date"), Some("20231114T221320Z"));
    host.answer_http(400, &[("Date", "Tue, 14 Nov 2023 22:58:20 GMT")], SKEWED);
    assert_eq!(header(&host.http[0], "x-amz-date"), Some("20231114T225820Z"));
    // It goes on from there, whatever becomes of the host's.
    host.now.unix_ms += 10_000;
    host.now.monotonic = host.now.monotonic.plus(Duration::from_millis(1_500));
    host.acquire_named(2, "another", Wait::Once);
    assert_eq!(header(&host.http[1], "x-amz-date"), Some("20231114T225821Z"));
    // Still wrong: then it is something else.
    host.answer_http(400, &[("Date", "Tue, 14 Nov 2023 23:58:20 GMT")], SKEWED);
    let Event::Failed { failure: Failure::Refused(denial), .. } = host.last_event() else {
        panic!("{:?}", host.events)
    };
    assert!(denial.detail.contains("clock"), "{denial}");
}

#[test]
fn without_a_date_nothing_is_signed_anew() {
    let mut host = host();
    host.acquire(1, Wait::Once);
    host.answer_http(400, &[("Date", "yesterday")], SKEWED);
    assert!(host.http.is_empty());
    assert!(matches!(host.last_event(), Event::Failed { failure: Failure::Refused(_), .. }), "{:?}", host.events);
}

#[test]
fn renewals_are_requests_of_their_own_that_are_answered_in_any_order() {
    let mut host = host();
    (1..=3).for_each(|lock| hold(&mut host, lock));
    host.events.clear();
    host.sleep();
    assert_eq!(host.http.len(), 3);
    assert_eq!(host.client.stats().in_flight, 1, "one request of the core");
    let mut requests: Vec<HttpRequest> = host.http.drain(..).collect();
    requests.rotate_left(1);
    for (n, request) in requests.iter().enumerate() {
        assert!(host.events.is_empty(), "{n}: the outcomes come together");
        carried_out(&mut host, request);
    }
    assert_eq!(host.events.iter().filter(|event| matches!(event, Event::Renewed { .. })).count(), 3);
}

/// One answer that is missing says nothing of the others.
#[test]
fn at_the_deadline_what_is_known_counts() {
    let mut host = host();
    (1..=3).for_each(|lock| hold(&mut host, lock));
    host.events.clear();
    host.sleep();
    let requests: Vec<HttpRequest> = host.http.drain(..).collect();
    carried_out(&mut host, &requests[0]);
    carried_out(&mut host, &requests[2]);
    host.pass(requests[0].deadline.since(host.now.monotonic));
    let told = |lock: u64| {
        let of_lock = |event: &&Event| event.lock().get() == lock;
        host.events.iter().find(of_lock).map(|event| matches!(event, Event::Renewed { .. }))
    };
    assert_eq!((told(1), told(2), told(3)), (Some(true), Some(false), Some(true)), "{:?}", host.events);
    assert_eq!(host.client.stats().timed_out_requests, 1);
    host.answer(requests[1].id, lost());
    assert_eq!(host.client.stats().ignored_responses, 1);
}

#[test]
fn one_request_of_several_that_fails_is_the_only_one() {
    let mut host = host();
    (1..=3).for_each(|lock| hold(&mut host, lock));
    host.events.clear();
    host.sleep();
    let requests: Vec<HttpRequest> = host.http.drain(..).collect();
    carried_out(&mut host, &requests[0]);
    host.answer(requests[1].id, http(502, &[("content-type", "text/html")], "<html>"));
    host.answer(requests[2].id, not_sent());
    let renewed = host.events.iter().filter(|event| matches!(event, Event::Renewed { .. })).count();
    let delayed = host.events.iter().filter(|event| matches!(event, Event::RenewDelayed { .. })).count();
    assert_eq!((renewed, delayed), (1, 2), "{:?}", host.events);
}

#[test]
fn throttling_and_missing_tables_are_told_apart() {
    for (status, code, expected) in [
        (400, "ProvisionedThroughputExceededException", "Throttled"),
        (400, "ResourceNotFoundException", "Refused"),
        (400, "ValidationException", "Refused"),
        (400, "AccessDeniedException", "Refused"),
        (500, "InternalServerError", "Unavailable"),
    ] {
        let mut host = host();
        host.acquire(1, Wait::Once);
        host.answer_http(status, &[], &json!({ "__type": format!("a#{code}"), "message": "m" }).to_string());
        // What may have landed is looked for until the wait is over.
        while host.events.is_empty() {
            host.http.clear();
            host.sleep();
        }
        let Event::Failed { failure, .. } = host.last_event() else { panic!("{:?}", host.events) };
        assert!(format!("{failure:?}").starts_with(expected), "{code}: {failure:?}");
    }
}

/// Three leases whose renewals have left together.
fn renewing() -> Host {
    let mut host = host();
    for lock in 0..3 {
        hold(&mut host, lock);
    }
    while host.http.is_empty() {
        host.sleep();
    }
    assert_eq!(host.http.len(), 3);
    host
}

#[test]
fn what_one_answer_says_of_the_credentials_counts_though_the_others_never_come() {
    let mut host = renewing();
    host.answer_http(400, &[], EXPIRED);
    host.pass(Duration::from_secs(2));
    assert_eq!(host.asked, [0]);
    host.http.clear();
    host.give(0, aws("AKIDNEW", None));
    while host.http.is_empty() {
        host.sleep();
    }
    assert!(header(&host.http[0], "authorization").unwrap().contains("AKIDNEW/"));
}

#[test]
fn a_refusal_is_of_the_credentials_that_this_very_request_carried() {
    let mut host = host();
    hold(&mut host, 1);
    hold(&mut host, 2);
    let mut requests = Vec::new();
    while requests.len() < 2 {
        // A slow host hands out one of the two, is given others, and hands out the other.
        match host.client.poll_output(host.now) {
            Output::HttpRequest(request) => {
                if requests.is_empty() {
                    let new = aws("AKIDNEW", None);
                    host.client.set_credentials(NodeId::new(0), new, host.now).unwrap();
                }
                requests.push(request);
            }
            Output::Core(CoreOutput::WakeAt(at)) => {
                host.now.monotonic = at;
                let fresh = host.fresh();
                host.client.handle_timeout(&fresh, host.now);
            }
            other => panic!("{other:?}"),
        }
    }
    let by = |request: &HttpRequest| header(request, "authorization").unwrap().contains("AKIDNEW/");
    assert_eq!((by(&requests[0]), by(&requests[1])), (false, true));
    host.answer(requests[0].id, http(400, &[], EXPIRED));
    carried_out(&mut host, &requests[1]);
    assert!(host.asked.is_empty(), "the new ones are good");
    assert!(by(&host.http[0]));
}

#[test]
fn a_clock_is_dated_by_the_answer_that_showed_it() {
    let mut host = renewing();
    host.answer_http(400, &[("Date", "Tue, 14 Nov 2023 22:58:20 GMT")], SKEWED);
    assert_eq!(header(&host.http[2], "x-amz-date"), Some("20231114T225820Z"), "at once");
    host.now.monotonic = host.now.monotonic.plus(Duration::from_millis(1_500));
    for _ in 0..3 {
        let request = host.http.pop_front().unwrap();
        carried_out(&mut host, &request);
    }
    host.acquire_named(9, "another", Wait::Once);
    assert_eq!(header(&host.http[0], "x-amz-date"), Some("20231114T225821Z"));
}

/// It waits for no other of its round, and each has its own repeats.
#[test]
fn each_request_of_a_round_is_sent_again_by_itself() {
    let mut host = renewing();
    let sent: Vec<HttpRequest> = host.http.drain(..).collect();
    assert_eq!(sent.len(), 3);
    for refused in &sent[..2] {
        host.answer(refused.id, http(400, &[], EXPIRED));
    }
    assert!(host.http.is_empty(), "they wait for other keys");
    host.give(0, aws("AKIDNEW", None));
    let again: Vec<HttpRequest> = host.http.drain(..).collect();
    assert_eq!(again.len(), 2);
    for (before, now) in sent.iter().zip(&again) {
        assert_eq!(before.body, now.body);
        assert!(header(now, "authorization").unwrap().contains("AKIDNEW/"));
    }
    // The first is refused again, and not sent a third time; the others are renewed.
    host.answer(again[0].id, http(400, &[], EXPIRED));
    carried_out(&mut host, &again[1]);
    assert!(host.http.is_empty());
    carried_out(&mut host, &sent[2]);
    let renewed = host.events.iter().filter(|event| matches!(event, Event::Renewed { .. })).count();
    assert_eq!(renewed, 2, "{:?}", host.events);
}
