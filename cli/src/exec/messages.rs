//! What `exec` has to say, said by a thread of its own: a stderr that nobody reads must not hold up the end of a command
//! whose lease is over.

use std::fmt::Display;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::output;

/// How long a message is waited for that should stand there before something else happens.
const PATIENCE: Duration = Duration::from_millis(200);

/// Dropping it waits until all is said.
pub(super) struct Messages {
    sender: Option<Sender<Message>>,
    thread: Option<JoinHandle<()>>,
}

struct Message {
    text: String,
    /// Dropped when the text stands there.
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

    /// Never waits.
    pub(super) fn say(&self, text: impl Display) {
        self.send(Message { text: text.to_string(), said: None });
    }

    /// Waits a moment until it is said.
    pub(super) fn say_first(&self, text: impl Display) {
        let (said, done) = channel();
        self.send(Message { text: text.to_string(), said: Some(said) });
        // Nothing is ever sent: the wait ends with the other end.
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
