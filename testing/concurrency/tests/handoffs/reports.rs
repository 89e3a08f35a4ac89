//! Threads queue reports and callbacks for other threads.

use std::sync::{Arc, Mutex};

use leasehold_concurrency::internals::{Callbacks, Reports};
use leasehold_scheduler::sync::thread;
use leasehold_scheduler::world::{Time, explore, settle};

use super::{Count, LONG, PASSES};

#[test]
fn queued_reports_are_made_in_order_before_a_wait_ends() {
    explore(Time::Stands, &[], || {
        let (reports, made) = (Arc::new(Reports::new(100)), Arc::new(Mutex::new(Vec::new())));
        let givers: Vec<_> = (0..2)
            .map(|giver| (giver, Arc::clone(&reports), Arc::clone(&made)))
            .map(|(giver, reports, made)| {
                thread::spawn(move || {
                    for n in 0..3 {
                        let made = Arc::clone(&made);
                        reports.push(move || made.lock().unwrap().push(giver * 10 + n));
                    }
                    assert!(reports.flush(LONG));
                    made.lock().unwrap().iter().filter(|n| **n / 10 == giver).copied().collect::<Vec<i32>>()
                })
            })
            .collect();
        for (giver, thread) in (0..).zip(givers) {
            assert_eq!(thread.join().unwrap(), [giver * 10, giver * 10 + 1, giver * 10 + 2]);
        }
        assert!(reports.is_idle());
        drop(reports);
        settle();
    });
}

#[test]
fn reports_beyond_the_limit_are_dropped_and_the_rest_is_made() {
    explore(Time::Stands, &[], || {
        let (reports, made) = (Reports::new(2), Count::default());
        for _ in 0..6 {
            let made = made.clone();
            reports.push(move || made.up());
        }
        drop(reports);
        settle();
        assert!((2..=6).contains(&made.get()), "{}", made.get());
    });
}

#[test]
fn callbacks_begin_in_order_beside_one_that_hangs() {
    explore(PASSES, &[], || {
        let (callbacks, began) = (Callbacks::default(), Arc::new(Mutex::new(Vec::new())));
        let others = Count::default();
        for n in 0..4 {
            let (began, others) = (Arc::clone(&began), others.clone());
            callbacks.queue(move || {
                began.lock().unwrap().push(n);
                // The first waits for all the others.
                while n == 0 && others.get() < 3 {
                    thread::sleep(std::time::Duration::from_millis(10));
                }
                others.up();
            });
        }
        drop(callbacks);
        settle();
        assert_eq!(*began.lock().unwrap(), [0, 1, 2, 3]);
        assert_eq!(others.get(), 4);
    });
}
