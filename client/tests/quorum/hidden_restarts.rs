//! Servers that restart behind a proxy which keeps its clients' connections.

use std::io::{ErrorKind as IoErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::common::eventually;
use crate::common::quorum::{Nodes, TTL, settings};
use leasehold::blocking::Client;
use leasehold_servers::redis::Data;

/// A proxy that connects to its server again after a restart, and keeps its clients' connections. Its threads end with
/// the connections of the test.
struct Switchboard(SocketAddr);

impl Switchboard {
    fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                thread::spawn(move || pass_on(client, server));
            }
        });
        Self(address)
    }

    fn url(&self) -> String {
        format!("redis://{}/", self.0)
    }
}

/// Passes requests on until the client leaves.
fn pass_on(mut client: TcpStream, server: SocketAddr) {
    let current: Arc<Mutex<Option<TcpStream>>> = Arc::default();
    let mut bytes = [0; 65_536];
    while let Ok(length @ 1..) = client.read(&mut bytes) {
        let mut open = current.lock().unwrap();
        if open.is_none() {
            let Ok(stream) = TcpStream::connect(server) else { break };
            *open = Some(stream.try_clone().unwrap());
            let (client, current) = (client.try_clone().unwrap(), Arc::clone(&current));
            thread::spawn(move || answer(client, stream, &current));
        }
        if let Some(stream) = open.as_mut() {
            let _ = stream.write_all(&bytes[..length]);
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    if let Some(stream) = current.lock().unwrap().take() {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Passes answers back until the server leaves, and then forgets it.
fn answer(mut client: TcpStream, mut server: TcpStream, current: &Mutex<Option<TcpStream>>) {
    let mut bytes = [0; 65_536];
    loop {
        match server.read(&mut bytes) {
            Ok(length @ 1..) => drop(client.write_all(&bytes[..length])),
            Err(error) if error.kind() == IoErrorKind::Interrupted => {}
            Ok(_) | Err(_) => break,
        }
    }
    *current.lock().unwrap() = None;
}

#[test]
fn a_restart_that_a_proxy_hides_is_no_reason_for_a_vote() {
    let nodes = Nodes::start(3);
    drop(nodes.create());
    let boards: Vec<_> = nodes.servers.iter().map(|server| Switchboard::before(server.address())).collect();
    let behind = Client::connect_with(settings(), boards.iter().map(Switchboard::url).collect::<Vec<_>>()).unwrap();
    // Its connections come to know the processes.
    for _ in 0..3 {
        behind.lock("job").ttl(TTL).acquire().unwrap().release().unwrap();
        nodes.wait_for_nothing_left("job");
    }
    for server in &nodes.servers[..2] {
        assert!(!server.command(&["SAVE"]).is_error());
    }
    let other = nodes.connect_directly();
    let lease = other.lock("job").ttl(TTL).no_renewal().acquire().unwrap();
    eventually("all have it", || nodes.taken("job") == [true; 3]);
    for server in &nodes.servers[..2] {
        server.restart(Data::Kept);
    }
    assert_eq!(nodes.taken("job"), [false, false, true], "a majority has forgotten the lease, and kept its marks");
    let second = behind.lock("job").ttl(TTL).try_acquire();
    assert!(!matches!(second, Ok(Some(_))) || lease.is_lost(), "two holders: {second:?}");
    assert!(!lease.is_lost(), "the machine took longer than the lease for one request");
}
