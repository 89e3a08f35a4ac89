//! A table as a node of a quorum.

use super::*;

const OURS: QuorumId = QuorumId([1; 16]);
const LOSS: LossId = LossId([7; 16]);
const FRESH: LossId = LossId([9; 16]);

pub(super) fn marker(phase: Phase) -> Marker {
    Marker { quorum: OURS, max_ttl_ms: 60_000, stamp: LOSS, phase, run: None }
}

pub(super) fn rejoined() -> Marker {
    marker(Phase::Rejoined { trusted_from_unix_ms: UNIX_MS + 1 })
}

pub(super) fn asked() -> Membership {
    Membership {
        quorum: OURS,
        max_ttl_ms: 60_000,
        durability: Durability::NotDeclared,
        fresh: FRESH,
        waited_out: None,
        bootstrap: Bootstrap::No,
        retention: RETENTION,
    }
}

pub(super) fn vote_of(member: Membership) -> Op {
    Op::Acquire(Box::new(Acquire { member: Some(member), ..an_acquire() }))
}

pub(super) fn vote() -> Op {
    vote_of(asked())
}

fn keep() -> Op {
    let Op::Renew(renewal) = renew() else { panic!("no renewal") };
    Op::Renew(Renew { quorum: Some(Durability::NotDeclared), ..renewal })
}

/// The row that holds a text for a marker.
fn marked(text: &str) -> Json {
    json!({
        "key": { "S": "leasehold\u{1f}quorum" },
        "ownerName": { "S": "leasehold quorum" },
        "leaseDuration": { "S": "1" },
        "recordVersionNumber": { "S": "x" },
        "isReleased": { "S": "1" },
        "quorumMarker": { "S": text },
    })
}

pub(super) fn won() -> Result<HttpResponse, Outcome> {
    Ok(shows(&counting(ours(1), FLOOR)))
}

pub(super) fn found(marker: &Marker) -> Result<HttpResponse, Outcome> {
    Ok(reads(&marked(&marker.text())))
}

fn unmarked() -> Result<HttpResponse, Outcome> {
    Ok(response(200, &json!({})))
}

fn freed() -> Result<HttpResponse, Outcome> {
    Ok(shows(&counting(undone(ours(1)), FLOOR)))
}

pub(super) fn abstains(stamp: LossId) -> Outcome {
    Outcome::NotApplied(Refusal::Abstains { stamp: Some(stamp) })
}

pub(super) fn doubtful() -> Outcome {
    Outcome::Applied(Applied::AcquiredInDoubt { counter: token(FLOOR), stamp: LOSS })
}

fn conditions(asked: &[Json]) -> Vec<&str> {
    asked.iter().map(|body| body["ConditionExpression"].as_str().unwrap_or("read")).collect()
}

const UNDO: &str = "#rvn = :rvn AND attribute_not_exists(#ir)";
const KEEP: &str = "begins_with(#rvn, :own) AND #rvn < :rvn AND attribute_not_exists(#ir)";

#[test]
fn a_vote_is_the_lock_and_then_the_marker() {
    let (outcome, asked) = told(vote(), [won(), found(&marker(Phase::Member))]);
    assert_eq!(outcome, granted(FLOOR));
    assert_eq!(asked[1]["Key"], json!({ "key": { "S": "leasehold\u{1f}quorum" } }));
    assert_eq!(asked[1]["ConsistentRead"], json!(true));
    assert_eq!(asked.len(), 2);
}

