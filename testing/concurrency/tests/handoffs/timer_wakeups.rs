//! The timer thread goes to sleep while another thread wakes it.

use std::sync::Arc;
use std::time::Duration;

use leasehold_concurrency::internals::{TimerWakeup, WakeupForwarder};
use leasehold_scheduler::sync::thread;
use leasehold_scheduler::world::{Time, exhaust, explore};

#[test]
fn a_wakeup_just_before_the_sleep_ends_it() {
    let tried = exhaust(10_000, || {
        let timer = Arc::new(TimerWakeup::default());
        let sleeper = Arc::clone(&timer);
        let sleeper = thread::spawn(move || sleeper.sleep());
        timer.wake();
        sleeper.join().unwrap();
    });
    assert!(tried > 1);
}

#[test]
fn every_wakeup_ends_the_next_sleep() {
    explore(Time::Stands, &[], || {
        let timer = Arc::new(TimerWakeup::default());
        for _ in 0..3 {
            let sleeper = Arc::clone(&timer);
            let sleeper = thread::spawn(move || sleeper.sleep());
            let others: Vec<_> = (0..2).map(|_| Arc::clone(&timer)).collect();
            let others: Vec<_> = others.into_iter().map(|timer| thread::spawn(move || timer.wake())).collect();
            sleeper.join().unwrap();
            others.into_iter().for_each(|other| other.join().unwrap());
        }
    });
}

#[test]
fn a_hint_is_taken_by_the_thread_that_it_wakes() {
    let tried = exhaust(50_000, || {
        let forwarder = Arc::new(WakeupForwarder::new());
        let sleeper = Arc::clone(&forwarder);
        let sleeper = thread::spawn(move || while sleeper.sleep_and_take() == 0 {});
        forwarder.released("a");
        sleeper.join().unwrap();
    });
    assert!(tried > 1);
}

#[test]
fn a_stop_ends_the_wait_for_it() {
    let tried = exhaust(10_000, || {
        let timer = Arc::new(TimerWakeup::default());
        let waiting = Arc::clone(&timer);
        let waiting = thread::spawn(move || waiting.wait_stopped(Duration::from_secs(2)));
        timer.stop();
        assert!(waiting.join().unwrap());
    });
    assert!(tried > 1);
}
