//! The golden vectors: the component does what `core/vectors` says, call by call and step by step.

mod read;
mod whole;
mod write;

use std::path::{Path, PathBuf};

use leasehold_wasmtime::client::{Input, Output, RejectedCommand};
use leasehold_wasmtime::types::Now;
use leasehold_wasmtime::{CallError, Client, Limits};
use serde_json::{Value, json};

use crate::component;
use read::Call;

/// How a host may drive a client; the same must come of both.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Calls,
    Steps,
}

#[test]
fn call_by_call() {
    play_all(Way::Calls);
}

#[test]
fn step_by_step() {
    play_all(Way::Steps);
}

fn play_all(way: Way) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core/vectors");
    let operations = files(&folder);
    let requests = files(&folder.join("wire"));
    let files = [&operations[..], &requests].concat();
    let mut steps = 0;
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a vector");
        let vector: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(vector["format"], 1, "{}", file.display());
        play(&vector, way).unwrap_or_else(|told| panic!("{}\n{}\n{told}", vector["name"], vector["why"]));
        steps += vector["steps"].as_array().expect("steps").len();
    }
    assert!(operations.len() > 20 && requests.len() > 10, "the vectors are there");
    let way = if way == Way::Calls { "call by call" } else { "step by step" };
    println!("{} golden vectors, {steps} steps, {way}: the component does what the core does", files.len());
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    files.sort();
    files
}

fn play(vector: &Value, way: Way) -> Result<(), String> {
    let start = &vector["start"];
    let mut now = Now { monotonic_ns: read::number(start, "monotonic_ns"), unix_ms: read::number(start, "unix_ms") };
    let (config, seed) = (read::config(&vector["config"]), read::bytes(&vector["seed"]));
    let limits = Limits::default();
    let made = match vector.get("stores").map(|stores| stores.as_array().expect("stores")) {
        None => Client::create(component(), limits, &config, &seed, now),
        Some(stores) => {
            let stores: Vec<_> = stores.iter().map(whole::store).collect();
            Client::create_wired(component(), limits, &config, &stores, &seed, now)
        }
    };
    let mut client = made.expect("a client");
    let mut steps = vector["steps"].as_array().expect("steps").iter().enumerate().peekable();
    while let Some((n, step)) = steps.next() {
        now.monotonic_ns = read::number(step, "at_ns");
        now.unix_ms = read::optional(step, "unix_ms").unwrap_or(now.unix_ms);
        let mut expected = outcome(&step["outputs"], &step["wake_at_ns"]);
        let mut fresh = entropy(step);
        let call = read::call(&step["do"]);
        let mut is_joined = false;
        if way == Way::Steps {
            // A step does what is due by itself, so it takes the next call with it where that is already due.
            let is_due = step["wake_at_ns"].as_u64().is_some_and(|wake| wake <= now.monotonic_ns);
            let next = steps
                .next_if(|(_, next)| is_due && next["at_ns"] == step["at_ns"] && next["do"].get("timeout").is_some());
            if let Some((_, next)) = next {
                fresh = entropy(next);
                let joined = [&step["outputs"], &next["outputs"]].map(|outputs| outputs.as_array().expect("a list"));
                expected = outcome(&Value::Array(joined.into_iter().flatten().cloned().collect()), &next["wake_at_ns"]);
                is_joined = true;
            } else if matches!(call, Call::Input(Input::Acquire(_))) {
                fresh[0] ^= 1;
            }
        }
        let (outputs, wake_at) = match way {
            Way::Calls => make(&mut client, call, &fresh, now),
            Way::Steps => {
                let inputs: Vec<Input> = call.input().into_iter().collect();
                let stepped = client.step(&fresh, now, &inputs).expect("enough bytes");
                (stepped.outputs, stepped.wake_at_ns)
            }
        };
        let outputs: Vec<Value> = outputs.iter().map(write::output).collect();
        let mut found = json!({ "outputs": outputs, "wake_at_ns": wake_at });
        write::round_up(&mut expected, "");
        whole::sort_headers(&mut expected);
        whole::sort_headers(&mut found);
        if is_joined {
            requests_last(&mut expected);
            requests_last(&mut found);
        }
        if expected != found {
            return Err(format!("step {n}, {}:\nexpected {expected:#}\nfound {found:#}", step["do"]));
        }
    }
    Ok(())
}

fn outcome(outputs: &Value, wake_at: &Value) -> Value {
    json!({ "outputs": outputs, "wake_at_ns": wake_at })
}

fn requests_last(outcome: &mut Value) {
    let outputs = outcome["outputs"].as_array_mut().expect("a list");
    outputs.sort_by_key(|output| output.get("transmit").is_some());
}

/// The fresh bytes of a step; zeros for a call that takes none.
fn entropy(step: &Value) -> Vec<u8> {
    step.get("entropy").map_or(vec![0; 16], read::bytes)
}

/// One method call, and everything that comes of it.
fn make(client: &mut Client, call: Call, fresh: &[u8], now: Now) -> (Vec<Output>, Option<u64>) {
    let mut outputs = Vec::new();
    let mut command = |lock, result: Result<(), CallError<_>>| match result {
        Ok(()) => {}
        Err(CallError::Refused(error)) => outputs.push(Output::Rejected(RejectedCommand { lock, error })),
        Err(CallError::Host(error)) => panic!("{error}"),
    };
    match call {
        Call::Timeout => client.handle_timeout(fresh, now).expect("enough bytes"),
        Call::Input(input) => match input {
            Input::Acquire(wish) => {
                command(wish.lock, client.acquire(wish.lock, &wish.resource, &wish.options, fresh, now));
            }
            Input::Release(lock) => command(lock.lock, client.release(lock.lock, now)),
            Input::Finish(it) => command(it.lock, client.finish(it.lock, it.run_result.as_ref(), now)),
            Input::DeclareLost(lock) => command(lock.lock, client.declare_lost(lock.lock, now)),
            Input::Response(reply) => client.handle_response(reply.id, &reply.response, now).expect("a call"),
            Input::Notified(hint) => client.notified(&hint.resource, now).expect("a call"),
            Input::Subscribed(hint) => client.subscribed(hint.node, &hint.resource, now).expect("a call"),
            Input::CredentialsRenewed(node) => client.credentials_renewed(node.node, now).expect("a call"),
            Input::SetCredentials(new) => {
                client.set_credentials(new.node, &new.credentials, now).expect("credentials of the right kind");
            }
            Input::NodeVotes(vote) => client.node_votes(vote.node, vote.loss.as_deref(), now).expect("a vote"),
            Input::Reseed(new) => client.reseed(&new.seed).expect("a seed"),
            Input::Close => client.close(now).expect("a call"),
        },
    }
    loop {
        match client.poll_output(now).expect("a call") {
            Output::WakeAt(wake) => return (outputs, wake.at_ns),
            output => outputs.push(output),
        }
    }
}
