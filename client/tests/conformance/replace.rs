//! Replacing: the newest request for a run gets it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use leasehold::blocking::{Client, Once, Run, RunRequest};
use leasehold::{Error, ErrorKind};

use crate::Store;
use crate::common::{PATIENCE, eventually, ms, with_shortest_ttl};
use crate::runs::{begun, done};

/// Longer than any test: what ends earlier does not end by the clock.
const LONG: Duration = Duration::from_secs(600);

/// A job whose runner hears soon that it is replaced.
fn deploy(client: &Client) -> RunRequest {
    client.once("deploy").key("live").ttl(LONG).renew_every(ms(200))
}

/// Begins in a thread of its own, since it waits for the runner to end.
fn replacing(client: &Client, owner: &str) -> Receiver<Result<Once, Error>> {
    let (request, (send, answer)) = (deploy(client).owner(owner).replace(), channel());
    thread::spawn(move || drop(send.send(request.begin())));
    answer
}

#[track_caller]
fn answer(of: &Receiver<Result<Once, Error>>) -> Once {
    of.recv_timeout(PATIENCE).expect("it is answered").unwrap()
}

#[track_caller]
fn run(of: &Receiver<Result<Once, Error>>) -> Run {
    match answer(of) {
        Once::Run(run) => run,
        other => panic!("it is the newest: {other:?}"),
    }
}

#[track_caller]
fn is_told(run: &Run) {
    assert_eq!(run.lost().lost_reason(), Some("revoked"));
}

pub(crate) fn the_newest_request_replaces_the_runner(store: &Store) {
    let (one, two) = store.two_clients();
    let former = begun(deploy(&one));
    let newest = replacing(&two, "two");
    is_told(&former);
    assert!(newest.try_recv().is_err(), "its work may still run");
    let error = former.finish().unwrap_err();
    assert_eq!((error.kind(), error.lost_reason()), (ErrorKind::Lost, Some("revoked")), "{error}");
    let newest = run(&newest);
    assert!(newest.token() > former.token() && newest.owner() == "two");
    newest.finish().unwrap();
    for client in [&one, &two] {
        assert_eq!(done(deploy(client).replace()).token, newest.token(), "it was done before this request");
    }
    let listed: Vec<_> = two.runs("deploy@").map(Result::unwrap).collect();
    assert!(matches!(&listed[..], [only] if only.resource == "deploy@live"), "{listed:?}");
}

pub(crate) fn a_runner_that_does_not_listen_is_waited_for(store: &Store) {
    let (one, two) = store.two_clients();
    let former =
        with_shortest_ttl(ms(1_500), |ttl| match one.once("deploy").key("live").ttl(ttl).no_renewal().begin()? {
            Once::Run(run) => Ok(run),
            other => panic!("nobody has begun: {other:?}"),
        });
    let newest = run(&replacing(&two, "two"));
    assert!(former.is_lost() && newest.token() > former.token());
    assert_eq!(former.finish().unwrap_err().kind(), ErrorKind::Lost);
    newest.finish().unwrap();
}

pub(crate) fn an_older_request_steps_aside(store: &Store) {
    let [one, two, three] = [store.client(), store.client(), store.client()];
    let former = begun(deploy(&one));
    let older = replacing(&two, "two");
    is_told(&former);
    let newest = replacing(&three, "three");
    assert!(matches!(answer(&older), Once::Replaced), "and the first one has not let go yet");
    let _ = former.release();
    run(&newest).finish().unwrap();
}

pub(crate) fn the_newest_request_always_works_if_it_asks_for_that(store: &Store) {
    let (one, two) = store.two_clients();
    let always = |client: &Client| deploy(client).replace().even_if_done();
    let first = begun(always(&one));
    first.finish().unwrap();
    let second = begun(always(&two));
    assert!(second.token() > first.token());
    second.finish().unwrap();
    assert_eq!(done(deploy(&one)).token, second.token());
}

pub(crate) fn requests_that_replace_one_another_take_turns(store: &Store) {
    let clients: Vec<Client> = (0..4).map(|_| store.client()).collect();
    let (working, ended, finished) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for client in &clients {
            let work = || {
                match deploy(client).replace().begin().unwrap() {
                    Once::Run(run) => {
                        assert!(!working.swap(true, Ordering::SeqCst), "two at once");
                        let is_the_last = || ended.load(Ordering::SeqCst) == clients.len() - 1;
                        eventually("it is told, or nobody else is left", || run.is_lost() || is_the_last());
                        working.store(false, Ordering::SeqCst);
                        if is_the_last() && run.finish().is_ok() {
                            finished.fetch_add(1, Ordering::SeqCst);
                        } else {
                            let _ = run.release();
                        }
                    }
                    Once::Replaced => {}
                    other => panic!("nobody has finished: {other:?}"),
                }
                ended.fetch_add(1, Ordering::SeqCst);
            };
            scope.spawn(work);
        }
    });
    assert_eq!(finished.into_inner(), 1, "the newest one has nobody to step aside for");
    done(deploy(&clients[0]));
}

pub(crate) fn a_runner_of_the_same_client_is_replaced_too(store: &Store) {
    let client = store.client();
    let former = begun(deploy(&client));
    let newest = replacing(&client, "newest");
    is_told(&former);
    let _ = former.release();
    run(&newest).finish().unwrap();
}

pub(crate) fn what_cannot_be_replaced_is_refused(store: &Store) {
    let client = store.client();
    let long = client.once("d".repeat(1_017)).key("l");
    for (request, words) in [
        (deploy(&client).replace().max_attempts(2), "also count attempts"),
        (deploy(&client).replace().wait(Duration::ZERO), "give a wait above zero, or none"),
        (deploy(&client).replace().watch_holder(), "also watch the holder"),
        (long.replace(), "at most 1017 are allowed"),
    ] {
        let error = request.begin().unwrap_err();
        assert!(error.kind() == ErrorKind::Config && error.to_string().contains(words), "{error}");
    }
    let own = begun(deploy(&client));
    let error = deploy(&client).replace().begin().unwrap_err();
    assert!(
        error.kind() == ErrorKind::Config && error.to_string().contains("this thread or task runs the work itself"),
        "{error}"
    );
    own.check(ms(1)).unwrap();
    own.finish().unwrap();
}
