//! Output for operators: events with stable names, metrics without resource names, and no nonce anywhere.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

mod common;

use common::log::Log;
use common::{eventually, ms};
use leasehold::blocking::{Client, Once};

fn begin(client: &Client, owner: &str) -> Once {
    client.once("job").key("monday").owner(owner).wait(common::PATIENCE).begin().unwrap()
}

#[test]
fn events_have_stable_names_and_tell_who_and_why() {
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let client = Client::connect("memory:observed").unwrap();
    let lease = client.lock("invoice/42").owner("worker-1").acquire().unwrap();
    assert!(log.has("span lock.acquire", &["invoice/42"]));
    eventually("the grant is told", || log.has("lock.acquired", &["owner=\"worker-1\""]));
    assert!(log.has("lock.acquired", &[&format!("token={}", lease.token())]));

    let other = Client::connect("memory:observed").unwrap();
    other.lock("invoice/42").wait(ms(20)).acquire().unwrap_err();
    eventually("the contention is told", || log.has("lock.contended", &["holder=\"worker-1\""]));

    lease.release().unwrap();
    assert!(log.has("span lock.release", &["invoice/42"]));
    eventually("the release is told", || log.has("lock.released", &["held_s="]));

    let short = client.lock("short").ttl(ms(150)).no_renewal().acquire().unwrap();
    short.lost();
    eventually("the danger is told", || log.has("lock.expiring", &["resource=\"short\""]));
    eventually("the loss is told", || log.has("lock.lost", &["reason=\"expired\""]));

    let Once::Run(run) = begin(&client, "runner") else { panic!("nobody has done it") };
    let waiting = other.clone();
    let successor = std::thread::spawn(move || match begin(&waiting, "successor") {
        Once::Run(run) => run.finish().unwrap(),
        answer => panic!("it is to be done: {answer:?}"),
    });
    eventually("it waits", || log.has("lock.contended", &["owner=\"successor\""]));
    assert!(!log.has("run.taken_over", &[]));
    run.release().unwrap();
    successor.join().unwrap();
    let of_job = "resource=\"job@monday\"";
    eventually("the take-over is told", || log.has("run.taken_over INFO", &[of_job, "owner=\"successor\""]));
    assert!(log.has("span run.finish", &[of_job]));
    eventually("the finish is told", || log.has("run.finished INFO", &[of_job, "held_s="]));
    assert!(matches!(begin(&client, "late"), Once::Done(_)));
    eventually("the skip is told", || log.has("run.skipped INFO", &[of_job, "done_by=\"successor\"", "done_token="]));

    client.forget_run("job", Some("monday")).unwrap().expect("it was done");
    eventually("the end of the completion is told", || log.has("run.forgotten INFO", &[of_job]));

    // A lock that was broken is told with the release, also by those who only drop the lease.
    let hour = std::time::Duration::from_secs(3_600);
    let dropped = client.lock("dropped").ttl(hour).acquire().unwrap();
    other.break_lock("dropped").unwrap().expect("it is held");
    drop(dropped);
    eventually("the loss is told", || log.has("lock.lost", &["resource=\"dropped\""]));
    let (began, elected) = std::sync::mpsc::channel();
    let election = client.elect("led").ttl(hour).on_start(move |_| began.send(()).unwrap()).start().unwrap();
    elected.recv_timeout(common::PATIENCE).unwrap();
    other.break_lock("led").unwrap().expect("it is held");
    election.resign().unwrap();
    eventually("the loss of the term is told", || log.has("lock.lost", &["resource=\"led\""]));
    assert!(!log.has("", &["not confirmed"]), "{log:?}");
    let of_callback = |callback: &str| {
        let callback = format!("callback=\"{callback}\"");
        let found = ["resource=\"led\"", &callback, "has panicked: as it should in this test"];
        eventually("the failure of a callback is told", || log.has("callback.failed ERROR", &found));
    };
    let fails = |_: &_| panic!("as it should in this test");
    let election = client.elect("led").on_start(move |lease| fails(lease)).start().unwrap();
    of_callback("on_start");
    election.resign().unwrap_err();
    let lease = client.lock("led").acquire().unwrap();
    lease.on_lost(|_| panic!("as it should in this test"));
    other.break_lock("led").unwrap().expect("it is held");
    of_callback("on_lost");
    lease.release().unwrap_err();
    client.close().unwrap();

    assert!(!log.has("", &["nonce"]) && !log.has("", &["Nonce"]), "{log:?}");
}

