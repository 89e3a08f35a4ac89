//! The state machine of one lock: a struct for every state, and transitions that consume the state they leave.
//!
//! Every transition is a row of this table, and names it ([`Row`]). A test fails on a row that no script takes, and on one
//! that stands here but not in the code.
//!
//! A request in flight is data, not a state: a lease is `Held` while it is renewed.
//!
//! | state | input | next state | outputs | row |
//! |---|---|---|---|---|
//! | Idle | its turn in the local queue, fresh entropy | Acquiring | Acquire to every node | `IdleStarted` |
//! | Idle | wait over | Ended | Failed | `IdleWaitOver` |
//! | Idle | release | Ended | Failed: cancelled | `IdleCancelled` |
//! | Acquiring | grant, majority exact | Held | Acquired | `AcquiringGranted` |
//! | Acquiring | conflict that shows our own record | Held | Acquired, recovered | `AcquiringRecovered` |
//! | Acquiring | an answer that leaves the count open | Acquiring | Raise where a counter is lower | `AcquiringCounted` |
//! | Acquiring | unknown, sends left | Acquiring | | `AcquiringUnknown` |
//! | Acquiring | time to send again | Acquiring | Acquire or Raise again, next seq | `AcquiringResent` |
//! | Acquiring | count lost, wait left | Waiting | Contended, background release | `AcquiringBlocked` |
//! | Acquiring | count lost, no wait left | Ended | Failed, background release | `AcquiringFailed` |
//! | Acquiring | denied for good | Ended | Failed: refused, background release | `AcquiringDenied` |
//! | Acquiring | a completion stands | Ended | Failed: done, background release | `AcquiringDone` |
//! | Acquiring | a completion stands at too few nodes, others have not answered | Acquiring | | `AcquiringDoneOnOne` |
//! | Acquiring | release | Ended | Failed: cancelled, background release | `AcquiringCancelled` |
//! | Waiting | time to try, fresh entropy | Acquiring | Acquire to every node | `WaitingStarted` |
//! | Waiting | time to look | Waiting | Read | `WaitingLooked` |
//! | Waiting | the answer to a look | Waiting | | `WaitingSaw` |
//! | Waiting | a look was denied for good | Ended | Failed: refused | `WaitingDenied` |
//! | Waiting | a look shows a completion that stands | Ended | Failed: done | `WaitingDone` |
//! | Waiting | wake-up or fresh credentials that may help | Waiting | | `WaitingWoken` |
//! | Waiting | wait over | Ended | Failed | `WaitingOver` |
//! | Waiting | a look shows that the holder lives, and the wait is over | Ended | Failed: busy | `WaitingLives` |
//! | Waiting | release | Ended | Failed: cancelled | `WaitingCancelled` |
//! | Held | renewal due | Held | Renew, and Acquire to a node without our record | `HeldRenewed` |
//! | Held | time to ask a node without our record, or in doubt | Held | Acquire or Raise to it | `HeldRepaired` |
//! | Held | renewal due, `max_hold` over | Held | | `HeldCapped` |
//! | Held | renewal due at a node with an open circuit breaker | Held | | `HeldPostponed` |
//! | Held | renewal confirmed | Held | Renewed | `HeldConfirmed` |
//! | Held | conflict that shows our own record | Held | Renewed, recovered | `HeldRecovered` |
//! | Held | renewal unknown, throttled, not applied | Held | RenewDelayed | `HeldDelayed` |
//! | Held | the record is not ours, or revoked, majority left | Held | Shortened if the deadline moves | `HeldShrunk` |
//! | Held | the record is not ours, no majority left | Ended | Lost | `HeldTaken` |
//! | Held | the record is revoked, no majority left | Revoked | Lost: revoked | `HeldRevoked` |
//! | Held | answer of a node outside the majority | Held | Renewed if the deadline moves | `HeldJoined` |
//! | Held | validity below the danger zone | Held | Expiring | `HeldExpiring` |
//! | Held | deadline, or reported as lost by the embedder | Ended | Lost | `HeldLost` |
//! | Held | release | Releasing | | `HeldReleased` |
//! | Held | finish | Releasing | | `HeldFinished` |
//! | Revoked | release | Ended | background release | `RevokedReleased` |
//! | Revoked | the record has run out by itself | Ended | | `RevokedRanOut` |
//! | Releasing | definite answers leave a majority free, and it was ours until then | Ended | Released, confirmed, background release | `ReleasingConfirmed` |
//! | Releasing | definite answers leave a majority free, some of them to sends that were repeated | Ended | Released, unconfirmed, background release | `ReleasingUnconfirmed` |
//! | Releasing | finish: a majority has the completion | Ended | Finished, confirmed, background release | `ReleasingFinished` |
//! | Releasing | finish: too few nodes are left for a majority, some have the completion or may have had it | Ended | Finished, unconfirmed, background release | `ReleasingUnfinished` |
//! | Releasing | the record was not ours any more | Ended | Lost, background release | `ReleasingTaken` |
//! | Releasing | an answer that leaves something open | Releasing | | `ReleasingOpen` |
//! | Releasing | an acquire that was given up has landed | Releasing | | `ReleasingLanded` |
//! | Releasing | time to send, at first at once | Releasing | Release, or Finish | `ReleasingSent` |
//! | Releasing | the record has run out by itself | Ended | Released, unconfirmed; of a finish: Finished, unconfirmed | `ReleasingRanOut` |

