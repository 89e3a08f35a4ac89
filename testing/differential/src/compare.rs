//! Two answers, field by field. Times agree within what the two steps that wrote and read them took.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use leasehold_core::op::{Applied, Completion, Holder, Outcome, Refusal, Seen};

use crate::reference::FOREIGN;

/// Beside the length of a step: stores round to milliseconds or seconds, and clocks are set.
const ROUNDING: Duration = Duration::from_secs(2);

/// One field of an answer or a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The same in both.
    Text(String),
    /// A number that a store may draw itself.
    Number(u64),
    /// A length of time.
    Span(Duration),
    /// An instant, in milliseconds since 1970.
    At(u64),
}

/// The fields by their names.
pub type Fields = BTreeMap<&'static str, Value>;

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub field: &'static str,
    /// The store's value.
    pub store: Option<Value>,
    /// The reference's value.
    pub reference: Option<Value>,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
            Self::Span(span) => write!(f, "{span:?}"),
            Self::At(ms) => write!(f, "{ms} ms"),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
        write!(f, "{}: the store says {}, the reference {}", self.field, shown(&self.store), shown(&self.reference))
    }
}

/// The fields that are not the same.
pub fn differences(store: &Fields, reference: &Fields, slack: Duration) -> Vec<Difference> {
    let names: std::collections::BTreeSet<_> = store.keys().chain(reference.keys()).copied().collect();
    let differ = |name: &&'static str| match (store.get(name), reference.get(name)) {
        (Some(Value::Span(one)), Some(Value::Span(other))) => one.abs_diff(*other) > slack + ROUNDING,
        (Some(Value::At(one)), Some(Value::At(other))) => {
            Duration::from_millis(one.abs_diff(*other)) > slack + ROUNDING
        }
        (one, other) => one != other,
    };
    let show = |field| Difference { field, store: store.get(field).cloned(), reference: reference.get(field).cloned() };
    names.into_iter().filter(differ).map(show).collect()
}

/// The fields of an answer.
pub fn outcome(outcome: &Outcome) -> Fields {
    let mut fields = Fields::new();
    let ended = match outcome {
        Outcome::Applied(Applied::Acquired { counter }) => {
            fields.insert("counter", Value::Number(counter.get()));
            "acquired".to_owned()
        }
        Outcome::Applied(Applied::AcquiredInDoubt { counter, stamp }) => {
            fields.insert("counter", Value::Number(counter.get()));
            fields.insert("stamp", Value::Text(stamp.to_string()));
            "acquired in doubt".to_owned()
        }
        Outcome::Applied(Applied::Raised { counter }) => {
            fields.insert("counter", Value::Number(counter.get()));
            "raised".to_owned()
        }
        Outcome::Applied(Applied::Read(shown)) => {
            seen(shown, &mut fields);
            "read".to_owned()
        }
        Outcome::Applied(other) => format!("{other:?}").to_lowercase(),
        Outcome::NotApplied(Refusal::Conflict(shown)) => {
            seen(shown, &mut fields);
            "conflict".to_owned()
        }
        Outcome::NotApplied(Refusal::Done(done)) => {
            completion(done, &mut fields);
            "done".to_owned()
        }
        Outcome::NotApplied(Refusal::Abstains { stamp }) => {
            if let Some(stamp) = stamp {
                fields.insert("stamp", Value::Text(stamp.to_string()));
            }
            "abstains".to_owned()
        }
        // The words are for people.
        Outcome::NotApplied(Refusal::Denied(denial)) => format!("denied {:?}", denial.kind),
        Outcome::NotApplied(other) => format!("not applied {other:?}"),
        Outcome::Unknown(fault) => format!("unknown {fault}"),
    };
    fields.insert("outcome", Value::Text(ended));
    fields
}

/// The fields of a record.
pub fn seen(seen: &Seen, fields: &mut Fields) {
    if let Some(holding) = &seen.holding {
        let (holder, seq) = match &holding.holder {
            Holder::Lease { nonce, .. } if *nonce == FOREIGN => ("foreign".to_owned(), None),
            Holder::Lease { nonce, seq } => (hex(nonce.as_bytes()), *seq),
            Holder::Foreign => ("foreign".to_owned(), None),
        };
        let is_ours = holder != "foreign";
        fields.insert("holder", Value::Text(holder));
        if let Some(seq) = seq {
            fields.insert("seq", Value::Number(u64::from(seq.get())));
        }
        fields.insert("released", Value::Text(holding.released.to_string()));
        if let Some(counter) = holding.counter.filter(|counter| counter.get() > 0) {
            fields.insert("token", Value::Number(counter.get()));
        }
        if let Some(owner) = holding.owner.as_ref().filter(|_| is_ours) {
            fields.insert("owner", Value::Text(owner.as_str().to_owned()));
        }
        if let Some(ttl) = holding.record_ttl {
            fields.insert("ttl", Value::Span(ttl));
        }
        if let Some(left) = holding.left {
            fields.insert("left", Value::Span(left));
        }
        if let Some(since) = holding.since_unix_ms.filter(|_| is_ours) {
            fields.insert("since", Value::At(since));
        }
        if let Some(data) = holding.data.as_ref().filter(|_| is_ours) {
            fields.insert("data", Value::Text(hex(data.as_bytes())));
        }
        if holding.told > 0 && is_ours {
            fields.insert("told", Value::Number(holding.told));
        }
        if let Some(session) = &holding.session {
            fields.insert(
                "session",
                Value::Text(format!("{}/{}", hex(session.nonce.as_bytes()), session.label.as_str())),
            );
        }
    }
    if let Some(done) = &seen.done {
        completion(done, fields);
    }
}

fn completion(completion: &Completion, fields: &mut Fields) {
    fields.insert("done token", Value::Number(completion.token.get()));
    fields.insert("done owner", Value::Text(completion.owner.as_str().to_owned()));
    fields.insert("done at", Value::At(completion.at_unix_ms));
    fields.insert("done left", Value::Span(completion.left));
    if let Some(about) = &completion.about {
        fields.insert("done about", Value::Text(hex(about.as_bytes())));
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
