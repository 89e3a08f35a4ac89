//! The store of a test clock: a store in memory whose requests meet the faults that a test wants.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

use std::fmt;
use std::time::Duration;

use leasehold_core::member::Marker;
use leasehold_core::op::{Fault, FaultKind, LockOp, Op, Outcome, Refusal, Release, TransportFault};
use leasehold_core::{LockId, NodeConfig, NodeId, Nonce, OneOrMany, RequestId, Resource, Transmit};
use leasehold_wire::cas::{Answer as ItemAnswer, Ask};
use leasehold_wire::listing::{Page, Which};

use super::items::{Asking, ItemStore, Store};
use super::memory::{Memory, Opened, config};
use super::{Answer, Answering, Done, Network, NodeRecord, Pool, Queue, Transport, UnderLock};
use crate::admin::doctor::Finding;
use crate::error::{Error, ErrorKind};
use crate::exec;
use crate::host::sync::{Arc, Mutex};
use crate::host::time::Time;
use crate::url::HERE;
use crate::url::place::{Expiry, Facts, Place, Site};

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Serve,
    /// It does not reach the store.
    Refuse,
    /// The store serves it, and the connection breaks before the answer is there.
    LoseReply,
    /// The store serves it, and the answer takes this long.
    Late(Duration),
}

/// The faults that requests are about to meet.
#[derive(Debug, Default)]
struct Faults {
    is_down: bool,
    lost_replies: usize,
    delay: Duration,
}

/// The store, which all clients of the clock share.
pub(crate) struct TestStore {
    memory: Arc<Memory>,
    time: Time,
    faults: Mutex<Faults>,
}

impl TestStore {
    pub(crate) fn new(time: &Time) -> Arc<Self> {
        let memory = Arc::new(Memory::new(time.clone()));
        Arc::new(Self { memory, time: time.clone(), faults: Mutex::default() })
    }

    pub(crate) fn set_down(&self, is_down: bool) {
        self.faults.lock().is_down = is_down;
    }

    /// The answers to so many further requests do not arrive.
    pub(crate) fn lose_replies(&self, replies: usize) {
        self.faults.lock().lost_replies += replies;
    }

    pub(crate) fn set_delay(&self, delay: Duration) {
        self.faults.lock().delay = delay;
    }

    /// Frees the record that was written by an attempt, whatever requests meet.
    pub(crate) fn free(self: &Arc<Self>, resource: &Resource, nonce: Nonce) {
        let op = Op::Release(Release { nonce, quorum: None });
        let op = LockOp { lock: LockId::new(u64::MAX), resource: resource.clone(), op };
        let (id, node, deadline) = (RequestId::new(u64::MAX), NodeId::new(0), self.time.monotonic());
        let _ = self.opened().perform(&Transmit { id, node, deadline, ops: OneOrMany::one(op) }, Pool::Background);
    }

    /// The items as they are without faults.
    pub(crate) fn items(&self) -> Arc<dyn ItemStore> {
        Arc::new(self.opened())
    }

    fn opened(&self) -> Opened {
        Opened::of(Arc::clone(&self.memory))
    }

    /// The fate of the next request.
    fn fate(&self) -> Fate {
        let mut faults = self.faults.lock();
        if faults.is_down {
            return Fate::Refuse;
        }
        if faults.lost_replies > 0 {
            faults.lost_replies -= 1;
            return Fate::LoseReply;
        }
        if faults.delay.is_zero() { Fate::Serve } else { Fate::Late(faults.delay) }
    }

    fn is_slow(&self) -> bool {
        !self.faults.lock().delay.is_zero()
    }

    fn is_down(&self) -> bool {
        self.faults.lock().is_down
    }
}

fn down() -> Fault {
    Fault::new(FaultKind::Unreachable, "the test has taken the store down")
}

fn lost() -> Fault {
    Fault::new(FaultKind::Reset, "the test has lost the answer")
}

/// The store as one client has it.
struct Connection {
    store: Arc<TestStore>,
    opened: Arc<Opened>,
}

impl Connection {
    /// # Errors
    /// The store is down.
    fn check(&self) -> Result<(), Error> {
        if self.store.is_down() { Err(Error::new(ErrorKind::StoreUnavailable, down().to_string())) } else { Ok(()) }
    }

