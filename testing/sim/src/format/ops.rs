//! Operations and how they end.

use leasehold_core::{self as core, op};
use serde::{Deserialize, Serialize};

use super::bytes::{array, from_hex, to_hex};
use super::member::{Durability, Membership, to_stamp};
use super::{Error, Within, duration, integer, names, ns, token};

names! {
    /// Kinds of passing failures.
    FaultKind = op::FaultKind {
        /// No reply in time.
        Timeout,
        /// The connection broke after something was sent.
        Reset,
        /// No connection could be made.
        Unreachable,
        /// The caller went away while the request was in flight.
        Cancelled,
        /// The store said that it failed.
        Server,
        /// The store is busy or throttles.
        Busy,
        /// The store's answer makes no sense.
        Protocol,
    }
}

names! {
    /// Kinds of lasting refusals.
    DenialKind = op::DenialKind {
        /// Not allowed to do this here.
        Permission,
        /// Not what this client can work with.
        Schema,
        /// Not written by an honest client.
        CorruptRecord,
        /// The counter has reached its end.
        TokensExhausted,
        /// No room left to write.
        StorageFull,
        /// Of another quorum, or of other settings.
        Membership,
        /// Anything else that a retry does not mend.
        Other,
    }
}

/// One operation on one resource, on behalf of one lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockOp {
    /// For whom.
    pub lock: u64,
    /// On what.
    pub resource: String,
    /// What to do.
    pub op: Op,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Op {
    /// Write our record if nobody else's stands; mint a token.
    Acquire {
        /// The attempt.
        nonce: String,
        /// Which send of it.
        seq: u32,
        /// How long the record stands.
        record_ttl_ns: u64,
        /// The smallest token to mint.
        floor: u64,
        /// A foreign version that may be overwritten.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expect: Option<String>,
        /// Label for people; absent for an empty one.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        owner: String,
        /// Bytes for others to read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<String>,
        /// The quorum that is asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        member: Option<Membership>,
    },
    /// Push the expiry out.
    Renew {
        /// The attempt.
        nonce: String,
        /// Which send of it.
        seq: u32,
        /// How long the record stands from now on.
        record_ttl_ns: u64,
        /// In a quorum, what is known of the node.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quorum: Option<Durability>,
    },
    /// Free the resource.
    Release {
        /// The attempt.
        nonce: String,
        /// In a quorum, what is known of the node.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quorum: Option<Durability>,
    },
    /// Lift the counter.
    Raise {
        /// The attempt.
        nonce: String,
        /// The least that the counter must show.
        token: u64,
        /// The loss since which the node is in doubt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        loss: Option<String>,
    },
    /// Show what is there.
    Read {},
}

impl From<&op::LockOp> for LockOp {
    fn from(op: &op::LockOp) -> Self {
        Self { lock: op.lock.get(), resource: op.resource.as_str().to_owned(), op: Op::from(&op.op) }
    }
}

impl LockOp {
    /// The operation itself.
    ///
    /// # Errors
    /// What no operation can have.
    pub fn to_core(&self) -> Result<op::LockOp, Error> {
        Ok(op::LockOp {
            lock: core::LockId::new(integer(self.lock).within("lock")?),
            resource: core::Resource::new(&self.resource).within("resource")?,
            op: self.op.to_core().within("op")?,
        })
    }
}

impl From<&op::Op> for Op {
    fn from(op: &op::Op) -> Self {
        let nonce = |nonce: &core::Nonce| to_hex(nonce.as_bytes());
        match op {
            op::Op::Acquire(op) => Self::Acquire {
                nonce: nonce(&op.nonce),
                seq: op.seq.get(),
                record_ttl_ns: ns(op.record_ttl),
                floor: op.floor.get(),
                expect: op.expect.as_ref().map(|version| to_hex(version.as_bytes())),
                owner: op.owner.as_str().to_owned(),
                data: op.data.as_ref().map(|data| to_hex(data.as_bytes())),
                member: op.member.as_ref().map(Membership::from),
            },
            op::Op::Renew(op) => Self::Renew {
                nonce: nonce(&op.nonce),
                seq: op.seq.get(),
                record_ttl_ns: ns(op.record_ttl),
                quorum: op.quorum.map(Durability::from),
            },
            op::Op::Release(op) => Self::Release { nonce: nonce(&op.nonce), quorum: op.quorum.map(Durability::from) },
            op::Op::Raise(op) => Self::Raise {
                nonce: nonce(&op.nonce),
                token: op.token.get(),
                loss: op.loss.map(|loss| to_hex(&loss.0)),
            },
            op::Op::Read => Self::Read {},
        }
    }
}

