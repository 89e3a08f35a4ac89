//! All behaviours in one test for each store whose server takes seconds to start: each on a table of its own.

use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

#[cfg(feature = "objects")]
use leasehold_servers::objects::{Account, Api, Server};
use leasehold_servers::{is_an_echo, is_for_want_of_time};

use crate::common::RUN_AGAIN;
use crate::{Store, behaviours, list};

/// At a time; more only wait for each other's processors.
const WORKERS: usize = 3;

/// Of the dialects of object stores beside Azure's.
#[cfg(feature = "objects")]
const SHARES: usize = 3;

type Behaviour = (&'static str, fn(&Store));

#[cfg(feature = "dynamodb")]
#[test]
fn dynamodb() {
    let server = crate::common::on_dynamodb::server();
    all_behaviours("dynamodb", || Store::dynamodb(&server));
}

#[cfg(feature = "etcd")]
#[test]
fn etcd() {
    let server = leasehold_servers::etcd::Server::start();
    all_behaviours("etcd", || Store::etcd(&server));
}

#[cfg(feature = "objects")]
#[test]
fn azure_blob() {
    let server = objects(Api::AzureBlob);
    all_behaviours("azure_blob", || Store::azure_blob(&server));
}

#[cfg(feature = "objects")]
#[test]
fn s3() {
    let server = objects(Api::S3);
    a_share_of_behaviours(0, "s3", || Store::s3(&server));
}

#[cfg(feature = "objects")]
#[test]
fn gcs() {
    let server = objects(Api::Gcs);
    a_share_of_behaviours(1, "gcs", || Store::gcs(&server));
}

#[cfg(feature = "objects")]
#[test]
fn cosmos() {
    let server = objects(Api::Cosmos(Account::Session));
    a_share_of_behaviours(2, "cosmos", || Store::cosmos(&server));
}

/// A quorum over three clouds.
#[cfg(feature = "objects")]
#[test]
fn clouds() {
    let dynamodb = crate::common::on_dynamodb::server();
    let objects = [Api::AzureBlob, Api::Gcs].map(objects);
    a_share_of_behaviours(0, "clouds", || Store::clouds(&dynamodb, &objects));
}

#[cfg(feature = "objects")]
fn objects(api: Api) -> Server {
    crate::common::on_objects::set_keys();
    Server::start(api)
}

#[cfg(feature = "postgres")]
#[test]
fn postgres() {
    let server = leasehold_servers::postgres::Server::start();
    all_behaviours("postgres", || Store::postgres(&server));
}

#[cfg(feature = "postgres")]
#[test]
fn pgbouncer() {
    let server = leasehold_servers::postgres::Server::start();
    let pooler = leasehold_servers::postgres::Pooler::start(&server);
    all_behaviours("pgbouncer", || Store::pgbouncer(&server, pooler.port()));
}

/// Messages of panics of any thread, where they were not for want of time.
static WRONG: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn all_behaviours(store: &str, new_table: impl Fn() -> Store + Sync) {
    run(&behaviours!(list), store, new_table);
}

/// Dialects of object stores are one machine with other headers, which Azure's shows every behaviour of: of the others each
/// shows a third, and all of them all. `cargo xtask prove long` has every behaviour on every dialect.
#[cfg(feature = "objects")]
fn a_share_of_behaviours(share: usize, store: &str, new_table: impl Fn() -> Store + Sync) {
    let all: &[Behaviour] = &behaviours!(list);
    let (first, step) = if leasehold_servers::is_long() { (0, 1) } else { (share, SHARES) };
    let mine: Vec<Behaviour> = all.iter().skip(first).step_by(step).copied().collect();
    assert!(mine.len() >= all.len() / SHARES);
    run(&mine, store, new_table);
}

#[allow(clippy::print_stdout, reason = "a run of all tests counts what is flaky")]
fn run(behaviours: &[Behaviour], store: &str, new_table: impl Fn() -> Store + Sync) {
    note_what_panics_say();
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(behaviour) = behaviours.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !passes(store, behaviour, &new_table) {
                        failed.lock().unwrap().push(behaviour);
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap();
    // One at a time and slower now, so that a busy machine has time for them. What looks like two holders is not excused.
    failed.retain(|behaviour| {
        let passes = (1..=3).any(|tries| {
            RUN_AGAIN.store(tries, Ordering::Relaxed);
            is_all_for_want_of_time() && passes(store, behaviour, &new_table)
        });
        if passes {
            println!("FLAKY on {store}: {}", behaviour.0);
        }
        !passes
    });
    let failed: Vec<_> = failed.iter().map(|(name, _)| name).collect();
    assert!(failed.is_empty(), "on {store} these fail, see above why: {failed:?}");
    assert!(is_all_for_want_of_time(), "on {store} something was wrong, see above");
}

/// On a table of its own. Its name stands in what it says when it panics, which is the error.
fn passes(store: &str, (name, behaviour): &Behaviour, new_table: &(impl Fn() -> Store + Sync)) -> bool {
    thread::scope(|scope| {
        let running = thread::Builder::new().name(format!("{store}::{name}"));
        running.spawn_scoped(scope, || behaviour(&new_table())).unwrap().join().is_ok()
    })
}

/// The threads of a behaviour may see what it does not say itself.
fn note_what_panics_say() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let said = info.payload_as_str().unwrap_or("it says nothing");
        if !is_for_want_of_time(said) && !is_an_echo(said) {
            WRONG.lock().unwrap_or_else(PoisonError::into_inner).push(said.to_owned());
        }
        print(info);
    }));
}

fn is_all_for_want_of_time() -> bool {
    WRONG.lock().unwrap().is_empty()
}
