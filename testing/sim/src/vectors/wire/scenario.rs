//! The vocabulary of these scenarios: a host's calls and the servers' answers.

use std::time::Duration;

use leasehold_core::config::Wait;
use leasehold_core::op::{Fault, FaultKind, TransportFault};
use leasehold_core::{
    Config, Input, LockId, LockOptions, Monotonic, NodeConfig, NodeId, Now, Output as CoreOutput, RequestId, Resource,
    Seed,
};
use leasehold_wire::client::{HttpRequest, Output, RedisCommands, Statement, Store, WireClient};
use leasehold_wire::postgres::Param;
use serde_json::{Value as Json, json};

use super::call;
use crate::format::{
    Call, Credentials, FORMAT, Fresh, RefusalTime, Row, Start, Step, TakesEntropy as _, WireInput, WireVector, Wired,
};

const START: Start = Start { monotonic_ns: 100_000_000_000, unix_ms: 1_700_000_000_000 };

/// A request that waits for its answer.
#[derive(Clone)]
enum Open {
    Http(HttpRequest),
    Redis(RedisCommands),
    Postgres(Statement),
}

/// A scenario under way.
pub(super) struct Scenario {
    vector: WireVector,
    client: WireClient,
    now: Now,
    wake_at: Monotonic,
    drawn: u128,
    open: Vec<Open>,
}

impl Scenario {
    pub(super) fn new(name: &str, why: &str, stores: &[Store]) -> Self {
        let config = Config::new(vec![NodeConfig::default(); stores.len()]).expect("a scenario's nodes");
        let seed: Seed = std::array::from_fn(|n| n as u8);
        let vector = WireVector {
            format: FORMAT,
            name: name.to_owned(),
            why: why.to_owned(),
            config: config.clone(),
            stores: stores.iter().map(Into::into).collect(),
            seed,
            start: START,
            steps: Vec::new(),
        };
        let client = WireClient::new(config, stores.to_vec(), seed, START.now()).expect("a scenario's stores");
        Self { vector, client, now: START.now(), wake_at: Monotonic::FAR, drawn: 0, open: Vec::new() }
    }

    pub(super) fn told(self) -> WireVector {
        self.vector
    }

    /// Time passes, without a call.
    pub(super) fn pass(&mut self, ms: u64) -> &mut Self {
        self.set(self.now.monotonic.plus(Duration::from_millis(ms)))
    }

    fn set(&mut self, monotonic: Monotonic) -> &mut Self {
        let passed = monotonic.since(START.now().monotonic).as_millis() as u64;
        self.now = Now { monotonic, unix_ms: START.unix_ms + passed };
        self
    }

    /// The host sleeps until its wake times, until there is a request.
    pub(super) fn wake_until_sent(&mut self) -> &mut Self {
        while self.open.is_empty() {
            assert!(self.wake_at < Monotonic::FAR, "{}: the host would sleep forever", self.vector.name);
            self.set(self.wake_at.max(self.now.monotonic));
            self.call(None);
        }
        self
    }

    /// The host sleeps until its wake time.
    pub(super) fn wake(&mut self) -> &mut Self {
        self.set(self.wake_at.max(self.now.monotonic));
        self.call(None)
    }

    pub(super) fn acquire(&mut self, lock: u64, name: &str, wait: Wait) -> &mut Self {
        let options = LockOptions::builder().ttl(Duration::from_secs(12)).wait(wait).owner("pod-7").build();
        let (options, resource) = (options.expect("a scenario's options"), Resource::new(name).expect("a name"));
        self.call(Some(Input::Acquire { lock: LockId::new(lock), resource, options }))
    }

    pub(super) fn release(&mut self, lock: u64) -> &mut Self {
        self.call(Some(Input::Release { lock: LockId::new(lock) }))
    }

    pub(super) fn close(&mut self) -> &mut Self {
        self.call(Some(Input::Close))
    }

    pub(super) fn give(&mut self, node: u16, credentials: Credentials) -> &mut Self {
        self.record(WireInput::Wired(Wired::SetCredentials { node: NodeId::new(node), credentials }))
    }

    /// The oldest request is lost.
    pub(super) fn lost(&mut self) -> &mut Self {
        let fault = TransportFault::Unknown(Fault::of(FaultKind::Reset));
        self.fault(fault)
    }

    /// The oldest request could not be sent.
    pub(super) fn not_sent(&mut self) -> &mut Self {
        let fault = TransportFault::NotSent(Fault::of(FaultKind::Unreachable));
        self.fault(fault)
    }

    fn fault(&mut self, fault: TransportFault) -> &mut Self {
        let id = match self.open.remove(0) {
            Open::Http(request) => request.id,
            Open::Redis(commands) => commands.id,
            Open::Postgres(statement) => statement.id,
        };
        self.call(Some(Input::Response { id, result: Err(fault) }))
    }

    /// The oldest request is answered so.
    pub(super) fn http(&mut self, status: u16, headers: &[(&str, &str)], body: &str) -> &mut Self {
        let Open::Http(request) = self.open.remove(0) else { panic!("{}: no request over HTTP", self.vector.name) };
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (id, body) = (request.id, body.to_owned());
        self.record(WireInput::Wired(Wired::HttpResponse { id, status, headers, body }))
    }

    pub(super) fn json(&mut self, status: u16, body: &Json) -> &mut Self {
        self.http(status, &[("Content-Type", "application/json")], &body.to_string())
    }

    /// The oldest request to a Redis over a connection is answered with these bytes.
    pub(super) fn resp(&mut self, replies: &str) -> &mut Self {
        let Open::Redis(commands) = self.open.remove(0) else { panic!("{}: no commands", self.vector.name) };
        let (id, replies) = (commands.id, replies.to_owned());
        self.record(WireInput::Wired(Wired::RedisReplies { id, replies }))
    }

