//! A lock in the value of a key: JSON, in which fields that this version does not know are kept.

use alloc::string::{String, ToString};
use core::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json, json};

use leasehold_core::member::LossId;
use leasehold_core::op::{Denial, DenialKind, Session};
use leasehold_core::store::{BootId, CompletionRecord, LeaseRecord, Record};
use leasehold_core::{About, Monotonic, Nonce, Owner, Payload, Seq, SessionLabel, Token};

use crate::dynamodb::json::object;

/// The boot of every record that was read. It differs from [`NOW`], so no record runs out by itself: observers wait.
const PAST: BootId = BootId([0; 16]);
pub(crate) const NOW: BootId = BootId([1; 16]);
/// The field with the record of the run that wrote the completion.
const ABOUT: &str = "about";

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Row {
    pub(crate) record: Option<Record>,
    /// In a quorum: the loss of data since which the counter was raised.
    pub(crate) trusted: Option<LossId>,
    fields: Map<String, Json>,
}

impl Row {
    /// # Errors
    /// No client writes such a value.
    pub(crate) fn parse(value: &[u8]) -> Result<Self, Denial> {
        let fields = object(value).map_err(|_| corrupt("its value is no JSON object"))?;
        let counter = fields.get("counter").and_then(Json::as_u64).and_then(Token::new);
        let counter = counter.ok_or_else(|| corrupt("counter"))?;
        let lease = fields.get("lease").map(|lease| lease_in(lease).ok_or_else(|| corrupt("lease"))).transpose()?;
        // A record of a run that does not read so is that of another version, or of a completion that was replaced.
        let about = fields.get(ABOUT).and_then(|about| STANDARD.decode(about.as_str()?).ok());
        let completion = fields
            .get("done")
            .map(|completion| completion_in(completion, about.as_deref()).ok_or_else(|| corrupt("done")))
            .transpose()?;
        let loss = |loss: &Json| loss.as_str().and_then(LossId::parse).ok_or_else(|| corrupt("trusted"));
        let trusted = fields.get("trusted").map(loss).transpose()?;
        Ok(Self { record: Some(Record { counter, lease, completion }), trusted, fields })
    }

    /// Sets a field of the value, beside the record.
    pub(crate) fn keep(&mut self, name: &str, value: &str) {
        self.fields.insert(name.into(), json!(value));
    }

    /// Tells a release from one by somebody else, who would write the same otherwise, by the time of its writer's clock: who
    /// finds a lock broken is told, and a write that something on the way has sent twice is known again.
    pub(crate) fn freed_at(&mut self, unix_ms: u64) {
        self.fields.insert("freed_ms".into(), json!(unix_ms));
    }

    /// The value with another record in it.
    pub(crate) fn with(&self, record: &Record, trusted: Option<LossId>) -> String {
        let mut fields = self.fields.clone();
        fields.insert("counter".into(), json!(record.counter.get()));
        let lease = record.lease.as_ref().map(written);
        let completion = record.completion.as_ref().map(|completion| {
            json!({
                "nonce": hex(&completion.nonce), "token": completion.token.get(), "owner": completion.owner.as_str(),
                "at_ms": completion.at_unix_ms, "until_ms": completion.until_unix_ms,
            })
        });
        // Beside the completion, and not in it: a client that knows no records of runs replaces the completion, and keeps the rest.
        fields.remove(ABOUT);
        let about = record.completion.as_ref().and_then(|completion| completion.about.as_ref());
        let about = about.map(|about| json!(STANDARD.encode(about.as_bytes())));
        let trusted = trusted.or(self.trusted).map(|loss| json!(loss.to_string()));
        for (name, value) in [("lease", lease), ("done", completion), (ABOUT, about), ("trusted", trusted)] {
            fields.extend(value.map(|value| (name.to_string(), value)));
        }
        serde_json::to_string(&fields).unwrap_or_default()
    }
}

fn written(lease: &LeaseRecord) -> Json {
    let mut fields = json!({
        "nonce": hex(&lease.nonce), "seq": lease.seq.get(), "released": lease.released,
        "ttl_ns": u64::try_from(lease.record_ttl.as_nanos()).unwrap_or(u64::MAX),
        "since_ms": lease.since_unix_ms, "owner": lease.owner.as_str(),
        "data": lease.data.as_ref().map(|data| STANDARD.encode(data.as_bytes())),
    });
    if let Some(session) = &lease.session {
        fields["session"] = json!({ "nonce": hex(&session.nonce), "label": session.label.as_str() });
    }
    if lease.told > 0 {
        fields["told"] = json!(lease.told);
    }
    fields
}

fn lease_in(lease: &Json) -> Option<LeaseRecord> {
    let data = lease.get("data")?;
    let data = match data.is_null() {
        true => None,
        false => Some(Payload::new(&STANDARD.decode(data.as_str()?).ok()?).ok()?),
    };
    Some(LeaseRecord {
        nonce: nonce(lease)?,
        seq: Seq::new(u32::try_from(number(lease, "seq")?).ok()?),
        released: lease.get("released")?.as_bool()?,
        record_ttl: Duration::from_nanos(number(lease, "ttl_ns")?),
        boot: PAST,
        expires: Monotonic::FAR,
        since_unix_ms: number(lease, "since_ms")?,
        owner: Owner::new(lease.get("owner")?.as_str()?).ok()?,
        data,
        session: match lease.get("session") {
            None => None,
            Some(session) => Some(Session {
                nonce: nonce(session)?,
                label: SessionLabel::new(session.get("label")?.as_str()?).ok()?,
            }),
        },
        told: match lease.get("told") {
            None => 0,
            Some(told) => told.as_u64()?,
        },
    })
}

fn completion_in(completion: &Json, about: Option<&[u8]>) -> Option<CompletionRecord> {
    let nonce = nonce(completion)?;
    Some(CompletionRecord {
        nonce,
        token: Token::new(number(completion, "token")?)?,
        owner: Owner::new(completion.get("owner")?.as_str()?).ok()?,
        at_unix_ms: number(completion, "at_ms")?,
        until_unix_ms: number(completion, "until_ms")?,
        about: about.and_then(|about| About::beside(about, &nonce)),
    })
}

fn number(fields: &Json, name: &str) -> Option<u64> {
    fields.get(name)?.as_u64()
}

fn nonce(fields: &Json) -> Option<Nonce> {
    let text = fields.get("nonce")?.as_str()?;
    // The constructor of losses reads the same 32 digits.
    LossId::parse(text).map(|bytes| Nonce::from_bytes(bytes.0))
}

fn hex(nonce: &Nonce) -> String {
    LossId(*nonce.as_bytes()).to_string()
}

fn corrupt(what: &str) -> Denial {
    let detail = alloc::format!(
        "the key of this lock holds a value that no client writes ({what}); if nobody holds the lock, delete the key \
         by hand"
    );
    Denial::new(DenialKind::CorruptRecord, &detail)
}
