//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.

use super::*;
use crate::face::*;

impl Read for Now {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["monotonic-ns", "unix-ms"])?;
        Ok(Self {
            monotonic_ns: field(from, "monotonic-ns")?,
            unix_ms: field(from, "unix-ms")?,
        })
    }
}

impl Read for Quorum {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["id", "max-ttl"])?;
        Ok(Self {
            id: field(from, "id")?,
            max_ttl_ms: length(from, "max-ttl")?,
        })
    }
}

impl Read for Durability {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        Ok(match from.name(&["declared", "not-declared"])? {
            0 => Self::Declared,
            _ => Self::NotDeclared,
        })
    }
}

impl Write for Durability {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.name(match self {
            Self::Declared => "declared",
            Self::NotDeclared => "not-declared",
        })
    }
}

impl Read for Poll {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        Ok(match from.name(&["acquire", "read"])? {
            0 => Self::Acquire,
            _ => Self::Read,
        })
    }
}

impl Read for NodeConfig {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["poll", "watch", "batch", "durability"])?;
        Ok(Self {
            poll: field::<Option<_>, _>(from, "poll")?.unwrap_or(Poll::Acquire),
            watch: field::<Option<_>, _>(from, "watch")?.unwrap_or(false),
            batch: field(from, "batch")?,
            durability: field(from, "durability")?,
        })
    }
}

impl Read for Limits {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["locks", "orphans", "observations"])?;
        Ok(Self {
            locks: field(from, "locks")?,
            orphans: field(from, "orphans")?,
            observations: field(from, "observations")?,
        })
    }
}

impl Read for Config {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["nodes", "drift-ppm", "request-timeout", "limits", "quorum"])?;
        Ok(Self {
            nodes: field(from, "nodes")?,
            drift_ppm: field(from, "drift-ppm")?,
            request_timeout_ms: length(from, "request-timeout")?,
            limits: field::<Option<_>, _>(from, "limits")?.unwrap_or(Limits { locks: None, orphans: None, observations: None }),
            quorum: field(from, "quorum")?,
        })
    }
}

impl Read for ResultKind {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        Ok(match from.name(&["bytes", "json", "output"])? {
            0 => Self::Bytes,
            1 => Self::Json,
            _ => Self::Output,
        })
    }
}

impl Write for ResultKind {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.name(match self {
            Self::Bytes => "bytes",
            Self::Json => "json",
            Self::Output => "output",
        })
    }
}

impl Read for RunResult {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["kind", "bytes"])?;
        Ok(Self {
            kind: field(from, "kind")?,
            bytes: field(from, "bytes")?,
        })
    }
}

impl Fields for RunResult {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("kind", self.kind.write(to)),
            ("bytes", self.bytes.write(to)),
        ]
    }
}

impl Write for RunResult {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.record("run-result", self.fields(to))
    }
}

impl Fields for RunRecord {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("began-unix-ms", self.began_unix_ms.write(to)),
            ("attempts", self.attempts.write(to)),
            ("run-result", self.run_result.write(to)),
        ]
    }
}

impl Write for RunRecord {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.record("run-record", self.fields(to))
    }
}

impl Read for RunOptions {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["keep", "trust-quorum", "even-if-done"])?;
        Ok(Self {
            keep_ms: length(from, "keep")?,
            trust_quorum: field::<Option<_>, _>(from, "trust-quorum")?.unwrap_or(false),
            even_if_done: field::<Option<_>, _>(from, "even-if-done")?.unwrap_or(false),
        })
    }
}

impl Read for WaitFor {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["wait"])?;
        Ok(Self {
            wait_ms: needed(length(from, "wait")?, "wait")?,
        })
    }
}

impl Read for Wait {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        let case = from.case("wait", &["once", "for", "forever"])?;
        Ok(match case {
            0 => { from.only(&[])?; Self::Once }
            1 => Self::For(Read::read(from)?),
            _ => { from.only(&[])?; Self::Forever }
        })
    }
}

impl Read for RenewEvery {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["interval"])?;
        Ok(Self {
            interval_ms: needed(length(from, "interval")?, "interval")?,
        })
    }
}

impl Read for Renewal {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        let case = from.case("renewal", &["automatic", "off", "every"])?;
        Ok(match case {
            0 => { from.only(&[])?; Self::Automatic }
            1 => { from.only(&[])?; Self::Off }
            _ => Self::Every(Read::read(from)?),
        })
    }
}

