//! Replacing a runner: the newest request for a run gets it, and its runner is asked to end.
//!
//! A request takes a number: the token of a completion that it writes to a record beside the run. A later number is newer, whatever
//! clocks say, and all who wait look at the record. A request without a number could not be told from an older one
//! that is granted late, so each takes one before it asks for the run.

use core::time::Duration;

use crate::ids::{Nonce, Token};
use crate::op::{Completion, Holder, Holding};
use crate::time::Monotonic;

/// How often the nodes are asked which request is the newest, where too few have answered.
const LOOKS: u32 = 5;
/// How long a request waits before it looks for a newer one, and for another runner: at first, and at most, since the time doubles.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_MOST: Duration = Duration::from_secs(8);

/// The lock of the record beside the run: how long it is held without renewal, since it is written at once, and how long a request
/// waits for it, since another may have died with it.
pub const NEWEST_TTL: Duration = Duration::from_secs(10);
/// See [`NEWEST_TTL`].
pub const NEWEST_WAIT: Duration = Duration::from_secs(20);

/// A request that replaces the runner. The host does what [`next`](Self::next) says, and gives the answer to the following call.
///
/// Before every step but [`ReadNewest`](ReplaceStep::ReadNewest) and [`Begin`](ReplaceStep::Begin), the host releases the lease of the run
/// if it has one.
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
    /// How often the newest request was looked for in vain.
    looks: u32,
    stage: Stage,
}

/// A step for the host to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaceStep {
    /// Read the run: [`Looked`](ReplaceAnswer::Looked).
    Look,
    /// Acquire the [record](crate::Resource::of_newest) as a run, even if done, and finish it: [`Numbered`](ReplaceAnswer::Numbered).
    TakeNumber,
    /// Acquire the run: [`Granted`](ReplaceAnswer::Granted) or [`Refused`](ReplaceAnswer::Refused).
    Ask {
        /// Also if it is done.
        even_if_done: bool,
        /// The wait of the acquisition; zero asks once.
        wait: Duration,
    },
    /// Acquire the [record](crate::Resource::of_newest) as a run that may be done: [`Newest`](ReplaceAnswer::Newest). Where the store has
    /// forgotten it, so that the lock is granted, finish it: [`Numbered`](ReplaceAnswer::Numbered).
    ReadNewest,
    /// Revoke this lease: [`Ended`](ReplaceAnswer::Ended).
    End(Nonce),
    /// The work is the caller's, if its lease is still held; else [`Failed`](ReplaceAnswer::Failed).
    Begin,
    /// A newer request has taken the place of this one.
    Replaced,
    /// The work was done before this request, as the run that was read last shows.
    Done,
    /// Too few nodes show which request is the newest.
    Unsettled,
    /// The error, or the refusal, that came last is the answer.
    Fail,
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
    /// The lease is revoked, or over.
    Ended,
    /// An error.
    Failed {
        /// It may pass by itself: the store did not answer, or the lease was lost.
        may_pass: bool,
    },
}

/// The one who has a run, by its lease; `None` for a client of another library, whom nobody can ask to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runner(pub Option<Nonce>);

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Read the run for the first time.
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

