//! Futures on threads: waiting for one on the calling thread, and doing blocking work away from it.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use leasehold_core::Monotonic;

use crate::error::Error;
use crate::host::clock;
use crate::host::sync::thread::{self, Thread};
use crate::host::sync::{Arc, Mutex};

/// The next step of a thread whose future is not ready.
pub(crate) enum Pause {
    /// Sleeps until it is woken.
    UntilWoken,
    /// Sleeps until it is woken, and no longer than this.
    AtMost(Duration),
    /// Does not sleep: it was busy for the future meanwhile.
    #[cfg(feature = "redis")]
    None,
    /// Drops the future.
    GiveUp,
}

/// Runs a future to its end on the calling thread, which sleeps in between.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    block_on_until(future, || Pause::UntilWoken).expect("invariant: only `GiveUp` ends it early")
}

/// As [`block_on`], while `pause` wants to go on.
pub(crate) fn block_on_until<F: Future>(future: F, mut pause: impl FnMut() -> Pause) -> Option<F::Output> {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return Some(output),
            Poll::Pending => match pause() {
                Pause::UntilWoken => thread::park(),
                Pause::AtMost(most) => thread::park_timeout(most),
                #[cfg(feature = "redis")]
                Pause::None => {}
                Pause::GiveUp => return None,
            },
        }
    }
}

/// Runs a task that sleeps by its alarm to its end on the calling thread.
pub(crate) fn run<F: Future>(task: impl FnOnce(Alarm) -> F) -> F::Output {
    let alarm = Alarm::default();
    let output = block_on_until(task(alarm.clone()), || match alarm.0.lock().take() {
        None => Pause::UntilWoken,
        Some(until) => Pause::AtMost(until.since(clock::monotonic())),
    });
    output.expect("invariant: only `GiveUp` ends it early")
}

/// The times that a task sleeps until: the earliest of those that its last turn has asked for.
#[derive(Clone, Default)]
pub(crate) struct Alarm(Arc<Mutex<Option<Monotonic>>>);

impl Alarm {
    /// Ready at that time; until then, the task has another turn then at the latest.
    pub(crate) fn poll(&self, until: Monotonic) -> Poll<()> {
        if clock::monotonic() >= until {
            return Poll::Ready(());
        }
        let mut earliest = self.0.lock();
        *earliest = Some(earliest.map_or(until, |earliest| earliest.min(until)));
        Poll::Pending
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
pub(crate) async fn offload<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Result<R, Error> {
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
            let now = clock::monotonic();
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
