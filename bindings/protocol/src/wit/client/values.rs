//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.

use super::*;
use crate::face::*;

impl Fields for Transmit {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("id", self.id.write(to)),
            ("node", self.node.write(to)),
            ("deadline-ns", to.nanoseconds(self.deadline_ns)),
            ("ops", self.ops.write(to)),
        ]
    }
}

impl Read for HttpHeader {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        let [name, value] = from.tuple()?;
        Ok(Self { name: Read::read(&name)?, value: Read::read(&value)? })
    }
}

impl Write for HttpHeader {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.items(vec![self.name.write(to), self.value.write(to)])
    }
}

impl Fields for HttpRequest {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("id", self.id.write(to)),
            ("node", self.node.write(to)),
            ("deadline-ns", to.nanoseconds(self.deadline_ns)),
            ("method", self.method.write(to)),
            ("url", self.url.write(to)),
            ("headers", self.headers.write(to)),
            ("body", self.body.write(to)),
        ]
    }
}

impl Fields for RedisCommands {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("id", self.id.write(to)),
            ("node", self.node.write(to)),
            ("deadline-ns", to.nanoseconds(self.deadline_ns)),
            ("commands", self.commands.write(to)),
        ]
    }
}

impl Fields for Statement {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("id", self.id.write(to)),
            ("node", self.node.write(to)),
            ("deadline-ns", to.nanoseconds(self.deadline_ns)),
            ("sql", self.sql.write(to)),
            ("params", self.params.write(to)),
        ]
    }
}

impl Read for Subscription {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["node", "resource"])?;
        Ok(Self {
            node: field(from, "node")?,
            resource: field(from, "resource")?,
        })
    }
}

impl Fields for Subscription {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("node", self.node.write(to)),
            ("resource", self.resource.write(to)),
        ]
    }
}

impl Read for NodeRef {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["node"])?;
        Ok(Self {
            node: field(from, "node")?,
        })
    }
}

impl Fields for NodeRef {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("node", self.node.write(to)),
        ]
    }
}

impl Fields for Wake {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("at-ns", self.at_ns.map_or_else(|| to.nothing(), |ns| to.nanoseconds(ns))),
        ]
    }
}

impl Fields for Acquired {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("token", self.token.write(to)),
            ("deadline-ns", to.nanoseconds(self.deadline_ns)),
            ("recovered", self.recovered.write(to)),
        ]
    }
}

impl Fields for Contended {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("holding", self.holding.write(to)),
        ]
    }
}

impl Fields for Renewed {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("deadline-ns", to.nanoseconds(self.deadline_ns)),
            ("left-ns", to.nanoseconds(self.left_ns)),
            ("recovered", self.recovered.write(to)),
        ]
    }
}

impl Fields for RenewDelayed {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("deadline-ns", to.nanoseconds(self.deadline_ns)),
            ("fault", self.fault.write(to)),
        ]
    }
}

impl Fields for Shortened {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("deadline-ns", to.nanoseconds(self.deadline_ns)),
        ]
    }
}

impl Fields for Expiring {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("deadline-ns", to.nanoseconds(self.deadline_ns)),
        ]
    }
}

impl Fields for Released {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("confirmed", self.confirmed.write(to)),
        ]
    }
}

impl Fields for Finished {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("confirmed", self.confirmed.write(to)),
            ("result-dropped", self.result_dropped.write(to)),
        ]
    }
}

impl Fields for HeldElsewhere {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("holding", self.holding.write(to)),
        ]
    }
}

impl Fields for Abstention {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("left-ms", self.left_ms.write(to)),
        ]
    }
}

impl Write for Failure {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        match self {
            Self::Busy(payload) => to.case("failure", "busy", payload.fields(to)),
            Self::TimedOut(payload) => to.case("failure", "timed-out", payload.fields(to)),
            Self::Throttled(payload) => to.case("failure", "throttled", payload.fields(to)),
            Self::Unavailable(payload) => to.case("failure", "unavailable", payload.fields(to)),
            Self::Abstains(payload) => to.case("failure", "abstains", payload.fields(to)),
            Self::Refused(payload) => to.case("failure", "refused", payload.fields(to)),
            Self::Done(payload) => to.case("failure", "done", payload.fields(to)),
            Self::CompletionsInDoubt => to.case("failure", "completions-in-doubt", Vec::new()),
            Self::Cancelled => to.case("failure", "cancelled", Vec::new()),
            Self::Other(payload) => to.case("failure", "other", payload.fields(to)),
        }
    }
}

impl Fields for Failed {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("failure", self.failure.write(to)),
        ]
    }
}

impl Fields for TakenOver {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("by", self.by.write(to)),
        ]
    }
}

