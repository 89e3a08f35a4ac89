//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.

use super::*;
use crate::face::*;

impl Read for AttemptLimit {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["max", "retry-after-ms"])?;
        Ok(Self {
            max: field(from, "max")?,
            retry_after_ms: field(from, "retry-after-ms")?,
        })
    }
}

impl Fields for AttemptLimit {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("max", self.max.write(to)),
            ("retry-after-ms", self.retry_after_ms.write(to)),
        ]
    }
}

impl Write for AttemptLimit {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.record("attempt-limit", self.fields(to))
    }
}

impl Read for Attempts {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["count", "max", "since-unix-ms", "retry-unix-ms", "reason"])?;
        Ok(Self {
            count: field(from, "count")?,
            max: field(from, "max")?,
            since_unix_ms: field(from, "since-unix-ms")?,
            retry_unix_ms: field(from, "retry-unix-ms")?,
            reason: field(from, "reason")?,
        })
    }
}

impl Fields for Attempts {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("count", self.count.write(to)),
            ("max", self.max.write(to)),
            ("since-unix-ms", self.since_unix_ms.write(to)),
            ("retry-unix-ms", self.retry_unix_ms.write(to)),
            ("reason", self.reason.write(to)),
        ]
    }
}

impl Write for Attempts {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.record("attempts", self.fields(to))
    }
}

impl Write for NextAttempt {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        match self {
            Self::Begin(payload) => to.case("next-attempt", "begin", payload.fields(to)),
            Self::Later(payload) => to.case("next-attempt", "later", payload.fields(to)),
            Self::GivenUp(payload) => to.case("next-attempt", "given-up", payload.fields(to)),
            Self::Unsure => to.case("next-attempt", "unsure", Vec::new()),
        }
    }
}
