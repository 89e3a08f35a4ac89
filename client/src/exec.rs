//! Futures on threads: waiting for one on the calling thread, and doing blocking work away from it.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use leasehold_core::Monotonic;

use crate::error::Error;
#[cfg(feature = "testing")]
use crate::host::sync::atomic::{AtomicBool, Ordering};
use crate::host::sync::thread::{self, JoinHandle, Thread, ThreadId};
use crate::host::sync::{Arc, Mutex};
use crate::host::time::{Ring, Time};
#[cfg(feature = "testing")]
use crate::host::world::{self, Aside, Sleep, Waited};

/// The next step of a thread whose future is not ready.
pub(crate) enum Pause {
    /// Sleeps until it is woken.
    UntilWoken,
    /// Sleeps until it is woken, and no longer than this.
    AtMost(Duration),
    /// The same, and this is only for asking again, so that a clock of tests need not go so far.
    AskAfter(Duration),
    /// Asks again after the first time, and sleeps no longer than the second.
    AskWithin(Duration, Duration),
    /// Does not sleep: it was busy for the future meanwhile.
    #[cfg(feature = "redis")]
    None,
    /// Drops the future.
    GiveUp,
}

impl Pause {
    /// How far a clock of tests may go meanwhile: without a limit, until something ends the wait.
    const fn most(&self) -> Option<Duration> {
        if let Self::AtMost(most) | Self::AskWithin(_, most) = self { Some(*most) } else { None }
    }

    fn sleep(&self) {
        if let Self::AskWithin(every, most) = self {
            thread::park_timeout(*every.min(most));
        } else if let Self::AtMost(most) | Self::AskAfter(most) = self {
            thread::park_timeout(*most);
        } else {
            thread::park();
        }
    }
}

/// The end of a wait whose future is not ready.
#[derive(Debug)]
pub(crate) enum Stopped {
    GivenUp,
    /// Nothing that happens by itself ends it.
    #[cfg(feature = "testing")]
    Endless(Error),
}

impl Stopped {
    /// The error that says so; `given_up` makes that of a wait that was given up.
    pub(crate) fn into_error(self, given_up: impl FnOnce() -> Error) -> Error {
        match self {
            Self::GivenUp => given_up(),
            #[cfg(feature = "testing")]
            Self::Endless(error) => error,
        }
    }
}

/// Runs a future to its end on the calling thread, which sleeps in between.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    match block_on_until(future, || Pause::UntilWoken) {
        Ok(output) => output,
        Err(Stopped::GivenUp) => unreachable!("invariant: only `GiveUp` ends it early"),
        #[cfg(feature = "testing")]
        Err(Stopped::Endless(error)) => panic!("{error}"),
    }
}

/// As [`block_on`], while `pause` wants to go on.
///
/// # Errors
/// It does not, or by the clock of a test the wait never ends.
pub(crate) fn block_on_until<F: Future>(future: F, mut pause: impl FnMut() -> Pause) -> Result<F::Output, Stopped> {
    let mut future = pin!(future);
    let unpark = Arc::new(Unpark::of_this_thread());
    let waker = Waker::from(Arc::clone(&unpark));
    let mut context = Context::from_waker(&waker);
    let mut wait = Wait::new();
    loop {
        wait.begin();
        let polled = future.as_mut().poll(&mut context);
        wait.note();
        match polled {
            Poll::Ready(output) => {
                wait.end();
                return Ok(output);
            }
            Poll::Pending => match pause() {
                #[cfg(feature = "redis")]
                Pause::None => {}
                Pause::GiveUp => return Err(Stopped::GivenUp),
                pause => {
                    if !wait.steps(&unpark, pause.most())? {
                        pause.sleep();
                    }
                }
            },
        }
    }
}

/// Wakes a thread that waits for a future.
struct Unpark {
    thread: Thread,
    /// Since it was asked last. Only a wait that moves the time asks.
    #[cfg(feature = "testing")]
    is_woken: AtomicBool,
}

impl Unpark {
    fn of_this_thread() -> Self {
        Self {
            thread: thread::current(),
            #[cfg(feature = "testing")]
            is_woken: AtomicBool::new(false),
        }
    }
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        #[cfg(feature = "testing")]
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// A wait of this thread for a future, which may be one for a world of tests: then this thread lets its time pass.
struct Wait {
    #[cfg(feature = "testing")]
    waited: Option<Waited>,
    #[cfg(feature = "testing")]
    _aside: Aside,
}

#[cfg(not(feature = "testing"))]
#[allow(clippy::unused_self, reason = "nobody lets the time of a machine pass")]
impl Wait {
    const fn new() -> Self {
        Self {}
    }

    const fn begin(&self) {}

    const fn note(&mut self) {}

