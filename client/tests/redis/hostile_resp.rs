//! A server that answers as no Redis would: never a panic, never a grant, bounded memory, an error in time.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::on_redis::digest;
use crate::common::{PATIENCE, Role, connect_patiently, eventually, ms, role_args, say};
use leasehold::blocking::Client;
use leasehold::{Client as AsyncClient, Error, ErrorKind};

/// A request, as far as an impostor cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Acquire,
    Renew,
    Release,
    Read,
    Subscribe,
    /// Greetings and the like.
    Other,
}

impl Asked {
    fn of(words: &[Vec<u8>]) -> Self {
        if words[0].eq_ignore_ascii_case(b"SUBSCRIBE") {
            return Self::Subscribe;
        }
        let runs = |name| words.get(1).is_some_and(|script| script == digest(name).as_bytes());
        let scripts = [
            (Self::Acquire, "acquire"),
            (Self::Acquire, "join"),
            (Self::Renew, "renew"),
            (Self::Release, "release"),
            (Self::Read, "read"),
        ];
        scripts.into_iter().find(|(_, name)| runs(name)).map_or(Self::Other, |(asked, _)| asked)
    }
}

/// It is a node of no quorum.
const NO_MARKER: &str = "$-1\r\n";

/// Stands for the name of the request, with which every answer ends.
const ID: &str = "$1\r\n#\r\n";

/// Bytes, or a stream that goes on until the client leaves. [`ID`] in it becomes the name of the request.
#[derive(Clone, Debug)]
enum Answer {
    Bytes(Vec<u8>),
    Endless {
        start: Vec<u8>,
        again: Vec<u8>,
    },
    /// An answer, and another when it is its turn.
    Later {
        first: Vec<u8>,
        then: Vec<u8>,
        turn: Arc<Barrier>,
    },
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}

impl Answer {
    fn endless(start: &str, again: &[u8]) -> Self {
        Self::Endless { start: start.into(), again: again.repeat(4096 / again.len()) }
    }

    fn send(&self, mut to: &TcpStream, id: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Bytes(bytes) => to.write_all(&naming(bytes, id)),
            Self::Later { first, then, turn } => {
                to.write_all(&naming(first, id))?;
                turn.wait();
                to.write_all(&naming(then, id))?;
                turn.wait();
                Ok(())
            }
            Self::Endless { start, again } => {
                to.write_all(start)?;
                loop {
                    to.write_all(again)?;
                }
            }
        }
    }
}

fn naming(answer: &[u8], id: &[u8]) -> Vec<u8> {
    let mut named = Vec::new();
    let mut rest = answer;
    while let Some(at) = rest.windows(ID.len()).position(|window| window == ID.as_bytes()) {
        named.extend_from_slice(&rest[..at]);
        named.extend_from_slice(format!("${}\r\n", id.len()).as_bytes());
        named.extend_from_slice(id);
        named.extend_from_slice(b"\r\n");
        rest = &rest[at + ID.len()..];
    }
    named.extend_from_slice(rest);
    named
}

/// Answers `asked` so; everything else as a Redis that lets everybody have what they want.
fn impostor(answer: impl Fn(Asked) -> Option<Answer> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    // It ends with the process, as its listener does.
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = Arc::clone(&answer);
            thread::spawn(move || converse(stream, &*answer));
        }
    });
    address
}

fn converse(stream: TcpStream, answer: &dyn Fn(Asked) -> Option<Answer>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let words: Vec<Vec<u8>> = (0..number(&mut reader)?).map(|_| word(&mut reader)).collect::<Option<_>>()?;
        let asked = Asked::of(&words);
        let id = words.last()?;
        if let Some(answer) = answer(asked) {
            answer.send(&stream, id).ok()?;
            continue;
        }
        let usual = match asked {
            Asked::Acquire => "*3\r\n$7\r\ngranted\r\n$1\r\n7\r\n$1\r\n#\r\n",
            Asked::Renew => "*5\r\n$7\r\nrenewed\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$1\r\n#\r\n",
            Asked::Release => "$1\r\n#\r\n",
            Asked::Read => "*3\r\n$4\r\nfree\r\n$0\r\n\r\n$1\r\n#\r\n",
            // A client that wants wake-ups gets no answer.
            Asked::Subscribe => return None,
            Asked::Other if words[0] == b"GET" => NO_MARKER,
            Asked::Other => "+OK\r\n",
        };
        Answer::from(usual).send(&stream, id).ok()?;
    }
}

fn number(reader: &mut impl BufRead) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.trim_end().get(1..)?.parse().ok()
}

