//! The store without faults.

use std::sync::atomic::{AtomicU64, Ordering};

use leasehold_core::member::{LossId, Marker, Phase, QuorumId};
use leasehold_core::op::{FaultKind, Holder, Raise};
use leasehold_core::store::BootId;

use super::*;
use crate::transport::memory;
use crate::transport::wakeups::tests::RecordingWatcher;

#[test]
fn a_lock_is_granted_once_and_its_tokens_grow() {
    let place = Place::new();
    let store = place.open();
    assert_eq!(token(one(&store, acquire_from("a", 1, 100))), 100);
    let holder = shown(one(&store, acquire("a", 2))).unwrap();
    assert_eq!(holder.holder, Holder::Lease { nonce: nonce(1), seq: Some(Seq::new(1)) });
    assert_eq!(holder.owner.unwrap().as_str(), "worker 1");
    assert_eq!((holder.record_ttl, holder.counter), (Some(TTL), Token::new(100)));
    assert!(holder.left.is_some_and(|left| left > TTL / 2 && left <= TTL));
    assert_eq!(token(one(&store, acquire("b", 2))), 1, "resources have nothing to do with each other");

    assert_eq!(one(&store, renew("a", 1, 2)), Outcome::Applied(Applied::Renewed));
    assert_eq!(one(&store, release("a", 1)), Outcome::Applied(Applied::Released));
    assert_eq!(token(one(&store, acquire("a", 2))), 101);
    assert!(shown(one(&store, renew("a", 1, 3))).unwrap().is_of(&nonce(2)));
}

#[test]
fn it_answers_as_the_store_in_memory_does() {
    let place = Place::new();
    let (file, memory) = (place.open(), memory::open(None));
    let mut random = 7_u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut kinds = std::collections::BTreeMap::new();
    for step in 0..2_000 {
        let name = ["a", "b", "ü/長い名前"][usize::try_from(draw(3)).unwrap()];
        let id = u8::try_from(draw(3) + if draw(4) == 0 { step / 100 } else { 0 }).unwrap();
        let op = match draw(6) {
            0 | 1 => acquire_with(name, id, |op| {
                op.floor = Token::new(draw(3_000)).unwrap();
                op.data = (draw(2) == 0).then(|| leasehold_core::Payload::new(&[id; 9]).unwrap());
            }),
            2 => renew(name, id, u32::try_from(draw(20)).unwrap()),
            3 => release(name, id),
            4 => on(name, Op::Raise(Raise { nonce: nonce(id), token: Token::new(draw(4_000)).unwrap(), loss: None })),
            _ => read(name),
        };
        let answers = [
            one(&file, op.clone()),
            memory.perform(&request(vec![op.clone()], PATIENCE), Pool::Caller).unwrap().remove(0),
        ];
        let [file, memory] = answers.map(without_time);
        assert_eq!(file, memory, "step {step}: {op:?}");
        *kinds.entry(format!("{file:?}").split(['{', '[', ')']).next().unwrap().to_owned()).or_insert(0) += 1;
    }
    assert!(kinds.len() >= 6 && kinds.values().all(|count| *count > 10), "{kinds:?}");
}

fn without_time(mut outcome: Outcome) -> Outcome {
    if let Outcome::NotApplied(Refusal::Conflict(seen)) | Outcome::Applied(Applied::Read(seen)) = &mut outcome
        && let Some(holding) = &mut seen.holding
    {
        assert!(holding.left.take().is_some() && holding.since_unix_ms.take().is_some());
    }
    outcome
}

#[test]
fn leases_and_counters_survive_the_process_that_wrote_them() {
    let place = Place::new();
    token(one(&place.open(), acquire_from("a", 1, 500)));
    let store = place.open();
    assert!(shown(one(&store, acquire("a", 2))).unwrap().is_of(&nonce(1)));
    one(&store, release("a", 1));
    drop(store);
    let store = place.open();
    assert!(shown(one(&store, acquire("a", 1))).unwrap().released, "an attempt that left is not granted again");
    assert_eq!(token(one(&store, acquire("a", 3))), 501);
}