    /// Serves a request, whose answer takes as long as its fate says.
    fn serve(&self, request: &Transmit) -> impl Future<Output = Answer> + Send + 'static + use<> {
        let fate = self.store.fate();
        let answer = match fate {
            Fate::Refuse => Err(TransportFault::NotSent(down())),
            Fate::Serve | Fate::LoseReply | Fate::Late(_) => self.opened.perform(request, Pool::Caller),
        };
        let (time, patience) = (self.store.time.clone(), request.deadline.since(self.store.time.monotonic()));
        async move {
            match fate {
                Fate::Serve | Fate::Refuse => answer,
                Fate::LoseReply => Err(TransportFault::Unknown(lost())),
                Fate::Late(delay) if delay < patience => {
                    time.sleep(delay).await.map_or_else(|_| unanswered(), |()| answer)
                }
                Fate::Late(_) => {
                    let _ = time.sleep(patience).await;
                    unanswered()
                }
            }
        }
    }
}

fn unanswered() -> Answer {
    Err(TransportFault::Unknown(Fault::new(FaultKind::Timeout, "the test lets the answer come too late")))
}

impl UnderLock for Connection {
    fn behind(&self) -> Option<&dyn Transport> {
        Some(&*self.opened)
    }
}

impl Transport for Connection {
    fn config(&self) -> NodeConfig {
        config()
    }

    fn is_instant(&self) -> bool {
        !self.store.is_slow()
    }

    fn network(&self) -> Option<&dyn Network> {
        if self.store.is_slow() { Some(self) } else { None }
    }

    fn perform(&self, request: &Transmit, _pool: Pool) -> Answer {
        exec::block_on(self.serve(request))
    }

    fn queue(&self, resource: &Resource) -> Option<Queue> {
        self.opened.queue(resource).filter(|_| !self.store.is_down())
    }

    fn diagnose(&self) -> Vec<Finding> {
        self.opened.diagnose()
    }

    fn look(&self) -> Result<NodeRecord, Error> {
        self.check()?;
        self.opened.look()
    }

    fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Result<bool, Error> {
        self.check()?;
        self.opened.mark(found, marker)
    }

    fn list(&self, prefix: &str, after: &[u8], which: Which) -> Result<Page, Error> {
        self.check()?;
        self.opened.list(prefix, after, which)
    }
}

impl Network for Connection {
    fn call_on_caller(&self, request: Transmit) -> Result<Answering, Transmit> {
        Ok(Box::pin(self.serve(&request)))
    }

    fn call_in_background(&self, request: Transmit, done: Done) {
        let answering = self.serve(&request);
        let call = move |_| async move { done(answering.await) };
        // A task of a world needs no thread, and can always be started.
        let _ = self.store.time.start("leasehold-store", call);
    }
}

impl ItemStore for Connection {
    fn ask<'a>(&'a self, name: &'a Resource, ask: Ask<'a>) -> Asking<'a> {
        Box::pin(async move {
            match self.store.fate() {
                Fate::Serve => self.opened.ask(name, ask).await,
                Fate::Refuse => ItemAnswer::Failed(Outcome::NotApplied(Refusal::Unavailable(down()))),
                Fate::LoseReply => {
                    self.opened.ask(name, ask).await;
                    ItemAnswer::Failed(Outcome::Unknown(lost()))
                }
                Fate::Late(delay) => {
                    let answer = self.opened.ask(name, ask).await;
                    let _ = self.store.time.sleep(delay).await;
                    answer
                }
            }
        })
    }
}

/// The store before it is opened. No url leads to it: it belongs to its clock.
pub(crate) struct TestPlace(pub(crate) Arc<TestStore>);

impl Place for TestPlace {
    fn facts(&self) -> Facts {
        Facts { site: Site::Process, expiry: Expiry::ByStore }
    }

    fn config(&self) -> NodeConfig {
        config()
    }

    fn store(&self) -> Result<Arc<dyn Store>, Error> {
        Ok(Arc::new(Connection { store: Arc::clone(&self.0), opened: Arc::new(self.0.opened()) }))
    }

    fn machine(&self) -> Option<String> {
        Some(HERE.to_owned())
    }
}

impl PartialEq for TestPlace {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Display for TestPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("test:")
    }
}

impl fmt::Debug for TestPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TestPlace")
    }
}