fn word(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut bytes = vec![0; number(reader)? + 2];
    reader.read_exact(&mut bytes).ok()?;
    bytes.truncate(bytes.len() - 2);
    Some(bytes)
}

fn connect(address: SocketAddr) -> Result<Client, Error> {
    Client::connect_with(AsyncClient::builder().request_timeout(ms(150)), format!("redis://{address}/"))
}

/// How asking for a lock fails when this is the answer; it must not take much longer than the wait of 400 ms.
#[track_caller]
fn refused(answer: impl Into<Answer>) -> Error {
    let answer = answer.into();
    let shown = format!("{answer:?}").chars().take(60).collect::<String>();
    let address = impostor(move |asked| (asked == Asked::Acquire).then(|| answer.clone()));
    let client = connect(address).unwrap();
    let start = Instant::now();
    let asked = client.lock("job").wait(ms(400)).acquire();
    // A bound on behaviour, not on speed.
    assert!(start.elapsed() < PATIENCE / 2, "{shown}: {:?}", start.elapsed());
    asked.expect_err(&shown)
}

#[track_caller]
fn expect_unavailable(answer: impl Into<Answer>) {
    let error = refused(answer);
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
}

#[test]
fn an_impostor_can_pass_for_a_redis() {
    let renewals = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&renewals);
    let address = impostor(move |asked| {
        count.fetch_add(usize::from(asked == Asked::Renew), Ordering::SeqCst);
        None
    });
    let client = connect(address).unwrap();
    let lease = client.lock("job").ttl(ms(3_000)).renew_every(ms(500)).acquire().unwrap();
    assert_eq!(lease.token(), 7);
    assert!(client.inspect("job").unwrap().is_none());
    eventually("it is renewed for longer than its ttl", || renewals.load(Ordering::SeqCst) > 6);
    lease.check(ms(1)).unwrap();
    lease.release().unwrap();
}

#[test]
fn lengths_that_cannot_be_are_no_grant() {
    const LENGTHS: [&str; 8] = [
        "4294967296",
        "2147483648",
        "9223372036854775807",
        "4611686018427387904",
        "99999999999999999999",
        "-2",
        "-9223372036854775808",
        "",
    ];
    for kind in ['*', '$', '%', '~', '|', '>', '=', '!'] {
        thread::scope(|scope| {
            for length in LENGTHS {
                scope.spawn(move || expect_unavailable(format!("{kind}{length}\r\n").as_str()));
            }
        });
    }
}

#[test]
fn nesting_without_end_is_no_grant() {
    for one in ["*1\r\n", "%1\r\n", "~1\r\n", "|1\r\n", ">1\r\n"] {
        expect_unavailable(one.repeat(10_000).as_str());
    }
}

#[test]
fn garbage_is_no_grant() {
    for text in
        ["hello\r\n", "\0\0\0\0", "HTTP/1.1 400 Bad Request\r\n\r\n", "\r\n", "*\r\n", "$abc\r\n", "?\r\n", ":\r\n"]
    {
        expect_unavailable(text);
    }
    expect_unavailable(Answer::Bytes(b"+\xff\xfe\r\n".to_vec()));
    expect_unavailable(Answer::Bytes((0..=255).collect()));
}

#[test]
fn half_an_answer_is_no_grant() {
    let whole = "*3\r\n$7\r\ngranted\r\n$10\r\n1234567890\r\n$1\r\n#\r\n";
    thread::scope(|scope| {
        for length in 0..whole.len() {
            scope.spawn(move || expect_unavailable(&whole[..length]));
        }
    });
}

#[test]
fn answers_to_other_questions_are_no_grant() {
    thread::scope(|scope| {
        for text in [
            "+OK\r\n",
            "+granted\r\n",
            ":1\r\n",
            "$-1\r\n",
            "*-1\r\n",
            "*0\r\n",
            "_\r\n",
            "#t\r\n",
            "$7\r\ngranted\r\n",
            "*2\r\n$7\r\ngranted\r\n$1\r\n#\r\n",
            "*4\r\n$7\r\ngranted\r\n$1\r\n7\r\n$1\r\n7\r\n$1\r\n#\r\n",
            "*2\r\n$7\r\ngranted\r\n$1\r\n7\r\n",
            "*3\r\n$7\r\ngranted\r\n$1\r\n7\r\n$4\r\n9999\r\n",
            "$1\r\n#\r\n",
            "*5\r\n$7\r\nrenewed\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$1\r\n#\r\n",
            "*3\r\n$6\r\nraised\r\n$1\r\n7\r\n$1\r\n#\r\n",
            "*2\r\n*2\r\n$7\r\ngranted\r\n$1\r\n7\r\n$1\r\n#\r\n",
            "%1\r\n$7\r\ngranted\r\n$1\r\n7\r\n",
            "~3\r\n$7\r\nGRANTED\r\n$1\r\n7\r\n$1\r\n#\r\n",
            ">3\r\n$7\r\ngranted\r\n$1\r\n7\r\n$1\r\n#\r\n",
            "-\r\n",
            "-ERR\r\n",
            "-granted 7\r\n",
        ] {
            scope.spawn(move || expect_unavailable(text));
        }
    });
}

