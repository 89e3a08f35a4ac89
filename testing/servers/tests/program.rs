//! The program that starts servers for tests in other languages.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use leasehold_servers::resp::Connection;
use serde_json::Value;

struct Program {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Program {
    fn start(words: &[&str]) -> (Self, Value) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold-servers"));
        let mut child = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (orders, answers) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut program = Self { child, orders, answers };
        let facts = program.hear();
        (program, facts)
    }

    fn obey(&mut self, order: &str) -> Value {
        self.orders.write_all(format!("{order}\n").as_bytes()).unwrap();
        self.hear()
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or(Value::Null)
    }
}

fn port(facts: &Value) -> u16 {
    u16::try_from(facts["port"].as_u64().unwrap()).unwrap()
}

#[test]
fn server_obeys_orders_and_ends_with_the_input() {
    let (mut program, facts) = Program::start(&["redis"]);
    let address = ([127, 0, 0, 1], port(&facts)).into();
    assert_eq!(facts["url"], format!("redis://{address}"));
    let ping = || Connection::open(address).and_then(|mut redis| redis.command(&["PING"])).map(|reply| reply.text());
    assert_eq!(ping().unwrap(), "PONG");
    program.obey("kill");
    assert!(ping().is_err());
    let again = program.obey("restart");
    assert_eq!(port(&again), port(&facts));
    assert_ne!(again["pid"], facts["pid"]);
    assert_eq!(ping().unwrap(), "PONG");
    program.obey("freeze");
    // It ends all the same.
    drop(program.orders);
    assert!(program.child.wait().unwrap().success());
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn webdis_finds_the_redis_of_another_process() {
    let (_redis, facts) = Program::start(&["redis"]);
    let (mut webdis, facts) = Program::start(&["webdis", &port(&facts).to_string()]);
    assert!(TcpStream::connect(("127.0.0.1", port(&facts))).is_ok());
    assert_eq!(webdis.obey("kill"), facts);
    assert!(TcpStream::connect(("127.0.0.1", port(&facts))).is_err());
}

#[test]
fn groups_of_redis_fail_over_when_they_are_told() {
    for (kind, order) in
        [("cluster", "failover"), ("cluster", "switch"), ("sentinel", "failover"), ("sentinel", "switch")]
    {
        let (mut program, facts) = Program::start(&[kind]);
        let says = format!("redis+{kind}://");
        assert!(facts["url"].as_str().unwrap().starts_with(&says), "{facts}");
        assert_eq!(program.obey(order), facts);
        assert_eq!(program.obey("kill"), Value::Null);
        assert!(!program.child.wait().unwrap().success());
    }
}

#[test]
fn a_cluster_moves_names_when_it_is_told() {
    let (mut program, facts) = Program::start(&["cluster"]);
    let ports: Vec<_> = facts["ports"].as_array().unwrap().iter().map(|port| port.as_u64().unwrap()).collect();
    let node = |port: &u64| Connection::open(([127, 0, 0, 1], u16::try_from(*port).unwrap()).into()).unwrap();
    let says = |port: &u64| node(port).command(&["GET", "a"]).unwrap().text();
    let of_a = ports[..3].iter().find(|port| !node(port).command(&["SET", "a", "1"]).unwrap().is_error()).unwrap();
    program.obey("move a");
    assert!(says(of_a).starts_with("ASK "), "{}", says(of_a));
    program.obey("moved a");
    assert!(says(of_a).starts_with("MOVED "), "{}", says(of_a));
}

#[test]
fn what_it_does_not_know_ends_it_with_a_reason() {
    for words in [&["consul"][..], &[], &["webdis"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_leasehold-servers")).args(words).output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{words:?}");
        assert!(!output.stderr.is_empty(), "{words:?}");
    }
    let (mut program, _) = Program::start(&["redis"]);
    assert_eq!(program.obey("stop"), Value::Null);
    assert!(!program.child.wait().unwrap().success());
}
