//! The outcome of a request for each answer, and for each failure.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use leasehold_core::op::{
    Acquire, Applied, DenialKind, FaultKind, LockOp, Op, Outcome, Refusal, Renew, TransportFault,
};
use leasehold_core::{LockId, NodeId, Nonce, Owner, RequestId, Resource, Seq, Token};
use leasehold_servers::rest::{self, Misbehave};
use leasehold_servers::{redis, wait_until, webdis};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;
use crate::admin::doctor::Severity;
use crate::error::ErrorKind;

const TTL: Duration = Duration::from_secs(60);

fn lock_op(resource: &str, op: Op) -> LockOp {
    LockOp { lock: LockId::new(1), resource: Resource::new(resource).unwrap(), op }
}

fn acquire(resource: &str, attempt: u8) -> LockOp {
    let acquire = Acquire {
        owner: Owner::new("tests").unwrap(),
        ..Acquire::new(Nonce::from_bytes([attempt; 16]), Seq::new(1), TTL)
    };
    lock_op(resource, Op::Acquire(Box::new(acquire)))
}

fn renew(resource: &str, attempt: u8) -> LockOp {
    let renew = Renew { nonce: Nonce::from_bytes([attempt; 16]), seq: Seq::new(2), record_ttl: TTL, quorum: None };
    lock_op(resource, Op::Renew(renew))
}

fn within(left: Duration, ops: Vec<LockOp>) -> Transmit {
    Transmit { id: RequestId::new(1), node: NodeId::new(0), deadline: clock::monotonic().plus(left), ops: ops.into() }
}

fn soon(ops: Vec<LockOp>) -> Transmit {
    within(Duration::from_secs(60), ops)
}

fn open(url: &str) -> Result<Http, Error> {
    Http::open(&HttpUrl::parse(url).unwrap())
}

fn upstash(server: &rest::Server) -> Http {
    open(&format!("upstash+http://:{}@{}/", server.token(), server.address())).unwrap()
}

fn granted(answer: &Answer) -> Option<Token> {
    match answer.as_deref() {
        Ok([Outcome::Applied(Applied::Acquired { counter })]) => Some(*counter),
        Ok(_) | Err(_) => None,
    }
}

/// The answer in one word, and in all of its words.
fn class(answer: &Answer) -> (&'static str, String) {
    let word = match answer.as_deref() {
        Err(TransportFault::NotSent(_)) => "not sent",
        Err(TransportFault::Unknown(_)) => "unknown",
        Ok([Outcome::Applied(_)]) => "applied",
        Ok([Outcome::Unknown(_)]) => "unknown",
        Ok([Outcome::NotApplied(Refusal::Denied(denial))]) if denial.kind == DenialKind::Permission => "no permission",
        Ok([Outcome::NotApplied(Refusal::Denied(_))]) => "denied",
        Ok([Outcome::NotApplied(Refusal::Unavailable(_))]) => "unavailable",
        Ok([Outcome::NotApplied(Refusal::Throttled(_))]) => "throttled",
        Ok(other) => panic!("{other:?}"),
    };
    (word, format!("{answer:?}"))
}