#[test]
fn tokens_that_cannot_be_are_no_grant() {
    thread::scope(|scope| {
        for token in
            ["9007199254740992", "9223372036854775807", "0", "-1", "1e15", "7.0", " 7", "7 ", "+7", "0x7", "", "abc"]
        {
            let bulk = format!("*3\r\n$7\r\ngranted\r\n${}\r\n{token}\r\n{ID}", token.len());
            scope.spawn(move || expect_unavailable(bulk.as_str()));
        }
        for token in ["9007199254740992", "9223372036854775807", "0", "-1"] {
            let integer = format!("*3\r\n$7\r\ngranted\r\n:{token}\r\n{ID}");
            scope.spawn(move || expect_unavailable(integer.as_str()));
        }
    });
}

fn held(left: &str) -> String {
    let value = "0123456789abcdef0123456789abcdef@host;1700000000000";
    format!("*5\r\n$4\r\nheld\r\n${}\r\n{value}\r\n:{left}\r\n$1\r\n7\r\n{ID}", value.len())
}

#[test]
fn a_holder_for_ten_years_is_waited_for_no_longer_than_asked() {
    for left in ["315360000000", "9223372036854775807", "-1", "0", "-2"] {
        let foreign = format!("*4\r\n$7\r\nforeign\r\n$4\r\nhash\r\n:{left}\r\n{ID}");
        let error = refused(foreign.as_str());
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{left}: {error}");
    }
    for left in ["172800000", "-1", "0", "-2"] {
        let error = refused(held(left).as_str());
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{left}: {error}");
    }
    // Clients of this library never lock for so long.
    for left in ["315360000000", "9223372036854775807"] {
        let error = refused(held(left).as_str());
        assert_eq!(error.kind(), ErrorKind::StoreRefused, "{left}: {error}");
    }
    for left in ["-3", "-9223372036854775808"] {
        expect_unavailable(held(left).as_str());
    }
}

/// Two answers for one question: a refusal, and a grant for the next request.
#[test]
fn an_answer_too_many_is_no_grant() {
    let two = format!("{}*3\r\n$7\r\ngranted\r\n$1\r\n7\r\n{ID}", held("60000"));
    let address = impostor(move |asked| (asked == Asked::Acquire).then(|| two.as_str().into()));
    for _ in 0..20 {
        let client = connect_patiently(format!("redis://{address}/"));
        assert!(client.lock("job").try_acquire().unwrap().is_none());
        assert!(!matches!(client.lock("job").try_acquire(), Ok(Some(_))));
    }
}

/// The same, but the second one comes when nobody is reading.
#[test]
fn an_answer_too_late_is_no_grant() {
    for _ in 0..20 {
        let (turn, asked_before) = (Arc::new(Barrier::new(2)), AtomicUsize::new(0));
        let its_turn = Arc::clone(&turn);
        let address = impostor(move |asked| {
            let is_first = asked == Asked::Acquire && asked_before.fetch_add(1, Ordering::SeqCst) == 0;
            let then = format!("*3\r\n$7\r\ngranted\r\n$1\r\n7\r\n{ID}").into();
            let turn = Arc::clone(&its_turn);
            match asked {
                Asked::Acquire if is_first => Some(Answer::Later { first: held("60000").into(), then, turn }),
                Asked::Acquire => Some(held("60000").as_str().into()),
                Asked::Renew | Asked::Release | Asked::Read | Asked::Subscribe | Asked::Other => None,
            }
        });
        let client = connect(address).unwrap();
        assert!(client.lock("job").try_acquire().unwrap().is_none());
        turn.wait();
        turn.wait();
        assert!(!matches!(client.lock("job").try_acquire(), Ok(Some(_))));
    }
}