#[test]
fn a_refused_vote_counts_only_under_a_marker_too() {
    let held = || Ok(refuses(Some(&counting(row(RIVAL_RVN), 70))));
    let (outcome, _) = told(vote(), [held(), found(&marker(Phase::Member))]);
    assert_eq!(holding(&outcome).counter, Some(token(70)));
    assert_eq!(told(vote(), [held(), found(&marker(Phase::Joining))]).0, abstains(LOSS), "nothing is to be undone");
    let (outcome, _) = told(vote(), [held(), found(&rejoined())]);
    assert_eq!(holding(&outcome).counter, None, "it is in doubt");
    let trusted = with(counting(row(RIVAL_RVN), 70), "quorumTrust", json!({ "S": LOSS.to_string() }));
    let (outcome, _) = told(vote(), [Ok(refuses(Some(&trusted))), found(&rejoined())]);
    assert_eq!(holding(&outcome).counter, Some(token(70)));
    let own = told(vote(), [Ok(refuses(Some(&counting(ours(1), FLOOR)))), found(&marker(Phase::Member))]).0;
    assert!(holding(&own).is_of(&NONCE), "a lost answer is recovered");
    assert_eq!(
        told(vote(), [Ok(refuses(None)), lost()]).0,
        Outcome::NotApplied(Refusal::Unavailable(Fault::of(FaultKind::Timeout))),
        "nothing was written"
    );
}

#[test]
fn a_node_that_rejoined_is_in_doubt_until_raised() {
    assert_eq!(told(vote(), [won(), found(&rejoined())]).0, doubtful());
    let trusting =
        |stamp: LossId| Ok(shows(&with(counting(ours(1), FLOOR), "quorumTrust", json!({ "S": stamp.to_string() }))));
    assert_eq!(told(vote(), [trusting(LOSS), found(&rejoined())]).0, granted(FLOOR));
    assert_eq!(told(vote(), [trusting(FRESH), found(&rejoined())]).0, doubtful(), "raised for an earlier loss");
    let over = marker(Phase::Rejoined { trusted_from_unix_ms: UNIX_MS });
    assert_eq!(told(vote(), [won(), found(&over)]).0, granted(FLOOR));
}

#[test]
fn a_node_without_a_marker_is_marked_abstains_and_frees_the_lock() {
    let fresh = FRESH.found_at(UNIX_MS);
    let joining = Marker { stamp: fresh, ..marker(Phase::Joining) };
    let (outcome, asked) = told(vote(), [won(), unmarked(), Ok(shows(&marked(&joining.text()))), freed()]);
    assert_eq!(outcome, abstains(fresh));
    assert_eq!(conditions(&asked)[1..], ["read", "attribute_not_exists(#qm)", UNDO]);
    assert_eq!(asked[2]["ExpressionAttributeValues"][":qm"], json!({ "S": joining.text() }));
    // A row that somebody has written over is one without a marker.
    let bare = without(marked(""), "quorumMarker");
    let (outcome, _) = told(vote(), [won(), Ok(reads(&bare)), Ok(shows(&marked(&joining.text()))), freed()]);
    assert_eq!(outcome, abstains(fresh));
}

#[test]
fn a_marker_that_others_write_at_the_same_time_is_judged_instead() {
    let theirs = || Ok(refuses(Some(&marked(&marker(Phase::Joining).text()))));
    let (outcome, bodies) = told(vote(), [won(), unmarked(), theirs(), freed()]);
    assert_eq!(outcome, abstains(LOSS));
    assert_eq!(conditions(&bodies)[3], UNDO);
    let waited = || vote_of(Membership { waited_out: Some(LOSS), ..asked() });
    let rejoining = marker(Phase::Rejoined { trusted_from_unix_ms: UNIX_MS + 604_800_000 });
    let written = || Ok(shows(&marked(&rejoining.text())));
    let (outcome, bodies) = told(waited(), [won(), unmarked(), theirs(), written()]);
    assert_eq!(outcome, doubtful());
    assert_eq!(bodies[3]["ExpressionAttributeValues"][":found"], json!({ "S": marker(Phase::Joining).text() }));
    // For ever it goes nowhere.
    let gone = || Ok(refuses(None));
    let (outcome, bodies) = told(vote(), [won(), unmarked(), gone(), gone(), gone(), freed()]);
    assert!(matches!(outcome, Outcome::NotApplied(Refusal::Unavailable(_))), "{outcome:?}");
    assert_eq!(conditions(&bodies)[5], UNDO);
}

