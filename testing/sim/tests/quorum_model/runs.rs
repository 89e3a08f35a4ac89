//! Runs on a quorum: the real clients and the real nodes, in every order of what can happen to them.
//!
//! Time stands still, so completions never end and nothing is sent twice; records are lost at any instant instead. A request that
//! is never carried out, or an answer that never comes, is one that comes later than everything else.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use leasehold_core::config::{Quorum, RunOptions};
use leasehold_core::member::{LossId, Marker, Phase as Membership, QuorumId};
use leasehold_core::node::{NodeMemory, serve};
use leasehold_core::op::{Applied, Op, Outcome, Refusal};
use leasehold_core::store::{BootId, Record, StoreNow};
use leasehold_core::{
    Client, Config, Event, Failure, LockId, LockOptions, Monotonic, NodeConfig, Now, Output, Resource, Transmit, Wait,
};
use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::frozen::Frozen;

const QUORUM: QuorumId = QuorumId([1; 16]);
const MAX_TTL_MS: u64 = 60_000;
const NOW: Now = Now { monotonic: Monotonic::from_ns(1_000_000_000), unix_ms: 1_700_000_000_000 };
const STORE_NOW: StoreNow =
    StoreNow { boot: BootId([0; 16]), uptime: Monotonic::from_ns(0), unix_ms: 1_700_000_000_000 };

