//! A trace that was run, and questions to ask of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use leasehold_sim::clock::TrueTime;
use leasehold_sim::counts::{Sometimes, Struck};
use leasehold_sim::fault_schedule::FaultSchedule;
use leasehold_sim::promise::{Promise, Violation};
use leasehold_sim::script::Script;
use leasehold_sim::timeline::{Arrow, ArrowKind, MarkKind, Span, SpanKind, Timeline};
use leasehold_sim::trial::{self, Trial};
use leasehold_sim::world;

/// The folder of the traces.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("traces")
}

/// The trace of this name.
pub(crate) fn script(name: &str) -> Script {
    let path = folder().join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Script::from_json(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// One script and what came of it.
pub(crate) struct Run {
    pub(crate) script: Script,
    trial: Trial,
    timeline: Timeline,
}

/// A lease that a host believed in.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) host: usize,
    pub(crate) token: u64,
    pub(crate) from_ms: u64,
    pub(crate) to_ms: u64,
    /// The reason of its end.
    pub(crate) end: String,
}

/// A request to the store.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) kind: ArrowKind,
    pub(crate) sent_ms: u64,
    pub(crate) arrived_ms: Option<u64>,
    /// The attempt and the send.
    pub(crate) label: &'a str,
    /// The store's answer when it arrived; `None` where it never arrived, or the store was silent.
    pub(crate) answer: Option<&'a str>,
}

impl Run {
    pub(crate) fn of(script: Script) -> Self {
        let trial = trial::script(&script);
        let timeline = world::run(&script, FaultSchedule::written(&script), true).timeline.unwrap();
        Self { script, trial, timeline }
    }

    /// Nothing is wrong, whether or not a promise was due.
    pub(crate) fn keeps_every_promise(&self) {
        assert_eq!(self.trial.broken, [], "{}", self.script.name);
        assert_eq!(self.trial.expected, [], "{}", self.script.name);
        assert!(!self.trial.differed, "{}: the second run differed", self.script.name);
    }

    /// A promise falls, and is known not to be due; none that is due does.
    pub(crate) fn falls(&self, promise: Promise) -> &Violation {
        assert_eq!(self.trial.broken, [], "{}", self.script.name);
        let found = self.trial.expected.iter().find(|violation| violation.promise == promise);
        found.unwrap_or_else(|| panic!("{} should fall, and only this does: {:?}", promise.code(), self.trial.expected))
    }

    pub(crate) fn seen(&self, what: Sometimes) -> u64 {
        self.trial.counts.seen(what)
    }

    pub(crate) fn struck(&self, what: Struck) -> u64 {
        self.trial.counts.struck(what)
    }

    /// The leases of the script's own hosts, in order.
    pub(crate) fn leases(&self) -> Vec<Lease> {
        let hosts = self.script.hosts.len();
        let beliefs = self.spans(SpanKind::Belief).filter(|span| span.lane < hosts);
        let mut leases: Vec<_> = beliefs
            .map(|span| Lease {
                host: span.lane,
                token: span.token.unwrap(),
                from_ms: ms(span.from_ns),
                to_ms: ms(span.to_ns),
                end: span.label.clone(),
            })
            .collect();
        leases.sort_by_key(|lease| lease.from_ms);
        leases
    }

    /// Records as they stood in the store, in order: from, to.
    pub(crate) fn records(&self) -> Vec<(u64, u64)> {
        let mut records: Vec<_> = self.spans(SpanKind::Record).map(|span| (ms(span.from_ns), ms(span.to_ns))).collect();
        records.sort_unstable();
        records
    }

    /// The requests of a host to the store, in the order of sending. A copy comes before its original.
    pub(crate) fn requests(&self, host: usize) -> Vec<Request<'_>> {
        let store = self.script.hosts.len();
        let mut answers: BTreeMap<TrueTime, &str> = BTreeMap::new();
        for arrow in self.between(store, host) {
            answers.insert(arrow.sent_ns, &arrow.label);
        }
        let requests = self.between(host, store).map(|arrow| Request {
            kind: arrow.kind,
            sent_ms: ms(arrow.sent_ns),
            arrived_ms: arrow.arrived_ns.map(ms),
            label: &arrow.label,
            answer: arrow.arrived_ns.and_then(|at| answers.get(&at).copied()),
        });
        requests.collect()
    }

    /// The requests of one kind.
    pub(crate) fn asked(&self, host: usize, kind: ArrowKind) -> Vec<Request<'_>> {
        self.requests(host).into_iter().filter(|request| request.kind == kind).collect()
    }

    /// The register's answers to claims and writes: the time, the words, and whether it was accepted.
    pub(crate) fn register(&self) -> Vec<(u64, String, bool)> {
        let marks = self.timeline.marks.iter().filter_map(|mark| match mark.kind {
            MarkKind::Accepted => Some((ms(mark.at_ns), mark.label.clone(), true)),
            MarkKind::Refused => Some((ms(mark.at_ns), mark.label.clone(), false)),
            MarkKind::Event | MarkKind::Fault | MarkKind::Violation => None,
        });
        marks.collect()
    }

    fn spans(&self, kind: SpanKind) -> impl Iterator<Item = &Span> {
        self.timeline.spans.iter().filter(move |span| span.kind == kind)
    }

    fn between(&self, from: usize, to: usize) -> impl Iterator<Item = &Arrow> {
        self.timeline.arrows.iter().filter(move |arrow| (arrow.from, arrow.to) == (from, to))
    }
}

fn ms(at: TrueTime) -> u64 {
    at.0 / 1_000_000
}
