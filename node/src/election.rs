//! Leader election.
//!
//! The election has a thread of its own, which waits for each callback. JavaScript asks for one [`Step`] after the
//! other, and reports the end of its callback.

use std::sync::{Arc, mpsc};

use leasehold::ffi::{self, Mutex};
use leasehold::{ElectionRequest, Error};
use napi_derive::napi;
use tokio::sync::{Mutex as AsyncMutex, mpsc as steps, oneshot};

use crate::failure::Failure;
use crate::info::whole;
use crate::reactor::{Operation, Outcome};

/// A candidacy.
#[napi]
pub struct Election {
    steps: Arc<AsyncMutex<steps::UnboundedReceiver<Step>>>,
    running: Mutex<Option<leasehold::Election>>,
}

/// A callback that is due.
#[napi]
pub struct Step {
    term: Term,
    done: Option<mpsc::Sender<Verdict>>,
}

enum Term {
    Begun(Arc<leasehold::Lease>),
    Ended(Option<Error>),
}

/// The result of a callback.
enum Verdict {
    Done,
    /// The name of the callback, with what it has thrown.
    Threw(String),
}

pub(crate) fn start(request: ElectionRequest) -> Result<Election, Error> {
    let (due, steps) = steps::unbounded_channel();
    let also_due = due.clone();
    let election = request
        .on_start(move |lease| call(&due, Term::Begun(Arc::clone(lease))))
        .on_stop(move |loss| call(&also_due, Term::Ended(loss.cloned())))
        .start()?;
    Ok(Election { steps: Arc::new(AsyncMutex::new(steps)), running: Mutex::new(Some(election)) })
}

/// Waits for the callback. If the receiver is gone, no callback can run, and nothing is waited for.
fn call(due: &steps::UnboundedSender<Step>, term: Term) {
    let (done, verdict) = mpsc::channel();
    if due.send(Step { term, done: Some(done) }).is_err() {
        return;
    }
    if let Ok(Verdict::Threw(text)) = verdict.recv() {
        // Without the message of a panic: JavaScript has shown the exception.
        std::panic::resume_unwind(Box::new(ffi::CallbackEnd(Some(text))));
    }
}

impl Election {
    fn look<R>(&self, look: impl FnOnce(&leasehold::Election) -> R) -> Option<R> {
        self.running.lock().as_ref().map(look)
    }
}

impl Drop for Election {
    fn drop(&mut self) {
        let Some(election) = self.running.lock().take() else { return };
        // The end of an election waits for callbacks, which this thread would have to run. If no thread can be started,
        // it campaigns on until its client is closed.
        let election = std::mem::ManuallyDrop::new(election);
        let _ = std::thread::Builder::new().spawn(move || drop(std::mem::ManuallyDrop::into_inner(election)));
    }
}

#[napi]
impl Election {
    /// The fencing token of the current term.
    #[napi(getter, catch_unwind)]
    pub fn token(&self) -> Option<i64> {
        self.look(leasehold::Election::token).flatten().map(whole)
    }

    /// The error of the last campaign, if it failed, or of a callback.
    #[napi(getter, catch_unwind)]
    pub fn last_error(&self) -> Option<Failure> {
        self.look(leasehold::Election::last_error).flatten().map(Failure::from)
    }

    /// The next callback that is due; nothing when the candidacy is over.
    #[napi(catch_unwind)]
    pub fn step(&self) -> Operation {
        let steps = Arc::clone(&self.steps);
        Operation::new(async move { Ok(steps.lock().await.recv().await.map_or(Outcome::Nothing, Outcome::Step)) })
    }

    /// See `Election::resign`. Callbacks are still requested meanwhile.
    #[napi(catch_unwind)]
    pub fn resign(&self) -> Operation {
        let Some(election) = self.running.lock().take() else {
            return Operation::new(std::future::ready(Ok(Outcome::Nothing)));
        };
        let (resigned, over) = oneshot::channel();
        let resign = move || {
            let _ = resigned.send(election.resign());
        };
        if let Err(error) = std::thread::Builder::new().spawn(resign) {
            return Operation::failed(Failure::internal(format!("cannot start a thread: {error}")));
        }
        Operation::new(async move {
            // A closed channel means that the thread has ended, and the candidacy with it.
            let resigned = over.await.unwrap_or(Ok(()));
            resigned.map(|()| Outcome::Nothing).map_err(Failure::from)
        })
    }
}

#[napi]
impl Step {
    /// The reason why the term has ended, unless this candidate resigned.
    #[napi(getter, catch_unwind)]
    pub fn loss(&self) -> Option<Failure> {
        match &self.term {
            Term::Begun(_) => None,
            Term::Ended(loss) => loss.clone().map(Failure::from),
        }
    }

    /// The callback is done: the election goes on.
    #[napi(catch_unwind)]
    pub fn done(&mut self) {
        self.end(Verdict::Done);
    }

    /// The callback has thrown: the term ends. The text names it, and says what.
    #[napi(catch_unwind)]
    pub fn threw(&mut self, text: String) {
        self.end(Verdict::Threw(text));
    }
}

impl Step {
    /// The lease of the term, if one has begun.
    pub(crate) fn begun(&self) -> Option<Arc<leasehold::Lease>> {
        match &self.term {
            Term::Begun(lease) => Some(Arc::clone(lease)),
            Term::Ended(_) => None,
        }
    }

    fn end(&mut self, verdict: Verdict) {
        if let Some(done) = self.done.take() {
            // An election that has ended meanwhile needs no verdict.
            let _ = done.send(verdict);
        }
    }
}
