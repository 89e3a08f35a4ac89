//! A server that speaks the REST protocol of Upstash over a real Redis, and misbehaves on request.
//!
//! It is a thread of the test's own process. What it follows is the published protocol, as clients use it: `POST /`
//! with a command as a JSON array, `POST /pipeline` and `POST /multi-exec` with arrays of those, a bearer token,
//! `Upstash-Encoding: base64`. The forms that put a command into the path are not there, nor is `/subscribe`.

mod command;
mod serve;

use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::redis::{self, Credentials};

/// A way to answer one request badly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misbehave {
    /// Answers with this status and body, as JSON. The command is not performed.
    Status(u16, String),
    /// Answers 200 with a page in HTML, as a captive portal would. The command is not performed.
    Html,
    /// Answers 200 with a result that is a string of this many bytes. The command is not performed.
    Large(usize),
    /// Answers 307 with this `Location`. The command is not performed.
    Redirect(String),
    /// Performs the command, and ends the connection after half the body of its answer.
    HalfBody,
    /// Does nothing until the client ends the connection. The command is not performed.
    Hang,
    /// Ends the connection without an answer. The command is not performed.
    CloseBeforeAnswer,
    /// Performs the command, and ends the connection without an answer.
    CloseAfterApplying,
}

/// A REST server over a real Redis. Dropped, it ends every connection and stops listening.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    token: String,
    redis_port: u16,
    redis: Credentials,
    state: Mutex<State>,
    connections: AtomicUsize,
    requests: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    is_over: bool,
    /// Requests that contain these bytes are answered so, the oldest first.
    misbehaviour: VecDeque<(Vec<u8>, Misbehave)>,
    open: HashMap<usize, TcpStream>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what was planned for a request with this body.
    fn misbehaviour(&self, body: &[u8]) -> Option<Misbehave> {
        let mut state = self.state();
        let is_for = |part: &[u8]| part.is_empty() || body.windows(part.len()).any(|window| window == part);
        let at = state.misbehaviour.iter().position(|(part, _)| is_for(part))?;
        state.misbehaviour.remove(at).map(|(_, misbehave)| misbehave)
    }
}

impl Server {
    /// Starts a server over `redis`, with a token of its own.
    ///
    /// # Panics
    ///
    /// When the system gives no socket.
    #[track_caller]
    pub fn start(redis: &redis::Server) -> Self {
        Self::start_at(redis, redis.port())
    }

    /// Starts a server over `redis`, which it reaches through a [`Proxy`](crate::proxy::Proxy) on `redis_port`.
    ///
    /// # Panics
    ///
    /// When the system gives no socket.
    #[track_caller]
    pub fn start_at(redis: &redis::Server, redis_port: u16) -> Self {
        let (port, listener) = crate::ports::listener();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let shared = Arc::new(Shared {
            token: format!("hunter2-token-of-{}", address.port()),
            redis_port,
            redis: redis.credentials(),
            state: Mutex::default(),
            connections: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
        });
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

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The url for clients: `http://127.0.0.1:port`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The bearer token that it wants.
    pub fn token(&self) -> &str {
        &self.shared.token
    }

    /// Has the next request answered badly; after that, those before it in the order they were asked for.
    pub fn misbehave(&self, misbehave: Misbehave) {
        self.misbehave_on("", misbehave);
    }

    /// Has the next request with `part` in its body answered badly.
    pub fn misbehave_on(&self, part: &str, misbehave: Misbehave) {
        self.shared.state().misbehaviour.push_back((part.as_bytes().to_vec(), misbehave));
    }

    /// The number of misbehaviours that are still to come.
    pub fn misbehaviours_left(&self) -> usize {
        self.shared.state().misbehaviour.len()
    }

    /// The number of accepted connections.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// The number of requests that arrived, including refused ones.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Ends every open connection.
    pub fn cut_all(&self) {
        for stream in self.shared.state().open.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
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
        self.cut_all();
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
        let number = shared.connections.fetch_add(1, Ordering::SeqCst);
        state.open.insert(number, also);
        drop(state);
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            serve::connection(&shared, &stream);
            shared.state().open.remove(&number);
            let _ = stream.shutdown(Shutdown::Both);
        });
    }
}