#[test]
fn an_expired_lease_is_free_and_a_renewed_one_is_not() {
    let place = Place::new();
    let store = place.open();
    one(&store, acquire("a", 1));
    place.raw().execute("UPDATE leases SET expires_ns = 1", []).unwrap();
    assert_eq!(shown(one(&store, read("a"))), None);
    assert_eq!(shown(one(&store, renew("a", 1, 2))), None);
    assert_eq!(token(one(&store, acquire("a", 2))), 2);
    assert_eq!(one(&store, renew("a", 2, 2)), Outcome::Applied(Applied::Renewed));
    assert!(shown(one(&store, acquire("a", 3))).unwrap().is_of(&nonce(2)));
}

#[test]
fn a_lease_of_another_boot_is_neither_free_nor_of_known_length() {
    let place = Place::new();
    let store = place.open();
    one(&store, acquire("a", 1));
    let other = BootId([9; 16]);
    // Its uptime means nothing here.
    for expires in [1, i64::MAX] {
        place.raw().execute("UPDATE leases SET boot = ?1, expires_ns = ?2", (other.0, expires)).unwrap();
        let held = shown(one(&store, acquire("a", 2))).unwrap();
        assert_eq!((held.left, held.released, held.record_ttl), (None, false, Some(TTL)));
        assert_eq!(shown(one(&store, read("a"))).unwrap(), held);
    }
    // A client that has watched it unchanged for its ttl may take it over, but only this record.
    let held = shown(one(&store, read("a"))).unwrap();
    let take = |seq| {
        let version = leasehold_core::Version::of(&nonce(1), Seq::new(seq));
        acquire_with("a", 2, |op| op.expect = Some(version))
    };
    assert!(shown(one(&store, take(2))).is_some());
    assert_eq!(held.version, leasehold_core::Version::of(&nonce(1), Seq::new(1)));
    assert_eq!(token(one(&store, take(1))), 2);
    let boot: [u8; 16] = place.raw().query_row("SELECT boot FROM leases", [], |row| row.get(0)).unwrap();
    assert_ne!(boot, other.0);
}

#[test]
fn two_stores_on_one_file_are_one_store() {
    let place = Place::new();
    let (one_store, other_store) = (place.open(), place.open());
    #[cfg(unix)]
    let link = place.folder.path().join("link.db");
    #[cfg(unix)]
    std::os::unix::fs::symlink(place.file(), &link).unwrap();
    #[cfg(windows)]
    let link = place.folder.path().join("../").join(place.folder.path().file_name().unwrap()).join("locks.db");
    let by_link = Sqlite::open(&link).unwrap();

    let (heard, watcher) = RecordingWatcher::new();
    other_store.watch(&Resource::new("a").unwrap(), &watcher);
    token(one(&one_store, acquire("a", 1)));
    for store in [&other_store, &by_link] {
        assert!(shown(one(store, acquire("a", 2))).unwrap().is_of(&nonce(1)));
    }
    assert!(shown(one(&one_store, release("a", 2))).is_some());
    assert_eq!(heard.take(), Vec::<String>::new());
    one(&one_store, release("a", 1));
    assert_eq!(heard.take(), ["a"]);
    token(one(&other_store, acquire("a", 3)));
    one(&by_link, release("a", 3));
    assert_eq!(heard.take(), ["a"]);
    other_store.unwatch(&Resource::new("a").unwrap(), &watcher);
    token(one(&other_store, acquire("a", 4)));
    one(&by_link, release("a", 4));
    assert_eq!(heard.take(), Vec::<String>::new());
}

#[test]
fn a_relative_path_goes_on_meaning_the_same_file() {
    crate::host::fork::tests::alone(|| {
        let (place, elsewhere) = (Place::new(), Place::new());
        std::env::set_current_dir(place.folder.path()).unwrap();
        let store = Sqlite::open("locks.db".as_ref()).unwrap();
        std::env::set_current_dir(elsewhere.folder.path()).unwrap();
        token(one(&store, acquire("a", 1)));
        let background = store.perform(&request(vec![read("a")], PATIENCE), Pool::Background).unwrap().remove(0);
        assert!(shown(background).is_some());
        assert!(place.file().exists() && !elsewhere.file().exists());
    });
}

