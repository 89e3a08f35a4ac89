//! Runs: leases whose success is written down as a completion.

use std::time::Duration;

use leasehold_core::config::{LockOptionsBuilder, Poll, Quorum, RunOptions, Wait};
use leasehold_core::member::QuorumId;
use leasehold_core::op::{DenialKind, FaultKind};
use leasehold_core::{Config, NodeConfig};

use crate::format::Vector;
use crate::vectors::scenario::Answer::*;
use crate::vectors::scenario::{Scenario, completion, foreign_holding};

const KEEP: Duration = Duration::from_secs(3_600);

fn run(o: LockOptionsBuilder) -> LockOptionsBuilder {
    o.run(RunOptions { keep: KEEP, ..RunOptions::default() }).owner("pod-7")
}

fn once(o: LockOptionsBuilder) -> LockOptionsBuilder {
    run(o).wait(Wait::Once)
}

fn short(o: LockOptionsBuilder) -> LockOptionsBuilder {
    run(o).ttl(Duration::from_secs(3))
}

fn three(name: &str, why: &str) -> Scenario {
    let config = Config::new(vec![NodeConfig::default(); 3]).expect("a scenario's nodes");
    let quorum = Quorum::new(QuorumId([0x51; 16]), Duration::from_secs(60)).expect("a scenario's quorum");
    Scenario::with(name, why, config.with_quorum(quorum))
}

pub(super) fn run_finished() -> Vector {
    let mut s = Scenario::new(
        "run_finished",
        "A run asks for a lease unless a completion says that the work is done. Its finish writes the completion and frees the record at \
         once. A run that is released leaves none; a lease that is no run cannot be finished.",
    );
    s.acquire(1, "job@monday", run).say(0, Granted(7)).wake_until_sent().say(0, Renewed);
    s.finish(1).say(0, Finished);
    s.acquire(2, "job@tuesday", run).say(0, Granted(8)).release(2).say(0, Released);
    s.hold(3, "lock", 9).finish(3).finish(99);
    s.acquire(4, "job@friday", run).finish(4).say(0, Granted(9)).finish(4).finish(4).release(4).say(0, Finished);
    s.about(&["AcquiringGranted", "HeldFinished", "ReleasingSent", "ReleasingFinished"])
}

pub(super) fn run_done() -> Vector {
    let mut s = Scenario::of(
        "run_done",
        "A completion ends the acquisition of a run, whether it is found by an attempt or by a look, and whatever the caller \
         would wait. Who waits for the runner is told as soon as it has finished.",
        vec![NodeConfig { poll: Poll::Read, ..NodeConfig::default() }],
    );
    s.acquire(1, "job@monday", once).say(0, Done);
    s.acquire(2, "job@monday", run).say(0, Held(foreign_holding())).notified("job@monday").say(0, Done);
    s.acquire(3, "job@tuesday", run).say(0, Held(foreign_holding())).wake_until_sent().say(0, SeesDone(completion()));
    s.acquire(4, "job@friday", once).say(0, Unknown(FaultKind::Reset)).wake_until_sent().say(0, Done);
    s.say(0, Gone);
    s.about(&["AcquiringDone", "WaitingDone"])
}

pub(super) fn run_joined() -> Vector {
    let mut s = Scenario::new(
        "run_joined",
        "Those who ask once about one run, in one client, share an answer, as long as it is no older than their questions: that of \
         the attempt that they found under way, or that of the next one. If it is a grant, the others get that run as the reason.",
    );
    s.acquire(1, "job@monday", once).acquire(2, "job@monday", once).acquire(3, "job@monday", once);
    s.clock(10).say(0, Granted(7)).acquire(4, "job@monday", once);
    s.finish(1).acquire(5, "job@monday", once).acquire(6, "job@monday", once);
    s.clock(20).say(0, Finished).acquire(7, "job@monday", once).say(0, Done).say(0, Done);
    s.acquire(8, "job@tuesday", once).acquire(9, "job@tuesday", once).release(8).say(0, Held(foreign_holding()));
    s.acquire(10, "lock", |o| o.wait(Wait::Once)).acquire(11, "lock", |o| o.wait(Wait::Once)).say(0, Granted(8));
    s.about(&["AcquiringGranted", "AcquiringDone", "AcquiringFailed"])
}

pub(super) fn run_finish_unanswered() -> Vector {
    let mut s = Scenario::new(
        "run_finish_unanswered",
        "A finish is sent again until the store has answered for certain. One that meets its own completion has succeeded \
         before. Once the record has run out by itself the finish ends unconfirmed: the completion may stand, or not.",
    );
    s.acquire(1, "job@monday", run).say(0, Granted(7)).finish(1).say(0, Unknown(FaultKind::Reset));
    s.wake_until_sent().say(0, Finished);
    s.acquire(2, "job@tuesday", short).say(0, Granted(8)).finish(2).say(0, Denied(DenialKind::StorageFull));
    for answer in [Throttled, Unavailable, NeedsCredentials, Abstains, Released, Done] {
        s.wake_until_sent().say(0, answer);
    }
    while s.state(2).is_some() {
        s.wake();
    }
    s.about(&["HeldFinished", "ReleasingSent", "ReleasingOpen", "ReleasingFinished", "ReleasingRanOut"])
}