#[test]
fn every_bad_answer_is_judged_and_the_next_request_settles_it() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("http://{}/", elsewhere.local_addr().unwrap());
    let store = upstash(&server);
    assert!(granted(&store.perform(&soon(vec![acquire("warm-up", 1)]), Pool::Caller)).is_some());

    let status = |status, body: &str| Misbehave::Status(status, body.to_owned());
    let said = format!(r#"{{"error":"who is {}?"}}"#, server.token());
    let cases = [
        (status(400, r#"{"error":"READONLY You can't write against a read only replica."}"#), "unavailable", "master"),
        (status(400, r#"{"error":"ERR whatever"}"#), "unknown", "whatever"),
        (status(400, "no JSON"), "unknown", "400"),
        (status(401, &said), "no permission", "token"),
        (status(403, ""), "no permission", "403"),
        (status(405, "{}"), "denied", "405"),
        (status(429, "{}"), "throttled", "429"),
        (status(500, &said), "unknown", "500"),
        (status(503, "<html>"), "unknown", "503"),
        (status(200, r#"{"result":"granted"}"#), "unknown", "fit"),
        (Misbehave::Html, "unknown", "no JSON"),
        (Misbehave::Large(2 << 20), "unknown", "longer than allowed"),
        (Misbehave::Redirect(target), "denied", "redirects"),
        (Misbehave::HalfBody, "unknown", "Unknown"),
        (Misbehave::CloseBeforeAnswer, "unknown", "Unknown"),
        (Misbehave::CloseAfterApplying, "unknown", "Unknown"),
    ];
    for (number, (misbehave, word, part)) in cases.into_iter().enumerate() {
        let (resource, shown) = (format!("job-{number}"), format!("{misbehave:?}"));
        server.misbehave_on("EVALSHA", misbehave);
        let first = store.perform(&soon(vec![acquire(&resource, 1)]), Pool::Caller);
        let (met, words) = class(&first);
        assert!(met == word && words.contains(part), "{shown}: {words}");
        assert!(!words.contains(server.token()), "{words}");
        assert_eq!(server.misbehaviours_left(), 0);
        // What came of the first is known by asking again: the same attempt has at most one grant.
        let stands = redis.command(&["EXISTS", &resource]).text() == "1";
        let fence = redis.command(&["GET", &format!("{{{resource}}}\u{1f}fence of name")]);
        let counter = granted(&store.perform(&soon(vec![acquire(&resource, 1)]), Pool::Caller)).expect(&shown);
        assert!(!stands || fence.text() == counter.get().to_string(), "{shown}");
        assert_eq!(stands, shown == "HalfBody" || shown == "CloseAfterApplying", "{shown}");
    }
    elsewhere.set_nonblocking(true).unwrap();
    assert!(elsewhere.accept().is_err(), "a redirect was followed");
}

#[test]
fn a_deadline_ends_the_request_in_flight_and_its_connection() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    let store = upstash(&server);
    server.misbehave_on("EVALSHA", Misbehave::Hang);
    let answer = store.perform(&within(Duration::from_millis(200), vec![acquire("job", 1)]), Pool::Caller);
    assert_eq!(answer, Ok(vec![Outcome::Unknown(leasehold_core::op::Fault::of(FaultKind::Timeout))]));
    assert_eq!(server.misbehaviours_left(), 0, "it had left");
    assert!(granted(&store.perform(&soon(vec![acquire("job", 1)]), Pool::Caller)).is_some());
    assert_eq!(server.connections(), 3, "nothing is asked on the connection in doubt, nor on one from before");
}

#[test]
fn before_the_first_answer_nothing_has_left() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    let store = upstash(&server);
    let behind = |left| {
        let (sender, receiver) = channel();
        store.connections.call_in_background(
            within(left, vec![acquire("job", 1)]),
            Box::new(move |answer| sender.send(answer).unwrap()),
        );
        receiver.recv().unwrap()
    };
    // A server that did not answer must be greeted again.
    server.misbehave_on("EVALSHA", Misbehave::Hang);
    assert_eq!(class(&behind(Duration::from_millis(200))).0, "unknown");
    server.misbehave_on("PING", Misbehave::Hang);
    let (word, words) = class(&behind(Duration::from_millis(200)));
    assert_eq!(word, "not sent", "{words}");
    assert_eq!(server.requests(), 3, "two PINGs, and what is unknown");
    // The greeting goes on, and those who come later wait for it until it has failed.
    server.cut_all();
    wait_until("the background link has greeted the server", || granted(&behind(Duration::from_secs(60))).is_some());
}

#[test]
fn a_missing_server_was_sent_nothing() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    let store = upstash(&server);
    assert!(granted(&store.perform(&soon(vec![acquire("job", 1)]), Pool::Caller)).is_some());
    drop(server);
    for _ in 0..3 {
        let (word, words) = class(&store.perform(&soon(vec![acquire("job", 2)]), Pool::Caller));
        // The first one may still have met the old connection with its greeting.
        let gone = ["refused", "closed", "reset"].iter().any(|how| words.contains(how));
        // Before the greeting nothing is asked, and after it a request may find no connection.
        assert!(["not sent", "unavailable"].contains(&word) && gone, "{words}");
    }
}

#[test]
fn a_connection_closed_while_idle_costs_nothing() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    let store = upstash(&server);
    for attempt in 1..=20 {
        server.cut_all();
        let answer = store.perform(&soon(vec![acquire(&format!("job-{attempt}"), attempt)]), Pool::Caller);
        assert!(granted(&answer).is_some(), "{answer:?}");
    }
}

#[test]
fn connections_are_kept() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    let store = upstash(&server);
    for attempt in 1..=20 {
        assert!(
            granted(&store.perform(&soon(vec![acquire(&format!("job-{attempt}"), attempt)]), Pool::Caller)).is_some()
        );
    }
    assert_eq!(server.connections(), 2, "one of the background, one of the caller");
    // A PING on each, a digest that is not known yet, the script, and from then on the digest alone.
    assert_eq!(server.requests(), 23);
}

#[test]
fn renewals_are_one_request_over_either() {
    let redis = redis::Server::start();
    let (upstash_server, webdis_server) = (rest::Server::start(&redis), webdis::Server::start(&redis));
    let webdis = open(&format!("webdis+http://{}", webdis_server.address())).unwrap();
    for (name, store) in [("upstash", upstash(&upstash_server)), ("webdis", webdis)] {
        for number in 0..100 {
            let answer = store.perform(&soon(vec![acquire(&format!("{name}-{number}"), 1)]), Pool::Caller);
            assert!(granted(&answer).is_some(), "{answer:?}");
        }
        let before = redis.commands_processed("evalsha");
        redis.command(&["DEL", &format!("{name}-7")]);
        let renewals = (0..100).map(|number| renew(&format!("{name}-{number}"), 1)).collect();
        // The first round may meet a server that does not know the script.
        let outcomes = store.perform(&soon(renewals), Pool::Caller).unwrap();
        assert!(redis.commands_processed("evalsha") <= before + 1);
        for (number, outcome) in outcomes.iter().enumerate() {
            let conflict = matches!(outcome, Outcome::NotApplied(Refusal::Conflict(_)));
            assert!(if number == 7 { conflict } else { *outcome == Outcome::Applied(Applied::Renewed) }, "{outcome:?}");
        }
    }
}

/// Answers requests with these texts, one after the other on one connection each, and tells what it was sent.
fn scripted(answers: &'static [&'static str]) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (sender, receiver) = channel();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            sender.send(request_of(&mut stream)).unwrap();
            // The client may have had enough of it.
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (address, receiver)
}

