//! The events of a run as spans, arrows and marks over true time. The page draws them, and the text lists them.

use serde::Serialize;

use crate::clock::TrueTime;

/// Everything that is to be drawn of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timeline {
    /// The name of the run, and how to repeat it.
    pub title: String,
    /// The commit that ran.
    pub commit: String,
    /// Facts for the head of the page, in order: name and value.
    pub facts: Vec<(String, String)>,
    /// Hosts, stores and registers, top to bottom.
    pub lanes: Vec<Lane>,
    /// Events that last.
    pub spans: Vec<Span>,
    /// Messages from one lane to another.
    pub arrows: Vec<Arrow>,
    /// Events at one instant.
    pub marks: Vec<Mark>,
    /// The end of the run.
    pub end_ns: TrueTime,
}

/// A horizontal strip of the page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lane {
    /// Short name, such as `host 0`.
    pub name: String,
    /// The kind.
    pub kind: LaneKind,
    /// One line of detail: the rate of its clock, the kind of store.
    pub detail: String,
}

/// The kind of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneKind {
    /// A process with its workers.
    Host,
    /// A store.
    Store,
    /// The protected resource that compares tokens.
    Register,
}

/// Something that lasts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// Index of the lane.
    pub lane: usize,
    /// The kind.
    pub kind: SpanKind,
    /// The resource, by number. Colours go by holder, rows by resource.
    pub resource: Option<usize>,
    /// The owner: the index of a host's lane; `None` for foreign clients and for what has no owner.
    pub owner: Option<usize>,
    /// The fencing token, where there is one.
    pub token: Option<u64>,
    /// Begin.
    pub from_ns: TrueTime,
    /// End.
    pub to_ns: TrueTime,
    /// Its beginning or end, in a few words.
    pub label: String,
}

/// Kinds of [`Span`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// A worker waits for a lock.
    Waiting,
    /// A lease that its holder believes in.
    Belief,
    /// A record that stands in a store.
    Record,
    /// The process does not run: stopped, suspended.
    Paused,
    /// There is no process: crashed, or not started yet.
    Dead,
    /// A fault that lasts: a partition, a store that is down or throttles.
    Fault,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Arrow {
    /// Index of the lane that sends.
    pub from: usize,
    /// Index of the lane that receives.
    pub to: usize,
    /// The resource, by number.
    pub resource: Option<usize>,
    /// The time when it left.
    pub sent_ns: TrueTime,
    /// The time when it arrived; `None` when it was lost.
    pub arrived_ns: Option<TrueTime>,
    /// The content.
    pub kind: ArrowKind,
    /// The fate.
    pub fate: ArrowFate,
    /// A few words: `acquire a3f1#1`, `conflict`, `token 7`.
    pub label: String,
}

/// The content of an [`Arrow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ArrowKind {
    /// An acquire.
    Acquire,
    /// A renewal.
    Renew,
    /// A release.
    Release,
    /// A raise of a token counter.
    Raise,
    /// A look.
    Read,
    /// An answer: it was done.
    Applied,
    /// An answer: it was not done.
    NotApplied,
    /// An answer that leaves it open.
    Unknown,
    /// A wake-up or its subscription.
    Wake,
    /// A claim or a guarded write.
    Write,
    /// The register's answer.
    Written,
}

/// The fate of an [`Arrow`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ArrowFate {
    /// It takes the usual time.
    Normal,
    /// Slower than usual.
    Delayed,
    /// A copy of another.
    Duplicate,
    /// Never arrived.
    Lost,
}

/// Something that happens at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// Index of the lane; `None` for the world as a whole.
    pub lane: Option<usize>,
    /// The resource, if it is about one.
    pub resource: Option<usize>,
    /// The time.
    pub at_ns: TrueTime,
    /// The kind.
    pub kind: MarkKind,
    /// A few words.
    pub label: String,
}

/// Kinds of [`Mark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// An event of a client: acquired, lost, released.
    Event,
    /// A guarded write that was accepted.
    Accepted,
    /// A guarded write that was refused.
    Refused,
    /// A fault.
    Fault,
    /// A broken promise.
    Violation,
}