impl Write for LostReason {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        match self {
            Self::Expired => to.case("lost-reason", "expired", Vec::new()),
            Self::MaxHold => to.case("lost-reason", "max-hold", Vec::new()),
            Self::TakenOver(payload) => to.case("lost-reason", "taken-over", payload.fields(to)),
            Self::Released => to.case("lost-reason", "released", Vec::new()),
            Self::RecordGone => to.case("lost-reason", "record-gone", Vec::new()),
            Self::Revoked => to.case("lost-reason", "revoked", Vec::new()),
            Self::Other(payload) => to.case("lost-reason", "other", payload.fields(to)),
        }
    }
}

impl Fields for Lost {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("reason", self.reason.write(to)),
        ]
    }
}

impl Write for Event {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        match self {
            Self::Acquired(payload) => to.case("event", "acquired", payload.fields(to)),
            Self::Contended(payload) => to.case("event", "contended", payload.fields(to)),
            Self::Failed(payload) => to.case("event", "failed", payload.fields(to)),
            Self::Renewed(payload) => to.case("event", "renewed", payload.fields(to)),
            Self::RenewDelayed(payload) => to.case("event", "renew-delayed", payload.fields(to)),
            Self::Shortened(payload) => to.case("event", "shortened", payload.fields(to)),
            Self::Expiring(payload) => to.case("event", "expiring", payload.fields(to)),
            Self::Lost(payload) => to.case("event", "lost", payload.fields(to)),
            Self::Released(payload) => to.case("event", "released", payload.fields(to)),
            Self::Finished(payload) => to.case("event", "finished", payload.fields(to)),
        }
    }
}

impl Fields for LockEvent {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("lock", self.lock.write(to)),
            ("event", self.event.write(to)),
        ]
    }
}

impl Read for Outcomes {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["outcomes"])?;
        Ok(Self {
            outcomes: field(from, "outcomes")?,
        })
    }
}

impl Fields for Outcomes {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("outcomes", self.outcomes.write(to)),
        ]
    }
}

impl Write for Outcomes {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.record("outcomes", self.fields(to))
    }
}

impl Read for HttpResponse {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["status", "headers", "body"])?;
        Ok(Self {
            status: field(from, "status")?,
            headers: field(from, "headers")?,
            body: field(from, "body")?,
        })
    }
}

impl Read for RedisReplies {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["replies"])?;
        Ok(Self {
            replies: field(from, "replies")?,
        })
    }
}

impl Read for Row {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["columns"])?;
        Ok(Self {
            columns: field(from, "columns")?,
        })
    }
}

impl Read for Rows {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["rows"])?;
        Ok(Self {
            rows: field(from, "rows")?,
        })
    }
}

impl Read for RefusalTime {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        Ok(match from.name(&["at-login", "in-session", "at-the-end"])? {
            0 => Self::AtLogin,
            1 => Self::InSession,
            _ => Self::AtTheEnd,
        })
    }
}

impl Read for ServerError {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["code", "message", "when"])?;
        Ok(Self {
            code: field(from, "code")?,
            message: field(from, "message")?,
            when: field(from, "when")?,
        })
    }
}

impl Read for Response {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        let case = from.case("response", &["outcomes", "http-response", "redis-replies", "rows", "server-error", "not-sent", "unknown"])?;
        Ok(match case {
            0 => Self::Outcomes(Read::read(from)?),
            1 => Self::HttpResponse(Read::read(from)?),
            2 => Self::RedisReplies(Read::read(from)?),
            3 => Self::Rows(Read::read(from)?),
            4 => Self::ServerError(Read::read(from)?),
            5 => Self::NotSent(Read::read(from)?),
            _ => Self::Unknown(Read::read(from)?),
        })
    }
}

impl Fields for TooManyLocks {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("limit", self.limit.write(to)),
        ]
    }
}

impl Fields for AboveMaxTtl {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("record-ttl-ms", self.record_ttl_ms.write(to)),
            ("max-ttl-ms", self.max_ttl_ms.write(to)),
        ]
    }
}

impl Fields for AboveMaxKeep {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("keep-ms", self.keep_ms.write(to)),
            ("max-keep-ms", self.max_keep_ms.write(to)),
        ]
    }
}

impl Fields for InvalidArgument {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("error", self.error.write(to)),
        ]
    }
}

impl Write for Error {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        match self {
            Self::DuplicateLock => to.case("error", "duplicate-lock", Vec::new()),
            Self::UnknownLock => to.case("error", "unknown-lock", Vec::new()),
            Self::TooManyLocks(payload) => to.case("error", "too-many-locks", payload.fields(to)),
            Self::AboveMaxTtl(payload) => to.case("error", "above-max-ttl", payload.fields(to)),
            Self::AboveMaxKeep(payload) => to.case("error", "above-max-keep", payload.fields(to)),
            Self::NotARun => to.case("error", "not-a-run", Vec::new()),
            Self::Closed => to.case("error", "closed", Vec::new()),
            Self::Invalid(payload) => to.case("error", "invalid", payload.fields(to)),
            Self::Other(payload) => to.case("error", "other", payload.fields(to)),
        }
    }
}

