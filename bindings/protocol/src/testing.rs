//! A store without a server, for tests of programs that use locks: the reference store, under any clock that its caller
//! likes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use leasehold_core::op::{Fault, FaultKind, LockOp, Op, Outcome, Revoke, TransportFault};
use leasehold_core::store::{BootId, Record, StoreNow, apply, seen};
use leasehold_core::{Monotonic, Now, Output as Core, Resource};
use leasehold_wire::client::{Output, Response};

use crate::face::{Sink, Source, Write, argument};
use crate::ops::{completion, holding};
use crate::outputs::{output, wake};
use crate::problem::Problem;
use crate::settings::{fresh, now, refused};
use crate::wit::client::{Client, Stepped};

/// More than any client hands out between two instants.
const MOST_OUTPUTS: usize = 100_000;

/// The state of the connection to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connectivity {
    /// They do.
    Up,
    /// No connection can be made.
    Down,
}

/// A store for clients that hand out operations.
pub struct Store {
    records: RefCell<BTreeMap<Resource, Record>>,
    reach: Cell<Connectivity>,
}

impl Default for Store {
    fn default() -> Self {
        Self { records: RefCell::default(), reach: Cell::new(Connectivity::Up) }
    }
}

impl Store {
    /// Does for a client all that is due, and answers as its `step` does; operations are performed here and now.
    ///
    /// # Errors
    /// Too few fresh bytes, and clocks that are none.
    pub fn drive<S: Source, W: Sink>(
        &self,
        client: &Client,
        [fresh_, at]: [&S; 2],
        to: &W,
    ) -> Result<W::Value, Problem> {
        let entropy = fresh(&argument::<Vec<u8>, _>(fresh_, "fresh")?)?;
        let at = now(argument(at, "now")?);
        let mut client = client.0.0.borrow_mut();
        client.handle_timeout(&entropy, at);
        let mut outputs = Vec::new();
        for _ in 0..MOST_OUTPUTS {
            match client.poll_output(at) {
                Output::Core(Core::Transmit(transmit)) => {
                    client.handle_response(transmit.id, self.serve(&transmit.ops, at), at);
                }
                Output::Core(Core::WakeAt(wake_at)) => {
                    return Ok(Stepped { outputs, wake_at_ns: wake(wake_at) }.write(to));
                }
                other @ (Output::Core(_) | Output::HttpRequest(_) | Output::RedisCommands(_)) => {
                    outputs.push(output(other))
                }
            }
        }
        Err(Problem::Broken("a client never comes to rest".to_owned()))
    }

    fn serve(&self, ops: &[LockOp], at: Now) -> Response {
        match self.reach.get() {
            Connectivity::Up => Response::Outcomes(ops.iter().map(|op| self.apply(op, at)).collect()),
            Connectivity::Down => {
                let fault = Fault::new(FaultKind::Unreachable, "the test has taken the store down");
                Response::Fault(TransportFault::NotSent(fault))
            }
        }
    }

    fn apply(&self, op: &LockOp, at: Now) -> Outcome {
        let mut records = self.records.borrow_mut();
        let decision = apply(records.get(&op.resource), &op.op, &store_now(at));
        if let Some(record) = decision.write {
            records.insert(op.resource.clone(), record);
        }
        decision.outcome
    }

    /// From now on requests reach the store, or do not.
    pub fn set_reach(&self, reach: Connectivity) {
        self.reach.set(reach);
    }

    /// The state of the connection to the store.
    pub fn reach(&self) -> Connectivity {
        self.reach.get()
    }

    /// Frees a resource, no matter which client holds it. Its token counter stays.
    ///
    /// # Errors
    /// A name that no lock can have.
    pub fn free<S: Source>(&self, resource: &S) -> Result<(), Problem> {
        if let Some(record) = self.records.borrow_mut().get_mut(&named(resource)?) {
            record.lease = None;
        }
        Ok(())
    }

    /// Marks the lease of a resource's holder as revoked.
    ///
    /// # Errors
    /// A name that no lock can have, and clocks that are none.
    pub fn revoke<S: Source>(&self, [resource, at]: [&S; 2]) -> Result<(), Problem> {
        let (resource, at) = (named(resource)?, now(argument(at, "now")?));
        let mut records = self.records.borrow_mut();
        let nonce = records.get(&resource).and_then(|record| record.lease.as_ref()).map(|lease| lease.nonce);
        let revoke = nonce.map(|nonce| apply(records.get(&resource), &Op::Revoke(Revoke { nonce }), &store_now(at)));
        if let Some(record) = revoke.and_then(|decision| decision.write) {
            records.insert(resource, record);
        }
        Ok(())
    }

    /// The record of a resource's holder; nothing if nobody holds it.
    ///
    /// # Errors
    /// A name that no lock can have, and clocks that are none.
    pub fn holder<S: Source, W: Sink>(&self, [resource, at]: [&S; 2], to: &W) -> Result<W::Value, Problem> {
        let at = now(argument(at, "now")?);
        let seen = seen(self.records.borrow().get(&named(resource)?), &store_now(at));
        let standing = seen.holding.filter(|holding| !holding.released);
        Ok(standing.map(|record| holding(&record)).write(to))
    }

    /// The completion of finished work that stands for a resource; nothing if there is none.
    ///
    /// # Errors
    /// As [`Store::holder`].
    pub fn completion<S: Source, W: Sink>(&self, [resource, at]: [&S; 2], to: &W) -> Result<W::Value, Problem> {
        let at = now(argument(at, "now")?);
        let seen = seen(self.records.borrow().get(&named(resource)?), &store_now(at));
        Ok(seen.done.map(|done| completion(&done)).write(to))
    }

    /// Removes the completion of a resource.
    ///
    /// # Errors
    /// A name that no lock can have.
    pub fn forget<S: Source>(&self, resource: &S) -> Result<(), Problem> {
        if let Some(record) = self.records.borrow_mut().get_mut(&named(resource)?) {
            record.completion = None;
        }
        Ok(())
    }
}

fn named<S: Source>(resource: &S) -> Result<Resource, Problem> {
    Ok(Resource::new(&argument::<String, _>(resource, "resource")?).map_err(refused)?)
}

fn store_now(at: Now) -> StoreNow {
    StoreNow { boot: BootId([0; 16]), uptime: Monotonic::from_ns(at.monotonic.ns()), unix_ms: at.unix_ms }
}
