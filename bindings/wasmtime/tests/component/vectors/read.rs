//! Reads the values in the files as those of the WIT. An unknown value fails the test.

use leasehold_wasmtime::client::{
    AcquireCommand, FinishCommand, Input, LockRef, NewSeed, NodeRef, NodeVote, Outcomes, RequestResponse, ResourceRef,
    Response, Subscription,
};
use leasehold_wasmtime::ops::{
    Applied, AppliedOutcome, Completion, Denial, DenialKind, DoubtfulCounter, Fault, FaultKind, Holding, LeaseHolder,
    LostMemory, NodeCounter, NotAppliedOutcome, Outcome, Refusal, Seen,
};
use leasehold_wasmtime::types::{
    Config, Durability, Limits, LockOptions, NodeConfig, Poll, Quorum, RenewEvery, Renewal, ResultKind, RunOptions,
    RunResult, Wait, WaitFor,
};
use serde_json::Value;

use super::whole;

/// The call that a step makes.
pub(super) enum Call {
    Timeout,
    Input(Input),
}

impl Call {
    pub(super) fn input(self) -> Option<Input> {
        match self {
            Self::Timeout => None,
            Self::Input(input) => Some(input),
        }
    }
}

pub(super) fn optional(value: &Value, name: &str) -> Option<u64> {
    value.get(name).map(|value| value.as_u64().unwrap_or_else(|| panic!("{name}: {value}")))
}

pub(super) fn number(value: &Value, name: &str) -> u64 {
    optional(value, name).unwrap_or_else(|| panic!("no {name} in {value}"))
}

pub(super) fn narrow<T: TryFrom<u64>>(value: &Value, name: &str) -> T {
    T::try_from(number(value, name)).unwrap_or_else(|_| panic!("{name} of {value}"))
}

