//! Helpers for tests over real Redis servers: look at the servers, and bring the network down.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use leasehold_servers::proxy::Request;
use leasehold_servers::redis::Server;
use leasehold_wire::redis::SCRIPTS;

use super::eventually;

/// Above what any server's clock says, so that counting tokens from here counts grants.
pub(crate) const HIGH: u64 = 1 << 52;

pub(crate) fn fence_key(resource: &str) -> String {
    format!("{{{resource}}}\u{1f}fence of name")
}

pub(crate) fn channel(resource: &str) -> String {
    format!("{{{resource}}}\u{1f}wake of name")
}

/// From now on every grant of `resource` counts one up from [`HIGH`].
pub(crate) fn count_grants(server: &Server, resource: &str) {
    count_grants_from(HIGH, server, resource);
}

pub(crate) fn count_grants_from(token: u64, server: &Server, resource: &str) {
    assert!(!server.command(&["SET", &fence_key(resource), &token.to_string()]).is_error());
}

#[track_caller]
pub(crate) fn counter(server: &Server, resource: &str) -> u64 {
    u64::try_from(server.command(&["GET", &fence_key(resource)]).integer()).unwrap()
}

pub(crate) fn is_taken(server: &Server, resource: &str) -> bool {
    server.command(&["EXISTS", resource]).integer() == 1
}

/// Requests that run one of the scripts by its digest, once [`load_scripts`] has seen to that.
pub(crate) fn request(name: &str) -> Request {
    Request::containing(digest(name))
}

pub(crate) fn digest(name: &str) -> &'static str {
    SCRIPTS.iter().find(|script| script.name == name).unwrap().sha1
}

pub(crate) fn load_scripts(server: &Server) {
    for script in SCRIPTS {
        assert_eq!(server.command(&["SCRIPT", "LOAD", script.text]).text(), script.sha1);
    }
}

/// Waits until leases were renewed `times` times more. Of all scripts only a renewal lengthens keys that it did not make.
pub(crate) fn wait_for_renewals(server: &Server, times: u64) {
    // Two for each: the lock and its counter.
    let wanted = server.commands_processed("pexpire") + 2 * times;
    eventually("leases are renewed", || server.commands_processed("pexpire") >= wanted);
}

/// Checks that each release that `told` is told of makes a waiter for `resource` ask `asked` at once. By its timer
/// alone, which pauses for a second on average, so many looks would take minutes.
pub(crate) fn expect_wake_ups(told: &Server, asked: &Server, resource: &str) {
    // Every attempt takes the lock, or tries to, or joins the line; no renewal does any of these.
    let attempts = || asked.commands_processed("set") + asked.commands_processed("zadd");
    let start = Instant::now();
    for _ in 0..200 {
        let before = attempts();
        assert!(!told.command(&["PUBLISH", &channel(resource), resource]).is_error());
        eventually("the waiter looks", || attempts() > before);
    }
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

/// Forwards connections to one of several servers, as a name does that is moved after a failover. What is open stays
/// where it is.
pub(crate) struct Switch {
    target: Arc<AtomicU16>,
    address: SocketAddr,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Switch {
    pub(crate) fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let target = Arc::new(AtomicU16::new(port));
        let open = Arc::new(Mutex::new(Vec::new()));
        let (to, opened) = (Arc::clone(&target), Arc::clone(&open));
        // It ends with the process, as its listener does.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, to.load(Ordering::SeqCst))) else { continue };
                let mut opened = opened.lock().unwrap();
                opened.extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
                drop(opened);
                let (back, forth) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || carry(client, server));
                thread::spawn(move || carry(forth, back));
            }
        });
        Self { target, address, open }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// New connections lead elsewhere.
    pub(crate) fn turn(&self, port: u16) {
        self.target.store(port, Ordering::SeqCst);
    }

    /// Returns a handle that turns it from within a fault of a proxy.
    pub(crate) fn handle(&self) -> Arc<AtomicU16> {
        Arc::clone(&self.target)
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let mut chunk = [0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut chunk) {
        if to.write_all(&chunk[..read]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
