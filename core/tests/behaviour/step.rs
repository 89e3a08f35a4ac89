//! `step` does the same as the calls one by one.

use crate::common::*;
use leasehold_core::config::RunOptions;
use leasehold_core::op::{Applied, Fault, FaultKind, Outcome, TransportFault};
use leasehold_core::{
    Client, Config, Error, Input, LockOptions, Monotonic, NodeConfig, NodeId, Now, Output, RequestId,
};

fn client() -> (Client, Now) {
    let now = Now { monotonic: Monotonic::from_ns(0).plus(EPOCH), unix_ms: EPOCH_UNIX_MS };
    let config = Config::new(vec![NodeConfig { watch: true, ..NodeConfig::default() }]).unwrap();
    (Client::new(config, [5; 32], now), now)
}

fn drain(client: &mut Client, now: Now) -> (Vec<Output>, Monotonic) {
    let mut outputs = Vec::new();
    loop {
        match client.poll_output(now) {
            Output::WakeAt(at) => return (outputs, at),
            output @ (Output::Transmit(_)
            | Output::Event(_)
            | Output::Subscribe { .. }
            | Output::Unsubscribe { .. }
            | Output::NeedCredentials { .. }
            | Output::Rejected { .. }) => outputs.push(output),
        }
    }
}

fn run() -> LockOptions {
    LockOptions::builder().run(RunOptions::default()).build().unwrap()
}

fn call(client: &mut Client, input: Input, fresh: &[u8; 16], now: Now) {
    match input {
        Input::Acquire { lock, resource, options } => client.acquire(lock, resource, options, fresh, now).unwrap(),
        Input::Release { lock } => client.release(lock, now).unwrap(),
        Input::Finish { lock, run_result } => client.finish(lock, run_result, now).unwrap(),
        Input::DeclareLost { lock } => client.declare_lost(lock, now).unwrap(),
        Input::Response { id, result } => client.handle_response(id, result, now),
        Input::Notified { resource } => client.notified(&resource, now),
        Input::Subscribed { node, resource } => client.subscribed(node, &resource, now),
        Input::CredentialsRenewed { node } => client.credentials_renewed(node, now),
        Input::NodeVotes { node, loss } => client.node_votes(node, loss, now),
        Input::Reseed { seed } => client.reseed(seed),
        Input::Close => client.close(now),
    }
    client.handle_timeout(fresh, now);
}

#[test]
fn step_and_the_methods_give_the_same_outputs() {
    let (mut stepped, mut now) = client();
    let mut called = stepped.clone();
    let node = NodeId::new(0);
    let acquire = |id, name| Input::Acquire { lock: lock(id), resource: resource(name), options: options() };
    let respond = |id, outcome| Input::Response { id: RequestId::new(id), result: Ok(vec![outcome]) };
    let busy = || conflict(Some(holding(other_nonce(), Some(1))));
    let inputs = [
        acquire(1, "a"),
        respond(0, acquired(7)),
        Input::Acquire { lock: lock(4), resource: resource("d"), options: run() },
        respond(1, acquired(8)),
        Input::Finish { lock: lock(4), run_result: None },
        respond(2, Outcome::Applied(Applied::Finished)),
        acquire(2, "b"),
        respond(3, busy()),
        Input::Notified { resource: resource("b") },
        respond(4, busy()),
        Input::Subscribed { node, resource: resource("b") },
        Input::Response { id: RequestId::new(5), result: Err(TransportFault::Unknown(Fault::of(FaultKind::Timeout))) },
        Input::CredentialsRenewed { node },
        Input::NodeVotes { node, loss: None },
        Input::Reseed { seed: [8; 32] },
        Input::DeclareLost { lock: lock(1) },
        Input::Release { lock: lock(2) },
        acquire(3, "c"),
        Input::Close,
        respond(99, acquired(1)),
    ];
    let (mut events, mut transmits) = (0, 0);
    for (n, input) in inputs.into_iter().enumerate() {
        now.monotonic = now.monotonic.plus(ms(40));
        // A step gives each of its inputs different bytes, so the calls get the same ones.
        let fresh = [9; 16];
        let mut own = fresh;
        own[0] ^= 1;
        let mut outputs = Vec::new();
        let wake_at = stepped.step(&fresh, now, std::slice::from_ref(&input), &mut outputs);
        match &input {
            Input::Acquire { .. } => call(&mut called, input, &own, now),
            Input::Release { .. }
            | Input::Finish { .. }
            | Input::DeclareLost { .. }
            | Input::Response { .. }
            | Input::Notified { .. }
            | Input::Subscribed { .. }
            | Input::CredentialsRenewed { .. }
            | Input::NodeVotes { .. }
            | Input::Reseed { .. }
            | Input::Close => call(&mut called, input, &fresh, now),
        }
        events += outputs.iter().filter(|output| matches!(output, Output::Event(_))).count();
        transmits += outputs.iter().filter(|output| matches!(output, Output::Transmit(_))).count();
        assert_eq!((outputs, wake_at), drain(&mut called, now), "after input {n}");
        assert_eq!(stepped, called, "after input {n}");
    }
    assert!(events >= 5 && transmits >= 5, "{events} events and {transmits} requests were compared");
}

#[test]
fn rejected_command_is_reported() {
    let (mut client, now) = client();
    let acquire = |id| Input::Acquire { lock: lock(id), resource: resource("r"), options: options() };
    let mut outputs = Vec::new();
    let inputs = [acquire(1), acquire(1), Input::Release { lock: lock(9) }, Input::DeclareLost { lock: lock(8) }];
    client.step(&[1; 16], now, &inputs, &mut outputs);
    let rejected: Vec<_> = outputs.iter().filter(|output| matches!(output, Output::Rejected { .. })).cloned().collect();
    assert_eq!(
        rejected,
        [
            Output::Rejected { lock: lock(1), error: Error::DuplicateLock },
            Output::Rejected { lock: lock(9), error: Error::UnknownLock },
            Output::Rejected { lock: lock(8), error: Error::UnknownLock },
        ]
    );
    assert!(outputs.iter().any(|output| matches!(output, Output::Transmit(_))), "the good one was carried out");
}

#[test]
fn an_empty_step_does_what_is_due() {
    let (mut client, now) = client();
    let mut outputs = Vec::new();
    assert_eq!(client.step(&[1; 16], now, &[], &mut outputs), Monotonic::FAR);
    assert_eq!(outputs, []);
    let acquire = Input::Acquire { lock: lock(1), resource: resource("r"), options: options() };
    let wake_at = client.step(&[1; 16], now, &[acquire], &mut outputs);
    assert_eq!(wake_at, now.monotonic.plus(ms(500)));
    let later = Now { monotonic: wake_at, ..now };
    outputs.clear();
    client.step(&[2; 16], later, &[], &mut outputs);
    assert!(matches!(outputs[..], [Output::Transmit(_)]), "sent again: {outputs:?}");
}

#[test]
fn outputs_are_appended() {
    let (mut client, now) = client();
    let mut outputs = vec![Output::WakeAt(Monotonic::FAR)];
    let acquire = Input::Acquire { lock: lock(1), resource: resource("r"), options: options() };
    client.step(&[1; 16], now, &[acquire], &mut outputs);
    assert_eq!(outputs.len(), 2);
    assert_eq!(outputs[0], Output::WakeAt(Monotonic::FAR));
}
