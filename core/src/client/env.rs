//! The state that all locks of a client share, and the one place that runs a machine.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::config::{Config, LockOptions};
use crate::event::Event;
use crate::ids::{LockId, NodeId, Resource, Token};
use crate::lease::{Ctx, Effects, Input, Machine, NodeState, Row};
use crate::observe::Observations;
use crate::prf::Seed;
use crate::time::Now;

/// Settings, clocks and memory of a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Env {
    pub(super) config: Config,
    pub(super) seed: Seed,
    pub(super) now: Now,
    pub(super) observations: Observations,
    pub(super) nodes: Vec<NodeState>,
    /// The highest wall clock seen, in microseconds since 1970, so that floors do not fall when it is set back.
    unix_high_us: u64,
    /// Tokens seen that our wall clock has not passed; only these raise a floor.
    tokens_ahead: BTreeMap<Resource, Token>,
    /// None of them is lower, so there is nothing to forget before the wall clock has passed it.
    lowest_ahead: Token,
    /// None of them is higher, so none counts once the wall clock has passed it.
    highest_ahead: Token,
}

/// The largest floor that a wall clock may ask for: half of the token space, so that a wall clock that is far ahead cannot
/// use it up. As microseconds since 1970 it is the year 2112.
const MAX_FLOOR: u64 = 1 << 52;

/// The floor that a wall clock asks for. Microseconds, because a name may be granted thousands of times a second: a counter
/// that runs ahead of the clock could fall once it is lost.
fn floor_at(unix_ms: u64) -> u64 {
    unix_ms.saturating_mul(1_000).min(MAX_FLOOR)
}

impl Env {
    pub(super) fn new(config: Config, seed: Seed, now: Now) -> Self {
        let observations = Observations::new(config.limits().observations);
        let nodes = config.nodes().iter().map(|_| NodeState::default()).collect();
        let unix_high_us = floor_at(now.unix_ms);
        Self {
            config,
            seed,
            now,
            observations,
            nodes,
            unix_high_us,
            tokens_ahead: BTreeMap::new(),
            lowest_ahead: Token::MAX,
            highest_ahead: Token::ZERO,
        }
    }

    /// Sets the time. A monotonic clock that runs backwards counts as standing still.
    pub(super) fn tick(&mut self, now: Now) {
        self.now = Now { monotonic: self.now.monotonic.max(now.monotonic), unix_ms: now.unix_ms };
        self.unix_high_us = self.unix_high_us.max(floor_at(now.unix_ms));
    }

    pub(super) fn node_mut(&mut self, node: NodeId) -> Option<&mut NodeState> {
        self.nodes.get_mut(node.index())
    }

    /// Hands one input to a machine, and then every timer of it that is due by now.
    pub(super) fn run(
        &mut self,
        machine: Machine,
        input: Input<'_>,
        lock: LockId,
        resource: &Resource,
        options: &LockOptions,
        out: &mut Effects,
    ) -> Machine {
        let mut ctx = Ctx {
            now: self.now,
            config: &self.config,
            seed: &self.seed,
            nodes: &mut self.nodes,
            lock,
            resource,
            options,
            observations: &mut self.observations,
            out,
        };
        // If the wait is over, its timer fires by itself: recursion must not walk along a queue of such waits.
        let is_turn = matches!(input, Input::Turn);
        let (mut machine, row) = machine.handle(input, &mut ctx);
        note_row(row);
        while !is_turn && machine.wake_at().is_some_and(|at| at <= ctx.now.monotonic) {
            let (next, row) = machine.handle(Input::Timeout, &mut ctx);
            machine = next;
            note_row(row);
            debug_assert!(row.is_some(), "a timer that is due must do something");
            if row.is_none() {
                break;
            }
        }
        if let Some(counter) = ctx.out.counter_seen.take() {
            self.outbid(resource, counter);
        }
        machine
    }

    pub(super) fn note(&mut self, resource: &Resource, event: &Event) {
        if let Event::Acquired { token, .. } = event {
            self.outbid(resource, *token);
        }
    }

    /// Remembers a token that our wall clock has not passed yet: our next grant must be above it.
    fn outbid(&mut self, resource: &Resource, token: Token) {
        if token.get() < self.unix_high_us {
            return;
        }
        let (unix_high_us, limit) = (self.unix_high_us, self.config.limits().observations);
        if self.tokens_ahead.len() >= limit && self.lowest_ahead.get() < unix_high_us {
            self.tokens_ahead.retain(|_, token| token.get() >= unix_high_us);
            self.lowest_ahead = self.tokens_ahead.values().copied().min().unwrap_or(Token::MAX);
        }
        if self.tokens_ahead.len() < limit {
            self.lowest_ahead = self.lowest_ahead.min(token);
            self.highest_ahead = self.highest_ahead.max(token);
            let known = self.tokens_ahead.entry(resource.clone()).or_insert(token);
            *known = token.max(*known);
        }
    }

    /// The smallest token for a grant requested now: it passes every token minted before by an honest clock, even if
    /// the store has forgotten it.
    pub(super) fn floor(&self, resource: &Resource) -> Token {
        let wall = Token::new(self.unix_high_us).unwrap_or(Token::MAX);
        if self.highest_ahead < wall {
            return wall;
        }
        let seen = self.tokens_ahead.get(resource).copied();
        seen.and_then(Token::next).map_or(wall, |next| next.max(wall))
    }
}

/// Counts the row in [`trace`](crate::trace), if that feature is on.
#[inline]
fn note_row(row: Option<Row>) {
    #[cfg(feature = "trace")]
    if let Some(row) = row {
        crate::trace::note(row);
    }
    #[cfg(not(feature = "trace"))]
    let _ = row;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Limits, NodeConfig};
    use crate::time::Monotonic;

    #[test]
    fn floor_is_above_seen_tokens_within_bounds() {
        let config = Config::new(alloc::vec![NodeConfig::default()]).unwrap();
        let config = config.with_limits(Limits { observations: 2, ..Limits::default() }).unwrap();
        let at = |unix_ms| Now { monotonic: Monotonic::from_ns(0), unix_ms };
        let mut env = Env::new(config, [1; 32], at(100));
        let outbid = |env: &mut Env, name: &str, token| {
            env.outbid(&Resource::new(name).unwrap(), Token::new(token).unwrap());
        };
        let floor = |env: &Env, name: &str| env.floor(&Resource::new(name).unwrap()).get();
        outbid(&mut env, "passed", 99_999);
        outbid(&mut env, "now", 100_000);
        outbid(&mut env, "ahead", 200_000);
        outbid(&mut env, "ahead", 150_000);
        assert_eq!(["passed", "now", "ahead"].map(|name| floor(&env, name)), [100_000, 100_001, 200_001]);
        outbid(&mut env, "one too many", 300_000);
        assert_eq!(["now", "one too many"].map(|name| floor(&env, name)), [100_001, 100_000]);
        // Only tokens that the clock has passed make room.
        env.tick(at(101));
        outbid(&mut env, "in time", 300_000);
        assert_eq!(["now", "ahead", "in time"].map(|name| floor(&env, name)), [101_000, 200_001, 300_001]);
        env.tick(at(200));
        outbid(&mut env, "one too many", 300_000);
        assert_eq!(["ahead", "in time", "one too many"].map(|name| floor(&env, name)), [200_001, 300_001, 200_000]);
    }
}
