//! Scripts of runs.

use super::scripts::Answer::*;
use super::scripts::Do::{self, At, Say};
use super::scripts::{HOLD, PLAIN, START, Script};
use crate::config::{Poll, RunOptions};
use crate::lease::Row::*;

const RUN: Script = Script { options: |o| o.run(RunOptions::default()), ..PLAIN };

pub(super) const RUNS: &[Script] = &[
    Script {
        name: "a run is finished, and done for others",
        steps: &[
            START,
            HOLD,
            (Do::Finish, &[HeldFinished, ReleasingSent]),
            (Say(0, Reset), &[ReleasingOpen]),
            (At(1_000), &[ReleasingSent]),
            (Say(0, Finished), &[ReleasingFinished]),
        ],
        ..RUN
    },
    Script { name: "a run that was done", steps: &[START, (Say(0, Done), &[AcquiringDone])], ..RUN },
    Script {
        name: "a run that somebody else finishes",
        poll: Poll::Read,
        steps: &[
            START,
            (Say(0, Theirs), &[AcquiringBlocked]),
            (At(1_000), &[WaitingLooked]),
            (Say(0, SawDone), &[WaitingDone]),
        ],
        ..RUN
    },
    Script {
        name: "a run that was lost before it was finished",
        steps: &[START, HOLD, (Do::Finish, &[HeldFinished, ReleasingSent]), (Say(0, Theirs), &[ReleasingTaken])],
        ..RUN
    },
    Script {
        name: "a finish that the store does not answer",
        steps: &[
            START,
            HOLD,
            (Do::Finish, &[HeldFinished, ReleasingSent]),
            (Say(0, Timeout), &[ReleasingOpen]),
            (At(29_000), &[ReleasingSent]),
            (Say(0, Released), &[ReleasingOpen]),
            (At(30_000), &[ReleasingRanOut]),
        ],
        ..RUN
    },
    Script {
        name: "a majority has the completion, and a slow node is freed later",
        nodes: 3,
        steps: &[
            START,
            (Say(0, Granted(7)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringGranted]),
            (Say(2, Granted(7)), &[HeldJoined]),
            (Do::Finish, &[HeldFinished, ReleasingSent, ReleasingSent, ReleasingSent]),
            (Say(0, Gone), &[ReleasingOpen]),
            (Say(1, Finished), &[ReleasingOpen]),
            (Say(2, Finished), &[ReleasingFinished]),
        ],
        ..RUN
    },
    Script {
        name: "too few nodes have the completion",
        nodes: 3,
        steps: &[
            START,
            (Say(0, Granted(7)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringGranted]),
            (Say(2, Granted(7)), &[HeldJoined]),
            (Do::Finish, &[HeldFinished, ReleasingSent, ReleasingSent, ReleasingSent]),
            (Say(0, Gone), &[ReleasingOpen]),
            (Say(1, Theirs), &[ReleasingOpen]),
            (Say(2, Finished), &[ReleasingUnfinished]),
        ],
        ..RUN
    },
    Script {
        name: "too few nodes can have the completion, and one has not answered",
        nodes: 5,
        steps: &[
            START,
            (Say(0, Granted(7)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringCounted]),
            (Say(2, Granted(7)), &[AcquiringGranted]),
            (Say(3, Granted(7)), &[HeldJoined]),
            (Say(4, Granted(7)), &[HeldJoined]),
            (Do::Finish, &[HeldFinished, ReleasingSent, ReleasingSent, ReleasingSent, ReleasingSent, ReleasingSent]),
            (Say(0, Finished), &[ReleasingOpen]),
            (Say(1, Gone), &[ReleasingOpen]),
            (Say(2, Gone), &[ReleasingOpen]),
            (Say(3, Gone), &[ReleasingUnfinished]),
        ],
        ..RUN
    },
    Script {
        name: "a majority has the completion before a node has answered",
        nodes: 3,
        steps: &[
            START,
            (Say(0, Granted(7)), &[AcquiringCounted]),
            (Say(1, Granted(7)), &[AcquiringGranted]),
            (Say(2, Granted(7)), &[HeldJoined]),
            (Do::Finish, &[HeldFinished, ReleasingSent, ReleasingSent, ReleasingSent]),
            (Say(0, Finished), &[ReleasingOpen]),
            (Say(1, Finished), &[ReleasingFinished]),
        ],
        ..RUN
    },
    Script {
        name: "a node shows a completion that another does not have",
        nodes: 3,
        steps: &[
            START,
            (Say(0, Granted(7)), &[AcquiringCounted]),
            (Say(1, Done), &[AcquiringDoneOnOne]),
            (Say(2, Theirs), &[AcquiringDone]),
        ],
        ..RUN
    },
    Script {
        name: "a majority shows a completion without a result",
        nodes: 3,
        steps: &[START, (Say(0, Done), &[AcquiringDoneOnOne]), (Say(1, Done), &[AcquiringDone])],
        ..RUN
    },
    Script {
        name: "a result counts once a majority shows it",
        nodes: 3,
        steps: &[
            START,
            (Say(0, DoneWithResult), &[AcquiringDoneOnOne]),
            (Say(1, Granted(7)), &[AcquiringDoneOnOne]),
            (Say(2, DoneWithResult), &[AcquiringDone]),
        ],
        ..RUN
    },
    Script {
        name: "a result that too few nodes show",
        nodes: 3,
        steps: &[
            START,
            (Say(0, DoneWithResult), &[AcquiringDoneOnOne]),
            (Say(1, Timeout), &[AcquiringDoneOnOne]),
            (Say(2, Theirs), &[AcquiringDone]),
        ],
        ..RUN
    },
    Script {
        name: "a look at one node of several shows a result",
        nodes: 3,
        poll: Poll::Read,
        steps: &[
            START,
            (Say(0, Theirs), &[AcquiringCounted]),
            (Say(1, Theirs), &[AcquiringBlocked]),
            (At(1_000), &[WaitingLooked]),
            (Say(0, SawResult), &[WaitingSaw]),
        ],
        ..RUN
    },
    Script {
        name: "a store that is full gets the completion without the result",
        steps: &[
            START,
            HOLD,
            (Do::FinishWithResult, &[HeldFinished, ReleasingSent]),
            (Say(0, Denied), &[ReleasingOpen, ReleasingSent]),
            (Say(0, Finished), &[ReleasingFinished]),
        ],
        ..RUN
    },
    Script {
        name: "nodes that may have lost completions are no majority for a run",
        nodes: 3,
        steps: &[
            START,
            (Say(0, GrantedInDoubt(7)), &[AcquiringCounted]),
            (Say(1, GrantedInDoubt(7)), &[AcquiringBlocked]),
        ],
        ..RUN
    },
    Script {
        name: "whether a record is in the way, or completions are in doubt, is up to the last node",
        nodes: 3,
        steps: &[
            START,
            (Say(2, Theirs), &[AcquiringCounted]),
            (Say(0, GrantedInDoubt(7)), &[AcquiringCounted]),
            (Say(1, Timeout), &[AcquiringBlocked]),
        ],
        ..RUN
    },
    Script {
        name: "a finish may have been carried out, and its completion is gone",
        steps: &[
            START,
            HOLD,
            (Do::Finish, &[HeldFinished, ReleasingSent]),
            (Say(0, Timeout), &[ReleasingOpen]),
            (At(1_000), &[ReleasingSent]),
            (Say(0, Gone), &[ReleasingUnfinished]),
        ],
        ..RUN
    },
];