#[test]
fn a_lease_whose_renewals_are_answered_with_nonsense_ends_at_its_deadline() {
    thread::scope(|scope| {
        for nonsense in [
            "+OK\r\n",
            ":1\r\n",
            "*2\r\n$7\r\nrenewed\r\n$1\r\n#\r\n",
            "*0\r\n",
            "*4294967296\r\n",
            "*9\r\n$7\r\nrenewed\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$7\r\nrenewed\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n$1\r\n#\r\n",
            "*3\r\n$7\r\ngranted\r\n$1\r\n7\r\n$1\r\n#\r\n",
            "*4\r\n$7\r\nrenewed\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n",
            "garbage",
        ] {
            scope.spawn(move || {
                let address = impostor(move |asked| (asked == Asked::Renew).then(|| nonsense.into()));
                let client = connect(address).unwrap();
                let lease = client.lock("job").ttl(ms(900)).renew_every(ms(100)).acquire().unwrap();
                let error = lease.lost();
                assert!(error.to_string().contains("no renewal was confirmed in time"), "{nonsense:?}: {error}");
            });
        }
    });
}

#[test]
fn looking_and_releasing_survive_nonsense() {
    for nonsense in [
        "+OK\r\n",
        "*4294967296\r\n",
        "garbage",
        "*3\r\n$7\r\ngranted\r\n$1\r\n7\r\n$1\r\n#\r\n",
        "*2\r\n$7\r\nrenewed\r\n$1\r\n#\r\n",
    ] {
        let asked = [Asked::Read, Asked::Release];
        let address = impostor(move |what| asked.contains(&what).then(|| nonsense.into()));
        let client = connect(address).unwrap();
        assert_eq!(client.inspect("job").unwrap_err().kind(), ErrorKind::StoreUnavailable, "{nonsense:?}");
        let lease = client.lock("job").ttl(ms(10_000)).acquire().unwrap();
        assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::StoreUnavailable, "{nonsense:?}");
    }
}

#[test]
fn wake_ups_that_are_nonsense_hold_no_waiter_up() {
    for nonsense in
        ["garbage", "*4294967296\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n", ":1\r\n", "-ERR no\r\n"]
    {
        let tries = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&tries);
        let address = impostor(move |asked| match asked {
            Asked::Subscribe => Some(nonsense.into()),
            // Held at first, then free.
            Asked::Acquire if count.fetch_add(1, Ordering::SeqCst) < 4 => Some(held("60000").as_str().into()),
            Asked::Acquire | Asked::Renew | Asked::Release | Asked::Read | Asked::Other => None,
        });
        let client = connect(address).unwrap();
        client.lock("job").wait(PATIENCE).acquire().unwrap().release().unwrap();
        assert_eq!(tries.load(Ordering::SeqCst), 5, "{nonsense:?}");
    }
}

#[test]
fn greetings_that_are_nonsense_are_an_error_of_connecting() {
    for nonsense in ["garbage", "*4294967296\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n", "$9223372036854775807\r\n"] {
        let address = impostor(move |asked| (asked == Asked::Other).then(|| nonsense.into()));
        let error = connect(address).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{nonsense:?}");
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    }
}

/// The most memory that this process ever used, in KiB.
#[cfg(target_os = "linux")]
fn high_water() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Alone in its process, where memory can be measured.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "a role of other tests"]
fn role_hears_endless_answers() {
    let Some(which) = role_args() else { return };
    let answer = match which.as_str() {
        "line" => Answer::endless("+", b"a"),
        "bulk" => Answer::endless("$9000000000\r\n", b"a"),
        "array" => Answer::endless("*9000000000\r\n", b":1\r\n"),
        "replies" => Answer::endless("", b"+OK\r\n"),
        "nested" => Answer::endless("", b"*1\r\n"),
        "error" => Answer::endless("-ERR ", b"a"),
        other => panic!("no answer is called {other}"),
    };
    let before = high_water();
    let error = refused(answer);
    say(format!("{:?} {} MiB", error.kind(), (high_water() - before) >> 10));
}

#[cfg(target_os = "linux")]
#[test]
fn endless_answers_are_left_soon() {
    // A reply of 8 MiB at most, in a buffer that doubles as it grows, and what a client takes for itself.
    const MOST_MIB: u64 = 24;
    for which in ["line", "bulk", "array", "replies", "nested", "error"] {
        let role = Role::start("hostile_resp::role_hears_endless_answers", which);
        let said = role.says_within(Duration::from_secs(60));
        println!("{which}: {said}");
        let (kind, grown) = said.strip_suffix(" MiB").unwrap().split_once(' ').unwrap();
        assert_eq!(kind, "StoreUnavailable", "{which}");
        assert!(grown.parse::<u64>().unwrap() < MOST_MIB, "{which}: {said}");
    }
}
