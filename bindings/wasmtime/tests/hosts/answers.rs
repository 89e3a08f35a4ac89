//! Responses of broken servers, and unusual responses of healthy ones.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use leasehold_servers::rest::Misbehave;
use leasehold_servers::{redis, rest};

use crate::program::{Language, Running};

const LANGUAGES: [Language; 2] = [Language::Python, Language::CheckedC];

/// Takes a lock whatever the first answer is, and gives it back.
fn take(language: Language, server: &rest::Server, resource: &str) {
    let mut command = language.program("lock");
    command
        .args(["upstash", &server.url(), resource, "--wait-ms", "600000"])
        .env("UPSTASH_REDIS_REST_TOKEN", server.token());
    let mut lock = Running::start(command);
    assert!(lock.token() > 0);
    lock.end_input();
    lock.hear("released");
    assert_eq!(lock.status(), 0);
}

#[test]
fn a_bad_answer_is_asked_about_again() {
    let redis = redis::Server::start();
    let server = rest::Server::start(&redis);
    for (n, misbehave) in [
        Misbehave::HalfBody,
        Misbehave::CloseAfterApplying,
        Misbehave::CloseBeforeAnswer,
        Misbehave::Status(503, "{}".into()),
        Misbehave::Large(3 << 20),
    ]
    .into_iter()
    .enumerate()
    {
        for language in LANGUAGES {
            server.misbehave(misbehave.clone());
            take(language, &server, &format!("{language:?} {n}"));
            assert_eq!(server.misbehaviours_left(), 0, "{misbehave:?} was met");
        }
    }
}

#[test]
fn an_answer_may_come_in_chunks() {
    for language in LANGUAGES {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        // It ends with the test's process.
        thread::spawn(move || listener.incoming().try_for_each(|stream| answer(stream.ok()?)));
        let mut command = language.program("lock");
        command.args(["webdis", &url, "invoice/42"]);
        let mut lock = Running::start(command);
        assert_eq!(lock.token(), 1_700_000_000_000_000);
        lock.end_input();
        assert_eq!(lock.hear("released"), "");
        assert_eq!(lock.status(), 0);
    }
}

/// Responds as a Webdis, in chunks of one byte. A script replies with the last number that it was given.
fn answer(stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(&stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end().to_ascii_lowercase();
        length = line.strip_prefix("content-length: ").map_or(Some(length), |value| value.parse().ok())?;
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    let number = body.rsplit('/').next()?;
    // Only the script that releases knows of wake-ups.
    let said = if body.contains("wake") {
        format!(r#""{number}""#)
    } else {
        format!(r#"["granted","1700000000000000","{number}"]"#)
    };
    let body = format!(r#"{{"EVALSHA":{said}}}"#);
    let chunks: String = body.chars().map(|letter| format!("1;why=not\r\n{letter}\r\n")).collect();
    // A header that nobody reads may be in Latin-1.
    (&stream).write_all(b"HTTP/1.1 200 OK\r\nServer: caf\xe9\r\nContent-Type: application/json\r\n").ok()?;
    (&stream).write_all(format!("Transfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n").as_bytes()).ok()
}
