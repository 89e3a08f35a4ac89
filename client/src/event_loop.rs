//! The event loop of another language as a place for sockets: the loop's own thread writes and reads them.
//!
//! While an [`Executor`](crate::ffi::Executor) polls its tasks, a transport finds the loop by [`current`], and may hand it a
//! connected socket with a [`SocketHandler`]. What tasks submit during one turn of the loop is written at its end by one
//! [`flush`](SocketHandler::flush), and one readable event settles all replies that have arrived.
//!
//! A binding implements [`Poller`]. Its methods are called with none of this crate's locks held, so they may run any code.

#![cfg_attr(not(feature = "redis"), allow(dead_code, reason = "the connections of Redis alone use it"))]

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use leasehold_core::Monotonic;
use rustix::fd::RawFd;

use crate::host::fork::Owned;
#[cfg(test)]
use crate::host::sync::atomic::{AtomicU64, Ordering};
use crate::host::sync::{Arc, HashMap, Mutex, MutexGuard, thread_local};
use crate::host::time::Time;

/// The longest wait for a timer of the loop, since those of many loops stand still while the machine is suspended.
const LONGEST_NAP: Duration = Duration::from_secs(1);

/// The events that a socket waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// It has something to read.
    Read,
    /// It has something to read, or takes more to write.
    ReadWrite,
}

/// The part of an event loop that a binding provides. It is called on the loop's thread only.
pub trait Poller: Send + Sync {
    /// Makes the loop call [`Executor::on_ready`](crate::ffi::Executor::on_ready) whenever the socket is ready. A later call for
    /// the same socket changes the interest.
    ///
    /// # Errors
    /// The loop cannot watch this socket.
    fn watch(&self, socket: RawFd, interest: Interest) -> io::Result<()>;

    /// Watches the socket no longer. It is closed afterwards.
    fn unwatch(&self, socket: RawFd);

    /// Makes the loop call [`Executor::end_turn`](crate::ffi::Executor::end_turn) once, as soon as the code that runs now is
    /// through.
    fn call_soon(&self);

    /// Makes the loop call [`Executor::on_timer`](crate::ffi::Executor::on_timer) once, after this time and not at the time of an
    /// earlier call.
    fn call_later(&self, delay: Duration);
}

/// The connection behind a socket. The loop's thread calls it, and wakes nobody until it has returned.
///
/// Other threads end it by `shutdown` on the socket, which makes the socket ready.
pub(crate) trait SocketHandler: Send + Sync {
    /// Reads and writes what the socket has and takes. `None` ends the connection: the loop forgets it.
    fn on_ready(&self) -> Option<Interest>;

    /// Writes what was submitted in this turn.
    fn flush(&self) -> Option<Interest>;

    /// The earliest deadline of its requests, at which [`SocketHandler::on_deadline`] is called.
    fn deadline(&self) -> Option<Monotonic>;

    /// Ends requests whose deadline has passed.
    fn on_deadline(&self, now: Monotonic) -> Option<Interest>;

    /// Ends the connection, because the loop has ended or cannot watch the socket.
    fn close(&self);
}

/// A future without a result.
pub(crate) type Background = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The sockets of one event loop.
pub(crate) struct EventLoop {
    #[cfg(test)]
    id: u64,
    poller: Box<dyn Poller>,
    /// Makes the loop's thread run the executor.
    wake: Box<dyn Fn() + Send + Sync>,
    state: Owned<Mutex<State>>,
}

#[derive(Default)]
struct State {
    sockets: HashMap<RawFd, Socket>,
    /// Sockets that are not watched yet.
    added: Vec<RawFd>,
    to_flush: Vec<RawFd>,
    spawned: Vec<Background>,
    /// `end_turn` is going to be called.
    is_turn_ending: bool,
    /// `on_timer` is going to be called at that time.
    timer: Option<Monotonic>,
    is_over: bool,
}

struct Socket {
    handler: Arc<dyn SocketHandler>,
    interest: Interest,
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<EventLoop>>> = const { RefCell::new(None) };
}

/// The event loop whose tasks this thread polls at the moment, if it takes sockets.
pub(crate) fn current() -> Option<Arc<EventLoop>> {
    CURRENT.with(|current| current.borrow().clone())
}

/// Makes an event loop [`current`] until it is dropped.
pub(super) struct Entered(Option<Arc<EventLoop>>);

impl Entered {
    pub(super) fn new(entered: Option<Arc<EventLoop>>) -> Self {
        Self(CURRENT.with(|current| current.replace(entered)))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let before = self.0.take();
        CURRENT.with(|current| current.replace(before));
    }
}

impl EventLoop {
    pub(super) fn new(poller: Box<dyn Poller>, wake: impl Fn() + Send + Sync + 'static) -> Self {
        #[cfg(test)]
        static LAST_ID: AtomicU64 = AtomicU64::new(0);
        Self {
            #[cfg(test)]
            id: LAST_ID.fetch_add(1, Ordering::Relaxed) + 1,
            poller,
            wake: Box::new(wake),
            state: Owned::new(Mutex::default()),
        }
    }

