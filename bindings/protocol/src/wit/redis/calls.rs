//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.

use crate::wit::stores::RedisCommand;
use crate::wit::types::ConfigError;
use super::Malformed;
use crate::face::*;

/// What there is beside values.
pub(crate) trait Guest {
    /// See [`GuestReader`].
    #[allow(dead_code)]
    type Reader: GuestReader;
    /// Encodes commands as the bytes to send, one after the other.
    fn encode(commands: Vec<RedisCommand>) -> Vec<u8>;
    /// The channel for releases of a resource, for `output.subscribe`. Fails for an invalid name.
    fn channel(resource: String) -> Result<Vec<u8>, ConfigError>;
    /// The resource whose release a message reports, for `client.notified`; absent if the message is not ours.
    fn released_by(channel: Vec<u8>, message: Vec<u8>) -> Option<String>;
}

/// Calls a function of the interface by its name.
///
/// # Errors
/// Whatever the function refuses, and arguments that it does not take.
pub fn call<S: Source, W: Sink>(name: &str, args: &[S], to: &W) -> Result<W::Value, Problem> {
    match name {
        "encode" => {
            let [commands] = arguments(args)?;
            let commands = argument(commands, "commands")?;
            let made = <crate::Component as Guest>::encode(commands);
            Ok(made.write(to))
        }
        "channel" => {
            let [resource] = arguments(args)?;
            let resource = argument(resource, "resource")?;
            let made = <crate::Component as Guest>::channel(resource)?;
            Ok(made.write(to))
        }
        "released-by" => {
            let [channel, message] = arguments(args)?;
            let channel = argument(channel, "channel")?;
            let message = argument(message, "message")?;
            let made = <crate::Component as Guest>::released_by(channel, message);
            Ok(made.write(to))
        }
        _ => Err(Problem::no_call(name)),
    }
}

/// Its calls.
pub(crate) trait GuestReader: Sized {
    /// A reader that has read nothing. Default of `max-reply-bytes`, the longest that one reply may be: 1,048,576.
    fn create(max_reply_bytes: Option<u32>) -> Result<Reader, ConfigError>;
    /// Adds received bytes, in pieces of any size.
    fn push(&self, bytes: Vec<u8>) -> ();
    /// The next replies, for `response.redis-replies`; absent until all of them have arrived. Fails
    /// if the server does not speak RESP or sends too much: then close the connection.
    fn take(&self, replies: u32) -> Result<Option<Vec<u8>>, Malformed>;
}

/// Splits the bytes of one connection into whole replies.
pub struct Reader(pub(crate) crate::redis::Reader);

impl Reader {
    pub(crate) fn new(made: crate::redis::Reader) -> Self {
        Self(made)
    }

    /// Makes one by the name of a static function.
    ///
    /// # Errors
    /// Whatever the function refuses, and arguments that it does not take.
    pub fn make<S: Source>(name: &str, args: &[S]) -> Result<Self, Problem> {
        match name {
            "create" => {
                let [max_reply_bytes] = arguments(args)?;
                let max_reply_bytes = argument(max_reply_bytes, "max-reply-bytes")?;
                Ok(<crate::redis::Reader as GuestReader>::create(max_reply_bytes)?)
            }
            _ => Err(Problem::no_call(name)),
        }
    }

    /// Calls a method by its name.
    ///
    /// # Errors
    /// Whatever the method refuses, and arguments that it does not take.
    pub fn call<S: Source, W: Sink>(&self, name: &str, args: &[S], to: &W) -> Result<W::Value, Problem> {
        match name {
            "push" => {
                let [bytes] = arguments(args)?;
                let bytes = argument(bytes, "bytes")?;
                self.0.push(bytes);
                Ok(to.nothing())
            }
            "take" => {
                let [replies] = arguments(args)?;
                let replies = argument(replies, "replies")?;
                let made = self.0.take(replies)?;
                Ok(made.write(to))
            }
            _ => Err(Problem::no_call(name)),
        }
    }
}
