//! Connections to servers that behave badly, byte by byte.

use std::io::{Read, Write};
#[cfg(windows)]
use std::net::TcpStream as Peer;
#[cfg(unix)]
use std::os::unix::net::UnixStream as Peer;
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::runtime::{Builder, Handle};

use super::*;
use crate::host::clock;

/// A connection, and the server's side of it.
fn pair() -> (Opened, Peer) {
    let (ours, theirs) = sockets();
    (Opened::new(Stream::new(socket(ours), None)), theirs)
}

/// The client's and the server's end.
fn sockets() -> (Peer, Peer) {
    #[cfg(unix)]
    let (ours, theirs) = Peer::pair().unwrap();
    #[cfg(windows)]
    let (ours, theirs) = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        (Peer::connect(listener.local_addr().unwrap()).unwrap(), listener.accept().unwrap().0)
    };
    ours.set_nonblocking(true).unwrap();
    (ours, theirs)
}

fn socket(ours: Peer) -> Socket {
    #[cfg(unix)]
    return Socket::Unix(ours);
    #[cfg(windows)]
    return Socket::Tcp(ours);
}

fn command(words: &[&[u8]]) -> Command {
    Command::new(words)
}

fn ping() -> Command {
    command(&[b"PING"])
}

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

fn after(time: Duration) -> Monotonic {
    clock::monotonic().plus(time)
}

fn in_a_minute() -> Monotonic {
    after(Duration::from_secs(60))
}

fn read_exactly(server: &mut Peer, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    server.read_exact(&mut bytes).unwrap();
    bytes
}

