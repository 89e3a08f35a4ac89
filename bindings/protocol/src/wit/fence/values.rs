//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.

use super::*;
use crate::face::*;

impl Fields for Stale {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("token", self.token.write(to)),
            ("high-water", self.high_water.write(to)),
        ]
    }
}

impl Fields for OutOfOrder {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("write", self.write.write(to)),
            ("last", self.last.write(to)),
        ]
    }
}

impl Fields for InvalidToken {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("token", self.token.write(to)),
            ("max", self.max.write(to)),
        ]
    }
}

impl Write for Rejected {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        match self {
            Self::Stale(payload) => to.case("rejected", "stale", payload.fields(to)),
            Self::OutOfOrder(payload) => to.case("rejected", "out-of-order", payload.fields(to)),
            Self::Unclaimed => to.case("rejected", "unclaimed", Vec::new()),
            Self::InvalidToken(payload) => to.case("rejected", "invalid-token", payload.fields(to)),
        }
    }
}

impl Fields for DynamodbGuard {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("name", self.name.write(to)),
            ("value", self.value.write(to)),
            ("claim", self.claim.write(to)),
            ("check", self.check.write(to)),
            ("assign", self.assign.write(to)),
        ]
    }
}

impl Write for DynamodbGuard {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.record("dynamodb-guard", self.fields(to))
    }
}

impl Fields for RedisGuard {
    fn fields<W: Sink>(self, to: &W) -> Vec<(&'static str, W::Value)> {
        vec![
            ("claim", self.claim.write(to)),
            ("check", self.check.write(to)),
            ("check-and-set", self.check_and_set.write(to)),
            ("function", self.function.write(to)),
        ]
    }
}

impl Write for RedisGuard {
    fn write<W: Sink>(self, to: &W) -> W::Value {
        to.record("redis-guard", self.fields(to))
    }
}
