//! The Redis protocol, as far as tests need it: a client that speaks RESP2, and a reader that also frames RESP3.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::PATIENCE;

/// Deeper replies are not Redis's.
const MOST_NESTED: usize = 64;

/// Larger replies are a mistake of the test.
const MOST_BYTES: usize = 256 << 20;

/// A reply of Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A status such as `OK`.
    Status(String),
    /// An error, with its code in front: `WRONGTYPE Operation against ...`.
    Error(String),
    /// A number.
    Integer(i64),
    /// A string of bytes.
    Bulk(Vec<u8>),
    /// Nothing there.
    Nil,
    /// Several replies.
    Array(Vec<Reply>),
}

impl Reply {
    /// The text of a status, an error, a string or a number.
    ///
    /// # Panics
    ///
    /// On anything else.
    #[track_caller]
    pub fn text(&self) -> String {
        match self {
            Self::Status(text) | Self::Error(text) => text.clone(),
            Self::Integer(number) => number.to_string(),
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Nil | Self::Array(_) => panic!("no text: {self:?}"),
        }
    }

    /// A number, or a string that reads as one.
    ///
    /// # Panics
    ///
    /// On anything else.
    #[track_caller]
    pub fn integer(&self) -> i64 {
        self.text().parse().unwrap_or_else(|_| panic!("no integer: {self:?}"))
    }

    /// The replies of an array.
    ///
    /// # Panics
    ///
    /// On anything else.
    #[track_caller]
    pub fn array(&self) -> &[Reply] {
        match self {
            Self::Array(items) => items,
            Self::Status(_) | Self::Error(_) | Self::Integer(_) | Self::Bulk(_) | Self::Nil => {
                panic!("no array: {self:?}")
            }
        }
    }

    /// True for an error.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }
}

/// A connection to a Redis server. An answer that does not come within a minute is an error.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Connection {
    /// Connects, without sending anything.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, unread: Vec::new() })
    }

    /// Sends a command and returns its answer, [`Reply::Error`] included.
    ///
    /// # Errors
    ///
    /// When the connection ends or nothing arrives. It is then unknown whether the command was performed.
    pub fn command<W: AsRef<[u8]>>(&mut self, words: &[W]) -> io::Result<Reply> {
        self.send(words)?;
        self.receive()
    }

    /// Sends a command without waiting for its answer.
    ///
    /// # Errors
    ///
    /// When the connection has ended.
    pub fn send<W: AsRef<[u8]>>(&mut self, words: &[W]) -> io::Result<()> {
        self.stream.write_all(&encode(words))
    }

    /// The next answer, or the next message of a subscription.
    ///
    /// # Errors
    ///
    /// When the connection ends, nothing arrives, or the answer is not RESP.
    pub fn receive(&mut self) -> io::Result<Reply> {
        let mut chunk = [0; 16 << 10];
        loop {
            if let Some((reply, length)) = parse(&self.unread)? {
                self.unread.drain(..length);
                return Ok(reply);
            }
            match self.stream.read(&mut chunk)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => self.unread.extend_from_slice(&chunk[..read]),
            }
        }
    }
}

/// A command as Redis wants it: an array of strings.
pub fn encode<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words.iter().map(AsRef::as_ref) {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// The reply at the start of `bytes` and its length; `None` while it is not all there. The types that RESP3 added are
/// read as what RESP2 would have sent.
pub(crate) fn parse(bytes: &[u8]) -> io::Result<Option<(Reply, usize)>> {
    let mut reader = Reader { bytes, at: 0 };
    match reader.reply(0) {
        Ok(reply) => Ok(Some((reply, reader.at))),
        Err(Stop::Incomplete) => Ok(None),
        Err(Stop::Malformed(why)) => Err(io::Error::new(io::ErrorKind::InvalidData, why)),
    }
}

enum Stop {
    Incomplete,
    Malformed(String),
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn reply(&mut self, depth: usize) -> Result<Reply, Stop> {
        if depth > MOST_NESTED {
            return Err(Stop::Malformed("nested too deeply".to_owned()));
        }
        let line = self.line()?;
        let Some((kind, rest)) = line.split_at_checked(1) else {
            return Err(Stop::Malformed("an empty line".to_owned()));
        };
        match kind {
            "+" | "," | "(" => Ok(Reply::Status(rest.to_owned())),
            "-" => Ok(Reply::Error(rest.to_owned())),
            ":" => number(rest).map(Reply::Integer),
            "#" => Ok(Reply::Integer(i64::from(rest == "t"))),
            "_" => Ok(Reply::Nil),
            "$" | "=" | "!" => {
                let Some(length) = length(rest)? else { return Ok(Reply::Nil) };
                let end = self.at + length;
                let bytes = self.bytes.get(self.at..end).ok_or(Stop::Incomplete)?.to_vec();
                self.bytes.get(end..end + 2).ok_or(Stop::Incomplete)?;
                self.at = end + 2;
                let is_error = kind == "!";
                Ok(if is_error {
                    Reply::Error(String::from_utf8_lossy(&bytes).into_owned())
                } else {
                    Reply::Bulk(bytes)
                })
            }
            "*" | "~" | ">" => self.items(length(rest)?, depth),
            "%" | "|" => self.items(length(rest)?.map(|pairs| pairs * 2), depth),
            _ => Err(Stop::Malformed(format!("unknown type {kind:?}"))),
        }
    }

    fn items(&mut self, count: Option<usize>, depth: usize) -> Result<Reply, Stop> {
        let Some(count) = count else { return Ok(Reply::Nil) };
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(self.reply(depth + 1)?);
        }
        Ok(Reply::Array(items))
    }

    fn line(&mut self) -> Result<String, Stop> {
        let rest = &self.bytes[self.at..];
        let length = rest.windows(2).position(|two| two == b"\r\n").ok_or(Stop::Incomplete)?;
        self.at += length + 2;
        Ok(String::from_utf8_lossy(&rest[..length]).into_owned())
    }
}

fn number(text: &str) -> Result<i64, Stop> {
    text.parse().map_err(|_| Stop::Malformed(format!("no number: {text:?}")))
}

/// A length in bytes or items; `None` for nil.
fn length(text: &str) -> Result<Option<usize>, Stop> {
    match usize::try_from(number(text)?) {
        Ok(length) if length > MOST_BYTES => Err(Stop::Malformed(format!("{length} is too long"))),
        Ok(length) => Ok(Some(length)),
        Err(_) => Ok(None),
    }
}
