//! Elections: what a candidate says of its term, and who may end it.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use crate::common::{PATIENCE, eventually, ms};
use leasehold::blocking::Client;
use leasehold::{Election, ErrorKind};

#[test]
fn a_term_that_is_over_is_not_named_though_its_callback_still_runs() {
    let client = Client::connect("memory:").unwrap();
    let ((began, elected), (may_go_on, go_on)) = (channel(), channel());
    let election = client
        .elect("leader")
        .ttl(ms(1_000))
        .on_start(move |lease| {
            began.send((lease.token(), lease.clone())).unwrap();
            // A second term may begin before it resigns.
            let _ = go_on.recv_timeout(PATIENCE);
        })
        .start()
        .unwrap();
    let (token, lease) = elected.recv_timeout(PATIENCE).unwrap();
    // A machine that is busy may have lost it already.
    let seen = election.token();
    assert!(seen == Some(token) || lease.is_lost(), "{seen:?}");
    client.break_lock("leader").unwrap();
    eventually("the lease is over", || lease.remaining().is_zero());
    assert_eq!(election.token(), None, "the term is over, and on_start has not returned");
    may_go_on.send(()).unwrap();
    drop(may_go_on);
    election.resign().unwrap();
}

#[test]
fn on_stop_finds_no_term_however_it_ends() {
    let client = Client::connect("memory:").unwrap();
    let shared: Arc<Mutex<Option<Election>>> = Arc::default();
    let ((began, elected), (stop, stopped)) = (channel(), channel());
    let theirs = Arc::clone(&shared);
    let election = client
        .elect("leader")
        .ttl(ms(1_000))
        .on_start(move |_| began.send(()).unwrap())
        .on_stop(move |loss| {
            let term = theirs.lock().unwrap().as_ref().map(Election::token);
            stop.send((term, loss.map(leasehold::Error::kind))).unwrap();
        })
        .start()
        .unwrap();
    *shared.lock().unwrap() = Some(election);
    elected.recv_timeout(PATIENCE).unwrap();
    client.break_lock("leader").unwrap();
    assert_eq!(stopped.recv_timeout(PATIENCE).unwrap(), (Some(None), Some(ErrorKind::Lost)));

    elected.recv_timeout(PATIENCE).unwrap();
    leasehold::ffi::begin_to_end(shared.lock().unwrap().as_ref().unwrap());
    let (term, _) = stopped.recv_timeout(PATIENCE).unwrap();
    assert_eq!(term, Some(None));
    shared.lock().unwrap().take().unwrap().resign().unwrap();
    eventually("the lock is free", || client.inspect("leader").unwrap().is_none());
}

#[test]
fn a_candidate_may_resign_in_its_own_callback() {
    let client = Client::connect("memory:").unwrap();
    let shared: Arc<Mutex<Option<Election>>> = Arc::default();
    let (theirs, (stop, stopped)) = (Arc::clone(&shared), channel());
    let held = shared.lock().unwrap();
    let election = client
        .elect("leader")
        .on_start(move |_| theirs.lock().unwrap().take().unwrap().resign().unwrap())
        .on_stop(move |loss| stop.send(loss.is_none()).unwrap())
        .start()
        .unwrap();
    let mut held = held;
    *held = Some(election);
    drop(held);
    assert!(stopped.recv_timeout(PATIENCE).unwrap(), "it was resigned, and not lost");
    eventually("the lock is free", || client.inspect("leader").unwrap().is_none());
}
