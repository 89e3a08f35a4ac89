//! Replacing a runner: the newest request for a run gets it, and its runner is asked to end.
//!
//! A request takes a number: the token of a completion that it writes to a record beside the run. A later number is newer, whatever
//! clocks say, and all who wait look at the record. A request without a number could not be told from an older one
//! that is granted late, so each takes one before it asks for the run.

use core::time::Duration;

use crate::ids::{Nonce, Token};
use crate::op::{Completion, Holder, Holding, Seen};
use crate::time::Monotonic;
use crate::view::held_by;

/// How long a request waits before it looks for a newer one, and for another runner: at first, and at most, since the time doubles.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MOST: Duration = Duration::from_secs(8);
/// The lock of the record is held without renewal, since it is written at once.
const RECORD_TTL: Duration = Duration::from_secs(10);
/// Another request may have died with that lock.
const RECORD_WAIT: Duration = Duration::from_secs(20);

/// A request that replaces the runner. The host does what [`next`](Self::next) says, and gives the answer to the following call.
///
/// The host keeps a lease of the run that is granted while the step says so ([`ReplaceStep::keeps_lease`]), and releases it before any other
/// step.
#[derive(Clone, Debug)]
pub struct Replacing {
    even_if_done: bool,
    until: Monotonic,
    number: Option<Token>,
    /// A runner was seen, so a completion that comes is that of older work.
    runs: bool,
    /// The runner who was asked to end.
    ended: Option<Nonce>,
    pause: Duration,
    stage: Stage,
}

/// A step for the host to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaceStep {
    /// Read the run: [`Looked`](ReplaceAnswer::Looked).
    Look,
    /// Acquire the [record](crate::Resource::of_newest) as a run, even if done, and finish it: [`Numbered`](ReplaceAnswer::Numbered) or
    /// [`Unconfirmed`](ReplaceAnswer::Unconfirmed).
    TakeNumber(RecordLock),
    /// Acquire the run: [`Granted`](ReplaceAnswer::Granted) or [`Refused`](ReplaceAnswer::Refused).
    Ask {
        /// Also if it is done.
        even_if_done: bool,
        /// The wait of the acquisition; zero asks once.
        wait: Duration,
    },
    /// Acquire the [record](crate::Resource::of_newest) as a run that may be done: [`Newest`](ReplaceAnswer::Newest). Where the store has
    /// forgotten it, so that the lock is granted, finish it as in [`TakeNumber`](Self::TakeNumber).
    ReadNewest(RecordLock),
    /// Acquire the record as a run, even if done, read it on all nodes, and release it: [`Counted`](ReplaceAnswer::Counted).
    CountNewest(RecordLock),
    /// Revoke this lease: [`Ended`](ReplaceAnswer::Ended).
    End(Nonce),
    /// The work is the caller's, if its lease is still held; else [`Failed`](ReplaceAnswer::Failed).
    Begin,
    /// A newer request has taken the place of this one.
    Replaced,
    /// The work was done before this request, as the run that was read last shows.
    Done,
    /// The runner has not ended in time, or cannot be asked to: the refusal that came last is the answer.
    Running,
    /// Too few nodes show which request is the newest.
    Unsettled,
    /// The error that came last is the answer.
    Fail,
}

/// How to lock the record of the newest request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLock {
    /// Its ttl, where a quorum does not allow less.
    pub ttl: Duration,
    /// The longest wait for it.
    pub wait: Duration,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaceAnswer {
    /// The state of the run.
    Looked {
        /// The one who has it.
        runner: Option<Runner>,
        /// The work is done.
        done: bool,
    },
    /// The completion of the record is written, with this token.
    Numbered(Token),
    /// The completion may be written, with this token: the store has not answered. That error is the one that came last.
    Unconfirmed(Token),
    /// The run is acquired.
    Granted,
    /// Somebody has the run: who, as far as that is known.
    Refused(Option<Runner>),
    /// The completion of the record.
    Newest {
        /// Its token.
        token: Token,
        /// Other nodes may have a later one.
        unsettled: bool,
    },
    /// The finding of [`newest_beside`].
    Counted(Option<NewestBeside>),
    /// The lease is revoked, or over.
    Ended,
    /// An error.
    Failed {
        /// It may pass by itself: the store did not answer, or the lease was lost.
        may_pass: bool,
    },
}