pub(super) fn ms(value: &Value, name: &str) -> Option<u64> {
    optional(value, name).map(|ns| {
        assert_eq!(ns % 1_000_000, 0, "{name} of {value}");
        ns / 1_000_000
    })
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

pub(super) fn bytes(value: &Value) -> Vec<u8> {
    let hex = text(value);
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal")).collect()
}

/// The one field of a case, and what is in it.
pub(super) fn case(value: &Value) -> (&str, &Value) {
    let fields = value.as_object().unwrap_or_else(|| panic!("no case: {value}"));
    let mut fields = fields.iter();
    match (fields.next(), fields.next()) {
        (Some((name, content)), None) => (name, content),
        _ => panic!("a case has one field: {value}"),
    }
}

pub(super) fn config(value: &Value) -> Config {
    let limits = &value["limits"];
    Config {
        nodes: value["nodes"].as_array().expect("nodes").iter().map(node).collect(),
        drift_ppm: Some(narrow(value, "drift_ppm")),
        request_timeout_ms: ms(value, "request_timeout_ns"),
        limits: Limits {
            locks: Some(narrow(limits, "locks")),
            orphans: Some(narrow(limits, "orphans")),
            observations: Some(narrow(limits, "observations")),
        },
        quorum: value
            .get("quorum")
            .map(|quorum| Quorum { id: bytes(&quorum["id"]), max_ttl_ms: ms(quorum, "max_ttl_ns") }),
    }
}

fn node(value: &Value) -> NodeConfig {
    NodeConfig {
        poll: match text(&value["poll"]) {
            "acquire" => Poll::Acquire,
            "read" => Poll::Read,
            other => panic!("poll: {other}"),
        },
        watch: value["watch"].as_bool().expect("yes or no"),
        batch: Some(narrow(value, "batch")),
        durability: value.get("durability").map(|durability| match text(durability) {
            "declared" => Durability::Declared,
            "not_declared" => Durability::NotDeclared,
            other => panic!("durability: {other}"),
        }),
    }
}

pub(super) fn call(value: &Value) -> Call {
    let (name, value) = case(value);
    let resource = || text(&value["resource"]).to_owned();
    let lock = || LockRef { lock: number(value, "lock") };
    Call::Input(match name {
        "timeout" => return Call::Timeout,
        "acquire" => Input::Acquire(AcquireCommand {
            lock: number(value, "lock"),
            resource: resource(),
            options: options(&value["options"]),
        }),
        "release" => Input::Release(lock()),
        "finish" => Input::Finish(FinishCommand {
            lock: number(value, "lock"),
            run_result: value.get("run_result").map(run_result),
        }),
        "declare_lost" => Input::DeclareLost(lock()),
        "response" => answered(value, response(&value["result"])),
        "http_response" => answered(value, whole::http_response(value)),
        "redis_replies" => answered(value, whole::redis_replies(value)),
        "rows" => answered(value, whole::rows(value)),
        "server_error" => answered(value, whole::server_error(value)),
        "set_credentials" => Input::SetCredentials(whole::credentials(value)),
        "notified" => Input::Notified(ResourceRef { resource: resource() }),
        "subscribed" => Input::Subscribed(Subscription { node: narrow(value, "node"), resource: resource() }),
        "credentials_renewed" => Input::CredentialsRenewed(NodeRef { node: narrow(value, "node") }),
        "node_votes" => Input::NodeVotes(NodeVote { node: narrow(value, "node"), loss: value.get("loss").map(bytes) }),
        "reseed" => Input::Reseed(NewSeed { seed: bytes(&value["seed"]) }),
        "close" => Input::Close,
        other => panic!("a call that this test does not know: {other}"),
    })
}

fn answered(value: &Value, response: Response) -> Input {
    Input::Response(RequestResponse { id: number(value, "id"), response })
}

fn options(value: &Value) -> LockOptions {
    LockOptions {
        ttl_ms: ms(value, "ttl_ns"),
        wait: match case(&value["wait"]) {
            ("once", _) => Wait::Once,
            ("for", length) => Wait::For(WaitFor { wait_ms: ms(length, "wait_ns").expect("a length") }),
            ("forever", _) => Wait::Forever,
            (other, _) => panic!("wait: {other}"),
        },
        lock_delay_ms: ms(value, "lock_delay_ns").unwrap_or(0),
        max_hold_ms: ms(value, "max_hold_ns"),
        renewal: match case(&value["renewal"]) {
            ("off", _) => Renewal::Off,
            ("every", every) => Renewal::Every(RenewEvery { interval_ms: ms(every, "interval_ns").expect("a length") }),
            (other, _) => panic!("renewal: {other}"),
        },
        owner: value.get("owner").map_or("", text).to_owned(),
        data: value.get("data").map(bytes),
        run: value.get("run").map(|run| RunOptions {
            keep_ms: ms(run, "keep_ns"),
            trust_quorum: run.get("trust_quorum").is_some_and(|trust| trust.as_bool().expect("yes or no")),
            even_if_done: run.get("even_if_done").is_some_and(|even| even.as_bool().expect("yes or no")),
        }),
    }
}

fn response(value: &Value) -> Response {
    match case(value) {
        ("answered", answered) => Response::Outcomes(Outcomes {
            outcomes: answered["outcomes"].as_array().expect("outcomes").iter().map(outcome).collect(),
        }),
        ("not_sent", reason) => Response::NotSent(fault(reason)),
        ("unknown", reason) => Response::Unknown(fault(reason)),
        (other, _) => panic!("result: {other}"),
    }
}

fn outcome(value: &Value) -> Outcome {
    match case(value) {
        ("applied", value) => Outcome::Applied(AppliedOutcome { applied: applied(value) }),
        ("not_applied", value) => Outcome::NotApplied(NotAppliedOutcome { refusal: refusal(value) }),
        ("unknown", reason) => Outcome::Unknown(fault(reason)),
        (other, _) => panic!("outcome: {other}"),
    }
}

fn applied(value: &Value) -> Applied {
    let (name, value) = case(value);
    let counter = || NodeCounter { counter: number(value, "counter") };
    match name {
        "acquired" => Applied::Acquired(counter()),
        "acquired_in_doubt" => Applied::AcquiredInDoubt(DoubtfulCounter {
            counter: number(value, "counter"),
            stamp: bytes(&value["stamp"]),
        }),
        "renewed" => Applied::Renewed,
        "released" => Applied::Released,
        "finished" => Applied::Finished,
        "revoked" => Applied::Revoked,
        "raised" => Applied::Raised(counter()),
        "read" => Applied::Read(seen(value)),
        other => panic!("applied: {other}"),
    }
}

fn refusal(value: &Value) -> Refusal {
    match case(value) {
        ("conflict", value) => Refusal::Conflict(seen(value)),
        ("done", shown) => Refusal::Done(completion(shown)),
        ("throttled", reason) => Refusal::Throttled(fault(reason)),
        ("unavailable", reason) => Refusal::Unavailable(fault(reason)),
        ("abstains", value) => Refusal::Abstains(LostMemory { stamp: value.get("stamp").map(bytes) }),
        ("needs_credentials", reason) => Refusal::NeedsCredentials(fault(reason)),
        ("denied", reason) => Refusal::Denied(denial(reason)),
        (other, _) => panic!("not_applied: {other}"),
    }
}

fn seen(value: &Value) -> Seen {
    Seen { holding: value.get("holding").map(holding), done: value.get("done").map(completion) }
}

fn completion(value: &Value) -> Completion {
    Completion {
        token: number(value, "token"),
        owner: value.get("owner").map_or("", text).to_owned(),
        at_unix_ms: number(value, "at_unix_ms"),
        left_ms: ms(value, "left_ns").expect("a length"),
        about: value.get("about").map(bytes),
        unsettled: value.get("unsettled").is_some(),
    }
}

fn run_result(value: &Value) -> RunResult {
    let kind = match text(&value["kind"]) {
        "bytes" => ResultKind::Bytes,
        "json" => ResultKind::Json,
        "output" => ResultKind::Output,
        other => panic!("{other:?} is no kind of a result"),
    };
    RunResult { kind, bytes: bytes(&value["bytes"]) }
}

fn holding(value: &Value) -> Holding {
    Holding {
        holder: match case(&value["holder"]) {
            ("lease", lease) => {
                Some(LeaseHolder { nonce: bytes(&lease["nonce"]), seq: lease.get("seq").map(|_| narrow(lease, "seq")) })
            }
            ("foreign", _) => None,
            (other, _) => panic!("holder: {other}"),
        },
        version: bytes(&value["version"]),
        released: value["released"].as_bool().expect("yes or no"),
        counter: optional(value, "counter"),
        owner: value.get("owner").map(|owner| text(owner).to_owned()),
        record_ttl_ms: ms(value, "record_ttl_ns"),
        left_ms: ms(value, "left_ns"),
        since_unix_ms: optional(value, "since_unix_ms"),
        data: value.get("data").map(bytes),
    }
}

fn fault(value: &Value) -> Fault {
    let kind = match text(&value["kind"]) {
        "timeout" => FaultKind::Timeout,
        "reset" => FaultKind::Reset,
        "unreachable" => FaultKind::Unreachable,
        "cancelled" => FaultKind::Cancelled,
        "server" => FaultKind::Server,
        "busy" => FaultKind::Busy,
        "protocol" => FaultKind::Protocol,
        other => panic!("fault: {other}"),
    };
    Fault { kind, detail: value.get("detail").map(|detail| text(detail).to_owned()) }
}

fn denial(value: &Value) -> Denial {
    let kind = match text(&value["kind"]) {
        "permission" => DenialKind::Permission,
        "schema" => DenialKind::Schema,
        "corrupt_record" => DenialKind::CorruptRecord,
        "tokens_exhausted" => DenialKind::TokensExhausted,
        "storage_full" => DenialKind::StorageFull,
        "membership" => DenialKind::Membership,
        "other" => DenialKind::Other,
        other => panic!("denial: {other}"),
    };
    Denial { kind, detail: text(&value["detail"]).to_owned() }
}