impl Replacing {
    /// A request that waits for the runner until then; its first step is [`ReplaceStep::Look`].
    pub fn new(even_if_done: bool, until: Monotonic) -> Self {
        let (number, ended, pause) = (None, None, Duration::ZERO);
        Self { even_if_done, until, number, runs: false, ended, pause, looks: 0, stage: Stage::Looking }
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
                ReplaceStep::TakeNumber
            }
            (Stage::Numbering, Answer::Numbered(number)) => {
                self.number = Some(number);
                self.ask(now)
            }
            (Stage::Asking, Answer::Granted) => self.read_newest(Stage::Verifying),
            (Stage::Asking, Answer::Refused(None)) => {
                self.stage = Stage::Searching;
                ReplaceStep::Look
            }
            (Stage::Asking, Answer::Refused(runner)) | (Stage::Searching, Answer::Looked { runner, .. }) => {
                self.read_newest(Stage::Comparing(runner))
            }
            (Stage::Verifying | Stage::Comparing(_), Answer::Newest { token, .. }) if Some(token) > self.number => {
                self.end(ReplaceStep::Replaced)
            }
            // Too few nodes have answered: the others may know a newer one.
            (Stage::Verifying | Stage::Comparing(_), Answer::Newest { unsettled: true, .. }) => {
                self.looks += 1;
                if self.looks < LOOKS { ReplaceStep::ReadNewest } else { self.again(ReplaceStep::Unsettled, now) }
            }
            (Stage::Verifying | Stage::Comparing(_), Answer::Newest { .. }) => self.is_newest(now),
            (Stage::Verifying | Stage::Comparing(_), Answer::Numbered(number)) => {
                self.number = Some(number);
                self.is_newest(now)
            }
            (Stage::Ending(nonce), Answer::Ended) => {
                self.ended = Some(nonce);
                self.again(ReplaceStep::Fail, now)
            }
            (Stage::Looking | Stage::Numbering | Stage::Over, _) => self.end(ReplaceStep::Fail),
            // With its number it has taken the place of others, so it goes on as long as it may.
            (_, Answer::Failed { may_pass: true }) => self.again(ReplaceStep::Fail, now),
            (_, _) => self.end(ReplaceStep::Fail),
        }
    }

    /// No newer request has taken a number.
    fn is_newest(&mut self, now: Monotonic) -> ReplaceStep {
        let Stage::Comparing(runner) = self.stage else { return ReplaceStep::Begin };
        let Some(runner) = runner else { return self.again(ReplaceStep::Fail, now) };
        let Runner(Some(nonce)) = runner else { return self.end(ReplaceStep::Fail) };
        self.runs = true;
        if self.ended == Some(nonce) {
            return self.again(ReplaceStep::Fail, now);
        }
        // Also if its record is marked already: who did that may have died before the runner's session was told.
        self.stage = Stage::Ending(nonce);
        ReplaceStep::End(nonce)
    }

    fn read_newest(&mut self, stage: Stage) -> ReplaceStep {
        (self.stage, self.looks) = (stage, 0);
        ReplaceStep::ReadNewest
    }

    /// Asks for the run once more, unless the time is over.
    fn again(&mut self, otherwise: ReplaceStep, now: Monotonic) -> ReplaceStep {
        if self.until.since(now).is_zero() {
            return self.end(otherwise);
        }
        self.pause = (self.pause * 2).clamp(PAUSE_FIRST, PAUSE_MOST);
        self.ask(now)
    }

    fn ask(&mut self, now: Monotonic) -> ReplaceStep {
        self.stage = Stage::Asking;
        ReplaceStep::Ask {
            // What a runner finishes after this request has begun is the work of an older one.
            even_if_done: self.runs || self.even_if_done,
            wait: self.pause.min(self.until.since(now)),
        }
    }

    fn end(&mut self, step: ReplaceStep) -> ReplaceStep {
        self.stage = Stage::Over;
        step
    }
}

