//! Golden vectors with whole requests and responses: the exact bytes for every store, in `core/vectors/wire/`.

mod dynamodb;
mod etcd;
mod objects;
mod postgres;
mod redis;
mod scenario;

use std::path::PathBuf;

use leasehold_core::{Entropy, Monotonic, Now, Output as CoreOutput};
use leasehold_wire::client::{Input, Output, WireClient};

use super::{Files, Way};
use crate::format::{WireOutput, WireVector, difference};

/// The folder in this repository.
pub fn folder() -> PathBuf {
    super::folder().join("wire")
}

/// The vectors of all scenarios with the present core.
///
/// # Panics
/// If a scenario is wrong.
pub fn recorded() -> Files {
    let mut files = Files::new();
    for scenario in redis::ALL.iter().chain(dynamodb::ALL).chain(etcd::ALL).chain(objects::ALL).chain(postgres::ALL) {
        let vector = scenario();
        let text = vector.to_text().unwrap_or_else(|error| panic!("{}: {error}", vector.name));
        let before = files.insert(format!("{}.json", vector.name), text);
        assert!(before.is_none(), "two scenarios are called {:?}", vector.name);
    }
    files
}

/// Checks that a text is a vector of this kind.
///
/// # Errors
/// The reason why it is not.
pub fn check(text: &str) -> Result<(), String> {
    WireVector::parse(text).map(|_| ())
}

/// Plays all steps.
///
/// # Errors
/// The first difference, with the step that it is in.
pub fn play(vector: &WireVector, way: Way) -> Result<(), String> {
    let mut now = vector.start.now();
    let stores = vector.stores.iter().map(Into::into).collect();
    let client = WireClient::new(vector.config.clone(), stores, vector.seed, now);
    let mut client = client.map_err(|error| error.to_string())?;
    for (n, step) in vector.steps.iter().enumerate() {
        now = step.now(now);
        let place = format!("step {n} at {} ns", step.at_ns);
        let (input, fresh) = (step.input.to_core(), step.entropy());
        let (outputs, wake_at) = match way {
            Way::Calls => call(&mut client, input, &fresh, now),
            Way::Steps => stepped(&mut client, input, fresh, now),
        };
        let found: Vec<WireOutput> = outputs.iter().map(Into::into).collect();
        if found != step.outputs || wake_at != step.wake_at_ns {
            let json =
                |outputs: &[WireOutput], at: Monotonic| serde_json::json!({ "outputs": outputs, "wake_at_ns": at });
            let difference = difference(&json(&step.outputs, step.wake_at_ns), &json(&found, wake_at));
            return Err(format!("{place}: {}", difference.unwrap_or_default()));
        }
    }
    Ok(())
}

/// A step gives its first command other bytes than its timers.
fn stepped(client: &mut WireClient, input: Option<Input>, mut fresh: Entropy, now: Now) -> (Vec<Output>, Monotonic) {
    if input.is_some() {
        fresh[0] ^= 1;
    }
    let mut outputs = Vec::new();
    let wake_at = client.step(&fresh, now, Vec::from_iter(input), &mut outputs);
    (outputs, wake_at.expect("the scenarios give what fits"))
}

/// One method call, and everything that comes of it.
fn call(client: &mut WireClient, input: Option<Input>, fresh: &Entropy, now: Now) -> (Vec<Output>, Monotonic) {
    use leasehold_core::Input as Core;
    match input {
        None => client.handle_timeout(fresh, now),
        Some(Input::Response { id, response }) => client.handle_response(id, response, now),
        Some(Input::SetCredentials { node, credentials }) => {
            client.set_credentials(node, credentials, now).expect("the scenarios give what fits");
        }
        Some(Input::Core(Core::Acquire { lock, resource, options })) => {
            client.acquire(lock, resource, options, fresh, now).expect("the scenarios ask for what can be");
        }
        Some(Input::Core(Core::Release { lock })) => client.release(lock, now).expect("the lock is alive"),
        Some(Input::Core(Core::Response { id, result })) => {
            let response =
                result.map_or_else(leasehold_wire::client::Response::Fault, leasehold_wire::client::Response::Outcomes);
            client.handle_response(id, response, now);
        }
        Some(Input::Core(Core::Close)) => client.close(now),
        Some(Input::Core(
            Core::Finish { .. }
            | Core::DeclareLost { .. }
            | Core::Notified { .. }
            | Core::Subscribed { .. }
            | Core::CredentialsRenewed { .. }
            | Core::NodeVotes { .. }
            | Core::Reseed { .. },
        )) => unreachable!("told in the other vectors"),
    }
    let mut outputs = Vec::new();
    loop {
        let output = client.poll_output(now);
        if let Output::Core(CoreOutput::WakeAt(at)) = output {
            return (outputs, at);
        }
        outputs.push(output);
    }
}
