//! The faults of messages and steps: drawn from the seed, or written in a script.

use std::collections::HashMap;

use crate::rng::{Draws, Stream};
use crate::script::{Message, Peer, Script, Stall, StallPoint, Way};

/// The faults of one run. Each is recorded, so that a run that was drawn becomes a script.
#[derive(Debug)]
pub struct FaultSchedule {
    source: Source,
    healed: bool,
    messages: Vec<Message>,
    stalls: Vec<Stall>,
}

#[derive(Debug)]
enum Source {
    Drawn(Box<Odds>),
    Written { messages: HashMap<(usize, Peer, usize, u64), Message>, stalls: HashMap<(usize, u64), Stall> },
}

/// The odds of each kind of fault: one in this many messages or steps, never for 0. Every kind has a stream of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Odds {
    /// The seed of all streams.
    pub seed: u64,
    /// A message gets lost.
    pub lost: u64,
    /// A message is a little late.
    pub jitter: u64,
    /// A message is very late.
    pub delayed: u64,
    /// Word to a session is very late.
    pub late_tells: u64,
    /// A message arrives twice.
    pub copied: u64,
    /// A connection breaks after the request has left.
    pub reset: u64,
    /// A process is held up in a step.
    pub stalled: u64,
    /// The longest that a message is a little late.
    pub jitter_ns: u64,
    /// The longest that a message is very late, or a process held up.
    pub delay_ns: u64,
}

impl FaultSchedule {
    /// Drawn with these odds.
    pub fn drawn(odds: Odds) -> Self {
        Self::new(Source::Drawn(Box::new(odds)))
    }

    /// The faults of a script.
    pub fn written(script: &Script) -> Self {
        let messages = script.messages.iter().map(|fate| ((fate.host, fate.to, fate.node, fate.n), *fate)).collect();
        let stalls = script.stalls.iter().map(|stall| ((stall.host, stall.n), *stall)).collect();
        Self::new(Source::Written { messages, stalls })
    }

    fn new(source: Source) -> Self {
        Self { source, healed: false, messages: Vec::new(), stalls: Vec::new() }
    }

    /// Ends all faults.
    pub fn heal(&mut self) {
        self.healed = true;
    }

    /// The faults so far.
    pub fn recorded(self) -> (Vec<Message>, Vec<Stall>) {
        (self.messages, self.stalls)
    }

    /// The fate of message number `n` of a host to a peer, and of its answer.
    pub fn message(&mut self, host: usize, to: Peer, node: usize, n: u64) -> Message {
        let usual = Message { host, to, node, n, ..Message::default() };
        if self.healed {
            return usual;
        }
        let fate = match &self.source {
            Source::Drawn(odds) => odds.message(usual),
            Source::Written { messages, .. } => messages.get(&(host, to, node, n)).copied().unwrap_or(usual),
        };
        if fate != usual {
            self.messages.push(fate);
        }
        fate
    }

    /// The stall of a host in its step number `n`, if there is one.
    pub fn stall(&mut self, host: usize, n: u64) -> Option<Stall> {
        if self.healed {
            return None;
        }
        let stall = match &self.source {
            Source::Drawn(odds) => odds.stall(host, n),
            Source::Written { stalls, .. } => stalls.get(&(host, n)).copied(),
        };
        self.stalls.extend(stall);
        stall
    }
}

impl Odds {
    fn message(&self, usual: Message) -> Message {
        let link = (usual.host as u64) * 4 + usual.to as u64 + ((usual.node as u64) << 32);
        let stream = |purpose, leg: u64| Stream::new(self.seed, purpose).of(link * 2 + leg).of(usual.n).draws();
        let way = |leg| {
            let lost = happens(&mut stream("lost", leg), self.lost);
            let mut way = Way { lost, ..Way::default() };
            let mut draws = stream("jitter", leg);
            if happens(&mut draws, self.jitter) {
                way.delay_ns = draws.below(self.jitter_ns);
            }
            let mut draws = stream("delayed", leg);
            if usual.to == Peer::Session && happens(&mut draws, self.late_tells) {
                way.delay_ns = draws.below(self.delay_ns);
            } else if happens(&mut draws, self.delayed) {
                way.delay_ns = self.far(&mut draws);
            }
            let mut draws = stream("copied", leg);
            if happens(&mut draws, self.copied) {
                way.copy_ns = Some(self.far(&mut draws));
            }
            way
        };
        let mut draws = stream("reset", 0);
        let reset_ns = happens(&mut draws, self.reset).then(|| draws.below(self.jitter_ns.max(1)));
        Message { request: way(0), reply: way(1), reset_ns, ..usual }
    }

    fn stall(&self, host: usize, n: u64) -> Option<Stall> {
        let mut draws = Stream::new(self.seed, "stalled").of(host as u64).of(n).draws();
        happens(&mut draws, self.stalled).then(|| {
            let place = *draws.pick(&[StallPoint::Before, StallPoint::Process, StallPoint::Driver]);
            Stall { host, n, place, for_ns: self.far(&mut draws) }
        })
    }

    /// Mostly short, now and then as long as it gets.
    fn far(&self, draws: &mut Draws) -> u64 {
        let most = self.delay_ns >> draws.below(7);
        draws.below(most.max(1))
    }
}

fn happens(draws: &mut Draws, once_in: u64) -> bool {
    once_in > 0 && draws.one_in(once_in)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{Family, Lot};

    const ODDS: Odds = Odds {
        seed: 5,
        lost: 4,
        jitter: 2,
        delayed: 5,
        late_tells: 2,
        copied: 6,
        reset: 7,
        stalled: 3,
        jitter_ns: 1_000,
        delay_ns: 1_000_000,
    };

    #[test]
    fn removing_one_kind_of_fault_keeps_the_others() {
        let without = Odds { lost: 0, ..ODDS };
        for n in 1..200 {
            let usual = Message { host: 1, n, ..Message::default() };
            let (with, mut without) = (ODDS.message(usual), without.message(usual));
            assert!(!without.request.lost && !without.reply.lost);
            (without.request.lost, without.reply.lost) = (with.request.lost, with.reply.lost);
            assert_eq!(with, without);
        }
    }

    #[test]
    fn drawn_faults_survive_as_a_script() {
        let mut drawn = FaultSchedule::drawn(ODDS);
        let fates: Vec<_> = (1..100).map(|n| (drawn.message(0, Peer::Store, 0, n), drawn.stall(0, n))).collect();
        let (messages, stalls) = drawn.recorded();
        assert!(messages.len() > 30 && stalls.len() > 10);
        let mut script = crate::swarm::draw(1, Lot::Kept(Family::Store)).0;
        (script.messages, script.stalls) = (messages, stalls);
        let mut written = FaultSchedule::written(&script);
        let again: Vec<_> = (1..100).map(|n| (written.message(0, Peer::Store, 0, n), written.stall(0, n))).collect();
        assert_eq!(fates, again);
    }
}