pub(super) fn run_lost() -> Vector {
    let mut s = Scenario::new(
        "run_lost",
        "A finish that finds that the record is not ours any more is a loss. One that was repeated ends unconfirmed: the first \
         may have written a completion that is gone again. A run whose deadline has passed cannot be finished.",
    );
    s.acquire(1, "job@monday", run).say(0, Granted(7)).finish(1).say(0, Gone);
    s.acquire(2, "job@monday", run).say(0, Granted(8)).finish(2).say(0, Held(foreign_holding()));
    s.acquire(3, "job@monday", run).say(0, Granted(9)).finish(3).say(0, Unknown(FaultKind::Reset));
    s.wake_until_sent().say(0, Held(foreign_holding()));
    s.acquire(4, "job@monday", |o| short(o).no_renewal()).say(0, Granted(10));
    while s.state(4).is_some() {
        s.wake();
    }
    s.finish(4);
    s.about(&["HeldFinished", "ReleasingTaken", "ReleasingUnfinished", "HeldLost"])
}

pub(super) fn run_result() -> Vector {
    let mut s = Scenario::new(
        "run_result",
        "A run may leave a result, which its finish carries in one record that begins with the nonce of the attempt. Who comes later is \
         told it. A store that refuses the finish for good is sent the completion alone, at once, and the caller is told that \
         the result was dropped.",
    );
    s.acquire(1, "job@monday", run).say(0, Granted(7)).finish_with(1, "[1]").say(0, Unknown(FaultKind::Reset));
    s.wake_until_sent().say(0, Finished);
    s.acquire(2, "job@monday", once).say(0, DoneWith("[1]"));
    s.acquire(3, "job@tuesday", run).say(0, Granted(8)).finish_with(3, "2").say(0, Denied(DenialKind::StorageFull));
    s.wake_until_sent().say(0, Finished);
    s.about(&["AcquiringDone", "HeldFinished", "ReleasingSent", "ReleasingFinished"])
}

pub(super) fn quorum_run_result() -> Vector {
    let mut s = three(
        "quorum_run_result",
        "A result is told once a majority shows the same completion, with or without it. Where too few do, the work is done and \
         its result is not settled.",
    );
    s.acquire(1, "job@monday", run).say(0, DoneWith("1")).say(1, DoneWith("1"));
    s.acquire(2, "job@monday", run).say(0, DoneWith("1")).say(1, Granted(8)).say(2, Done);
    s.say_for(2, 1, Released);
    s.acquire(3, "job@monday", run).say(0, DoneWith("1")).say(1, Granted(9)).say(2, Granted(9));
    s.say_for(3, 1, Released).say_for(3, 2, Released);
    s.acquire(4, "job@friday", run).say(0, Granted(10)).say(1, Granted(10)).say(2, Granted(10));
    s.finish_with(4, "2").say(0, Denied(DenialKind::StorageFull)).say(1, Finished).say(2, Finished);
    s.about(&["AcquiringDoneOnOne", "AcquiringDone", "ReleasingFinished"])
}

pub(super) fn quorum_run() -> Vector {
    let mut s = three(
        "quorum_run",
        "A run is finished once a majority has confirmed the completion; one that a minority confirmed is finished, unconfirmed; \
         one that none confirmed is lost. A completion at one node is enough to end an acquisition: what others have granted is \
         released.",
    );
    s.acquire(1, "job@monday", run).say(0, Granted(7)).say(1, Granted(7)).say(2, Granted(7));
    s.finish(1).say(0, Finished).say(1, Finished).say(2, Finished);
    s.acquire(2, "job@monday", run).say(0, Granted(8)).say(1, Done).say_for(2, 2, Granted(8));
    s.say_for(2, 0, Released).say_for(2, 2, Released);
    s.acquire(3, "job@tuesday", run).say(0, Granted(8)).say(1, Granted(8)).say(2, Granted(8));
    s.finish(3).say(0, Gone).say(1, Abstains).say(2, Finished);
    s.acquire(4, "job@friday", run).say(0, Granted(9)).say(1, Granted(9)).say(2, Granted(9));
    s.finish(4).say(0, Gone).say(1, Gone).say(2, Abstains);
    s.about(&["AcquiringDone", "HeldFinished", "ReleasingFinished", "ReleasingUnfinished", "ReleasingTaken"])
}

pub(super) fn quorum_run_in_doubt() -> Vector {
    let mut s = three(
        "quorum_run_in_doubt",
        "The vote of a node that may have lost completions is worth nothing to a run, whatever is known of its counters; the others \
         must be a majority. The operator may give his word that no completion was lost.",
    );
    s.acquire(1, "job@monday", once).say(0, InDoubt(7, 0xd0)).say(1, Granted(7)).say(2, Granted(7));
    s.finish(1).say(1, Finished).say(2, Finished).say(0, Finished);
    s.acquire(2, "job@tuesday", once).say(0, InDoubt(7, 0xd0)).say(1, InDoubt(7, 0xd1)).say(2, Granted(7));
    for node in 0..3 {
        s.say_for(2, node, Released);
    }
    let trusting = |o: LockOptionsBuilder| {
        o.run(RunOptions { keep: KEEP, trust_quorum: true, ..RunOptions::default() }).wait(Wait::Once)
    };
    s.acquire(3, "job@tuesday", trusting).say(0, InDoubt(7, 0xd0)).say(1, InDoubt(7, 0xd1)).say(2, Granted(7));
    s.about(&["AcquiringGranted", "AcquiringFailed", "HeldFinished", "ReleasingFinished"])
}
