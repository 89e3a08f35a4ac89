//! All behaviours on one DynamoDB Local, which takes seconds and 120 MB to start: each on a table of its own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use leasehold_rig::dynamodb::Server;

use crate::common::on_dynamodb::server;
use crate::{Store, behaviours, list};

/// At a time; more only wait for each other's processors.
const WORKERS: usize = 3;

/// These words in a name mean that a failure may be two holders, a lost update or a falling token: no machine is slow enough
/// to excuse it. The same as in `.config/nextest.toml`, which runs the other behaviours of the other stores again.
const NEVER_FORGIVEN: [&str; 3] = ["never", "one_holder", "tokens_"];

type Behaviour = (&'static str, fn(&Store));

#[test]
fn dynamodb() {
    let server = server();
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let behaviours: &[Behaviour] = &behaviours!(list);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(behaviour) = behaviours.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !is_shown(behaviour, &server) {
                        failed.lock().unwrap().push(behaviour);
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap();
    // One at a time now: what a busy machine has failed passes.
    failed.retain(|behaviour| {
        let forgiven = !NEVER_FORGIVEN.iter().any(|word| behaviour.0.contains(word));
        !(forgiven && (1..=3).any(|_| is_shown(behaviour, &server)))
    });
    let failed: Vec<_> = failed.iter().map(|(name, _)| name).collect();
    assert!(failed.is_empty(), "on DynamoDB these fail, see above why: {failed:?}");
}

/// On a table of its own. Its name stands in what it says when it panics.
fn is_shown((name, behaviour): &Behaviour, server: &Server) -> bool {
    thread::scope(|scope| {
        let running = thread::Builder::new().name(format!("dynamodb::{name}"));
        running.spawn_scoped(scope, || behaviour(&Store::dynamodb(server))).unwrap().join().is_ok()
    })
}
