//! RESP, the protocol of Redis: commands out, replies in, versions 2 and 3.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::redis::Command;

mod reader;
#[cfg(test)]
mod tests;

pub use reader::{Reader, decode_all};

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// Nothing, in each of its spellings.
    Nil,
    /// A short line, such as `OK`.
    Simple(Cow<'static, str>),
    /// Bytes.
    Bulk(Vec<u8>),
    /// An integer.
    Integer(i64),
    /// The command failed; the first word is a code.
    Error(String),
    /// A list.
    Array(Vec<Self>),
    /// A message that nobody asked for now, such as one of a subscription.
    Push(Vec<Self>),
    /// A list without an order.
    Set(Vec<Self>),
    /// Pairs, as they came.
    Map(Vec<(Self, Self)>),
    /// Yes or no.
    Boolean(bool),
    /// A fraction as the server spelled it; nothing here counts with fractions.
    Double(String),
    /// An integer of any size, in decimal digits.
    BigNumber(String),
    /// Text, three letters of format and a colon first.
    Verbatim(Vec<u8>),
}

impl Value {
    /// The bytes of a bulk or simple string; `None` for everything else.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        if let Self::Bulk(bytes) = self {
            return Some(bytes);
        }
        if let Self::Simple(text) = self { Some(text.as_bytes()) } else { None }
    }

    /// The server's error message; `None` for everything else.
    pub fn as_error(&self) -> Option<&str> {
        if let Self::Error(error) = self { Some(error) } else { None }
    }
}

/// Appends a command as a list of byte strings.
pub fn encode(command: &Command, out: &mut Vec<u8>) {
    push_header(b'*', command.len(), out);
    out.extend_from_slice(command.encoded_words());
}

/// Appends the line that begins a list or a byte string.
pub(crate) fn push_header(kind: u8, count: usize, out: &mut Vec<u8>) {
    match u8::try_from(count) {
        Ok(few @ 0..10) => out.extend_from_slice(&[kind, b'0' + few, b'\r', b'\n']),
        Ok(few @ 10..100) => out.extend_from_slice(&[kind, b'0' + few / 10, b'0' + few % 10, b'\r', b'\n']),
        _ => out.extend_from_slice(Digits::header(kind, count).as_bytes()),
    }
}

/// The decimal digits of a number, without memory of their own.
pub(crate) struct Digits {
    bytes: [u8; Self::ROOM],
    begin: usize,
    end: usize,
}

impl Digits {
    /// For the longest number, and what a header has around it.
    const ROOM: usize = 24;

    pub(crate) fn of(number: u64) -> Self {
        let end = Self::ROOM - 2;
        let (mut bytes, mut begin, mut rest) = ([0; Self::ROOM], end, number);
        loop {
            begin -= 1;
            // A digit fits into a byte.
            bytes[begin] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                return Self { bytes, begin, end };
            }
        }
    }

    /// The line that begins a list or a byte string.
    pub(crate) fn header(kind: u8, count: usize) -> Self {
        let Self { mut bytes, begin, end } = Self::of(count as u64);
        bytes[begin - 1] = kind;
        bytes[end..].copy_from_slice(b"\r\n");
        Self { bytes, begin: begin - 1, end: Self::ROOM }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.begin..self.end]
    }
}

/// How much a server may make us keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Bytes of one reply: 1 MiB by default.
    pub max_bytes: usize,
    /// Lists within lists: 32 by default.
    pub depth: usize,
    /// Values in one reply, at every depth: 65,536 by default.
    pub elements: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 1 << 20, depth: 32, elements: 1 << 16 }
    }
}

/// The longest line that is no byte string: an error with all that it repeats of a command is far shorter.
const MAX_LINE: usize = 64 * 1024;

/// The server does not speak RESP, or says more than the limits allow. The connection is of no further use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Malformed {
    /// A description of the violation.
    pub what: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server's answer is no RESP: {}", self.what)
    }
}

impl core::error::Error for Malformed {}

const fn malformed<T>(what: &'static str) -> Result<T, Malformed> {
    Err(Malformed { what })
}

/// Takes bytes as they arrive and gives whole replies.
///
/// Every byte is looked at a bounded number of times, however small the pieces, and no memory is set aside for what a
/// header announces.
#[derive(Clone, Debug)]
pub struct Decoder {
    limits: Limits,
    buffer: Vec<u8>,
    /// Up to where the buffer is read.
    at: usize,
    /// From `at` on, how much is known to hold no end of line.
    searched: usize,
    /// Bytes and values of the reply that is being read.
    bytes: usize,
    values: usize,
    open: Vec<List>,
    broken: Option<Malformed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Array,
    Push,
    Set,
    Map,
    /// Remarks about the value that follows; read and dropped.
    Attribute,
}

