//! A limit on the bytes that a server may send.
//!
//! The driver keeps all bytes until a reply is complete. A server whose reply never ends would fill the memory until
//! the request is given up, and for ever where no request is waiting. Every connection therefore has a limit below the
//! driver: bytes beyond it close the connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use leasehold_wire::redis::Command;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::sync::Mutex;

/// The limit for the replies to a greeting: a handful of short ones.
pub(super) const GREETING: usize = 64 << 10;
/// The limit for the reply to any command, such as `INFO` of a server with many modules.
const FOR_A_COMMAND: usize = 64 << 10;
/// The limit for the map of a cluster, which repeats its nodes for every range of slots. There may be thousands of
/// those.
const FOR_A_MAP: usize = 4 << 20;
/// The addition for each argument of a command. A holder with the longest data and name takes less than 16 KiB in a
/// reply, and its command has at least four arguments.
const FOR_AN_ARGUMENT: usize = 4 << 10;
/// The allowance for late replies: those to abandoned requests may arrive after later ones were answered.
const SLACK: usize = 256 << 10;
/// The limit for a subscription between two moments in which all complete messages have been taken. Confirmations of
/// 100 channels need half of it at most. It is counted from a complete message and not by time: no number of releases
/// in a second is known to be too many, but one message is never longer than 2 KiB.
const SUBSCRIPTION: usize = 256 << 10;
/// The driver does not pass on the server's words about a refused password, so they are kept here too.
const WORDS: usize = 1 << 10;

/// Counts the bytes that are still allowed.
pub(super) struct ReplyLimit {
    state: Mutex<State>,
}

struct State {
    left: usize,
    /// The bytes allowed for all requests so far.
    granted: u64,
    /// The first bytes received while greeting.
    words: Option<Vec<u8>>,
}

/// The total that was allowed up to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket(u64);

impl ReplyLimit {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State { left: GREETING, granted: 0, words: Some(Vec::new()) }) })
    }

    /// Allows the bytes of the replies to these commands.
    pub(super) fn allow(&self, commands: &[Command]) -> Ticket {
        let worth = commands.iter().map(worth).sum::<usize>();
        let mut state = self.state.lock();
        state.left = state.left.saturating_add(worth);
        state.granted = state.granted.saturating_add(worth as u64);
        Ticket(state.granted)
    }

    /// Ends the allowance of these commands and all earlier ones, except for [`SLACK`].
    pub(super) fn settle(&self, ticket: Ticket) {
        let mut state = self.state.lock();
        let later = usize::try_from(state.granted.saturating_sub(ticket.0)).unwrap_or(usize::MAX);
        state.left = state.left.min(later.saturating_add(SLACK));
    }

    /// Starts the allowance of a subscription anew, after all complete messages have been taken.
    pub(super) fn reset(&self) {
        self.state.lock().left = SUBSCRIPTION;
    }

    /// The errors in the replies to the greeting.
    pub(super) fn greeting_errors(&self) -> Vec<String> {
        let words = self.state.lock().words.take().unwrap_or_default();
        let errors = words.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"-"));
        errors.map(|error| String::from_utf8_lossy(error.trim_ascii()).into_owned()).collect()
    }

    /// Stops recording the replies to the greeting.
    pub(super) fn end_greeting(&self) {
        self.state.lock().words = None;
    }

    fn received(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock();
        if let Some(words) = &mut state.words {
            let room = WORDS.saturating_sub(words.len());
            words.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        match state.left.checked_sub(bytes.len()) {
            Some(left) => {
                state.left = left;
                Ok(())
            }
            None => {
                state.left = 0;
                Err(io::Error::new(io::ErrorKind::ConnectionReset, "the server sends more than any answer may have"))
            }
        }
    }
}

fn worth(command: &Command) -> usize {
    let is_about_cluster = command.args.first().is_some_and(|name| name == b"CLUSTER");
    let base = if is_about_cluster { FOR_A_MAP } else { FOR_A_COMMAND };
    base + FOR_AN_ARGUMENT * command.args.len()
}

/// A socket with a limit.
pub(super) struct LimitedSocket<S> {
    pub(super) socket: S,
    pub(super) limit: Arc<ReplyLimit>,
}

impl<S: AsyncRead + Unpin> AsyncRead for LimitedSocket<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, buffer))?;
        Poll::Ready(self.limit.received(&buffer.filled()[before..]))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for LimitedSocket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(args: usize) -> Vec<Command> {
        vec![Command { args: vec![b"x".to_vec(); args] }]
    }

    fn left(limit: &ReplyLimit) -> usize {
        limit.state.lock().left
    }

    #[test]
    fn a_request_makes_room_for_its_answer_only() {
        let limit = ReplyLimit::new();
        limit.received(&[b'x'; GREETING]).unwrap();
        limit.received(b"x").unwrap_err();
        let ticket = limit.allow(&commands(4));
        let room = FOR_A_COMMAND + 4 * FOR_AN_ARGUMENT;
        assert_eq!(left(&limit), room);
        limit.received(&vec![b'x'; room]).unwrap();
        limit.received(b"x").unwrap_err();
        limit.settle(ticket);
        assert_eq!(left(&limit), 0);
    }

    #[test]
    fn unused_allowance_does_not_add_up() {
        let limit = ReplyLimit::new();
        for _ in 0..1_000 {
            let ticket = limit.allow(&commands(100));
            limit.received(b"+OK\r\n").unwrap();
            limit.settle(ticket);
        }
        assert_eq!(left(&limit), SLACK);
    }

    #[test]
    fn an_answer_keeps_the_allowance_of_later_ones() {
        let limit = ReplyLimit::new();
        let first = limit.allow(&commands(1));
        // The second was abandoned.
        let _ = limit.allow(&commands(400));
        let third = limit.allow(&commands(1));
        limit.settle(first);
        assert!(left(&limit) >= 400 * FOR_AN_ARGUMENT);
        limit.settle(third);
        assert_eq!(left(&limit), SLACK);
    }

    #[test]
    fn errors_are_recorded_until_the_greeting_ends() {
        let limit = ReplyLimit::new();
        limit.received(b"+OK\r\n-WRONGPASS inva").unwrap();
        limit.received(b"lid\r\n-NOAUTH\r\n").unwrap();
        assert_eq!(limit.greeting_errors(), ["WRONGPASS invalid", "NOAUTH"]);
        let limit = ReplyLimit::new();
        limit.end_greeting();
        limit.received(b"-ERR no\r\n").unwrap();
        assert!(limit.greeting_errors().is_empty());
    }
}
