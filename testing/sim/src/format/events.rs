//! What comes out of a client.

use leasehold_core as core;
use serde::{Deserialize, Serialize};

use super::{At, Denial, Error, Fault, Holding, LockOp, Within, duration, each, integer, ns, token};

/// What a client tells its host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Output {
    /// Perform this request.
    Transmit(Transmit),
    /// Something happened to a lock.
    Event(Event),
    /// Ask for wake-ups.
    Subscribe {
        /// Where.
        node: u16,
        /// For what.
        resource: String,
    },
    /// Wake-ups are no longer needed.
    Unsubscribe {
        /// Where.
        node: u16,
        /// For what.
        resource: String,
    },
    /// The node wants fresh credentials.
    NeedCredentials {
        /// Where.
        node: u16,
    },
    /// A command was not accepted.
    Rejected {
        /// Whose.
        lock: u64,
        /// Why.
        error: CommandError,
    },
    /// Nothing more to do. In a vector this is the step's own `wake_at_ns`.
    WakeAt {
        /// Until then.
        at_ns: At,
    },
}

/// One request to one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transmit {
    /// Correlates the response.
    pub id: u64,
    /// To whom.
    pub node: u16,
    /// When the host may stop waiting.
    pub deadline_ns: At,
    /// What to do, in order.
    pub ops: Vec<LockOp>,
}

/// What happened to a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Event {
    /// The lock is held.
    Acquired {
        /// Which.
        lock: u64,
        /// The fencing token.
        token: u64,
        /// Until when the lease is believed in.
        deadline_ns: At,
        /// The record itself told.
        recovered: bool,
    },
    /// Somebody else holds the lock.
    Contended {
        /// Which.
        lock: u64,
        /// Who.
        holding: Holding,
    },
    /// The acquisition ended without the lock.
    Failed {
        /// Which.
        lock: u64,
        /// Why.
        failure: Failure,
    },
    /// The deadline moved out.
    Renewed {
        /// Which.
        lock: u64,
        /// The new deadline.
        deadline_ns: At,
        /// Validity that was left before.
        left_ns: u64,
        /// The record itself told.
        recovered: bool,
    },
    /// A renewal did not succeed.
    RenewDelayed {
        /// Which.
        lock: u64,
        /// The deadline, unmoved.
        deadline_ns: At,
        /// What went wrong.
        fault: Fault,
    },
    /// The nodes vouch for less.
    Shortened {
        /// Which.
        lock: u64,
        /// The new deadline.
        deadline_ns: At,
    },
    /// Little is left.
    Expiring {
        /// Which.
        lock: u64,
        /// When the lease will be lost.
        deadline_ns: At,
    },
    /// The lease is over.
    Lost {
        /// Which.
        lock: u64,
        /// Why.
        reason: LostReason,
    },
    /// The release has ended.
    Released {
        /// Which.
        lock: u64,
        /// The store has confirmed it.
        confirmed: bool,
    },
}

/// Why an acquisition ended without the lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Failure {
    /// Held by somebody else; asked once.
    Busy {
        /// Who.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holding: Option<Holding>,
    },
    /// Held by somebody else for as long as the caller would wait.
    TimedOut {
        /// Who.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holding: Option<Holding>,
    },
    /// The store asked for patience.
    Throttled(Fault),
    /// The store could not be reached.
    Unavailable(Fault),
    /// The store's memory is in doubt.
    Abstains {
        /// For how long still.
        left_ns: u64,
    },
    /// The store refuses.
    Refused(Denial),
    /// Released before it was granted.
    Cancelled {},
}

/// Why a lease is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LostReason {
    /// No renewal was confirmed in time.
    Expired {},
    /// `max_hold` has ended the renewals.
    MaxHold {},
    /// The record is somebody else's.
    TakenOver {
        /// Whose.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Holding>,
    },
    /// Released by somebody else.
    Released {},
    /// The record is gone.
    RecordGone {},
}