impl Fields for RejectedCommand {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("lock", self.lock.write(to)),
            ("error", self.error.write(to)),
        ]
    }
}

impl Write for Output {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        match self {
            Self::Transmit(payload) => to.case("output", "transmit", payload.fields(to)),
            Self::HttpRequest(payload) => to.case("output", "http-request", payload.fields(to)),
            Self::RedisCommands(payload) => to.case("output", "redis-commands", payload.fields(to)),
            Self::Statement(payload) => to.case("output", "statement", payload.fields(to)),
            Self::Event(payload) => to.case("output", "event", payload.fields(to)),
            Self::Subscribe(payload) => to.case("output", "subscribe", payload.fields(to)),
            Self::Unsubscribe(payload) => to.case("output", "unsubscribe", payload.fields(to)),
            Self::NeedCredentials(payload) => to.case("output", "need-credentials", payload.fields(to)),
            Self::Rejected(payload) => to.case("output", "rejected", payload.fields(to)),
            Self::WakeAt(payload) => to.case("output", "wake-at", payload.fields(to)),
        }
    }
}

impl Read for AcquireCommand {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["lock", "resource", "options"])?;
        Ok(Self {
            lock: field(from, "lock")?,
            resource: field(from, "resource")?,
            options: field(from, "options")?,
        })
    }
}

impl Read for FinishCommand {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["lock", "run-result"])?;
        Ok(Self {
            lock: field(from, "lock")?,
            run_result: field(from, "run-result")?,
        })
    }
}

impl Read for LockRef {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["lock"])?;
        Ok(Self {
            lock: field(from, "lock")?,
        })
    }
}

impl Read for RequestResponse {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["id", "response"])?;
        Ok(Self {
            id: field(from, "id")?,
            response: field(from, "response")?,
        })
    }
}

impl Read for ResourceRef {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["resource"])?;
        Ok(Self {
            resource: field(from, "resource")?,
        })
    }
}

impl Read for NewCredentials {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["node", "credentials"])?;
        Ok(Self {
            node: field(from, "node")?,
            credentials: field(from, "credentials")?,
        })
    }
}

impl Read for NodeVote {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["node", "loss"])?;
        Ok(Self {
            node: field(from, "node")?,
            loss: field(from, "loss")?,
        })
    }
}

impl Read for NewSeed {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["seed"])?;
        Ok(Self {
            seed: field(from, "seed")?,
        })
    }
}

impl Read for Input {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        let case = from.case("input", &["acquire", "release", "finish", "declare-lost", "response", "notified", "subscribed", "credentials-renewed", "set-credentials", "node-votes", "reseed", "close"])?;
        Ok(match case {
            0 => Self::Acquire(Read::read(from)?),
            1 => Self::Release(Read::read(from)?),
            2 => Self::Finish(Read::read(from)?),
            3 => Self::DeclareLost(Read::read(from)?),
            4 => Self::Response(Read::read(from)?),
            5 => Self::Notified(Read::read(from)?),
            6 => Self::Subscribed(Read::read(from)?),
            7 => Self::CredentialsRenewed(Read::read(from)?),
            8 => Self::SetCredentials(Read::read(from)?),
            9 => Self::NodeVotes(Read::read(from)?),
            10 => Self::Reseed(Read::read(from)?),
            _ => { from.only(&[])?; Self::Close }
        })
    }
}

impl Fields for Stepped {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("outputs", self.outputs.write(to)),
            ("wake-at-ns", self.wake_at_ns.map_or_else(|| to.nothing(), |ns| to.nanoseconds(ns))),
        ]
    }
}

impl Write for Stepped {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.record("stepped", self.fields(to))
    }
}

impl Fields for Stats {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("locks", self.locks.write(to)),
            ("held", self.held.write(to)),
            ("in-flight", self.in_flight.write(to)),
            ("orphans", self.orphans.write(to)),
            ("observations", self.observations.write(to)),
            ("undrained", self.undrained.write(to)),
            ("ignored-responses", self.ignored_responses.write(to)),
            ("timed-out-requests", self.timed_out_requests.write(to)),
        ]
    }
}

impl Write for Stats {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.record("stats", self.fields(to))
    }
}

impl Fields for Revocation {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("is-revoked", self.is_revoked.write(to)),
            ("troubles", self.troubles.write(to)),
        ]
    }
}

impl Write for Revocation {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.record("revocation", self.fields(to))
    }
}
