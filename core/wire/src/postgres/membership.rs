//! The table's memory of the quorum that it is a node of: one row of it.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use leasehold_core::member::{Answer as Vote, CounterTrust, LossId, Marker, Membership, RunId, admit};
use leasehold_core::node::wrong_quorum;
use leasehold_core::op::{Outcome, Refusal};
use leasehold_core::quorum::Trust;

use super::exchange::misfit;
use super::rows::Memory;
use super::sql::Sql;
use super::statements::{RUN, Texts};
use super::{Answer, Codec, Field, Param, Statement};

/// The result of a look at the marker.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct FoundMarker {
    /// The marker, if there is one that this version understands.
    pub marker: Option<Marker>,
    /// The marker as it is written, empty where there is none. [`Codec::mark`] wants it back.
    pub text: Vec<u8>,
    /// The tables have what queues of waiters need, and this user may use it.
    pub has_queues: bool,
    /// The table of locks has room for results of runs.
    pub has_results: bool,
}

/// For `leasehold quorum` and for clients that connect.
impl Codec {
    /// Asks for the marker; [`Codec::found`] reads the answer. It fails where the table is missing.
    pub fn look(&self) -> Statement {
        Statement::new(&self.texts.look, [])
    }

    /// Asks for the server's timeline; [`Codec::run`] reads the answer.
    pub fn ask_run(&self) -> Statement {
        Statement::new(&Sql::reads(alloc::format!("SELECT {RUN}")), [])
    }

    /// Reads the answer to [`Codec::look`].
    ///
    /// # Errors
    /// The marker could not be read.
    pub fn found(&self, answer: Answer) -> Result<FoundMarker, Outcome> {
        let mut rows = answer?;
        let mut last =
            || rows.first_mut().and_then(Vec::pop).ok_or_else(misfit).map(|field| field == Field::Bool(true));
        let (has_results, has_queues) = (last()?, last()?);
        let text = only_text(Ok(rows))?.unwrap_or_default();
        Ok(FoundMarker { marker: Marker::parse(text.as_bytes()), text: text.into_bytes(), has_queues, has_results })
    }

    /// Reads the answer to [`Codec::ask_run`].
    ///
    /// # Errors
    /// It could not be read.
    pub fn run(&self, answer: Answer) -> Result<Option<RunId>, Outcome> {
        Ok(only_text(answer)?.as_deref().and_then(RunId::new))
    }

    /// Writes a marker in the place of the one that was found, if that is still there, or none; [`Codec::marked`] reads
    /// the answer.
    pub fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Statement {
        // What was found came out of a column of text.
        mark(&self.texts, &String::from_utf8_lossy(found), marker)
    }

    /// Tells if that was done; not where another marker has come meanwhile.
    ///
    /// # Errors
    /// It was not, or nobody knows.
    pub fn marked(&self, answer: Answer) -> Result<bool, Outcome> {
        Ok(!answer?.is_empty())
    }
}

fn only_text(answer: Answer) -> Result<Option<String>, Outcome> {
    match answer?.as_slice() {
        [row] => match row.as_slice() {
            [Field::Text(text)] => Ok(Some(text.clone())),
            [Field::Null] => Ok(None),
            _ => Err(misfit()),
        },
        _ => Err(misfit()),
    }
}

pub(super) fn mark(texts: &Texts, found: &str, marker: Option<&Marker>) -> Statement {
    let text = |text: &str| Param::Text(Some(text.to_string()));
    match (marker, found) {
        (Some(marker), "") => Statement::new(&texts.mark_new, [text(&marker.text())]),
        (Some(marker), found) => Statement::new(&texts.mark, [text(&marker.text()), text(found)]),
        (None, found) => Statement::new(&texts.unmark, [text(found)]),
    }
}

/// The parameters of a vote: the marker that was seen to let it vote, and the beginning of one that does in any case.
pub(super) fn conditions(asked: &Membership, expected: Option<&str>) -> Vec<Param> {
    let member = alloc::format!("leasehold/1 quorum={} max_ttl_ms={} stamp=", asked.quorum, asked.max_ttl_ms);
    vec![Param::Text(expected.map(str::to_string)), Param::Text(Some(member))]
}

/// The verdict on a vote at a node with this memory.
pub(super) enum Verdict {
    /// It counts; in doubt since this loss.
    Counts(CounterTrust),
    /// It ends here.
    Refused(Refusal),
}

/// Judges a vote. With a marker, that one has to be written before the verdict means anything.
pub(super) fn judge(asked: &Membership, memory: &Memory) -> (Option<Marker>, Verdict) {
    let unknown = || Verdict::Refused(Refusal::Denied(wrong_quorum((asked.quorum, asked.max_ttl_ms), None)));
    let marker = match Marker::parse(memory.marker.as_bytes()) {
        None if !memory.marker.is_empty() => return (None, unknown()),
        marker => marker,
    };
    let asked = &Membership { fresh: asked.fresh.found_at(memory.unix_ms), ..asked.clone() };
    let admission = admit(marker.as_ref(), asked, memory.run.as_ref(), memory.unix_ms);
    let verdict = match admission.answer {
        Vote::Votes(counters) => Verdict::Counts(counters),
        Vote::Abstains(stamp) => Verdict::Refused(Refusal::Abstains { stamp: Some(stamp) }),
        Vote::WrongQuorum { quorum, max_ttl_ms } => {
            let denial = wrong_quorum((asked.quorum, asked.max_ttl_ms), Some((quorum, max_ttl_ms)));
            Verdict::Refused(Refusal::Denied(denial))
        }
    };
    (admission.write, verdict)
}

/// The loss since which the counter of a lock is in doubt. Completions of finished work are trusted as the whole node is: a
/// counter that was raised says nothing of them.
pub(super) fn doubt(counters: CounterTrust, trust: Option<LossId>, unless_done: bool) -> Option<LossId> {
    let raised = trust.filter(|_| !unless_done);
    match (counters, counters.trust(raised.as_ref())) {
        (CounterTrust::ByResource(loss), Trust::Doubtful) => Some(loss),
        (CounterTrust::ByResource(_), Trust::Trusted) | (CounterTrust::Trusted, _) => None,
    }
}
