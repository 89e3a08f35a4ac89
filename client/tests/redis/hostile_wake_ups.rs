//! A server whose subscription brings more than anybody can keep: bounded memory, and the waiter gets its lock.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::on_redis::{channel, digest};
use crate::common::{PATIENCE, Role, eventually, role_args, say};
use leasehold::blocking::Client;

/// The messages of an impostor, and what it saw.
#[derive(Default)]
struct Script {
    /// After the confirmation of a subscription, or instead of it.
    start: String,
    again: Vec<u8>,
    subscribed: AtomicUsize,
    sent_kib: AtomicUsize,
    free: AtomicBool,
}

fn impostor(script: &Arc<Script>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (address, script) = (listener.local_addr().unwrap(), Arc::clone(script));
    // It ends with the process, as its listener does.
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let script = Arc::clone(&script);
            thread::spawn(move || script.converse(stream));
        }
    });
    address
}

impl Script {
    fn converse(&self, mut stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        loop {
            let words: Vec<String> = (0..number(&mut reader)?).map(|_| word(&mut reader)).collect::<Option<_>>()?;
            if words[0].eq_ignore_ascii_case("SUBSCRIBE") {
                self.subscribed.fetch_add(1, Ordering::SeqCst);
                stream.write_all(self.start.as_bytes()).ok()?;
                return self.flood(&stream).ok();
            }
            let runs = |name| words.get(1).is_some_and(|script| script == digest(name));
            let id = words.last()?;
            let id = format!("${}\r\n{id}\r\n", id.len());
            let value = "0123456789abcdef0123456789abcdef@host;1700000000000";
            let answer = if runs("release") {
                id
            } else if words[0] == "GET" {
                // It is a node of no quorum.
                "$-1\r\n".to_owned()
            } else if !runs("acquire") && !runs("join") {
                "+OK\r\n".to_owned()
            } else if self.free.load(Ordering::SeqCst) {
                format!("*3\r\n$7\r\ngranted\r\n$1\r\n7\r\n{id}")
            } else {
                format!("*5\r\n$4\r\nheld\r\n${}\r\n{value}\r\n:60000\r\n$1\r\n7\r\n{id}", value.len())
            };
            stream.write_all(answer.as_bytes()).ok()?;
        }
    }

    fn flood(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        let much = self.again.repeat((64 << 10) / self.again.len());
        loop {
            stream.write_all(&much)?;
            self.sent_kib.fetch_add(much.len() >> 10, Ordering::SeqCst);
        }
    }
}

fn number(reader: &mut impl BufRead) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.trim_end().get(1..)?.parse().ok()
}

fn word(reader: &mut impl BufRead) -> Option<String> {
    let mut bytes = vec![0; number(reader)? + 2];
    reader.read_exact(&mut bytes).ok()?;
    bytes.truncate(bytes.len() - 2);
    String::from_utf8(bytes).ok()
}

/// The most memory that this process ever used, in KiB.
fn high_water() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// From then on the code that a lock needs is in memory.
fn grant_one_lock() {
    let script = Arc::new(Script { free: AtomicBool::new(true), ..Script::default() });
    let client = Client::connect(format!("redis://{}/", impostor(&script))).unwrap();
    client.lock("job").acquire().unwrap().release().unwrap();
}

/// Alone in its process, where memory can be measured.
#[test]
#[ignore = "a role of other tests"]
fn role_waits() {
    let Some(which) = role_args() else { return };
    let channel = channel("job");
    let confirmed = format!("*3\r\n$9\r\nsubscribe\r\n${}\r\n{channel}\r\n:1\r\n", channel.len());
    let message = "*3\r\n$7\r\nmessage\r\n";
    let (start, again) = match which.as_str() {
        "bulk" => (format!("{confirmed}{message}$9000000000\r\n"), "a".to_owned()),
        "array" => (format!("{confirmed}*9000000000\r\n"), ":1\r\n".to_owned()),
        "unconfirmed" => ("*3\r\n$9\r\nsubscribe\r\n$9000000000\r\n".to_owned(), "a".to_owned()),
        "messages" => (confirmed, format!("{message}$1\r\nx\r\n$1\r\ny\r\n")),
        other => panic!("no flood is called {other}"),
    };
    let script = Arc::new(Script {
        start,
        again: again.into_bytes(),
        subscribed: AtomicUsize::new(0),
        sent_kib: AtomicUsize::new(0),
        free: AtomicBool::new(false),
    });
    let address = impostor(&script);
    grant_one_lock();
    let before = high_water();
    let client = Client::connect(format!("redis://{address}/")).unwrap();
    let waiter = thread::spawn(move || client.lock("job").wait(PATIENCE).acquire().map(drop));
    if which == "messages" {
        // Whole messages are read for as long as they come.
        eventually("much was sent", || script.sent_kib.load(Ordering::SeqCst) > 32 << 10);
    } else {
        // A client that does not leave a subscription does not make another one.
        eventually("the subscription is left", || script.subscribed.load(Ordering::SeqCst) >= 3);
    }
    script.free.store(true, Ordering::SeqCst);
    waiter.join().unwrap().unwrap();
    say(format!("{} MiB", (high_water() - before) >> 10));
}

#[test]
fn floods_are_left_soon_and_hold_no_waiter_up() {
    // Less than any flood has.
    const MOST_MIB: u64 = 12;
    for which in ["bulk", "array", "unconfirmed", "messages"] {
        let said = Role::start("hostile_wake_ups::role_waits", which).says_within(Duration::from_secs(60));
        println!("{which}: {said}");
        assert!(said.strip_suffix(" MiB").unwrap().parse::<u64>().unwrap() < MOST_MIB, "{which}: {said}");
    }
}