#[test]
fn a_long_wait_is_told_of_with_its_holder_and_whether_this_process_waits_for_itself() {
    let log = Log::default();
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let [holder, other] = [(); 2].map(|()| Client::connect("memory:waits").unwrap());
    let cell = holder.lock("cell").owner("first run").ttl(common::PATIENCE).acquire().unwrap();
    let pool = holder.lock("pool#0").owner("a worker").ttl(common::PATIENCE).acquire().unwrap();
    let begin = |work: fn(&Client)| {
        let client = other.clone();
        std::thread::spawn(move || work(&client))
    };
    let waiting = begin(|client| drop(client.lock("cell").wait(common::PATIENCE).acquire().unwrap()));
    let both = begin(|client| drop(client.semaphore("pool", 1).wait(common::PATIENCE).acquire().unwrap()));
    let queued = holder.clone();
    let queued = std::thread::spawn(move || drop(queued.lock("cell").wait(common::PATIENCE).acquire().unwrap()));
    eventually("the wait is reported", || {
        log.has("lock.waiting WARN", &["resource=\"cell\"", "holder=\"first run\"", "is_own=true", "waited_s=5."])
    });
    eventually("the wait for a permit is reported", || {
        log.has("lock.waiting WARN", &["resource=\"pool#0\"", "s so far"])
    });
    eventually("the queued wait is reported", || log.count("lock.waiting") == 3);
    assert!(log.has("", &["another lease of this process holds it (held by first run, token "]), "{log:?}");
    eventually("it is reported again", || log.has("lock.waiting WARN", &["waited_s=10."]));
    cell.release().unwrap();
    pool.release().unwrap();
    for thread in [waiting, both, queued] {
        thread.join().unwrap();
    }
}

#[cfg(feature = "metrics")]
mod metrics_facade {
    use std::sync::{Arc, Mutex};

    use super::*;
    use common::PATIENCE;
    use metrics::{
        Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    };

    /// Keeps every name with its labels, and the value.
    #[derive(Clone, Default)]
    struct Book(Arc<Mutex<Vec<(String, f64)>>>);

    struct Entry(Book, String);

    impl Entry {
        fn of(book: &Book, key: &Key) -> Arc<Self> {
            let labels: Vec<String> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            Arc::new(Self(book.clone(), format!("{} {}", key.name(), labels.join(","))))
        }

        fn write(&self, value: f64) {
            self.0.0.lock().unwrap().push((self.1.clone(), value));
        }
    }

    impl CounterFn for Entry {
        fn increment(&self, by: u64) {
            self.write(by as f64);
        }

        fn absolute(&self, _: u64) {}
    }

    impl HistogramFn for Entry {
        fn record(&self, value: f64) {
            assert!((0.0..60.0).contains(&value), "seconds, not {value}");
            self.write(value);
        }
    }

