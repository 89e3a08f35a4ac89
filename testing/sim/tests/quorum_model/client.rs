//! A client: what it makes of an answer, through the real tally.

use leasehold_core::NodeId;
use leasehold_core::quorum::{Tally, Trust, Verdict, majority};

use crate::node::{count, token};
use crate::state::{Ask, Broken, Count, Phase, Reply, State, Told, What, Wire};
use crate::world::{Bug, Deadlines, Reached, World};

impl<const N: usize, const C: usize> World<N, C> {
    pub(crate) fn hear(&self, state: &mut State<N, C>, client: usize, node: usize) {
        let leg = &mut state.clients[client].legs[node];
        let Wire::Answers(reply) = leg.wire else { unreachable!("it has answered") };
        leg.wire = Wire::Idle;
        let stale_counts = self.setting.bug == Some(Bug::StaleWitnesses);
        let counts = |trust, stamp| trust == Trust::Trusted || stamp == leg.knew || stale_counts;
        let mut abstained = false;
        match reply {
            Reply::Granted { counter, trust, stamp, seq } => {
                leg.told = if counts(trust, stamp) {
                    Told::Granted { counter, trust, seq }
                } else {
                    self.reach(Reached::Rejoined);
                    Told::Refused(None)
                };
                if stamp != 0 {
                    (leg.known, leg.shown) = (stamp, stamp);
                }
            }
            Reply::Conflict(counter) if leg.told == Told::Nothing => {
                leg.told = Told::Refused(counter.map(|counter| (counter, Trust::Trusted)));
            }
            Reply::Conflict(_) => self.refused(state, client, node),
            Reply::Abstains(stamp) => {
                leg.told = Told::Abstained { shown_before: leg.shown == stamp };
                leg.shown = stamp;
                abstained = true;
            }
            Reply::Raised(counter) => {
                let seq = match leg.told {
                    Told::Granted { seq, trust, .. } => {
                        if trust == Trust::Doubtful {
                            self.reach(Reached::DoubtfulRaised);
                        }
                        seq
                    }
                    Told::Raised { seq, .. } => seq,
                    // Given up meanwhile.
                    Told::Nothing | Told::Refused(_) | Told::Abstained { .. } => return,
                };
                leg.told = Told::Raised { counter, seq };
            }
        }
        let of = &mut state.clients[client];
        let all_joining = of.legs.iter().all(|leg| leg.told == Told::Abstained { shown_before: true });
        // Once at one instant; anything new that is shown afterwards makes it hearsay again.
        of.unborn =
            all_joining || (of.unborn && abstained && of.legs[node].told != Told::Abstained { shown_before: false });
        match of.phase {
            Phase::Asking => self.count(state, client),
            Phase::Held(held) => self.repaired(state, client, node, held),
            Phase::Idle | Phase::Lost => {}
        }
    }

    /// The node's counter is remembered.
    pub(crate) fn refused(&self, state: &mut State<N, C>, client: usize, node: usize) {
        let leg = &mut state.clients[client].legs[node];
        leg.told = Told::Refused(match leg.told {
            Told::Granted { counter, trust, .. } => Some((counter, trust)),
            Told::Raised { counter, .. } => Some((counter, Trust::Trusted)),
            Told::Refused(read) => read,
            Told::Nothing | Told::Abstained { .. } => None,
        });
    }

    /// A holder that won a node back, and still holds, makes its counter trusted.
    fn repaired(&self, state: &mut State<N, C>, client: usize, node: usize, held: Count) {
        let Told::Granted { trust, .. } = state.clients[client].legs[node].told else { return };
        if trust == Trust::Doubtful && state.vouches(client, node) && state.vouching(client) >= majority(N) {
            self.raise(state, client, node, held);
        }
    }

    fn raise(&self, state: &mut State<N, C>, client: usize, node: usize, to: Count) {
        let leg = &mut state.clients[client].legs[node];
        leg.wire = Wire::Asks(Ask { seq: leg.seq, what: What::Raise(to) });
        self.reach(Reached::RaiseSent);
    }

    pub(crate) fn count(&self, state: &mut State<N, C>, client: usize) {
        let keeps = self.setting.deadlines == Deadlines::Kept;
        if keeps && self.setting.bug != Some(Bug::AcksOutlive) {
            for node in 0..N {
                let votes = matches!(state.clients[client].legs[node].told, Told::Granted { .. } | Told::Raised { .. });
                if votes && !state.vouches(client, node) {
                    self.refused(state, client, node);
                }
            }
        }
        match self.verdict(state, client) {
            Verdict::Open => {}
            Verdict::Lost => state.clients[client].phase = Phase::Lost,
            Verdict::Raise { nodes, token } => {
                let highest = count(token);
                for node in nodes {
                    let leg = &state.clients[client].legs[node.index()];
                    if let Told::Raised { .. } = leg.told {
                        self.reach(Reached::AcksRestarted);
                    }
                    if leg.wire == Wire::Idle {
                        self.raise(state, client, node.index(), highest);
                    }
                }
            }
            Verdict::Granted(_) if keeps && state.vouching(client) < majority(N) => {
                state.clients[client].phase = Phase::Lost;
            }
            Verdict::Granted(token) => self.granted(state, client, count(token)),
        }
    }