#[test]
fn an_abstention_that_was_waited_out_is_written_down_before_the_vote_counts() {
    let joining = || found(&marker(Phase::Joining));
    let rejoining = marker(Phase::Rejoined { trusted_from_unix_ms: UNIX_MS + 604_800_000 });
    let waited = |bootstrap| vote_of(Membership { waited_out: Some(LOSS), bootstrap, ..asked() });
    let (outcome, asked) = told(waited(Bootstrap::No), [won(), joining(), Ok(shows(&marked(&rejoining.text())))]);
    assert_eq!(outcome, doubtful());
    assert_eq!(conditions(&asked)[2], "#qm = :found");
    let born = marker(Phase::Member);
    let (outcome, _) = told(waited(Bootstrap::Yes), [won(), joining(), Ok(shows(&marked(&born.text())))]);
    assert_eq!(outcome, granted(FLOOR));
    assert_eq!(
        told(waited(Bootstrap::No), [won(), joining(), lost()]).0,
        Outcome::Unknown(Fault::of(FaultKind::Timeout))
    );
    assert!(is_protocol(&told(waited(Bootstrap::No), [won(), joining(), Ok(shows(&marked("other")))]).0));
}

#[test]
fn a_stranger_frees_the_lock_and_says_where_it_belongs() {
    let other = Marker { quorum: QuorumId([2; 16]), ..marker(Phase::Member) };
    let (outcome, asked) = told(vote(), [won(), found(&other), freed()]);
    let (kind, detail) = denial(outcome);
    assert_eq!((kind, conditions(&asked)[2]), (DenialKind::Membership, UNDO));
    assert!(detail.contains(&other.quorum.to_string()), "{detail}");
    for odd in [marked("leasehold/2 quorum=x"), with(marked(""), "quorumMarker", json!({ "N": "1" }))] {
        let (kind, detail) = denial(told(vote(), [won(), Ok(reads(&odd)), freed()]).0);
        assert!(kind == DenialKind::Membership && detail.contains("does not know"), "{detail}");
    }
}

#[test]
fn a_lock_that_could_not_be_freed_again_may_still_stand() {
    let joining = || found(&marker(Phase::Joining));
    let busy = || Ok(fails(400, "ThrottlingException", "slow down"));
    assert_eq!(told(vote(), [won(), joining(), lost()]).0, Outcome::Unknown(Fault::of(FaultKind::Timeout)));
    assert!(matches!(told(vote(), [won(), joining(), busy()]).0, Outcome::Unknown(_)));
    assert!(is_protocol(&told(vote(), [won(), joining(), Ok(shows(&ours(1)))]).0));
    assert!(is_protocol(&told(vote(), [won(), joining(), Ok(refuses(Some(&ours(1))))]).0));
    for gone in [None, Some(&row(RIVAL_RVN)), Some(&without(row(RIVAL_RVN), "leaseDuration"))] {
        assert_eq!(told(vote(), [won(), joining(), Ok(refuses(gone))]).0, abstains(LOSS), "somebody else's by now");
    }
}

