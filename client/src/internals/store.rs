//! Stores in memory that are reached as real ones are, and check how they are used.

use std::collections::HashSet;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use leasehold_core::op::{Applied, Fault, FaultKind, LockOp, Op, Outcome, Seen, TransportFault};
use leasehold_core::{Config, LockId, Monotonic, NodeConfig, NodeId, RequestId, Resource, Transmit};

use crate::client::{Backend, Client};
use leasehold_wire::listing::{Page, Which};

use crate::admin::doctor::Finding;
use crate::driver::Driver;
use crate::error::Error;
use crate::host::fork;
use crate::host::sync::mpsc::{Sender, channel};
use crate::host::sync::{Arc, Mutex, thread};
use crate::host::time::Time;
use crate::transport::{Answer, Answering, Done, Network, NodeRecord, Pool, Transport, UnderLock, Watcher};
use crate::url::StoreUrl;
use crate::url::place::Place;
use leasehold_scheduler::clock::Standstill;
use leasehold_scheduler::sync::switch;
use leasehold_scheduler::{one_in, world};

/// The thread that performs requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Any thread, at once, as for memory.
    AtOnce,
    /// The blocking caller, or a thread of the client's, as for a file.
    Disk,
    /// The blocking caller, or a server at the other end of a socket, which performs one after the other.
    Network,
}

/// A store for the clients of one run.
pub struct Store {
    memory: Arc<dyn Transport>,
    reach: Backing,
    /// One of so many requests is performed and gets no answer.
    loses_one_of: Option<u32>,
    unsent: Arc<Mutex<Option<Monotonic>>>,
}

impl Store {
    /// An empty one.
    pub fn new(reach: Backing) -> Self {
        let memory = place().open().expect("invariant: memory opens");
        Self { memory, reach, loses_one_of: None, unsent: Arc::default() }
    }

    /// Loses some answers.
    #[must_use]
    pub fn losing_one_of(self, requests: u32) -> Self {
        Self { loses_one_of: Some(requests), ..self }
    }

    /// Connects a client.
    pub fn client(&self) -> Client {
        let connection = Arc::new(Connection {
            memory: Arc::clone(&self.memory),
            reach: self.reach,
            loses_one_of: self.loses_one_of,
            generation: fork::generation(),
            asked: std::sync::Mutex::default(),
            socket: Arc::new(Socket {
                memory: Arc::clone(&self.memory),
                loses_one_of: self.loses_one_of,
                server: Mutex::new(None),
                unsent: Arc::clone(&self.unsent),
            }),
        });
        let transports: Vec<Arc<dyn Transport>> = vec![connection];
        let config = Config::new(vec![place().config()]).expect("invariant: one node is allowed");
        let driver = Driver::start(config, transports, Time::System).expect("invariant: threads can be started");
        Client::new(driver, leasehold_core::Owner::new("a test").ok(), Backend::Store(Box::new(place().into())))
    }

    /// The deadline of a request whose future was dropped before it was sent, if there was one.
    pub fn unsent_deadline(&self) -> Option<Monotonic> {
        *self.unsent.lock()
    }

    /// Tells if the store has a record of that name.
    pub fn is_held(&self, name: &str) -> bool {
        let resource = Resource::new(name).expect("invariant: tests use valid names");
        let ops = vec![LockOp { lock: LockId::new(0), resource, op: Op::Read }];
        let request =
            Transmit { id: RequestId::new(0), node: NodeId::new(0), deadline: Monotonic::FAR, ops: ops.into() };
        match self.memory.perform(&request, Pool::Caller).expect("invariant: memory answers").as_slice() {
            [Outcome::Applied(Applied::Read(seen))] => is_held(seen),
            other => panic!("a read was answered with {other:?}"),
        }
    }
}

fn is_held(seen: &Seen) -> bool {
    seen.clone().held().is_some()
}

fn place() -> Arc<dyn Place> {
    "memory:".parse::<StoreUrl>().and_then(|url| url.place()).expect("invariant: a url of ours")
}

/// One client's connection to a store.
struct Connection {
    memory: Arc<dyn Transport>,
    reach: Backing,
    loses_one_of: Option<u32>,
    generation: u64,
    /// Not of the scheduler: it is part of the test, and no thread waits for it.
    asked: std::sync::Mutex<HashSet<RequestId>>,
    socket: Arc<Socket>,
}