    fn verdict(&self, state: &mut State<N, C>, client: usize) -> Verdict {
        let of = &mut state.clients[client];
        let mut tally = Tally::new(N);
        let mut votes = Vec::with_capacity(N);
        for (at, leg) in of.legs.iter().enumerate() {
            let node = NodeId::new(at as u16);
            match leg.told {
                Told::Nothing => {}
                Told::Granted { counter, trust, .. } => {
                    let believed = self.setting.bug == Some(Bug::DoubtfulCounted);
                    tally.answer(node, token(counter), if believed { Trust::Trusted } else { trust });
                    votes.push((node, counter, trust));
                }
                Told::Raised { counter, .. } => {
                    tally.raised(node, token(counter));
                    votes.push((node, counter, Trust::Trusted));
                }
                Told::Refused(read) => {
                    if let Some((counter, trust)) = read {
                        tally.saw(node, token(counter), trust);
                    }
                    tally.refuse(node);
                }
                Told::Abstained { .. } => tally.refuse(node),
            }
        }
        let enough = votes.len() >= majority(N);
        let highest = votes.iter().map(|(_, counter, _)| *counter).max().unwrap_or(0);
        match self.setting.bug {
            Some(Bug::NoWriteBack) if enough => Verdict::Granted(token(highest)),
            Some(Bug::NoRestart) if enough => {
                if of.fixed == 0 {
                    of.fixed = highest;
                }
                let fixed = token(of.fixed);
                let is_ack = |node: &NodeId, counter: Count| {
                    counter == of.fixed || matches!(of.legs[node.index()].told, Told::Raised { .. })
                };
                let lower = votes.iter().filter(|(node, counter, _)| !is_ack(node, *counter));
                let nodes: Vec<_> = lower.map(|(node, ..)| *node).collect();
                if votes.len() - nodes.len() >= majority(N) {
                    Verdict::Granted(fixed)
                } else {
                    Verdict::Raise { nodes, token: fixed }
                }
            }
            Some(Bug::DoubtfulWitnesses) if enough && matches!(tally.verdict(), Verdict::Open | Verdict::Lost) => {
                let reads = of.legs.iter().filter_map(|leg| match leg.told {
                    Told::Refused(read) => read.map(|(counter, _)| counter),
                    Told::Nothing | Told::Granted { .. } | Told::Raised { .. } | Told::Abstained { .. } => None,
                });
                let reads: Vec<_> = reads.collect();
                if votes.len() + reads.len() > N - majority(N) + 1 {
                    let above = reads.into_iter().max().map_or(0, |read| read + 1);
                    let lacks = |(_, _, trust): &&(NodeId, Count, Trust)| *trust == Trust::Doubtful;
                    let nodes = votes.iter().filter(lacks).map(|(node, ..)| *node).collect();
                    Verdict::Raise { nodes, token: token(highest.max(above)) }
                } else {
                    tally.verdict()
                }
            }
            _ => tally.verdict(),
        }
    }

    fn granted(&self, state: &mut State<N, C>, client: usize, granted: Count) {
        self.reach(Reached::Granted);
        let legs = &state.clients[client].legs;
        let silent = |told: Told| matches!(told, Told::Nothing | Told::Refused(None));
        if legs.iter().any(|leg| silent(leg.told)) {
            self.reach(Reached::MinorityDown);
        }
        let entry = |node: usize| state.nodes[node].entry != 0 && state.nodes[node].entry == state.nodes[node].stamp;
        if (0..N).any(|node| matches!(legs[node].told, Told::Raised { .. }) && entry(node)) {
            self.reach(Reached::DoubtfulCounted);
        }
        let broken = match self.setting.deadlines {
            _ if state.granted & (1 << granted) != 0 => Some(Broken::Repeated),
            Deadlines::Kept if granted <= state.highest() => Some(Broken::Fallen),
            Deadlines::Ignored if granted <= state.clients[client].above => Some(Broken::Fallen),
            Deadlines::Kept if self.other_holds(state, client) => Some(Broken::TwoHolders),
            Deadlines::Kept | Deadlines::Ignored => None,
        };
        state.broken = broken;
        match self.setting.deadlines {
            Deadlines::Kept => state.granted = 1 << granted.max(state.highest()),
            Deadlines::Ignored => state.granted |= 1 << granted,
        }
        state.clients[client].phase = Phase::Held(granted);
    }

    fn other_holds(&self, state: &State<N, C>, client: usize) -> bool {
        let holds = |other: usize| matches!(state.clients[other].phase, Phase::Held(_));
        (0..C).any(|other| other != client && holds(other) && state.vouching(other) >= majority(N))
    }
}
