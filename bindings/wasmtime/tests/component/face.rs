//! Refusals come back as values that say what is wrong.

use leasehold_wasmtime::client::{
    AcquireCommand, Error, Event, Input, InvalidArgument, LockRef, NewSeed, Outcomes, Output, Response,
};
use leasehold_wasmtime::fence::{InvalidToken, Rejected, Stale};
use leasehold_wasmtime::ops::{
    Applied, AppliedOutcome, Denial, DenialKind, Holding, NodeCounter, NotAppliedOutcome, Outcome, Refusal, Seen,
};
use leasehold_wasmtime::types::{ConfigError, TooFewBytes, TooShort};
use leasehold_wasmtime::{CallError, Client, Component, Guard, Limits};

use crate::{FRESH, SEED, at, component, config, options};

fn client() -> Client {
    Client::create(component(), Limits::default(), &config(), &SEED, at(0)).expect("a client")
}

/// Asks for lock 1, and answers the request.
fn answer(client: &mut Client, outcome: Outcome) -> Output {
    client.acquire(1, "invoice/42", &options(), &FRESH, at(0)).expect("a lock");
    let Output::Transmit(transmit) = client.poll_output(at(0)).expect("a call") else { panic!("a request") };
    client.handle_response(transmit.id, &Response::Outcomes(Outcomes { outcomes: vec![outcome] }), at(1)).expect("ok");
    client.poll_output(at(1)).expect("a call")
}

fn granted(counter: u64) -> Outcome {
    Outcome::Applied(AppliedOutcome { applied: Applied::Acquired(NodeCounter { counter }) })
}

#[test]
fn a_lock_is_granted_and_given_back() {
    let mut client = client();
    let Output::Event(told) = answer(&mut client, granted(1_700_000_000_000)) else { panic!("an event") };
    let Event::Acquired(acquired) = told.event else { panic!("{told:?}") };
    assert_eq!((told.lock, acquired.token), (1, 1_700_000_000_000));
    assert_eq!(client.remaining_ns(1, at(1)), Ok(acquired.deadline_ns - 1));
    assert_eq!(client.state(1).expect("a call").as_deref(), Some("Held"));
    client.release(1, at(2)).expect("a lock that is held");
    assert_eq!(client.release(9, at(2)), Err(CallError::Refused(Error::UnknownLock)));
    client.close(at(3)).expect("a call");
    assert_eq!(
        client.acquire(2, "x", &options(), &FRESH, at(4)),
        Err(CallError::Refused(Error::Closed)),
        "a closed client takes nothing new"
    );
}

#[test]
fn settings_and_arguments_that_make_no_sense_are_named() {
    let too_few =
        |what: &str, bytes, min_bytes| ConfigError::TooFewBytes(TooFewBytes { what: what.into(), bytes, min_bytes });
    let made = Client::create(component(), Limits::default(), &config(), &SEED[..31], at(0)).err();
    assert_eq!(made, Some(CallError::Refused(too_few("seed", 31, 32))));
    let mut client = client();
    assert_eq!(client.handle_timeout(&FRESH[..15], at(0)), Err(CallError::Refused(too_few("fresh", 15, 16))));
    assert_eq!(client.node_votes(0, Some(&[0; 3]), at(0)), Err(CallError::Refused(too_few("loss", 3, 16))));
    let mut short = options();
    short.ttl_ms = Some(99);
    let bound = ConfigError::TooShort(TooShort { what: "ttl".into(), value_ms: 99, min_ms: 100 });
    let refused = client.acquire(1, "x", &short, &FRESH, at(0));
    assert_eq!(refused, Err(CallError::Refused(Error::Invalid(InvalidArgument { error: bound }))));
}

#[test]
fn a_step_refuses_single_commands_and_takes_the_others() {
    let mut client = client();
    let wish = |lock, name: &str| Input::Acquire(AcquireCommand { lock, resource: name.into(), options: options() });
    let inputs = [wish(1, ""), wish(2, "x"), Input::Release(LockRef { lock: 3 })];
    let stepped = client.step(&FRESH, at(0), &inputs).expect("enough bytes");
    let rejected = stepped.outputs.iter().filter_map(|output| match output {
        Output::Rejected(rejected) => Some((rejected.lock, &rejected.error)),
        _ => None,
    });
    let empty = Error::Invalid(InvalidArgument { error: ConfigError::EmptyResource });
    assert_eq!(rejected.collect::<Vec<_>>(), [(1, &empty), (3, &Error::UnknownLock)]);
    assert!(matches!(stepped.outputs.last(), Some(Output::Transmit(_))));
}

#[test]
fn a_step_with_a_seed_that_is_too_short_does_nothing() {
    let mut client = client();
    let wish = Input::Acquire(AcquireCommand { lock: 1, resource: "x".into(), options: options() });
    let inputs = [wish, Input::Reseed(NewSeed { seed: vec![1; 31] })];
    assert!(matches!(client.step(&FRESH, at(0), &inputs), Err(CallError::Refused(ConfigError::TooFewBytes(_)))));
    assert_eq!(client.stats().expect("a call").locks, 0);
}

#[test]
fn an_answer_that_cannot_be_read_counts_as_unknown() {
    let mut client = client();
    let told = answer(&mut client, granted(1 << 53));
    assert!(!matches!(told, Output::Event(_)), "{told:?}");
    assert_eq!(client.remaining_ns(1, at(1)), Ok(0));
}

#[test]
fn a_record_that_lasts_for_years_is_denied() {
    let holding = Holding {
        holder: None,
        version: vec![1],
        released: false,
        counter: None,
        owner: None,
        record_ttl_ms: Some(u64::MAX),
        left_ms: None,
        since_unix_ms: None,
        data: None,
    };
    let conflict = Refusal::Conflict(Seen { holding: Some(holding), done: None });
    let told = answer(&mut client(), Outcome::NotApplied(NotAppliedOutcome { refusal: conflict }));
    let Output::Event(told) = told else { panic!("{told:?}") };
    let Event::Failed(failed) = told.event else { panic!("{told:?}") };
    let leasehold_wasmtime::client::Failure::Refused(Denial { kind, detail }) = failed.failure else {
        panic!("{failed:?}")
    };
    assert_eq!(kind, DenialKind::CorruptRecord, "{detail}");
}

#[test]
fn a_stale_holder_is_refused() {
    let guard = |high_water| Guard::create(component(), Limits::default(), high_water);
    let mut mark = guard(None).expect("a guard");
    assert_eq!(mark.check(33), Err(CallError::Refused(Rejected::Unclaimed)));
    mark.claim(34).expect("the first");
    assert_eq!(mark.check(33), Err(CallError::Refused(Rejected::Stale(Stale { token: 33, high_water: 34 }))));
    mark.check_in_order(34, 2).expect("a write");
    assert!(matches!(mark.check_in_order(34, 2), Err(CallError::Refused(Rejected::OutOfOrder(_)))));
    assert_eq!(mark.high_water(), Ok(Some(34)));
    let none = InvalidToken { token: 1 << 53, max: (1 << 53) - 1 };
    assert_eq!(guard(Some(1 << 53)).err(), Some(CallError::Refused(Rejected::InvalidToken(none))));
}

#[test]
fn what_is_no_component_is_not_loaded() {
    // SAFETY: these are no instructions at all.
    let loaded = unsafe { Component::deserialize(b"\x7fELF and so on") };
    let told = loaded.expect_err("no component").to_string();
    assert!(told.starts_with("this is no leasehold component that can run here"), "{told}");
}