/// Why a command was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CommandError {
    /// The lock id is in use.
    DuplicateLock {},
    /// No such lock is alive.
    UnknownLock {},
    /// As many locks as allowed are alive.
    TooManyLocks {
        /// The limit.
        limit: u64,
    },
    /// The record would stand for longer than the quorum allows.
    AboveMaxTtl {
        /// What was asked for: ttl and lock_delay.
        record_ttl_ns: u64,
        /// The most.
        max_ttl_ns: u64,
    },
    /// The client was closed.
    Closed {},
}

impl From<&core::Output> for Output {
    fn from(output: &core::Output) -> Self {
        match output {
            core::Output::Transmit(transmit) => Self::Transmit(transmit.into()),
            core::Output::Event(event) => Self::Event(event.into()),
            core::Output::Subscribe { node, resource } => {
                Self::Subscribe { node: node.get(), resource: resource.as_str().to_owned() }
            }
            core::Output::Unsubscribe { node, resource } => {
                Self::Unsubscribe { node: node.get(), resource: resource.as_str().to_owned() }
            }
            core::Output::NeedCredentials { node } => Self::NeedCredentials { node: node.get() },
            core::Output::Rejected { lock, error } => Self::Rejected { lock: lock.get(), error: (*error).into() },
            core::Output::WakeAt(at) => Self::WakeAt { at_ns: (*at).into() },
        }
    }
}

impl Output {
    /// The output itself.
    ///
    /// # Errors
    /// What no client can say.
    pub fn to_core(&self) -> Result<core::Output, Error> {
        Ok(match self {
            Self::Transmit(transmit) => core::Output::Transmit(transmit.to_core().within("transmit")?),
            Self::Event(event) => core::Output::Event(event.to_core().within("event")?),
            Self::Subscribe { node, resource } => core::Output::Subscribe {
                node: core::NodeId::new(*node),
                resource: core::Resource::new(resource).within("subscribe.resource")?,
            },
            Self::Unsubscribe { node, resource } => core::Output::Unsubscribe {
                node: core::NodeId::new(*node),
                resource: core::Resource::new(resource).within("unsubscribe.resource")?,
            },
            Self::NeedCredentials { node } => core::Output::NeedCredentials { node: core::NodeId::new(*node) },
            Self::Rejected { lock, error } => core::Output::Rejected {
                lock: to_lock(*lock).within("rejected")?,
                error: error.to_core().within("rejected.error")?,
            },
            Self::WakeAt { at_ns } => core::Output::WakeAt(at_ns.to_core().within("wake_at.at_ns")?),
        })
    }
}

impl From<&core::Transmit> for Transmit {
    fn from(transmit: &core::Transmit) -> Self {
        Self {
            id: transmit.id.get(),
            node: transmit.node.get(),
            deadline_ns: transmit.deadline.into(),
            ops: transmit.ops.iter().map(LockOp::from).collect(),
        }
    }
}

impl Transmit {
    /// The request itself.
    ///
    /// # Errors
    /// What no request can have.
    pub fn to_core(&self) -> Result<core::Transmit, Error> {
        Ok(core::Transmit {
            id: core::RequestId::new(integer(self.id).within("id")?),
            node: core::NodeId::new(self.node),
            deadline: self.deadline_ns.to_core().within("deadline_ns")?,
            ops: each(&self.ops, LockOp::to_core).within("ops")?,
        })
    }
}

