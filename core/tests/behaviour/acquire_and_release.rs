//! A free lock is acquired in one round trip and released in one; the next holder gets a higher token.

use crate::common::*;
use leasehold_core::op::Op;
use leasehold_core::{Config, Event, NodeConfig, Payload, SessionLabel, Token, Wait};

#[test]
fn a_free_lock_takes_one_request() {
    let mut world = World::new(1);
    world.acquire(0, 1, "invoice/42", options());
    assert_eq!(world.on_the_wire(0), ["acquire"]);
    assert_eq!(world.state(0, 1), Some("Acquiring"));
    let sent = world.now(0).monotonic;
    world.jump(ms(30));
    world.deliver(0);

    let events = world.take_events(0);
    let deadline = sent.plus(secs(30) - ms(600) - ms(2));
    let acquired = Event::Acquired { lock: lock(1), token: token(&events), deadline, recovered: false };
    assert_eq!(events, [acquired], "validity counts from before the send, not from the reply");
    assert_eq!(world.state(0, 1), Some("Held"));
    assert_eq!(world.remaining(0, 1), secs(30) - ms(602) - ms(30));
    assert_eq!(world.record(0, "invoice/42").counter, token(&events), "the token is the store's counter");
    assert!(world.hosts[0].wire.is_empty());
}

#[test]
fn remaining_falls_with_the_clock_and_is_zero_without_a_lease() {
    let mut world = World::new(1);
    assert_eq!(world.remaining(0, 1), secs(0));
    world.acquire(0, 1, "r", options());
    assert_eq!(world.remaining(0, 1), secs(0), "not held yet");
    world.deliver(0);
    let before = world.remaining(0, 1);
    world.jump(ms(1));
    assert_eq!(world.remaining(0, 1), before - ms(1));
    world.jump(secs(60));
    assert_eq!(world.remaining(0, 1), secs(0));
}

#[test]
fn a_release_takes_one_request_and_keeps_the_counter() {
    let mut world = World::new(1);
    let token = world.hold(0, 1, "r", options());
    world.release(0, 1);
    assert_eq!(world.remaining(0, 1), secs(0), "dead at once here, before the store has answered");
    assert_eq!(world.state(0, 1), Some("Releasing"));
    assert_eq!(world.on_the_wire(0), ["release"]);
    world.deliver(0);
    assert_eq!(world.take_events(0), [Event::Released { lock: lock(1), confirmed: true }]);
    assert!(!world.is_held(0, "r"));
    assert_eq!(world.record(0, "r").counter, token);
    assert!(world.hosts[0].client.is_idle());
    assert_eq!(world.state(0, 1), None);
    assert_eq!(world.hosts[0].client.stats(), leasehold_core::Stats::default());
}

#[test]
fn the_next_holder_has_a_higher_token() {
    let mut world = World::new(2);
    let mut last = Token::ZERO;
    for turn in 0..20 {
        let host = turn % 2;
        let token = world.hold(host, 1, "r", options());
        assert!(token > last, "{token} after {last}");
        last = token;
        world.release(host, 1);
        world.deliver_all();
        world.take_events(host);
    }
}

#[test]
fn leases_of_a_client_belong_to_its_session() {
    let label = SessionLabel::new("worker-7").unwrap();
    let config = Config::new(vec![NodeConfig::default()]).unwrap().with_session(label.clone());
    let mut world = World::with_config(&config, 2);
    let bare = world.add_host(&Config::new(vec![NodeConfig::default()]).unwrap(), 0);
    for (host, id, name) in [(0, 1, "a"), (0, 2, "b"), (1, 1, "c"), (bare, 1, "d")] {
        world.hold(host, id, name, options());
    }
    let session = |name: &str| world.record(0, name).lease.as_ref().unwrap().session.clone();
    assert_eq!(session("a").unwrap().label, label);
    assert_eq!(session("a"), session("b"), "one session for each client");
    assert_eq!(session("c").unwrap().label, label);
    assert_ne!(session("a"), session("c"), "a label is no identity");
    assert_eq!(session("d"), None);
}

#[test]
fn contention_is_reported_once_with_the_holder() {
    let mut world = World::new(2);
    let held = world.hold(0, 1, "r", with(|o| o.owner("web-1:4711").data(b"job 7")));
    world.acquire(1, 9, "r", options());
    world.pass(secs(5));

    let events = world.take_events(1);
    let [Event::Contended { lock: told, holding }] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(*told, lock(9));
    assert_eq!(holding.owner.as_ref().unwrap().as_str(), "web-1:4711");
    assert_eq!(holding.data, Some(Payload::new(b"job 7").unwrap()));
    assert_eq!(holding.counter, Some(held));
    assert_eq!(holding.since_unix_ms, Some(EPOCH_UNIX_MS));
    assert_eq!(holding.record_ttl, Some(secs(30)));
    assert_eq!(world.hosts[1].client.holder(lock(9)).unwrap().owner, holding.owner);
    assert_eq!(world.hosts[0].client.holder(lock(1)), None, "nobody is in the way of a holder");
}

#[test]
fn lock_delay_extends_the_record_but_not_the_validity() {
    let mut world = World::new(1);
    world.acquire(0, 1, "r", with(|o| o.lock_delay(secs(12))));
    let transmit = world.deliver(0);
    assert!(matches!(&transmit.ops[0].op, Op::Acquire(op) if op.record_ttl == secs(42)));
    assert_eq!(world.remaining(0, 1), validity(secs(30)));
    world.pass_cut_off(secs(10));
    let transmit = world.take(0);
    assert!(matches!(&transmit.ops[0].op, Op::Renew(op) if op.record_ttl == secs(42)), "every renewal repeats it");
}

#[test]
fn many_locks_live_side_by_side() {
    let mut world = World::new(1);
    for id in 0..100 {
        world.acquire(0, id, &format!("r{id}"), with(|o| o.wait(Wait::Once)));
    }
    world.deliver_all();
    let events = world.take_events(0);
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Acquired { .. })).count(), 100);
    assert_eq!(world.hosts[0].client.stats().held, 100);
    world.release(0, 50);
    world.deliver_all();
    assert_eq!(world.hosts[0].client.stats().held, 99);
    assert!(!world.is_held(0, "r50") && world.is_held(0, "r51"));
}

#[test]
fn nonces_are_never_shown() {
    let mut world = World::new(2);
    world.acquire(0, 1, "r", options());
    let nonce = world.hosts[0].wire[0].ops[0].op.nonce().unwrap();
    world.deliver(0);
    world.acquire(1, 1, "r", once());
    world.deliver_all();
    let (events, client) = (world.take_events(1), &world.hosts[0].client);
    let shown = format!("{nonce:?} {client:?} {events:?} {:?}", world.record(0, "r"));
    let hex: String = nonce.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let list = format!("{:?}", nonce.as_bytes());
    assert!(!shown.contains(&hex) && !shown.contains(list.trim_matches(['[', ']'])), "{shown}");
}
