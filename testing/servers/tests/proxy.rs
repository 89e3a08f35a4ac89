//! Each fault of the proxy does what it says to a client of a real Redis, and nothing else.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use leasehold_servers::proxy::{Proxy, Request};
use leasehold_servers::resp::{Connection, Reply, encode};
use leasehold_servers::{redis, rest, wait_until};

fn pair() -> (redis::Server, Proxy) {
    let server = redis::Server::start();
    let proxy = Proxy::to(server.address());
    (server, proxy)
}

fn client(proxy: &Proxy) -> Connection {
    Connection::open(proxy.address()).unwrap()
}

#[track_caller]
fn assert_reset(result: io::Result<Reply>) {
    assert_eq!(result.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn proxy_forwards_and_counts() {
    let (server, proxy) = pair();
    let mut client = client(&proxy);
    let large = "x".repeat(300_000);
    assert_eq!(client.command(&["SET", "key", &large]).unwrap().text(), "OK");
    assert_eq!(client.command(&["GET", "key"]).unwrap().text(), large);
    assert_eq!((proxy.connections(), proxy.open_connections(), proxy.requests()), (1, 1, 2));
    assert_eq!(server.commands_processed("get"), 1);
    drop(client);
    wait_until("the proxy sees the end", || proxy.open_connections() == 0);
}

#[test]
fn reply_is_lost_after_the_request_was_performed() {
    let (server, proxy) = pair();
    let fault = proxy.reset_after_forwarding(Request::containing("INCR"));
    let mut first = client(&proxy);
    assert_eq!(first.command(&["GET", "counter"]).unwrap(), Reply::Nil);
    assert_reset(first.command(&["INCR", "counter"]));
    assert_eq!(fault.hits(), 1);
    assert_eq!(server.command(&["GET", "counter"]).text(), "1");
    // Once was asked for.
    assert_eq!(client(&proxy).command(&["INCR", "counter"]).unwrap().integer(), 2);
}

#[test]
fn fault_hits_the_named_request_of_a_pipeline() {
    let (server, proxy) = pair();
    let fault = proxy.reset_after_forwarding(Request::containing("INCR").nth(2));
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    let words: [&[&str]; 4] = [&["INCR", "a"], &["SET", "b", "INCR-not"], &["INCR", "c"], &["INCR", "d"]];
    // The value of `b` contains the name as well: it is the second.
    let together: Vec<u8> = words.iter().flat_map(|words| encode(words)).collect();
    stream.write_all(&together).unwrap();
    let mut answers = Vec::new();
    let mut byte = [0; 1];
    let error = loop {
        match stream.read(&mut byte) {
            Ok(0) => panic!("an orderly end"),
            Ok(_) => answers.push(byte[0]),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(String::from_utf8(answers).unwrap(), ":1\r\n");
    assert_eq!(fault.hits(), 1);
    assert_eq!(proxy.requests(), 4);
    assert_eq!(server.command(&["GET", "b"]).text(), "INCR-not");
}

#[test]
fn request_is_lost_before_it_was_performed() {
    let (server, proxy) = pair();
    let fault = proxy.reset_before_forwarding(Request::matching(|request| request.ends_with(b"$1\r\nk\r\n")).times(2));
    for hits in 1..=2 {
        assert_reset(client(&proxy).command(&["INCR", "k"]));
        assert_eq!(fault.hits(), hits);
    }
    assert_eq!(client(&proxy).command(&["INCR", "k"]).unwrap().integer(), 1);
    assert_eq!(server.commands_processed("incr"), 1);
}

#[test]
fn lost_replies_keep_the_connection() {
    let (server, proxy) = pair();
    let fault = proxy.lose_replies(Request::containing("INCR"));
    let mut first = client(&proxy);
    first.send(&["GET", "counter"]).unwrap();
    first.send(&["INCR", "counter"]).unwrap();
    first.send(&["INCR", "counter"]).unwrap();
    assert_eq!(first.receive().unwrap(), Reply::Nil);
    wait_until("both were performed", || server.command(&["GET", "counter"]) == Reply::Bulk(b"2".to_vec()));
    assert_eq!(fault.hits(), 1);
    assert_eq!(proxy.open_connections(), 1);
    // No answer stands in front of the reset.
    proxy.cut_all();
    assert_reset(first.receive());
}

#[test]
fn black_hole_answers_nothing() {
    let (server, proxy) = pair();
    let mut old = client(&proxy);
    assert_eq!(old.command(&["PING"]).unwrap().text(), "PONG");
    proxy.black_hole();
    let mut new = client(&proxy);
    for client in [&mut old, &mut new] {
        client.send(&["SET", "key", "value"]).unwrap();
    }
    wait_until("both requests came", || proxy.requests() == 3);
    proxy.cut_all();
    for mut client in [old, new] {
        assert_reset(client.receive());
    }
    assert_eq!(server.command(&["GET", "key"]), Reply::Nil);
    proxy.pass();
    assert_eq!(client(&proxy).command(&["PING"]).unwrap().text(), "PONG");
}

#[test]
fn refuse_affects_new_connections_only() {
    let (_server, proxy) = pair();
    let mut old = client(&proxy);
    assert_eq!(old.command(&["PING"]).unwrap().text(), "PONG");
    proxy.refuse();
    let refused = Connection::open(proxy.address()).and_then(|mut client| client.command(&["PING"]));
    assert!(matches!(refused.unwrap_err().kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe));
    assert_eq!(old.command(&["PING"]).unwrap().text(), "PONG");
    proxy.pass();
    assert_eq!(client(&proxy).command(&["PING"]).unwrap().text(), "PONG");
}

#[test]
fn cut_all_resets_every_connection() {
    let (_server, proxy) = pair();
    let mut clients = [client(&proxy), client(&proxy)];
    for client in &mut clients {
        assert_eq!(client.command(&["PING"]).unwrap().text(), "PONG");
    }
    proxy.cut_all();
    assert_eq!(proxy.open_connections(), 0);
    for client in &mut clients {
        assert_reset(client.receive());
    }
    assert_eq!(client(&proxy).command(&["PING"]).unwrap().text(), "PONG");
}

#[test]
fn delayed_answers_can_be_cut() {
    let (server, proxy) = pair();
    // Longer than the test's patience: only a cut ends it.
    proxy.delay(Duration::from_secs(600));
    let mut delayed = client(&proxy);
    delayed.send(&["INCR", "counter"]).unwrap();
    wait_until("it was performed", || server.command(&["GET", "counter"]) == Reply::Bulk(b"1".to_vec()));
    proxy.cut_all();
    assert_reset(delayed.receive());

    proxy.pass();
    proxy.delay(Duration::from_millis(1));
    assert_eq!(client(&proxy).command(&["INCR", "counter"]).unwrap().integer(), 2);
}

#[test]
fn split_answers_are_unchanged() {
    let (server, proxy) = pair();
    server.command(&["SET", "key", "0123456789"]);
    proxy.split(1);
    assert_eq!(client(&proxy).command(&["GET", "key"]).unwrap().text(), "0123456789");

    // Every piece is sent by itself: a reader that takes what there is gets fewer bytes than the answer has. It may be
    // late once or twice, but not for every one of many answers.
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    wait_until("an answer comes in pieces", || {
        stream.write_all(&encode(&["GET", "key"])).unwrap();
        let mut answer = [0; 17];
        let first = stream.read(&mut answer).unwrap();
        stream.read_exact(&mut answer[first..]).unwrap();
        assert_eq!(&answer, b"$10\r\n0123456789\r\n");
        first < answer.len()
    });
}

#[test]
fn proxy_to_a_dead_server_refuses() {
    let (server, proxy) = pair();
    let mut old = client(&proxy);
    assert_eq!(old.command(&["PING"]).unwrap().text(), "PONG");
    server.kill();
    let ended = old.command(&["PING"]).unwrap_err().kind();
    assert!(matches!(ended, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{ended}");
    assert!(Connection::open(proxy.address()).and_then(|mut client| client.command(&["PING"])).is_err());
    server.restart(redis::Data::Lost);
    assert_eq!(client(&proxy).command(&["PING"]).unwrap().text(), "PONG");
}

#[test]
fn faults_hit_http_requests() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    let proxy = Proxy::to(server.address());
    let fault = proxy.reset_after_forwarding(Request::containing("INCR").nth(2));
    let mut http = leasehold_servers::http::Connection::open(proxy.address()).unwrap();
    let bearer = format!("Bearer {}", server.token());
    let mut incr = || http.request("POST", "/", &[("Authorization", &bearer)], r#"["INCR","counter"]"#);
    assert_eq!(incr().unwrap().text(), r#"{"result":1}"#);
    assert_eq!(incr().unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!((fault.hits(), proxy.requests()), (1, 2));
    assert_eq!(redis.command(&["GET", "counter"]).text(), "2");
}

#[test]
fn dropped_proxy_resets_its_connections() {
    let (_server, proxy) = pair();
    let mut old = client(&proxy);
    assert_eq!(old.command(&["PING"]).unwrap().text(), "PONG");
    let address = proxy.address();
    drop(proxy);
    assert_reset(old.receive());
    assert!(TcpStream::connect(address).is_err());
}