fn request_of(stream: &mut impl Read) -> String {
    let mut text = String::new();
    loop {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).unwrap();
        assert!(read > 0, "only {text:?}");
        text.push_str(std::str::from_utf8(&chunk[..read]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if body.len() == length.parse::<usize>().unwrap() {
            return text;
        }
    }
}

const PONG: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 17\r\nSet-Cookie: a=b\r\n\
                    Connection: close\r\n\r\n{\"result\":\"PONG\"}";

#[test]
fn a_request_has_no_unneeded_headers() {
    let (address, requests) = scripted(&[PONG, PONG]);
    let store = open(&format!("upstash+http://:hunter2-token@{address}/some/way/")).unwrap();
    let (sender, receiver) = channel();
    store
        .connections
        .call_in_background(soon(vec![acquire("job", 1)]), Box::new(move |answer| sender.send(answer).unwrap()));
    let _ = receiver.recv().unwrap();
    for body in [r#"["PING"]"#, r#"["EVALSHA","#] {
        let request = requests.recv().unwrap().to_lowercase();
        let (head, rest) = request.split_once("\r\n\r\n").unwrap();
        assert!(rest.starts_with(&body.to_lowercase()), "{rest}");
        let mut lines: Vec<_> = head.lines().collect();
        assert_eq!(lines.remove(0), "post /some/way/ http/1.1");
        lines.retain(|line| !line.starts_with("content-length: "));
        lines.sort_unstable();
        let agent = format!("user-agent: leasehold/{}", env!("CARGO_PKG_VERSION"));
        let host = format!("host: {address}");
        let expected =
            ["accept: */*", "authorization: bearer hunter2-token", "content-type: application/json", &host, &agent];
        assert_eq!(lines, expected);
    }
}

#[test]
fn webdis_gets_user_and_password_of_the_url() {
    const PONG: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"PING\":[true,\"PONG\"]}";
    let (address, requests) = scripted(&[PONG, PONG]);
    open(&format!("webdis+http://user:p%40ss@{address}")).unwrap();
    let request = requests.recv().unwrap();
    assert!(request.starts_with("POST / HTTP/1.1\r\n") && request.ends_with("\r\n\r\nPING"), "{request}");
    assert!(request.contains("authorization: Basic dXNlcjpwQHNz\r\n"), "{request}");
    open(&format!("webdis+http://{address}")).unwrap();
    assert!(!requests.recv().unwrap().contains("authorization"));
}

#[test]
fn another_kind_of_server_is_recognised_at_once() {
    for (answer, words) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>",
            "this is not an Upstash REST server (HTTP status 200",
        ),
        ("HTTP/1.1 200 OK\r\n\r\n{\"result\":\"pang\"}", "not PONG"),
        ("HTTP/1.1 200 OK\r\n\r\n{\"result\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "this is not"),
        ("HTTP/1.1 404 Not Found\r\n\r\n", "check the host and path"),
        ("HTTP/1.1 401 Unauthorized\r\n\r\n", "refuses the token"),
        ("HTTP/1.1 301 Moved\r\nLocation: https://a:hunter2@other/?token=hunter2\r\n\r\n", "redirects to \"other\""),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{\"result\":\"PONG\"}", "connection broken"),
        ("SSH-2.0-OpenSSH_9.2\r\n", "connection broken"),
    ] {
        let answers: &'static [&'static str] = Box::leak(Box::new([answer]));
        let (address, _requests) = scripted(answers);
        let error = open(&format!("upstash+http://:hunter2-token@{address}")).err().expect(answer);
        let said = error.to_string();
        assert!(said.contains(words) && !said.contains("hunter2") && !said.contains("hunter2-token"), "{said}");
        let lasts = if words == "connection broken" { ErrorKind::StoreUnavailable } else { ErrorKind::StoreRefused };
        assert_eq!(error.kind(), lasts, "{said}");
    }
}

