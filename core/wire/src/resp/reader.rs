//! Whole replies as the bytes that they came in, for hosts that hand those on.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::{Decoder, Limits, Malformed, Value, malformed};
use leasehold_core::config::ConfigError;

/// The replies in these bytes, which hold nothing else.
///
/// # Errors
/// No RESP, more of it than is usual, or a reply without its end.
pub fn decode_all(bytes: &[u8]) -> Result<Vec<Value>, Malformed> {
    let mut decoder = Decoder::new(Limits::default());
    decoder.push(bytes);
    let mut replies = Vec::new();
    while let Some(reply) = decoder.next()? {
        replies.push(reply);
    }
    if decoder.is_pending() { malformed("a reply without its end") } else { Ok(replies) }
}

/// So many of the longest replies may wait to be taken: a host takes them as they come, and a server that sends more
/// than it was asked for must not fill the memory.
const MOST_UNTAKEN: usize = 8;

/// Tells whole replies apart in what comes over one connection. Messages that nobody asked for are left out.
#[derive(Clone, Debug)]
pub struct Reader {
    decoder: Decoder,
    /// Bytes that belong to no whole reply yet.
    rest: Vec<u8>,
    /// Whole replies, one after the other.
    whole: VecDeque<u8>,
    /// How long each of them is.
    lengths: VecDeque<usize>,
    /// So much of them may be left here when more comes.
    most_bytes: usize,
    broken: Option<Malformed>,
}

impl Reader {
    /// With nothing read. No reply may be longer than `max_reply_bytes`, and of replies that nobody takes eight times as
    /// much is kept.
    ///
    /// # Errors
    /// A bound of 0.
    pub fn new(max_reply_bytes: usize) -> Result<Self, ConfigError> {
        if max_reply_bytes == 0 {
            return Err(ConfigError::ZeroLimit { what: "max_reply_bytes" });
        }
        let decoder = Decoder::new(Limits { max_bytes: max_reply_bytes, ..Limits::default() });
        let most_bytes = max_reply_bytes.saturating_mul(MOST_UNTAKEN);
        let (rest, whole, lengths) = (Vec::new(), VecDeque::new(), VecDeque::new());
        Ok(Self { decoder, rest, whole, lengths, most_bytes, broken: None })
    }

    /// Adds bytes that have arrived, in pieces of any size. Whole replies stay here until they are taken.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.broken.is_some() {
            return;
        }
        if self.whole.len() > self.most_bytes {
            self.broken = Some(Malformed { what: "more replies than anybody takes" });
            return;
        }
        self.rest.extend_from_slice(bytes);
        self.decoder.push(bytes);
        let mut at = 0;
        self.broken = loop {
            match self.decoder.next() {
                Ok(Some(reply)) => {
                    let end = self.rest.len() - self.decoder.unread();
                    if !matches!(reply, Value::Push(_)) {
                        self.whole.extend(&self.rest[at..end]);
                        self.lengths.push_back(end - at);
                    }
                    at = end;
                }
                Ok(None) => break None,
                Err(malformed) => break Some(malformed),
            }
        };
        self.rest.drain(..at);
    }

    /// The next so many replies; `None` as long as they are not all there.
    ///
    /// # Errors
    /// What comes after the replies that are there is no RESP, or too long, or more than anybody takes: the connection is
    /// of no further use.
    pub fn take(&mut self, replies: usize) -> Result<Option<Vec<u8>>, Malformed> {
        if self.lengths.len() < replies {
            return self.broken.map_or(Ok(None), Err);
        }
        let length = self.lengths.drain(..replies).sum::<usize>();
        Ok(Some(self.whole.drain(..length).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLIES: &[u8] = b"+OK\r\n*2\r\n$1\r\na\r\n:1\r\n>2\r\n+message\r\n+x\r\n$-1\r\n-ERR no\r\n";

    #[test]
    fn replies_are_cut_where_they_end() {
        for piece in 1..REPLIES.len() {
            let mut reader = Reader::new(100).unwrap();
            let mut early = None;
            for bytes in REPLIES.chunks(piece) {
                reader.push(bytes);
                if early.is_none() {
                    early = reader.take(2).unwrap();
                }
            }
            assert_eq!(early.as_deref(), Some(&b"+OK\r\n*2\r\n$1\r\na\r\n:1\r\n"[..]), "{piece}");
            assert_eq!(reader.take(3), Ok(None));
            assert_eq!(reader.take(0), Ok(Some(Vec::new())));
            assert_eq!(reader.take(1), Ok(Some(b"$-1\r\n".to_vec())));
            assert_eq!(reader.take(1), Ok(Some(b"-ERR no\r\n".to_vec())));
            assert_eq!(reader.take(1), Ok(None));
        }
    }

    #[test]
    fn what_came_before_nonsense_can_be_taken() {
        let mut reader = Reader::new(100).unwrap();
        reader.push(b":1\r\n<html>\r\n");
        reader.push(b":2\r\n");
        assert_eq!(reader.take(1), Ok(Some(b":1\r\n".to_vec())));
        assert!(reader.take(1).is_err() && reader.take(1).is_err());
        let mut reader = Reader::new(10).unwrap();
        reader.push(b"$100\r\n");
        assert!(reader.take(1).is_err() && Reader::new(0).is_err());
    }

    #[test]
    fn replies_that_nobody_takes_are_not_kept_for_ever() {
        let mut reader = Reader::new(10).unwrap();
        for _ in 0..1_000 {
            reader.push(b":1\r\n>1\r\n+x\r\n");
        }
        let kept = 10 * MOST_UNTAKEN / 4 + 1;
        assert_eq!(reader.take(kept), Ok(Some(b":1\r\n".repeat(kept))), "what came before can be taken");
        assert!(reader.take(1).is_err());
        // However much comes at once, it can be taken before more does.
        let mut reader = Reader::new(10).unwrap();
        for _ in 0..3 {
            reader.push(&b":1\r\n".repeat(1_000));
            assert_eq!(reader.take(1_000).map(|taken| taken.map(|bytes| bytes.len())), Ok(Some(4_000)));
        }
    }

    #[test]
    fn all_of_it_is_replies_or_it_is_none() {
        assert_eq!(decode_all(b":1\r\n$-1\r\n"), Ok(alloc::vec![Value::Integer(1), Value::Nil]));
        assert_eq!(decode_all(b""), Ok(Vec::new()));
        for wrong in [&b":1\r\n:"[..], b"*2\r\n:1\r\n", b"{}", b"$5\r\nab"] {
            assert!(decode_all(wrong).is_err(), "{wrong:?}");
        }
    }
}
