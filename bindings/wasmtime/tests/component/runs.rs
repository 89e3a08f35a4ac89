//! Work that is done once.

use leasehold_wasmtime::client::{Error, Event, Failure, Outcomes, Output, Response};
use leasehold_wasmtime::ops::{
    Applied, AppliedOutcome, Completion, NodeCounter, NotAppliedOutcome, Op, Outcome, Refusal,
};
use leasehold_wasmtime::types::{ConfigError, LockOptions, RunOptions};
use leasehold_wasmtime::{CallError, Client, Limits, Occurrence, Runs, ZoneOffset};
use serde_json::Value;

use crate::{FRESH, SEED, at, component, config, options};

const DAY_MS: u64 = 86_400_000;

fn client() -> Client {
    Client::create(component(), Limits::default(), &config(), &SEED, at(0)).expect("a client")
}

fn run(keep_ms: Option<u64>) -> LockOptions {
    LockOptions {
        owner: "worker".into(),
        run: Some(RunOptions { keep_ms, trust_quorum: false, even_if_done: false }),
        ..options()
    }
}

/// The operation that is asked for, which is answered.
fn asked(client: &mut Client, outcome: Outcome) -> Op {
    let Output::Transmit(transmit) = client.poll_output(at(0)).expect("a call") else { panic!("a request") };
    let response = Response::Outcomes(Outcomes { outcomes: vec![outcome] });
    client.handle_response(transmit.id, &response, at(0)).expect("a call");
    transmit.ops.into_iter().next().expect("an operation").op
}

fn applied(applied: Applied) -> Outcome {
    Outcome::Applied(AppliedOutcome { applied })
}

fn told(client: &mut Client) -> Event {
    let Output::Event(told) = client.poll_output(at(0)).expect("a call") else { panic!("an event") };
    told.event
}

#[test]
fn a_run_is_finished() {
    let mut client = client();
    client.acquire(1, "nightly@2026-11-24", &run(Some(DAY_MS)), &FRESH, at(0)).expect("a run");
    assert_eq!(client.finish(1, None, at(0)), Err(CallError::Refused(Error::UnknownLock)), "it is not held yet");
    let Op::Acquire(acquire) = asked(&mut client, applied(Applied::Acquired(NodeCounter { counter: 7 }))) else {
        panic!("an acquire")
    };
    assert!(acquire.unless_done);
    assert!(matches!(told(&mut client), Event::Acquired(_)));
    client.finish(1, None, at(0)).expect("a run that is held");
    let Op::Finish(finish) = asked(&mut client, applied(Applied::Finished)) else { panic!("a finish") };
    assert_eq!((finish.nonce, finish.token), (acquire.nonce, 7));
    assert_eq!((finish.keep_ms, finish.owner.as_str()), (DAY_MS, "worker"));
    let Event::Finished(finished) = told(&mut client) else { panic!("an end") };
    assert!(finished.confirmed);
}

#[test]
fn a_run_that_is_done_is_not_granted() {
    let mut client = client();
    client.acquire(1, "nightly@2026-11-24", &run(None), &FRESH, at(0)).expect("a run");
    let completion = Completion {
        token: 7,
        owner: "other".into(),
        at_unix_ms: 1_699_999_999_000,
        left_ms: DAY_MS,
        about: None,
        unsettled: false,
    };
    let done = NotAppliedOutcome { refusal: Refusal::Done(completion.clone()) };
    asked(&mut client, Outcome::NotApplied(done));
    let Event::Failed(failed) = told(&mut client) else { panic!("a refusal") };
    assert_eq!(failed.failure, Failure::Done(completion));
}

#[test]
fn a_plain_lock_is_not_finished() {
    let mut client = client();
    client.acquire(1, "invoice/42", &options(), &FRESH, at(0)).expect("a lock");
    let acquire = asked(&mut client, applied(Applied::Acquired(NodeCounter { counter: 7 })));
    assert!(matches!(acquire, Op::Acquire(acquire) if !acquire.unless_done));
    assert_eq!(client.finish(1, None, at(0)), Err(CallError::Refused(Error::NotARun)));
}

#[test]
fn runs_have_names() {
    let mut runs = Runs::new(component(), Limits::default()).expect("an instance");
    assert_eq!(runs.run_resource("a@b", Some("c")).as_deref(), Ok("a%40b@c"));
    assert_eq!(runs.run_resource("nightly", None).as_deref(), Ok("nightly@"));
    assert_eq!(runs.run_resource("nightly", Some("")), Err(CallError::Refused(ConfigError::EmptyKey)));
    assert_eq!(runs.period_key(1_795_608_000_000, DAY_MS, 0).as_deref(), Ok("2026-11-25T00:00:00Z"));
    let refused = runs.period_key(0, DAY_MS, DAY_MS);
    assert!(matches!(refused, Err(CallError::Refused(ConfigError::TooFar(_)))), "{refused:?}");
}

/// The offsets of a zone, which a host has to know.
fn offsets(of: &Value) -> Vec<ZoneOffset> {
    let one = |offset: &Value| {
        let (since_unix_ms, ahead) = (offset[0].as_u64().expect("ms"), offset[1].as_i64().expect("ms"));
        ZoneOffset { since_unix_ms, shown_ms: since_unix_ms.saturating_add_signed(ahead) }
    };
    of.as_array().expect("a list").iter().map(one).collect()
}

#[test]
fn settings_mean_what_they_mean_in_all_hosts() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../occurrences.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("the file")).expect("JSON");
    let list = |name: &str| file[name].as_array().expect("a list");
    let mut runs = Runs::new(component(), Limits::default()).expect("an instance");
    // What a host says by itself is none of the component's.
    let is_of_host = |case: &&Value| case["refused"].as_str().is_some_and(|words| words.contains("is no zone"));
    for case in list("plans").iter().filter(|case| !is_of_host(case)) {
        let (of, is) = (&case["occurrence"], |name: &str| case[name] == true);
        let text = |name: &str| of[name].as_str().map(str::to_owned);
        let occurrence = Occurrence {
            key: text("key"),
            every_ms: of["every"].as_u64(),
            offset_ms: of["offset"].as_u64(),
            at: text("at"),
            tz: text("tz"),
            cron: text("cron"),
            cooldown_ms: of["cooldown"].as_u64(),
            keep_ms: of["keep"].as_u64(),
        };
        let is_then = |zone: &&Value| zone["zone"] == of["tz"] && zone["unix_ms"] == case["unix_ms"];
        let offsets = list("zones").iter().find(is_then).map(|zone| offsets(&zone["offsets"])).unwrap_or_default();
        let unix_ms = case["unix_ms"].as_u64().expect("ms");
        match runs.plan_run("job", &occurrence, unix_ms, &offsets, is("quorum"), is("even_if_done")) {
            Ok(plan) => {
                assert_eq!((&case["resource"], &case["keep"]), (&plan.resource.into(), &plan.keep_ms.into()), "{case}");
            }
            Err(CallError::Refused(ConfigError::Other(other))) => {
                let words = case["refused"].as_str().expect("it is refused");
                assert!(other.message.contains(words), "{case}: {}", other.message);
            }
            // These have cases of their own.
            Err(CallError::Refused(ConfigError::EmptyKey | ConfigError::TooShort(_) | ConfigError::TooFar(_))) => {
                assert!(case["refused"].is_string(), "{case}");
            }
            Err(error) => panic!("{case}: {error}"),
        }
    }
}
