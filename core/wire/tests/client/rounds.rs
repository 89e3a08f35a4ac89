//! Exchanges of several rounds, each under the deadline of the first and with a name of its own.

use std::time::Duration;

use leasehold_core::config::Wait;
use leasehold_core::member::{LossId, QuorumId};
use leasehold_core::op::{Applied, Fault, FaultKind, Holder, Holding, Op, Outcome, Refusal, Seen};
use leasehold_core::{Config, Event, Failure, LockId, NodeConfig, NodeId, Quorum, Resource, Token, Version};
use leasehold_wire::client::{Access, RedisStore, Response, Store};
use leasehold_wire::resp::Value;
use leasehold_wire::rest::Dialect;

use super::common::{Host, aws, dynamodb_store, lost, not_sent, redis_http};
use super::redis_server::RedisServer;

#[test]
fn a_look_at_a_node_and_a_new_seed_reach_the_core() {
    let quorum = Quorum::new(QuorumId([1; 16]), Duration::from_secs(60)).unwrap();
    let config = Config::new(vec![NodeConfig::default(); 3]).unwrap().with_quorum(quorum);
    let mut host = Host::with(1, config, vec![Store::Operations, Store::Operations, Store::Operations]);
    host.client.node_votes(NodeId::new(1), Some(LossId([7; 16])), host.now);
    host.acquire(1, Wait::Forever);
    let known: Vec<Option<LossId>> = host
        .transmits
        .iter()
        .map(|transmit| match &transmit.ops[0].op {
            Op::Acquire(acquire) => acquire.member.as_ref().and_then(|member| member.waited_out),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(known, [None, Some(LossId([7; 16])), None]);

    let sleeps_until = |reseed: bool| {
        let mut host = Host::new(1, vec![Store::Operations]);
        if reseed {
            host.client.reseed([9; 32]);
        }
        host.acquire(1, Wait::Forever);
        let id = host.transmits[0].id;
        let vacant = Outcome::NotApplied(Refusal::Conflict(Seen::default()));
        host.answer(id, Response::Outcomes(vec![vacant]));
        host.wake_at
    };
    assert_eq!(sleeps_until(false), sleeps_until(false));
    assert_ne!(sleeps_until(false), sleeps_until(true));
}

#[test]
fn what_is_still_to_be_handed_out_is_counted() {
    let mut host = Host::new(1, vec![Store::Dynamodb(dynamodb_store())]);
    for lock in 1..=3 {
        host.acquire_named(lock, &format!("lock {lock}"), Wait::Forever);
    }
    assert_eq!(host.client.stats().undrained, 0, "they wait for credentials");
    host.client.set_credentials(NodeId::new(0), aws("AKID", None), host.now).unwrap();
    assert_eq!(host.client.stats().undrained, 3);
    host.drain();
    assert_eq!((host.client.stats().undrained, host.http.len()), (0, 3));
}

#[test]
fn what_nobody_hands_out_in_time_has_never_left() {
    let mut host = Host::new(1, vec![Store::Dynamodb(dynamodb_store())]);
    host.acquire(1, Wait::Once);
    host.client.set_credentials(NodeId::new(0), aws("AKID", None), host.now).unwrap();
    host.now.monotonic = host.now.monotonic.plus(Duration::from_secs(3));
    host.drain();
    let Event::Failed { failure: Failure::Unavailable(fault), .. } = host.last_event() else {
        panic!("{:?}", host.events)
    };
    assert_eq!(fault.detail.as_deref(), Some("the request could not be sent in time"));
    assert!(host.client.is_idle() && host.http.is_empty());
}

/// Commands that need nothing of the wire.
#[test]
fn what_the_core_takes_reaches_it() {
    let mut host = Host::new(1, vec![Store::Operations]);
    let name = Resource::new("invoice/42").unwrap();
    let answer = |host: &mut Host, outcome: Outcome| {
        let transmit = host.transmits.pop_front().expect("a request");
        host.answer(transmit.id, Response::Outcomes(vec![outcome]));
    };
    let busy = || Outcome::NotApplied(Refusal::Throttled(Fault::of(FaultKind::Busy)));
    let vacant = || Outcome::NotApplied(Refusal::Conflict(Seen::default()));

    host.acquire(1, Wait::Forever);
    answer(&mut host, Outcome::Applied(Applied::Acquired { counter: Token::new(7).unwrap() }));
    assert_eq!(host.client.state(LockId::new(1)), Some("Held"));
    assert!(host.client.remaining(LockId::new(1), host.now) > Duration::from_secs(29));
    host.client.declare_lost(LockId::new(1), host.now).unwrap();
    host.drain();
    assert!(matches!(host.last_event(), Event::Lost { .. }), "{:?}", host.events);

    host.acquire(2, Wait::Forever);
    answer(&mut host, Outcome::NotApplied(Refusal::NeedsCredentials(Fault::of(FaultKind::Server))));
    assert_eq!((host.asked.as_slice(), host.transmits.len()), (&[0][..], 0));
    host.client.credentials_renewed(NodeId::new(0), host.now);
    host.pass(Duration::ZERO);
    assert_eq!(host.transmits.len(), 1, "fresh credentials are tried");
    let foreign = Holding::of(Holder::Foreign, Version::new(b"1").unwrap());
    let holding = Holding { record_ttl: Some(Duration::from_secs(30)), ..foreign };
    answer(&mut host, Outcome::NotApplied(Refusal::Conflict(Seen { holding: Some(holding.into()), done: None })));
    assert_eq!(host.client.holder(LockId::new(2)).map(|holding| holding.holder), Some(Holder::Foreign));
    host.client.notified(&name, host.now);
    host.pass(Duration::ZERO);
    assert_eq!(host.transmits.len(), 1, "so is a hint");
    answer(&mut host, vacant());
    host.client.subscribed(NodeId::new(0), &name, host.now);
    host.pass(Duration::ZERO);
    assert_eq!(host.transmits.len(), 1, "and whatever may have been missed before one could come");
    answer(&mut host, busy());

    host.client.close(host.now);
    host.drain();
    assert!(matches!(host.last_event(), Event::Failed { failure: Failure::Cancelled, .. }), "{:?}", host.events);
    assert!(host.client.is_idle());
}

#[test]
fn a_script_that_is_not_known_is_sent_whole_in_time() {
    let mut server = RedisServer::default();
    let mut host = Host::new(1, vec![redis_http(Dialect::Upstash, Access::Anonymous)]);
    host.acquire(1, Wait::Forever);
    let first = host.http.pop_front().unwrap();
    assert!(first.body.starts_with(br#"["EVALSHA""#));
    host.now.monotonic = host.now.monotonic.plus(Duration::from_millis(700));
    let response = server.serve_http(&first);
    host.answer(first.id, response);
    let second = host.http.pop_front().unwrap();
    assert!(second.body.starts_with(br#"["EVAL","#));
    assert_eq!(second.deadline, first.deadline);
    assert_ne!(second.id, first.id);
    // The first one is answered again, by somebody who held it back.
    host.answer(first.id, lost());
    assert_eq!(host.client.stats().ignored_responses, 1);
    let response = server.serve_http(&second);
    host.answer(second.id, response);
    assert!(matches!(host.last_event(), Event::Acquired { .. }));
}

#[test]
fn a_second_round_that_never_left_changed_nothing() {
    let mut host = Host::new(1, vec![Store::Redis(RedisStore::default())]);
    host.acquire(1, Wait::Once);
    let first = host.commands.pop_front().unwrap();
    host.answer(first.id, Response::Redis(vec![Value::Error("NOSCRIPT".into())]));
    let second = host.commands.pop_front().unwrap();
    host.answer(second.id, not_sent());
    assert!(matches!(host.last_event(), Event::Failed { failure: Failure::Unavailable(_), .. }), "{:?}", host.events);
    assert!(host.client.is_idle(), "nothing needs to be released");
}

#[test]
fn a_deadline_ends_every_round() {
    let mut host = Host::new(1, vec![Store::Redis(RedisStore::default())]);
    host.acquire(1, Wait::Forever);
    let first = host.commands.pop_front().unwrap();
    host.answer(first.id, Response::Redis(vec![Value::Error("NOSCRIPT".into())]));
    let second = host.commands.pop_front().unwrap();
    host.pass(second.deadline.since(host.now.monotonic));
    assert_eq!(host.client.stats().timed_out_requests, 1);
    host.answer(second.id, Response::Redis(vec![Value::Nil]));
    assert_eq!(host.client.stats().ignored_responses, 1);
    while host.commands.is_empty() {
        host.sleep();
    }
}

/// A request that has left may have been applied, at every kind of store.
#[test]
fn what_is_not_answered_in_time_may_have_happened() {
    for store in [
        Store::Redis(RedisStore::default()),
        redis_http(Dialect::Upstash, Access::Anonymous),
        Store::Dynamodb(dynamodb_store()),
        Store::Operations,
    ] {
        let needs_credentials = matches!(store, Store::Dynamodb(_));
        let mut host = Host::new(1, vec![store]);
        if needs_credentials {
            host.give(0, aws("AKID", None));
        }
        host.acquire(1, Wait::Once);
        let sent = |host: &Host| host.http.len() + host.commands.len() + host.transmits.len();
        assert_eq!(sent(&host), 1);
        host.pass(Duration::from_secs(2));
        assert!(host.events.is_empty() && !host.client.is_idle(), "it is looked for: {:?}", host.events);
        assert_eq!(host.client.stats().timed_out_requests, 1);
        while sent(&host) == 1 {
            host.sleep();
        }
    }
}

#[test]
fn what_was_not_drained_in_time_was_not_sent() {
    let mut host = Host::new(1, vec![Store::Redis(RedisStore::default())]);
    let options = leasehold_core::LockOptions::builder().wait(Wait::Once).build().unwrap();
    let resource = leasehold_core::Resource::new("r").unwrap();
    host.client.acquire(leasehold_core::LockId::new(1), resource, options, &[1; 16], host.now).unwrap();
    host.now.monotonic = host.now.monotonic.plus(Duration::from_secs(3));
    host.drain();
    assert!(host.commands.is_empty());
    assert!(matches!(host.last_event(), Event::Failed { failure: Failure::Unavailable(_), .. }), "{:?}", host.events);
}

/// Redis over a connection, Redis over HTTP, DynamoDB, and one that the host knows itself.
#[test]
fn a_quorum_of_stores_of_every_kind_grants_and_renews() {
    let stores = vec![
        Store::Redis(RedisStore::default()),
        redis_http(Dialect::Upstash, Access::Anonymous),
        Store::Dynamodb(dynamodb_store()),
        Store::Operations,
        redis_http(Dialect::Webdis, Access::Anonymous),
    ];
    let mut host = Host::new(1, stores);
    let mut server = RedisServer::default();
    let (mut upstash, mut webdis) = (RedisServer::default(), RedisServer::default());
    host.acquire(1, Wait::Forever);
    assert_eq!(host.asked, [2]);
    assert_eq!((host.commands.len(), host.http.len(), host.transmits.len()), (1, 2, 1));
    let serve = |host: &mut Host, server: &mut RedisServer, upstash: &mut RedisServer, webdis: &mut RedisServer| {
        loop {
            if let Some(transmit) = host.transmits.pop_front() {
                let outcomes = transmit.ops.iter().map(|op| match &op.op {
                    leasehold_core::op::Op::Acquire(_) => {
                        Outcome::Applied(Applied::Acquired { counter: Token::new(2_000_000_000_000_000).unwrap() })
                    }
                    leasehold_core::op::Op::Raise(raise) => Outcome::Applied(Applied::Raised { counter: raise.token }),
                    leasehold_core::op::Op::Renew(_) => Outcome::Applied(Applied::Renewed),
                    leasehold_core::op::Op::Release(_) => Outcome::Applied(Applied::Released),
                    other => panic!("{other:?}"),
                });
                let outcomes = outcomes.collect();
                host.answer(transmit.id, Response::Outcomes(outcomes));
            } else if let Some(commands) = host.commands.pop_front() {
                let replies = commands.commands.iter().map(|command| server.run(command)).collect();
                host.answer(commands.id, Response::Redis(replies));
            } else if let Some(request) = host.http.pop_front() {
                let response = match request.node.get() {
                    1 => upstash.serve_http(&request),
                    4 => webdis.serve_http(&request),
                    // The table is not reached; a majority is enough.
                    _ => not_sent(),
                };
                host.answer(request.id, response);
            } else {
                return;
            }
        }
    };
    serve(&mut host, &mut server, &mut upstash, &mut webdis);
    host.give(2, aws("AKID", None));
    serve(&mut host, &mut server, &mut upstash, &mut webdis);
    assert_eq!(host.token(), Some(2_000_000_000_000_000), "the highest counter of all: {:?}", host.events);
    assert!(server.ran.contains(&"raise"), "the others were raised: {:?}", server.ran);
    while !host.events.iter().any(|event| matches!(event, Event::Renewed { .. })) {
        host.sleep();
        serve(&mut host, &mut server, &mut upstash, &mut webdis);
    }
    host.release(1);
    serve(&mut host, &mut server, &mut upstash, &mut webdis);
    assert!(host.events.iter().any(|event| matches!(event, Event::Released { .. })), "{:?}", host.events);
}

/// All outputs that are due still come, and none twice.
#[test]
fn a_step_brings_a_thousand_outputs_at_most() {
    use leasehold_core::{Input as CoreInput, LockId, LockOptions, Resource};
    use leasehold_wire::client::{Input, Output};
    let mut host = Host::new(1, vec![Store::Operations]);
    let acquire = |lock| {
        let resource = Resource::new(&format!("lock {lock}")).unwrap();
        let options = LockOptions::builder().build().unwrap();
        Input::Core(CoreInput::Acquire { lock: LockId::new(lock), resource, options })
    };
    let inputs = (0..2_500).map(acquire).collect();
    let mut outputs: Vec<Output> = Vec::new();
    let mut lengths = Vec::new();
    let mut wake_at = host.client.step(&[1; 16], host.now, inputs, &mut outputs).unwrap();
    lengths.push(outputs.len());
    while wake_at <= host.now.monotonic {
        wake_at = host.client.step(&[2; 16], host.now, Vec::new(), &mut outputs).unwrap();
        lengths.push(outputs.len());
    }
    assert_eq!(lengths, [1_000, 2_000, 2_500]);
}
