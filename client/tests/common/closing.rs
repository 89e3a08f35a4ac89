//! The threads and descriptors that clients leave behind.

use std::thread;

use leasehold::ErrorKind;
use leasehold::blocking::Client;

use super::{PATIENCE, eventually};

const CLIENTS: usize = 6;

/// The descriptors and threads of this process.
pub(crate) fn open() -> [usize; 2] {
    ["/proc/self/fd", "/proc/self/task"].map(|of| std::fs::read_dir(of).unwrap().count())
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