fn block_on_runtime<F: Future>(work: F) -> F::Output {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Does the same on a runtime, and on a thread that drives its connection itself.
fn in_both_homes(act: impl AsyncFn(Connection, Peer)) {
    block_on_runtime(async {
        let (opened, server) = pair();
        act(opened.settle(&Home::Runtime, None).unwrap(), server).await;
    });
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (opened, server) = pair();
    let connection = opened.settle(&Home::Thread(runtime.handle().clone()), None).unwrap();
    block_on(act(connection, server));
}

fn integers(replies: &Replies) -> Vec<i64> {
    let integer = |value: &Value| if let Value::Integer(number) = value { *number } else { panic!("{value:?}") };
    replies.as_ref().unwrap().iter().map(integer).collect()
}

#[test]
fn replies_that_are_split_at_any_byte_reach_their_requests() {
    const REPLIES: &[u8] = b":1\r\n*2\r\n$2\r\na\r\r\n:7\r\n:3\r\n";
    in_both_homes(async |connection, server| {
        for split in 0..=REPLIES.len() {
            let mut theirs = server.try_clone().unwrap();
            let answering = thread::spawn(move || {
                assert_eq!(read_exactly(&mut theirs, 3 * PING.len()), PING.repeat(3));
                theirs.write_all(&REPLIES[..split]).unwrap();
                thread::yield_now();
                theirs.write_all(&REPLIES[split..]).unwrap();
            });
            let requests = [vec![ping(), ping()], vec![ping()]];
            let replies = join_all(requests.iter().map(|commands| connection.send(commands, in_a_minute()))).await;
            let list = Value::Array(vec![Value::Bulk(b"a\r".to_vec()), Value::Integer(7)]);
            assert_eq!(replies[0], Ok(vec![Value::Integer(1), list]), "split at {split}");
            assert_eq!(integers(&replies[1]), [3], "split at {split}");
            answering.join().unwrap();
        }
        server.shutdown(std::net::Shutdown::Both).unwrap();
    });
}

#[test]
fn ten_thousand_requests_in_flight_get_their_own_replies_though_one_is_cancelled() {
    const COUNT: usize = 10_000;
    in_both_homes(async |connection, mut server| {
        // Each is longer than what a socket takes at once, all together.
        let payload = vec![b'x'; 200];
        let length = {
            let mut bytes = Vec::new();
            leasehold_wire::resp::encode(&command(&[b"SET", &payload]), &mut bytes);
            bytes.len()
        };
        let (all_sent, may_read) = std::sync::mpsc::channel();
        let answering = thread::spawn(move || {
            // It reads nothing until all of them fill the buffers.
            may_read.recv().unwrap();
            for number in 0..COUNT {
                read_exactly(&mut server, length);
                server.write_all(format!(":{number}\r\n").as_bytes()).unwrap();
            }
            server
        });
        let commands = [command(&[b"SET", &payload])];
        let mut requests: Vec<_> = (0..COUNT).map(|_| Box::pin(connection.send(&commands, in_a_minute()))).collect();
        for request in &mut requests {
            assert!(request.now_or_never().is_none());
        }
        drop(requests.remove(COUNT / 2));
        all_sent.send(()).unwrap();
        let told: Vec<i64> = join_all(requests).await.iter().flat_map(integers).collect();
        let expected: Vec<i64> = (0..COUNT).filter(|number| *number != COUNT / 2).map(|number| number as i64).collect();
        assert!(told == expected, "a reply reached another request");
        assert!(!connection.is_over());
        drop(answering.join().unwrap());
    });
}

#[test]
fn a_request_leaves_at_once_where_as_many_wait_as_are_under_way() {
    block_on_runtime(async {
        let (opened, mut server) = pair();
        let connection = opened.settle(&Home::Runtime, None).unwrap();
        server.set_nonblocking(true).unwrap();
        let mut requests = Vec::new();
        // The task of the connection runs only when this one waits.
        for leave in [1, 1, 0, 2, 0, 0, 0, 4] {
            let mut request = Box::pin(async { connection.send(&[ping()], in_a_minute()).await });
            assert!((&mut request).now_or_never().is_none());
            requests.push(request);
            let mut arrived = vec![0; 8 * PING.len()];
            let count = server.read(&mut arrived).unwrap_or(0);
            assert_eq!(count, leave * PING.len(), "after {} requests", requests.len());
        }
    });
}

const LARGE: usize = 4 << 20;

/// A request longer than what a socket takes at once.
fn large() -> [Command; 1] {
    [command(&[b"SET", &vec![b'x'; LARGE]])]
}

fn length_of_large() -> usize {
    let mut bytes = Vec::new();
    leasehold_wire::resp::encode(&large()[0], &mut bytes);
    bytes.len()
}

#[test]
fn requests_behind_a_full_socket_leave_once_the_server_reads_unless_their_deadline_has_passed() {
    in_both_homes(async |connection, mut server| {
        let (large, pings) = (large(), [ping()]);
        let mut first = Box::pin(connection.send(&large, in_a_minute()));
        assert!((&mut first).now_or_never().is_none());
        // The writer takes it alone.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let mut second = Box::pin(connection.send(&pings, in_a_minute()));
        assert!((&mut second).now_or_never().is_none());
        let late = connection.send(&pings, after(Duration::from_millis(100))).await;
        assert_eq!(late, Err(Broken::NotSent(Fault::of(FaultKind::Timeout))));
        assert!(!connection.is_over(), "no reply to it can come");
        let mut third = Box::pin(connection.send(&pings, in_a_minute()));
        assert!((&mut third).now_or_never().is_none());
        let reading = thread::spawn(move || {
            read_exactly(&mut server, length_of_large() + 2 * PING.len());
            server.write_all(b":1\r\n:2\r\n:3\r\n").unwrap();
            server
        });
        assert_eq!(integers(&first.await), [1]);
        assert_eq!(integers(&second.await), [2]);
        assert_eq!(integers(&third.await), [3]);
        drop(reading.join().unwrap());
    });
}

#[test]
fn a_deadline_that_passes_while_its_request_leaves_ends_the_connection() {
    in_both_homes(async |connection, mut server| {
        let (large, pings) = (large(), [ping()]);
        let mut first = Box::pin(connection.send(&large, after(Duration::from_millis(100))));
        assert!((&mut first).now_or_never().is_none());
        let mut second = Box::pin(connection.send(&pings, in_a_minute()));
        assert!((&mut second).now_or_never().is_none());
        assert_eq!(first.await, Err(Broken::Unknown(Fault::of(FaultKind::Timeout))));
        assert!(matches!(second.await, Err(Broken::NotSent(_))));
        drop(connection);
        let mut arrived = Vec::new();
        server.read_to_end(&mut arrived).unwrap();
        assert!(arrived.len() < length_of_large(), "the whole request has arrived after its deadline");
    });
}

#[test]
fn a_request_whose_deadline_has_passed_before_the_writer_comes_never_leaves() {
    in_both_homes(async |connection, mut server| {
        let (late, in_time) = ([command(&[b"LATE"])], [ping()]);
        let (past, later) = (clock::monotonic(), in_a_minute());
        let requests = [(&in_time, later), (&late, past), (&in_time, later), (&late, past), (&in_time, later)];
        let reading = thread::spawn(move || {
            assert_eq!(read_exactly(&mut server, 3 * PING.len()), PING.repeat(3));
            server.write_all(b":1\r\n:2\r\n:3\r\n").unwrap();
            server
        });
        let replies = join_all(requests.map(|(commands, deadline)| connection.send(commands, deadline))).await;
        let unsent = Err(Broken::NotSent(Fault::of(FaultKind::Timeout)));
        assert_eq!([&replies[1], &replies[3]], [&unsent, &unsent]);
        assert_eq!([0, 2, 4].map(|at: usize| integers(&replies[at])), [[1], [2], [3]]);
        assert!(!connection.is_over());
        drop(reading.join().unwrap());
    });
}

#[test]
fn a_server_that_closes_leaves_open_what_had_left_and_nothing_else() {
    in_both_homes(async |connection, mut server| {
        let large = vec![b'x'; 4 << 20];
        let commands = [command(&[b"SET", &large])];
        let (first, second) = ([ping()], [ping()]);
        let mut requests = vec![Box::pin(connection.send(&first, in_a_minute()))];
        requests.push(Box::pin(connection.send(&commands, in_a_minute())));
        requests.push(Box::pin(connection.send(&second, in_a_minute())));
        for request in &mut requests {
            assert!(request.now_or_never().is_none());
        }
        let closing = thread::spawn(move || {
            read_exactly(&mut server, PING.len() + 10);
            drop(server);
        });
        let replies = join_all(requests).await;
        closing.join().unwrap();
        assert!(matches!(replies[0], Err(Broken::Unknown(_))), "{:?}", replies[0]);
        assert!(matches!(replies[1], Err(Broken::Unknown(_))), "a part of it has left: {:?}", replies[1]);
        assert!(matches!(replies[2], Err(Broken::NotSent(_))), "{:?}", replies[2]);
        assert!(connection.is_over());
        let late = connection.send(&[ping()], in_a_minute()).await;
        assert!(matches!(late, Err(Broken::NotSent(_))), "{late:?}");
    });
}

#[test]
fn a_request_after_the_server_has_closed_was_not_sent() {
    in_both_homes(async |connection, server| {
        drop(server);
        let late = connection.send(&[ping()], in_a_minute()).await;
        // Over TCP a request can be written after the server's end.
        let may_be_sent = cfg!(windows) && matches!(late, Err(Broken::Unknown(_)));
        assert!(may_be_sent || matches!(late, Err(Broken::NotSent(_))), "{late:?}");
    });
}

#[test]
fn a_deadline_ends_its_request_and_others_are_still_answered() {
    in_both_homes(async |connection, mut server| {
        let (pings, deadline) = ([ping()], after(Duration::from_millis(50)));
        let mut patient = Box::pin(connection.send(&pings, in_a_minute()));
        assert!((&mut patient).now_or_never().is_none());
        let late = connection.send(&pings, deadline).await;
        assert_eq!(late, Err(Broken::Unknown(Fault::of(FaultKind::Timeout))));
        assert!(clock::monotonic() >= deadline);
        assert!(connection.is_over(), "the next reply would belong to an earlier request");
        read_exactly(&mut server, 2 * PING.len());
        server.write_all(b":1\r\n:2\r\n").unwrap();
        assert_eq!(integers(&patient.await), [1]);
    });
}

#[test]
fn a_reply_to_a_cancelled_request_reaches_nobody() {
    in_both_homes(async |connection, mut server| {
        let pings = [ping()];
        {
            let mut cancelled = Box::pin(connection.send(&pings, in_a_minute()));
            assert!((&mut cancelled).now_or_never().is_none());
        }
        let mut next = Box::pin(connection.send(&pings, in_a_minute()));
        assert!((&mut next).now_or_never().is_none());
        server.write_all(b":1\r\n:2\r\n").unwrap();
        assert_eq!(integers(&next.await), [2]);
    });
}

#[test]
fn a_connection_that_was_left_and_has_answered_takes_no_more() {
    in_both_homes(async |connection, mut server| {
        let pings = [ping()];
        let mut waiting = Box::pin(connection.send(&pings, in_a_minute()));
        assert!((&mut waiting).now_or_never().is_none());
        connection.leave();
        server.write_all(b":1\r\n").unwrap();
        assert_eq!(integers(&waiting.await), [1]);
        let late = connection.send(&pings, in_a_minute()).await;
        assert!(matches!(late, Err(Broken::NotSent(_))), "{late:?}");
    });
}

#[test]
fn a_thread_ends_a_connection_on_which_something_came_unasked() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (opened, mut server) = pair();
    let connection = opened.settle(&Home::Thread(runtime.handle().clone()), None).unwrap();
    server.write_all(b":9\r\n").unwrap();
    let reply = block_on(async { connection.send(&[ping()], in_a_minute()).await });
    assert!(matches!(reply, Err(Broken::NotSent(_))), "{reply:?}");
}