impl Read for LockOptions {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["ttl", "wait", "lock-delay", "max-hold", "renewal", "owner", "data", "run"])?;
        Ok(Self {
            ttl_ms: length(from, "ttl")?,
            wait: field::<Option<_>, _>(from, "wait")?.unwrap_or(Wait::Forever),
            lock_delay_ms: length(from, "lock-delay")?.unwrap_or(0),
            max_hold_ms: length(from, "max-hold")?,
            renewal: field::<Option<_>, _>(from, "renewal")?.unwrap_or(Renewal::Automatic),
            owner: field::<Option<_>, _>(from, "owner")?.unwrap_or(String::new()),
            data: field(from, "data")?,
            run: field(from, "run")?,
        })
    }
}

impl Fields for TooLong {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("what", self.what.write(to)),
            ("bytes", self.bytes.write(to)),
            ("max-bytes", self.max_bytes.write(to)),
        ]
    }
}

impl Fields for ControlCharacter {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("what", self.what.write(to)),
            ("at", self.at.write(to)),
            ("code", self.code.write(to)),
        ]
    }
}

impl Fields for RefusedSessionLabel {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("given", self.given.write(to)),
        ]
    }
}

impl Fields for TooShort {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("what", self.what.write(to)),
            ("value-ms", self.value_ms.write(to)),
            ("min-ms", self.min_ms.write(to)),
        ]
    }
}

impl Fields for TooFar {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("what", self.what.write(to)),
            ("value-ms", self.value_ms.write(to)),
            ("max-ms", self.max_ms.write(to)),
        ]
    }
}

impl Fields for KeepBelowTtl {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("keep-ms", self.keep_ms.write(to)),
            ("ttl-ms", self.ttl_ms.write(to)),
        ]
    }
}

impl Fields for DriftOutOfBounds {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("ppm", self.ppm.write(to)),
            ("min-ppm", self.min_ppm.write(to)),
            ("max-ppm", self.max_ppm.write(to)),
        ]
    }
}

impl Fields for WrongNodeCount {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("count", self.count.write(to)),
            ("max", self.max.write(to)),
        ]
    }
}

impl Fields for ZeroLimit {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("what", self.what.write(to)),
        ]
    }
}

impl Fields for TooFewBytes {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("what", self.what.write(to)),
            ("bytes", self.bytes.write(to)),
            ("min-bytes", self.min_bytes.write(to)),
        ]
    }
}

impl Fields for WrongStoreCount {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("count", self.count.write(to)),
            ("nodes", self.nodes.write(to)),
        ]
    }
}

impl Fields for RefusedStore {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("node", self.node.write(to)),
            ("detail", self.detail.write(to)),
        ]
    }
}

impl Fields for OtherError {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("message", self.message.write(to)),
        ]
    }
}

impl Write for ConfigError {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        match self {
            Self::EmptyResource => to.case("config-error", "empty-resource", Vec::new()),
            Self::EmptyKey => to.case("config-error", "empty-key", Vec::new()),
            Self::TooLong(payload) => to.case("config-error", "too-long", payload.fields(to)),
            Self::ControlCharacter(payload) => to.case("config-error", "control-character", payload.fields(to)),
            Self::SessionLabel(payload) => to.case("config-error", "session-label", payload.fields(to)),
            Self::TooShort(payload) => to.case("config-error", "too-short", payload.fields(to)),
            Self::TooFar(payload) => to.case("config-error", "too-far", payload.fields(to)),
            Self::KeepBelowTtl(payload) => to.case("config-error", "keep-below-ttl", payload.fields(to)),
            Self::Drift(payload) => to.case("config-error", "drift", payload.fields(to)),
            Self::Nodes(payload) => to.case("config-error", "nodes", payload.fields(to)),
            Self::ZeroLimit(payload) => to.case("config-error", "zero-limit", payload.fields(to)),
            Self::TooFewBytes(payload) => to.case("config-error", "too-few-bytes", payload.fields(to)),
            Self::Stores(payload) => to.case("config-error", "stores", payload.fields(to)),
            Self::Store(payload) => to.case("config-error", "store", payload.fields(to)),
            Self::Other(payload) => to.case("config-error", "other", payload.fields(to)),
        }
    }
}