#[derive(Clone, Debug)]
struct List {
    kind: Kind,
    missing: usize,
    items: Vec<Value>,
}

enum Piece {
    Value(Value),
    List(List),
}

impl Decoder {
    /// With nothing read.
    pub fn new(limits: Limits) -> Self {
        Self { limits, buffer: Vec::new(), at: 0, searched: 0, bytes: 0, values: 0, open: Vec::new(), broken: None }
    }

    /// More bytes from the server. Take all replies with [`Decoder::next`] before the next piece, or they pile up here.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.broken.is_none() {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Returns true if a reply has begun and is not complete, or waits to be taken.
    pub fn is_pending(&self) -> bool {
        self.at < self.buffer.len() || self.bytes > 0
    }

    /// The bytes behind the last whole reply that have come: those of a reply whose end has not.
    pub fn pending(&self) -> usize {
        self.bytes.saturating_add(self.unread())
    }

    /// How many bytes behind the last whole reply have come.
    fn unread(&self) -> usize {
        self.buffer.len() - self.at
    }

    /// The next whole reply; `None` until more bytes come.
    ///
    /// # Errors
    /// No RESP, or more of it than the limits allow; from then on always.
    #[expect(clippy::should_implement_trait, reason = "an iterator that ends goes on when more bytes come")]
    pub fn next(&mut self) -> Result<Option<Value>, Malformed> {
        if let Some(malformed) = self.broken {
            return Err(malformed);
        }
        self.reply().inspect_err(|malformed| {
            self.broken = Some(*malformed);
            self.buffer = Vec::new();
            self.open = Vec::new();
        })
    }