/// The request that frees the lock of an earlier send may be under way for long.
#[test]
fn a_lock_of_an_earlier_send_counts_once_it_shows_this_one() {
    let again = || {
        let acquire = Acquire { seq: Seq::new(2), member: Some(asked()), ..an_acquire() };
        Op::Acquire(Box::new(acquire))
    };
    let held = || Ok(refuses(Some(&counting(ours(1), FLOOR))));
    let kept = || {
        let rvn = alloc::format!("{HEX}:0000000002");
        Ok(shows(&json!({ "recordVersionNumber": { "S": rvn }, "leaseDuration": { "S": "30000" } })))
    };
    let (outcome, bodies) = told(again(), [held(), found(&marker(Phase::Member)), kept()]);
    let shown = holding(&outcome);
    assert_eq!((shown.seq(), shown.counter, shown.released), (Some(Seq::new(2)), Some(token(FLOOR)), false));
    assert_eq!((&shown.version, shown.record_ttl), (&Version::of(&NONCE, Seq::new(2)), Some(an_acquire().record_ttl)));
    assert_eq!(conditions(&bodies)[2], KEEP);
    let (outcome, _) = told(again(), [held(), found(&rejoined()), kept()]);
    assert_eq!((holding(&outcome).counter, holding(&outcome).seq()), (None, Some(Seq::new(2))), "it is in doubt");
    let freed = || Ok(refuses(Some(&counting(released(ours(1)), FLOOR))));
    let (outcome, _) = told(again(), [held(), found(&marker(Phase::Member)), freed()]);
    assert!(holding(&outcome).released, "it was freed a moment ago");
    let (outcome, _) = told(again(), [held(), found(&rejoined()), freed()]);
    assert_eq!(holding(&outcome).counter, None);
    let (outcome, _) = told(again(), [held(), found(&marker(Phase::Member)), lost()]);
    assert_eq!(outcome, Outcome::Unknown(Fault::of(FaultKind::Timeout)));
    let (outcome, bodies) = told(again(), [held(), found(&marker(Phase::Joining))]);
    assert_eq!((outcome, bodies.len()), (abstains(LOSS), 2), "where it does not vote, the client frees it");
    // Its own send needs no more, nor does one that has already let it go.
    for row in [ours(2), released(ours(1))] {
        let (_, bodies) = told(again(), [Ok(refuses(Some(&counting(row, FLOOR)))), found(&marker(Phase::Member))]);
        assert_eq!(bodies.len(), 2);
    }
}

#[test]
fn a_lock_is_freed_again_only_where_it_shows_this_send() {
    let joining = || found(&marker(Phase::Joining));
    let (outcome, bodies) = told(vote(), [won(), joining(), Ok(refuses(Some(&counting(ours(2), FLOOR))))]);
    assert_eq!(outcome, abstains(LOSS), "a later send of the attempt counts on it");
    assert_eq!(bodies[2]["ExpressionAttributeValues"][":rvn"], json!({ "S": alloc::format!("{HEX}:0000000001") }));
}

#[test]
fn a_marker_that_cannot_be_read_makes_no_vote() {
    assert_eq!(told(vote(), [won(), lost()]).0, Outcome::Unknown(Fault::of(FaultKind::Timeout)));
    let busy = || Ok(fails(400, "ThrottlingException", "slow down"));
    let (outcome, asked) = told(vote(), [won(), busy(), freed()]);
    assert!(matches!(outcome, Outcome::NotApplied(Refusal::Throttled(_))), "{outcome:?}");
    assert_eq!(conditions(&asked)[2], UNDO);
    assert!(is_protocol(&told(vote(), [won(), Ok(reads(&row(RIVAL_RVN)))]).0), "another row");
    assert!(is_protocol(&told(vote(), [won(), Ok(refuses(None))]).0));
}

#[test]
fn a_lock_that_is_gone_may_have_been_forgotten() {
    let forgotten = Outcome::NotApplied(Refusal::Abstains { stamp: None });
    for answer in [unmarked(), found(&marker(Phase::Joining)), Ok(reads(&marked("other")))] {
        assert_eq!(told(keep(), [Ok(refuses(None)), answer]).0, forgotten);
    }
    for marker in [marker(Phase::Member), rejoined()] {
        let (outcome, _) = told(keep(), [Ok(refuses(Some(&row(RIVAL_RVN)))), found(&marker)]);
        assert!(!holding(&outcome).released);
    }
    let unknown = told(keep(), [Ok(refuses(None)), lost()]).0;
    assert!(matches!(unknown, Outcome::NotApplied(Refusal::Unavailable(_))), "it is no proof: {unknown:?}");
    let renewed = json!({ "recordVersionNumber": { "S": alloc::format!("{HEX}:0000000003") } });
    assert_eq!(answered(keep(), shows(&renewed)), Outcome::Applied(Applied::Renewed));
}

