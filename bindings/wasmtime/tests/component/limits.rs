//! An instance has limits, and a call that exceeds them ends with an error.

use leasehold_wasmtime::client::{Event, HttpResponse, Outcomes, Output, RedisReplies, Response};
use leasehold_wasmtime::ops::{Applied, AppliedOutcome, Fault, FaultKind, NodeCounter, Outcome};
use leasehold_wasmtime::stores::{Access, Dialect, RedisHttpStore, RedisStore, Store};
use leasehold_wasmtime::types::LockOptions;
use leasehold_wasmtime::{CallError, Client, HostError, Limits};

use crate::{FRESH, SEED, at, component, config, options};

fn client(limits: Limits) -> Client {
    Client::create(component(), limits, &config(), &SEED, at(0)).expect("a client")
}

/// Locks until something gives way.
fn acquire(client: &mut Client, count: u64) -> Result<(), CallError<leasehold_wasmtime::client::Error>> {
    (0..count).try_for_each(|lock| client.acquire(lock, &format!("resource/{lock}"), &options(), &FRESH, at(0)))
}

#[test]
fn a_call_that_takes_too_long_ends_with_an_error() {
    let mut client = client(Limits { fuel: 300_000, ..Limits::default() });
    acquire(&mut client, 1_000).expect("each is a short call");
    assert_eq!(client.close(at(1)), Err(HostError::OutOfFuel));
    assert_eq!(client.is_idle(), Err(HostError::OutOfFuel), "an instance in the middle of something is not entered");
}

#[test]
fn fuel_is_given_anew_to_each_call() {
    let mut client = client(Limits { fuel: 300_000, ..Limits::default() });
    for n in 0..2_000 {
        client.handle_timeout(&FRESH, at(n)).expect("a short call");
    }
}

#[test]
fn memory_is_bounded() {
    let mut client = client(Limits { memory_bytes: 4 << 20, ..Limits::default() });
    let Err(CallError::Host(HostError::Trap(told))) = acquire(&mut client, 100_000) else { panic!("it fits") };
    assert!(matches!(client.stats(), Err(HostError::Trap(_))), "{told}");
}

#[test]
fn a_lock_takes_no_more_memory_than_said() {
    let mut client = client(Limits { memory_bytes: 42 << 20, ..Limits::default() });
    acquire(&mut client, 20_000).expect("20,000 locks of 2 KiB");
    assert_eq!(client.stats().expect("a call").locks, 20_000);
}

/// The machine keeps what it may have to send once more.
#[test]
fn a_request_under_way_takes_no_more_memory_than_said() {
    let limits = Limits { memory_bytes: 84 << 20, ..Limits::default() };
    let stores = [Store::Redis(RedisStore { retention_ms: None, replicas: None })];
    let mut client = Client::create_wired(component(), limits, &config(), &stores, &SEED, at(0)).expect("a client");
    acquire(&mut client, 20_000).expect("20,000 locks of 2 KiB");
    let mut under_way = 0;
    while matches!(client.poll_output(at(0)).expect("2 KiB more for each"), Output::RedisCommands(_)) {
        under_way += 1;
    }
    assert_eq!(under_way, 20_000);
}

/// All of them in one call.
#[test]
fn all_locks_can_be_closed() {
    let locks = if leasehold_servers::is_long() { 100_000 } else { 10_000 };
    let mut client = client(Limits::default());
    acquire(&mut client, locks).expect("they fit");
    assert_eq!(client.close(at(0)), Ok(()));
    let cancelled = std::iter::from_fn(|| match client.poll_output(at(0)).expect("a call") {
        Output::Event(told) if matches!(told.event, Event::Failed(_)) => Some(()),
        _ => None,
    });
    assert_eq!(cancelled.count() as u64, locks);
}

#[test]
fn large_arguments_are_refused_before_they_cost_anything() {
    let mut client = client(Limits::default());
    let huge = "x".repeat(3 << 20);
    let refused = client.acquire(1, &huge, &options(), &FRESH, at(0));
    assert!(matches!(refused, Err(CallError::Host(HostError::TooLarge { .. }))), "{refused:?}");
    let reason = Response::Unknown(Fault { kind: FaultKind::Server, detail: Some(huge) });
    assert!(matches!(client.handle_response(0, &reason, at(0)), Err(HostError::TooLarge { .. })));
    let renewed = Outcome::Applied(AppliedOutcome { applied: Applied::Renewed });
    let many = Response::Outcomes(Outcomes { outcomes: vec![renewed; 100_000] });
    assert!(matches!(client.handle_response(0, &many, at(0)), Err(HostError::TooLarge { .. })));
    acquire(&mut client, 1).expect("nothing has happened");
}