/// A mistake of the nodes, which the search has to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// A node that may have lost completions votes as if none stood.
    DoubtfulCounts,
    /// A node that lost its data votes at once.
    VotesAtOnce,
    /// A run is granted although a completion stands.
    GrantsWhatIsDone,
    /// A node confirms a completion that it did not write, having no record of the run.
    ConfirmsNothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Budget {
    /// Nodes that lose their data.
    losses: u8,
    /// Records that run out.
    ends: u8,
    /// Answers that come later.
    late: u8,
    acquires: [u8; 2],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Node {
    record: Option<Record>,
    marker: Option<Marker>,
    losses: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    Idle,
    /// With true if it asked after a finish was confirmed.
    Asking(bool),
    Held,
    Finishing,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Host {
    client: Frozen<Client>,
    locks: u8,
    stage: Stage,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Message {
    host: usize,
    request: Frozen<Transmit>,
    /// The answer, once it is on its way back.
    answer: Option<Frozen<Outcome>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Broken {
    /// A run was granted that asked after another one's finish was confirmed.
    DoneTwice,
    /// A node wrote a completion for an attempt whose record it did not have.
    MarkedByAnother,
    /// An event that does not fit what was told before.
    ToldTwice,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State<const N: usize> {
    nodes: [Node; N],
    hosts: [Host; 2],
    wire: Vec<Message>,
    left: Budget,
    finished: bool,
    broken: Option<Broken>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Acquire {
        host: usize,
    },
    Finish {
        host: usize,
    },
    Deliver {
        message: usize,
        late: bool,
    },
    End {
        node: usize,
    },
    LoseData {
        node: usize,
    },
    /// Somebody has waited the loss out.
    Rejoin {
        node: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    Granted,
    GrantedBesideDoubt,
    Finished,
    Unfinished,
    Lost,
    FoundDone,
    CompletionsInDoubt,
}

const ALL_REACHED: [Reached; 7] = [
    Reached::Granted,
    Reached::GrantedBesideDoubt,
    Reached::Finished,
    Reached::Unfinished,
    Reached::Lost,
    Reached::FoundDone,
    Reached::CompletionsInDoubt,
];

struct World<const N: usize> {
    budget: Budget,
    bug: Option<Bug>,
    reached: [AtomicU64; ALL_REACHED.len()],
}

fn config(nodes: usize) -> Config {
    let quorum = Quorum::new(QUORUM, Duration::from_millis(MAX_TTL_MS)).expect("within bounds");
    Config::new(vec![NodeConfig::default(); nodes]).expect("some nodes").with_quorum(quorum)
}

fn options() -> LockOptions {
    let run = RunOptions { keep: Duration::from_secs(3_600), ..RunOptions::default() };
    LockOptions::builder().run(run).wait(Wait::Once).build().expect("good options")
}

fn marker(phase: Membership, losses: u8) -> Marker {
    Marker { quorum: QUORUM, max_ttl_ms: MAX_TTL_MS, stamp: LossId([losses + 1; 16]), phase, run: None }
}

impl Node {
    fn perform(&mut self, op: &Op, bug: Option<Bug>) -> Outcome {
        let mut op = op.clone();
        if let (Some(Bug::GrantsWhatIsDone), Op::Acquire(acquire)) = (bug, &mut op) {
            acquire.unless_done = false;
        }
        let mut outcome = self.serve(&op);
        let abstains = matches!(outcome, Outcome::NotApplied(Refusal::Abstains { stamp: Some(_) }));
        if bug == Some(Bug::VotesAtOnce) && abstains {
            self.marker = Some(marker(Membership::Member, self.losses));
            outcome = self.serve(&op);
        }
        match (bug, &op, outcome) {
            (Some(Bug::DoubtfulCounts), _, Outcome::Applied(Applied::AcquiredInDoubt { counter, .. })) => {
                Outcome::Applied(Applied::Acquired { counter })
            }
            (Some(Bug::ConfirmsNothing), Op::Finish(_), Outcome::NotApplied(_)) => Outcome::Applied(Applied::Finished),
            (_, _, outcome) => outcome,
        }
    }

    fn serve(&mut self, op: &Op) -> Outcome {
        let memory = NodeMemory { marker: self.marker.as_ref(), trusted: None, run: None };
        let served = serve(self.record.as_ref(), memory, op, &STORE_NOW);
        if let Some(record) = served.record {
            self.record = Some(record);
        }
        if let Some(marker) = served.marker {
            self.marker = Some(marker);
        }
        served.outcome
    }

    fn has_lease(&self) -> bool {
        self.record.as_ref().and_then(|record| record.lease.as_ref()).is_some_and(|lease| !lease.released)
    }

    /// The completion, and whether the attempt of an operation holds the lock.
    fn mark_and_holder(&self, op: &Op) -> (Option<leasehold_core::Nonce>, bool) {
        let record = self.record.as_ref();
        let lease = record.and_then(|record| record.lease.as_ref()).filter(|lease| !lease.released);
        let completion = record.and_then(|record| record.completion.as_ref()).map(|completion| completion.nonce);
        (completion, lease.is_some_and(|lease| Some(lease.nonce) == op.nonce()))
    }

    fn is_rejoined(&self) -> bool {
        self.marker.as_ref().is_some_and(|marker| matches!(marker.phase, Membership::Rejoined { .. }))
    }
}

impl<const N: usize> World<N> {
    fn reach(&self, what: Reached) {
        self.reached[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn run(&self, state: &mut State<N>, host: usize, input: impl FnOnce(&mut Client)) {
        let mut client = (*state.hosts[host].client).clone();
        input(&mut client);
        loop {
            match client.poll_output(NOW) {
                Output::Transmit(transmit) => {
                    state.wire.push(Message { host, request: Frozen::new(transmit), answer: None });
                }
                Output::Event(event) => self.told(state, host, &event),
                Output::WakeAt(_) => break,
                Output::Subscribe { .. }
                | Output::Unsubscribe { .. }
                | Output::NeedCredentials { .. }
                | Output::Rejected { .. } => unreachable!("nobody asks for that"),
            }
        }
        state.hosts[host].client = Frozen::new(client);
    }

    fn told(&self, state: &mut State<N>, at: usize, event: &Event) {
        let host = &mut state.hosts[at];
        let (next, reached) = match (event, host.stage) {
            (Event::Acquired { .. }, Stage::Asking(after)) => {
                if after {
                    state.broken = Some(Broken::DoneTwice);
                }
                if state.nodes.iter().any(Node::is_rejoined) {
                    self.reach(Reached::GrantedBesideDoubt);
                }
                (Stage::Held, Some(Reached::Granted))
            }
            (Event::Failed { failure, .. }, Stage::Asking(_)) => {
                let reached = match failure {
                    Failure::Done(_) => Some(Reached::FoundDone),
                    Failure::CompletionsInDoubt => Some(Reached::CompletionsInDoubt),
                    _ => None,
                };
                (Stage::Idle, reached)
            }
            (Event::Finished { confirmed, .. }, Stage::Finishing) => {
                state.finished |= *confirmed;
                let reached = if *confirmed { Reached::Finished } else { Reached::Unfinished };
                (Stage::Idle, Some(reached))
            }
            (Event::Lost { .. }, Stage::Finishing | Stage::Held) => (Stage::Idle, Some(Reached::Lost)),
            (Event::Contended { .. } | Event::Shortened { .. }, stage) => (stage, None),
            (_, stage) => {
                state.broken = Some(Broken::ToldTwice);
                (stage, None)
            }
        };
        host.stage = next;
        if let Some(reached) = reached {
            self.reach(reached);
        }
    }

    fn perform(&self, state: &mut State<N>, action: Action) {
        match action {
            Action::Acquire { host } => {
                state.left.acquires[host] -= 1;
                let finished = state.finished;
                let of = &mut state.hosts[host];
                of.locks += 1;
                of.stage = Stage::Asking(finished);
                let lock = LockId::new(of.locks.into());
                let mut fresh = [0; 16];
                (fresh[0], fresh[1]) = (host as u8 + 1, of.locks);
                let resource = Resource::new("r").expect("a name");
                self.run(state, host, |client| {
                    client.acquire(lock, resource, options(), &fresh, NOW).expect("a new lock");
                    client.handle_timeout(&fresh, NOW);
                });
            }
            Action::Finish { host } => {
                state.hosts[host].stage = Stage::Finishing;
                let lock = LockId::new(state.hosts[host].locks.into());
                self.run(state, host, |client| {
                    client.finish(lock, None, NOW).expect("it is held");
                    client.handle_timeout(&[0xff; 16], NOW);
                });
            }
            Action::Deliver { message, late } => {
                let mut message = state.wire.remove(message);
                let outcome = match &message.answer {
                    Some(answer) => (**answer).clone(),
                    None => {
                        let [asked] = &message.request.ops[..] else { unreachable!("nothing is renewed") };
                        let node = &mut state.nodes[message.request.node.index()];
                        let (before, holds) = node.mark_and_holder(&asked.op);
                        let outcome = node.perform(&asked.op, self.bug);
                        if node.mark_and_holder(&asked.op).0 != before && !holds {
                            state.broken = Some(Broken::MarkedByAnother);
                        }
                        outcome
                    }
                };
                if late {
                    state.left.late -= 1;
                    message.answer = Some(Frozen::new(outcome));
                    state.wire.push(message);
                } else {
                    let id = message.request.id;
                    self.run(state, message.host, |client| client.handle_response(id, Ok(vec![outcome]), NOW));
                }
            }
            Action::End { node } => {
                state.left.ends -= 1;
                if let Some(record) = &mut state.nodes[node].record {
                    record.lease = None;
                }
            }
            Action::LoseData { node } => {
                state.left.losses -= 1;
                let node = &mut state.nodes[node];
                (node.record, node.marker, node.losses) = (None, None, node.losses + 1);
            }
            Action::Rejoin { node } => {
                let node = &mut state.nodes[node];
                let phase = Membership::Rejoined { trusted_from_unix_ms: u64::MAX };
                node.marker = Some(marker(phase, node.losses));
            }
        }
        state.wire.sort_by_key(|message| (message.host, message.request.digest(), message.answer.is_some()));
    }
}

impl<const N: usize> Model for World<N> {
    type State = State<N>;
    type Action = Action;

    fn init_states(&self) -> Vec<Self::State> {
        let node = Node { record: None, marker: Some(marker(Membership::Member, 0)), losses: 0 };
        let host = |at: usize| Host {
            client: Frozen::new(Client::new(config(N), [at as u8 + 1; 32], NOW)),
            locks: 0,
            stage: Stage::Idle,
        };
        vec![State {
            nodes: std::array::from_fn(|_| node.clone()),
            hosts: [host(0), host(1)],
            wire: Vec::new(),
            left: self.budget,
            finished: false,
            broken: None,
        }]
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<Self::Action>) {
        if state.broken.is_some() {
            return;
        }
        for (message, of) in state.wire.iter().enumerate() {
            actions.push(Action::Deliver { message, late: false });
            if of.answer.is_none() && state.left.late > 0 {
                actions.push(Action::Deliver { message, late: true });
            }
        }
        for (host, of) in state.hosts.iter().enumerate() {
            match of.stage {
                // B comes after A has begun, since they are alike.
                Stage::Idle if state.left.acquires[host] > 0 && (host == 0 || state.hosts[0].locks > 0) => {
                    actions.push(Action::Acquire { host });
                }
                Stage::Held => actions.push(Action::Finish { host }),
                Stage::Idle | Stage::Asking(_) | Stage::Finishing => {}
            }
        }
        for (node, of) in state.nodes.iter().enumerate() {
            if state.left.ends > 0 && of.has_lease() {
                actions.push(Action::End { node });
            }
            if state.left.losses > 0 && of.record.is_some() {
                actions.push(Action::LoseData { node });
            }
            if of.losses > 0 && !of.is_rejoined() && of.marker.as_ref().is_none_or(|of| of.phase != Membership::Member)
            {
                actions.push(Action::Rejoin { node });
            }
        }
    }

    fn next_state(&self, last: &Self::State, action: Self::Action) -> Option<Self::State> {
        let mut next = last.clone();
        self.perform(&mut next, action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("work is done once", |_, state: &State<N>| state.broken.is_none())]
    }
}

struct Found {
    broken: Option<Broken>,
    unique: usize,
    counts: [u64; ALL_REACHED.len()],
}

fn search<const N: usize>(name: &str, budget: Budget, bug: Option<Bug>, limit: usize) -> Found {
    let began = Instant::now();
    let world = World::<N> { budget, bug, reached: [const { AtomicU64::new(0) }; _] };
    let checker = world.checker().finish_when(HasDiscoveries::AnyFailures).target_state_count(limit).spawn_bfs().join();
    let counts = std::array::from_fn(|at| checker.model().reached[at].load(Ordering::Relaxed));
    let (states, unique) = (checker.state_count(), checker.unique_state_count());
    let all = if states < limit { "all" } else { "bounded" };
    println!("{name}: {all}, {states} states, {unique} unique, {:.1?}", began.elapsed());
    let reached: Vec<_> = ALL_REACHED.iter().zip(counts).map(|(what, count)| format!("{what:?} {count}")).collect();
    println!("  {}", reached.join(", "));
    let broken = checker.discoveries().into_values().next().map(|path| {
        let steps = path.into_vec();
        for (_, action) in &steps {
            println!("  {action:?}");
        }
        steps.last().and_then(|(state, _)| state.broken).expect("the path ends where it broke")
    });
    Found { broken, unique, counts }
}

fn sound<const N: usize>(name: &str, budget: Budget, limit: usize, sees: &[Reached]) {
    let found = search::<N>(name, budget, None, limit);
    assert_eq!(found.broken, None, "{name}: see above");
    assert!(found.unique > 2_000, "{name}: a search of so few states has lost its way");
    for what in sees {
        assert!(found.counts[*what as usize] > 0, "{name}: never saw {what:?}");
    }
}

fn finds<const N: usize>(broken: Broken, bug: Bug, budget: Budget) {
    let found = search::<N>(&format!("{bug:?}"), budget, Some(bug), usize::MAX);
    assert_eq!(found.broken, Some(broken), "{bug:?}");
}

const CALM: Budget = Budget { losses: 0, ends: 0, late: 0, acquires: [1, 1] };
const MOST: usize = 400_000;

#[test]
fn finished_work_is_done_once_by_a_majority() {
    let sees = [Reached::Granted, Reached::Finished, Reached::FoundDone];
    sound::<3>("two runs", CALM, MOST, &sees);
    sound::<3>("two runs, a record ends", Budget { ends: 1, ..CALM }, MOST, &sees);
}

#[test]
fn finished_work_is_done_once_though_nodes_forget() {
    let sees = [Reached::Finished, Reached::FoundDone, Reached::GrantedBesideDoubt];
    sound::<3>("a loss", Budget { losses: 1, ..CALM }, MOST, &sees);
    sound::<3>("two losses", Budget { losses: 2, ..CALM }, MOST, &sees[..2]);
}

#[test]
fn finished_work_is_done_once_by_five_nodes() {
    sound::<5>("five nodes, two losses", Budget { losses: 2, ..CALM }, MOST, &[Reached::Granted]);
}

#[test]
#[ignore = "minutes: cargo xtask prove"]
fn finished_work_is_done_once_for_long() {
    let sees = [Reached::Finished, Reached::FoundDone, Reached::GrantedBesideDoubt, Reached::CompletionsInDoubt];
    let more = Budget { losses: 2, ends: 1, late: 1, acquires: [2, 1] };
    sound::<3>("all at once", more, 8_000_000, &sees);
    sound::<5>("five nodes", Budget { losses: 2, ..CALM }, 8_000_000, &[Reached::Granted, Reached::Finished]);
}

#[test]
fn search_finds_doubtful_votes_for_a_run() {
    finds::<3>(Broken::DoneTwice, Bug::DoubtfulCounts, Budget { losses: 1, ..CALM });
}

#[test]
fn search_finds_votes_for_a_run_without_abstention() {
    finds::<3>(Broken::DoneTwice, Bug::VotesAtOnce, Budget { losses: 1, ..CALM });
}

#[test]
fn search_finds_marks_that_are_not_read() {
    finds::<3>(Broken::DoneTwice, Bug::GrantsWhatIsDone, CALM);
}

#[test]
fn search_finds_marks_confirmed_without_a_record() {
    finds::<3>(Broken::DoneTwice, Bug::ConfirmsNothing, Budget { losses: 1, ends: 1, ..CALM });
}