    #[allow(clippy::unnecessary_wraps, reason = "the time of a machine ends every wait")]
    const fn steps(&self, _: &Unpark, _: Option<Duration>) -> Result<bool, Stopped> {
        Ok(false)
    }

    const fn end(&self) {}
}

#[cfg(feature = "testing")]
impl Wait {
    fn new() -> Self {
        Self { waited: None, _aside: Aside::take() }
    }

    /// The future is about to be polled.
    fn begin(&self) {
        drop(world::waited_for());
    }

    /// It was polled.
    fn note(&mut self) {
        Waited::add(&mut self.waited, world::waited_for());
    }

    /// It waits: lets something happen that may end the wait. Answers whether that has been done, and no sleep is needed.
    ///
    /// # Errors
    /// The wait never ends.
    fn steps(&self, unpark: &Unpark, most: Option<Duration>) -> Result<bool, Stopped> {
        let Some(waited) = &self.waited else { return Ok(false) };
        if !unpark.is_woken.swap(false, Ordering::AcqRel) {
            let most = most.map_or(Monotonic::FAR, |most| waited.world.monotonic().plus(most));
            if waited.step(most) && !unpark.is_woken.load(Ordering::Acquire) {
                return Err(Stopped::Endless(waited.never_ends()));
            }
        }
        Ok(true)
    }

    /// It has ended: what it has brought about happens.
    fn end(&self) {
        if let Some(waited) = &self.waited {
            waited.world.settle();
        }
    }
}

/// Runs a task that sleeps by its alarm to its end on the calling thread.
fn run<F: Future>(task: impl FnOnce(Alarm) -> F) -> F::Output {
    let alarm = Alarm::of(&Time::System);
    let output = block_on_until(task(alarm.clone()), || match alarm.ring.lock().at.take() {
        None => Pause::UntilWoken,
        Some(until) => Pause::AtMost(until.since(alarm.time.monotonic())),
    });
    output.expect("invariant: only `GiveUp` ends it early")
}

/// The times that a task sleeps until: the earliest of those that its last turn has asked for.
#[derive(Clone)]
pub(crate) struct Alarm {
    time: Time,
    ring: Arc<Mutex<Ring>>,
}

impl Alarm {
    fn of(time: &Time) -> Self {
        Self { time: time.clone(), ring: Arc::default() }
    }

    /// Ready at that time; until then, the task has another turn then at the latest.
    pub(crate) fn poll(&self, until: Monotonic) -> Poll<()> {
        let mut ring = self.ring.lock();
        if self.time.monotonic() >= until || std::mem::take(&mut ring.is_cut_short) {
            return Poll::Ready(());
        }
        ring.at = Some(ring.at.map_or(until, |earliest| earliest.min(until)));
        Poll::Pending
    }
}

/// A task that was started, on a thread of its own.
pub(crate) struct Started {
    pub(crate) runner: Runner,
    thread: Option<JoinHandle<()>>,
}

impl Started {
    /// Waits for the end of its thread; `false` if it has none.
    pub(crate) fn join(self) -> bool {
        self.thread.map(JoinHandle::join).is_some()
    }

    /// Leaves the thread to itself, if another process has it as well.
    pub(crate) fn forget(self) {
        std::mem::forget(self.thread);
    }
}

/// The thread that runs a task, or the number that it has in a world of tests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runner {
    Thread(ThreadId),
    #[cfg(feature = "testing")]
    Task(u64),
}

impl Runner {
    /// That of the caller's code.
    pub(crate) fn here() -> Self {
        #[cfg(feature = "testing")]
        if let Some(task) = world::task_here() {
            return Self::Task(task);
        }
        Self::Thread(thread::current().id())
    }

    /// Tells if it runs the caller's code.
    pub(crate) fn is_here(self) -> bool {
        match self {
            Self::Thread(thread) => thread == thread::current().id(),
            #[cfg(feature = "testing")]
            Self::Task(task) => world::is_polled_here(task),
        }
    }
}

