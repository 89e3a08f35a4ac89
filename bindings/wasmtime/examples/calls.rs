//! How long calls into the component take: `calls FILE.cwasm`, as `cargo xtask component --test` leaves it.
//!
//! It drives one lock through its life, over and over, and plays the store itself: once as whole operations, and once as
//! a Webdis.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::time::{Duration, Instant};

use leasehold_wasmtime::client::{HttpHeader, HttpRequest, HttpResponse, Outcomes, Output, Response};
use leasehold_wasmtime::ops::{Applied, AppliedOutcome, NodeCounter, Op, Outcome};
use leasehold_wasmtime::stores::{Access, Dialect, RedisHttpStore, Store};
use leasehold_wasmtime::types::{Config, LockOptions, NodeConfig, Now, Poll, Renewal, Wait};
use leasehold_wasmtime::{Client, Component, Limits};

const FOR: Duration = Duration::from_secs(2);
/// Pairs of which the fastest round is told: other hosts count their own processor time, or do the same.
const ROUND: u32 = 500;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("which file?")?;
    let start = Instant::now();
    // SAFETY: the user who starts an example vouches for the file it is given.
    let component = unsafe { Component::deserialize(&std::fs::read(file)?) }?;
    println!("loaded in {:?}", start.elapsed());

    let node = NodeConfig { poll: Poll::Acquire, watch: false, batch: None, durability: None };
    let limits = leasehold_wasmtime::types::Limits { locks: None, orphans: None, observations: None };
    let config = Config { nodes: vec![node], drift_ppm: None, request_timeout_ms: None, limits, quorum: None };
    let start = Instant::now();
    let mut client = Client::create(&component, Limits::default(), &config, &[1; 32], now(0))?;
    println!("a client made in {:?}", start.elapsed());

    let (start, mut calls) = (Instant::now(), 0_u64);
    while start.elapsed() < FOR {
        for _ in 0..100 {
            client.remaining_ns(1, now(calls))?;
            calls += 1;
        }
    }
    println!("{:.0} calls/s that do nothing", rate(calls, start));

    println!("whole operations: {}", cycles(&mut client, "as operations")?);
    let store = Store::RedisHttp(RedisHttpStore {
        dialect: Dialect::Webdis,
        url: "http://127.0.0.1".into(),
        access: Access::Anonymous,
        retention_ms: None,
        plaintext: None,
    });
    let mut client = Client::create_wired(&component, Limits::default(), &config, &[store], &[1; 32], now(0))?;
    println!("requests to Webdis: {}", cycles(&mut client, "as requests over HTTP")?);
    Ok(())
}

fn now(ns: u64) -> Now {
    Now { monotonic_ns: ns, unix_ms: 1_700_000_000_000 }
}

/// Takes and gives back one lock, over and over, and says how long that takes.
fn cycles(client: &mut Client, what: &str) -> Result<String, Box<dyn Error>> {
    let options = LockOptions {
        ttl_ms: None,
        wait: Wait::Once,
        lock_delay_ms: 0,
        max_hold_ms: None,
        renewal: Renewal::Automatic,
        owner: "example".into(),
        data: None,
        run: None,
    };
    let (start, mut pairs, mut calls) = (Instant::now(), 0_u64, 0_u64);
    let (mut fastest, mut since) = (Duration::MAX, start);
    while start.elapsed() < FOR {
        if pairs > 0 && pairs.is_multiple_of(u64::from(ROUND)) {
            let now = Instant::now();
            fastest = fastest.min(now - since);
            since = now;
        }
        pairs += 1;
        let mut fresh = [0; 16];
        fresh[..8].copy_from_slice(&pairs.to_le_bytes());
        client.acquire(pairs, "invoice/42", &options, &fresh, now(pairs))?;
        calls += 1 + drain(client, now(pairs))?;
        client.release(pairs, now(pairs))?;
        calls += 1 + drain(client, now(pairs))?;
    }
    let rate = rate(pairs, start);
    tell(what, fastest.as_secs_f64() * 1e6 / f64::from(ROUND))?;
    Ok(format!("{rate:.0} acquire and release pairs/s ({:.0} us), {} calls each", 1e6 / rate, calls / pairs))
}

/// For `cargo xtask bench --plot`: a line in the file that it names.
fn tell(what: &str, us: f64) -> std::io::Result<()> {
    let Some(path) = std::env::var_os("LEASEHOLD_FIGURES") else { return Ok(()) };
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    writeln!(file, "figure | WebAssembly | {what} | time | us | wasmtime, in Rust | {us:.3} | - | -")
}

fn rate(count: u64, since: Instant) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / since.elapsed().as_secs_f64()
}

/// Answers every request as an honest store would, and says how many calls that took.
fn drain(client: &mut Client, now: Now) -> Result<u64, Box<dyn Error>> {
    let mut calls = 0;
    loop {
        calls += 1;
        match client.poll_output(now)? {
            Output::WakeAt(_) => return Ok(calls),
            Output::Transmit(request) => {
                let outcomes = request.ops.iter().map(|op| match &op.op {
                    Op::Acquire(wish) => Applied::Acquired(NodeCounter { counter: wish.floor }),
                    Op::Release(_) => Applied::Released,
                    Op::Renew(_) | Op::Finish(_) | Op::Revoke(_) | Op::Raise(_) | Op::Read => Applied::Renewed,
                });
                let outcomes = outcomes.map(|applied| Outcome::Applied(AppliedOutcome { applied })).collect();
                client.handle_response(request.id, &Response::Outcomes(Outcomes { outcomes }), now)?;
                calls += 1;
            }
            Output::HttpRequest(request) => {
                client.handle_response(request.id, &Response::HttpResponse(answer(&request)), now)?;
                calls += 1;
            }
            Output::Event(_)
            | Output::RedisCommands(_)
            | Output::Statement(_)
            | Output::Subscribe(_)
            | Output::Unsubscribe(_)
            | Output::NeedCredentials(_)
            | Output::Rejected(_) => {}
        }
    }
}

/// The reply of a script, with the last number of the request. Only the script that releases knows of wake-ups.
fn answer(request: &HttpRequest) -> HttpResponse {
    let body = String::from_utf8_lossy(&request.body);
    let number = body.rsplit('/').next().unwrap_or_default();
    let said = if body.contains("wake") {
        format!(r#""{number}""#)
    } else {
        format!(r#"["granted","1700000000000000","{number}"]"#)
    };
    let header = HttpHeader { name: "content-type".into(), value: "application/json".into() };
    let body = format!(r#"{{"EVALSHA":{said}}}"#).into_bytes();
    HttpResponse { status: 200, headers: vec![header], body }
}
