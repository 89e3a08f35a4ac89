//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.

use super::*;
use crate::face::*;

impl Write for Birth {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.name(match self {
            Self::Yes => "yes",
            Self::No => "no",
        })
    }
}

impl Fields for Membership {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("quorum", self.quorum.write(to)),
            ("max-ttl-ms", self.max_ttl_ms.write(to)),
            ("durability", self.durability.write(to)),
            ("fresh", self.fresh.write(to)),
            ("waited-out", self.waited_out.write(to)),
            ("birth", self.birth.write(to)),
            ("retention-ms", self.retention_ms.write(to)),
        ]
    }
}

impl Write for Membership {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.record("membership", self.fields(to))
    }
}

impl Fields for Acquire {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("nonce", self.nonce.write(to)),
            ("seq", self.seq.write(to)),
            ("record-ttl-ms", self.record_ttl_ms.write(to)),
            ("floor", self.floor.write(to)),
            ("expect", self.expect.write(to)),
            ("owner", self.owner.write(to)),
            ("data", self.data.write(to)),
            ("member", self.member.write(to)),
            ("unless-done", self.unless_done.write(to)),
        ]
    }
}

impl Fields for Renew {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("nonce", self.nonce.write(to)),
            ("seq", self.seq.write(to)),
            ("record-ttl-ms", self.record_ttl_ms.write(to)),
            ("quorum", self.quorum.write(to)),
        ]
    }
}

impl Fields for Release {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("nonce", self.nonce.write(to)),
            ("quorum", self.quorum.write(to)),
        ]
    }
}

impl Fields for Finish {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("nonce", self.nonce.write(to)),
            ("token", self.token.write(to)),
            ("counter", self.counter.write(to)),
            ("keep-ms", self.keep_ms.write(to)),
            ("owner", self.owner.write(to)),
            ("about", self.about.write(to)),
            ("quorum", self.quorum.write(to)),
        ]
    }
}

impl Fields for Revoke {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("nonce", self.nonce.write(to)),
        ]
    }
}

impl Fields for Raise {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("nonce", self.nonce.write(to)),
            ("token", self.token.write(to)),
            ("loss", self.loss.write(to)),
        ]
    }
}

impl Write for Op {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        match self {
            Self::Acquire(payload) => to.case("op", "acquire", payload.fields(to)),
            Self::Renew(payload) => to.case("op", "renew", payload.fields(to)),
            Self::Release(payload) => to.case("op", "release", payload.fields(to)),
            Self::Finish(payload) => to.case("op", "finish", payload.fields(to)),
            Self::Revoke(payload) => to.case("op", "revoke", payload.fields(to)),
            Self::Raise(payload) => to.case("op", "raise", payload.fields(to)),
            Self::Read => to.case("op", "read", Vec::new()),
        }
    }
}

impl Fields for LockOp {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("lock", self.lock.write(to)),
            ("resource", self.resource.write(to)),
            ("op", self.op.write(to)),
        ]
    }
}

impl Write for LockOp {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.record("lock-op", self.fields(to))
    }
}

impl Read for NodeCounter {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["counter"])?;
        Ok(Self {
            counter: field(from, "counter")?,
        })
    }
}

impl Fields for NodeCounter {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("counter", self.counter.write(to)),
        ]
    }
}

impl Read for DoubtfulCounter {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["counter", "stamp"])?;
        Ok(Self {
            counter: field(from, "counter")?,
            stamp: field(from, "stamp")?,
        })
    }
}

impl Fields for DoubtfulCounter {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("counter", self.counter.write(to)),
            ("stamp", self.stamp.write(to)),
        ]
    }
}

impl Read for LostMemory {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["stamp"])?;
        Ok(Self {
            stamp: field(from, "stamp")?,
        })
    }
}

impl Fields for LostMemory {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("stamp", self.stamp.write(to)),
        ]
    }
}

impl Read for FaultKind {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        Ok(match from.name(&["timeout", "reset", "unreachable", "cancelled", "server", "busy", "protocol"])? {
            0 => Self::Timeout,
            1 => Self::Reset,
            2 => Self::Unreachable,
            3 => Self::Cancelled,
            4 => Self::Server,
            5 => Self::Busy,
            _ => Self::Protocol,
        })
    }
}