impl Time {
    /// Starts a task that sleeps by its alarm, on a thread of its own.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) where no thread can be started.
    pub(crate) fn start<F>(&self, name: &str, task: impl FnOnce(Alarm) -> F + Send + 'static) -> Result<Started, Error>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        match self {
            Self::System => {
                let thread = thread::Builder::new().name(name.to_owned()).spawn(move || run(task));
                let thread = thread.map_err(|error| Error::internal(format!("cannot start a thread: {error}")))?;
                Ok(Started { runner: Runner::Thread(thread.thread().id()), thread: Some(thread) })
            }
            #[cfg(feature = "testing")]
            Self::Test(world) => {
                let alarm = Alarm::of(self);
                let task = world.spawn(Box::pin(task(alarm.clone())), alarm.ring);
                Ok(Started { runner: Runner::Task(task), thread: None })
            }
        }
    }

    /// Waits for so long.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) where no thread can be started.
    pub(crate) async fn sleep(&self, time: Duration) -> Result<(), Error> {
        self.sleep_within(time, true).await
    }

    /// The same between two looks, of which there may be any number: the wait for what they look for has no end by this.
    ///
    /// # Errors
    /// As [`Time::sleep`].
    pub(crate) async fn sleep_between_looks(&self, time: Duration) -> Result<(), Error> {
        self.sleep_within(time, false).await
    }

    async fn sleep_within(&self, time: Duration, _names_end: bool) -> Result<(), Error> {
        match self {
            Self::System => offload(move || thread::sleep(time)).await,
            #[cfg(feature = "testing")]
            Self::Test(world) => {
                Sleep::new(world, time, _names_end).await;
                Ok(())
            }
        }
    }

    /// Does blocking work away from a future.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) where no thread can be started.
    pub(crate) async fn offload<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Error> {
        match self {
            Self::System => offload(work).await,
            #[cfg(feature = "testing")]
            Self::Test(_) => Ok(work()),
        }
    }

    /// As [`each`].
    pub(crate) fn each<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<Option<R>> {
        match self {
            Self::System => each(items, work),
            #[cfg(feature = "testing")]
            Self::Test(_) => items.iter().map(|item| Some(work(item))).collect(),
        }
    }
}

/// Does the same blocking work to all items at once. `None` where a thread could not be started, or has panicked.
pub(crate) fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<Option<R>> {
    let work = &work;
    thread::scope(|scope| {
        let started: Vec<_> = items
            .iter()
            .map(|item| thread::Builder::new().name(OFFLOAD.to_owned()).spawn_scoped(scope, move || work(item)))
            .collect();
        started.into_iter().map(|thread| thread.ok()?.join().ok()).collect()
    })
}

/// The name of threads whose result a caller awaits.
pub(crate) const OFFLOAD: &str = "leasehold-offload";

/// Does blocking work on a thread of its own; for rare work such as opening a store.
async fn offload<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Result<R, Error> {
    let (sender, result) = oneshot();
    thread::Builder::new()
        .name(OFFLOAD.to_owned())
        .spawn(move || sender.send(work()))
        .map_err(|error| Error::internal(format!("cannot start a thread: {error}")))?;
    result.await.ok_or_else(|| Error::internal("a thread of leasehold has panicked; please report this"))
}

/// A value that one thread waits for, and another one has.
pub(crate) fn oneshot<T>() -> (Sender<T>, Receiver<T>) {
    let mailbox = Arc::new(Mutex::new(Mailbox { value: None, is_closed: false, waker: None }));
    (Sender(Arc::clone(&mailbox)), Receiver(mailbox))
}

struct Mailbox<T> {
    value: Option<T>,
    is_closed: bool,
    waker: Option<Waker>,
}

/// The half that has the value. Dropping it sends none.
pub(crate) struct Sender<T>(Arc<Mutex<Mailbox<T>>>);

/// The half that waits for the value, `None` if the other half was dropped.
pub(crate) struct Receiver<T>(Arc<Mutex<Mailbox<T>>>);

impl<T> Sender<T> {
    pub(crate) fn send(self, value: T) {
        self.0.lock().value = Some(value);
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut mailbox = self.0.lock();
        mailbox.is_closed = true;
        let waker = mailbox.waker.take();
        drop(mailbox);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Future for Receiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut mailbox = self.0.lock();
        match mailbox.value.take() {
            None if !mailbox.is_closed => {
                mailbox.waker = Some(context.waker().clone());
                Poll::Pending
            }
            value => Poll::Ready(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_has_a_turn_at_the_earliest_of_its_alarms() {
        let (soon, late) = (Duration::from_millis(2), Duration::from_secs(3_600));
        let rang = run(|alarm| async move {
            let now = Time::System.monotonic();
            let (mut turns, late, soon) = (0, now.plus(late), now.plus(soon));
            std::future::poll_fn(|_| {
                turns += 1;
                if alarm.poll(late).is_ready() { Poll::Ready(None) } else { alarm.poll(soon).map(|()| Some(turns)) }
            })
            .await
        });
        assert!(rang.is_some_and(|turns| turns > 1), "{rang:?}");
    }

    #[test]
    fn a_value_comes_once_and_a_dropped_sender_sends_none() {
        let (sender, receiver) = oneshot();
        let waiting = std::thread::spawn(|| block_on(receiver));
        sender.send(7);
        assert_eq!(waiting.join().unwrap(), Some(7));
        let (sender, receiver) = oneshot::<u32>();
        let waiting = std::thread::spawn(|| block_on(receiver));
        drop(sender);
        assert_eq!(waiting.join().unwrap(), None);
    }
}
