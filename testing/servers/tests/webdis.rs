//! The rig's Webdis is a real one, in front of the Redis it was given.

use std::net::TcpStream;

use leasehold_servers::http::Connection;
use leasehold_servers::proxy::{Proxy, Request};
use leasehold_servers::{redis, webdis};

#[test]
fn webdis_answers_and_stops_when_dropped() {
    let redis = redis::Server::start();
    let server = webdis::Server::start(&redis);
    let set = server.command("SET/key/a%2Fb");
    assert_eq!((set.status, set.text().as_str()), (200, r#"{"SET":[true,"OK"]}"#));
    assert_eq!(redis.command(&["GET", "key"]).text(), "a/b");
    let error = server.command("EVALSHA/0000000000000000000000000000000000000000/0");
    assert_eq!(error.status, 200);
    assert!(error.text().starts_with(r#"{"EVALSHA":[false,"NOSCRIPT"#), "{}", error.text());
    let address = server.address();
    drop(server);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn webdis_logs_in_with_a_password() {
    let redis = redis::Server::builder().password("hunter2").start();
    let server = webdis::Server::start(&redis);
    assert_eq!(server.command("PING").text(), r#"{"PING":[true,"PONG"]}"#);
}

#[test]
fn webdis_works_through_a_proxy() {
    let redis = redis::Server::start();
    let proxy = Proxy::to(redis.address());
    let server = webdis::Server::start_at(&redis, proxy.port());
    let lost = proxy.reset_after_forwarding(Request::containing("INCR"));
    assert_ne!(server.command("INCR/counter").text(), r#"{"INCR":1}"#);
    assert_eq!(lost.hits(), 1);
    assert_eq!(redis.command(&["GET", "counter"]).text(), "1");
}

#[test]
fn webdis_restarts_on_its_port() {
    let redis = redis::Server::start();
    let server = webdis::Server::start(&redis);
    let (port, pid) = (server.port(), server.pid());
    server.kill();
    assert!(!server.is_running());
    server.restart();
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), pid);

    let mut connection = Connection::open(server.address()).unwrap();
    server.stop_process();
    server.continue_process();
    assert_eq!(connection.request("POST", "/", &[], "GET/nothing").unwrap().text(), r#"{"GET":null}"#);
}