#[test]
fn a_marker_is_looked_at_and_written() {
    let codec = codec();
    let member = marker(Phase::Member);
    let seen = codec.found(&reads(&marked(&member.text()))).unwrap();
    assert_eq!((seen.marker, seen.text), (Some(member.clone()), member.text().into_bytes()));
    assert_eq!(codec.found(&response(200, &json!({}))), Ok(FoundMarker::default()));
    let odd = codec.found(&reads(&marked("mine"))).unwrap();
    assert!(odd.marker.is_none() && odd.text == b"mine");
    assert!(codec.found(&reads(&row(RIVAL_RVN))).is_err() && codec.found(&refuses(None)).is_err());
    let request = codec.mark(b"", Some(&member));
    let expected = [
        r##"{"ConditionExpression":"attribute_not_exists(#qm)","ExpressionAttributeNames":{"#ir":"isReleased","##,
        r##""#ld":"leaseDuration","#on":"ownerName","#qm":"quorumMarker","#rvn":"recordVersionNumber"},"##,
        r#""ExpressionAttributeValues":{":ld":{"S":"1"},":on":{"S":"leasehold quorum"},"#,
        r#"":qm":{"S":"leasehold/1 quorum=01010101010101010101010101010101 max_ttl_ms=60000 "#,
        r#"stamp=07070707070707070707070707070707 phase=member run="},"#,
        r#"":rvn":{"S":"07070707070707070707070707070707"},":yes":{"S":"1"}},"#,
        r#""Key":{"key":{"S":"leasehold\u001fquorum"}},"ReturnValues":"ALL_NEW","#,
        r#""ReturnValuesOnConditionCheckFailure":"ALL_OLD","TableName":"locks","#,
        r##""UpdateExpression":"SET #qm = :qm, #rvn = :rvn, #on = :on, #ld = :ld, #ir = :yes"}"##,
    ];
    assert_eq!(String::from_utf8(request.body).unwrap(), expected.concat());
    assert_eq!(codec.marked(Some(&member), &shows(&marked(&member.text()))), Ok(true));
    assert_eq!(codec.marked(Some(&member), &refuses(Some(&marked("other")))), Ok(false));
    assert!(codec.marked(Some(&member), &shows(&marked("other"))).is_err());
    assert!(codec.marked(Some(&member), &response(200, &json!({}))).is_err());
}

#[test]
fn a_write_that_never_happens_shows_whether_writes_may() {
    let settings = Settings::new("locks").unwrap().key("LockID").unwrap().sort_key("sk", "-").unwrap();
    let codec = Codec::new(settings.expires("forgotten").unwrap());
    let request = codec.trial();
    assert_eq!(request.target, Target::UpdateItem);
    let body = body(&request);
    assert_eq!(body["Key"], json!({ "LockID": { "S": "leasehold\u{1f}quorum" }, "sk": { "S": "-" } }));
    // The one condition under which nothing is written, whatever stands in the row.
    assert_eq!(body["ConditionExpression"], "#pk = :other");
    assert_eq!(body["ExpressionAttributeNames"]["#pk"], "LockID");
    assert_ne!(body["ExpressionAttributeValues"][":other"], body["Key"]["LockID"]);

    assert_eq!(codec.tried(&refuses(None)), Ok(()));
    assert_eq!(codec.tried(&refuses(Some(&marked("x")))), Ok(()));
    assert!(codec.tried(&shows(&marked("x"))).is_err_and(|outcome| is_protocol(&outcome)), "it was written");
    let refused = codec.tried(&fails(400, "AccessDeniedException", "no")).unwrap_err();
    assert_eq!(denial(refused).0, DenialKind::Permission);
    let slow = codec.tried(&fails(400, "ThrottlingException", "slow")).unwrap_err();
    assert!(matches!(slow, Outcome::NotApplied(Refusal::Throttled(_))), "{slow:?}");
}