#[test]
fn a_large_list_that_is_let_through_is_an_answer_too() {
    let mut client = client(Limits { argument_bytes: usize::MAX, ..Limits::default() });
    acquire(&mut client, 1).expect("a lock");
    let Output::Transmit(transmit) = client.poll_output(at(0)).expect("a call") else { panic!("a request") };
    let counter = NodeCounter { counter: 1_700_000_000_000 };
    let acquired = Outcome::Applied(AppliedOutcome { applied: Applied::Acquired(counter) });
    let many = Response::Outcomes(Outcomes { outcomes: vec![acquired; 100_000] });
    client.handle_response(transmit.id, &many, at(1)).expect("all but the first are too many");
    let Output::Event(told) = client.poll_output(at(1)).expect("a call") else { panic!("an event") };
    assert!(matches!(told.event, Event::Acquired(_)), "{told:?}");
}

#[test]
fn a_lock_that_is_gone_leaves_nothing_behind() {
    let mut client = client(Limits { memory_bytes: 2 << 20, ..Limits::default() });
    for lock in 0..5_000 {
        let options = LockOptions { data: Some(vec![1; 1_000]), ..options() };
        client.acquire(lock, "invoice/42", &options, &FRESH, at(lock)).expect("a lock");
        let counter = NodeCounter { counter: 1_700_000_000_000 + lock };
        answer(&mut client, &Applied::Acquired(counter), lock);
        client.release(lock, at(lock)).expect("a lock that is held");
        answer(&mut client, &Applied::Released, lock);
    }
    assert_eq!(client.stats().expect("a call").locks, 0);
}

/// Answers every request alike.
fn answer(client: &mut Client, applied: &Applied, now: u64) {
    loop {
        match client.poll_output(at(now)).expect("a call") {
            Output::Transmit(request) => {
                let outcomes = vec![Outcome::Applied(AppliedOutcome { applied: applied.clone() })];
                client
                    .handle_response(request.id, &Response::Outcomes(Outcomes { outcomes }), at(now))
                    .expect("a call");
            }
            Output::WakeAt(_) => return,
            _ => {}
        }
    }
}

#[test]
fn the_longest_answers_of_stores_are_understood_within_the_limits() {
    const LONGEST: usize = 1 << 20;
    let fill = |piece: &str| piece.repeat(LONGEST / piece.len()).into_bytes();
    let bodies = ["[", "{\"a\":", "1,", "\"\\u0041\",", "0", "\\"].map(fill);
    let within = bodies.iter().map(|body| {
        let (open, close) = (b"{\"result\":[".to_vec(), b"1]}".to_vec());
        [open, body[..LONGEST - 20].to_vec(), close].concat()
    });
    let upstash = Store::RedisHttp(RedisHttpStore {
        dialect: Dialect::Upstash,
        url: "https://db.example".into(),
        access: Access::Anonymous,
        retention_ms: None,
        plaintext: None,
    });
    let over_http = bodies
        .iter()
        .cloned()
        .chain(within)
        .map(|body| Response::HttpResponse(HttpResponse { status: 200, headers: Vec::new(), body }));
    is_understood(&upstash, &Vec::from_iter(over_http));
    let redis = Store::Redis(RedisStore { retention_ms: None, replicas: None });
    let over_connections = ["*1\r\n", "$0\r\n\r\n", ":1\r\n", "*100000\r\n", "-a\r\n"]
        .map(|piece| Response::RedisReplies(RedisReplies { replies: fill(piece) }));
    is_understood(&redis, &over_connections);
}

fn is_understood(store: &Store, answers: &[Response]) {
    let stores = [store.clone()];
    let made = Client::create_wired(component(), Limits::default(), &config(), &stores, &SEED, at(0));
    let mut client = made.expect("a client");
    for (lock, response) in (0..).zip(answers) {
        client.acquire(lock, &format!("resource/{lock}"), &options(), &FRESH, at(0)).expect("a lock");
        let id = match client.poll_output(at(0)).expect("a call") {
            Output::HttpRequest(request) => request.id,
            Output::RedisCommands(request) => request.id,
            other => panic!("no request: {other:?}"),
        };
        client.handle_response(id, response, at(0)).expect("an answer, or none");
        while !matches!(client.poll_output(at(0)).expect("a call"), Output::WakeAt(_)) {}
    }
}
