//! The ledger of `cargo xtask chaos http` against lines and answers written by hand.

use leasehold_bench::rng::Rng;
use leasehold_chaos::http::{Board, Counts, EACH, Order, orders};
use leasehold_servers::http::Response;

const NINE: Order = Order { key: 0, eur: 9 };
const TEN: Order = Order { key: 0, eur: 10 };

fn response(status: u16, headers: &[(&str, &str)], body: &str) -> Response {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Response { status, headers, body: body.into() }
}

fn done(receipt: &str) -> Response {
    response(201, &[("x-receipt", receipt)], receipt)
}

fn replayed(receipt: &str) -> Response {
    response(201, &[("x-receipt", receipt), ("idempotency-replayed", "true")], receipt)
}

fn busy() -> Response {
    response(409, &[("retry-after", "1")], "at work")
}

/// A work of process 1 from its begin to the answer 201.
fn whole(board: &mut Board, receipt: &str) {
    for line in [format!("begun 0 9 {receipt}"), format!("effect {receipt}"), format!("ended {receipt} 201")] {
        board.hear(1, &line);
    }
}

/// The counts of what happens to a ledger of one key.
fn counts(happens: impl FnOnce(&mut Board)) -> Counts {
    let mut board = Board::new(1, false);
    happens(&mut board);
    Counts { marked: 1, ..board.counts() }
}

fn broken(happens: impl FnOnce(&mut Board)) -> String {
    counts(happens).broken().unwrap_or_default()
}

#[test]
fn an_effect_whose_answer_is_replayed_breaks_nothing() {
    let counts = counts(|board| {
        board.hear(1, "begun 0 9 a");
        assert!(!board.answered(NINE, 1, false, &busy()));
        assert!(!board.answered(TEN, 1, false, &response(422, &[], "another one")));
        board.hear(1, "effect a");
        board.hear(1, "ended a 201");
        assert!(board.answered(NINE, 1, false, &done("a")));
        assert!(board.answered(NINE, 1, true, &replayed("a")));
        assert!(board.answered(TEN, 1, true, &response(422, &[], "another one")));
    });
    assert_eq!(counts.broken(), None);
    assert_eq!((counts.first, counts.replayed, counts.busy, counts.refused), (1, 1, 1, 2));
    assert_eq!((counts.effects, counts.twice, counts.struck), (1, 0, 0));
}

#[test]
fn a_second_effect_needs_a_process_that_was_killed_or_stopped_or_said_nothing_certain() {
    let again = |ends: fn(&mut Board)| {
        counts(|board| {
            board.hear(1, "begun 0 9 a");
            board.hear(1, "effect a");
            ends(board);
            board.hear(2, "begun 0 9 b");
            board.hear(2, "effect b");
            board.hear(2, "ended b 201");
            board.answered(NINE, 1, false, &done("b"));
        })
    };
    let killed = again(|board| board.kill(1));
    assert_eq!((killed.broken(), killed.twice, killed.struck, killed.late), (None, 1, 1, 0));
    let stopped = again(|board| board.stop(1));
    assert_eq!((stopped.broken(), stopped.twice, stopped.struck, stopped.late), (None, 1, 1, 0));
    let late = again(|board| board.hear(1, "ended a 503"));
    assert_eq!((late.broken(), late.twice, late.struck, late.late), (None, 1, 0, 1));
    let other = again(|board| board.kill(2)).broken().unwrap();
    assert!(other.contains("key 0: a had its effect as well as b, and ended with None"), "{other}");
    let ended = again(|board| {
        board.hear(1, "ended a 500");
        board.kill(1);
    });
    assert!(ended.broken().unwrap().contains("ended with Some(500)"));
}

#[test]
fn a_work_that_was_answered_is_done_by_no_other() {
    let twice = broken(|board| {
        whole(board, "a");
        whole(board, "b");
        board.answered(NINE, 1, false, &done("a"));
    });
    assert!(twice.contains("b was answered 201, and so was a"), "{twice}");
}

