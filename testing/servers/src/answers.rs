//! An HTTP server in this process whose answers a test makes up.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::http::{Head, MOST_BODY};
use crate::{PATIENCE, ports};

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method, such as `GET`.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body as it came.
    pub body: Vec<u8>,
}

impl Request {
    /// The first value of a header, whose name is given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The server's reaction to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Answers, with this status and body.
    Answer {
        /// The status, such as 200.
        status: u16,
        /// Names and values, besides `Content-Length`.
        headers: Vec<(String, String)>,
        /// The body.
        body: Vec<u8>,
    },
    /// Answers with the head of a whole answer and half of this body, and ends the connection.
    Half(Vec<u8>),
    /// Never answers, and keeps the connection.
    Hang,
    /// Ends the connection without an answer.
    Close,
}

impl Reply {
    /// An answer without headers of its own.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::Answer { status, headers: Vec::new(), body: body.into() }
    }
}

type Answering = dyn Fn(&Request) -> Reply + Send + Sync;

/// A server on a free port of 127.0.0.1. Dropped, it is gone, with its connections.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    answering: Box<Answering>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_over: bool,
    asked: Vec<Request>,
    connections: usize,
    open: HashMap<usize, TcpStream>,
}

impl Server {
    /// Starts a server that answers as `answering` says; a panic in there ends the connection.
    ///
    /// # Panics
    ///
    /// When the system gives no socket.
    #[track_caller]
    pub fn start(answering: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let (port, listener) = ports::listener();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let shared = Arc::new(Shared { answering: Box::new(answering), state: Mutex::default() });
        let acceptor = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || accept(&listener, &shared))
        };
        Self { shared, address, acceptor: Some(acceptor) }
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The url for clients: `http://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far, in the order of arrival.
    pub fn asked(&self) -> Vec<Request> {
        self.shared.state().asked.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        // The acceptor checks for the end when a connection arrives.
        let woken = TcpStream::connect(self.address);
        if let (Some(acceptor), Ok(_)) = (self.acceptor.take(), woken) {
            let _ = acceptor.join();
        }
        for stream in self.shared.state().open.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        let Ok(also) = stream.try_clone() else { continue };
        let mut state = shared.state();
        if state.is_over {
            return;
        }
        let number = state.connections;
        state.connections += 1;
        state.open.insert(number, also);
        drop(state);
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            let serving = std::panic::AssertUnwindSafe(|| serve(&shared, &stream));
            let _ = std::panic::catch_unwind(serving);
            shared.state().open.remove(&number);
            let _ = stream.shutdown(Shutdown::Both);
        });
    }
}

fn serve(shared: &Shared, mut stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut unread = Vec::new();
    while let Some(request) = next_request(stream, &mut unread)? {
        shared.state().asked.push(request.clone());
        match (shared.answering)(&request) {
            Reply::Answer { status, headers, body } => stream.write_all(&whole(status, &headers, &body))?,
            Reply::Half(body) => {
                let answer = whole(200, &[], &body);
                return stream.write_all(&answer[..answer.len() - body.len().div_ceil(2)]);
            }
            Reply::Hang => {
                while stream.read(&mut [0; 1024]).is_ok_and(|read| read > 0) {}
                return Ok(());
            }
            Reply::Close => return Ok(()),
        }
    }
    Ok(())
}

fn whole(status: u16, headers: &[(String, String)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} Whatever\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut message = (head + "\r\n").into_bytes();
    message.extend_from_slice(body);
    message
}

/// `None` when the client has no more.
fn next_request(mut stream: &TcpStream, unread: &mut Vec<u8>) -> io::Result<Option<Request>> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut chunk = [0; 16 << 10];
    loop {
        if let Some(head) = Head::parse(unread).map_err(invalid)? {
            let length = head.body_length().map_err(invalid)?.unwrap_or(0);
            if length > MOST_BODY {
                return Err(invalid(format!("a body of {length} bytes")));
            }
            if unread.len() >= head.length + length {
                let body = unread[head.length..head.length + length].to_vec();
                unread.drain(..head.length + length);
                let mut words = head.start.split(' ').map(str::to_owned);
                let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                return Ok(Some(Request { method, path, headers: head.headers, body }));
            }
        }
        match stream.read(&mut chunk)? {
            0 => return Ok(None),
            read => unread.extend_from_slice(&chunk[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Connection;

    #[test]
    fn answers_and_requests_belong_to_the_test() {
        let server = Server::start(|request| match request.path.as_str() {
            "/half" => Reply::Half(b"12345".to_vec()),
            "/gone" => Reply::Close,
            path => Reply::new(418, format!("{} {path} {}", request.method, request.text())),
        });
        let mut connection = Connection::open(server.address()).unwrap();
        let response = connection.request("PUT", "/a?b", &[("X-C", "d")], "body").unwrap();
        assert_eq!((response.status, response.text().as_str()), (418, "PUT /a?b body"));
        assert!(connection.request("GET", "/half", &[], "").is_err());
        assert!(Connection::open(server.address()).unwrap().request("GET", "/gone", &[], "").is_err());
        let asked = server.asked();
        assert_eq!((asked.len(), asked[0].header("x-c"), asked[1].method.as_str()), (3, Some("d"), "GET"));
        let address = server.address();
        drop(server);
        assert!(TcpStream::connect(address).is_err());
    }
}