#[test]
fn an_answer_without_end_is_not_read_to_its_end() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        request_of(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
        let chunk = [b"400\r\n", [b'x'; 0x400].as_slice(), b"\r\n"].concat();
        // Ends only because the client goes.
        while stream.write_all(&chunk).is_ok() {}
    });
    let error = open(&format!("webdis+http://{address}")).err().unwrap();
    assert!(error.to_string().contains("longer than allowed"), "{error}");
    server.join().unwrap();
}

/// A server with the certificate of a rig's Redis, which answers every request with PONG.
fn over_tls(redis: &redis::Server) -> String {
    let file = |name| redis.authority_file().with_file_name(name);
    let certificate = CertificateDer::from_pem_file(file("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream.unwrap());
            // Clients that do not trust us leave before they say anything.
            if stream.conn.complete_io(&mut stream.sock).is_ok() {
                assert!(request_of(&mut stream).contains("authorization: Bearer hunter2-token"));
                stream.write_all(PONG.as_bytes()).unwrap();
            }
        }
    });
    address
}

#[test]
fn proxies_of_the_environment_are_used_where_somebody_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = listener.local_addr().unwrap();
    let (sender, asked) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            sender.send(request_of(&mut stream)).unwrap();
            stream.write_all(PONG.as_bytes()).unwrap();
        }
    });
    let url = "upstash+http://:hunter2-token@store.invalid?plaintext=allow";
    // SAFETY: nextest gives each test its own process, and this one has no other thread that reads them.
    let set = |name: &str, value: &str| unsafe { std::env::set_var(name, value) };
    set("HTTP_PROXY", &format!("http://{proxy}"));
    open(url).err().unwrap();
    assert!(asked.try_recv().is_err(), "nobody has asked for it");
    set("LEASEHOLD_PROXY", "environment");
    open(url).unwrap();
    assert!(asked.recv().unwrap().contains("POST http://store.invalid/"));
    set("LEASEHOLD_PROXY", "yes");
    let error = open(url).err().unwrap();
    assert!(error.kind() == ErrorKind::Config && error.to_string().contains("LEASEHOLD_PROXY"), "{error}");
}

