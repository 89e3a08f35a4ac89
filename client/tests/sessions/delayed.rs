//! Requests of a session that arrive when it is dead.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use leasehold_servers::proxy::{Proxy, Request};

use crate::common::{eventually, ms};
use crate::{Store, client, lease};

/// Keeps requests like these from arriving, and keeps their bytes.
pub(crate) fn hold_back(
    proxy: &Proxy,
    is_held_back: impl Fn(&str) -> bool + Send + Sync + 'static,
) -> Arc<Mutex<Vec<Vec<u8>>>> {
    let held: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let kept = Arc::clone(&held);
    let _ = proxy.reset_before_forwarding(
        Request::matching(move |bytes| {
            let is_held_back = is_held_back(&String::from_utf8_lossy(bytes));
            if is_held_back {
                kept.lock().unwrap().push(bytes.to_vec());
            }
            is_held_back
        })
        .always(),
    );
    held
}

/// Sends what was held back, as it was, and waits for the answers.
pub(crate) fn deliver(server: SocketAddr, held: &Mutex<Vec<Vec<u8>>>) {
    for request in held.lock().unwrap().iter() {
        let mut stream = TcpStream::connect(server).unwrap();
        stream.set_read_timeout(Some(crate::common::PATIENCE)).unwrap();
        stream.write_all(request).unwrap();
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        assert!(start.starts_with(b"HTTP/1.1 "), "{}", String::from_utf8_lossy(&start));
    }
}

pub(crate) fn is_write(request: &str) -> bool {
    request.starts_with("PUT ") || request.contains("UpdateItem") || request.contains("requestPut")
}

/// The name of a lock's record as requests have it; etcd's keys are in base64.
pub(crate) fn names(store: &Store<'_>, lock: &str) -> String {
    match store {
        Store::Dynamodb { .. } => format!("\"{lock}\""),
        Store::Etcd { prefix, .. } => base64(&format!("{prefix}/lock/{lock}")),
        Store::Objects { .. } => format!("lock/{}", lock.replace(':', "%253A")),
    }
}

fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = |three: &[u8]| {
        let bits = three.iter().chain([&0, &0]).take(3).fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let digit = move |at: usize| char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]);
        (0..4).map(|at| if at > three.len() { '=' } else { digit(at) }).collect::<String>()
    };
    text.as_bytes().chunks(3).map(digits).collect()
}

pub(crate) fn late_heartbeats_revive_nobody(store: &Store<'_>) {
    let proxy = Proxy::to(store.address());
    let holder = client(&store.url_at(proxy.address()), Some("dead"));
    let held = lease(&holder, "a", ms(5_000));
    let session = names(store, "session:dead");
    let heartbeats = hold_back(&proxy, move |request| is_write(request) && request.contains(&session));
    eventually("a heartbeat is held back", || !heartbeats.lock().unwrap().is_empty());
    proxy.black_hole();
    let rival = client(&store.url(), Some("rival"));
    let taken = lease(&rival, "a", ms(60_000));
    assert!(held.is_lost() && taken.token() > held.token());
    deliver(store.address(), &heartbeats);
    assert!(rival.inspect("session:dead").unwrap().is_none(), "it was buried");
    assert_eq!(rival.inspect("a").unwrap().unwrap().token, Some(taken.token()));
    taken.check(ms(1)).unwrap();
}

pub(crate) fn late_rows_of_a_dead_session_are_nobodys(store: &Store<'_>) {
    let proxy = Proxy::to(store.address());
    let holder = client(&store.url_at(proxy.address()), Some("dead"));
    let held = lease(&holder, "a", ms(5_000));
    let row = names(store, "late");
    let rows = hold_back(&proxy, move |request| is_write(request) && request.contains(&row));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| holder.lock("late").ttl(ms(3_000)).wait(ms(3_000)).acquire());
        eventually("its row is held back", || !rows.lock().unwrap().is_empty());
        proxy.black_hole();
        let rival = client(&store.url(), Some("rival"));
        let taken = lease(&rival, "a", ms(60_000));
        assert!(taken.token() > held.token());
        assert!(waiting.join().unwrap().is_err());
        deliver(store.address(), &rows);
        assert!(rival.inspect("late").unwrap().is_none(), "its session is over");
        // By itself the row would stand for 120 times the ttl.
        let lease = lease(&rival, "late", ms(60_000));
        lease.check(ms(1)).unwrap();
    });
}
