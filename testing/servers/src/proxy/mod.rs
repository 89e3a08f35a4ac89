//! A TCP proxy that injects network faults at exactly the request that a test names.
//!
//! It parses as much as it must: RESP commands and HTTP requests are taken whole, so that a fault hits one request and
//! not some bytes around it. Other protocols (TLS) pass in the chunks in which they arrived.

mod frames;
mod link;
mod wire;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use crate::wait_until;
use link::Link;
use wire::Wire;

type Predicate = dyn Fn(&[u8]) -> bool + Send + Sync;

/// The requests that a fault hits: those that match, from the n-th on, a number of times. By default the first one,
/// once.
#[derive(Clone)]
pub struct Request {
    matches: Arc<Predicate>,
    first: usize,
    times: usize,
}

/// How an answer gets lost, or the request with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The connection is reset after the server has done the work.
    ResetAfterwards,
    /// The server does the work, and silence follows.
    Silence,
    /// The connection is reset before the server sees the request.
    ResetBefore,
}

impl Loss {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ResetAfterwards, Self::Silence, Self::ResetBefore];
}

impl Request {
    /// Requests with these bytes in them: a command's name, a script's digest, a key. Case counts.
    ///
    /// ```
    /// # use leasehold_servers::proxy::Request;
    /// let third = Request::containing("EVALSHA").nth(3);
    /// let all = Request::containing("some-key").always();
    /// ```
    pub fn containing(bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref().to_vec();
        assert!(!bytes.is_empty(), "every request contains nothing; say `Request::any()`");
        Self::matching(move |request| request.windows(bytes.len()).any(|window| window == bytes))
    }

    /// Requests for whose bytes `predicate` holds.
    pub fn matching(predicate: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        Self { matches: Arc::new(predicate), first: 1, times: 1 }
    }

    /// Every request.
    pub fn any() -> Self {
        Self::matching(|_| true)
    }

    /// Lets the first `n - 1` that match pass.
    #[must_use]
    pub fn nth(mut self, n: usize) -> Self {
        assert!(n > 0, "the first one is `nth(1)`");
        self.first = n;
        self
    }

    /// Hits this many, one after the other.
    #[must_use]
    pub fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// Hits every one.
    #[must_use]
    pub fn always(self) -> Self {
        self.times(usize::MAX)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("first", &self.first).field("times", &self.times).finish_non_exhaustive()
    }
}

/// The effect of a fault on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    ResetBefore,
    ResetAfter,
    LoseReplies,
    Repeat,
    Hold,
}

/// A fault that was set up, with the count of its hits.
#[derive(Clone, Debug)]
pub struct Fault {
    request: Request,
    effect: Effect,
    seen: Arc<AtomicUsize>,
    hits: Arc<AtomicUsize>,
    /// The requests that are held back.
    held: Arc<Mutex<Vec<Vec<u8>>>>,
    target: SocketAddr,
}

impl Fault {
    /// The number of requests that it has hit. It counts before the client can notice.
    pub fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }

    /// Waits until it has hit `n` requests.
    ///
    /// # Panics
    ///
    /// When that takes more than a minute.
    #[track_caller]
    pub fn wait_for_hits(&self, n: usize) {
        wait_until("a fault strikes", || self.hits() >= n);
    }

    /// Has the server do what was [held back](Proxy::hold), and returns when it has answered.
    ///
    /// # Panics
    ///
    /// When the server does not answer.
    #[track_caller]
    pub fn deliver(&self) {
        let held = std::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner));
        assert!(!held.is_empty(), "nothing is held back");
        for request in held {
            link::perform(self.target, &request).unwrap_or_else(|error| panic!("it cannot be delivered: {error}"));
        }
    }

    fn hold(&self, request: Vec<u8>) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        self.strike();
    }

    fn strike(&self) {
        self.hits.fetch_add(1, Ordering::SeqCst);
    }

    /// True if a request that has arrived must be hit.
    fn wants(&self, request: &[u8]) -> bool {
        if !(self.request.matches)(request) {
            return false;
        }
        let number = self.seen.fetch_add(1, Ordering::SeqCst) + 1;
        number >= self.request.first && number - self.request.first < self.request.times
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Pass,
    Refuse,
    BlackHole,
}

#[derive(Debug, Default)]
struct Script {
    mode: Mode,
    delay: Option<Duration>,
    split: Option<usize>,
    faults: Vec<Fault>,
    /// Connections with smaller numbers are silent.
    silent_below: usize,
    /// The open connections. Dropping the end of a pair that stands here cuts the connection.
    links: HashMap<usize, Option<Wire>>,
}

#[derive(Debug)]
struct Shared {
    target: SocketAddr,
    script: Mutex<Script>,
    connections: AtomicUsize,
    requests: AtomicUsize,
    swallowed: AtomicUsize,
}

impl Shared {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first fault that wants this request. The others do not count it.
    fn fault_for(&self, request: &[u8]) -> Option<Fault> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.script().faults.iter().find(|fault| fault.wants(request)).cloned()
    }
}

/// A proxy on a port of its own. Dropped, it resets every connection and stops listening.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
    /// Dropped to have the acceptor end.
    wake: Option<Wire>,
}