#[test]
fn replies_behind_nonsense_reach_nobody() {
    in_both_homes(async |connection, mut server| {
        let pings = [ping()];
        let mut waiting = Box::pin(connection.send(&pings, in_a_minute()));
        assert!((&mut waiting).now_or_never().is_none());
        connection.condemn();
        let _ = server.write_all(b":1\r\n");
        let reply = waiting.await;
        assert!(matches!(reply, Err(Broken::Unknown(_))), "{reply:?}");
    });
}

#[test]
fn a_hostile_server_is_left_without_filling_the_memory() {
    let endless_line = [b"+".as_slice(), &b"x".repeat(1 << 20)].concat();
    let gigabyte = [b"$1073741824\r\n".as_slice(), &b"x".repeat(1 << 20)].concat();
    let cases: [(&str, &[u8]); 7] = [
        ("a line without end", &endless_line),
        ("more values than there can be", b"*4294967296\r\n"),
        ("a string of 1 GiB", &gigabyte),
        ("lists in lists", &b"*1\r\n".repeat(1 << 16)),
        ("a length below zero", b"$-7\r\n"),
        ("no RESP", b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        ("two replies to one request", b":1\r\n:2\r\n"),
    ];
    for (name, bytes) in cases {
        in_both_homes(async |connection, mut server| {
            let told = bytes.to_vec();
            let lying = thread::spawn(move || {
                read_exactly(&mut server, PING.len());
                // It may be left before all of it is written.
                let _ = server.write_all(&told);
                // Both sides stay open until the client closes.
                let _ = server.read(&mut [0; 1]);
            });
            let reply = connection.send(&[ping()], in_a_minute()).await;
            if bytes.starts_with(b":1") {
                assert_eq!(integers(&reply), [1]);
                let next = connection.send(&[ping()], in_a_minute()).await;
                assert!(next.is_err(), "{name}: {next:?}");
            } else {
                assert!(matches!(reply, Err(Broken::Unknown(_))), "{name}: {reply:?}");
            }
            assert!(connection.is_over(), "{name}");
            drop(connection);
            lying.join().unwrap();
        });
    }
}

#[test]
fn a_connection_closes_with_its_last_handle() {
    block_on_runtime(async {
        let (opened, mut server) = pair();
        let connection = opened.settle(&Home::Runtime, None).unwrap();
        let pings = [ping()];
        let mut waiting = Box::pin(connection.send(&pings, in_a_minute()));
        assert!((&mut waiting).now_or_never().is_none());
        tokio::task::yield_now().await;
        drop(waiting);
        drop(connection);
        let closed = tokio::task::spawn_blocking(move || {
            let mut rest = Vec::new();
            server.read_to_end(&mut rest).map(|_| rest)
        });
        let rest = closed.await.unwrap().unwrap();
        assert!(rest.is_empty() || rest == PING, "{rest:?}");
    });
}

#[test]
fn a_runtime_that_ends_answers_requests_of_other_threads() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (opened, server) = pair();
    let connection = runtime.block_on(async { opened.settle(&Home::Runtime, None).unwrap() });
    let asking = connection.clone();
    let waiting = thread::spawn(move || crate::exec::block_on(asking.send(&[ping()], in_a_minute())));
    runtime.block_on(async {
        while !connection.0.queue.is_busy() {
            tokio::task::yield_now().await;
        }
    });
    drop(runtime);
    let broken = waiting.join().unwrap();
    assert_eq!(broken, Err(Broken::Unknown(Fault::of(FaultKind::Cancelled))));
    assert!(connection.is_over());
    drop(server);
}

