//! A log that hangs: what is told to it waits, and nothing else does. Alone in its file, since a log is the process's.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

mod common;

use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use common::log::Log;
use common::{PATIENCE, connect_patiently, eventually, ms, url};
use leasehold::ErrorKind;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Lets events through while it is open.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    is_closed: bool,
    waiting: usize,
}

impl Gate {
    fn set(&self, is_closed: bool) {
        self.0.0.lock().unwrap().is_closed = is_closed;
        self.0.1.notify_all();
    }

    fn waiting(&self) -> usize {
        self.0.0.lock().unwrap().waiting
    }

    fn pass(&self) {
        let mut state = self.0.0.lock().unwrap();
        state.waiting += 1;
        state = self.0.1.wait_while(state, |state| state.is_closed).unwrap();
        state.waiting -= 1;
    }
}

/// Hangs while the gate is closed.
struct Hanging(Log, Gate);

impl Subscriber for Hanging {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.0.enabled(metadata)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.0.new_span(span)
    }

    fn event(&self, event: &Event<'_>) {
        self.1.pass();
        self.0.event(event);
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_log_that_hangs_stops_no_renewal_and_no_news_of_a_loss() {
    let (log, gate) = (Log::default(), Gate::default());
    tracing::subscriber::set_global_default(Hanging(log.clone(), gate.clone())).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for store in [url(&folder.path().join("locks.db")), "memory:".to_owned()] {
        let client = connect_patiently(&store);
        let healthy = client.lock("healthy").ttl(ms(3_000)).acquire().unwrap();
        let short = |name: &str| client.lock(name).ttl(ms(300)).no_renewal().acquire().unwrap();
        let lost = short("lost");
        gate.set(true);
        lost.lost();
        eventually("the log hangs", || gate.waiting() > 0);

        // Whatever happens from now on, happens beside a log that hangs, a caller's own part in it too.
        let (sender, told) = channel();
        let another = short("another");
        another.on_lost(move |error| sender.send(error.kind()).unwrap());
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), ErrorKind::Lost);
        let since = Instant::now();
        while since.elapsed() < 2 * ms(3_000) {
            healthy.check(Duration::ZERO).unwrap();
            std::thread::sleep(ms(50));
        }
        assert!(client.lock("healthy").try_acquire().unwrap().is_none());
        for _ in 0..10_500 {
            assert!(client.lock("healthy").try_acquire().unwrap().is_none());
        }
        drop((lost, another));
        assert_eq!(gate.waiting(), 1, "only the thread for reports waits");

        gate.set(false);
        eventually("it is told what could not be", || log.has("lock.events_dropped WARN", &["dropped="]));
        assert!(log.has("lock.lost", &["resource=\"another\""]), "what was left before it is told before it");
        assert!(log.has("lock.failed", &["outcome=\"busy\""]));

        // The last of it is told before the client is closed.
        drop(healthy);
        client.close().unwrap();
        assert!(log.has("lock.released", &["resource=\"healthy\""]));
        log.clear();
    }

    // Closing waits for a log that hangs, but not for long.
    let client = connect_patiently("memory:");
    let lost = client.lock("lost").ttl(ms(300)).no_renewal().acquire().unwrap();
    gate.set(true);
    lost.lost();
    eventually("the log hangs", || gate.waiting() > 0);
    client.close().unwrap();
    gate.set(false);
}
