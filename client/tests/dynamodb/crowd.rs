//! Many who want the same lock at the same moment.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use crate::common::connect_patiently;
use crate::common::on_dynamodb::{counter, row};
use crate::{new_table, server};

const ACQUIRERS: usize = 64;
/// Callers of one client stand in one line and send one request for all of them, so there are several.
const CLIENTS: usize = 16;
const ROUNDS: usize = 200;

#[test]
fn one_of_64_wins_each_of_200_rounds_and_tokens_rise() {
    let server = server();
    let url = new_table(&server);
    let clients: Vec<_> = (0..CLIENTS).map(|_| connect_patiently(&url)).collect();
    let barrier = Barrier::new(ACQUIRERS);
    let (winners, last, wrong) = (AtomicUsize::new(0), AtomicU64::new(0), Mutex::new(Vec::new()));
    // A thread that panics would leave the others waiting forever.
    let tell = |what: String| wrong.lock().unwrap().push(what);
    thread::scope(|scope| {
        for n in 0..ACQUIRERS {
            let (client, barrier, winners, last, tell) = (&clients[n % CLIENTS], &barrier, &winners, &last, &tell);
            scope.spawn(move || {
                for round in 1..=ROUNDS {
                    barrier.wait();
                    let lease = client.lock("job").try_acquire().unwrap_or_else(|error| {
                        tell(format!("round {round}: {error}"));
                        None
                    });
                    if let Some(lease) = &lease {
                        winners.fetch_add(1, Ordering::SeqCst);
                        let before = last.swap(lease.token(), Ordering::SeqCst);
                        if lease.token() <= before {
                            tell(format!("round {round}: {} after {before}", lease.token()));
                        }
                    }
                    // Everybody has tried, and nobody tries again before this is looked at.
                    if barrier.wait().is_leader() && winners.swap(0, Ordering::SeqCst) != 1 {
                        tell(format!("round {round} has not one winner"));
                    }
                    if let Some(error) = lease.and_then(|lease| lease.release().err()) {
                        tell(format!("round {round}: {error}"));
                    }
                }
            });
        }
    });
    assert_eq!(wrong.into_inner().unwrap(), Vec::<String>::new());
    assert_eq!(counter(&row(&server, &url, "job")), last.into_inner(), "no token was minted besides");
}