impl From<&Holding> for Runner {
    fn from(holding: &Holding) -> Self {
        match holding.holder {
            Holder::Lease { nonce, .. } => Self(Some(nonce)),
            Holder::Foreign => Self(None),
        }
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
    use super::*;

    const NOW: Monotonic = Monotonic::from_ns(1_000_000_000_000);
    const LEASE: Nonce = Nonce::from_bytes([7; 16]);
    const OTHER: Nonce = Nonce::from_bytes([8; 16]);
    const RUNNER: Runner = Runner(Some(LEASE));
    const PASSES: ReplaceAnswer = ReplaceAnswer::Failed { may_pass: true };
    const FAILS: ReplaceAnswer = ReplaceAnswer::Failed { may_pass: false };
    const NOT_DONE: ReplaceAnswer = ReplaceAnswer::Looked { runner: None, done: false };

    fn token(token: u64) -> Token {
        Token::new(token).unwrap()
    }

    fn newest(number: u64) -> ReplaceAnswer {
        ReplaceAnswer::Newest { token: token(number), unsettled: false }
    }

    fn ask(even_if_done: bool, seconds: u64) -> ReplaceStep {
        ReplaceStep::Ask { even_if_done, wait: Duration::from_secs(seconds) }
    }

    /// Gives the answers, and expects the step that comes of each.
    fn walk(request: &mut Replacing, steps: &[(ReplaceAnswer, ReplaceStep)]) {
        for (n, (answer, step)) in steps.iter().enumerate() {
            assert_eq!(request.next(*answer, NOW), *step, "after answer {n}, {answer:?}");
        }
    }

    /// A request with the number 5 that has found nobody.
    fn asking(wait: Duration) -> Replacing {
        let mut request = Replacing::new(false, NOW.plus(wait));
        let numbered = (ReplaceAnswer::Numbered(token(5)), ask(false, 0));
        walk(&mut request, &[(NOT_DONE, ReplaceStep::TakeNumber), numbered]);
        request
    }

    #[test]
    fn where_nobody_runs_the_newest_request_begins() {
        let mut request = asking(Duration::MAX);
        walk(&mut request, &[(ReplaceAnswer::Granted, ReplaceStep::ReadNewest), (newest(5), ReplaceStep::Begin)]);
    }

    #[test]
    fn work_that_was_done_before_is_done_unless_somebody_is_at_it_again() {
        let looked = |runner, done| ReplaceAnswer::Looked { runner, done };
        let first = |even_if_done, answer| Replacing::new(even_if_done, Monotonic::FAR).next(answer, NOW);
        assert_eq!(first(false, looked(None, true)), ReplaceStep::Done);
        assert_eq!(first(true, looked(None, true)), ReplaceStep::TakeNumber);
        assert_eq!(first(false, looked(Some(RUNNER), true)), ReplaceStep::TakeNumber);
        // The runner that was seen finishes older work.
        let mut request = Replacing::new(false, Monotonic::FAR);
        let numbered = (ReplaceAnswer::Numbered(token(5)), ask(true, 0));
        walk(&mut request, &[(looked(Some(RUNNER), false), ReplaceStep::TakeNumber), numbered]);
    }

    #[test]
    fn a_runner_is_ended_once_and_waited_for() {
        let steps = [
            (ReplaceAnswer::Refused(Some(RUNNER)), ReplaceStep::ReadNewest),
            (newest(5), ReplaceStep::End(LEASE)),
            // Whether it was told is open.
            (PASSES, ask(true, 1)),
            (ReplaceAnswer::Refused(Some(RUNNER)), ReplaceStep::ReadNewest),
            (newest(5), ReplaceStep::End(LEASE)),
            (ReplaceAnswer::Ended, ask(true, 2)),
            // The refusal does not always show who has it.
            (ReplaceAnswer::Refused(None), ReplaceStep::Look),
            (ReplaceAnswer::Looked { runner: Some(RUNNER), done: true }, ReplaceStep::ReadNewest),
            (newest(5), ask(true, 4)),
            (ReplaceAnswer::Refused(None), ReplaceStep::Look),
            (NOT_DONE, ReplaceStep::ReadNewest),
            (newest(5), ask(true, 8)),
            (PASSES, ask(true, 8)),
            // Another runner has begun in between.
            (ReplaceAnswer::Refused(Some(Runner(Some(OTHER)))), ReplaceStep::ReadNewest),
            (newest(5), ReplaceStep::End(OTHER)),
            (ReplaceAnswer::Ended, ask(true, 8)),
            (ReplaceAnswer::Granted, ReplaceStep::ReadNewest),
            (newest(5), ReplaceStep::Begin),
        ];
        walk(&mut asking(Duration::MAX), &steps);
    }

    #[test]
    fn an_older_request_steps_aside_and_ends_nobody() {
        let granted = [(ReplaceAnswer::Granted, ReplaceStep::ReadNewest), (newest(6), ReplaceStep::Replaced)];
        walk(&mut asking(Duration::MAX), &granted);
        let refused =
            [(ReplaceAnswer::Refused(Some(RUNNER)), ReplaceStep::ReadNewest), (newest(6), ReplaceStep::Replaced)];
        walk(&mut asking(Duration::MAX), &refused);
        // Also where it is not known yet whether that is the newest one.
        let later = ReplaceAnswer::Newest { token: token(6), unsettled: true };
        let unsettled = [(ReplaceAnswer::Granted, ReplaceStep::ReadNewest), (later, ReplaceStep::Replaced)];
        walk(&mut asking(Duration::MAX), &unsettled);
    }

    #[test]
    fn a_minority_does_not_say_who_is_the_newest() {
        let unsettled = ReplaceAnswer::Newest { token: token(5), unsettled: true };
        let looks = |last| {
            let once = (unsettled, ReplaceStep::ReadNewest);
            [(ReplaceAnswer::Granted, ReplaceStep::ReadNewest), once, once, once, once, (unsettled, last)]
        };
        walk(&mut asking(Duration::MAX), &looks(ask(false, 1)));
        walk(&mut asking(Duration::ZERO), &looks(ReplaceStep::Unsettled));
    }

    #[test]
    fn a_request_whose_record_was_forgotten_takes_a_new_number() {
        let steps = [
            (ReplaceAnswer::Granted, ReplaceStep::ReadNewest),
            (ReplaceAnswer::Numbered(token(9)), ReplaceStep::Begin),
            // The lease was lost meanwhile.
            (PASSES, ask(false, 1)),
            (ReplaceAnswer::Granted, ReplaceStep::ReadNewest),
            (newest(9), ReplaceStep::Begin),
        ];
        walk(&mut asking(Duration::MAX), &steps);
    }

    #[test]
    fn what_passes_is_tried_again_within_the_wait_and_nothing_else() {
        let second = Duration::from_secs(1);
        for (wait, trouble, step) in [
            (second, PASSES, ask(false, 1)),
            (second / 2, PASSES, ReplaceStep::Ask { even_if_done: false, wait: second / 2 }),
            (Duration::ZERO, PASSES, ReplaceStep::Fail),
            (second, FAILS, ReplaceStep::Fail),
        ] {
            walk(&mut asking(wait), &[(trouble, step)]);
            walk(&mut asking(wait), &[(ReplaceAnswer::Granted, ReplaceStep::ReadNewest), (trouble, step)]);
            walk(&mut asking(wait), &[(ReplaceAnswer::Refused(None), ReplaceStep::Look), (trouble, step)]);
        }
        // Before it has a number, it has taken nobody's place.
        assert_eq!(Replacing::new(false, Monotonic::FAR).next(PASSES, NOW), ReplaceStep::Fail);
        let mut numbering = Replacing::new(false, Monotonic::FAR);
        walk(&mut numbering, &[(NOT_DONE, ReplaceStep::TakeNumber), (PASSES, ReplaceStep::Fail)]);
    }

    #[test]
    fn a_client_of_another_library_is_not_asked_to_end() {
        let foreign = Runner(None);
        let steps = [(ReplaceAnswer::Refused(Some(foreign)), ReplaceStep::ReadNewest), (newest(5), ReplaceStep::Fail)];
        walk(&mut asking(Duration::MAX), &steps);
    }

    #[test]
    fn an_answer_that_fits_no_question_fails() {
        assert_eq!(asking(Duration::MAX).next(ReplaceAnswer::Ended, NOW), ReplaceStep::Fail);
        let mut over = asking(Duration::MAX);
        walk(&mut over, &[(FAILS, ReplaceStep::Fail), (ReplaceAnswer::Granted, ReplaceStep::Fail)]);
    }
}
