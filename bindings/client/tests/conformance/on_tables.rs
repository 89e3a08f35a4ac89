//! All behaviours on one DynamoDB Local, which takes seconds and 120 MB to start: each on a table of its own.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::common::on_dynamodb::server;
use crate::{Store, behaviours, list};

/// At a time; more only wait for each other's processors.
const WORKERS: usize = 3;

#[test]
fn dynamodb() {
    let server = server();
    let behaviours = behaviours!(list);
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some((name, behaviour)) = behaviours.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // Its own name stands in what it says when it panics.
                    let running = thread::Builder::new().name(format!("dynamodb::{name}"));
                    let running = running.spawn_scoped(scope, || behaviour(&Store::dynamodb(&server))).unwrap();
                    if running.join().is_err() {
                        failed.lock().unwrap().push(*name);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "on DynamoDB these fail, see above why: {failed:?}");
}
