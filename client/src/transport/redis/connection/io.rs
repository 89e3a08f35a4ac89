//! The two directions of one connection. Nothing here waits.

use std::io::{self, ErrorKind};

use leasehold_core::op::{Fault, FaultKind};
use leasehold_wire::resp::{Decoder, Limits, Value};
use zeroize::Zeroize;

use super::queue::{FOR_A_COMMAND, Queue};
use super::stream::Stream;

/// The bytes that one call reads.
const CHUNK: usize = 16 << 10;
/// The calls of one turn, after which other tasks of the same thread have theirs.
const MOST_CALLS: usize = 16;
/// The most that a server can make us keep, whatever was asked.
const LIMITS: Limits = Limits { max_bytes: 8 << 20, depth: 32, elements: 1 << 18 };

/// A direction that can go no further now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stalled {
    /// The socket has no more, or takes no more.
    Blocked,
    /// It may go on; others have their turn first.
    Yielding,
}

/// Takes replies.
pub(super) trait Sink {
    /// Takes replies that have arrived, in their order.
    ///
    /// # Errors
    /// They end the connection.
    fn settle(&mut self, replies: &mut Vec<Value>) -> Result<(), Fault>;

    /// The most bytes that the next reply may have.
    fn allowance(&self) -> usize;
}

/// The socket, and bytes on their way through it.
pub(in super::super) struct Io {
    stream: Stream,
    decoder: Decoder,
    replies: Vec<Value>,
    buffer: Vec<u8>,
    sending: Vec<u8>,
    /// How many of those have left.
    sent: usize,
    /// How many bytes have ever left.
    written: u64,
}

impl Io {
    pub(in super::super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            decoder: Decoder::new(LIMITS),
            replies: Vec::new(),
            buffer: vec![0; CHUNK],
            sending: Vec::new(),
            sent: 0,
            written: 0,
        }
    }

    /// Writes what is queued. `None` once all of it has left.
    ///
    /// # Errors
    /// The connection is of no further use.
    pub(super) fn write(&mut self, queue: &Queue) -> Result<Option<Stalled>, Fault> {
        if self.sent < self.sending.len() {
            queue.check_rest(self.written)?;
        }
        for _ in 0..MOST_CALLS {
            if self.sent == self.sending.len() {
                self.sending.clear();
                self.sent = 0;
                queue.take(&mut self.sending);
                if self.sending.is_empty() {
                    return blocked_or(self.stream.write_tls()).map(|done| done.err());
                }
            }
            match blocked_or(self.stream.write(&self.sending[self.sent..]))? {
                Ok(taken) => {
                    self.sent += taken;
                    self.written += taken as u64;
                }
                Err(stalled) => return Ok(Some(stalled)),
            }
        }
        Ok(Some(Stalled::Yielding))
    }

    /// Writes what is queued, before its writer does. What earlier requests have left, and what goes wrong, is left to the writer.
    pub(super) fn write_ahead(&mut self, queue: &Queue) {
        if self.sent == self.sending.len() {
            // A socket that has failed fails again.
            let _ = self.write(queue);
        }
    }

    /// Reads what has arrived, and hands on whole replies.
    ///
    /// # Errors
    /// The connection is of no further use.
    pub(super) fn read(&mut self, mut sink: impl Sink) -> Result<Stalled, Fault> {
        for _ in 0..MOST_CALLS {
            let read = match blocked_or(self.stream.read(&mut self.buffer))? {
                Ok(0) => return Err(Fault::new(FaultKind::Reset, "the server has closed the connection")),
                Ok(read) => read,
                Err(stalled) => return Ok(stalled),
            };
            self.decoder.push(&self.buffer[..read]);
            let malformed = loop {
                match self.decoder.next() {
                    Ok(Some(reply)) => self.replies.push(reply),
                    Ok(None) => break None,
                    Err(malformed) => break Some(malformed),
                }
            };
            if !self.replies.is_empty() {
                sink.settle(&mut self.replies)?;
            }
            if let Some(malformed) = malformed {
                return Err(Fault::new(FaultKind::Protocol, &malformed.to_string()));
            }
            if self.decoder.pending() > FOR_A_COMMAND && self.decoder.pending() > sink.allowance() {
                return Err(Fault::new(FaultKind::Reset, "the server sends more than any answer may have"));
            }
            // With TLS there may be more in the records that were read.
            if read < self.buffer.len() && !self.stream.is_encrypted() {
                return Ok(Stalled::Blocked);
            }
        }
        Ok(Stalled::Yielding)
    }

    /// Overwrites the bytes of requests that have left.
    pub(super) fn forget_what_was_sent(&mut self, queue: &Queue) {
        if self.sent == self.sending.len() {
            let mut other = std::mem::take(&mut self.sending);
            self.sent = 0;
            other.zeroize();
            // The two buffers take turns.
            queue.take(&mut other);
            if other.is_empty() {
                other.zeroize();
            } else {
                self.sending = other;
            }
        }
    }

    /// Ends all requests of the queue.
    pub(super) fn end(&self, queue: &Queue, fault: &Fault) {
        queue.end(fault, self.written);
    }

    pub(in super::super) fn stream(&self) -> &Stream {
        &self.stream
    }
}

fn blocked_or<T>(done: io::Result<T>) -> Result<Result<T, Stalled>, Fault> {
    match done {
        Ok(done) => Ok(Ok(done)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Err(Stalled::Blocked)),
        Err(error) => Err(Fault::new(FaultKind::Reset, &error.to_string())),
    }
}