#[test]
fn threads_that_count_under_a_lock_lose_no_update() {
    let place = Place::new();
    let store = place.open();
    let (counter, tokens) = (AtomicU64::new(0), std::sync::Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for thread in 0..6_u8 {
            let (place, store, counter, tokens) = (&place, &store, &counter, &tokens);
            scope.spawn(move || {
                // Half of them come through stores of their own.
                let own = (thread % 2 == 0).then(|| place.open());
                let store = own.as_ref().unwrap_or(store);
                let give_up = soon();
                for round in 0..20_u8 {
                    let id = thread * 20 + round;
                    let granted = loop {
                        assert!(clock::monotonic() < give_up);
                        if let Outcome::Applied(Applied::Acquired { counter }) = one(store, acquire("a", id)) {
                            break counter.get();
                        }
                        std::thread::yield_now();
                    };
                    let before = counter.load(Ordering::Relaxed);
                    std::thread::yield_now();
                    counter.store(before + 1, Ordering::Relaxed);
                    tokens.lock().unwrap().push(granted);
                    one(store, release("a", id));
                }
            });
        }
    });
    assert_eq!(counter.into_inner(), 120);
    assert_eq!(tokens.into_inner().unwrap(), (1..=120).collect::<Vec<u64>>());
}

#[test]
fn eight_at_once_may_make_the_file() {
    for _ in 0..5 {
        let place = Place::new();
        let gate = std::sync::Barrier::new(8);
        let granted: Vec<u64> = std::thread::scope(|scope| {
            let open = |id| {
                let (place, gate) = (&place, &gate);
                scope.spawn(move || {
                    gate.wait();
                    let store = place.open();
                    u64::from(matches!(one(&store, acquire("a", id)), Outcome::Applied(_)))
                })
            };
            (0..8).map(open).collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(granted.iter().sum::<u64>(), 1);
    }
}

#[test]
fn waiting_for_another_writer_ends_at_the_deadline() {
    let place = Place::new();
    let store = place.open();
    let other = place.raw();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for pool in [Pool::Caller, Pool::Background] {
        let late = request(vec![acquire("a", 1)], Duration::from_millis(30));
        let fault = unavailable(store.perform(&late, pool).unwrap().remove(0));
        assert_eq!(fault.kind, FaultKind::Busy);
        assert!(fault.detail.unwrap().contains("written by others"));
        // A little before it, so that the answer is still listened to.
        assert!(clock::monotonic().plus(Duration::from_millis(5)) >= late.deadline);
    }
    // Reading waits for nobody.
    assert_eq!(shown(one(&store, read("a"))), None);
    let freed = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| token(one(&store, acquire("a", 1))));
        other.execute_batch("ROLLBACK").unwrap();
        waiting.join().unwrap()
    });
    assert_eq!(freed, 1);
}

#[test]
fn a_crowd_of_callers_does_not_keep_renewals_waiting() {
    let place = Place::new();
    let store = place.open();
    one(&store, acquire("a", 1));
    let turn = store.file.queues.callers.turn(Monotonic::FAR);
    let soon = || request(vec![renew("a", 1, 2)], Duration::from_millis(30));
    unavailable(store.perform(&soon(), Pool::Caller).unwrap().remove(0));
    let patient = request(vec![renew("a", 1, 2)], PATIENCE);
    assert_eq!(store.perform(&patient, Pool::Background), Ok(vec![Outcome::Applied(Applied::Renewed)]));
    drop(turn);
    assert_eq!(one(&store, renew("a", 1, 3)), Outcome::Applied(Applied::Renewed));
}

#[test]
fn a_request_is_applied_as_a_whole_or_not_at_all() {
    let place = Place::new();
    let store = place.open();
    let names: Vec<String> = (0..100).map(|n| format!("job/{n}")).collect();
    let acquired = all(&store, names.iter().map(|name| acquire(name, 1)).collect()).unwrap();
    assert_eq!(acquired.len(), 100);
    let mut ops: Vec<_> = names.iter().map(|name| renew(name, 1, 2)).collect();
    ops[50] = renew("job/50", 2, 2);
    let renewed = all(&store, ops).unwrap();
    assert!(shown(renewed[50].clone()).is_some(), "one that is refused does not hinder the others");
    assert_eq!(renewed.iter().filter(|outcome| **outcome == Outcome::Applied(Applied::Renewed)).count(), 99);

    let raw = place.raw();
    raw.execute_batch(
        "CREATE TRIGGER break BEFORE INSERT ON leases WHEN new.resource = 'job/70'
         BEGIN SELECT RAISE(ABORT, 'broken'); END",
    )
    .unwrap();
    let failed = all(&store, names.iter().map(|name| renew(name, 1, 3)).collect()).unwrap();
    assert_eq!(failed.len(), 100);
    assert!(failed.into_iter().all(|outcome| denial(outcome).detail.contains("broken")));
    raw.execute_batch("DROP TRIGGER break").unwrap();
    for name in &names {
        let expected = if name == "job/50" { 1 } else { 2 };
        assert_eq!(shown(one(&store, read(name))).unwrap().seq(), Some(Seq::new(expected)));
    }
}