#[test]
fn tls_accepts_only_a_trusted_server() {
    let redis = redis::Server::builder().tls().start();
    let address = over_tls(&redis);
    let url = format!("upstash+https://:hunter2-token@{address}");
    let ca = redis.authority_file().display();
    open(&format!("{url}?ca={ca}")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let others = folder.path().join("others.pem");
    std::fs::write(&others, redis::Server::builder().tls().start().authority_pem()).unwrap();
    let said = open(&format!("{url}?ca={}", others.display())).err().unwrap().to_string();
    assert!(said.contains("certificate") && said.contains("parameter ca"), "{said}");
    for (text, words) in [("", "no certificate in it"), ("-----BEGIN CERTIFICATE-----\n", "others.pem")] {
        std::fs::write(&others, text).unwrap();
        let error = open(&format!("{url}?ca={}", others.display())).err().unwrap();
        assert!(error.kind() == ErrorKind::Config && error.to_string().contains(words), "{error}");
    }
    assert_eq!(open(&format!("{url}?ca=/nowhere/ca.pem")).err().unwrap().kind(), ErrorKind::Config);
}

#[test]
fn the_doctor_says_what_is_wrong_and_what_to_do() {
    let worst =
        |store: &Http| store.diagnose().into_iter().filter(|found| found.severity > Severity::Good).collect::<Vec<_>>();
    let redis = redis::Server::builder().appendonly().start();
    let server = rest::Server::start(&redis);
    let store = upstash(&server);
    assert_eq!(worst(&store), []);
    let limits = store.diagnose().pop().unwrap();
    assert!(limits.what.contains("WAIT") && limits.advice.contains("redis://"));

    server.misbehave_on(
        "EVAL",
        Misbehave::Status(400, r#"{"error":"NOPERM this user has no permissions to run the 'eval' command"}"#.into()),
    );
    let found = worst(&store);
    assert!(found.len() == 1 && found[0].check == "http.scripts" && found[0].what.contains("NOPERM"), "{found:?}");
    server.misbehave_on("PING", Misbehave::Status(401, "{}".into()));
    let found = worst(&store);
    assert!(found.len() == 1 && found[0].check == "http.server" && found[0].what.contains("401"), "{found:?}");
    assert!(found.iter().all(|found| !found.advice.is_empty()));
    drop(server);
    let found = worst(&store);
    assert!(found.len() == 1 && found[0].check == "http.server" && found[0].what.contains("refused"), "{found:?}");
}

#[test]
fn losses_are_reported_if_the_server_shows_them() {
    let redis = redis::Server::builder().arg("--maxmemory", "100mb").arg("--maxmemory-policy", "allkeys-lru").start();
    let server = rest::Server::start(&redis);
    let findings = upstash(&server).diagnose();
    for (check, words) in [("redis.eviction", "allkeys-lru"), ("redis.persistence", "nothing is written to disk")] {
        let found = findings.iter().find(|finding| finding.check == check);
        assert!(found.is_some_and(|finding| finding.what.contains(words)), "{findings:?}");
    }
}

#[test]
fn durability_in_the_url_is_checked_against_the_server() {
    let judged = |redis: &redis::Server| {
        let (rest, webdis) = (rest::Server::start(redis), webdis::Server::start(redis));
        let upstash = format!("upstash+http://:{}@{}?durable=yes", rest.token(), rest.address());
        let webdis = format!("webdis+http://{}?durable=yes", webdis.address());
        [upstash, webdis].map(|url| {
            let findings = open(&url).unwrap().diagnose();
            let found = findings.iter().find(|finding| finding.check == "redis.durable");
            found.map(|finding| (finding.severity, finding.what.clone())).unwrap()
        })
    };
    let durable = redis::Server::builder().appendonly().start();
    for (severity, what) in judged(&durable) {
        assert!(severity == Severity::Good, "{what}");
    }
    let _replica = redis::Server::builder().replica_of(&durable).start();
    durable.wait_replicas_in_sync(1);
    for (severity, what) in judged(&durable) {
        assert!(severity == Severity::Problem && what.contains("promoted"), "{what}");
    }
    for (severity, what) in judged(&redis::Server::start()) {
        assert!(severity == Severity::Problem && what.contains("nothing is written to disk"), "{what}");
    }
}

#[test]
fn a_crowd_shares_few_connections() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    let store = upstash(&server);
    let (sender, receiver) = channel();
    const CROWD: usize = 400;
    for number in 0..CROWD {
        let sender = sender.clone();
        let request = soon(vec![acquire(&format!("job-{number}"), 1)]);
        store.connections.call_in_background(request, Box::new(move |answer| sender.send(granted(&answer)).unwrap()));
    }
    for _ in 0..CROWD {
        assert!(receiver.recv().unwrap().is_some());
    }
    // Counted are those that were ever made.
    assert!(server.connections() < CROWD / 4, "{} connections", server.connections());
}
