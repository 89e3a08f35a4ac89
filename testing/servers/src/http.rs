//! A small HTTP/1.1: a client, and the two readers that the servers and the proxy share.
//!
//! Bodies have a `Content-Length` or, in answers, end with the connection. Everything is bounded.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::PATIENCE;

/// The longest head of a message, in bytes.
pub(crate) const MOST_HEAD: usize = 16 << 10;

/// The longest body that a server of the rig reads, in bytes.
pub(crate) const MOST_BODY: usize = 8 << 20;

/// The longest body of an answer that the client reads, in bytes.
const MOST_ANSWER: usize = 64 << 20;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status, such as 200.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body as it came.
    pub body: Vec<u8>,
}

impl Response {
    /// The first value of a header, whose name is given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A connection that is kept for several requests. An answer that does not come within a minute is an error.
#[derive(Debug)]
pub struct Connection {
    address: SocketAddr,
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
        Ok(Self { address, stream, unread: Vec::new() })
    }

    /// From now on, an answer that does not begin or go on within this time is an error.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn give_up_after(&self, patience: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(patience))
    }

    /// Sends a request and returns its answer, with any status.
    ///
    /// # Errors
    ///
    /// When the connection ends before the whole answer, nothing arrives, or the answer is not HTTP.
    pub fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> io::Result<Response> {
        let body = body.as_ref();
        let mut message = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.address);
        for (name, value) in headers {
            message.push_str(&format!("{name}: {value}\r\n"));
        }
        message.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        let mut message = message.into_bytes();
        message.extend_from_slice(body);
        self.stream.write_all(&message)?;
        self.response()
    }

    fn response(&mut self) -> io::Result<Response> {
        let head = loop {
            if let Some(head) = Head::parse(&self.unread).map_err(invalid)? {
                break head;
            }
            if !self.read()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let mut words = head.start.splitn(3, ' ');
        let status = words.nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| invalid(format!("no status in {:?}", head.start)))?;
        let length = head.body_length().map_err(invalid)?;
        self.unread.drain(..head.length);
        while length.is_none_or(|length| self.unread.len() < length) {
            if self.unread.len() > MOST_ANSWER {
                return Err(invalid(format!("an answer of more than {MOST_ANSWER} bytes")));
            }
            match (self.read()?, length) {
                (true, _) => {}
                (false, None) => break,
                (false, Some(_)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let body = self.unread.drain(..length.unwrap_or(self.unread.len())).collect();
        Ok(Response { status, headers: head.headers, body })
    }

    /// Reads on; false at the end.
    fn read(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 16 << 10];
        let read = self.stream.read(&mut chunk)?;
        self.unread.extend_from_slice(&chunk[..read]);
        Ok(read > 0)
    }
}

/// One request on a connection of its own.
///
/// # Errors
///
/// As for [`Connection::request`].
pub fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl AsRef<[u8]>,
) -> io::Result<Response> {
    Connection::open(address)?.request(method, path, headers, body)
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// The first line and the headers of a message.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) start: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The length of the head itself, in bytes.
    pub(crate) length: usize,
}

impl Head {
    /// `None` while it is not all there.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Self>, String> {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            return if bytes.len() > MOST_HEAD { Err("the head is too long".to_owned()) } else { Ok(None) };
        };
        if end > MOST_HEAD {
            return Err("the head is too long".to_owned());
        }
        let text = std::str::from_utf8(&bytes[..end]).map_err(|_| "the head is not UTF-8".to_owned())?;
        let mut lines = text.split("\r\n");
        let start = lines.next().unwrap_or_default().to_owned();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(':').ok_or_else(|| format!("no header: {line:?}"))?;
            Ok((name.to_ascii_lowercase(), value.trim().to_owned()))
        });
        Ok(Some(Self { start, headers: headers.collect::<Result<_, String>>()?, length: end + 4 }))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The length that the head states, if it does.
    pub(crate) fn body_length(&self) -> Result<Option<usize>, String> {
        if self.header("transfer-encoding").is_some() {
            return Err("transfer encodings are not understood".to_owned());
        }
        let length = self.header("content-length").map(str::parse).transpose();
        length.map_err(|_| "no number in Content-Length".to_owned())
    }
}