/// A server that reads one word over TLS, answers `:7`, and ends without a word of farewell.
fn over_tls(mut socket: Peer, config: rustls::ServerConfig) {
    let mut tls = rustls::ServerConnection::new(Arc::new(config)).unwrap();
    let mut stream = rustls::Stream::new(&mut tls, &mut socket);
    let mut asked = vec![0; PING.len()];
    stream.read_exact(&mut asked).unwrap();
    assert_eq!(asked, PING);
    stream.write_all(b":7\r\n").unwrap();
}

#[test]
fn a_handshake_goes_on_while_only_replies_are_awaited() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let certificate = made.cert.der().clone();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let ours = Arc::new(rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth());
    let theirs = rustls::ServerConfig::builder().with_no_client_auth();
    let theirs = theirs.with_single_cert(vec![certificate], key).unwrap();

    let (near, server) = sockets();
    let answering = thread::spawn(move || over_tls(server, theirs));
    let tls = rustls::ClientConnection::new(ours, "localhost".try_into().unwrap()).unwrap();
    let mut stream = Stream::new(socket(near), Some(tls));
    assert_eq!(stream.write(PING).unwrap(), PING.len());
    // Nothing is written from here on but what the handshake needs.
    let (mut buffer, mut reply) = ([0; 64], Vec::new());
    let broken = loop {
        match stream.read(&mut buffer) {
            Ok(read) => reply.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => thread::yield_now(),
            Err(error) => break error,
        }
    };
    answering.join().unwrap();
    assert_eq!(reply, b":7\r\n");
    assert_eq!(broken.kind(), std::io::ErrorKind::UnexpectedEof, "half of the connection was closed without notice");
}

#[test]
fn a_greeting_is_answered_before_the_connection_has_a_home() {
    let (mut opened, mut server) = pair();
    let answering = thread::spawn(move || {
        read_exactly(&mut server, b"*1\r\n$4\r\nROLE\r\n".len());
        server.write_all(b"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n").unwrap();
        read_exactly(&mut server, PING.len());
        server.write_all(b"+PONG\r\n").unwrap();
    });
    let role = block_on_runtime(opened.role()).unwrap();
    assert_eq!(role, Role::Master);
    let elsewhere = Builder::new_current_thread().enable_all().build().unwrap();
    let home: Handle = elsewhere.handle().clone();
    let connection = opened.settle(&Home::Thread(home), Some(role)).unwrap();
    let pong = block_on(async { connection.send(&[ping()], in_a_minute()).await });
    assert_eq!(pong, Ok(vec![Value::Simple("PONG".into())]));
    answering.join().unwrap();
}