impl Write for FaultKind {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.name(match self {
            Self::Timeout => "timeout",
            Self::Reset => "reset",
            Self::Unreachable => "unreachable",
            Self::Cancelled => "cancelled",
            Self::Server => "server",
            Self::Busy => "busy",
            Self::Protocol => "protocol",
        })
    }
}

impl Read for Fault {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["kind", "detail"])?;
        Ok(Self {
            kind: field(from, "kind")?,
            detail: field(from, "detail")?,
        })
    }
}

impl Fields for Fault {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("kind", self.kind.write(to)),
            ("detail", self.detail.write(to)),
        ]
    }
}

impl Write for Fault {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.record("fault", self.fields(to))
    }
}

impl Read for DenialKind {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        Ok(match from.name(&["permission", "schema", "corrupt-record", "tokens-exhausted", "storage-full", "membership", "other"])? {
            0 => Self::Permission,
            1 => Self::Schema,
            2 => Self::CorruptRecord,
            3 => Self::TokensExhausted,
            4 => Self::StorageFull,
            5 => Self::Membership,
            _ => Self::Other,
        })
    }
}

impl Write for DenialKind {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.name(match self {
            Self::Permission => "permission",
            Self::Schema => "schema",
            Self::CorruptRecord => "corrupt-record",
            Self::TokensExhausted => "tokens-exhausted",
            Self::StorageFull => "storage-full",
            Self::Membership => "membership",
            Self::Other => "other",
        })
    }
}

impl Read for Denial {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["kind", "detail"])?;
        Ok(Self {
            kind: field(from, "kind")?,
            detail: field(from, "detail")?,
        })
    }
}

impl Fields for Denial {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("kind", self.kind.write(to)),
            ("detail", self.detail.write(to)),
        ]
    }
}

impl Read for Completion {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["token", "owner", "at-unix-ms", "left-ms", "about", "unsettled"])?;
        Ok(Self {
            token: field(from, "token")?,
            owner: field(from, "owner")?,
            at_unix_ms: field(from, "at-unix-ms")?,
            left_ms: field(from, "left-ms")?,
            about: field(from, "about")?,
            unsettled: field(from, "unsettled")?,
        })
    }
}

impl Fields for Completion {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("token", self.token.write(to)),
            ("owner", self.owner.write(to)),
            ("at-unix-ms", self.at_unix_ms.write(to)),
            ("left-ms", self.left_ms.write(to)),
            ("about", self.about.write(to)),
            ("unsettled", self.unsettled.write(to)),
        ]
    }
}

impl Write for Completion {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.record("completion", self.fields(to))
    }
}

impl Read for LeaseHolder {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["nonce", "seq"])?;
        Ok(Self {
            nonce: field(from, "nonce")?,
            seq: field(from, "seq")?,
        })
    }
}

impl Fields for LeaseHolder {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("nonce", self.nonce.write(to)),
            ("seq", self.seq.write(to)),
        ]
    }
}

impl Write for LeaseHolder {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.record("lease-holder", self.fields(to))
    }
}

impl Read for Holding {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["holder", "version", "released", "counter", "owner", "record-ttl-ms", "left-ms", "since-unix-ms", "data"])?;
        Ok(Self {
            holder: field(from, "holder")?,
            version: field(from, "version")?,
            released: field(from, "released")?,
            counter: field(from, "counter")?,
            owner: field(from, "owner")?,
            record_ttl_ms: field(from, "record-ttl-ms")?,
            left_ms: field(from, "left-ms")?,
            since_unix_ms: field(from, "since-unix-ms")?,
            data: field(from, "data")?,
        })
    }
}

impl Fields for Holding {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("holder", self.holder.write(to)),
            ("version", self.version.write(to)),
            ("released", self.released.write(to)),
            ("counter", self.counter.write(to)),
            ("owner", self.owner.write(to)),
            ("record-ttl-ms", self.record_ttl_ms.write(to)),
            ("left-ms", self.left_ms.write(to)),
            ("since-unix-ms", self.since_unix_ms.write(to)),
            ("data", self.data.write(to)),
        ]
    }
}

impl Write for Holding {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.record("holding", self.fields(to))
    }
}

