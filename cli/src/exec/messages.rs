//! The messages of `exec`, written by a thread of its own: a stderr that is not read must not delay the end of a
//! command whose lease has ended.

use std::fmt::Display;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::output;

/// The time limit for a message that should be written before anything else happens.
const PATIENCE: Duration = Duration::from_millis(200);

/// Writes messages on a thread. Dropping it waits until all are written.
pub(super) struct Messages {
    sender: Option<Sender<Message>>,
    thread: Option<JoinHandle<()>>,
}

struct Message {
    text: String,
    /// Dropped when the text is written.
    said: Option<Sender<()>>,
}

impl Messages {
    /// The thread inherits the signal mask of the calling one.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(super) fn start() -> std::io::Result<Self> {
        let (sender, messages): (_, Receiver<Message>) = channel();
        let speak = move || {
            for message in messages {
                output::say(message.text);
                drop(message.said);
            }
        };
        let thread = thread::Builder::new().name("leasehold-messages".to_owned()).spawn(speak)?;
        Ok(Self { sender: Some(sender), thread: Some(thread) })
    }

    /// Queues a message. Never waits.
    pub(super) fn say(&self, text: impl Display) {
        self.send(Message { text: text.to_string(), said: None });
    }

    /// Waits a moment until the message is written.
    pub(super) fn say_first(&self, text: impl Display) {
        let (said, done) = channel();
        self.send(Message { text: text.to_string(), said: Some(said) });
        // The channel carries no values: the wait ends when the sender is dropped.
        let _ = done.recv_timeout(PATIENCE);
    }

    fn send(&self, message: Message) {
        if let Some(sender) = &self.sender {
            let _ = sender.send(message);
        }
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