    /// A number that no other event loop of this process has.
    #[cfg(test)]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Watches a connected, non-blocking socket, for reading at first, until its handler or the loop ends. The handler
    /// owns the socket, and keeps it open at least until the loop has dropped the handler.
    pub(crate) fn add(&self, socket: RawFd, handler: Arc<dyn SocketHandler>) {
        let Some(mut state) = self.state().filter(|state| !state.is_over) else { return handler.close() };
        state.sockets.insert(socket, Socket { handler, interest: Interest::Read });
        state.added.push(socket);
    }

    /// Calls the handler's `flush` at the end of this turn.
    pub(crate) fn flush_soon(&self, socket: RawFd) {
        let Some(mut state) = self.state() else { return };
        if !state.to_flush.contains(&socket) {
            state.to_flush.push(socket);
        }
    }

    /// Runs a future on this loop until one of them ends. Any thread may call it.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        let Some(mut state) = self.state().filter(|state| !state.is_over) else { return };
        state.spawned.push(Box::pin(future));
        drop(state);
        (self.wake)();
    }

    pub(super) fn take_spawned(&self) -> Vec<Background> {
        self.state().map(|mut state| std::mem::take(&mut state.spawned)).unwrap_or_default()
    }

    /// Tells the loop what to call later. The executor calls it after everything that runs code of handlers or tasks.
    pub(super) fn arrange(&self, needs_turn: bool) {
        let Some(mut state) = self.state() else { return };
        while let Some(socket) = state.added.pop() {
            let Some(interest) = state.sockets.get(&socket).map(|watched| watched.interest) else { continue };
            drop(state);
            self.watch(socket, interest);
            let Some(again) = self.state() else { return };
            state = again;
        }
        if !state.is_turn_ending && (needs_turn || !state.to_flush.is_empty()) {
            state.is_turn_ending = true;
            drop(state);
            self.poller.call_soon();
        }
    }

    /// Writes what was submitted in the turn that ends now.
    pub(super) fn end_turn(&self) {
        let Some(mut state) = self.state() else { return };
        state.is_turn_ending = false;
        let to_flush = std::mem::take(&mut state.to_flush);
        drop(state);
        let mut first = None;
        for socket in to_flush {
            first = earlier(first, self.handle(socket, |handler| handler.flush()));
        }
        self.set_timer(first);
    }

    pub(super) fn on_ready(&self, socket: RawFd) {
        self.handle(socket, |handler| handler.on_ready());
    }

    pub(super) fn on_timer(&self) {
        let Some(mut state) = self.state() else { return };
        state.timer = None;
        let sockets: Vec<_> = state.sockets.keys().copied().collect();
        drop(state);
        let (mut first, now) = (None, Time::System.monotonic());
        for socket in sockets {
            first = earlier(first, self.handle(socket, |handler| handler.on_deadline(now)));
        }
        self.set_timer(first);
    }

    /// Ends all connections, with the loop.
    pub(super) fn close(&self) {
        let Some(mut state) = self.state() else { return };
        state.is_over = true;
        let State { sockets, spawned, added, .. } = std::mem::take(&mut *state);
        state.is_over = true;
        drop(state);
        for (socket, Socket { handler, .. }) in sockets {
            if !added.contains(&socket) {
                self.poller.unwatch(socket);
            }
            handler.close();
        }
        drop(spawned);
    }

    /// Locks the state; `None` in a forked child of the process whose loop this is.
    fn state(&self) -> Option<MutexGuard<'_, State>> {
        self.state.get().map(Mutex::lock)
    }

    /// Calls a handler, does what it answers, and returns its deadline.
    fn handle(&self, socket: RawFd, call: impl FnOnce(&dyn SocketHandler) -> Option<Interest>) -> Option<Monotonic> {
        let handler = self.state()?.sockets.get(&socket).map(|watched| Arc::clone(&watched.handler))?;
        let Some(interest) = call(&*handler) else {
            self.forget(socket);
            return None;
        };
        let mut state = self.state()?;
        if let Some(watched) = state.sockets.get_mut(&socket)
            && std::mem::replace(&mut watched.interest, interest) != interest
            && !state.added.contains(&socket)
        {
            drop(state);
            self.watch(socket, interest);
        } else {
            drop(state);
        }
        handler.deadline()
    }

    fn watch(&self, socket: RawFd, interest: Interest) {
        if self.poller.watch(socket, interest).is_err()
            && let Some(handler) = self.forget(socket)
        {
            handler.close();
        }
    }

    fn forget(&self, socket: RawFd) -> Option<Arc<dyn SocketHandler>> {
        let mut state = self.state()?;
        let forgotten = state.sockets.remove(&socket)?;
        let was_watched = !state.added.contains(&socket);
        state.added.retain(|added| *added != socket);
        drop(state);
        if was_watched {
            self.poller.unwatch(socket);
        }
        // Dropped only now, because that may close the socket.
        Some(forgotten.handler)
    }

    /// One timer serves all requests of all sockets.
    fn set_timer(&self, deadline: Option<Monotonic>) {
        let Some(deadline) = deadline else { return };
        let Some(mut state) = self.state() else { return };
        if state.timer.is_some_and(|timer| timer <= deadline) {
            return;
        }
        let now = Time::System.monotonic();
        let delay = deadline.since(now).min(LONGEST_NAP);
        state.timer = Some(now.plus(delay));
        drop(state);
        self.poller.call_later(delay);
    }
}

fn earlier(one: Option<Monotonic>, other: Option<Monotonic>) -> Option<Monotonic> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