mod acquiring;
mod acquisition;
mod attempt;
mod breaker;
mod held;
mod node_state;
mod releasing;
mod sends;
#[cfg(test)]
mod tests;
mod waiting;
mod watched;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

pub(crate) use acquiring::Acquiring;
pub(crate) use acquisition::{Acquisition, BlockReason, Idle, NodeHealth};
pub(crate) use held::Held;
pub(crate) use node_state::NodeState;
pub(crate) use releasing::Releasing;
pub(crate) use sends::Sends;
pub(crate) use waiting::Waiting;

use crate::about::RunResult;
use crate::config::{Config, LockOptions};
use crate::event::Event;
use crate::ids::{LockId, NodeId, Nonce, Resource, Seq, Token};
use crate::lease::node_state::KnownLoss;
use crate::member::{Durability, LossId, Membership, RETENTION};
use crate::observe::Observations;
use crate::op::{Acquire, Fault, FaultKind, Holding, Op, Outcome, Seen};
use crate::prf::{Domain, Entropy, Seed, fraction, loss_id};
use crate::queue::Reserved;
use crate::time::{Monotonic, Now, request_timeout};

/// Declares the rows, and their names for [`trace`](crate::trace).
macro_rules! rows {
    ($(#[$about:meta])* $vis:vis enum $rows:ident { $($name:ident,)* }) => {
        $(#[$about])*
        $vis enum $rows { $($name,)* }

        #[cfg(feature = "trace")]
        impl $rows {
            /// The names of the rows, in the order of the table.
            $vis const NAMES: &'static [&'static str] = &[$(stringify!($name),)*];
        }
    };
}

rows! {
    /// A row of the table above.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub(crate) enum Row {
        IdleStarted,
        IdleWaitOver,
        IdleCancelled,
        AcquiringGranted,
        AcquiringRecovered,
        AcquiringCounted,
        AcquiringUnknown,
        AcquiringResent,
        AcquiringBlocked,
        AcquiringFailed,
        AcquiringDenied,
        AcquiringDone,
        AcquiringDoneOnOne,
        AcquiringCancelled,
        WaitingStarted,
        WaitingLooked,
        WaitingSaw,
        WaitingDenied,
        WaitingDone,
        WaitingWoken,
        WaitingOver,
        WaitingLives,
        WaitingCancelled,
        HeldRenewed,
        HeldRepaired,
        HeldCapped,
        HeldPostponed,
        HeldConfirmed,
        HeldRecovered,
        HeldDelayed,
        HeldShrunk,
        HeldTaken,
        HeldRevoked,
        HeldJoined,
        HeldExpiring,
        HeldLost,
        HeldReleased,
        HeldFinished,
        RevokedReleased,
        RevokedRanOut,
        ReleasingConfirmed,
        ReleasingUnconfirmed,
        ReleasingFinished,
        ReleasingUnfinished,
        ReleasingTaken,
        ReleasingOpen,
        ReleasingLanded,
        ReleasingSent,
        ReleasingRanOut,
    }
}

