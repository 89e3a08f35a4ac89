//! The threads and descriptors that clients leave behind.

use std::thread;

use leasehold::ErrorKind;
use leasehold::blocking::Client;

use super::{PATIENCE, eventually};

const CLIENTS: usize = 6;
/// The name of the thread `leasehold-reports`, as the kernel cuts it.
const REPORTS: &str = "leasehold-repor";

/// The descriptors and threads of this process, but for the thread that reports for all clients: it starts when a report first has to wait,
/// which may be at any time.
pub(crate) fn open() -> [usize; 2] {
    let entries = |of: &str| std::fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path());
    let is_counted = |task: &std::path::PathBuf| {
        // One that has ended meanwhile has no name.
        std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim_end() != REPORTS)
    };
    [entries("/proc/self/fd").count(), entries("/proc/self/task").filter(is_counted).count()]
}

/// Tells if there are no more than before.
pub(crate) fn is_as_before(before: [usize; 2]) -> bool {
    open().into_iter().zip(before).all(|(now, before)| now <= before)
}

/// Clients that are closed, and kept.
pub(crate) fn closing_ends_connections_and_threads(connect: impl Fn() -> Client) {
    let used = || {
        let client = connect();
        let held = client.lock("used").acquire().unwrap();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| client.lock("used").wait(PATIENCE).acquire().unwrap().release().unwrap());
            held.on_lost(drop);
            held.release().unwrap();
            waiter.join().unwrap();
        });
        client
    };
    // Threads that all clients share stay.
    used().close().unwrap();
    let before = open();
    let clients: Vec<Client> = (0..CLIENTS).map(|_| used()).collect();
    assert!(open()[1] > before[1]);
    for client in &clients {
        client.clone().close().unwrap();
    }
    eventually("descriptors and threads are gone", || is_as_before(before));
    for client in clients {
        assert_eq!(client.inspect("used").unwrap_err().kind(), ErrorKind::Closed);
    }
}
