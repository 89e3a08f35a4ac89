//! A trial of the one thing that every lock depends on: that a conditional write is refused once its condition is false.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde_json::{Value, json};

use leasehold_core::Nonce;
use leasehold_core::op::Outcome;

use super::errors::{Heard, misfit};
use super::memory::Row;
use super::requests::Version;
use super::{Codec, HttpResponse, Request};

const BEGIN: &str = "begin";
const REPLACE: &str = "replace";

/// A trial under way, on the object `PREFIX` `trial.json`, which stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    codec: Codec,
    /// Makes the bodies of this trial differ from those of all others.
    nonce: Nonce,
    step: Step,
}

/// The result of a trial so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send this, and hand in the answer.
    Ask(Request),
    /// Conditions are honoured.
    Sound,
    /// A write was made although its condition was false: the store cannot keep locks.
    Ignored(&'static str),
    /// Another trial came between, so that this one shows nothing.
    Disturbed,
    /// A request was refused, or failed.
    Failed(Outcome),
}

/// The request that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Look,
    Begin,
    /// Reads, since the answer to `Begin` was that of a write whose condition is false. A proxy that sends requests twice
    /// answers so for a write that was made.
    ReadBegun,
    /// Creates what is there.
    CreateAgain(Version),
    Replace(Version),
    /// Reads, as above, what `Replace` of this version has left.
    ReadReplaced(Version),
    /// Replaces a version that was replaced.
    ReplaceAgain,
}

impl Trial {
    /// A trial, and its first request. The nonce is random.
    pub fn begin(codec: &Codec, nonce: Nonce) -> (Self, Request) {
        (Self { codec: codec.clone(), nonce, step: Step::Look }, codec.read(&key(codec)))
    }

    /// Takes the answer to the last request.
    pub fn answer(&mut self, answer: Result<&HttpResponse, Outcome>) -> Verdict {
        let heard = match &self.step {
            Step::Look | Step::ReadBegun | Step::ReadReplaced(_) => self.codec.heard_read(answer),
            Step::Begin | Step::CreateAgain(_) | Step::Replace(_) | Step::ReplaceAgain => {
                self.codec.heard_write(answer)
            }
        };
        let step = core::mem::replace(&mut self.step, Step::Look);
        match (step, heard) {
            (_, Heard::Failed(outcome)) => Verdict::Failed(outcome),
            (Step::Look, Heard::Read(row)) => self.ask(Step::Begin, row.version.as_ref()),
            (Step::Begin, Heard::Written(version)) => self.ask(Step::CreateAgain(version), None),
            (Step::CreateAgain(_), Heard::Written(_)) => Verdict::Ignored("an object that is there was created again"),
            (Step::CreateAgain(version), Heard::Raced) => {
                let old = version.clone();
                self.ask(Step::Replace(version), Some(&old))
            }
            (Step::Replace(old), Heard::Written(new)) => self.replaced(&old, &new),
            (Step::ReplaceAgain, Heard::Raced) => Verdict::Sound,
            (Step::ReplaceAgain, Heard::Written(_)) => Verdict::Ignored("a version that was replaced was written over"),
            (Step::Begin, Heard::Raced) => self.read(Step::ReadBegun),
            (Step::Replace(old), Heard::Raced) => self.read(Step::ReadReplaced(old)),
            (Step::ReadBegun, Heard::Read(row)) => match self.own(row, BEGIN) {
                Some(version) => self.ask(Step::CreateAgain(version), None),
                None => Verdict::Disturbed,
            },
            (Step::ReadReplaced(old), Heard::Read(row)) => match self.own(row, REPLACE) {
                Some(new) => self.replaced(&old, &new),
                None => Verdict::Disturbed,
            },
            (_, Heard::Read(_) | Heard::Written(_) | Heard::Raced) => Verdict::Failed(misfit()),
        }
    }

    fn replaced(&mut self, old: &Version, new: &Version) -> Verdict {
        match old == new {
            true => Verdict::Ignored("a new body did not change the version"),
            false => self.ask(Step::ReplaceAgain, Some(old)),
        }
    }

    /// The version of what this trial wrote by this name; `None` if something else is there.
    fn own(&self, row: Row, name: &str) -> Option<Version> {
        let written: Value = serde_json::from_slice(&row.body?).ok()?;
        (written["trial"] == name && written["by"] == self.by()).then_some(row.version)?
    }

    fn by(&self) -> String {
        let by: Vec<String> = self.nonce.as_bytes().iter().map(ToString::to_string).collect();
        by.join(".")
    }

    fn read(&mut self, step: Step) -> Verdict {
        self.step = step;
        Verdict::Ask(self.codec.read(&key(&self.codec)))
    }

    fn ask(&mut self, step: Step, version: Option<&Version>) -> Verdict {
        let name = match &step {
            Step::Look | Step::ReadBegun | Step::ReadReplaced(_) => "look",
            Step::Begin => BEGIN,
            Step::CreateAgain(_) => "create again",
            Step::Replace(_) => REPLACE,
            Step::ReplaceAgain => "replace again",
        };
        let body = json!({ "trial": name, "by": self.by() }).to_string();
        self.step = step;
        Verdict::Ask(self.codec.write(&key(&self.codec), version, body.as_bytes()))
    }
}

/// Several writes at once under one condition, of which a service may make one. A service that looks, and writes a moment
/// later, passes the [trial](Trial), and makes several of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    codec: Codec,
    nonce: Nonce,
}

impl Race {
    /// How many write, each on its own connection.
    pub const RIVALS: usize = 6;

    /// A race for the object `PREFIX` `race.json`, which stays, and its first request. The nonce is random.
    pub fn begin(codec: &Codec, nonce: Nonce) -> (Self, Request) {
        (Self { codec: codec.clone(), nonce }, codec.read(&course(codec)))
    }

    /// The writes: all create the object, or replace the version that was read.
    ///
    /// # Errors
    /// The object could not be read.
    pub fn writes(&self, answer: Result<&HttpResponse, Outcome>) -> Result<Vec<Request>, Outcome> {
        let seen = match self.codec.heard_read(answer) {
            Heard::Read(row) => row.version,
            Heard::Failed(outcome) => return Err(outcome),
            Heard::Written(_) | Heard::Raced => return Err(misfit()),
        };
        let by: Vec<String> = self.nonce.as_bytes().iter().map(ToString::to_string).collect();
        let write = |rival: usize| {
            let body = json!({ "rival": rival, "by": by.join(".") }).to_string();
            self.codec.write(&course(&self.codec), seen.as_ref(), body.as_bytes())
        };
        Ok((0..Self::RIVALS).map(write).collect())
    }

    /// Tells if this answer says that its write was made.
    pub fn is_made(&self, answer: Result<&HttpResponse, Outcome>) -> bool {
        matches!(self.codec.heard_write(answer), Heard::Written(_))
    }
}

fn course(codec: &Codec) -> String {
    alloc::format!("{}race.json", codec.prefix)
}

fn key(codec: &Codec) -> String {
    alloc::format!("{}trial.json", codec.prefix)
}
