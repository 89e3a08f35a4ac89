//! The queue of waiters beside a lock: who stands in it, and how the next one learns that the lock is reserved.
//!
//! | what | where |
//! |---|---|
//! | queue | `{resource}` 0x1F `line of name`: a sorted set of tickets by the time of joining, kept for a minute after its last use |
//! | ticket | `<client>:<lock>`: the client's 32 hexadecimal digits, and the number of the acquisition |
//! | reservation | the lock's own key: `reserved:<ticket>`, for half a second |
//! | hands | the queue's key and 0x1F `hands`: stands for 65 s from the first hand-over on, and for 50 ms more from each that left the lock free for others |
//! | client's channel | `leasehold` 0x1F `client` 0x1F `<client>`; a message is the acquisition's number, a space and the resource |
//!
//! `PUBSUB NUMSUB` tells if a client listens on its channel, inside a script too. So the script that frees a lock finds the
//! first waiter that is alive, and reserves the lock for it: an ordinary value, which others respect. Nobody is told when a
//! reservation ends, so the answer to a join shows how long it stands.
//!
//! Other libraries poll, and find a lock that passes from hand to hand never free. So after 5 s of that it is not reserved: it is free, and
//! the first in the queue is told to come 50 ms later, by `+50` behind the number.

use alloc::vec::Vec;
use core::time::Duration;

use super::command::Words;
use super::{Codec, Command, keys, replies, scripts};
use crate::resp::Value;
use leasehold_core::time::OPEN_FOR;
use leasehold_core::{LockId, Resource};

/// The random name of a client, by which it is told of reservations. It must not be shared by two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientId([u8; 32]);

impl ClientId {
    /// The name made of these random bytes.
    pub fn new(random: [u8; 16]) -> Self {
        let digit = |at: usize| random[at / 2] >> (4 - at % 2 * 4) & 15;
        Self(core::array::from_fn(|at| b"0123456789abcdef"[usize::from(digit(at))]))
    }

    /// The channel that this client listens on for its whole life.
    pub fn channel(&self) -> Vec<u8> {
        [keys::CLIENTS, &self.0].concat()
    }

    pub(super) const fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The client's own channel, while it is subscribed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subscription {
    /// The client.
    pub client: ClientId,
    /// Which of its subscriptions this is: a new one has to be tested by each connection again.
    pub generation: u64,
}

/// The queue of a lock, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// How many wait.
    pub waiting: u64,
    /// When the first of them joined, in milliseconds since 1970.
    pub since_unix_ms: u64,
}

impl Codec {
    /// The key with the queue of waiters.
    pub fn queue_key(resource: &Resource) -> Vec<u8> {
        keys::of(resource).queue().concat()
    }

    /// The command that gives up a ticket: it leaves the queue, and what is reserved for it goes to the next. Its answer
    /// does not matter.
    pub fn leave(client: &ClientId, resource: &Resource, lock: LockId) -> Command {
        let mut words = Words::default();
        words.push(b"EVAL");
        words.push(scripts::LEAVE.text.as_bytes());
        words.push(b"1");
        words.push(resource.as_str().as_bytes());
        words.push(client.as_bytes());
        words.push_number(lock.get());
        words.push_parts(&keys::of(resource).channel());
        words.push_parts(&keys::of(resource).queue());
        Command::of(words)
    }

    /// The commands that look at a queue. Their replies are for [`Codec::queue`].
    pub fn look_at_queue(resource: &Resource) -> [Command; 2] {
        let key = keys::of(resource).queue().concat();
        [Command::new([&b"ZCARD"[..], &key]), Command::new([&b"ZRANGE"[..], &key, b"0", b"0", b"WITHSCORES"])]
    }

    /// The queue that the replies to [`Codec::look_at_queue`] show; `None` if nobody waits, or may not be looked at.
    pub fn queue(found: &[Value]) -> Option<Queue> {
        let [waiting, Value::Array(first)] = found else { return None };
        let waiting = replies::count(waiting).filter(|waiting| *waiting > 0)?;
        let [_, since] = &first[..] else { return None };
        let since = if let Value::Double(since) = since { since.as_bytes() } else { since.as_bytes()? };
        let since_us: f64 = core::str::from_utf8(since).ok()?.parse().ok()?;
        let since = Duration::try_from_secs_f64(since_us / 1e6).ok()?;
        Some(Queue { waiting, since_unix_ms: u64::try_from(since.as_millis()).ok()? })
    }

    /// The turn that a message on a client's channel tells of, and how long the lock is free for others before; `None` if it tells of
    /// none.
    pub fn reserved_by(message: &[u8]) -> Option<(Resource, LockId, Duration)> {
        let (number, resource) = core::str::from_utf8(message).ok()?.split_once(' ')?;
        let (number, after) = number.split_once('+').unwrap_or((number, "0"));
        if [number, after].iter().any(|number| !number.bytes().all(|byte| byte.is_ascii_digit())) {
            return None;
        }
        let after = Duration::from_millis(after.parse().ok()?);
        // No honest client writes more, and nobody is to sleep for it.
        (after <= OPEN_FOR).then_some((Resource::new(resource).ok()?, LockId::new(number.parse().ok()?), after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn messages_name_the_ticket_and_the_resource() {
        let (resource, lock, after) = Codec::reserved_by(b"12 a b").unwrap();
        assert_eq!((resource.as_str(), lock.get(), after), ("a b", 12, Duration::ZERO));
        assert_eq!(Codec::reserved_by(b"12+50 a").unwrap().2, OPEN_FOR);
        for bad in [&b"1+51 a"[..], b"+50 a", b"1+ a", b"1+-1 a", b"1+5+5 a"] {
            assert_eq!(Codec::reserved_by(bad), None, "{bad:?}");
        }
        for bad in [&b""[..], b"12", b"12 ", b" a", b"-1 a", b"+1 a", b"1x a", b"99999999999999999999 a", b"\xff a"] {
            assert_eq!(Codec::reserved_by(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn lines_are_read_as_servers_show_them() {
        let text = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let found = |waiting, since| [Value::Integer(waiting), Value::Array(vec![text("t"), since])];
        let queue = Queue { waiting: 3, since_unix_ms: 1_700_000_000_000 };
        assert_eq!(Codec::queue(&found(3, text("1700000000000123"))), Some(queue));
        assert_eq!(Codec::queue(&found(3, Value::Double("1.700000000000123e15".into()))), Some(queue));
        for nobody in [
            [Value::Integer(0), Value::Array(vec![])],
            [Value::Error("NOPERM".into()), Value::Error("NOPERM".into())],
            found(-1, text("1")),
            found(1, text("nan")),
            found(1, text("-1")),
        ] {
            assert_eq!(Codec::queue(&nobody), None, "{nobody:?}");
        }
    }

    #[test]
    fn a_client_has_one_channel() {
        assert_eq!(ClientId::new([0xab; 16]).channel(), b"leasehold\x1fclient\x1fabababababababababababababababab");
    }
}