impl Op {
    /// The operation itself.
    ///
    /// # Errors
    /// What no operation can have.
    pub fn to_core(&self) -> Result<op::Op, Error> {
        let op = match self {
            Self::Acquire { nonce, seq, record_ttl_ns, floor, expect, owner, data, member } => {
                op::Op::Acquire(Box::new(op::Acquire {
                    nonce: to_nonce(nonce)?,
                    seq: core::Seq::new(*seq),
                    record_ttl: duration(*record_ttl_ns).within("record_ttl_ns")?,
                    floor: token(*floor).within("floor")?,
                    expect: expect.as_deref().map(to_version).transpose().within("expect")?,
                    owner: core::Owner::new(owner).within("owner")?,
                    data: data.as_deref().map(to_payload).transpose().within("data")?,
                    member: member.as_ref().map(Membership::to_core).transpose().within("member")?,
                }))
            }
            Self::Renew { nonce, seq, record_ttl_ns, quorum } => op::Op::Renew(op::Renew {
                nonce: to_nonce(nonce)?,
                seq: core::Seq::new(*seq),
                record_ttl: duration(*record_ttl_ns).within("record_ttl_ns")?,
                quorum: quorum.map(Into::into),
            }),
            Self::Release { nonce, quorum } => {
                op::Op::Release(op::Release { nonce: to_nonce(nonce)?, quorum: quorum.map(Into::into) })
            }
            Self::Raise { nonce, token: least, loss } => {
                let loss = loss.as_deref().map(array).transpose().within("loss")?.map(core::member::LossId);
                op::Op::Raise(op::Raise { nonce: to_nonce(nonce)?, token: token(*least).within("token")?, loss })
            }
            Self::Read {} => op::Op::Read,
        };
        Ok(op)
    }
}

fn to_nonce(hex: &str) -> Result<core::Nonce, Error> {
    array(hex).map(core::Nonce::from_bytes).within("nonce")
}

fn to_version(hex: &str) -> Result<core::Version, Error> {
    core::Version::new(&from_hex(hex)?).ok_or_else(|| Error::new("a version has at most 256 bytes"))
}

fn to_payload(hex: &str) -> Result<core::Payload, Error> {
    Ok(core::Payload::new(&from_hex(hex)?)?)
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It happened.
    Applied(Applied),
    /// It certainly did not happen.
    NotApplied(Refusal),
    /// It may have happened.
    Unknown(Fault),
}

/// The answer to an operation that was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Applied {
    /// The record is ours.
    Acquired {
        /// The node's counter.
        counter: u64,
    },
    /// The record is ours, and the counter is to be raised before it counts.
    AcquiredInDoubt {
        /// The node's counter.
        counter: u64,
        /// The loss after which it is in doubt.
        stamp: String,
    },
    /// The expiry was pushed out.
    Renewed {},
    /// The resource is free.
    Released {},
    /// The counter is at least what was asked.
    Raised {
        /// The counter now.
        counter: u64,
    },
    /// What is there.
    Read(Seen),
}

/// Why an operation was not applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Refusal {
    /// The record that stood in the way.
    Conflict(Seen),
    /// The store asks for patience.
    Throttled(Fault),
    /// The store cannot serve now.
    Unavailable(Fault),
    /// The node does not vote yet.
    Abstains {
        /// Names the loss, where the node was asked for its vote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stamp: Option<String>,
    },
    /// Credentials are missing or have expired.
    NeedsCredentials(Fault),
    /// Trying again will not help.
    Denied(Denial),
}

/// A failure that may pass by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What kind.
    pub kind: FaultKind,
    /// What was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A refusal that will not pass by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Denial {
    /// What kind.
    pub kind: DenialKind,
    /// What was said.
    pub detail: String,
}

