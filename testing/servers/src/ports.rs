//! Ports for servers that cannot choose one themselves.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};

/// Below the ports of outgoing connections. A port from there could be taken by any client while its server restarts.
/// And a client that keeps connecting to such a port without a server may now and then be connected to itself.
const RANGE: std::ops::Range<u16> = 15_000..32_000;

/// Every port this process was given. None is given twice: a test that holds a port's number while its server is down
/// must not meet the server of another test there.
static GIVEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);

/// A port of 127.0.0.1 that was free a moment ago. Another process may still take it first.
pub(crate) fn free() -> u16 {
    listener().0
}

/// The same, as an open listener. A server in this process uses it directly: if it were closed and opened again, a
/// process that another thread starts in between could take the port.
pub(crate) fn listener() -> (u16, TcpListener) {
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let given = given.get_or_insert_default();
    for _ in 0..1_000 {
        let offset = RandomState::new().hash_one(given.len()) % u64::from(RANGE.end - RANGE.start);
        let port = RANGE.start + u16::try_from(offset).unwrap_or_default();
        if given.contains(&port) {
            continue;
        }
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)) {
            given.insert(port);
            return (port, listener);
        }
    }
    panic!("found no free port of 127.0.0.1 in {RANGE:?}");
}