    impl Recorder for Book {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(Entry::of(self, key))
        }

        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::noop()
        }

        fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
            Histogram::from_arc(Entry::of(self, key))
        }
    }

    #[test]
    fn metrics_count_outcomes_and_never_name_a_resource() {
        let book = Book::default();
        metrics::set_global_recorder(book.clone()).unwrap();
        let client = Client::connect("memory:").unwrap();
        let lease = client.lock("invoice/42").ttl(ms(200)).acquire().unwrap();
        assert!(client.lock("invoice/42").try_acquire().unwrap().is_none());
        let has = |line: &str| book.0.lock().unwrap().iter().any(|(entry, _)| entry == line);
        for line in [
            "leasehold_acquire_total outcome=acquired",
            "leasehold_acquire_total outcome=busy",
            "leasehold_wait_seconds ",
            "leasehold_renew_total outcome=renewed",
            "leasehold_renew_duration_seconds ",
            "leasehold_validity_left_seconds ",
        ] {
            eventually(line, || has(line));
        }
        lease.release().unwrap();
        let lost = client.lock("other").ttl(ms(150)).no_renewal().acquire().unwrap();
        lost.lost();
        for line in [
            "leasehold_release_total outcome=confirmed",
            "leasehold_lost_total reason=expired",
            "leasehold_hold_seconds ",
        ] {
            eventually(line, || has(line));
        }
        lost.on_lost(|_| panic!("as it should in this test"));
        let line = "leasehold_callback_failures_total callback=on_lost";
        eventually(line, || has(line));
        assert!(!book.0.lock().unwrap().iter().any(|(entry, _)| entry.contains("invoice")));

        // Runs of two clients, since those of one stand in a queue before they ask the store.
        let [first, second] = [(); 2].map(|()| Client::connect("memory:counted").unwrap());
        let job = |client: &Client| client.once("job").cooldown(PATIENCE).wait(PATIENCE).begin().unwrap();
        let Once::Run(run) = job(&first) else { panic!("nobody has done it") };
        let successor = std::thread::spawn(move || match job(&second) {
            Once::Run(run) => run.finish().unwrap(),
            answer => panic!("it is to be done: {answer:?}"),
        });

        // A lease is held from its grant on, however long its caller has waited.
        let values = |line: &str| -> Vec<f64> {
            book.0.lock().unwrap().iter().filter(|(entry, _)| entry == line).map(|(_, value)| *value).collect()
        };
        let (holder, other) = (client.lock("waited for").acquire().unwrap(), client.clone());
        let waiter = std::thread::spawn(move || other.lock("waited for").wait(PATIENCE).acquire().unwrap());
        std::thread::sleep(ms(3_000));
        let before = values("leasehold_hold_seconds ").len();
        holder.release().unwrap();
        waiter.join().unwrap().release().unwrap();
        eventually("both releases", || values("leasehold_hold_seconds ").len() == before + 2);
        let held = values("leasehold_hold_seconds ")[before..].to_vec();
        assert!(held[0] >= 3.0 && held[1] < 2.5, "{held:?}");
        assert!(values("leasehold_wait_seconds ").last().unwrap() >= &2.5);

        run.release().unwrap();
        successor.join().unwrap();
        assert!(matches!(job(&first), Once::Done(_)));
        for line in [
            "leasehold_run_total outcome=taken_over",
            "leasehold_run_total outcome=finished",
            "leasehold_run_total outcome=skipped",
            "leasehold_acquire_total outcome=done",
        ] {
            eventually(line, || has(line));
        }
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn a_release_without_an_answer_is_unconfirmed() {
        use rusqlite::Connection;

        // It may be the other test's, if both run in one process: then that has their samples.
        let book = Book::default();
        if metrics::set_global_recorder(book.clone()).is_err() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("locks.db");
        let client = common::connect_patiently(common::url(&path));
        let lease = client.lock("job").ttl(ms(600)).acquire().unwrap();
        let hung = Connection::open(&path).unwrap();
        hung.busy_timeout(PATIENCE).unwrap();
        hung.execute_batch("BEGIN IMMEDIATE").unwrap();
        drop(lease);
        let count = |outcome: &str| {
            let line = format!("leasehold_release_total outcome={outcome}");
            book.0.lock().unwrap().iter().filter(|(entry, _)| *entry == line).count()
        };
        eventually("it has run out", || count("unconfirmed") == 1);
        assert_eq!(count("confirmed"), 0);
        drop(hung);
    }
}
