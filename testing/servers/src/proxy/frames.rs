//! The borders between requests, and between answers.

use crate::http::{Head, MOST_BODY};
use crate::resp;

/// The framing of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Nothing came yet.
    Unknown,
    Resp,
    Http,
    /// Any other protocol: it passes in the chunks in which it arrived.
    Raw,
}

/// Cuts a stream into whole messages.
#[derive(Debug)]
pub(super) struct Frames {
    pub(super) protocol: Protocol,
    buffer: Vec<u8>,
}

impl Frames {
    pub(super) fn new() -> Self {
        Self { protocol: Protocol::Unknown, buffer: Vec::new() }
    }

    /// The messages that `bytes` complete. A stream that is not what it seemed to be passes in chunks from then on.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.buffer.extend_from_slice(bytes);
        if self.protocol == Protocol::Unknown {
            self.protocol = match self.buffer.first() {
                Some(b'*') => Protocol::Resp,
                Some(b'A'..=b'Z') => Protocol::Http,
                Some(_) => Protocol::Raw,
                None => return Vec::new(),
            };
        }
        let mut frames = Vec::new();
        while !self.buffer.is_empty() {
            match self.next_length() {
                Ok(Some(length)) => frames.push(self.buffer.drain(..length).collect()),
                Ok(None) => break,
                Err(NotSo) => {
                    self.protocol = Protocol::Raw;
                    frames.push(self.rest());
                }
            }
        }
        frames
    }

    /// The part of a message that has arrived so far.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    fn next_length(&self) -> Result<Option<usize>, NotSo> {
        match self.protocol {
            Protocol::Resp => match resp::parse(&self.buffer) {
                Ok(parsed) => Ok(parsed.map(|(_, length)| length)),
                Err(_) => Err(NotSo),
            },
            Protocol::Http => {
                let Some(head) = Head::parse(&self.buffer).map_err(|_| NotSo)? else { return Ok(None) };
                let body = head.body_length().map_err(|_| NotSo)?.unwrap_or(0);
                if body > MOST_BODY {
                    return Err(NotSo);
                }
                let length = head.length + body;
                Ok((self.buffer.len() >= length).then_some(length))
            }
            Protocol::Raw | Protocol::Unknown => Ok(Some(self.buffer.len())),
        }
    }
}

/// The stream does not speak the protocol.
struct NotSo;

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(chunks: &[&[u8]]) -> (Vec<String>, Protocol) {
        let mut frames = Frames::new();
        let mut found = Vec::new();
        for chunk in chunks {
            found.extend(frames.push(chunk).into_iter().map(|frame| String::from_utf8_lossy(&frame).into_owned()));
        }
        (found, frames.protocol)
    }

    #[test]
    fn commands_are_parsed_in_any_chunks() {
        let two = b"*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
        let expected = vec!["*1\r\n$4\r\nPING\r\n".to_owned(), "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".to_owned()];
        assert_eq!(framed(&[two]), (expected.clone(), Protocol::Resp));
        let bytes: Vec<&[u8]> = two.chunks(1).collect();
        assert_eq!(framed(&bytes), (expected, Protocol::Resp));
    }

    #[test]
    fn requests_with_a_body_are_parsed_whole() {
        let post = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
        let get = "GET / HTTP/1.1\r\n\r\n";
        let both = format!("{post}{get}");
        let (start, end) = both.as_bytes().split_at(30);
        assert_eq!(framed(&[start, end]), (vec![post.to_owned(), get.to_owned()], Protocol::Http));
    }

    #[test]
    fn unknown_protocols_pass_in_chunks() {
        assert_eq!(
            framed(&[b"\x16\x03", b"\x01"]),
            (vec!["\u{16}\u{3}".to_owned(), "\u{1}".to_owned()], Protocol::Raw)
        );
        assert_eq!(framed(&[b"*1\r\n?\r\n", b"more"]).1, Protocol::Raw);
        let chunked = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n";
        assert_eq!(framed(&[chunked]).1, Protocol::Raw);
    }
}