/// The one who has a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runner {
    /// Its lease; `None` for a client of another library, whom nobody can ask to end.
    pub nonce: Option<Nonce>,
    /// Its record is marked: another request has asked it to end, or died before its session was notified.
    pub is_revoked: bool,
}

/// The newest number that was ever confirmed: the token of the record's completion, `None` if there is none any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewestBeside(pub Option<Token>);

/// The newest request, by what the nodes show of its record while this holder has its lock; `None` if they are no majority. Every number that
/// was confirmed is on one of them, and nobody takes a later one meanwhile.
pub fn newest_beside<'a>(
    nodes: impl ExactSizeIterator<Item = Option<&'a Seen>>,
    holder: &Nonce,
) -> Option<NewestBeside> {
    let shown = held_by(nodes, holder)?;
    Some(NewestBeside(shown.into_iter().filter_map(|seen| seen.done.as_ref().map(|done| done.token)).max()))
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Reads the run for the first time.
    Looking,
    Numbering,
    Asking,
    /// Looks for the runner, whom the refusal has not shown.
    Searching,
    /// With the run in hand, reads which request is the newest.
    Verifying,
    /// With this runner in the way, reads which request is the newest: one that is seen before has an older number, which it took before it
    /// was granted.
    Comparing(Option<Runner>),
    Ending(Nonce),
    Over,
}

impl ReplaceStep {
    /// Returns true if a lease of the run is kept for this step.
    pub const fn keeps_lease(&self) -> bool {
        matches!(self, Self::TakeNumber(_) | Self::ReadNewest(_) | Self::CountNewest(_) | Self::Begin)
    }
}

impl Replacing {
    /// A request that waits for the runner until then; its first step is [`ReplaceStep::Look`].
    pub fn new(even_if_done: bool, until: Monotonic) -> Self {
        let (number, ended, pause) = (None, None, Duration::ZERO);
        Self { even_if_done, until, number, runs: false, ended, pause, stage: Stage::Looking }
    }

    /// The next step, after what has come of the last one.
    pub fn next(&mut self, answer: ReplaceAnswer, now: Monotonic) -> ReplaceStep {
        use ReplaceAnswer as Answer;
        match (self.stage, answer) {
            (Stage::Looking, Answer::Looked { runner, done }) => {
                self.runs = runner.is_some();
                if done && !self.runs && !self.even_if_done {
                    return self.end(ReplaceStep::Done);
                }
                self.stage = Stage::Numbering;
                ReplaceStep::TakeNumber(self.record(now))
            }
            (Stage::Numbering, Answer::Numbered(number)) => {
                self.number = Some(number);
                self.ask(now)
            }
            (Stage::Asking, Answer::Granted) => self.read_newest(Stage::Verifying, now),
            (Stage::Asking, Answer::Refused(None)) => {
                self.stage = Stage::Searching;
                ReplaceStep::Look
            }
            (Stage::Asking, Answer::Refused(runner)) | (Stage::Searching, Answer::Looked { runner, .. }) => {
                self.runs |= runner.is_some();
                self.read_newest(Stage::Comparing(runner), now)
            }
            (Stage::Verifying | Stage::Comparing(_), Answer::Newest { token, unsettled }) => {
                self.compare(Some(token), unsettled, now)
            }
            (Stage::Verifying | Stage::Comparing(_), Answer::Counted(Some(NewestBeside(token)))) => {
                self.compare(token, false, now)
            }
            (Stage::Verifying, Answer::Counted(None)) => self.again(ReplaceStep::Unsettled, now),
            (Stage::Verifying | Stage::Comparing(_), Answer::Numbered(number)) => {
                self.number = Some(number);
                self.is_newest(now)
            }
            (Stage::Ending(nonce), Answer::Ended) => {
                self.ended = Some(nonce);
                self.again(ReplaceStep::Running, now)
            }
            (Stage::Looking | Stage::Numbering | Stage::Over, _) => self.end(ReplaceStep::Fail),
            // With its number it has taken the place of others, so it goes on as long as it may.
            (Stage::Asking | Stage::Verifying, Answer::Failed { may_pass: true }) => self.again(ReplaceStep::Fail, now),
            (_, Answer::Failed { may_pass: true } | Answer::Counted(None)) => self.again(ReplaceStep::Running, now),
            (stage, Answer::Unconfirmed(number)) => {
                // If it is not written, there is none that is later: a later one has a greater token.
                self.number = Some(number);
                let is_held = matches!(stage, Stage::Verifying);
                self.again(if is_held { ReplaceStep::Fail } else { ReplaceStep::Running }, now)
            }
            (_, _) => self.end(ReplaceStep::Fail),
        }
    }