/// The state of one lock. Those behind the first are in boxes: every input moves the machine, and boxes are small.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Machine {
    Idle(Idle),
    Acquiring(Box<Acquiring>),
    Waiting(Box<Waiting>),
    Held(Box<Held>),
    /// A lease that its holder no longer has, while its work may still run: the release that follows.
    Revoked(Box<Releasing>),
    Releasing(Box<Releasing>),
    Ended,
}

/// An input of a lock.
#[derive(Clone, Debug)]
pub(crate) enum Input<'a> {
    /// An ordinary timer is due.
    Timeout,
    /// A new attempt may start: `fresh` makes its nonce, and its grant must not have a smaller token than `floor`.
    Start { fresh: &'a Entropy, floor: Token },
    /// The lock is first in the local queue.
    Turn,
    /// A renewal of another lock leaves now, and those that are due by then may travel with it.
    RenewAlong(Monotonic),
    /// The answer to one send. A lease that it confirms counts from `since`, if that is earlier than the send.
    Outcome { node: NodeId, seq: Seq, outcome: Outcome, since: Option<Monotonic> },
    /// The answer to one send of a lock that has ended, for the releases that the lock has left behind.
    Late { node: NodeId, seq: Seq, outcome: Outcome },
    /// The lock may have been released.
    Wake {
        /// How long the lock stays free for others before.
        after: Duration,
    },
    /// A node has been given fresh credentials.
    FreshCredentials(NodeId),
    /// The caller releases the lock, or cancels its acquisition.
    Release,
    /// The caller has done the work of the run; it may leave a result.
    Finish(Option<RunResult>),
    /// The embedder has reported the lease as lost.
    DeclareLost,
}

/// The context of a transition: all that it may read and change beside its own state.
pub(crate) struct Ctx<'a> {
    pub(crate) now: Now,
    pub(crate) config: &'a Config,
    pub(crate) seed: &'a Seed,
    pub(crate) nodes: &'a mut [NodeState],
    pub(crate) lock: LockId,
    pub(crate) resource: &'a Resource,
    pub(crate) options: &'a LockOptions,
    pub(crate) observations: &'a mut Observations,
    pub(crate) out: &'a mut Effects,
}

/// The effects of a transition.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Effects {
    pub(crate) sends: Vec<Send>,
    pub(crate) events: Vec<Event>,
    /// A release that outlives the machine of the lock.
    pub(crate) orphan: Option<Box<Releasing>>,
    /// The highest counter of a record in the way.
    pub(crate) counter_seen: Option<Token>,
}

/// One operation for one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Send {
    pub(crate) node: NodeId,
    pub(crate) seq: Seq,
    pub(crate) op: Op,
    pub(crate) deadline: Monotonic,
}

/// The next state, and the row that led there; no row if the input meant nothing.
pub(crate) type Step = (Machine, Option<Row>);

impl Machine {
    /// Handles one input. The caller has handled all timers that are due.
    pub(crate) fn handle(self, input: Input<'_>, ctx: &mut Ctx<'_>) -> Step {
        match self {
            Self::Idle(state) => state.handle(input, ctx),
            Self::Acquiring(state) => state.handle(input, ctx),
            Self::Waiting(state) => state.handle(input, ctx),
            Self::Held(state) => state.handle(input, ctx),
            Self::Revoked(state) => state.handle_before_it_begins(input, ctx),
            Self::Releasing(state) => state.handle(input, ctx),
            Self::Ended => (Self::Ended, None),
        }
    }

