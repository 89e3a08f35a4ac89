//! A connection that an event loop of another language drives.

use std::sync::{Arc, Weak};

use leasehold_core::Monotonic;
use leasehold_core::op::{Fault, FaultKind};
use rustix::fd::{AsRawFd, RawFd};

use super::io::{Io, Stalled};
use super::queue::{Queue, Rest};
use super::write_ahead;
use crate::event_loop::{EventLoop, Interest, SocketHandler};
use crate::host::fork;
use crate::host::sync::Mutex;
use crate::host::sync::atomic::{AtomicBool, Ordering};

/// A connection in the hands of an event loop.
pub(super) struct LoopSeat {
    socket: Arc<LoopSocket>,
    descriptor: RawFd,
    event_loop: Weak<EventLoop>,
    generation: u64,
    /// The loop knows the socket. Its own thread tells it, with the first request.
    is_added: AtomicBool,
}

struct LoopSocket {
    queue: Arc<Queue>,
    io: Mutex<Io>,
}

impl LoopSeat {
    pub(super) fn new(io: Io, queue: &Arc<Queue>, event_loop: &Weak<EventLoop>) -> Self {
        let descriptor = io.stream().descriptor().as_raw_fd();
        let socket = LoopSocket { queue: Arc::clone(queue), io: Mutex::new(io) };
        Self {
            socket: Arc::new(socket),
            descriptor,
            event_loop: Weak::clone(event_loop),
            generation: fork::generation(),
            is_added: AtomicBool::new(false),
        }
    }

    /// Has the loop write what is queued, once the turn that runs now is through, and at once if that `is_urgent`. It is called on the
    /// loop's thread.
    pub(super) fn flush_soon(&self, is_urgent: bool) {
        if is_urgent {
            write_ahead(&self.socket.io, &self.socket.queue);
        }
        let Some(event_loop) = self.event_loop.upgrade() else { return self.socket.close() };
        if !self.is_added.swap(true, Ordering::Relaxed) {
            event_loop.add(self.descriptor, Arc::clone(&self.socket) as Arc<dyn SocketHandler>);
        }
        event_loop.flush_soon(self.descriptor);
    }
}

impl Drop for LoopSeat {
    fn drop(&mut self) {
        // In a forked child the connection is the parent's.
        if self.generation != fork::generation() {
            return;
        }
        // Nobody can send any more. Where nobody waits either, the loop notices by this that it can forget the socket.
        self.socket.queue.leave();
        if !self.socket.queue.is_busy() {
            self.socket.io.lock().stream().shut_down();
        }
    }
}

impl LoopSocket {
    fn go_on(&self, turn: impl FnOnce(&mut Io, &Queue) -> Result<Option<Interest>, Fault>) -> Option<Interest> {
        let mut io = self.io.lock();
        turn(&mut io, &self.queue).unwrap_or_else(|fault| {
            io.end(&self.queue, &fault);
            None
        })
    }
}

impl SocketHandler for LoopSocket {
    fn on_ready(&self) -> Option<Interest> {
        self.go_on(|io, queue| {
            // All of it, since the loop does not know what TLS keeps.
            while io.read(queue)? == Stalled::Yielding {}
            write(io, queue)
        })
    }

    fn flush(&self) -> Option<Interest> {
        self.go_on(write)
    }

    fn deadline(&self) -> Option<Monotonic> {
        self.queue.deadline()
    }

    fn on_deadline(&self, now: Monotonic) -> Option<Interest> {
        self.queue.expire(now);
        self.flush()
    }

    fn close(&self) {
        self.io.lock().end(&self.queue, &Fault::of(FaultKind::Cancelled));
    }
}

fn write(io: &mut Io, queue: &Queue) -> Result<Option<Interest>, Fault> {
    let stalled = io.write(queue)?;
    let interest = if stalled.is_some() { Interest::ReadWrite } else { Interest::Read };
    match queue.rest(stalled.is_some()) {
        Rest::None | Rest::Until(_) => Ok(Some(interest)),
        Rest::Over => Err(Fault::of(FaultKind::Cancelled)),
    }
}
