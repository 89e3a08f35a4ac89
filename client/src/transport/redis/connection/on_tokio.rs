//! A connection that a tokio runtime drives: one task reads and writes.
//!
//! Callers queue their requests, and wake the task at most once between two of its turns. So requests of tasks that are
//! ready at the same time leave in one write, or in few: see [`write_ahead`](super::write_ahead).

use std::ops::DerefMut;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use leasehold_core::Monotonic;
use leasehold_core::op::{Fault, FaultKind};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::yield_now;
use tokio::time::{Sleep, sleep};

use super::io::{Io, Stalled};
use super::queue::{Queue, Rest};
use super::readiness::Readiness;
use crate::host::clock;
use crate::host::sync::Mutex;

/// Timers of runtimes do not count the time in which the machine is suspended, so the clock is looked at this often.
const LONGEST_NAP: Duration = Duration::from_secs(1);

/// The place of a connection's I/O.
pub(super) trait IoPlace: Unpin {
    /// The I/O, for as long as the answer is kept.
    fn io(&mut self) -> impl DerefMut<Target = Io>;
}

/// Nobody else has it.
impl IoPlace for &mut Io {
    fn io(&mut self) -> impl DerefMut<Target = Io> {
        &mut **self
    }
}

/// Those who submit requests write some of them.
impl IoPlace for Arc<Mutex<Io>> {
    fn io(&mut self) -> impl DerefMut<Target = Io> {
        self.lock()
    }
}

/// Drives a connection until it has ended. It owns the connection, or borrows it.
pub(super) struct Pump<I> {
    // Before the socket, which it may not outlive.
    readiness: Readiness,
    io: I,
    queue: Arc<Queue>,
    nap: Pin<Box<Sleep>>,
    /// When the nap ends.
    alarm: Monotonic,
    /// Other threads of the runtime may be about to queue requests. A task that is woken here runs before theirs.
    is_shared: bool,
    has_waited_for_others: bool,
}

impl<I: IoPlace> Pump<I> {
    /// # Errors
    /// The runtime cannot watch the socket.
    pub(super) fn new(mut io: I, queue: &Arc<Queue>) -> std::io::Result<Self> {
        let readiness = Readiness::of(&io.io())?;
        Ok(Self {
            readiness,
            io,
            queue: Arc::clone(queue),
            nap: Box::pin(sleep(LONGEST_NAP)),
            alarm: Monotonic::default(),
            is_shared: Handle::current().runtime_flavor() != RuntimeFlavor::CurrentThread,
            has_waited_for_others: false,
        })
    }

    fn turn(&mut self, context: &mut Context<'_>) -> Result<Poll<()>, Fault> {
        self.queue.set_writer(context.waker());
        let has_waited = std::mem::take(&mut self.has_waited_for_others);
        if self.is_shared && !has_waited && self.queue.has_several() && pin!(yield_now()).poll(context).is_pending() {
            // Requests of tasks that are ready now leave in one write.
            self.has_waited_for_others = true;
            return Ok(Poll::Pending);
        }
        loop {
            let stalled = self.io.io().write(&self.queue)?;
            match stalled {
                None => {}
                Some(Stalled::Yielding) => return Ok(yielding(context)),
                Some(Stalled::Blocked) => {
                    if let Poll::Ready(ready) = self.readiness.poll_write(context) {
                        ready.map_err(|error| broken(&error))?.clear();
                        continue;
                    }
                }
            }
            while let Poll::Ready(ready) = self.readiness.poll_read(context) {
                let mut ready = ready.map_err(|error| broken(&error))?;
                match self.io.io().read(&*self.queue)? {
                    Stalled::Blocked => ready.clear(),
                    Stalled::Yielding => return Ok(yielding(context)),
                }
            }
            match self.queue.rest(stalled.is_some()) {
                Rest::None => {}
                Rest::Over => return Err(Fault::of(FaultKind::Cancelled)),
                Rest::Until(None) => return Ok(Poll::Pending),
                Rest::Until(Some(earliest)) => {
                    self.watch_deadline(earliest, context);
                    return Ok(Poll::Pending);
                }
            }
        }
    }

    /// Arranges to be polled when the earliest deadline of the requests that wait has come, at the latest.
    fn watch_deadline(&mut self, earliest: Monotonic, context: &mut Context<'_>) {
        loop {
            let now = clock::monotonic();
            if earliest <= now {
                self.queue.expire(now);
                // Those that were told may have queued something.
                context.waker().wake_by_ref();
                return;
            }
            if self.alarm > now && self.alarm <= earliest {
                return;
            }
            let nap = earliest.since(now).min(LONGEST_NAP);
            self.alarm = now.plus(nap);
            self.nap.set(sleep(nap));
            if self.nap.as_mut().poll(context).is_pending() {
                return;
            }
            self.alarm = Monotonic::default();
        }
    }
}

impl<I: IoPlace> Future for Pump<I> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let pump = &mut *self;
        match pump.turn(context) {
            Ok(polled) => polled,
            Err(fault) => {
                pump.io.io().end(&pump.queue, &fault);
                Poll::Ready(())
            }
        }
    }
}

/// Starts the task that drives a connection from now on, and owns it.
///
/// # Errors
/// The runtime cannot watch the socket.
pub(super) fn start(io: Io, queue: &Arc<Queue>) -> std::io::Result<Weak<Mutex<Io>>> {
    /// A runtime that ends drops the task.
    struct End(Arc<Queue>);

    impl Drop for End {
        fn drop(&mut self) {
            self.0.end(&Fault::of(FaultKind::Cancelled), u64::MAX);
        }
    }

    let io = Arc::new(Mutex::new(io));
    let shared = Arc::downgrade(&io);
    let (pump, end) = (Pump::new(io, queue)?, End(Arc::clone(queue)));
    tokio::spawn(async move {
        let _end = end;
        pump.await;
    });
    Ok(shared)
}

fn yielding(context: &Context<'_>) -> Poll<()> {
    context.waker().wake_by_ref();
    Poll::Pending
}

pub(super) fn broken(error: &std::io::Error) -> Fault {
    Fault::new(FaultKind::Reset, &error.to_string())
}