impl Connection {
    /// Performs a request, unless its deadline has passed: a later one might leave a record for its whole ttl.
    fn serve(memory: &Arc<dyn Transport>, loses_one_of: Option<u32>, request: &Transmit) -> Answer {
        switch();
        let landing = Standstill::new();
        if Time::System.monotonic() >= request.deadline {
            return Err(TransportFault::Unknown(Fault::of(FaultKind::Timeout)));
        }
        let answer = memory.perform(request, Pool::Caller);
        drop(landing);
        switch();
        match loses_one_of {
            Some(requests) if one_in(requests) => Err(TransportFault::Unknown(Fault::of(FaultKind::Timeout))),
            Some(_) | None => answer,
        }
    }

    fn note(&self, request: &Transmit) {
        if self.generation != fork::generation() {
            world::fault("a forked child asks its parent's store");
        }
        if !self.asked.lock().expect("no other thread panicked").insert(request.id) {
            world::fault("a request is performed twice");
        }
    }
}

impl UnderLock for Connection {
    fn watch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        self.memory.watch(resource, watcher);
    }

    fn unwatch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        self.memory.unwatch(resource, watcher);
    }
}

impl Transport for Connection {
    fn config(&self) -> NodeConfig {
        self.memory.config()
    }

    fn is_instant(&self) -> bool {
        self.reach == Backing::AtOnce
    }

    fn perform(&self, request: &Transmit, _pool: Pool) -> Answer {
        self.note(request);
        Self::serve(&self.memory, self.loses_one_of, request)
    }

    fn network(&self) -> Option<&dyn Network> {
        (self.reach == Backing::Network).then_some(self)
    }

    fn diagnose(&self) -> Vec<Finding> {
        Vec::new()
    }

    fn look(&self) -> Result<NodeRecord, Error> {
        self.memory.look()
    }

    fn mark(&self, found: &[u8], marker: Option<&leasehold_core::member::Marker>) -> Result<bool, Error> {
        self.memory.mark(found, marker)
    }

    fn list(&self, prefix: &str, after: &[u8], which: Which) -> Result<Page, Error> {
        self.memory.list(prefix, after, which)
    }
}

impl Network for Connection {
    fn call_on_caller(&self, request: Transmit) -> Result<Answering, Transmit> {
        self.note(&request);
        Ok(Box::pin(Call { socket: Arc::clone(&self.socket), unsent: Some(request), desk: Arc::default() }))
    }

    fn call_in_background(&self, request: Transmit, done: Done) {
        self.note(&request);
        self.socket.send(request, done);
    }
}

/// A socket whose server performs one request after the other.
struct Socket {
    memory: Arc<dyn Transport>,
    loses_one_of: Option<u32>,
    server: Mutex<Option<Sender<(Transmit, Done)>>>,
    unsent: Arc<Mutex<Option<Monotonic>>>,
}

impl Socket {
    fn send(&self, request: Transmit, done: Done) {
        let mut server = self.server.lock();
        let server = server.get_or_insert_with(|| {
            let (sender, receiver) = channel::<(Transmit, Done)>();
            let (memory, loses_one_of) = (Arc::clone(&self.memory), self.loses_one_of);
            let serve = move || {
                receiver
                    .into_iter()
                    .for_each(|(request, done)| done(Connection::serve(&memory, loses_one_of, &request)));
            };
            thread::Builder::new().name("server".to_owned()).spawn(serve).expect("invariant: threads can be started");
            sender
        });
        server.send((request, done)).expect("invariant: it serves for as long as the sender is there");
    }
}

/// A request that is sent by the first poll of its future, or by a later one, as if it had to connect first.
struct Call {
    socket: Arc<Socket>,
    unsent: Option<Transmit>,
    desk: Arc<Mutex<Desk>>,
}

#[derive(Default)]
struct Desk {
    answer: Option<Answer>,
    waker: Option<Waker>,
}

impl Future for Call {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer> {
        if let Some(request) = self.unsent.take() {
            if one_in(4) {
                self.unsent = Some(request);
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let desk = Arc::clone(&self.desk);
            let answered = move |answer| {
                let mut desk = desk.lock();
                desk.answer = Some(answer);
                let waker = desk.waker.take();
                drop(desk);
                waker.into_iter().for_each(Waker::wake);
            };
            self.socket.send(request, Box::new(answered));
        }
        let mut desk = self.desk.lock();
        match desk.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                desk.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(request) = &self.unsent {
            *self.socket.unsent.lock() = Some(request.deadline);
        }
    }
}
