//! The meaning of an error: certainly not applied, and why, or unknown.
//!
//! An error of severity `ERROR` ends the statement's transaction, so nothing of it was applied. Errors that end the
//! session may come after the commit, and errors of connections may be a pooler's word about a server that it has lost.

use alloc::format;
use alloc::string::String;

use leasehold_core::op::{DenialKind, Fault, FaultKind, Outcome, Refusal};

use crate::errors::{Known, Means, find, known};
use crate::redis::said;

/// An error as the server reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerError<'a> {
    /// The SQLSTATE.
    pub code: &'a str,
    /// Its first line.
    pub message: &'a str,
    /// The severity is `FATAL` or `PANIC`: the session has ended.
    pub ends_session: bool,
}

/// When a server has refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalTime {
    /// When the host connected: the statement was not sent.
    AtLogin,
    /// In answer to the statement: the session goes on.
    InSession,
    /// With the end of the session, or nobody knows.
    AtTheEnd,
}

/// The outcome of a statement for a host whose driver reports an error.
pub fn refused(code: &str, message: &str, when: RefusalTime) -> Outcome {
    let error = ServerError { code, message, ends_session: when == RefusalTime::AtTheEnd };
    match when {
        RefusalTime::AtLogin => Outcome::NotApplied(error.refusal()),
        RefusalTime::InSession | RefusalTime::AtTheEnd => error.outcome(),
    }
}

const GRANTS: &str = "the user needs SELECT, INSERT, UPDATE and DELETE on the table of locks and USAGE on its schema; \
                      `leasehold store show` prints the statements";
const TABLE: &str = "the table of locks is missing, or is not the one of this version: create it with `leasehold store \
                     create`, or run the SQL of `leasehold store show`; check the parameter `schema`";
const ROW: &str =
    "the row of this lock was changed by hand to what no client writes; if nobody holds the lock, delete it";
const LOGIN: &str = "user or password are wrong, or the server does not let this user in from here: check the url and \
                     pg_hba.conf";

/// The codes that are known. Those of no class here are final.
pub(crate) const KNOWN: [Known; 35] = [
    known("40001", Means::Passes(FaultKind::Busy), "another transaction came first: this is temporary"),
    known("40P01", Means::Passes(FaultKind::Busy), "another transaction came first: this is temporary"),
    known("55P03", Means::Passes(FaultKind::Busy), "a transaction holds the row of this lock: end it soon"),
    known(
        "57014",
        Means::Passes(FaultKind::Busy),
        "the statement was cancelled, by an administrator or statement_timeout",
    ),
    known(
        "57P03",
        Means::Passes(FaultKind::Server),
        "the server is starting, stopping or recovering: this is temporary",
    ),
    known("25006", Means::Elsewhere, STANDBY),
    known("55000", Means::Elsewhere, STANDBY),
    known(
        "53300",
        Means::Mended(FaultKind::Busy),
        "the server has no connection left: raise max_connections, or put PgBouncer in front of it",
    ),
    known("53100", Means::Mended(FaultKind::Server), "the server's disk is full"),
    known("40003", Means::Unfinished, UNFINISHED),
    known("28000", Means::Login, LOGIN),
    known("28P01", Means::Login, LOGIN),
    known("42501", Means::Final(DenialKind::Permission), GRANTS),
    known("3D000", Means::Final(DenialKind::Schema), "the database of the url does not exist"),
    known("42P01", Means::Final(DenialKind::Schema), TABLE),
    known("42703", Means::Final(DenialKind::Schema), TABLE),
    known("3F000", Means::Final(DenialKind::Schema), TABLE),
    known("42P10", Means::Final(DenialKind::Schema), TABLE),
    known("42804", Means::Final(DenialKind::Schema), TABLE),
    known("23502", Means::Final(DenialKind::CorruptRecord), ROW),
    known("23514", Means::Final(DenialKind::CorruptRecord), ROW),
    known("22003", Means::Final(DenialKind::CorruptRecord), ROW),
    known("22008", Means::Final(DenialKind::CorruptRecord), ROW),
    known("22P05", Means::Final(DenialKind::Other), ENCODING),
    known("22021", Means::Final(DenialKind::Other), ENCODING),
    known("08*", Means::Unfinished, UNFINISHED),
    known("57*", Means::Unfinished, UNFINISHED),
    known("58*", Means::Unfinished, UNFINISHED),
    known("F0*", Means::Unfinished, UNFINISHED),
    known("XX*", Means::Unfinished, UNFINISHED),
    known("25*", Means::Passes(FaultKind::Server), ENDED),
    known("40*", Means::Passes(FaultKind::Server), ENDED),
    known(
        "53*",
        Means::Mended(FaultKind::Server),
        "the server is short of a resource, such as memory: look at its log",
    ),
    known("54*", Means::Mended(FaultKind::Server), "the server is at one of its limits"),
    known("55*", Means::Passes(FaultKind::Server), ENDED),
];

const STANDBY: &str = "this server takes no writes: connect to the primary, not to a standby";
const UNFINISHED: &str = "the server has failed or ended the session";
const ENDED: &str = "the server has ended the transaction";
const ENCODING: &str = "the database cannot store this name: its encoding must be UTF8";

impl ServerError<'_> {
    /// The outcome of the statement that was answered by it.
    pub fn outcome(&self) -> Outcome {
        match self.means() {
            (_, advice) if self.ends_session => {
                Outcome::Unknown(Fault::new(FaultKind::Server, &self.explained(advice)))
            }
            (means, advice) => means.outcome(&self.explained(advice)),
        }
    }

    /// The same before any statement was sent, where nothing can have been applied.
    pub fn refusal(&self) -> Refusal {
        let (means, advice) = self.means();
        let words = self.explained(advice);
        means.refusal(&words).unwrap_or_else(|| Refusal::Unavailable(Fault::new(FaultKind::Server, &words)))
    }

    /// Tells if this server takes no writes while another one may: what follows should go by a new connection.
    pub fn leads_elsewhere(&self) -> bool {
        self.means().0 == Means::Elsewhere
    }

    fn means(&self) -> (Means, &'static str) {
        match find(&KNOWN, self.code) {
            Some(known) => (known.means, known.advice),
            None if self.code.len() < 2 => (Means::Unfinished, ""),
            None => (Means::Final(DenialKind::Other), ""),
        }
    }

    fn explained(&self, advice: &str) -> String {
        let (code, message) = (self.code, said(self.message));
        if advice.is_empty() { format!("{code} {message}") } else { format!("{advice} ({code} {message})") }
    }
}