/// What a node shows of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// The record, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holding: Option<Holding>,
}

/// A record, as much of it as the store keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holding {
    /// Who wrote it.
    pub holder: Holder,
    /// Names this state of the record.
    pub version: String,
    /// Freed by its holder.
    pub released: bool,
    /// The node's token counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter: Option<u64>,
    /// The holder's label, which may be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The ttl written in the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_ttl_ns: Option<u64>,
    /// Time until the store frees it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_ns: Option<u64>,
    /// When the lease was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_unix_ms: Option<u64>,
    /// The holder's bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

/// Who wrote a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Holder {
    /// A leasehold client.
    Lease {
        /// Its attempt.
        nonce: String,
        /// The send that wrote last, where the store keeps it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seq: Option<u32>,
    },
    /// Another library.
    Foreign {},
}

impl From<&op::Outcome> for Outcome {
    fn from(outcome: &op::Outcome) -> Self {
        match outcome {
            op::Outcome::Applied(applied) => Self::Applied(match applied {
                op::Applied::Acquired { counter } => Applied::Acquired { counter: counter.get() },
                op::Applied::AcquiredInDoubt { counter, stamp } => {
                    Applied::AcquiredInDoubt { counter: counter.get(), stamp: stamp.to_string() }
                }
                op::Applied::Renewed => Applied::Renewed {},
                op::Applied::Released => Applied::Released {},
                op::Applied::Raised { counter } => Applied::Raised { counter: counter.get() },
                op::Applied::Read(seen) => Applied::Read(seen.into()),
            }),
            op::Outcome::NotApplied(refusal) => Self::NotApplied(match refusal {
                op::Refusal::Conflict(seen) => Refusal::Conflict(seen.into()),
                op::Refusal::Throttled(fault) => Refusal::Throttled(fault.into()),
                op::Refusal::Unavailable(fault) => Refusal::Unavailable(fault.into()),
                op::Refusal::Abstains { stamp } => Refusal::Abstains { stamp: stamp.as_ref().map(ToString::to_string) },
                op::Refusal::NeedsCredentials(fault) => Refusal::NeedsCredentials(fault.into()),
                op::Refusal::Denied(denial) => Refusal::Denied(denial.into()),
            }),
            op::Outcome::Unknown(fault) => Self::Unknown(fault.into()),
        }
    }
}

impl Outcome {
    /// The outcome itself.
    ///
    /// # Errors
    /// What no outcome can have.
    pub fn to_core(&self) -> Result<op::Outcome, Error> {
        match self {
            Self::Applied(applied) => applied.to_core().map(op::Outcome::Applied).within("applied"),
            Self::NotApplied(refusal) => refusal.to_core().map(op::Outcome::NotApplied).within("not_applied"),
            Self::Unknown(fault) => fault.to_core().map(op::Outcome::Unknown).within("unknown"),
        }
    }
}

impl Applied {
    fn to_core(&self) -> Result<op::Applied, Error> {
        Ok(match self {
            Self::Acquired { counter } => {
                op::Applied::Acquired { counter: token(*counter).within("acquired.counter")? }
            }
            Self::AcquiredInDoubt { counter, stamp } => op::Applied::AcquiredInDoubt {
                counter: token(*counter).within("acquired_in_doubt.counter")?,
                stamp: to_stamp(stamp).within("acquired_in_doubt.stamp")?,
            },
            Self::Renewed {} => op::Applied::Renewed,
            Self::Released {} => op::Applied::Released,
            Self::Raised { counter } => op::Applied::Raised { counter: token(*counter).within("raised.counter")? },
            Self::Read(seen) => op::Applied::Read(seen.to_core().within("read")?),
        })
    }
}

impl Refusal {
    fn to_core(&self) -> Result<op::Refusal, Error> {
        Ok(match self {
            Self::Conflict(seen) => op::Refusal::Conflict(seen.to_core().within("conflict")?),
            Self::Throttled(fault) => op::Refusal::Throttled(fault.to_core().within("throttled")?),
            Self::Unavailable(fault) => op::Refusal::Unavailable(fault.to_core().within("unavailable")?),
            Self::Abstains { stamp } => {
                op::Refusal::Abstains { stamp: stamp.as_deref().map(to_stamp).transpose().within("abstains.stamp")? }
            }
            Self::NeedsCredentials(fault) => {
                op::Refusal::NeedsCredentials(fault.to_core().within("needs_credentials")?)
            }
            Self::Denied(denial) => op::Refusal::Denied(denial.to_core().within("denied")?),
        })
    }
}

