//! A daemon that runs, and a client that speaks HTTP as far as a test wants.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use super::{Place, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon that runs, on a free port.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) address: String,
    _stdout: BufReader<ChildStdout>,
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}\n{}", self.head, self.body);
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }
}

impl Daemon {
    pub(crate) fn start(place: &Place, options: &[&str]) -> Self {
        let mut command = place.leasehold(&[&["serve"], options].concat());
        if !options.contains(&"--socket") && !options.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.split([' ', ',']).nth(2).unwrap_or_default();
        let address = address.trim_start_matches("http://").trim_start_matches("https://").to_owned();
        assert!(line.starts_with("listening on "), "{line:?}");
        Self { child, address, _stdout: stdout }
    }

    pub(crate) fn send(&self, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        answer(self.send(&posted(path, &body.to_string(), "")))
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        answer(self.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")))
    }

    pub(crate) fn acquire(&self, name: &str) -> Value {
        self.post("/v1/acquire", &json!({ "resource": name, "wait_ms": 30_000 })).expect(200)
    }

    pub(crate) fn lease(&self, lease: &Value, what: &str) -> Answer {
        self.post(&format!("/v1/leases/{}/{what}", lease["id"].as_str().unwrap()), &json!({}))
    }

    pub(crate) fn is_held(&self, name: &str) -> bool {
        self.get(&format!("/v1/inspect?resource={name}")).expect(200)["held"].as_bool().unwrap()
    }

    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").body;
        let line =
            text.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).unwrap_or_else(|| panic!("{text}"));
        line.parse().unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    #[track_caller]
    pub(crate) fn wait(&mut self) -> Option<i32> {
        wait_for("the end of the daemon", || self.child.try_wait().unwrap().is_some());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn posted(path: &str, body: &str, more: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n{more}\r\n{body}"
    )
}

pub(crate) fn answer(mut stream: impl Read) -> Answer {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}
