//! The table's record of the quorum that it is a node of: one row, read after the lock was written.
//!
//! There is no call that reads the marker and writes the lock at once. A marker that is read *after* a write was answered
//! stood when the write took effect, or the table was marked again since, under another stamp.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Map, Value as Json};

use super::exchange::Heard;
use super::expressions::{self, get};
use super::json::as_text;
use super::{Codec, HttpResponse, Request, Settings, record};
use leasehold_core::member::{Answer, CounterTrust, Durability, LossId, Marker, Membership, admit};
use leasehold_core::node::{NodeMemory, wrong_quorum};
use leasehold_core::op::{Outcome, Refusal};
use leasehold_core::quorum::Trust;

/// The row of the marker. The byte 0x1F cannot occur in a resource.
pub(super) const ROW: &str = "leasehold\u{1f}quorum";

/// The result of a look at the marker.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct FoundMarker {
    /// The marker, if there is one that this version understands.
    pub marker: Option<Marker>,
    /// The marker as it is written, empty where there is none. [`Codec::mark`] wants it back.
    pub text: Vec<u8>,
}

/// For `leasehold quorum` and for clients that connect. Responses that ask for a [`Repeat`](super::Repeat) are told by
/// [`classify`](super::classify).
impl Codec {
    /// Asks for the marker; [`Codec::found`] reads the response.
    pub fn look(&self) -> Request {
        look(&self.settings)
    }

    /// Reads the response to [`Codec::look`].
    ///
    /// # Errors
    /// The marker could not be read.
    pub fn found(&self, response: &HttpResponse) -> Result<FoundMarker, Outcome> {
        match Heard::of(&self.settings, Ok(response)) {
            Heard::Success(fields) => {
                let text = text_in(&self.settings, fields.get("Item"))?;
                Ok(FoundMarker { marker: Marker::parse(text.as_bytes()), text: text.into_bytes() })
            }
            Heard::Conflict(_) => Err(super::exchange::misfit()),
            Heard::Failed(outcome) => Err(outcome),
        }
    }

    /// Writes a marker in the place of the one that was found, if that is still there, or none; [`Codec::marked`] reads
    /// the response.
    pub fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Request {
        // What was found came out of JSON, so it is UTF-8.
        mark(&self.settings, &String::from_utf8_lossy(found), marker)
    }

    /// Tells if that was done; not where another marker has come meanwhile.
    ///
    /// # Errors
    /// It was not, or nobody knows.
    pub fn marked(&self, marker: Option<&Marker>, response: &HttpResponse) -> Result<bool, Outcome> {
        match Heard::of(&self.settings, Ok(response)) {
            Heard::Success(fields) if is_marked(&self.settings, &fields, marker) => Ok(true),
            Heard::Success(_) => Err(super::exchange::misfit()),
            Heard::Conflict(_) => Ok(false),
            Heard::Failed(outcome) => Err(outcome),
        }
    }

    /// A write of the marker's row that never happens, since its condition cannot hold: it shows whether rows may be
    /// written, and costs one write unit. [`Codec::tried`] reads the response.
    pub fn trial(&self) -> Request {
        expressions::never(&self.settings, ROW)
    }

    /// Checks that the response to [`Codec::trial`] says that the write would have been allowed.
    ///
    /// # Errors
    /// It would not, or that is not known; a write that was made all the same is a
    /// [`FaultKind::Protocol`](leasehold_core::op::FaultKind::Protocol).
    pub fn tried(&self, response: &HttpResponse) -> Result<(), Outcome> {
        match Heard::of(&self.settings, Ok(response)) {
            Heard::Conflict(_) => Ok(()),
            Heard::Success(_) => Err(super::exchange::misfit()),
            Heard::Failed(outcome) => Err(outcome),
        }
    }
}

pub(super) fn look(settings: &Settings) -> Request {
    get(settings, ROW)
}

pub(super) fn mark(settings: &Settings, found: &str, marker: Option<&Marker>) -> Request {
    match marker {
        Some(marker) => expressions::mark(settings, ROW, found, &marker.text(), &marker.stamp.to_string()),
        None => expressions::unmark(settings, ROW, found),
    }
}

/// Returns true if the answer to a write of the marker shows it.
pub(super) fn is_marked(settings: &Settings, fields: &Map<String, Json>, marker: Option<&Marker>) -> bool {
    text_in(settings, fields.get("Attributes")).is_ok_and(|text| text == marker.map(Marker::text).unwrap_or_default())
}

/// The marker as it is written; empty where there is none.
pub(super) fn text_in(settings: &Settings, row: Option<&Json>) -> Result<String, Outcome> {
    let Some(row) = row else { return Ok(String::new()) };
    let is_it = row.get(settings.key_name()).and_then(as_text) == Some(ROW);
    match row.get(record::MARKER) {
        _ if !is_it => Err(super::exchange::misfit()),
        None => Ok(String::new()),
        // What is no text is no marker that this version knows, and cannot be written over either.
        Some(attribute) => Ok(as_text(attribute).unwrap_or("?").to_string()),
    }
}

/// The verdict on an acquire at a node that shows this marker.
pub(super) enum Vote {
    /// It counts.
    Counts(Option<LossId>),
    /// It ends here.
    Refused(Refusal),
}

/// Judges a vote by the marker. With a marker, that one has to be written before the vote means anything.
pub(super) fn vote(asked: &Membership, text: &str, trusted: Option<LossId>, unix_ms: u64) -> (Option<Marker>, Vote) {
    let marker = match text {
        "" => None,
        text => match Marker::parse(text.as_bytes()) {
            Some(marker) => Some(marker),
            None => return (None, Vote::Refused(unknown_marker(asked))),
        },
    };
    let asked = &Membership { fresh: asked.fresh.found_at(unix_ms), ..asked.clone() };
    let admission = admit(marker.as_ref(), asked, None, unix_ms);
    let vote = match admission.answer {
        Answer::Votes(counters) => Vote::Counts(match (counters, counters.trust(trusted.as_ref())) {
            (CounterTrust::ByResource(loss), Trust::Doubtful) => Some(loss),
            (CounterTrust::ByResource(_), Trust::Trusted) | (CounterTrust::Trusted, _) => None,
        }),
        Answer::Abstains(stamp) => Vote::Refused(Refusal::Abstains { stamp: Some(stamp) }),
        Answer::WrongQuorum { quorum, max_ttl_ms } => {
            let denial = wrong_quorum((asked.quorum, asked.max_ttl_ms), Some((quorum, max_ttl_ms)));
            Vote::Refused(Refusal::Denied(denial))
        }
    };
    (admission.write, vote)
}

fn unknown_marker(asked: &Membership) -> Refusal {
    Refusal::Denied(wrong_quorum((asked.quorum, asked.max_ttl_ms), None))
}

/// Returns true if a record that is missing may have been forgotten. Under a marker that is not understood nobody of
/// this version gets a vote.
pub(super) fn is_in_doubt(text: &str, durability: Durability) -> bool {
    let marker = Marker::parse(text.as_bytes());
    NodeMemory { marker: marker.as_ref(), trusted: None, run: None }.is_in_doubt(durability)
}