    /// The attempt under way was refused, and has a place in the queue.
    pub(crate) fn note_place(&mut self, reserved: Option<Reserved>) {
        if let Self::Acquiring(state) = self {
            state.note_place(reserved);
        }
    }

    /// When [`Input::Timeout`] is due.
    pub(crate) fn wake_at(&self) -> Option<Monotonic> {
        match self {
            Self::Idle(state) => state.acquisition.wait_over_at(),
            Self::Acquiring(state) => state.wake_at(),
            Self::Waiting(state) => state.wake_at(),
            Self::Held(state) => Some(state.wake_at()),
            Self::Revoked(state) => Some(state.until()),
            Self::Releasing(state) => Some(state.wake_at()),
            Self::Ended => None,
        }
    }

    /// When [`Input::Start`] is due: apart from timers, since it needs fresh entropy.
    pub(crate) fn start_at(&self) -> Option<Monotonic> {
        match self {
            Self::Idle(state) => state.start_at(),
            Self::Waiting(state) => state.start_at(),
            Self::Acquiring(_) | Self::Held(_) | Self::Revoked(_) | Self::Releasing(_) | Self::Ended => None,
        }
    }

    pub(crate) fn held(&self) -> Option<&Held> {
        match self {
            Self::Held(state) => Some(state),
            Self::Idle(_)
            | Self::Acquiring(_)
            | Self::Waiting(_)
            | Self::Revoked(_)
            | Self::Releasing(_)
            | Self::Ended => None,
        }
    }

    /// The deadline of a lease that is held.
    pub(crate) fn deadline(&self) -> Option<Monotonic> {
        self.held().map(Held::deadline)
    }

    /// The token of a lease that is held.
    pub(crate) fn token(&self) -> Option<Token> {
        self.held().map(Held::token)
    }

    /// The attempt of a lease that is held.
    pub(crate) fn nonce(&self) -> Option<Nonce> {
        self.held().map(Held::nonce)
    }

    /// The holder in the way, by the last answers.
    pub(crate) fn holder(&self) -> Option<&Holding> {
        match self {
            Self::Idle(state) => state.acquisition.holding(),
            Self::Acquiring(state) => state.acquisition().holding(),
            Self::Waiting(state) => state.acquisition().holding(),
            Self::Held(_) | Self::Revoked(_) | Self::Releasing(_) | Self::Ended => None,
        }
    }

    /// Tells if it has not begun.
    pub(crate) const fn is_idle(&self) -> bool {
        matches!(self, Self::Idle(_))
    }

    /// Returns true while it has neither the lock nor an answer.
    pub(crate) const fn is_pending(&self) -> bool {
        matches!(self, Self::Idle(_) | Self::Acquiring(_) | Self::Waiting(_))
    }

    /// Tells if it wants the lock no more.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self, Self::Releasing(_) | Self::Ended)
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Idle(_) => "Idle",
            Self::Acquiring(_) => "Acquiring",
            Self::Waiting(_) => "Waiting",
            Self::Held(_) => "Held",
            Self::Revoked(_) => "Revoked",
            Self::Releasing(_) => "Releasing",
            Self::Ended => "Ended",
        }
    }
}

