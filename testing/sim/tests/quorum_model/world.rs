//! The search space: clients, nodes, and everything that can happen next.

use std::sync::atomic::{AtomicU64, Ordering};

use leasehold_core::Owner;
use leasehold_core::quorum::{Trust, majority};
use stateright::{Model, Property};

use crate::node::answer;
use crate::state::{
    Ask, Budget, By, Client, Count, Lease, Leg, Mark, Name, Node, Phase, Reply, State, Told, What, Wire,
};

/// A rule that can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// The highest of q answers is the token, and it is not written back.
    NoWriteBack,
    /// A node is raised although the record is not ours.
    RaisesAnybody,
    /// An answer that was raised at least to the first maximum counts as an ack for it.
    NoRestart,
    /// The counter goes with the lease.
    CounterDeleted,
    /// A node that lost its data votes with its fresh counter.
    VotesAtOnce,
    /// A doubtful vote is taken for a trusted one.
    DoubtfulCounted,
    /// Doubtful nodes are witnesses for one another.
    DoubtfulWitnesses,
    /// Acks count although the nodes that gave them no longer vouch, as long as any q nodes do.
    AcksOutlive,
    /// Doubtful votes count in attempts that began before the node was known to have rejoined.
    StaleWitnesses,
    /// A quorum is born when each node was seen joining at some time or other.
    BirthByHearsay,
    /// All sends of an attempt carry one stamp.
    StampReused,
    /// A client that has waited out one loss of a node makes it vote after the next one.
    AnyStamp,
    /// The abstention ends while a forgotten lease is still valid.
    WaitsTooShort,
}

/// The cases in which the acquire by which a holder wins a node back makes the node's counter trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RepairTrust {
    Never,
    Always,
    /// If its sender knew that the abstention had ended.
    WaitedOut,
}

/// The meaning of validity to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deadlines {
    /// It believes in answers of any age; records still run out at any instant.
    Ignored,
    /// It believes in a node at most until the record there runs out, or the abstention of a node that forgot it ends.
    Kept,
}

#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The number of attempts of each client.
    pub(crate) attempts: Vec<u8>,
    /// The actions before the search begins.
    pub(crate) story: Vec<Action>,
    pub(crate) counters: Vec<Count>,
    pub(crate) floors: Vec<Count>,
    pub(crate) born: bool,
    pub(crate) budget: Budget,
    pub(crate) deadlines: Deadlines,
    pub(crate) repair_trust: RepairTrust,
    pub(crate) bug: Option<Bug>,
    /// The number of steps to search. A search that stops there has not seen everything.
    pub(crate) limit: usize,
}

impl Setting {
    fn stamp(&self, client: usize, attempt: u8) -> Name {
        if self.bug == Some(Bug::StampReused) { 100 + 10 * client as u8 + attempt } else { 0 }
    }
}

/// Something that a search should get to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    Granted,
    RaiseSent,
    AcksRestarted,
    MinorityDown,
    DoubtfulRaised,
    DoubtfulCounted,
    TrustedByEntry,
    Born,
    Rejoined,
    Repaired,
    RepairedTooLate,
    StrayLanded,
    LostTwice,
}

pub(crate) const ALL_REACHED: [Reached; 13] = [
    Reached::Granted,
    Reached::RaiseSent,
    Reached::AcksRestarted,
    Reached::MinorityDown,
    Reached::DoubtfulRaised,
    Reached::DoubtfulCounted,
    Reached::TrustedByEntry,
    Reached::Born,
    Reached::Rejoined,
    Reached::Repaired,
    Reached::RepairedTooLate,
    Reached::StrayLanded,
    Reached::LostTwice,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A client begins an attempt; what it still had asked this node lands later, if it asked anything.
    Start {
        client: usize,
        stray: Option<usize>,
    },
    /// Without an answer in time; what was asked before gets lost, or lands later.
    Resend {
        client: usize,
        node: usize,
        stray: bool,
    },
    GiveUpOn {
        client: usize,
        node: usize,
    },
    Arrive {
        client: usize,
        node: usize,
    },
    ArriveLate {
        node: usize,
    },
    Hear {
        client: usize,
        node: usize,
    },
    RunOut {
        node: usize,
    },
    Release {
        client: usize,
        node: usize,
    },
    LoseData {
        node: usize,
    },
    WaitOut {
        client: usize,
        node: usize,
    },
    Repair {
        client: usize,
        node: usize,
    },
}