    /// Compares the newest number with that of this request.
    fn compare(&mut self, newest: Option<Token>, unsettled: bool, now: Monotonic) -> ReplaceStep {
        match newest {
            _ if newest > self.number => self.end(ReplaceStep::Replaced),
            // Too few nodes have answered: the others may know a newer one.
            _ if unsettled => ReplaceStep::CountNewest(self.record(now)),
            // The store has lost its number, by which others step aside.
            _ if newest < self.number => ReplaceStep::TakeNumber(self.record(now)),
            _ => self.is_newest(now),
        }
    }

    /// No newer request has taken a number.
    fn is_newest(&mut self, now: Monotonic) -> ReplaceStep {
        let Stage::Comparing(runner) = self.stage else { return ReplaceStep::Begin };
        let Some(Runner { nonce, is_revoked }) = runner else { return self.again(ReplaceStep::Running, now) };
        let Some(nonce) = nonce else { return self.end(ReplaceStep::Running) };
        // A mark may have been lost by the store, or be that of a client that has died before the runner's session was notified.
        if self.ended == Some(nonce) && is_revoked {
            return self.again(ReplaceStep::Running, now);
        }
        self.stage = Stage::Ending(nonce);
        ReplaceStep::End(nonce)
    }

    fn read_newest(&mut self, stage: Stage, now: Monotonic) -> ReplaceStep {
        self.stage = stage;
        ReplaceStep::ReadNewest(self.record(now))
    }

    /// Asks for the run once more, unless the time is over.
    fn again(&mut self, otherwise: ReplaceStep, now: Monotonic) -> ReplaceStep {
        if self.left(now).is_zero() {
            return self.end(otherwise);
        }
        self.pause = (self.pause * 2).clamp(PAUSE_FIRST, PAUSE_MOST);
        self.ask(now)
    }

    fn ask(&mut self, now: Monotonic) -> ReplaceStep {
        self.stage = Stage::Asking;
        // A runner that was seen finishes the work of an older request.
        ReplaceStep::Ask { even_if_done: self.runs || self.even_if_done, wait: self.pause.min(self.left(now)) }
    }

    /// The record has a moment also at the end of the wait, so that what is granted by then is not given up.
    fn record(&self, now: Monotonic) -> RecordLock {
        RecordLock { ttl: RECORD_TTL, wait: self.left(now).clamp(PAUSE_FIRST, RECORD_WAIT) }
    }

    fn left(&self, now: Monotonic) -> Duration {
        self.until.since(now)
    }

    fn end(&mut self, step: ReplaceStep) -> ReplaceStep {
        self.stage = Stage::Over;
        step
    }
}

impl From<&Holding> for Runner {
    fn from(holding: &Holding) -> Self {
        let nonce = match holding.holder {
            Holder::Lease { nonce, .. } => Some(nonce),
            Holder::Foreign => None,
        };
        Self { nonce, is_revoked: holding.is_revoked() }
    }
}

