//! One connection: requests out, replies in, in the same order.
//!
//! | file | |
//! |---|---|
//! | `stream.rs` | the socket, and TLS |
//! | `io.rs` | bytes in both directions, without waiting |
//! | `queue.rs` | requests, and who waits for which reply |
//! | `greeting.rs` | the login |
//! | `listening.rs` | the other kind of connection: one that only subscribes |
//! | `readiness.rs` | a runtime that tells when the socket is ready |
//! | `on_tokio.rs`, `on_thread.rs`, `on_loop.rs` | who waits until the socket is ready: a task of a runtime, the calling thread, an event loop of another language |

mod greeting;
mod io;
mod listening;
mod on_loop;
mod on_thread;
mod on_tokio;
mod queue;
mod readiness;
mod stream;
#[cfg(test)]
mod tests;

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Waker;

use leasehold_core::Monotonic;
use leasehold_core::op::{Fault, FaultKind};
use leasehold_wire::redis::{Command, ConnectionMemory, ConnectionName};
use leasehold_wire::resp::Value;

pub(super) use self::greeting::{Courtesy, Login, greet};
use self::io::Io;
pub(super) use self::listening::{Listening, Message};
use self::on_loop::LoopSeat;
use self::on_thread::ThreadSeat;
pub(super) use self::on_thread::block_on;
use self::on_tokio::Pump;
pub(super) use self::queue::{Broken, Replies};
use self::queue::{Queue, Submitted};
pub(super) use self::stream::{Socket, Stream};
use crate::host::entropy;
use crate::host::sync::Mutex;
use crate::transport::connections::Home;

/// A connection that is open, and that nothing drives yet.
pub(super) struct Opened {
    io: Io,
    queue: Arc<Queue>,
    /// The server has let `CLIENT` pass.
    may_be_named: bool,
}

/// A connection for requests. It closes with the last clone, and with the last reply that is awaited.
#[derive(Clone)]
pub(super) struct Connection(Arc<Inner>);

struct Inner {
    queue: Arc<Queue>,
    seat: Seat,
    /// `None` where it was not asked.
    role: Option<Role>,
    memory: Arc<Mutex<ConnectionMemory>>,
}

enum Seat {
    /// The task of the runtime has it, and closes it.
    Runtime(Weak<Mutex<Io>>),
    Thread(Arc<ThreadSeat>),
    Loop(LoopSeat),
}

/// The role that a server reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Master,
    Replica,
    Sentinel,
    /// The user may not ask for it.
    Unknown,
}

impl Opened {
    pub(super) fn new(stream: Stream) -> Self {
        Self { io: Io::new(stream), queue: Arc::new(Queue::new()), may_be_named: false }
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.io.stream().is_handshaking()
    }

    /// Overwrites the bytes of requests that have left.
    pub(super) fn forget_what_was_sent(&mut self) {
        self.io.forget_what_was_sent(&self.queue);
    }

    /// Sends commands before anything else does.
    ///
    /// # Errors
    /// The connection breaks.
    pub(super) async fn call(&mut self, commands: &[Command]) -> Result<Vec<Value>, Fault> {
        let broken = |broken| match broken {
            Broken::NotSent(fault) | Broken::Unknown(fault) => fault,
        };
        let Submitted { mut reply, .. } = self.queue.submit(commands, Monotonic::FAR).map_err(broken)?;
        let pump = Pump::new(&mut self.io, &self.queue)
            .map_err(|error| Fault::new(FaultKind::Unreachable, &error.to_string()))?;
        tokio::select! {
            biased;
            replies = &mut reply => replies.map_err(broken),
            () = pin!(pump) => reply.await.map_err(broken),
        }
    }

    /// The role of the server.
    ///
    /// # Errors
    /// The connection breaks.
    pub(super) async fn role(&mut self) -> Result<Role, Fault> {
        let replies = self.call(&[Command::new(["ROLE"])]).await?;
        Ok(role_of(replies.first()))
    }

