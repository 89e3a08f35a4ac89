//! Outcomes of an operation of a single store.

use super::*;

#[test]
fn a_grant_shows_what_was_written() {
    assert_eq!(answered(acquire(), shows(&counting(ours(1), FLOOR))), granted(FLOOR));
    for odd in [
        counting(ours(2), FLOOR),
        counting(row(RIVAL_RVN), FLOOR),
        counting(released(ours(1)), FLOOR),
        counting(ours(1), FLOOR + 1),
        counting(ours(1), FLOOR - 1),
        ours(1),
        with(counting(ours(1), FLOOR), "key", json!({ "S": "invoice/43" })),
        without(counting(ours(1), FLOOR), "key"),
        json!({}),
        json!(null),
    ] {
        assert!(is_protocol(&answered(acquire(), shows(&odd))), "{odd}");
    }
    for odd in [json!({}), json!({ "Item": counting(ours(1), FLOOR) }), json!([])] {
        assert!(is_protocol(&answered(acquire(), response(200, &odd))), "{odd}");
    }
}

#[test]
fn a_free_row_whose_floor_is_taken_counts_up() {
    let free = counting(released(row(RIVAL_RVN)), FLOOR + 7);
    let two = |second: HttpResponse| told(acquire(), [Ok(refuses(Some(&free))), Ok(second)]).0;
    assert_eq!(two(shows(&counting(ours(1), FLOOR + 8))), granted(FLOOR + 8));
    // Another may have come and gone in between: the table counts, not we.
    assert_eq!(two(shows(&counting(ours(1), FLOOR + 99))), granted(FLOOR + 99));
    assert!(is_protocol(&two(shows(&counting(ours(1), FLOOR)))), "one more than the floor at least");
    let lost_counter = released(row(JAVA_RVN));
    let raced = two(refuses(Some(&lost_counter)));
    assert!(holding(&raced).released, "and that is the end of this send");
    assert_eq!(two(refuses(None)), Outcome::NotApplied(Refusal::Conflict(Default::default())));
    let taken = two(refuses(Some(&counting(row(RIVAL_RVN), FLOOR + 8))));
    assert_eq!(holding(&taken).holder, Holder::Lease { nonce: RIVAL, seq: Some(Seq::new(7)) });
    assert_eq!(told(acquire(), [Ok(refuses(Some(&free))), lost()]).0, Outcome::Unknown(Fault::of(FaultKind::Timeout)));
    let busy = Outcome::NotApplied(Refusal::Unavailable(Fault::of(FaultKind::Unreachable)));
    assert_eq!(told(acquire(), [Ok(refuses(Some(&free))), Err(busy.clone())]).0, busy);
}

#[test]
fn a_row_that_stood_still_counts_as_free() {
    let stood = counting(row(RIVAL_RVN), FLOOR);
    let op = || takeover(Version::of(&RIVAL, Seq::new(7)));
    let answers = [Ok(refuses(Some(&stood))), Ok(shows(&counting(ours(1), FLOOR + 1)))];
    assert_eq!(told(op(), answers).0, granted(FLOOR + 1));
    let moved = counting(row("c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3:0000000008"), FLOOR);
    assert!(!holding(&answered(op(), refuses(Some(&moved)))).released, "the holder was alive in between");
}

#[test]
fn tokens_run_out_at_the_top() {
    let top = counting(released(row(RIVAL_RVN)), Token::MAX.get());
    assert_eq!(denial(answered(acquire(), refuses(Some(&top)))).0, DenialKind::TokensExhausted);
    let below = counting(released(row(RIVAL_RVN)), Token::MAX.get() - 1);
    let raced = told(acquire(), [Ok(refuses(Some(&below))), Ok(refuses(Some(&top)))]).0;
    assert_eq!(denial(raced).0, DenialKind::TokensExhausted);
    let held = counting(row(RIVAL_RVN), Token::MAX.get());
    assert_eq!(holding(&answered(acquire(), refuses(Some(&held)))).counter, Some(Token::MAX));
}

#[test]
fn a_lost_answer_is_recovered_from_the_row() {
    let seen = answered(acquire(), refuses(Some(&counting(ours(1), FLOOR))));
    let expected = Holder::Lease { nonce: NONCE, seq: Some(Seq::new(1)) };
    assert_eq!((holding(&seen).holder, holding(&seen).counter), (expected, Some(token(FLOOR))));
    let seen = answered(renew(), refuses(Some(&counting(ours(3), FLOOR))));
    assert_eq!(holding(&seen).seq(), Some(Seq::new(3)));
    let left = answered(acquire(), refuses(Some(&counting(released(ours(1)), FLOOR))));
    assert!(holding(&left).released, "no row of ours is acquired again");
}