impl Read for Seen {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["holding", "done"])?;
        Ok(Self {
            holding: field(from, "holding")?,
            done: field(from, "done")?,
        })
    }
}

impl Fields for Seen {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("holding", self.holding.write(to)),
            ("done", self.done.write(to)),
        ]
    }
}

impl Write for Seen {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.record("seen", self.fields(to))
    }
}

impl Read for Applied {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        let case = from.case("applied", &["acquired", "acquired-in-doubt", "renewed", "released", "finished", "revoked", "raised", "read"])?;
        Ok(match case {
            0 => Self::Acquired(Read::read(from)?),
            1 => Self::AcquiredInDoubt(Read::read(from)?),
            2 => { from.only(&[])?; Self::Renewed }
            3 => { from.only(&[])?; Self::Released }
            4 => { from.only(&[])?; Self::Finished }
            5 => { from.only(&[])?; Self::Revoked }
            6 => Self::Raised(Read::read(from)?),
            _ => Self::Read(Read::read(from)?),
        })
    }
}

impl Write for Applied {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        match self {
            Self::Acquired(payload) => to.case("applied", "acquired", payload.fields(to)),
            Self::AcquiredInDoubt(payload) => to.case("applied", "acquired-in-doubt", payload.fields(to)),
            Self::Renewed => to.case("applied", "renewed", Vec::new()),
            Self::Released => to.case("applied", "released", Vec::new()),
            Self::Finished => to.case("applied", "finished", Vec::new()),
            Self::Revoked => to.case("applied", "revoked", Vec::new()),
            Self::Raised(payload) => to.case("applied", "raised", payload.fields(to)),
            Self::Read(payload) => to.case("applied", "read", payload.fields(to)),
        }
    }
}

impl Read for AppliedOutcome {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["applied"])?;
        Ok(Self {
            applied: field(from, "applied")?,
        })
    }
}

impl Fields for AppliedOutcome {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("applied", self.applied.write(to)),
        ]
    }
}

impl Read for Refusal {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        let case = from.case("refusal", &["conflict", "done", "throttled", "unavailable", "abstains", "needs-credentials", "denied"])?;
        Ok(match case {
            0 => Self::Conflict(Read::read(from)?),
            1 => Self::Done(Read::read(from)?),
            2 => Self::Throttled(Read::read(from)?),
            3 => Self::Unavailable(Read::read(from)?),
            4 => Self::Abstains(Read::read(from)?),
            5 => Self::NeedsCredentials(Read::read(from)?),
            _ => Self::Denied(Read::read(from)?),
        })
    }
}

impl Write for Refusal {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        match self {
            Self::Conflict(payload) => to.case("refusal", "conflict", payload.fields(to)),
            Self::Done(payload) => to.case("refusal", "done", payload.fields(to)),
            Self::Throttled(payload) => to.case("refusal", "throttled", payload.fields(to)),
            Self::Unavailable(payload) => to.case("refusal", "unavailable", payload.fields(to)),
            Self::Abstains(payload) => to.case("refusal", "abstains", payload.fields(to)),
            Self::NeedsCredentials(payload) => to.case("refusal", "needs-credentials", payload.fields(to)),
            Self::Denied(payload) => to.case("refusal", "denied", payload.fields(to)),
        }
    }
}

impl Read for NotAppliedOutcome {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["refusal"])?;
        Ok(Self {
            refusal: field(from, "refusal")?,
        })
    }
}

impl Fields for NotAppliedOutcome {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("refusal", self.refusal.write(to)),
        ]
    }
}

impl Read for Outcome {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        let case = from.case("outcome", &["applied", "not-applied", "unknown"])?;
        Ok(match case {
            0 => Self::Applied(Read::read(from)?),
            1 => Self::NotApplied(Read::read(from)?),
            _ => Self::Unknown(Read::read(from)?),
        })
    }
}

impl Write for Outcome {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        match self {
            Self::Applied(payload) => to.case("outcome", "applied", payload.fields(to)),
            Self::NotApplied(payload) => to.case("outcome", "not-applied", payload.fields(to)),
            Self::Unknown(payload) => to.case("outcome", "unknown", payload.fields(to)),
        }
    }
}
