//! Threads leave reports, and callbacks, for others to make.

use std::sync::{Arc, Mutex};

use leasehold_concurrency::internals::{Callbacks, Reports};
use leasehold_scheduler::sync::thread;
use leasehold_scheduler::world::{Time, explore, settle};

use super::{Count, LONG, PASSES};

#[test]
fn all_that_was_left_is_told_in_order_before_somebody_who_waits_goes_on() {
    explore(Time::Stands, &[], || {
        let (reports, told) = (Arc::new(Reports::new(100)), Arc::new(Mutex::new(Vec::new())));
        let givers: Vec<_> = (0..2)
            .map(|giver| (giver, Arc::clone(&reports), Arc::clone(&told)))
            .map(|(giver, reports, told)| {
                thread::spawn(move || {
                    for n in 0..3 {
                        let told = Arc::clone(&told);
                        reports.leave(move || told.lock().unwrap().push(giver * 10 + n));
                    }
                    assert!(reports.wait_told(LONG));
                    told.lock().unwrap().iter().filter(|n| **n / 10 == giver).copied().collect::<Vec<i32>>()
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
fn what_does_not_fit_is_dropped_and_the_rest_told_even_at_the_end() {
    explore(Time::Stands, &[], || {
        let (reports, told) = (Reports::new(2), Count::default());
        for _ in 0..6 {
            let told = told.clone();
            reports.leave(move || told.up());
        }
        drop(reports);
        settle();
        assert!((2..=6).contains(&told.get()), "{}", told.get());
    });
}

#[test]
fn callbacks_begin_in_order_and_each_is_called_once_beside_one_that_hangs() {
    explore(PASSES, &[], || {
        let (callbacks, began) = (Callbacks::default(), Arc::new(Mutex::new(Vec::new())));
        let others = Count::default();
        for n in 0..4 {
            let (began, others) = (Arc::clone(&began), others.clone());
            callbacks.give(move || {
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
