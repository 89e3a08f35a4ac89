//! The meaning of an error: certainly not applied, and why, or unknown.
//!
//! An error of severity `ERROR` ends the statement's transaction, so nothing of it was applied. Errors that end the
//! session may come after the commit, and errors of connections may be a pooler's word about a server that it has lost.

use alloc::format;
use alloc::string::String;

use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Outcome, Refusal};

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

enum Means {
    Unknown,
    Passes(FaultKind, &'static str),
    Lasts(DenialKind, &'static str),
}

const GRANTS: &str = "the user needs SELECT, INSERT, UPDATE and DELETE on the table of locks and USAGE on its schema; \
                      `leasehold store show` prints the statements";
const TABLE: &str = "the table of locks is missing, or is not the one of this version: make it with `leasehold store \
                     create`, or run the SQL of `leasehold store show`; is `schema` right?";
const ROW: &str =
    "the row of this lock was changed by hand to what no client writes; if nobody holds the lock, delete it";
const LOGIN: &str = "user or password are wrong, or the server does not let this user in from here: check the url and \
                     pg_hba.conf";

impl ServerError<'_> {
    /// The outcome of the statement that was answered by it.
    pub fn outcome(&self) -> Outcome {
        match self.means() {
            Means::Unknown => Outcome::Unknown(Fault::new(FaultKind::Server, &self.explained(""))),
            _ if self.ends_session => Outcome::Unknown(Fault::new(FaultKind::Server, &self.explained(""))),
            Means::Passes(..) | Means::Lasts(..) => Outcome::NotApplied(self.refusal()),
        }
    }

    /// The same before any statement was sent, where nothing can have been applied.
    pub fn refusal(&self) -> Refusal {
        match self.means() {
            Means::Unknown => Refusal::Unavailable(Fault::new(FaultKind::Server, &self.explained(""))),
            Means::Passes(kind, advice) => Refusal::Unavailable(Fault::new(kind, &self.explained(advice))),
            Means::Lasts(kind, advice) => Refusal::Denied(Denial::new(kind, &self.explained(advice))),
        }
    }

    fn means(&self) -> Means {
        use DenialKind::{CorruptRecord, Other, Permission, Schema, StorageFull};
        use FaultKind::{Busy, Server};
        match self.code {
            "40001" | "40P01" => Means::Passes(Busy, "another transaction came first: it passes"),
            "40003" => Means::Unknown,
            "55P03" => Means::Passes(Busy, "a transaction holds the row of this lock: end it soon"),
            "57014" => Means::Passes(Busy, "the statement was cancelled, by an administrator or statement_timeout"),
            "25006" | "55000" => {
                Means::Passes(Server, "this server takes no writes: connect to the primary, not to a standby")
            }
            "57P03" => Means::Passes(Server, "the server is starting, stopping or recovering: it passes"),
            "53300" => Means::Passes(
                Busy,
                "the server has no connection left: raise max_connections, or put PgBouncer in front of it",
            ),
            "53100" => Means::Lasts(StorageFull, "the server's disk is full"),
            "28000" | "28P01" => Means::Lasts(Permission, LOGIN),
            "42501" => Means::Lasts(Permission, GRANTS),
            "3D000" => Means::Lasts(Schema, "the database of the url does not exist"),
            "42P01" | "42703" | "3F000" | "42P10" | "42804" => Means::Lasts(Schema, TABLE),
            "23502" | "23514" | "22003" | "22008" => Means::Lasts(CorruptRecord, ROW),
            "22P05" | "22021" => Means::Lasts(Other, "the database cannot store this name: its encoding must be UTF8"),
            code => match code.get(..2).unwrap_or_default() {
                "08" | "57" | "58" | "F0" | "XX" | "" => Means::Unknown,
                "40" | "53" | "54" | "55" | "25" => Means::Passes(Server, ""),
                _ => Means::Lasts(Other, ""),
            },
        }
    }

    fn explained(&self, advice: &str) -> String {
        let (code, message) = (self.code, said(self.message));
        if advice.is_empty() { format!("{code} {message}") } else { format!("{advice} ({code} {message})") }
    }
}
