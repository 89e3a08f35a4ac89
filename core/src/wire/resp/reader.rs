//! Whole replies as the bytes that they came in, for hosts that hand those on.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::{Decoder, Limits, Malformed, Value, malformed};
use crate::config::ConfigError;

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

/// Tells whole replies apart in what comes over one connection. Messages that nobody asked for are left out.
#[derive(Clone, Debug)]
pub struct Reader {
    decoder: Decoder,
    bytes: Vec<u8>,
    /// Where the replies end that are there.
    ends: VecDeque<usize>,
    broken: Option<Malformed>,
}

impl Reader {
    /// With nothing read. No reply may be longer than `max_reply_bytes`.
    ///
    /// # Errors
    /// A bound of 0.
    pub fn new(max_reply_bytes: usize) -> Result<Self, ConfigError> {
        if max_reply_bytes == 0 {
            return Err(ConfigError::ZeroLimit { what: "max_reply_bytes" });
        }
        let decoder = Decoder::new(Limits { max_bytes: max_reply_bytes, ..Limits::default() });
        Ok(Self { decoder, bytes: Vec::new(), ends: VecDeque::new(), broken: None })
    }

    /// What has arrived, in pieces of any size. Whole replies stay here until they are taken.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.broken.is_some() {
            return;
        }
        self.bytes.extend_from_slice(bytes);
        self.decoder.push(bytes);
        loop {
            match self.decoder.next() {
                Ok(Some(reply)) => {
                    let end = self.bytes.len() - self.decoder.unread();
                    if let Value::Push(_) = reply {
                        self.bytes.drain(self.ends.back().copied().unwrap_or(0)..end);
                    } else {
                        self.ends.push_back(end);
                    }
                }
                Ok(None) => return,
                Err(malformed) => {
                    self.broken = Some(malformed);
                    return;
                }
            }
        }
    }

    /// The next so many replies; `None` as long as they are not all there.
    ///
    /// # Errors
    /// What comes after the replies that are there is no RESP, or too long: the connection is of no further use.
    pub fn take(&mut self, replies: usize) -> Result<Option<Vec<u8>>, Malformed> {
        let Some(last) = replies.checked_sub(1) else { return Ok(Some(Vec::new())) };
        let Some(end) = self.ends.get(last).copied() else {
            return self.broken.map_or(Ok(None), Err);
        };
        self.ends.drain(..replies);
        self.ends.iter_mut().for_each(|later| *later -= end);
        Ok(Some(self.bytes.drain(..end).collect()))
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
    fn all_of_it_is_replies_or_it_is_none() {
        assert_eq!(decode_all(b":1\r\n$-1\r\n"), Ok(alloc::vec![Value::Integer(1), Value::Nil]));
        assert_eq!(decode_all(b""), Ok(Vec::new()));
        for wrong in [&b":1\r\n:"[..], b"*2\r\n:1\r\n", b"{}", b"$5\r\nab"] {
            assert!(decode_all(wrong).is_err(), "{wrong:?}");
        }
    }
}
