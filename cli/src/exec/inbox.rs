//! One queue for all that can happen while `exec` runs, so that one thread can decide what follows.

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use rustix::process::Signal;

/// How often a future is polled that nobody wakes.
const GLANCE: Duration = Duration::from_secs(1);

/// What the thread that runs `exec` is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// leasehold got a signal.
    Signal(Signal),
    /// A signal stopped the command.
    Stopped(Signal),
    /// The command has ended, and waits to be reaped.
    Ended,
    /// Little of the lease is left, and no renewal has succeeded.
    Expiring,
    /// Look at the lease: it is over.
    Lost,
    /// The future that is being driven wants to go on.
    Wake,
}

/// Sends an event; once the work is done nobody listens, which is no error.
pub(super) fn tell(events: &Sender<Event>, event: Event) {
    let _ = events.send(event);
}

pub(super) struct Inbox {
    sender: Sender<Event>,
    events: Receiver<Event>,
}

struct Poke(Sender<Event>);

impl Wake for Poke {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        tell(&self.0, Event::Wake);
    }
}

impl Inbox {
    pub(super) fn new() -> Self {
        let (sender, events) = channel();
        Self { sender, events }
    }

    pub(super) fn sender(&self) -> Sender<Event> {
        self.sender.clone()
    }

    /// The next event, `None` when there is none within `patience`.
    pub(super) fn next(&self, patience: Duration) -> Option<Event> {
        self.events.recv_timeout(patience).ok()
    }

    /// Runs a future to its end on this thread, unless `on_event` breaks off first, which drops the future. Polls it once a
    /// second at least, so that it can look at the clock.
    pub(super) fn drive<F: Future, B>(
        &self,
        future: F,
        mut on_event: impl FnMut(Event) -> ControlFlow<B>,
    ) -> ControlFlow<B, F::Output> {
        let mut future = pin!(future);
        let waker = Waker::from(Arc::new(Poke(self.sender())));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return ControlFlow::Continue(output);
            }
            while let Some(event) = self.next(GLANCE) {
                if event == Event::Wake {
                    break;
                }
                on_event(event)?;
            }
        }
    }

    /// Runs a future to its end, whatever happens meanwhile.
    pub(super) fn finish<F: Future>(&self, future: F) -> F::Output {
        match self.drive(future, |_| ControlFlow::<std::convert::Infallible>::Continue(())) {
            ControlFlow::Continue(output) => output,
            ControlFlow::Break(never) => match never {},
        }
    }
}
