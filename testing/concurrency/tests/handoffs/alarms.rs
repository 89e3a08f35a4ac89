//! The background thread goes to sleep while somebody rings.

use std::sync::Arc;
use std::time::Duration;

use leasehold_concurrency::internals::{Alarm, Ear};
use leasehold_scheduler::sync::thread;
use leasehold_scheduler::world::{Time, exhaust, explore};

#[test]
fn a_ring_between_the_look_and_the_sleep_is_heard() {
    let tried = exhaust(10_000, || {
        let alarm = Arc::new(Alarm::default());
        let sleeper = Arc::clone(&alarm);
        let sleeper = thread::spawn(move || sleeper.sleep());
        alarm.ring();
        sleeper.join().unwrap();
    });
    assert!(tried > 1);
}

#[test]
fn every_ring_ends_a_sleep_that_begins_after_it() {
    explore(Time::Stands, &[], || {
        let alarm = Arc::new(Alarm::default());
        for _ in 0..3 {
            let sleeper = Arc::clone(&alarm);
            let sleeper = thread::spawn(move || sleeper.sleep());
            let others: Vec<_> = (0..2).map(|_| Arc::clone(&alarm)).collect();
            let others: Vec<_> = others.into_iter().map(|alarm| thread::spawn(move || alarm.ring())).collect();
            sleeper.join().unwrap();
            others.into_iter().for_each(|other| other.join().unwrap());
        }
    });
}

#[test]
fn a_hint_is_taken_by_whoever_wakes_up_from_it() {
    let tried = exhaust(50_000, || {
        let ear = Arc::new(Ear::new());
        let sleeper = Arc::clone(&ear);
        let sleeper = thread::spawn(move || while sleeper.sleep_and_take() == 0 {});
        ear.hears_of("a");
        sleeper.join().unwrap();
    });
    assert!(tried > 1);
}

#[test]
fn whoever_waits_for_the_end_is_told_of_it() {
    let tried = exhaust(10_000, || {
        let alarm = Arc::new(Alarm::default());
        let waiting = Arc::clone(&alarm);
        let waiting = thread::spawn(move || waiting.wait_stopped(Duration::from_secs(2)));
        alarm.stop();
        assert!(waiting.join().unwrap());
    });
    assert!(tried > 1);
}
