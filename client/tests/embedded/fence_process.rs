//! Guards for what is in this process, against threads that come too late.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;

use leasehold::ErrorKind;
use leasehold::fence::{Error, Guards};

const ITEM: &str = "invoice/42";
const OLD: u64 = 33;
const NEW: u64 = 34;
const MAX: u64 = (1 << 53) - 1;

#[track_caller]
fn assert_stale<T: std::fmt::Debug>(result: Result<T, Error>) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StaleToken, "{error}");
    assert_eq!(error.resource(), Some(ITEM));
    let message = error.to_string();
    assert!(message.contains("33") && message.contains("34"), "{message}");
}

#[test]
fn a_holder_writes_repeatedly_until_its_successor_claims() {
    let (guards, total) = (Guards::new(10), AtomicI64::new(100));
    guards.claim(ITEM, OLD).unwrap();
    guards.claim(ITEM, OLD).unwrap();
    for sum in [110, 120] {
        assert_eq!(guards.with(ITEM, OLD, || total.swap(sum, SeqCst)).unwrap(), sum - 10);
    }
    // Before its successor writes, and even before it reads.
    guards.claim(ITEM, NEW).unwrap();
    assert_stale(guards.with(ITEM, OLD, || total.store(999, SeqCst)));
    assert_stale(guards.check(ITEM, OLD));
    assert_stale(guards.claim(ITEM, OLD));
    assert_eq!(total.load(SeqCst), 120);
    guards.check(ITEM, NEW).unwrap();
    assert_eq!(guards.high_water(ITEM), Some(NEW));
    // Other items are not concerned.
    assert_eq!(guards.high_water("another item"), None);
    guards.claim("another item", OLD).unwrap();
}

#[test]
fn a_check_needs_a_claim_and_a_token() {
    let guards = Guards::new(10);
    let unclaimed = guards.with(ITEM, OLD, || -> () { panic!("it must not write") }).unwrap_err();
    assert!(unclaimed.kind() == ErrorKind::Config && unclaimed.to_string().contains("never claimed"), "{unclaimed}");
    for error in [guards.claim(ITEM, MAX + 1), guards.check(ITEM, u64::MAX)].map(Result::unwrap_err) {
        assert!(error.kind() == ErrorKind::Config && error.to_string().contains("9007199254740991"), "{error}");
    }
    guards.claim(ITEM, MAX).unwrap();
    guards.check(ITEM, MAX).unwrap();
    assert_eq!(guards.check(ITEM, MAX - 1).unwrap_err().kind(), ErrorKind::StaleToken);
}

#[test]
fn numbers_order_the_writes_of_one_lease() {
    let guards = Guards::new(10);
    guards.claim(ITEM, OLD).unwrap();
    guards.check_in_order(ITEM, OLD, 1).unwrap();
    assert_eq!(guards.with_in_order(ITEM, OLD, 3, || "written").unwrap(), "written");
    let late = guards.with_in_order(ITEM, OLD, 2, || -> () { panic!("it must not write") }).unwrap_err();
    assert!(late.kind() == ErrorKind::StaleToken && late.to_string().contains("out of order"), "{late}");
    guards.claim(ITEM, NEW).unwrap();
    guards.check_in_order(ITEM, NEW, 1).unwrap();
    assert_stale(guards.check_in_order(ITEM, OLD, 4));
}

#[test]
fn a_claim_waits_for_a_write_that_was_let_through_and_other_items_do_not() {
    let (guards, written) = (Guards::new(10), AtomicBool::new(false));
    guards.claim(ITEM, OLD).unwrap();
    std::thread::scope(|scope| {
        let (guards, written) = (&guards, &written);
        let (starts, has_started) = channel();
        let write = || {
            let successor = scope.spawn(move || {
                starts.send(()).unwrap();
                guards.claim(ITEM, NEW).unwrap();
                written.load(SeqCst)
            });
            has_started.recv().unwrap();
            // These would hang if all items shared a lock.
            guards.claim("another item", OLD).unwrap();
            guards.with("another item", OLD, || ()).unwrap();
            guards.forget("another item");
            for _ in 0..1000 {
                assert!(!successor.is_finished(), "a claim got in while a write is under way");
                std::thread::yield_now();
            }
            written.store(true, SeqCst);
            successor
        };
        let successor = guards.with(ITEM, OLD, write).unwrap();
        assert!(successor.join().unwrap(), "whoever claims sees every write that was let through");
    });
}

#[test]
fn items_beyond_the_limit_are_refused() {
    let guards = Guards::new(2);
    guards.claim("a", OLD).unwrap();
    guards.claim("b", OLD).unwrap();
    let full = guards.claim("c", OLD).unwrap_err();
    assert!(full.kind() == ErrorKind::StoreRefused && full.to_string().contains('2'), "{full}");
    assert_eq!(guards.check("d", OLD).unwrap_err().kind(), ErrorKind::Config, "a check takes no room");
    guards.claim("a", NEW).unwrap();

    guards.forget("a");
    guards.forget("a");
    assert_eq!(guards.high_water("a"), None);
    assert_eq!(guards.check("a", NEW).unwrap_err().kind(), ErrorKind::Config, "a late write is still refused");
    guards.claim("c", OLD).unwrap();
    assert_eq!(guards.claim("a", NEW).unwrap_err().kind(), ErrorKind::StoreRefused);
}

#[test]
fn a_write_that_panics_leaves_the_guard_as_it_was() {
    let guards = Guards::new(10);
    guards.claim(ITEM, NEW).unwrap();
    std::thread::scope(|scope| {
        let panicking = scope.spawn(|| guards.with(ITEM, NEW, || std::panic::panic_any("the write fails")));
        panicking.join().unwrap_err();
    });
    assert_stale(guards.claim(ITEM, OLD));
    guards.check(ITEM, NEW).unwrap();
}

#[test]
fn many_writers_with_growing_tokens_lose_no_update() {
    let (guards, next, sum) = (Guards::new(10), AtomicU64::new(1), AtomicI64::new(0));
    let accepted: i64 = std::thread::scope(|scope| {
        // No lock at all: tokens in order, holders that overlap at will.
        let work = || {
            let mut accepted = 0;
            for _ in 0..2000 {
                let token = next.fetch_add(1, SeqCst);
                let increment = || {
                    guards.claim(ITEM, token)?;
                    let seen = sum.load(SeqCst);
                    std::thread::yield_now();
                    guards.with(ITEM, token, || {
                        // Long enough for somebody to claim and read, if the guard lets them.
                        std::thread::yield_now();
                        sum.store(seen + 1, SeqCst);
                    })
                };
                match increment() {
                    Ok(()) => accepted += 1,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::StaleToken, "{error}"),
                }
            }
            accepted
        };
        let workers: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!(sum.load(SeqCst), accepted);
    assert!(accepted > 0);
}
