//! A term: a lease of a candidate or worker, from its grant to its end of whatever kind, between two callbacks. And the task of
//! those who have one term after the other.

use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tracing::Level;

use crate::callbacks::{self, Ending};
use crate::driver::Caller;
use crate::error::{Error, ErrorKind};
use crate::exec::{self, Alarm, Pause, Runner, Started, Stopped};
use crate::host::fork;
use crate::host::sync::{Arc, Mutex};
use crate::host::time::Time;
use crate::locks::lease::Lease;
use crate::reports;

/// The holder of a lease, with the callbacks that begin and end its work.
pub(super) trait Term {
    /// The names of the callbacks.
    const CALLBACKS: (&'static str, &'static str);
    /// The report of a release that is not confirmed.
    const UNCONFIRMED: &'static str;

    fn lease(&self) -> &Lease;

    /// Calls the callback that starts the work.
    fn start(&mut self) -> Ending;

    /// Calls the callback that ends the work, with the reason if the lease was lost.
    fn stop(&mut self, loss: Option<&Error>) -> Ending;

    /// Tells if the holder wants to let go of the lease; wakes the task once it does.
    fn poll_leaving(&self, context: &Context<'_>) -> bool;

    /// The first callback has ended. The failure of one that was cancelled is reported to nobody.
    fn started(&self, started: &Result<(), Option<Error>>);

    /// The work is to end.
    fn ending(&self);

    /// The second callback has ended as well. The failure is that of either; the lease is about to be released.
    fn stopped(&self, failed: &Result<(), Option<Error>>);
}

/// The end of a term.
pub(super) struct Ended {
    pub(super) is_lost: bool,
    pub(super) has_failed: bool,
}

/// Holds the lease of a term to its end.
pub(super) async fn hold(term: &mut impl Term) -> Ended {
    let (start, stop) = callbacks_of(term);
    let resource = term.lease().resource().to_owned();
    let started = callbacks::run_to_end(&resource, start, || term.start()).await;
    term.started(&started);
    let mut ended = Box::pin(term.lease().ended());
    let end = match &started {
        Ok(()) => {
            poll_fn(|context| if term.poll_leaving(context) { Poll::Ready(None) } else { ended.as_mut().poll(context) })
                .await
        }
        Err(_) => None,
    };
    term.ending();
    // One that was to be let go may be lost as well, which is the more urgent news.
    let lost = || term.lease().check(Duration::ZERO).err().filter(|error| error.kind() == ErrorKind::Lost);
    let loss = end.or_else(lost);
    let stopped = callbacks::run_to_end(&resource, stop, || term.stop(loss.as_ref())).await;
    let failed = started.and(stopped);
    term.stopped(&failed);
    // Also of one that was revoked: its record keeps others out until its work has ended, which it has.
    let released = term.lease().release_by(Caller::Blocking).await;
    if loss.is_none()
        && let Err(error) = released
        // A loss that the release has found is reported as one.
        && error.kind() == ErrorKind::StoreUnavailable
    {
        report(unconfirmed(term), error);
    }
    Ended { is_lost: loss.is_some(), has_failed: failed.is_err() }
}

const fn callbacks_of<T: Term>(_: &T) -> (&'static str, &'static str) {
    T::CALLBACKS
}

const fn unconfirmed<T: Term>(_: &T) -> &'static str {
    T::UNCONFIRMED
}

/// Warns of an error that nobody awaits.
pub(super) fn report(what: &'static str, error: Error) {
    reports::queue(Level::WARN, move || tracing::warn!(target: "leasehold", error = %error, "{what}"));
}

/// The task of a candidate or worker, as its handle knows it.
pub(crate) struct Running {
    over: Arc<Over>,
    runner: Runner,
    task: Option<Started>,
    time: Time,
    generation: u64,
}

/// The end of a task.
#[derive(Default)]
struct Over {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_over: bool,
    wakers: Vec<Waker>,
}

/// Marks the end of the task, also when it panics.
struct MarkOver(Arc<Over>);

impl Drop for MarkOver {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_over = true;
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Running {
    /// Starts the task.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] where no thread can be started.
    pub(super) fn start<F>(
        time: &Time,
        name: &str,
        work: impl FnOnce(Alarm) -> F + Send + 'static,
    ) -> Result<Self, Error>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let over = Arc::<Over>::default();
        let mark_over = MarkOver(Arc::clone(&over));
        let run = move |alarm| async move {
            let _over = mark_over;
            work(alarm).await;
        };
        let task = time.start(name, run)?;
        Ok(Self { over, runner: task.runner, task: Some(task), time: time.clone(), generation: fork::generation() })
    }

    /// Tells if a forked child inherited it: there is no such thread there, and any mutex may be locked forever.
    pub(crate) fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    pub(crate) fn is_over(&self) -> bool {
        !self.is_inherited() && self.over.state.lock().is_over
    }

    /// Tells if the task runs the caller's code.
    pub(super) fn is_here(&self) -> bool {
        self.runner.is_here()
    }

    /// Waits for the end of the task, unless the caller is one that the task waits for.
    pub(super) fn join(&mut self, is_called_back: bool) {
        let Some(task) = self.task.take() else { return };
        if self.is_inherited() {
            task.forget();
        } else if !is_called_back && !task.join() {
            exec::block_on(self.over());
        }
    }

    /// Waits for the end of the task until `interrupted` answers `true`; asked each time a `slice` has passed.
    ///
    /// # Errors
    /// By the clock of a test the wait never ends.
    pub(crate) fn wait(&self, slice: Duration, mut interrupted: impl FnMut() -> bool) -> Result<(), Error> {
        let pause = || if interrupted() { Pause::GiveUp } else { Pause::AskAfter(slice) };
        match exec::block_on_until(self.over(), pause) {
            Ok(()) | Err(Stopped::GivenUp) => Ok(()),
            #[cfg(feature = "testing")]
            Err(Stopped::Endless(error)) => Err(error),
        }
    }

    /// Ready at the end of the task.
    pub(crate) fn over(&self) -> impl Future<Output = ()> + Send + 'static {
        let (over, time) = ((!self.is_inherited()).then(|| Arc::clone(&self.over)), self.time.clone());
        poll_fn(move |context| {
            let Some(over) = &over else { return Poll::Ready(()) };
            time.note_wait();
            let mut state = over.state.lock();
            if state.is_over {
                return Poll::Ready(());
            }
            if !state.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
                state.wakers.push(context.waker().clone());
            }
            Poll::Pending
        })
    }

    /// Leaves the task to itself: nobody waits for its end.
    pub(crate) fn let_go(&mut self) {
        if let Some(task) = self.task.take().filter(|_| self.is_inherited()) {
            task.forget();
        }
    }
}

/// A candidacy, or a worker's part in shards.
pub(crate) trait Ends {
    fn running(&self) -> &Running;

    fn running_mut(&mut self) -> &mut Running;

    /// Begins to end, and waits for nothing. Not for what a forked child inherited.
    fn ask_to_end(&self);

    /// Tells if the calling thread is one that the end waits for.
    fn is_called_back(&self) -> bool;

    /// The failure of a callback that stands.
    fn noted_failure(&self) -> Option<Error>;

    fn begin_to_end(&self) {
        if !self.running().is_inherited() {
            self.ask_to_end();
        }
    }

    fn end(&mut self) {
        self.begin_to_end();
        let is_called_back = !self.running().is_inherited() && self.is_called_back();
        self.running_mut().join(is_called_back);
    }

    /// That of the parent is none of a forked child.
    fn failure(&self) -> Option<Error> {
        if self.running().is_inherited() { None } else { self.noted_failure() }
    }
}