impl Proxy {
    /// Starts a proxy in front of `target`. At first everything passes.
    ///
    /// # Panics
    ///
    /// When the system gives no socket.
    #[track_caller]
    pub fn to(target: SocketAddr) -> Self {
        let (port, listener) = crate::ports::listener();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (wake, woken) = wire::pair().unwrap_or_else(|error| panic!("no proxy: {error}"));
        let shared = Arc::new(Shared {
            target,
            script: Mutex::default(),
            connections: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            swallowed: AtomicUsize::new(0),
        });
        let acceptor = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || accept(&listener, &woken, &shared))
        };
        Self { shared, address, acceptor: Some(acceptor), wake: Some(wake) }
    }

    /// The address of the proxy.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Forgets every fault, delay and split: what comes from now on passes. Connections that have lost something stay
    /// silent, for what would come next on them makes no sense to the client.
    pub fn pass(&self) {
        let mut script = self.shared.script();
        script.mode = Mode::Pass;
        script.delay = None;
        script.split = None;
        script.faults.clear();
    }

    /// Resets new connections at once. Open ones go on; see [`Self::cut_all`].
    pub fn refuse(&self) {
        self.shared.script().mode = Mode::Refuse;
    }

    /// Swallows everything, on open connections and on new ones: what a client sends is read and goes nowhere.
    pub fn black_hole(&self) {
        self.shared.script().mode = Mode::BlackHole;
    }

    /// Has the connections that are open now fall silent for good, as behind a router that has forgotten them: what comes on
    /// them goes nowhere. New ones pass.
    pub fn silence_open(&self) {
        let mut script = self.shared.script();
        script.silent_below = self.connections();
    }

    /// Holds every answer back for `delay`.
    pub fn delay(&self, delay: Duration) {
        self.shared.script().delay = Some(delay);
    }

    /// Passes answers on in pieces of `bytes`, each sent by itself and 1 ms after the one before.
    pub fn split(&self, bytes: usize) {
        assert!(bytes > 0, "pieces of nothing");
        self.shared.script().split = Some(bytes);
    }

    /// Resets every open connection; returns when that is done.
    ///
    /// # Panics
    ///
    /// When that takes more than a minute.
    #[track_caller]
    pub fn cut_all(&self) {
        let cut: Vec<usize> = {
            let mut script = self.shared.script();
            for end in script.links.values_mut() {
                *end = None;
            }
            script.links.keys().copied().collect()
        };
        wait_until("connections are reset", || {
            let script = self.shared.script();
            !cut.iter().any(|link| script.links.contains_key(link))
        });
    }

    /// Resets the client's connection instead of forwarding the request: it certainly was not performed.
    pub fn reset_before_forwarding(&self, request: Request) -> Fault {
        self.add(request, Effect::ResetBefore)
    }

    /// Forwards the request, waits for its answer, and resets the client's connection instead of passing it on: the
    /// request was performed, and the client cannot know. Answers to earlier requests are passed on.
    pub fn reset_after_forwarding(&self, request: Request) -> Fault {
        self.add(request, Effect::ResetAfter)
    }

    /// Forwards the request and swallows its answer, and every later one on that connection, which stays open.
    pub fn lose_replies(&self, request: Request) -> Fault {
        self.add(request, Effect::LoseReplies)
    }

    /// Has the server do the work on a connection of its own first, and then forwards the request as if it were the only
    /// one, as some proxies do after a fault that the client does not see. The answer is that to the second.
    pub fn repeat(&self, request: Request) -> Fault {
        self.add(request, Effect::Repeat)
    }

    /// Keeps the request until [`Fault::deliver`], and what comes after it on its connection goes nowhere: the client hears nothing more
    /// there, and the request arrives late.
    pub fn hold(&self, request: Request) -> Fault {
        self.add(request, Effect::Hold)
    }

    /// Loses the answer to the request, or the request itself.
    pub fn lose(&self, loss: Loss, request: Request) -> Fault {
        match loss {
            Loss::ResetAfterwards => self.reset_after_forwarding(request),
            Loss::Silence => self.lose_replies(request),
            Loss::ResetBefore => self.reset_before_forwarding(request),
        }
    }

    /// The number of accepted connections, including refused ones.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// The number of open connections.
    pub fn open_connections(&self) -> usize {
        self.shared.script().links.len()
    }

    /// The number of requests that arrived, including those that were swallowed. In an unknown protocol, the number of
    /// chunks.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// The number of requests that arrived and went nowhere, since their connection was silent.
    pub fn swallowed(&self) -> usize {
        self.shared.swallowed.load(Ordering::SeqCst)
    }

    fn add(&self, request: Request, effect: Effect) -> Fault {
        let (seen, hits, held) = (Arc::default(), Arc::default(), Arc::default());
        let fault = Fault { request, effect, seen, hits, held, target: self.shared.target };
        self.shared.script().faults.push(fault.clone());
        fault
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        self.shared.script().links.values_mut().for_each(|end| *end = None);
    }
}

fn accept(listener: &TcpListener, woken: &Wire, shared: &Arc<Shared>) {
    loop {
        let mut fds = [PollFd::new(listener, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        if !fds[1].revents().is_empty() {
            return;
        }
        if fds[0].revents().is_empty() {
            continue;
        }
        let Ok((client, _)) = listener.accept() else { continue };
        let number = shared.connections.fetch_add(1, Ordering::SeqCst);
        let opened = wire::pair();
        let mut script = shared.script();
        let (Mode::Pass | Mode::BlackHole, Ok((end, cut))) = (script.mode, opened) else {
            link::reset(client);
            continue;
        };
        script.links.insert(number, Some(end));
        drop(script);
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            let _: io::Result<()> = Link::new(&shared, number, client, cut).and_then(Link::run);
            shared.script().links.remove(&number);
        });
    }
}