impl Ctx<'_> {
    pub(crate) fn send(&mut self, node: NodeId, seq: Seq, op: Op) {
        let deadline = self.now.monotonic.plus(self.request_timeout());
        self.out.sends.push(Send { node, seq, op, deadline });
    }

    /// An acquire of this lock at a node.
    pub(crate) fn acquire(&self, node: NodeId, nonce: Nonce, seq: Seq, floor: Token, known_loss: KnownLoss) -> Acquire {
        Acquire {
            floor,
            expect: self.observations.ran_out(node, self.resource, self.now.monotonic),
            owner: self.options.owner.clone(),
            data: self.options.data.clone(),
            session: self.config.session_of(self.seed),
            member: self.membership(node, &nonce, seq, known_loss),
            unless_done: self.options.is_unless_done(),
            ..Acquire::new(nonce, seq, self.options.record_ttl())
        }
    }

    /// The membership that an acquire carries to a node of a quorum; `None` for a single store.
    fn membership(&self, node: NodeId, nonce: &Nonce, seq: Seq, known_loss: KnownLoss) -> Option<Membership> {
        let quorum = self.config.quorum()?;
        Some(Membership {
            quorum: quorum.id(),
            max_ttl_ms: u64::try_from(quorum.max_ttl().as_millis()).unwrap_or(u64::MAX),
            durability: self.durability(node),
            fresh: loss_id(self.seed, nonce, node, seq),
            waited_out: known_loss.loss,
            bootstrap: known_loss.bootstrap,
            retention: RETENTION,
        })
    }

    pub(crate) fn durability(&self, node: NodeId) -> Durability {
        self.config.nodes().get(node.index()).map_or(Durability::NotDeclared, |node| node.durability)
    }

    /// Notes that a node abstains. Returns for how long it still does.
    pub(crate) fn note_abstention(&mut self, node: NodeId, loss: Option<LossId>) -> Duration {
        let Some(state) = self.nodes.get_mut(node.index()) else { return Duration::ZERO };
        if let Some(loss) = loss {
            state.memory.note_abstention(loss, self.now.monotonic);
        }
        let until = state.memory.abstains_until(self.config);
        until.map_or(Duration::ZERO, |until| until.since(self.now.monotonic))
    }

    /// Notes that a node votes.
    pub(crate) fn note_vote(&mut self, node: NodeId, doubt: Option<LossId>) {
        if let Some(state) = self.nodes.get_mut(node.index()) {
            state.memory.note_vote(doubt);
        }
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        request_timeout(self.options.ttl, self.config.request_timeout())
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.out.events.push(event);
    }

    /// Notes the token of another holder: our next one must be above it, even if the store forgets it.
    pub(crate) fn counter_seen(&mut self, seen: &Seen) {
        self.out.counter_seen = self.out.counter_seen.max(seen.holding.as_ref().and_then(|holding| holding.counter));
    }

    /// Notes what a node shows of the resource. Returns when the record in the way may be taken over, where only observers
    /// can declare it dead.
    pub(crate) fn observe(&mut self, node: NodeId, seen: &Seen) -> Option<Monotonic> {
        self.counter_seen(seen);
        let Some(holding) = seen.held() else {
            self.observations.forget(node, self.resource);
            return None;
        };
        self.observations.note(node, self.resource, holding, self.now.monotonic, self.config.drift())
    }

    pub(crate) fn jitter(&self, domain: Domain, attempt: u32, n: u32) -> u32 {
        fraction(self.seed, domain, self.lock, attempt, n)
    }

    pub(crate) fn after(&self, duration: Duration) -> Monotonic {
        self.now.monotonic.plus(duration)
    }
}

/// The instant from which a confirmed send counts.
pub(crate) fn counted(sent: Monotonic, since: Option<Monotonic>) -> Monotonic {
    since.map_or(sent, |since| since.min(sent))
}

/// The fault of an answer to an operation that was not asked for.
pub(crate) fn misfit() -> Fault {
    Fault::new(FaultKind::Protocol, "the answer fits another operation")
}

/// The fault of a record that names a send which this attempt never made, or has forgotten.
pub(crate) fn unknown_send() -> Fault {
    Fault::new(FaultKind::Protocol, "our record shows a send we never made")
}

/// Node ids of the configuration, in order.
pub(crate) fn node_ids(nodes: usize) -> impl Iterator<Item = NodeId> {
    (0..u16::try_from(nodes).unwrap_or(u16::MAX)).map(NodeId::new)
}