impl From<&core::Event> for Event {
    fn from(event: &core::Event) -> Self {
        let lock = event.lock().get();
        match event {
            core::Event::Acquired { lock: _, token, deadline, recovered } => {
                Self::Acquired { lock, token: token.get(), deadline_ns: (*deadline).into(), recovered: *recovered }
            }
            core::Event::Contended { lock: _, holding } => Self::Contended { lock, holding: holding.as_ref().into() },
            core::Event::Failed { lock: _, failure } => Self::Failed { lock, failure: failure.into() },
            core::Event::Renewed { lock: _, deadline, left, recovered } => {
                Self::Renewed { lock, deadline_ns: (*deadline).into(), left_ns: ns(*left), recovered: *recovered }
            }
            core::Event::RenewDelayed { lock: _, deadline, fault } => {
                Self::RenewDelayed { lock, deadline_ns: (*deadline).into(), fault: fault.into() }
            }
            core::Event::Shortened { lock: _, deadline } => Self::Shortened { lock, deadline_ns: (*deadline).into() },
            core::Event::Expiring { lock: _, deadline } => Self::Expiring { lock, deadline_ns: (*deadline).into() },
            core::Event::Lost { lock: _, reason } => Self::Lost { lock, reason: reason.into() },
            core::Event::Released { lock: _, confirmed } => Self::Released { lock, confirmed: *confirmed },
        }
    }
}

impl Event {
    /// The event itself.
    ///
    /// # Errors
    /// What no event can have.
    pub fn to_core(&self) -> Result<core::Event, Error> {
        Ok(match self {
            Self::Acquired { lock, token: granted, deadline_ns, recovered } => core::Event::Acquired {
                lock: to_lock(*lock)?,
                token: token(*granted).within("acquired.token")?,
                deadline: deadline_ns.to_core().within("acquired.deadline_ns")?,
                recovered: *recovered,
            },
            Self::Contended { lock, holding } => core::Event::Contended {
                lock: to_lock(*lock)?,
                holding: Box::new(holding.to_core().within("contended.holding")?),
            },
            Self::Failed { lock, failure } => {
                core::Event::Failed { lock: to_lock(*lock)?, failure: failure.to_core().within("failed.failure")? }
            }
            Self::Renewed { lock, deadline_ns, left_ns, recovered } => core::Event::Renewed {
                lock: to_lock(*lock)?,
                deadline: deadline_ns.to_core().within("renewed.deadline_ns")?,
                left: duration(*left_ns).within("renewed.left_ns")?,
                recovered: *recovered,
            },
            Self::RenewDelayed { lock, deadline_ns, fault } => core::Event::RenewDelayed {
                lock: to_lock(*lock)?,
                deadline: deadline_ns.to_core().within("renew_delayed.deadline_ns")?,
                fault: fault.to_core().within("renew_delayed.fault")?,
            },
            Self::Shortened { lock, deadline_ns } => core::Event::Shortened {
                lock: to_lock(*lock)?,
                deadline: deadline_ns.to_core().within("shortened.deadline_ns")?,
            },
            Self::Expiring { lock, deadline_ns } => core::Event::Expiring {
                lock: to_lock(*lock)?,
                deadline: deadline_ns.to_core().within("expiring.deadline_ns")?,
            },
            Self::Lost { lock, reason } => {
                core::Event::Lost { lock: to_lock(*lock)?, reason: reason.to_core().within("lost.reason")? }
            }
            Self::Released { lock, confirmed } => {
                core::Event::Released { lock: to_lock(*lock)?, confirmed: *confirmed }
            }
        })
    }
}

pub(super) fn to_lock(lock: u64) -> Result<core::LockId, Error> {
    integer(lock).map(core::LockId::new).within("lock")
}

impl From<&core::Failure> for Failure {
    fn from(failure: &core::Failure) -> Self {
        match failure {
            core::Failure::Busy { holding } => Self::Busy { holding: holding.as_deref().map(Holding::from) },
            core::Failure::TimedOut { holding } => Self::TimedOut { holding: holding.as_deref().map(Holding::from) },
            core::Failure::Throttled(fault) => Self::Throttled(fault.into()),
            core::Failure::Unavailable(fault) => Self::Unavailable(fault.into()),
            core::Failure::Abstains { left } => Self::Abstains { left_ns: ns(*left) },
            core::Failure::Refused(denial) => Self::Refused(denial.into()),
            core::Failure::Cancelled => Self::Cancelled {},
        }
    }
}

