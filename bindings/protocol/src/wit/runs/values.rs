//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.

use super::*;
use crate::face::*;

impl Read for Occurrence {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["key", "every-ms", "offset-ms", "at", "tz", "cron", "cooldown-ms", "keep-ms"])?;
        Ok(Self {
            key: field(from, "key")?,
            every_ms: field(from, "every-ms")?,
            offset_ms: field(from, "offset-ms")?,
            at: field(from, "at")?,
            tz: field(from, "tz")?,
            cron: field(from, "cron")?,
            cooldown_ms: field(from, "cooldown-ms")?,
            keep_ms: field(from, "keep-ms")?,
        })
    }
}

impl Read for ZoneOffset {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["since-unix-ms", "shown-ms"])?;
        Ok(Self {
            since_unix_ms: field(from, "since-unix-ms")?,
            shown_ms: field(from, "shown-ms")?,
        })
    }
}

impl Fields for RunPlan {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("resource", self.resource.write(to)),
            ("keep-ms", self.keep_ms.write(to)),
        ]
    }
}

impl Write for RunPlan {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.record("run-plan", self.fields(to))
    }
}

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

impl Fields for ReplaceRecord {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("ttl-ms", self.ttl_ms.write(to)),
            ("wait-ms", self.wait_ms.write(to)),
        ]
    }
}

impl Fields for ReplaceEnd {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("holder", self.holder.write(to)),
        ]
    }
}

impl Fields for ReplaceAsk {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("even-if-done", self.even_if_done.write(to)),
            ("wait-ms", self.wait_ms.write(to)),
        ]
    }
}

impl Write for ReplaceStep {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        match self {
            Self::Look => to.case("replace-step", "look", Vec::new()),
            Self::TakeNumber(payload) => to.case("replace-step", "take-number", payload.fields(to)),
            Self::Ask(payload) => to.case("replace-step", "ask", payload.fields(to)),
            Self::ReadNewest(payload) => to.case("replace-step", "read-newest", payload.fields(to)),
            Self::CountNewest(payload) => to.case("replace-step", "count-newest", payload.fields(to)),
            Self::End(payload) => to.case("replace-step", "end", payload.fields(to)),
            Self::Begin => to.case("replace-step", "begin", Vec::new()),
            Self::Replaced => to.case("replace-step", "replaced", Vec::new()),
            Self::Done => to.case("replace-step", "done", Vec::new()),
            Self::Running => to.case("replace-step", "running", Vec::new()),
            Self::Unsettled => to.case("replace-step", "unsettled", Vec::new()),
            Self::Fail => to.case("replace-step", "fail", Vec::new()),
        }
    }
}

impl Read for ReplaceNumber {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["token"])?;
        Ok(Self {
            token: field(from, "token")?,
        })
    }
}

impl Read for ReplaceCount {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["read", "holder"])?;
        Ok(Self {
            read: field(from, "read")?,
            holder: field(from, "holder")?,
        })
    }
}

impl Read for ReplaceRunner {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["holding"])?;
        Ok(Self {
            holding: field(from, "holding")?,
        })
    }
}

impl Read for ReplaceTrouble {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        from.only(&["may-pass"])?;
        Ok(Self {
            may_pass: field(from, "may-pass")?,
        })
    }
}

impl Read for ReplaceAnswer {
    fn read<S: Source>(from: &S) -> Result<Self, Unfit> {
        let case = from.case("replace-answer", &["looked", "numbered", "unconfirmed", "granted", "refused", "newest", "counted", "ended", "failed"])?;
        Ok(match case {
            0 => Self::Looked(Read::read(from)?),
            1 => Self::Numbered(Read::read(from)?),
            2 => Self::Unconfirmed(Read::read(from)?),
            3 => { from.only(&[])?; Self::Granted }
            4 => Self::Refused(Read::read(from)?),
            5 => Self::Newest(Read::read(from)?),
            6 => Self::Counted(Read::read(from)?),
            7 => { from.only(&[])?; Self::Ended }
            _ => Self::Failed(Read::read(from)?),
        })
    }
}
