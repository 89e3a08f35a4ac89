//! The time from which DynamoDB may remove a row, which nothing brings forward where a completion may lie on it.

use super::*;
use leasehold_core::op::{Finish, Revoke};

/// A week after now, in seconds: the end of a row that is written now.
const WEEK: u64 = UNIX_MS / 1000 + 604_800;

/// The outcome if these are the answers for a lock of this name, and the requests.
fn told_of(name: &str, op: Op, answers: &[HttpResponse]) -> (Outcome, Vec<Json>) {
    let settings = Settings::new("locks").unwrap().expires("expires").unwrap();
    let op = LockOp { resource: Resource::new(name).unwrap(), ..on(op) };
    let mut exchange = Codec::new(settings).begin(&[op], UNIX_MS).unwrap();
    let mut asked = vec![];
    for answer in answers {
        asked.extend(exchange.requests().iter().map(body));
        if let Progress::Done(mut outcomes) = exchange.answers(&mut (), vec![Ok(answer.clone())]) {
            return (outcomes.remove(0), asked);
        }
    }
    panic!("one more round: {:?}", exchange.requests());
}

fn of_run(row: Json, expires: &Json) -> Json {
    with(with(row, "key", json!({ "S": "job@monday" })), "expires", expires.clone())
}

/// Writes an end, and only where none is later.
fn puts_off(request: &Json) -> bool {
    let writes = request["UpdateExpression"].as_str().unwrap().contains("#ex = :ex");
    let guards =
        request["ConditionExpression"].as_str().unwrap().ends_with("AND (attribute_not_exists(#ex) OR #ex <= :ex)");
    assert_eq!(writes, guards, "{request}");
    writes
}

/// Only a number is a time at which DynamoDB removes a row.
fn later() -> [Json; 2] {
    [json!({ "N": (WEEK + 1).to_string() }), json!({ "S": "never" })]
}

#[test]
fn an_acquire_leaves_a_later_end_in_the_request_that_it_needs_anyway() {
    for expires in later() {
        for counter in [FLOOR - 1, FLOOR] {
            let free = counting(of_run(released(row(RIVAL_RVN)), &expires), counter);
            let held = counting(of_run(ours(1), &expires), counter.max(FLOOR) + u64::from(counter == FLOOR));
            let (outcome, asked) = told_of("job@monday", acquire(), &[refuses(Some(&free)), shows(&held)]);
            assert!(matches!(outcome, Outcome::Applied(Applied::Acquired { .. })), "{outcome:?}");
            assert_eq!(asked.iter().map(puts_off).collect::<Vec<_>>(), [true, false], "{asked:?}");
            assert!(asked[1].get("ExpressionAttributeValues").unwrap().get(":ex").is_none());
        }
    }
    // An earlier one is put off in both.
    let free = counting(of_run(released(row(RIVAL_RVN)), &json!({ "N": WEEK.to_string() })), FLOOR);
    let held = counting(of_run(ours(1), &json!({ "N": WEEK.to_string() })), FLOOR + 1);
    let (_, asked) = told_of("job@monday", acquire(), &[refuses(Some(&free)), shows(&held)]);
    assert_eq!(asked.iter().map(puts_off).collect::<Vec<_>>(), [true, true]);
    // A row that was written again between the two ends the send.
    let changed = counting(of_run(released(row(RIVAL_RVN)), &later()[0]), FLOOR);
    let (outcome, _) = told_of("job@monday", acquire(), &[refuses(Some(&free)), refuses(Some(&changed))]);
    assert!(matches!(outcome, Outcome::NotApplied(Refusal::Conflict(_))), "{outcome:?}");
}

#[test]
fn a_renewal_leaves_a_later_end() {
    for expires in later() {
        let held = of_run(ours(2), &expires);
        let renewed = shows(&json!({ "recordVersionNumber": { "S": alloc::format!("{HEX}:0000000003") } }));
        let (outcome, asked) = told_of("job@monday", renew(), &[refuses(Some(&held)), renewed]);
        assert_eq!(outcome, Outcome::Applied(Applied::Renewed));
        assert_eq!(asked.iter().map(puts_off).collect::<Vec<_>>(), [true, false]);
        let (outcome, _) = told_of("job@monday", renew(), &[refuses(Some(&held)), refuses(Some(&held))]);
        assert!(is_protocol(&outcome), "the second has no such condition: {outcome:?}");
    }
    let held = of_run(ours(2), &json!({ "N": WEEK.to_string() }));
    let (outcome, _) = told_of("job@monday", renew(), &[refuses(Some(&held))]);
    assert!(is_protocol(&outcome), "nothing stands in its way: {outcome:?}");
}

/// A row is freed after a write that has put its end off, and those who break a lock have seen no answer to that.
#[test]
fn other_writes_of_a_run_leave_the_end_and_a_mark_has_its_own() {
    let revoke = Op::Revoke(Revoke { nonce: NONCE });
    for op in [release(), raise(5, None), revoke] {
        let (_, asked) = told_of("job@monday", op, &[response(500, &json!({}))]);
        assert!(!puts_off(&asked[0]), "{asked:?}");
    }
    let keep = Duration::from_secs(365 * 86_400);
    let finish = Finish {
        nonce: NONCE,
        token: token(5),
        counter: token(5),
        keep,
        owner: Owner::default(),
        about: None,
        quorum: None,
    };
    let (_, asked) = told_of("job@monday", Op::Finish(Box::new(finish)), &[response(500, &json!({}))]);
    let end = (UNIX_MS / 1000 + keep.as_secs() + 60).to_string();
    assert_eq!(asked[0]["ExpressionAttributeValues"][":ex"], json!({ "N": end }));
}

#[test]
fn rows_that_no_mark_can_lie_on_are_kept_from_each_write_on() {
    let revoke = Op::Revoke(Revoke { nonce: NONCE });
    for op in [acquire(), renew(), release(), raise(5, None), revoke] {
        let (_, asked) = told_of("invoice/42", op, &[response(500, &json!({}))]);
        assert_eq!(asked[0]["ExpressionAttributeValues"][":ex"], json!({ "N": WEEK.to_string() }));
        assert!(!asked[0]["ConditionExpression"].as_str().unwrap().contains("#ex"), "{asked:?}");
    }
}
