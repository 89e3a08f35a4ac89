//! Futures on threads: waiting for one on the calling thread, and doing blocking work away from it.

use std::future::{Future, poll_fn};
use std::pin::pin;
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
    struct Mailbox<R> {
        result: Option<std::thread::Result<R>>,
        waker: Option<Waker>,
    }

    let mailbox = Arc::new(Mutex::new(Mailbox { result: None, waker: None }));
    let of_thread = Arc::clone(&mailbox);
    let run = move || {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        let mut mailbox = of_thread.lock();
        mailbox.result = Some(result);
        let waker = mailbox.waker.take();
        drop(mailbox);
        if let Some(waker) = waker {
            waker.wake();
        }
    };
    thread::Builder::new()
        .name(OFFLOAD.to_owned())
        .spawn(run)
        .map_err(|error| Error::internal(format!("cannot start a thread: {error}")))?;
    let result = poll_fn(|context| {
        let mut mailbox = mailbox.lock();
        match mailbox.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                mailbox.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    })
    .await;
    result.map_err(|_| Error::internal("a thread of leasehold has panicked; please report this"))
}
