//! A lock that was freed again because the table does not vote: who may take it, and who may not.

use super::quorum::{abstains, asked, doubtful, found, marker, rejoined, vote, vote_of, won};
use super::*;

fn later(seq: u32) -> Op {
    let Op::Acquire(acquire) = vote_of(asked()) else { panic!("no acquire") };
    Op::Acquire(Box::new(Acquire { seq: Seq::new(seq), ..*acquire }))
}

fn freed(seq: u32) -> Json {
    counting(undone(ours(seq)), FLOOR)
}

const FREE: &str = "(attribute_not_exists(#pk) OR (#ir = :yes AND attribute_type(#rvn, :text) AND \
                    attribute_type(#ld, :text) AND NOT contains(#ld, :unit) AND \
                    (NOT begins_with(#rvn, :own) OR (#un = #rvn AND #rvn < :rvn))))";

/// Requests of no other test.
pub(super) fn bodies() -> Vec<Json> {
    let joining = || found(&marker(Phase::Joining));
    let mut bodies = told(later(2), [Ok(refuses(Some(&freed(1)))), won_by(2), joining(), lost()]).1;
    bodies.remove(2);
    bodies
}

fn won_by(seq: u32) -> Result<HttpResponse, Outcome> {
    Ok(shows(&counting(ours(seq), FLOOR + 1)))
}

#[test]
fn a_lock_is_undone_so() {
    let (_, bodies) = told(vote(), [won(), found(&marker(Phase::Joining)), lost()]);
    assert_eq!(
        bodies[0]["ConditionExpression"],
        alloc::format!("{FREE} AND (attribute_not_exists(#ft) OR #ft < :floor)")
    );
    assert_eq!(bodies[2]["UpdateExpression"], "SET #ir = :yes, #un = :rvn");
    assert_eq!(bodies[2]["ConditionExpression"], "#rvn = :rvn AND attribute_not_exists(#ir)");
    let values = json!({ ":rvn": { "S": alloc::format!("{HEX}:0000000001") }, ":yes": { "S": "1" } });
    assert_eq!(bodies[2]["ExpressionAttributeValues"], values);
}

#[test]
fn a_later_send_takes_it_again() {
    let answers = [Ok(refuses(Some(&freed(1)))), won_by(2), found(&rejoined())];
    let (outcome, bodies) = told(later(2), answers);
    let counter = token(FLOOR + 1);
    let Outcome::Applied(Applied::AcquiredInDoubt { stamp, .. }) = doubtful() else { panic!("not in doubt") };
    assert_eq!(outcome, Outcome::Applied(Applied::AcquiredInDoubt { counter, stamp }));
    assert_eq!(bodies[1]["ConditionExpression"], alloc::format!("{FREE} AND (#ft >= :floor AND #ft < :max)"));
    // As long as the table does not vote, it is undone once more.
    let again = || Ok(shows(&counting(undone(ours(2)), FLOOR + 1)));
    let joining = || found(&marker(Phase::Joining));
    let (outcome, bodies) = told(later(2), [Ok(refuses(Some(&freed(1)))), won_by(2), joining(), again()]);
    let Outcome::NotApplied(Refusal::Abstains { .. }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(bodies.len(), 4);
}

#[test]
fn a_send_that_is_not_later_does_not() {
    for (op, row) in [
        (later(2), freed(2)),
        (later(2), freed(3)),
        // Its holder has released it, or somebody did by hand.
        (later(2), counting(released(ours(1)), FLOOR)),
        // It is of a version that is not there any more.
        (later(3), with(freed(2), "undoneVersion", ours(1)["recordVersionNumber"].clone())),
        (later(3), with(freed(2), "undoneVersion", json!({ "N": "2" }))),
        // It was taken again since.
        (later(3), without(freed(2), "isReleased")),
    ] {
        let held = row.get("isReleased").is_none();
        let answers = [Ok(refuses(Some(&row))), found(&marker(Phase::Joining))];
        let (outcome, bodies) = told(op, answers);
        assert_eq!((outcome, bodies.len()), (abstains(LossId([7; 16])), 2), "held: {held}, {row}");
    }
    // Outside a quorum nothing is undone, so a row that says so is not believed.
    let Op::Acquire(acquire) = later(2) else { panic!("no acquire") };
    let alone = Op::Acquire(Box::new(Acquire { member: None, ..*acquire }));
    assert!(holding(&answered(alone, refuses(Some(&freed(1))))).released);
}

#[test]
fn it_is_free_for_all_others() {
    let rival = with(counting(row(RIVAL_RVN), FLOOR), "undoneVersion", json!({ "S": RIVAL_RVN }));
    for row in [released(rival), released(with(row(JAVA_RVN), "undoneVersion", freed(1)["undoneVersion"].clone()))] {
        let counter = row.get("fencingToken").map_or(FLOOR, |_| FLOOR + 1);
        let won = || Ok(shows(&counting(ours(1), counter)));
        // What has no counter is below every floor: a refusal is none that DynamoDB gives.
        let answers = if counter == FLOOR { vec![won()] } else { vec![Ok(refuses(Some(&row))), won()] };
        assert_eq!(told(acquire(), answers).0, granted(counter));
    }
}

#[test]
fn neither_a_heartbeat_nor_a_raise_brings_it_back() {
    for op in [renew(), raise(9, None)] {
        assert!(holding(&answered(op, refuses(Some(&freed(1))))).released);
    }
}

#[test]
fn an_undo_of_what_was_freed_already_has_nothing_to_do() {
    let joining = || found(&marker(Phase::Joining));
    for row in [freed(1), counting(released(ours(1)), FLOOR), freed(2)] {
        assert_eq!(told(vote(), [won(), joining(), Ok(refuses(Some(&row)))]).0, abstains(LossId([7; 16])));
    }
    // The answer to a release is none to an undo.
    let released = || Ok(shows(&counting(released(ours(1)), FLOOR)));
    assert!(is_protocol(&told(vote(), [won(), joining(), released()]).0));
}