impl From<&Completion> for ReplaceAnswer {
    /// That of the record.
    fn from(newest: &Completion) -> Self {
        Self::Newest { token: newest.token, unsettled: newest.unsettled }
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;

    use super::*;
    use crate::ids::{Owner, Seq, Version};

    const NOW: Monotonic = Monotonic::from_ns(1_000_000_000_000);
    const LEASE: Nonce = Nonce::from_bytes([7; 16]);
    const OTHER: Nonce = Nonce::from_bytes([8; 16]);
    const RUNNER: Runner = Runner { nonce: Some(LEASE), is_revoked: false };
    const MARKED: Runner = Runner { is_revoked: true, ..RUNNER };
    const ANOTHER: Runner = Runner { nonce: Some(OTHER), is_revoked: true };
    const PASSES: ReplaceAnswer = ReplaceAnswer::Failed { may_pass: true };
    const FAILS: ReplaceAnswer = ReplaceAnswer::Failed { may_pass: false };
    const NOT_DONE: ReplaceAnswer = ReplaceAnswer::Looked { runner: None, done: false };
    const RECORD: RecordLock = RecordLock { ttl: RECORD_TTL, wait: RECORD_WAIT };
    const READ: ReplaceStep = ReplaceStep::ReadNewest(RECORD);
    const COUNT: ReplaceStep = ReplaceStep::CountNewest(RECORD);
    const NUMBER: ReplaceStep = ReplaceStep::TakeNumber(RECORD);

    fn token(token: u64) -> Token {
        Token::new(token).unwrap()
    }

    fn newest(number: u64) -> ReplaceAnswer {
        ReplaceAnswer::Newest { token: token(number), unsettled: false }
    }

    fn unsettled(number: u64) -> ReplaceAnswer {
        ReplaceAnswer::Newest { token: token(number), unsettled: true }
    }

    fn counted(number: Option<u64>) -> ReplaceAnswer {
        ReplaceAnswer::Counted(Some(NewestBeside(number.map(token))))
    }

    fn refused(runner: Runner) -> ReplaceAnswer {
        ReplaceAnswer::Refused(Some(runner))
    }

    fn ask(even_if_done: bool, seconds: u64) -> ReplaceStep {
        ReplaceStep::Ask { even_if_done, wait: Duration::from_secs(seconds) }
    }

    /// Gives the answers, and expects the step that comes of each, whatever the wait for the record.
    fn walk(request: &mut Replacing, steps: &[(ReplaceAnswer, ReplaceStep)]) {
        let whatever_wait = |step| match step {
            ReplaceStep::TakeNumber(_) => NUMBER,
            ReplaceStep::ReadNewest(_) => READ,
            ReplaceStep::CountNewest(_) => COUNT,
            step => step,
        };
        for (n, (answer, step)) in steps.iter().enumerate() {
            assert_eq!(whatever_wait(request.next(*answer, NOW)), *step, "after answer {n}, {answer:?}");
        }
    }

    /// A request with the number 5 that has found nobody.
    fn asking(wait: Duration) -> Replacing {
        let mut request = Replacing::new(false, NOW.plus(wait));
        walk(&mut request, &[(NOT_DONE, NUMBER), (ReplaceAnswer::Numbered(token(5)), ask(false, 0))]);
        request
    }

    #[test]
    fn where_nobody_runs_the_newest_request_begins() {
        walk(&mut asking(Duration::MAX), &[(ReplaceAnswer::Granted, READ), (newest(5), ReplaceStep::Begin)]);
    }

    #[test]
    fn work_that_was_done_before_is_done_unless_somebody_is_at_it_again() {
        let looked = |runner, done| ReplaceAnswer::Looked { runner, done };
        let first = |even_if_done, answer| Replacing::new(even_if_done, Monotonic::FAR).next(answer, NOW);
        assert_eq!(first(false, looked(None, true)), ReplaceStep::Done);
        assert_eq!(first(true, looked(None, true)), NUMBER);
        assert_eq!(first(false, looked(Some(RUNNER), true)), NUMBER);
        // The runner that was seen finishes older work.
        let mut request = Replacing::new(false, Monotonic::FAR);
        let numbered = (ReplaceAnswer::Numbered(token(5)), ask(true, 0));
        walk(&mut request, &[(looked(Some(RUNNER), false), NUMBER), numbered]);
        // Also if nothing could be learned of it.
        walk(&mut asking(Duration::MAX), &[(refused(RUNNER), READ), (PASSES, ask(true, 1))]);
        let searched = [(ReplaceAnswer::Refused(None), ReplaceStep::Look), (looked(Some(RUNNER), true), READ)];
        let mut request = asking(Duration::MAX);
        walk(&mut request, &searched);
        walk(&mut request, &[(PASSES, ask(true, 1))]);
    }

    #[test]
    fn a_runner_is_told_and_waited_for() {
        let steps = [
            (refused(RUNNER), READ),
            (newest(5), ReplaceStep::End(LEASE)),
            // It may have been notified.
            (PASSES, ask(true, 1)),
            (refused(MARKED), READ),
            (newest(5), ReplaceStep::End(LEASE)),
            (ReplaceAnswer::Ended, ask(true, 2)),
            (refused(MARKED), READ),
            (newest(5), ask(true, 4)),
            // The store has lost the mark.
            (refused(RUNNER), READ),
            (newest(5), ReplaceStep::End(LEASE)),
            (ReplaceAnswer::Ended, ask(true, 8)),
            // The refusal does not always show who has it.
            (ReplaceAnswer::Refused(None), ReplaceStep::Look),
            (ReplaceAnswer::Looked { runner: Some(MARKED), done: true }, READ),
            (newest(5), ask(true, 8)),
            (ReplaceAnswer::Refused(None), ReplaceStep::Look),
            (NOT_DONE, READ),
            (newest(5), ask(true, 8)),
            // Another runner has begun in between, and the one who has marked it may be dead.
            (refused(ANOTHER), READ),
            (newest(5), ReplaceStep::End(OTHER)),
            (ReplaceAnswer::Ended, ask(true, 8)),
            (ReplaceAnswer::Granted, READ),
            (newest(5), ReplaceStep::Begin),
        ];
        walk(&mut asking(Duration::MAX), &steps);
    }

    #[test]
    fn an_older_request_steps_aside_and_ends_nobody() {
        for found in [ReplaceAnswer::Granted, refused(RUNNER)] {
            // A later one is one, wherever it was seen.
            for later in [newest(6), unsettled(6)] {
                walk(&mut asking(Duration::MAX), &[(found, READ), (later, ReplaceStep::Replaced)]);
            }
            let counted = [(found, READ), (unsettled(5), COUNT), (counted(Some(6)), ReplaceStep::Replaced)];
            walk(&mut asking(Duration::MAX), &counted);
        }
    }

    #[test]
    fn a_minority_does_not_say_who_is_the_newest() {
        let counts = |last| [(ReplaceAnswer::Granted, READ), (unsettled(5), COUNT), last];
        walk(&mut asking(Duration::MAX), &counts((counted(Some(5)), ReplaceStep::Begin)));
        let unknown = ReplaceAnswer::Counted(None);
        walk(&mut asking(Duration::MAX), &counts((unknown, ask(false, 1))));
        walk(&mut asking(Duration::ZERO), &counts((unknown, ReplaceStep::Unsettled)));
        let while_it_runs = [(refused(RUNNER), READ), (unsettled(5), COUNT), (unknown, ReplaceStep::Running)];
        walk(&mut asking(Duration::ZERO), &while_it_runs);
    }

    #[test]
    fn a_number_that_the_store_has_lost_is_taken_again() {
        for lost in [[(newest(4), NUMBER)].as_slice(), &[(unsettled(4), COUNT), (counted(None), NUMBER)]] {
            let mut request = asking(Duration::MAX);
            walk(&mut request, &[(ReplaceAnswer::Granted, READ)]);
            walk(&mut request, lost);
            let numbered = (ReplaceAnswer::Numbered(token(9)), ReplaceStep::Begin);
            // The lease was lost meanwhile.
            walk(&mut request, &[numbered, (PASSES, ask(false, 1)), (ReplaceAnswer::Granted, READ)]);
            walk(&mut request, &[(newest(9), ReplaceStep::Begin)]);
        }
    }

    #[test]
    fn a_request_does_not_step_aside_for_itself() {
        let steps = [
            (ReplaceAnswer::Granted, READ),
            // The store had forgotten the record, and whether it has the new one is open.
            (ReplaceAnswer::Unconfirmed(token(8)), ask(false, 1)),
            (ReplaceAnswer::Granted, READ),
            (newest(8), ReplaceStep::Begin),
        ];
        walk(&mut asking(Duration::MAX), &steps);
    }

    #[test]
    fn what_passes_is_tried_again_within_the_wait_and_nothing_else() {
        let second = Duration::from_secs(1);
        let half = ReplaceStep::Ask { even_if_done: false, wait: second / 2 };
        for (wait, trouble, step) in [
            (second, PASSES, ask(false, 1)),
            (second / 2, PASSES, half),
            (Duration::ZERO, PASSES, ReplaceStep::Fail),
            (second, FAILS, ReplaceStep::Fail),
        ] {
            walk(&mut asking(wait), &[(trouble, step)]);
            walk(&mut asking(wait), &[(ReplaceAnswer::Granted, READ), (trouble, step)]);
        }
        // Before it has a number, it has taken nobody's place.
        assert_eq!(Replacing::new(false, Monotonic::FAR).next(PASSES, NOW), ReplaceStep::Fail);
        for trouble in [PASSES, ReplaceAnswer::Unconfirmed(token(5))] {
            walk(&mut Replacing::new(false, Monotonic::FAR), &[(NOT_DONE, NUMBER), (trouble, ReplaceStep::Fail)]);
        }
    }

    #[test]
    fn a_runner_that_has_not_ended_in_time_is_the_answer_whatever_else_fails() {
        for steps in [
            [(refused(RUNNER), READ), (PASSES, ReplaceStep::Running)].as_slice(),
            &[(refused(RUNNER), READ), (newest(5), ReplaceStep::End(LEASE)), (PASSES, ReplaceStep::Running)],
            &[
                (refused(RUNNER), READ),
                (newest(5), ReplaceStep::End(LEASE)),
                (ReplaceAnswer::Ended, ReplaceStep::Running),
            ],
            &[(ReplaceAnswer::Refused(None), ReplaceStep::Look), (PASSES, ReplaceStep::Running)],
        ] {
            walk(&mut asking(Duration::ZERO), steps);
        }
        walk(&mut asking(Duration::MAX), &[(refused(RUNNER), READ), (FAILS, ReplaceStep::Fail)]);
    }

    #[test]
    fn a_client_of_another_library_is_not_asked_to_end() {
        let foreign = Runner { nonce: None, is_revoked: false };
        walk(&mut asking(Duration::MAX), &[(refused(foreign), READ), (newest(5), ReplaceStep::Running)]);
    }

    #[test]
    fn the_record_is_waited_for_no_longer_than_the_runner_but_a_moment() {
        for (wait, of_record) in [(0, 1), (5, 5), (3_600, 20)] {
            let step = Replacing::new(false, NOW.plus(Duration::from_secs(wait))).next(NOT_DONE, NOW);
            let wait = Duration::from_secs(of_record);
            assert_eq!(step, ReplaceStep::TakeNumber(RecordLock { ttl: RECORD_TTL, wait }));
        }
    }

    #[test]
    fn the_newest_number_is_on_the_nodes_that_a_holder_has() {
        let done = |number| Completion {
            token: token(number),
            owner: Owner::default(),
            at_unix_ms: 1,
            left: Duration::from_secs(1),
            about: None,
            unsettled: false,
        };
        let seen = |holder: u8, number: Option<u64>| {
            let nonce = Nonce::from_bytes([holder; 16]);
            let holding = Holding::of(Holder::Lease { nonce, seq: None }, Version::of(&nonce, Seq::new(0)));
            Some(Seen { holding: Some(Box::new(holding)), done: number.map(|number| Box::new(done(number))) })
        };
        let nodes = [seen(7, Some(5)), seen(7, None), seen(9, Some(6))];
        let found = |nodes: &[Option<Seen>]| newest_beside(nodes.iter().map(Option::as_ref), &LEASE);
        assert_eq!(found(&nodes), Some(NewestBeside(Some(token(5)))));
        assert_eq!(found(&[seen(7, None), seen(7, None), None]), Some(NewestBeside(None)));
        assert_eq!(found(&[seen(7, Some(5)), None, None]), None);
    }

    #[test]
    fn an_answer_that_fits_no_question_fails() {
        assert_eq!(asking(Duration::MAX).next(ReplaceAnswer::Ended, NOW), ReplaceStep::Fail);
        walk(&mut asking(Duration::MAX), &[(FAILS, ReplaceStep::Fail), (ReplaceAnswer::Granted, ReplaceStep::Fail)]);
    }
}
