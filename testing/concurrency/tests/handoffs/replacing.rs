//! Requests replace the runner of a job while it, and one another, end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold_concurrency::internals::{Backing, Store, block_on};
use leasehold_concurrency::{Client, Error, ErrorKind, Once, Run, RunRequest};
use leasehold_scheduler::sync::thread;
use leasehold_scheduler::world::{Time, explore, pass, seen};

/// Far longer than any work here.
const TTL: Duration = Duration::from_secs(120);
/// How long the work takes.
const WORK: Duration = Duration::from_secs(1);
const PASSES: Time = Time::Passes(Duration::from_secs(3_000));

fn deploy(client: &Client) -> RunRequest {
    client.once("deploy").key("live").ttl(TTL).renew_every(Duration::from_secs(1))
}

/// Asks until the work is to be done, or was done: time passes while requests are under way, so some answers come too late, and what is left of
/// such a request is cleaned up behind it.
fn run_or_done(request: &RunRequest) -> Option<Run> {
    loop {
        match block_on(request.clone().into_future()) {
            Ok(Once::Run(run)) => return Some(run),
            Ok(Once::Done(_)) => return None,
            Ok(Once::Replaced) => panic!("nobody is newer"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}"),
            Ok(_) => pass(Duration::from_secs(1)),
        }
    }
}

/// Works under a run alone.
fn work(run: &Run, working: &AtomicBool) -> Result<(), Error> {
    assert!(!working.swap(true, Ordering::SeqCst), "two work at once");
    pass(WORK);
    working.store(false, Ordering::SeqCst);
    let finished = block_on(run.finish());
    if finished.is_err() {
        let _ = block_on(run.release());
    }
    finished
}

#[test]
fn the_newest_request_is_the_last_to_work() {
    explore(PASSES, &["older works", "older steps aside"], move || {
        let store = Store::new(Backing::AtOnce);
        let (first, older, newest) = (store.client(), store.client(), store.client());
        let run = run_or_done(&deploy(&first)).unwrap();
        let (working, has_begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (request, works, newest_has_begun) =
            (deploy(&older).replace(), Arc::clone(&working), Arc::clone(&has_begun));
        let gives_up = Arc::new(AtomicBool::new(false));
        let gave_up = Arc::clone(&gives_up);
        let older = thread::spawn(move || match block_on(request.into_future()) {
            Ok(Once::Run(run)) => {
                assert!(!newest_has_begun.load(Ordering::SeqCst), "the newest has worked before");
                seen("older works");
                work(&run, &works).is_ok()
            }
            Ok(Once::Replaced | Once::Done(_)) => {
                seen("older steps aside");
                false
            }
            Ok(other) => panic!("{other:?}"),
            // With a further number it would be the newest.
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
                gives_up.store(true, Ordering::SeqCst);
                false
            }
        });
        // Once it has revoked this lease, it has its number. It may have given up before.
        while !gave_up.load(Ordering::SeqCst) && !run.is_lost() {
            pass(Duration::from_millis(100));
        }
        let (request, works) = (deploy(&newest).replace(), Arc::clone(&working));
        let newest = thread::spawn(move || match run_or_done(&request) {
            Some(run) => {
                has_begun.store(true, Ordering::SeqCst);
                let finished = work(&run, &works);
                assert_ne!(finished.as_ref().err().and_then(Error::lost_reason), Some("revoked"), "nobody is newer");
                true
            }
            None => false,
        });
        let _ = block_on(run.release());
        let (older, newest) = (older.join().unwrap(), newest.join().unwrap());
        assert!(newest || older, "nobody has done it");
    });
}