impl Failure {
    /// The failure itself.
    ///
    /// # Errors
    /// What no failure can have.
    pub fn to_core(&self) -> Result<core::Failure, Error> {
        Ok(match self {
            Self::Busy { holding } => core::Failure::Busy { holding: boxed(holding.as_ref()).within("busy.holding")? },
            Self::TimedOut { holding } => {
                core::Failure::TimedOut { holding: boxed(holding.as_ref()).within("timed_out.holding")? }
            }
            Self::Throttled(fault) => core::Failure::Throttled(fault.to_core().within("throttled")?),
            Self::Unavailable(fault) => core::Failure::Unavailable(fault.to_core().within("unavailable")?),
            Self::Abstains { left_ns } => {
                core::Failure::Abstains { left: duration(*left_ns).within("abstains.left_ns")? }
            }
            Self::Refused(denial) => core::Failure::Refused(denial.to_core().within("refused")?),
            Self::Cancelled {} => core::Failure::Cancelled,
        })
    }
}

fn boxed(holding: Option<&Holding>) -> Result<Option<Box<core::op::Holding>>, Error> {
    holding.map(|holding| holding.to_core().map(Box::new)).transpose()
}

impl From<&core::LostReason> for LostReason {
    fn from(reason: &core::LostReason) -> Self {
        match reason {
            core::LostReason::Expired => Self::Expired {},
            core::LostReason::MaxHold => Self::MaxHold {},
            core::LostReason::TakenOver { by } => Self::TakenOver { by: by.as_deref().map(Holding::from) },
            core::LostReason::Released => Self::Released {},
            core::LostReason::RecordGone => Self::RecordGone {},
        }
    }
}

impl LostReason {
    /// The reason itself.
    ///
    /// # Errors
    /// What no reason can have.
    pub fn to_core(&self) -> Result<core::LostReason, Error> {
        Ok(match self {
            Self::Expired {} => core::LostReason::Expired,
            Self::MaxHold {} => core::LostReason::MaxHold,
            Self::TakenOver { by } => core::LostReason::TakenOver { by: boxed(by.as_ref()).within("taken_over.by")? },
            Self::Released {} => core::LostReason::Released,
            Self::RecordGone {} => core::LostReason::RecordGone,
        })
    }
}

impl From<core::Error> for CommandError {
    fn from(error: core::Error) -> Self {
        match error {
            core::Error::DuplicateLock => Self::DuplicateLock {},
            core::Error::UnknownLock => Self::UnknownLock {},
            core::Error::TooManyLocks { limit } => Self::TooManyLocks { limit: limit as u64 },
            core::Error::AboveMaxTtl { record_ttl, max_ttl } => {
                Self::AboveMaxTtl { record_ttl_ns: ns(record_ttl), max_ttl_ns: ns(max_ttl) }
            }
            core::Error::Closed => Self::Closed {},
        }
    }
}

impl CommandError {
    fn to_core(self) -> Result<core::Error, Error> {
        Ok(match self {
            Self::DuplicateLock {} => core::Error::DuplicateLock,
            Self::UnknownLock {} => core::Error::UnknownLock,
            Self::TooManyLocks { limit } => {
                let limit = integer(limit).within("too_many_locks.limit")?;
                core::Error::TooManyLocks { limit: usize::try_from(limit).map_err(Error::new)? }
            }
            Self::AboveMaxTtl { record_ttl_ns, max_ttl_ns } => core::Error::AboveMaxTtl {
                record_ttl: duration(record_ttl_ns).within("above_max_ttl.record_ttl_ns")?,
                max_ttl: duration(max_ttl_ns).within("above_max_ttl.max_ttl_ns")?,
            },
            Self::Closed {} => core::Error::Closed,
        })
    }
}