    /// The oldest request to a PostgreSQL is answered with these rows.
    pub(super) fn rows(&mut self, rows: Vec<Row>) -> &mut Self {
        let id = self.statement();
        self.record(WireInput::Wired(Wired::Rows { id, rows }))
    }

    /// The oldest request to a PostgreSQL is refused.
    pub(super) fn server_error(&mut self, code: &str, message: &str, when: RefusalTime) -> &mut Self {
        let (id, code, message) = (self.statement(), code.to_owned(), message.to_owned());
        self.record(WireInput::Wired(Wired::ServerError { id, code, message, when }))
    }

    fn statement(&mut self) -> RequestId {
        let Open::Postgres(statement) = self.open.remove(0) else { panic!("{}: no statement", self.vector.name) };
        statement.id
    }

    /// The nonce among the parameters of the oldest request.
    pub(super) fn nonce(&self) -> Vec<u8> {
        let Some(Open::Postgres(request)) = self.open.first() else { panic!("{}: no statement", self.vector.name) };
        let nonce = request.statement.params.iter().find_map(|param| match param {
            Param::Bytea(Some(bytes)) => Some(bytes.clone()),
            Param::ByteaArray(all) => all.first().cloned(),
            Param::Bytea(None)
            | Param::Text(_)
            | Param::Int8(_)
            | Param::Bool(_)
            | Param::TextArray(_)
            | Param::Int8Array(_) => None,
        });
        nonce.expect("it names an attempt")
    }

    /// The oldest request is never answered.
    pub(super) fn unanswered(&mut self) -> &mut Self {
        self.open.remove(0);
        self
    }

    /// True if the lock is neither held nor waited for.
    pub(super) fn is_over(&self, lock: u64) -> bool {
        self.client.state(LockId::new(lock)).is_none()
    }

    /// True if the oldest request writes a row of DynamoDB.
    pub(super) fn is_write(&self) -> bool {
        matches!(self.open.first(), Some(Open::Http(request)) if request.body.windows(16).any(|part| part == b"UpdateExpression"))
    }

    /// The last argument of the oldest request, which its answer repeats.
    pub(super) fn named(&self) -> String {
        match self.open.first() {
            Some(Open::Redis(commands)) => {
                let last = commands.commands[0].words().last().expect("an argument");
                String::from_utf8(last.to_vec()).expect("digits")
            }
            Some(Open::Http(request)) => {
                let body = String::from_utf8(request.body.clone()).expect("text");
                let digits = body.trim_end_matches(['"', ']']);
                digits[digits.trim_end_matches(|c: char| c.is_ascii_digit()).len()..].to_owned()
            }
            Some(Open::Postgres(_)) | None => panic!("{}: no such request", self.vector.name),
        }
    }

    /// The row as it is after the oldest request was carried out: what that says, in the attributes that it names. A
    /// counter that is computed becomes `counter`.
    pub(super) fn written(&self, counter: u64) -> Json {
        let Some(Open::Http(request)) = self.open.first() else { panic!("{}: no request", self.vector.name) };
        let asked: Json = serde_json::from_slice(&request.body).expect("JSON");
        let (names, values) = (&asked["ExpressionAttributeNames"], &asked["ExpressionAttributeValues"]);
        let mut row = asked["Key"].clone();
        let update =
            asked["UpdateExpression"].as_str().and_then(|update| update.strip_prefix("SET ")).expect("a write");
        for assignment in update.split(" REMOVE ").next().unwrap_or_default().split(", ") {
            let (name, value) = assignment.split_once(" = ").expect("an assignment");
            let value = if value.contains('+') { json!({ "N": counter.to_string() }) } else { values[value].clone() };
            row[names[name].as_str().expect("a name")] = value;
        }
        row
    }

    fn call(&mut self, input: Option<Input>) -> &mut Self {
        self.record(WireInput::Core(Call(input)))
    }

    fn record(&mut self, input: WireInput) -> &mut Self {
        let fresh = input.takes_entropy().then(|| {
            self.drawn += 1;
            self.drawn.to_be_bytes()
        });
        let (outputs, wake_at) = call(&mut self.client, input.to_core(), &fresh.unwrap_or_default(), self.now);
        let is_timeout = input == WireInput::Core(Call(None));
        assert!(
            is_timeout || wake_at > self.now.monotonic,
            "{}: what is due at once would be part of the same step",
            self.vector.name
        );
        let before = self.vector.steps.iter().rev().find_map(|step| step.unix_ms).unwrap_or(START.unix_ms);
        self.vector.steps.push(Step {
            at_ns: self.now.monotonic.ns(),
            unix_ms: (self.now.unix_ms != before).then_some(self.now.unix_ms),
            entropy: fresh.map(Fresh),
            input,
            outputs: outputs.iter().map(Into::into).collect(),
            wake_at_ns: wake_at,
            rows: Vec::new(),
        });
        self.wake_at = wake_at;
        self.open.extend(outputs.into_iter().filter_map(|output| match output {
            Output::HttpRequest(request) => Some(Open::Http(request)),
            Output::RedisCommands(commands) => Some(Open::Redis(commands)),
            Output::Statement(statement) => Some(Open::Postgres(statement)),
            Output::Core(
                CoreOutput::Transmit(_)
                | CoreOutput::Event(_)
                | CoreOutput::Subscribe { .. }
                | CoreOutput::Unsubscribe { .. }
                | CoreOutput::NeedCredentials { .. }
                | CoreOutput::Rejected { .. }
                | CoreOutput::WakeAt(_),
            ) => None,
        }));
        self
    }
}
