//! Futures on threads: waiting for one on the calling thread, and doing blocking work away from it.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::error::Error;
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