#[test]
fn every_connection_waits_for_the_disk() {
    let place = Place::new();
    let store = place.open();
    for pool in [Pool::Caller, Pool::Background] {
        let settings = store.file.with_connection(pool, soon(), |connection| {
            let text = |pragma| {
                connection.db().pragma_query_value(None, pragma, |row| row.get::<_, rusqlite::types::Value>(0))
            };
            Ok((text("journal_mode").unwrap(), text("synchronous").unwrap()))
        });
        assert_eq!(settings.unwrap(), ("wal".to_owned().into(), 2.into()));
    }
}

#[test]
fn ever_new_names_do_not_fill_the_file() {
    let place = Place::new();
    let store = place.open();
    for (scheme, name) in [("up", true), ("mixed", false)] {
        let name = |n: u64| {
            let n = if name { n } else { n.wrapping_mul(0x9e37_79b9_7f4a_7c15) };
            format!("{scheme}/{n:020}")
        };
        for n in 0..300 {
            all(&store, vec![acquire(&name(n), 1), release(&name(n), 1)]).unwrap();
        }
        let raw = place.raw();
        let week = i64::try_from(clock::unix_ms()).unwrap() - 7 * 24 * 3_600_000;
        // One is held, one was used less than a week ago, one is of another boot: they stay.
        raw.execute("UPDATE leases SET touched_ms = ?1", [week - 1]).unwrap();
        raw.execute("UPDATE leases SET released = 0 WHERE resource = ?1", [name(1)]).unwrap();
        raw.execute("UPDATE leases SET touched_ms = ?2 WHERE resource = ?1", (name(2), week + 600_000)).unwrap();
        raw.execute(
            "UPDATE leases SET released = 0, boot = zeroblob(16), expires_ns = 1 WHERE resource = ?1",
            [name(3)],
        )
        .unwrap();
        for n in 300..1_000 {
            all(&store, vec![acquire(&name(n), 1), release(&name(n), 1)]).unwrap();
        }
        let old: Vec<String> = raw
            .prepare(
                "SELECT resource FROM leases WHERE touched_ms < ?1 + 1000000 AND resource LIKE ?2 ORDER BY resource",
            )
            .unwrap()
            .query_map((week, format!("{scheme}/%")), |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let stay = [name(1), name(2), name(3)];
        assert!(stay.iter().all(|name| old.contains(name)), "{old:?}");
        assert!(old.len() < 60, "{} of 300 are left", old.len());
        raw.execute("DELETE FROM leases", []).unwrap();
    }
}

#[test]
fn a_marker_is_written_where_it_was_found() {
    let place = Place::new();
    let store = place.open();
    let nothing = store.look().unwrap();
    assert!(nothing.marker.is_none() && nothing.text.is_empty() && nothing.run.is_none());
    let marker = |stamp| Marker {
        quorum: QuorumId([1; 16]),
        max_ttl_ms: 60_000,
        stamp: LossId([stamp; 16]),
        phase: Phase::Member,
        run: None,
    };
    assert!(!store.mark(b"something else", Some(&marker(1))).unwrap(), "it is not what is there");
    assert!(store.mark(b"", Some(&marker(1))).unwrap());
    assert!(!store.mark(b"", Some(&marker(2))).unwrap(), "somebody came before");
    let found = place.open().look().unwrap();
    assert_eq!((found.marker, found.text), (Some(marker(1)), marker(1).text().into_bytes()));
    assert!(store.mark(marker(1).text().as_bytes(), Some(&marker(2))).unwrap());
    assert!(!store.mark(marker(1).text().as_bytes(), None).unwrap(), "another stands there");
    assert!(store.mark(marker(2).text().as_bytes(), None).unwrap() && store.look().unwrap().text.is_empty());
    assert!(store.mark(b"", Some(&marker(3))).unwrap());
    place.raw().execute("UPDATE quorum SET marker = 'odd'", []).unwrap();
    let odd = store.look().unwrap();
    assert!(odd.marker.is_none() && odd.text == b"odd");
}
