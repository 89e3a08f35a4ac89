//! Plays a vector against the core, and reports the first difference.

use std::panic::{AssertUnwindSafe, catch_unwind};

use leasehold_core::{Client, Entropy, Input, Monotonic, Now, Output};
use serde_json::Value;

use super::rows::{Counted, Rows, untaken};
use crate::format::{Call, Step, Vector, difference};

/// A way to drive a client. Both must have the same result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One method call for each step, then `poll_output` until it is drained.
    Calls,
    /// One call of `Client::step` for each step.
    Steps,
}

/// Plays all steps, and answers which rows of the lease machine's table they took.
///
/// # Errors
/// The first difference, with the step that it is in.
pub fn play(vector: &Vector, way: Way) -> Result<Rows, String> {
    let mut counted = Counted::new();
    let mut now = vector.start.now();
    let mut client = Client::new(vector.config.clone(), vector.seed, now);
    let mut steps = vector.steps.iter().enumerate().peekable();
    while let Some((n, step)) = steps.next() {
        now = step.now(now);
        let place = format!("step {n} ({} at {} ns)", step.input.name(), step.at_ns);
        let Call(input) = step.input.clone();
        let entropy = step.entropy();
        let mut expected = Expected::of(step);
        let mut fresh = entropy;
        if way == Way::Steps {
            // A step does what is due by itself, so it takes the next call with it where that is already due.
            let is_due = step.wake_at_ns <= now.monotonic;
            let due = steps.next_if(|(_, next)| is_due && next.at_ns == step.at_ns && next.input == Call(None));
            if let Some((_, due)) = due {
                fresh = due.entropy();
                expected.join(due);
            } else if matches!(input, Some(Input::Acquire { .. })) {
                fresh = unmixed(entropy);
            }
        }
        let run = || match way {
            Way::Calls => call(&mut client, input, &fresh, now),
            Way::Steps => {
                let (inputs, mut outputs) = (Vec::from_iter(input), Vec::new());
                let wake_at = client.step(&fresh, now, &inputs, &mut outputs);
                (outputs, wake_at)
            }
        };
        // A panic of the core should not hide where it happened; nothing looks at the client afterwards.
        let found = catch_unwind(AssertUnwindSafe(run)).map_err(|_| format!("{place}: the core panicked"))?;
        if let Some(difference) = expected.differs_from(&found.0, found.1) {
            return Err(format!("{place}: {difference}"));
        }
    }
    let mut rows = untaken();
    for row in counted.take() {
        *rows.entry(row).or_default() += 1;
    }
    Ok(rows)
}

/// A step gives its first command other bytes than its timers: those that differ in the first byte.
fn unmixed(mut entropy: Entropy) -> Entropy {
    entropy[0] ^= 1;
    entropy
}

/// One method call, and everything that comes of it.
pub(super) fn call(client: &mut Client, input: Option<Input>, entropy: &Entropy, now: Now) -> (Vec<Output>, Monotonic) {
    let mut outputs = Vec::new();
    let mut command = |lock, result: Result<(), leasehold_core::Error>| {
        outputs.extend(result.err().map(|error| Output::Rejected { lock, error }));
    };
    match input {
        None => client.handle_timeout(entropy, now),
        Some(Input::Acquire { lock, resource, options }) => {
            command(lock, client.acquire(lock, resource, options, entropy, now));
        }
        Some(Input::Release { lock }) => command(lock, client.release(lock, now)),
        Some(Input::Finish { lock, run_result }) => command(lock, client.finish(lock, run_result, now)),
        Some(Input::DeclareLost { lock }) => command(lock, client.declare_lost(lock, now)),
        Some(Input::Response { id, result }) => client.handle_response(id, result, now),
        Some(Input::Notified { resource }) => client.notified(&resource, now),
        Some(Input::Subscribed { node, resource }) => client.subscribed(node, &resource, now),
        Some(Input::CredentialsRenewed { node }) => client.credentials_renewed(node, now),
        Some(Input::NodeVotes { node, loss }) => client.node_votes(node, loss, now),
        Some(Input::Reseed { seed }) => client.reseed(seed),
        Some(Input::Close) => client.close(now),
    }
    loop {
        let output = client.poll_output(now);
        if let Output::WakeAt(at) = output {
            return (outputs, at);
        }
        outputs.push(output);
    }
}

/// The expected result of one call, or of two calls that are one step.
struct Expected {
    outputs: Vec<Output>,
    wake_at_ns: Monotonic,
    /// True for two calls: requests leave after the events of both.
    in_two: bool,
}

impl Expected {
    fn of(step: &Step) -> Self {
        Self { outputs: step.outputs.clone(), wake_at_ns: step.wake_at_ns, in_two: false }
    }

    /// The next call is part of the same step.
    fn join(&mut self, next: &Step) {
        self.outputs.extend(next.outputs.iter().cloned());
        self.wake_at_ns = next.wake_at_ns;
        self.in_two = true;
    }

    fn differs_from(&self, outputs: &[Output], wake_at: Monotonic) -> Option<String> {
        let mut found = outputs.to_vec();
        let mut expected = self.outputs.clone();
        if self.in_two {
            let leaves = |output: &Output| matches!(output, Output::Transmit(_));
            expected.sort_by_key(leaves);
            found.sort_by_key(leaves);
        }
        if expected == found && self.wake_at_ns == wake_at {
            return None;
        }
        let json = |outputs: &[Output], wake_at: Monotonic| {
            let outputs = serde_json::to_value(outputs).unwrap_or(Value::Null);
            serde_json::json!({ "outputs": outputs, "wake_at_ns": wake_at })
        };
        let difference = difference(&json(&expected, self.wake_at_ns), &json(&found, wake_at));
        Some(difference.unwrap_or_else(|| "the outputs differ in a part that files do not have".to_owned()))
    }
}
