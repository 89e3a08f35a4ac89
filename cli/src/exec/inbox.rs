//! One queue for all events while `exec` runs, so that one thread decides.

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use rustix::process::Signal;

/// The interval at which a future is polled that nothing wakes.
const GLANCE: Duration = Duration::from_secs(1);

/// An event for the thread that runs `exec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// leasehold got a signal.
    Signal(Signal),
    /// A signal stopped the command.
    Stopped(Signal),
    /// The command has ended, and is not reaped yet.
    Ended,
    /// Little of the lease is left, and no renewal has succeeded.
    Expiring,
    /// The lease has ended.
    Lost,
    /// The future that is being run can go on.
    Wake,
}

/// Sends an event. Once the work is done there is no receiver, which is no error.
pub(super) fn tell(events: &Sender<Event>, event: Event) {
    let _ = events.send(event);
}

pub(crate) struct Inbox {
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
    pub(crate) fn new() -> Self {
        let (sender, events) = channel();
        Self { sender, events }
    }

    pub(crate) fn sender(&self) -> Sender<Event> {
        self.sender.clone()
    }

    /// The next event, or `None` after `patience`.
    pub(crate) fn next(&self, patience: Duration) -> Option<Event> {
        self.events.recv_timeout(patience).ok()
    }

    /// Runs a future to its end on this thread, unless `on_event` ends it early, which drops the future. Polls it at
    /// least once a second, so that it can check the clock.
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

    /// Runs a future to its end, ignoring events.
    pub(super) fn finish<F: Future>(&self, future: F) -> F::Output {
        match self.drive(future, |_| ControlFlow::<std::convert::Infallible>::Continue(())) {
            ControlFlow::Continue(output) => output,
            ControlFlow::Break(never) => match never {},
        }
    }
}
