//! A connection for wake-ups alone.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use leasehold_core::op::{Fault, FaultKind};
use leasehold_wire::redis::Command;
use leasehold_wire::resp::Value;

use super::Opened;
use super::io::{Io, Sink, Stalled};
use super::on_tokio::broken;
use super::queue::{FOR_A_COMMAND, Queue};
use super::readiness::Readiness;
use crate::url::redis::Address;

/// The most messages that wait to be taken.
const MOST_MESSAGES: usize = 64 << 10;

/// The channel and the payload of a message.
pub(in super::super) type Message = (Vec<u8>, Vec<u8>);

/// A connection that subscribes to channels. The task that owns it drives it.
pub(in super::super) struct Listening {
    // Before the socket, which it may not outlive.
    readiness: Readiness,
    io: Io,
    queue: Arc<Queue>,
    inbox: Inbox,
    /// The server's address; `None` for a socket file.
    pub(in super::super) address: Option<Address>,
}

#[derive(Default)]
struct Inbox {
    messages: VecDeque<Message>,
    /// Confirmations that have not come.
    unconfirmed: usize,
    /// The server's words, where it has refused one.
    refused: Option<String>,
}

impl Sink for &mut Inbox {
    fn settle(&mut self, replies: &mut Vec<Value>) -> Result<(), Fault> {
        for reply in replies.drain(..) {
            if let Value::Error(said) = reply {
                self.refused = Some(said);
                self.unconfirmed = 0;
            } else if let Value::Array(parts) | Value::Push(parts) = reply {
                self.take(parts);
            }
        }
        if self.messages.len() > MOST_MESSAGES {
            return Err(Fault::new(FaultKind::Protocol, "more messages than can be read"));
        }
        Ok(())
    }

    fn allowance(&self) -> usize {
        FOR_A_COMMAND
    }
}

impl Inbox {
    fn take(&mut self, parts: Vec<Value>) {
        let mut parts = parts.into_iter();
        match (parts.next(), parts.next(), parts.next()) {
            (Some(Value::Bulk(kind)), Some(Value::Bulk(channel)), Some(Value::Bulk(payload))) if kind == b"message" => {
                self.messages.push_back((channel, payload));
            }
            (Some(Value::Bulk(kind)), ..) if kind == b"subscribe" || kind == b"unsubscribe" => {
                self.unconfirmed = self.unconfirmed.saturating_sub(1);
            }
            _ => {}
        }
    }
}

impl Listening {
    /// # Errors
    /// The runtime cannot watch the socket.
    pub(in super::super) fn new(opened: Opened, address: Option<Address>) -> Result<Self, Fault> {
        let Opened { io, queue, .. } = opened;
        let readiness = Readiness::of(&io).map_err(|error| broken(&error))?;
        Ok(Self { readiness, io, queue, inbox: Inbox::default(), address })
    }

    /// The next message.
    ///
    /// # Errors
    /// The connection is broken.
    pub(in super::super) async fn next(&mut self) -> Result<Message, Fault> {
        loop {
            if let Some(message) = self.inbox.messages.pop_front() {
                return Ok(message);
            }
            poll_fn(|context| self.advance(context)).await?;
        }
    }

    /// Sends `SUBSCRIBE` or `UNSUBSCRIBE`, and waits until each channel is confirmed.
    ///
    /// # Errors
    /// The server's words, or a broken connection.
    pub(in super::super) async fn change(&mut self, name: &str, channels: Vec<Vec<u8>>) -> Result<(), String> {
        self.inbox.unconfirmed = channels.len();
        let words = [name.as_bytes()].into_iter().chain(channels.iter().map(Vec::as_slice));
        // Its replies are those of a subscription, which the queue does not count.
        self.queue.push(&Command::new(words));
        while self.inbox.unconfirmed > 0 {
            poll_fn(|context| self.advance(context)).await.map_err(|fault| fault.to_string())?;
        }
        self.inbox.refused.take().map_or(Ok(()), Err)
    }

    /// Writes what is queued, and reads what has arrived; waits until something has.
    fn advance(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        while let Some(Stalled::Blocked) = self.io.write(&self.queue)? {
            match self.readiness.poll_write(context) {
                Poll::Ready(ready) => ready.map_err(|error| broken(&error))?.clear(),
                Poll::Pending => break,
            }
        }
        let before = (self.inbox.messages.len(), self.inbox.unconfirmed);
        while let Poll::Ready(ready) = self.readiness.poll_read(context) {
            let mut ready = ready.map_err(|error| broken(&error))?;
            if self.io.read(&mut self.inbox)? == Stalled::Blocked {
                ready.clear();
            }
            if before != (self.inbox.messages.len(), self.inbox.unconfirmed) {
                return Poll::Ready(Ok(()));
            }
        }
        Poll::Pending
    }
}