pub(crate) struct World<const N: usize, const C: usize> {
    pub(crate) setting: Setting,
    owner: Owner,
    pub(crate) reached: [AtomicU64; ALL_REACHED.len()],
}

impl<const N: usize, const C: usize> World<N, C> {
    pub(crate) fn new(setting: Setting) -> Self {
        Self { setting, owner: Owner::new("").expect("a label"), reached: [const { AtomicU64::new(0) }; _] }
    }

    pub(crate) fn reach(&self, what: Reached) {
        self.reached[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn start(&self, state: &mut State<N, C>, client: usize, stray: Option<usize>) {
        if let Some(node) = stray {
            self.give_up(state, client, node, true);
        }
        let above = match self.setting.deadlines {
            Deadlines::Ignored => state.highest(),
            Deadlines::Kept => 0,
        };
        let setting = &self.setting;
        let of = &mut state.clients[client];
        let waited = |leg: &Leg| leg.shown != 0 && leg.known == leg.shown;
        let unborn = of.unborn || setting.bug == Some(Bug::BirthByHearsay);
        let birth = unborn && of.legs.iter().all(waited);
        (of.phase, of.attempt, of.above, of.fixed) = (Phase::Asking, of.attempt + 1, above, 0);
        for leg in &mut of.legs {
            let what = What::Acquire {
                floor: setting.floors[client],
                waited_out: leg.known,
                birth,
                fresh: setting.stamp(client, of.attempt),
                repair: false,
            };
            (leg.told, leg.seq, leg.knew) = (Told::Nothing, 1, leg.known);
            leg.wire = Wire::Asks(Ask { seq: 1, what });
        }
    }

    fn give_up(&self, state: &mut State<N, C>, client: usize, node: usize, stray: bool) {
        let by = state.clients[client].by(client);
        if let (true, Wire::Asks(ask)) = (stray, state.clients[client].legs[node].wire) {
            state.left.strays -= 1;
            state.nodes[node].stray = Some((by, ask));
        }
        state.clients[client].legs[node].wire = Wire::Idle;
    }

    /// A request that lands later makes no difference if another is under way there already.
    fn may_stray(state: &State<N, C>, client: usize, node: usize) -> bool {
        let asks = matches!(state.clients[client].legs[node].wire, Wire::Asks(_));
        asks && state.left.strays > 0 && state.nodes[node].stray.is_none()
    }

    fn resend(&self, state: &mut State<N, C>, client: usize, node: usize, stray: bool, asked: What) {
        self.give_up(state, client, node, stray);
        state.left.timeouts -= 1;
        let leg = &mut state.clients[client].legs[node];
        leg.seq += 1;
        leg.wire = Wire::Asks(Ask { seq: leg.seq, what: asked });
    }

    /// The request that a leg is waiting for, to be sent again.
    fn owed(&self, of: &Client<N>, client: usize, node: usize) -> Option<What> {
        let leg = &of.legs[node];
        match leg.wire {
            Wire::Idle => None,
            Wire::Asks(ask) => Some(ask.what),
            Wire::Answers(Reply::Raised(counter)) => Some(What::Raise(counter)),
            Wire::Answers(_) if leg.told == Told::Nothing => Some(What::Acquire {
                floor: self.setting.floors[client],
                waited_out: leg.knew,
                birth: false,
                fresh: self.setting.stamp(client, of.attempt),
                repair: false,
            }),
            Wire::Answers(_) => None,
        }
    }

    fn arrive(&self, state: &mut State<N, C>, client: usize, node: usize) {
        let by = state.clients[client].by(client);
        let Wire::Asks(ask) = state.clients[client].legs[node].wire else { unreachable!("it was asked") };
        let answered = answer(&mut state.nodes[node], by, ask, &self.setting, &self.owner);
        if answered.born {
            self.reach(Reached::Born);
        }
        if let Reply::Granted { trust: Trust::Trusted, .. } = answered.reply
            && state.nodes[node].mark == Mark::Rejoined
        {
            self.reach(Reached::TrustedByEntry);
        }
        if let (What::Acquire { repair: true, .. }, Reply::Granted { .. }) = (ask.what, answered.reply) {
            self.reach(Reached::Repaired);
        }
        state.clients[client].legs[node].wire = Wire::Answers(answered.reply);
    }

    fn lose_data(&self, state: &mut State<N, C>, node: usize) {
        state.left.losses -= 1;
        let lost = state.nodes.iter().filter(|node| node.mark != Mark::Member).count();
        if lost > 0 && self.setting.born {
            self.reach(Reached::LostTwice);
        }
        let node = &mut state.nodes[node];
        node.past = node.lease.take().or(node.past);
        (node.counter, node.mark, node.entry) = (0, Mark::Absent, 0);
    }

    /// Forgets what can make no difference any more.
    fn settle(&self, state: &mut State<N, C>) {
        let remembers = self.setting.born && self.setting.budget.losses == 0;
        for client in 0..C {
            for node in 0..N {
                // No counter is in doubt, so a refusal only ends the attempt sooner.
                let leg = &state.clients[client].legs[node];
                if remembers && matches!(leg.wire, Wire::Answers(Reply::Conflict(_))) {
                    self.hear(state, client, node);
                }
                let leg = &mut state.clients[client].legs[node];
                if let (true, Told::Refused(_)) = (remembers, leg.told) {
                    leg.told = Told::Refused(None);
                }
            }
            let over = match state.clients[client].phase {
                Phase::Idle | Phase::Asking => continue,
                Phase::Lost => true,
                Phase::Held(_) => false,
            };
            (state.clients[client].above, state.clients[client].fixed) = (0, 0);
            if !remembers || self.setting.budget.repairs > 0 {
                continue;
            }
            for node in 0..N {
                // The sooner it hears of a grant, the more nodes vouch.
                if let Wire::Answers(_) = state.clients[client].legs[node].wire {
                    self.hear(state, client, node);
                }
                let vouches = !over && self.setting.deadlines == Deadlines::Kept && state.vouches(client, node);
                let leg = &mut state.clients[client].legs[node];
                leg.told = match leg.told {
                    Told::Granted { seq, .. } | Told::Raised { seq, .. } if vouches => {
                        Told::Granted { counter: 0, trust: Trust::Trusted, seq }
                    }
                    _ => Told::Nothing,
                };
            }
        }
        let attempts: [u8; C] = std::array::from_fn(|client| state.clients[client].attempt);
        for node in &mut state.nodes {
            let stray = node.stray.map(|(by, _)| by);
            let dead = |by: By| by.attempt < attempts[usize::from(by.client)] && stray != Some(by);
            if let Some(lease) = node.lease.as_mut().filter(|lease| dead(lease.by)) {
                *lease = Lease { by: By { client: 0, attempt: 0 }, seq: 0 };
            }
            node.past = node.past.filter(|lease| !dead(lease.by));
        }
    }

    fn step(&self, before: &State<N, C>, action: Action) -> State<N, C> {
        let mut state = *before;
        match action {
            Action::Start { client, stray } => self.start(&mut state, client, stray),
            Action::Resend { client, node, stray } => {
                let owed = self.owed(&state.clients[client], client, node).expect("checked before");
                self.resend(&mut state, client, node, stray, owed);
            }
            Action::GiveUpOn { client, node } => {
                state.left.timeouts -= 1;
                self.give_up(&mut state, client, node, false);
                self.refused(&mut state, client, node);
                self.count(&mut state, client);
            }
            Action::Arrive { client, node } => self.arrive(&mut state, client, node),
            Action::ArriveLate { node } => {
                let at = &mut state.nodes[node];
                let (by, ask) = at.stray.take().expect("checked before");
                let _ = answer(at, by, ask, &self.setting, &self.owner);
                self.reach(match ask.what {
                    What::Acquire { repair: true, .. } => Reached::RepairedTooLate,
                    What::Acquire { .. } | What::Raise(_) => Reached::StrayLanded,
                });
            }
            Action::Hear { client, node } => self.hear(&mut state, client, node),
            Action::RunOut { node } => state.nodes[node].lease = None,
            Action::Release { node, .. } => {
                (state.nodes[node].lease, state.nodes[node].counter) = (None, 0);
            }
            Action::LoseData { node } => self.lose_data(&mut state, node),
            Action::WaitOut { client, node } => {
                let leg = &mut state.clients[client].legs[node];
                leg.known = leg.shown;
                if self.setting.bug != Some(Bug::WaitsTooShort) {
                    state.nodes[node].past = None;
                }
            }
            Action::Repair { client, node } => {
                let Phase::Held(token) = state.clients[client].phase else { unreachable!("a holder repairs") };
                Self::repair(&mut state, client, node, token);
            }
        }
        state
    }

    fn repair(state: &mut State<N, C>, client: usize, node: usize, token: Count) {
        state.left.repairs -= 1;
        let leg = &mut state.clients[client].legs[node];
        leg.seq += 1;
        leg.told = Told::Nothing;
        leg.knew = leg.known;
        let what = What::Acquire { floor: token, waited_out: leg.known, birth: false, fresh: 0, repair: true };
        leg.wire = Wire::Asks(Ask { seq: leg.seq, what });
    }
}

impl<const N: usize, const C: usize> Model for World<N, C> {
    type State = State<N, C>;
    type Action = Action;

    fn init_states(&self) -> Vec<Self::State> {
        let nodes = std::array::from_fn(|node| Node {
            counter: self.setting.counters[node],
            lease: None,
            mark: if self.setting.born { Mark::Member } else { Mark::Absent },
            stamp: 0,
            entry: 0,
            past: None,
            stray: None,
        });
        let leg = Leg { told: Told::Nothing, wire: Wire::Idle, seq: 0, knew: 0, known: 0, shown: 0 };
        let client = Client { phase: Phase::Idle, attempt: 0, above: 0, fixed: 0, unborn: false, legs: [leg; N] };
        let left = self.setting.budget;
        let mut state = State { nodes, clients: [client; C], left, granted: 0, broken: None };
        for action in &self.setting.story {
            let mut actions = Vec::new();
            self.actions(&state, &mut actions);
            assert!(actions.contains(action), "{action:?} cannot happen: {state:?}");
            state = self.step(&state, *action);
        }
        vec![state]
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<Self::Action>) {
        if state.broken.is_some() {
            return;
        }
        for (client, of) in state.clients.iter().enumerate() {
            if of.phase != Phase::Asking && of.attempt < self.setting.attempts[client] {
                actions.push(Action::Start { client, stray: None });
                let asking = (0..N).filter(|node| Self::may_stray(state, client, *node));
                actions.extend(asking.map(|node| Action::Start { client, stray: Some(node) }));
            }
            let holds = matches!(of.phase, Phase::Held(_));
            for (node, leg) in of.legs.iter().enumerate() {
                match leg.wire {
                    Wire::Asks(_) => actions.push(Action::Arrive { client, node }),
                    Wire::Answers(_) => actions.push(Action::Hear { client, node }),
                    Wire::Idle => {}
                }
                if of.phase == Phase::Asking && state.left.timeouts > 0 && leg.wire != Wire::Idle {
                    actions.push(Action::GiveUpOn { client, node });
                    if self.owed(of, client, node).is_some() {
                        actions.push(Action::Resend { client, node, stray: false });
                        if Self::may_stray(state, client, node) {
                            actions.push(Action::Resend { client, node, stray: true });
                        }
                    }
                }
                let at = &state.nodes[node];
                if leg.shown != leg.known && at.mark != Mark::Absent && leg.shown == at.stamp {
                    actions.push(Action::WaitOut { client, node });
                }
                if holds && state.left.repairs > 0 && leg.wire == Wire::Idle {
                    let ours = state.vouches(client, node);
                    if !ours && state.vouching(client) >= majority(N) {
                        actions.push(Action::Repair { client, node });
                    }
                }
                let deletes = self.setting.bug == Some(Bug::CounterDeleted) && holds;
                if deletes && at.lease.is_some_and(|lease| lease.by == of.by(client)) {
                    actions.push(Action::Release { client, node });
                }
            }
        }
        for (node, at) in state.nodes.iter().enumerate() {
            if at.lease.is_some_and(|lease| state.shows(node, lease)) {
                actions.push(Action::RunOut { node });
            }
            if at.stray.is_some() {
                actions.push(Action::ArriveLate { node });
            }
            if state.left.losses > 0 && at.mark != Mark::Absent {
                actions.push(Action::LoseData { node });
            }
        }
    }

    fn next_state(&self, before: &Self::State, action: Self::Action) -> Option<Self::State> {
        let mut state = self.step(before, action);
        self.settle(&mut state);
        // Where nothing is forgotten and no floor takes effect, only differences count.
        let floating = self.setting.floors.iter().all(|floor| *floor == 0)
            && self.setting.budget.losses == 0
            && self.setting.deadlines == Deadlines::Kept
            && self.setting.budget.repairs == 0
            && self.setting.bug.is_none();
        if floating && state.broken.is_none() {
            state = state.lowered();
        }
        let alike = self.setting.floors.iter().all(|floor| *floor == self.setting.floors[0]);
        Some(state.sorted(alike))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("tokens rise", |_, state: &State<N, C>| state.broken.is_none())]
    }
}
