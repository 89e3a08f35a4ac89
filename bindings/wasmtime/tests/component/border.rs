//! Nothing that a host can pass makes the component trap.

use leasehold_wasmtime::client::{Event, Input, Output};
use leasehold_wasmtime::stores::Store;
use leasehold_wasmtime::{CallError, Client, Guard, HostError, Limits};

use crate::component;
use crate::dice::Dice;

/// Sequences of calls; each takes about a millisecond.
const SEQUENCES: u64 = 300;
const MANY_SEQUENCES: u64 = 3_000;
const CALLS: u64 = 60;

/// Counts of the results of the calls, so that it shows when all of them are refused.
#[derive(Debug, Default)]
struct Met {
    clients: u64,
    refused: u64,
    accepted: u64,
    requests: u64,
    http_requests: u64,
    redis_requests: u64,
    statements: u64,
    grants: u64,
}

#[test]
fn random_calls_never_trap() {
    let mut met = Met::default();
    let sequences = if leasehold_servers::is_long() { MANY_SEQUENCES } else { SEQUENCES };
    for seed in 0..sequences {
        if let Err(error) = sequence(&mut Dice::new(seed), &mut met) {
            panic!("sequence {seed}: {error}");
        }
    }
    println!("{sequences} sequences of random calls, none of which trapped: {met:?}");
    assert!(met.clients > sequences / 4 && met.refused > sequences / 3, "{met:?}");
    assert!(met.accepted > sequences / 3 && met.requests > sequences / 3 && met.grants > sequences / 15, "{met:?}");
    assert!(met.http_requests > sequences / 30 && met.redis_requests > sequences / 30, "{met:?}");
    assert!(met.statements > sequences / 30, "{met:?}");
}

/// A refusal is an answer like any other; what must not happen is that there is none.
fn answered<T, E>(result: Result<T, CallError<E>>, met: &mut Met) -> Result<Option<T>, HostError> {
    match result {
        Ok(value) => {
            met.accepted += 1;
            Ok(Some(value))
        }
        Err(CallError::Refused(_)) => {
            met.refused += 1;
            Ok(None)
        }
        Err(CallError::Host(error)) => Err(error),
    }
}

fn sequence(dice: &mut Dice, met: &mut Met) -> Result<(), HostError> {
    let (config, seed, now) = (dice.config(), dice.bytes(32), dice.now());
    let made = if dice.is_one_in(2) {
        Client::create(component(), Limits::default(), &config, &seed, now)
    } else {
        let stores = (0..config.nodes.len() + usize::from(dice.is_one_in(20))).map(|_| dice.store());
        let stores: Vec<Store> = stores.collect();
        Client::create_wired(component(), Limits::default(), &config, &stores, &seed, now)
    };
    let Some(mut client) = answered(made, met)? else { return Ok(()) };
    met.clients += 1;
    // Requests that were asked for and not answered.
    let mut open = Vec::new();
    for _ in 0..CALLS {
        let outputs = call(&mut client, dice, &mut open, met)?;
        for output in outputs {
            match output {
                Output::Transmit(transmit) => {
                    met.requests += 1;
                    open.push(transmit.id);
                }
                Output::HttpRequest(request) => {
                    met.http_requests += 1;
                    open.push(request.id);
                }
                Output::RedisCommands(request) => {
                    met.redis_requests += 1;
                    open.push(request.id);
                }
                Output::Statement(request) => {
                    met.statements += 1;
                    open.push(request.id);
                }
                Output::Event(told) => met.grants += u64::from(matches!(told.event, Event::Acquired(_))),
                Output::Subscribe(_)
                | Output::Unsubscribe(_)
                | Output::NeedCredentials(_)
                | Output::Rejected(_)
                | Output::WakeAt(_) => {}
            }
        }
    }
    client.stats().map(|_| ())
}

fn call(client: &mut Client, dice: &mut Dice, open: &mut Vec<u64>, met: &mut Met) -> Result<Vec<Output>, HostError> {
    let now = dice.now();
    match dice.below(8) {
        0 => drop(answered(client.handle_timeout(&dice.bytes(16), now), met)?),
        1 => {
            let inputs: Vec<Input> = (0..dice.below(4)).map(|_| input(dice, open)).collect();
            let stepped = answered(client.step(&dice.bytes(16), now, &inputs), met)?;
            return Ok(stepped.map_or(Vec::new(), |stepped| stepped.outputs));
        }
        2 => {
            let lock = dice.id();
            client.remaining_ns(lock, now)?;
            client.holder(lock)?;
            client.state(lock)?;
            client.is_idle()?;
        }
        _ => match input(dice, open) {
            Input::Acquire(wish) => {
                let fresh = dice.bytes(16);
                answered(client.acquire(wish.lock, &wish.resource, &wish.options, &fresh, now), met)?;
            }
            Input::Release(lock) => drop(answered(client.release(lock.lock, now), met)?),
            Input::Finish(it) => drop(answered(client.finish(it.lock, it.run_result.as_ref(), now), met)?),
            Input::DeclareLost(lock) => drop(answered(client.declare_lost(lock.lock, now), met)?),
            Input::Response(reply) => client.handle_response(reply.id, &reply.response, now)?,
            Input::Notified(hint) => client.notified(&hint.resource, now)?,
            Input::Subscribed(hint) => client.subscribed(hint.node, &hint.resource, now)?,
            Input::CredentialsRenewed(node) => client.credentials_renewed(node.node, now)?,
            Input::SetCredentials(new) => {
                answered(client.set_credentials(new.node, &new.credentials, now), met)?;
            }
            Input::NodeVotes(vote) => drop(answered(client.node_votes(vote.node, vote.loss.as_deref(), now), met)?),
            Input::Reseed(new) => drop(answered(client.reseed(&new.seed), met)?),
            Input::Close => client.close(now)?,
        },
    }
    let mut outputs = Vec::new();
    // Some hosts drain later.
    while !dice.is_one_in(6) {
        match client.poll_output(now)? {
            Output::WakeAt(_) => break,
            output => outputs.push(output),
        }
    }
    Ok(outputs)
}

/// Half of the responses are to requests that are open.
fn input(dice: &mut Dice, open: &mut Vec<u64>) -> Input {
    let mut input = dice.input();
    if let Input::Response(reply) = &mut input
        && let Some(id) = open.pop().filter(|_| !dice.is_one_in(4))
    {
        reply.id = id;
        if dice.is_one_in(3) {
            reply.response = Dice::grant();
        }
    }
    input
}

#[test]
fn random_numbers_never_trap_a_guard() {
    let mut met = Met::default();
    for seed in 0..100 {
        let mut dice = Dice::new(seed);
        let high_water = dice.maybe(Dice::number);
        let made = Guard::create(component(), Limits::default(), high_water);
        let Some(mut guard) = answered(made, &mut met).expect("an answer") else { continue };
        for _ in 0..20 {
            let (token, write) = (dice.number(), dice.number());
            answered(guard.claim(token), &mut met).expect("an answer");
            answered(guard.check(dice.number()), &mut met).expect("an answer");
            answered(guard.check_in_order(token, write), &mut met).expect("an answer");
            guard.high_water().expect("an answer");
        }
    }
    assert!(met.refused > 100 && met.accepted > 100, "{met:?}");
}