#[test]
fn what_is_ours_is_never_in_its_own_way() {
    let low = released(row(RIVAL_RVN));
    for (op, row) in [
        (renew(), ours(2)),
        (release(), ours(2)),
        (release(), undone(ours(2))),
        (raise(9, None), counting(ours(2), 8)),
        (raise(9, None), ours(2)),
        (acquire(), low.clone()),
        (acquire(), counting(low, FLOOR - 1)),
    ] {
        assert!(is_protocol(&answered(op.clone(), refuses(Some(&row)))), "{op:?} {row}");
    }
}

#[test]
fn a_renewal_shows_its_own_version() {
    let rvn = |seq: u32| json!({ "recordVersionNumber": { "S": alloc::format!("{HEX}:{seq:010}") } });
    assert_eq!(answered(renew(), shows(&rvn(3))), Outcome::Applied(Applied::Renewed));
    for odd in [rvn(2), rvn(4), json!({ "recordVersionNumber": { "S": RIVAL_RVN } }), json!({})] {
        assert!(is_protocol(&answered(renew(), shows(&odd))), "{odd}");
    }
    assert!(is_protocol(&answered(renew(), response(200, &json!({})))));
    assert_eq!(answered(renew(), refuses(None)), Outcome::NotApplied(Refusal::Conflict(Default::default())));
    assert!(holding(&answered(renew(), refuses(Some(&released(ours(2)))))).released);
    assert_eq!(holding(&answered(renew(), refuses(Some(&row(JAVA_RVN))))).holder, Holder::Foreign);
}

#[test]
fn a_release_shows_the_row_released() {
    assert_eq!(answered(release(), shows(&released(ours(2)))), Outcome::Applied(Applied::Released));
    for odd in [ours(2), released(row(RIVAL_RVN)), json!({})] {
        assert!(is_protocol(&answered(release(), shows(&odd))), "{odd}");
    }
    assert_eq!(answered(release(), refuses(None)), Outcome::NotApplied(Refusal::Conflict(Default::default())));
    assert!(!holding(&answered(release(), refuses(Some(&row(RIVAL_RVN))))).released);
}

#[test]
fn a_raise_answers_the_counter() {
    let raised = |counter| Outcome::Applied(Applied::Raised { counter: token(counter) });
    assert_eq!(answered(raise(9, None), shows(&counting(ours(2), 9))), raised(9));
    assert_eq!(answered(raise(9, None), refuses(Some(&counting(ours(2), 12)))), raised(12), "it lowers nothing");
    for odd in [counting(ours(2), 8), counting(released(ours(2)), 9), counting(row(RIVAL_RVN), 9), ours(2)] {
        assert!(is_protocol(&answered(raise(9, None), shows(&odd))), "{odd}");
    }
    let gone = answered(raise(9, None), refuses(Some(&counting(released(ours(2)), 8))));
    assert!(holding(&gone).released);
    assert_eq!(holding(&answered(raise(9, None), refuses(Some(&row(JAVA_RVN))))).holder, Holder::Foreign);
}

#[test]
fn a_raise_for_a_loss_writes_the_trust_too() {
    let loss = LossId([2; 16]);
    let trusting = |row| with(row, "quorumTrust", json!({ "S": loss.to_string() }));
    let raised = |counter| Outcome::Applied(Applied::Raised { counter: token(counter) });
    let op = || raise(9, Some(loss));
    assert_eq!(answered(op(), shows(&trusting(counting(ours(2), 9)))), raised(9));
    assert!(is_protocol(&answered(op(), shows(&counting(ours(2), 9)))), "only the counter");
    assert_eq!(answered(op(), refuses(Some(&trusting(counting(ours(2), 9))))), raised(9), "all is as it should be");
    let high = counting(ours(2), 12);
    assert_eq!(told(op(), [Ok(refuses(Some(&high))), Ok(shows(&trusting(high.clone())))]).0, raised(12));
    assert!(is_protocol(&told(op(), [Ok(refuses(Some(&high))), Ok(refuses(Some(&high)))]).0));
    let taken = told(op(), [Ok(refuses(Some(&high))), Ok(refuses(Some(&row(RIVAL_RVN))))]).0;
    assert!(!holding(&taken).released);
}

#[test]
fn a_read_shows_what_is_there() {
    let seen = answered(Op::Read, reads(&counting(row(RIVAL_RVN), 5)));
    assert_eq!((holding(&seen).counter, holding(&seen).released), (Some(token(5)), false));
    assert_eq!(answered(Op::Read, response(200, &json!({}))), Outcome::Applied(Applied::Read(Default::default())));
    assert!(is_protocol(&answered(Op::Read, reads(&with(row(RIVAL_RVN), "key", json!({ "S": "x" }))))));
    assert!(is_protocol(&answered(Op::Read, refuses(None))));
}
