//! Leader election.

use std::sync::Arc;

use leasehold::ffi::{self, Unawaited};
use leasehold::{Client, ElectionRequest, Error};
use napi_derive::napi;

use crate::failure::Failure;
use crate::info::whole;
use crate::reactor::{Operation, Outcome};
use crate::terms::{self, Due, Steps};

/// A candidacy.
#[napi]
pub struct Election {
    steps: Steps<Term>,
    running: Arc<Unawaited<leasehold::Election>>,
}

/// A callback that is due.
#[napi]
pub struct Step(Due<Term>);

enum Term {
    Begun(Arc<leasehold::Lease>),
    Ended(Option<Error>),
}

pub(crate) fn start(client: &Client, request: ElectionRequest) -> Result<Election, Error> {
    let (started, steps) = terms::steps(client);
    let stopped = started.clone();
    let request = ffi::on_start(request, move |lease| started.call(Term::Begun(Arc::clone(lease))));
    let request = ffi::on_stop(request, move |loss| stopped.call(Term::Ended(loss.cloned())));
    Ok(Election { steps, running: Arc::new(Unawaited::new(request.start()?)) })
}

#[napi]
impl Election {
    /// The fencing token of the current term.
    #[napi(getter, catch_unwind)]
    pub fn token(&self) -> Option<i64> {
        self.running.token().map(whole)
    }

    /// The error of the last campaign, if it failed, or of a callback.
    #[napi(getter, catch_unwind)]
    pub fn last_error(&self) -> Option<Failure> {
        self.running.last_error().map(Failure::from)
    }

    /// The next callback that is due; nothing when the candidacy is over.
    #[napi(catch_unwind)]
    pub fn step(&self) -> Operation {
        self.steps.next(|due| Outcome::Step(Step(due)))
    }

    /// See `Election::resign`. Callbacks are still requested meanwhile.
    #[napi(catch_unwind)]
    pub fn resign(&self) -> Operation {
        terms::end(&self.running)
    }
}

#[napi]
impl Step {
    /// The reason why the term has ended, unless this candidate resigned.
    #[napi(getter, catch_unwind)]
    pub fn loss(&self) -> Option<Failure> {
        match &self.0.about {
            Term::Begun(_) => None,
            Term::Ended(loss) => loss.clone().map(Failure::from),
        }
    }

    /// The callback is done: the election goes on.
    #[napi(catch_unwind)]
    pub fn done(&mut self) {
        self.0.end(None);
    }

    /// The callback has thrown: the term ends. The text names it, and says what.
    #[napi(catch_unwind)]
    pub fn threw(&mut self, text: String) {
        self.0.end(Some(text));
    }
}

impl Step {
    /// The lease of the term, if one has begun.
    pub(crate) fn begun(&self) -> Option<Arc<leasehold::Lease>> {
        match &self.0.about {
            Term::Begun(lease) => Some(Arc::clone(lease)),
            Term::Ended(_) => None,
        }
    }
}