#[test]
fn an_answer_that_differs_is_found() {
    let different = broken(|board| {
        whole(board, "a");
        board.answered(NINE, 1, false, &done("a"));
        board.answered(NINE, 1, true, &response(201, &[("x-receipt", "a"), ("idempotency-replayed", "true")], "A"));
    });
    assert!(different.contains("and then"), "{different}");
    let both = broken(|board| {
        whole(board, "a");
        board.answered(NINE, 1, false, &done("a"));
        board.answered(TEN, 1, true, &replayed("a"));
    });
    assert!(both.contains("answered 201 to both 9 and 10"), "{both}");
}

#[test]
fn an_answer_without_an_effect_is_found() {
    assert!(broken(|_| {}).contains("was never answered 201"));
    let nothing = broken(|board| {
        board.hear(1, "begun 0 9 a");
        board.hear(1, "ended a 201");
        board.answered(NINE, 1, false, &done("a"));
    });
    assert!(nothing.contains("of no work that had its effect"), "{nothing}");
    let unmarked = Counts { keys: 1, ..Counts::default() };
    assert_eq!(unmarked.broken().unwrap(), "1 of 1 keys have no completion");
}

#[test]
fn an_answer_that_nothing_explains_is_found() {
    let after = |answer: Response, order: Order| {
        broken(|board| {
            whole(board, "a");
            board.answered(NINE, 1, false, &done("a"));
            board.answered(order, 1, true, &answer);
        })
    };
    assert!(after(busy(), NINE).contains("answered 409"));
    assert!(after(response(422, &[], ""), NINE).contains("answered 422 to the request that was done"));
    assert!(after(response(500, &[("x-receipt", "b")], ""), NINE).contains("worked at after it was done"));
    assert!(after(response(500, &[], "oh"), NINE).contains("answered 500: oh"));
    assert!(after(response(413, &[], "long"), NINE).contains("answered 413"));
    assert_eq!(after(response(422, &[], ""), TEN), "");
    let alone = broken(|board| {
        board.answered(NINE, 1, false, &response(409, &[], "not kept"));
    });
    assert!(alone.contains("answered 409: not kept"), "{alone}");
}

#[test]
fn lines_that_nothing_explains_are_found() {
    for line in ["", "left a", "effect a", "begun 1 9 a", "begun 0 nine a"] {
        assert!(broken(|board| board.hear(1, line)).contains("a service told"), "{line:?}");
    }
    let twice = broken(|board| {
        whole(board, "a");
        board.hear(1, "effect a");
    });
    assert!(twice.contains("a service told: effect a"), "{twice}");
}

#[test]
fn each_key_has_requests_at_once_and_one_later_and_one_of_another_body() {
    let orders = orders(1_000, &mut Rng::new(1, 1));
    assert_eq!(orders.len(), 1_000);
    for key in 0..200 {
        let of_key: Vec<_> = orders.iter().enumerate().filter(|(_, order)| order.key == key).collect();
        assert_eq!(of_key.len() as u64, EACH);
        assert_eq!(of_key.iter().filter(|(_, order)| order.eur == 10).count(), 1);
        let [first, .., last] = of_key.iter().map(|(at, _)| *at).collect::<Vec<_>>()[..] else { unreachable!() };
        // The last ones have no others behind them.
        assert!(last - first > 100 || key > 150, "{key}: {first} {last}");
    }
}

#[test]
fn a_run_that_tries_too_little_is_blind() {
    let tried = Counts {
        replayed: 1,
        busy: 1,
        refused: 1,
        failed: 1,
        cut: 1,
        kills: 1,
        stops: 1,
        struck: 1,
        ..Counts::default()
    };
    assert_eq!(tried.blind(), None);
    assert!(Counts { kills: 0, ..tried }.blind().unwrap().contains("met a kill"));
}