impl From<&op::Fault> for Fault {
    fn from(fault: &op::Fault) -> Self {
        Self { kind: fault.kind.into(), detail: fault.detail.as_deref().map(str::to_owned) }
    }
}

impl Fault {
    /// The fault itself.
    ///
    /// # Errors
    /// A detail that the core would cut.
    pub fn to_core(&self) -> Result<op::Fault, Error> {
        let Some(detail) = &self.detail else { return Ok(op::Fault::of(self.kind.into())) };
        let fault = op::Fault::new(self.kind.into(), detail);
        uncut(detail, fault.detail.as_deref().unwrap_or_default())?;
        Ok(fault)
    }
}

impl From<&op::Denial> for Denial {
    fn from(denial: &op::Denial) -> Self {
        Self { kind: denial.kind.into(), detail: denial.detail.as_ref().to_owned() }
    }
}

impl Denial {
    /// The denial itself.
    ///
    /// # Errors
    /// A detail that the core would cut.
    pub fn to_core(&self) -> Result<op::Denial, Error> {
        let denial = op::Denial::new(self.kind.into(), &self.detail);
        uncut(&self.detail, &denial.detail)?;
        Ok(denial)
    }
}

fn uncut(given: &str, kept: &str) -> Result<(), Error> {
    if given == kept { Ok(()) } else { Err(Error::new("more than 512 bytes")).within("detail") }
}

impl From<&op::Seen> for Seen {
    fn from(seen: &op::Seen) -> Self {
        Self { holding: seen.holding.as_deref().map(Holding::from) }
    }
}

impl Seen {
    /// What is seen itself.
    ///
    /// # Errors
    /// What no record can have.
    pub fn to_core(&self) -> Result<op::Seen, Error> {
        let holding = self.holding.as_ref().map(Holding::to_core).transpose().within("holding")?;
        Ok(op::Seen { holding: holding.map(Box::new) })
    }
}

impl From<&op::Holding> for Holding {
    fn from(holding: &op::Holding) -> Self {
        Self {
            holder: match &holding.holder {
                op::Holder::Lease { nonce, seq } => {
                    Holder::Lease { nonce: to_hex(nonce.as_bytes()), seq: seq.map(core::Seq::get) }
                }
                op::Holder::Foreign => Holder::Foreign {},
            },
            version: to_hex(holding.version.as_bytes()),
            released: holding.released,
            counter: holding.counter.map(core::Token::get),
            owner: holding.owner.as_ref().map(|owner| owner.as_str().to_owned()),
            record_ttl_ns: holding.record_ttl.map(ns),
            left_ns: holding.left.map(ns),
            since_unix_ms: holding.since_unix_ms,
            data: holding.data.as_ref().map(|data| to_hex(data.as_bytes())),
        }
    }
}

impl Holding {
    /// The record itself.
    ///
    /// # Errors
    /// What no record can have.
    pub fn to_core(&self) -> Result<op::Holding, Error> {
        Ok(op::Holding {
            holder: match &self.holder {
                Holder::Lease { nonce, seq } => {
                    op::Holder::Lease { nonce: to_nonce(nonce).within("holder.lease")?, seq: seq.map(core::Seq::new) }
                }
                Holder::Foreign {} => op::Holder::Foreign,
            },
            version: to_version(&self.version).within("version")?,
            released: self.released,
            counter: self.counter.map(token).transpose().within("counter")?,
            owner: self.owner.as_deref().map(core::Owner::new).transpose().within("owner")?,
            record_ttl: self.record_ttl_ns.map(duration).transpose().within("record_ttl_ns")?,
            left: self.left_ns.map(duration).transpose().within("left_ns")?,
            since_unix_ms: self.since_unix_ms.map(integer).transpose().within("since_unix_ms")?,
            data: self.data.as_deref().map(to_payload).transpose().within("data")?,
        })
    }
}
