//! Forks of a process that has the file open.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::host::fork::tests::{alone, in_forked_child};

#[test]
fn parent_and_child_both_go_on_and_the_file_stays_sound() {
    alone(|| {
        let place = Place::new();
        let store = place.open();
        for pool in [Pool::Caller, Pool::Background] {
            store.perform(&request(vec![acquire("parent", 1)], PATIENCE), pool).unwrap();
        }
        for round in 1..=20_u8 {
            let id = 100 + round;
            let code = in_forked_child(|| {
                // What it inherited is not its own, and may even be dropped.
                let fault = unavailable(one(&store, release("parent", 1)));
                assert!(fault.to_string().contains("parent process"), "{fault}");
                assert!(store.diagnose().iter().any(|finding| finding.what.contains("parent process")));
                // SAFETY: the original is never touched again, since this process ends through `_exit`.
                drop(unsafe { std::ptr::read(&raw const store) });
                let own = place.open();
                assert!(shown(one(&own, acquire("parent", 2))).unwrap().is_of(&nonce(1)));
                assert_eq!(token(one(&own, acquire("child", id))), u64::from(round));
                // Grandchildren are no different.
                let code = in_forked_child(|| {
                    unavailable(one(&own, read("child")));
                    i32::from(shown(one(&place.open(), acquire("child", 4))).is_none())
                });
                assert_eq!(one(&own, release("child", id)), Outcome::Applied(Applied::Released));
                code
            });
            assert_eq!(code, 0);
            assert_eq!(one(&store, renew("parent", 1, u32::from(round) + 1)), Outcome::Applied(Applied::Renewed));
            let renewed = store.perform(&request(vec![read("child")], PATIENCE), Pool::Background).unwrap().remove(0);
            assert!(shown(renewed).unwrap().released);
        }
        let sound: String = place.raw().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
    });
}

/// Ends the threads of a test that failed.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_fork_among_busy_threads_harms_nobody() {
    alone(|| {
        let place = Place::new();
        let (store, stop) = (place.open(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let stop_in_any_case = Stop(&stop);
            let threads: Vec<_> = (1..=6_u8)
                .map(|id| {
                    let (store, stop) = (&store, &stop);
                    scope.spawn(move || {
                        let (name, mut last) = (format!("job/{id}"), 0);
                        while !stop.load(Ordering::Relaxed) {
                            // Each attempt has its own nonce.
                            let mut bytes = [id; 16];
                            bytes[..8].copy_from_slice(&u64::to_be_bytes(last));
                            let nonce = Nonce::from_bytes(bytes);
                            let granted = token(one(store, acquire_with(&name, id, |op| op.nonce = nonce)));
                            assert_eq!(granted, last + 1);
                            last = granted;
                            let released = one(store, on(&name, Op::Release(Release { nonce, quorum: None })));
                            assert_eq!(released, Outcome::Applied(Applied::Released));
                        }
                        last
                    })
                })
                .collect();
            for round in 1..=30 {
                let code = in_forked_child(|| {
                    let own = place.open();
                    let granted = token(one(&own, acquire("child", 3)));
                    one(&own, release("child", 3));
                    one(&own, acquire("child", 99));
                    one(&own, release("child", 99));
                    i32::from(granted != 2 * round - 1)
                });
                assert_eq!(code, 0, "round {round}");
            }
            drop(stop_in_any_case);
            assert!(threads.into_iter().all(|thread| thread.join().unwrap() > 0));
        });
        let sound: String = place.raw().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
    });
}

#[test]
fn connections_closed_by_the_parent_do_not_affect_the_child() {
    alone(|| {
        let place = Place::new();
        let store = place.open();
        one(&store, acquire("parent", 1));
        let (opened, closed) = (place.folder.path().join("opened"), place.folder.path().join("closed"));
        let until = |file: &std::path::Path| {
            let give_up = soon();
            while !file.exists() {
                assert!(clock::monotonic() < give_up);
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                until(&opened);
                // If the child had inherited the list of file locks, it would hold none in truth. Then the parent would
                // take itself for the last one here, and remove the log that the child writes to.
                drop(store);
                std::fs::write(&closed, "").unwrap();
            });
            let code = in_forked_child(|| {
                let own = place.open();
                one(&own, acquire("before", 2));
                std::fs::write(&opened, "").unwrap();
                until(&closed);
                token(one(&own, acquire("after", 2)));
                // Leaves without closing, so that only what is in the log counts.
                std::mem::forget(own);
                0
            });
            assert_eq!(code, 0);
        });
        let store = place.open();
        for name in ["parent", "before", "after"] {
            assert!(shown(one(&store, read(name))).is_some(), "{name} is lost");
        }
    });
}

#[test]
fn threads_that_wait_for_the_file_do_not_delay_a_fork() {
    alone(|| {
        let place = Place::new();
        let store = place.open();
        let other = place.raw();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| token(one(&store, acquire("a", 1))));
            let give_up = soon();
            while crate::host::fork::gate::tests::inside() == 0 {
                assert!(clock::monotonic() < give_up);
                std::thread::yield_now();
            }
            // The child may come in, so the fork was clean although somebody was waiting all the time.
            let code = in_forked_child(|| i32::from(shown(one(&place.open(), read("a"))).is_some()));
            assert_eq!(code, 0);
            assert!(!waiting.is_finished());
            other.execute_batch("ROLLBACK").unwrap();
            assert_eq!(waiting.join().unwrap(), 1);
        });
    });
}

#[test]
fn after_an_unclean_fork_the_child_is_refused() {
    alone(|| {
        let place = Place::new();
        let store = place.open();
        let inside = crate::host::fork::gate::enter(Monotonic::FAR).unwrap();
        let code = in_forked_child(|| {
            // SAFETY: as above, the original is never touched again.
            drop(unsafe { std::ptr::read(&raw const store) });
            let refused = place.refused();
            i32::from(!(refused.contains("forked while another thread") && refused.contains("exec")))
        });
        drop(inside);
        assert_eq!(code, 0);
        assert_eq!(token(one(&store, acquire("a", 1))), 1);
    });
}