    /// Leaves the connection to the thread or task that will drive it.
    ///
    /// # Errors
    /// The runtime cannot watch the socket.
    pub(super) fn settle(self, home: &Home, role: Option<Role>) -> Result<Connection, Fault> {
        let Self { io, queue, may_be_named } = self;
        let unreachable = |error: std::io::Error| Fault::new(FaultKind::Unreachable, &error.to_string());
        let seat = match home {
            Home::Runtime => Seat::Runtime(on_tokio::start(io, &queue).map_err(unreachable)?),
            Home::Thread(_) => Seat::Thread(Arc::new(ThreadSeat { queue: Arc::clone(&queue), io: Mutex::new(io) })),
            Home::Loop(_, event_loop) => Seat::Loop(LoopSeat::new(io, &queue, event_loop)),
        };
        let memory = if may_be_named { named() } else { ConnectionMemory::default() };
        Ok(Connection(Arc::new(Inner { queue, seat, role, memory: Arc::new(Mutex::new(memory)) })))
    }
}

/// The memory of a connection with a name of its own; without randomness it has none, which only costs time.
fn named() -> ConnectionMemory {
    let mut bytes = [0; 16];
    entropy::fill(&mut bytes)
        .map_or_else(|_| ConnectionMemory::default(), |()| ConnectionMemory::named(ConnectionName::from_bytes(bytes)))
}

impl Connection {
    /// Sends commands, one reply each, and waits until `deadline`.
    ///
    /// # Errors
    /// The connection breaks, or was left, or the deadline passes.
    pub(super) async fn send(&self, commands: &[Command], deadline: Monotonic) -> Replies {
        if let Seat::Thread(seat) = &self.0.seat {
            on_thread::look(seat);
        }
        let Submitted { reply, writer, is_urgent } = self.0.queue.submit(commands, deadline)?;
        match &self.0.seat {
            Seat::Runtime(io) => {
                if is_urgent && let Some(io) = io.upgrade() {
                    write_ahead(&io, &self.0.queue);
                }
                writer.into_iter().for_each(Waker::wake);
            }
            Seat::Thread(seat) => on_thread::note(seat),
            Seat::Loop(seat) => seat.flush_soon(is_urgent),
        }
        reply.await
    }

    /// The tokens that it has lately granted.
    pub(super) fn memory(&self) -> &Arc<Mutex<ConnectionMemory>> {
        &self.0.memory
    }

    /// Tells if it takes no more requests, as far as is known.
    pub(super) fn is_over(&self) -> bool {
        !self.0.queue.is_usable()
    }

    /// Gives up all requests, after a reply that does not belong to its request: later ones do not belong to theirs.
    pub(super) fn condemn(&self) {
        self.0.queue.condemn(&Fault::new(FaultKind::Protocol, "an earlier reply made no sense"));
    }

    /// Takes no more requests. Those under way are answered.
    pub(super) fn leave(&self) {
        self.0.queue.leave();
    }

    /// The role of the server when the connection was made; `None` where it was not asked.
    pub(super) fn role(&self) -> Option<Role> {
        self.0.role
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.queue.leave();
    }
}

/// Writes what is queued, unless somebody reads or writes right now, and then goes on with it.
///
/// A caller that submits as many requests as are under way does it, so that the server works on some while the tasks of this thread make
/// others. Writing each request alone would take more calls of the system than the server's time is worth.
fn write_ahead(io: &Mutex<Io>, queue: &Queue) {
    if let Some(mut io) = io.try_lock() {
        io.write_ahead(queue);
    }
}

fn role_of(reply: Option<&Value>) -> Role {
    let Some(Value::Array(parts)) = reply else { return Role::Unknown };
    match parts.first() {
        Some(Value::Bulk(word)) if word == b"slave" => Role::Replica,
        Some(Value::Bulk(word)) if word == b"sentinel" => Role::Sentinel,
        Some(Value::Bulk(word)) if word == b"master" => Role::Master,
        Some(_) | None => Role::Unknown,
    }
}