    fn reply(&mut self) -> Result<Option<Value>, Malformed> {
        while let Some(piece) = self.piece()? {
            let value = match piece {
                Piece::Value(value) => value,
                Piece::List(list) if list.missing > 0 => {
                    self.open.push(list);
                    continue;
                }
                Piece::List(list) => match list.close() {
                    Some(value) => value,
                    None => continue,
                },
            };
            if let Some(whole) = self.place(value) {
                self.bytes = 0;
                self.values = 0;
                return Ok(Some(whole));
            }
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        Ok(None)
    }

    /// Puts a value into the innermost list, and closes what is full; gives the value that is in no list.
    fn place(&mut self, mut value: Value) -> Option<Value> {
        while let Some(mut list) = self.open.pop() {
            list.items.push(value);
            list.missing -= 1;
            if list.missing > 0 {
                self.open.push(list);
                return None;
            }
            value = list.close()?;
        }
        Some(value)
    }

    /// One header with its bytes, `None` until all of it is there.
    fn piece(&mut self) -> Result<Option<Piece>, Malformed> {
        let Some(length) = self.line()? else { return Ok(None) };
        let line = &self.buffer[self.at..self.at + length];
        let Some((&kind, rest)) = line.split_first() else { return malformed("an empty line") };
        match (kind, rest) {
            (b':', _) => return self.done(length, Value::Integer(integer(rest)?)),
            (b'$' | b'*', b"-1") => return self.done(length, Value::Nil),
            (b'$' | b'!' | b'=', _) => return self.bulk(kind, length, count(rest)?),
            (b'*' | b'>' | b'~' | b'%' | b'|', _) => return self.list(kind, length, count(rest)?),
            (b'+', b"OK") => return self.done(length, Value::Simple(Cow::Borrowed("OK"))),
            (b'+', b"QUEUED") => return self.done(length, Value::Simple(Cow::Borrowed("QUEUED"))),
            _ => {}
        }
        let Ok(rest) = core::str::from_utf8(rest) else {
            // Errors repeat what they were sent, which another client may have chosen.
            let text = String::from_utf8_lossy(&line[1..]).into_owned();
            return match kind {
                b'+' => self.done(length, Value::Simple(Cow::Owned(text))),
                b'-' => self.done(length, Value::Error(text)),
                _ => malformed("a header that is no text"),
            };
        };
        let value = match kind {
            b'+' => Value::Simple(Cow::Owned(rest.to_string())),
            b'-' => Value::Error(rest.to_string()),
            b'_' if rest.is_empty() => Value::Nil,
            b'#' if rest == "t" => Value::Boolean(true),
            b'#' if rest == "f" => Value::Boolean(false),
            b',' if !rest.is_empty() => Value::Double(rest.to_string()),
            b'(' if is_integer(rest.as_bytes()) => Value::BigNumber(rest.to_string()),
            b'_' | b'#' | b',' | b'(' => return malformed("a value that its type does not have"),
            _ => return malformed("an unknown type"),
        };
        self.done(length, value)
    }

    fn bulk(&mut self, kind: u8, line: usize, count: usize) -> Result<Option<Piece>, Malformed> {
        let with_ends = count.saturating_add(line + 4);
        if self.bytes.saturating_add(with_ends) > self.limits.max_bytes {
            return malformed("a reply longer than allowed");
        }
        let body = self.buffer.get(self.at + line + 2..self.at.saturating_add(with_ends));
        let Some(body) = body else { return Ok(None) };
        let (body, end) = body.split_at(count);
        if end != b"\r\n" {
            return malformed("a byte string longer than it said");
        }
        let value = match kind {
            b'!' => Value::Error(String::from_utf8_lossy(body).into_owned()),
            b'=' => Value::Verbatim(body.to_vec()),
            _ => Value::Bulk(body.to_vec()),
        };
        self.done(line + 2 + count, value)
    }

    fn list(&mut self, kind: u8, line: usize, count: usize) -> Result<Option<Piece>, Malformed> {
        let (kind, per_item) = match kind {
            b'*' => (Kind::Array, 1),
            b'>' => (Kind::Push, 1),
            b'~' => (Kind::Set, 1),
            b'%' => (Kind::Map, 2),
            _ => (Kind::Attribute, 2),
        };
        if self.open.len() >= self.limits.depth {
            return malformed("lists nested deeper than allowed");
        }
        let missing = count.saturating_mul(per_item);
        self.values = self.values.saturating_add(missing);
        if self.values > self.limits.elements {
            return malformed("a reply of more values than allowed");
        }
        self.take(line)?;
        Ok(Some(Piece::List(List { kind, missing, items: Vec::new() })))
    }

    fn done(&mut self, length: usize, value: Value) -> Result<Option<Piece>, Malformed> {
        self.take(length)?;
        Ok(Some(Piece::Value(value)))
    }

    /// Moves past a piece of this length and its end of line.
    fn take(&mut self, length: usize) -> Result<(), Malformed> {
        self.at += length + 2;
        self.searched = 0;
        self.bytes = self.bytes.saturating_add(length + 2);
        if self.bytes > self.limits.max_bytes { malformed("a reply longer than allowed") } else { Ok(()) }
    }

    /// The length of the line at `at`, `None` until its end has come.
    fn line(&mut self) -> Result<Option<usize>, Malformed> {
        let rest = &self.buffer[self.at..];
        let found = rest[self.searched..].iter().position(|byte| matches!(byte, b'\r' | b'\n'));
        // A byte string that has not all come leaves its header here, to be found again at once.
        self.searched = found.map_or(rest.len(), |end| self.searched + end);
        if self.searched + usize::from(found.is_some()) > MAX_LINE.min(self.limits.max_bytes) {
            return malformed("a line longer than allowed");
        }
        match rest[self.searched..] {
            [] | [b'\r'] => Ok(None),
            [b'\r', b'\n', ..] => Ok(Some(self.searched)),
            [..] => malformed("a line that does not end as lines do"),
        }
    }
}

impl List {
    fn close(self) -> Option<Value> {
        match self.kind {
            Kind::Array => Some(Value::Array(self.items)),
            Kind::Push => Some(Value::Push(self.items)),
            Kind::Set => Some(Value::Set(self.items)),
            Kind::Map => {
                let mut items = self.items.into_iter();
                Some(Value::Map(core::iter::from_fn(|| items.next().zip(items.next())).collect()))
            }
            Kind::Attribute => None,
        }
    }
}

/// A length: digits only, so that streamed values (`?`) and negative lengths are refused.
fn count(digits: &[u8]) -> Result<usize, Malformed> {
    let add = |sum: usize, digit: &u8| sum.checked_mul(10)?.checked_add(value_of(*digit)?);
    let count = digits.iter().try_fold(0, add).filter(|_| !digits.is_empty());
    count.map_or_else(|| malformed("a length that is no number"), Ok)
}

fn integer(text: &[u8]) -> Result<i64, Malformed> {
    let text = Some(text).filter(|text| is_integer(text)).and_then(|text| core::str::from_utf8(text).ok());
    text.and_then(|text| text.parse().ok()).map_or_else(|| malformed("an integer that is none"), Ok)
}

fn is_integer(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"+").or_else(|| text.strip_prefix(b"-")).unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

fn value_of(digit: u8) -> Option<usize> {
    digit.is_ascii_digit().then(|| usize::from(digit - b'0'))
}
