//! One request of the core on its way: rounds of requests to a server, answers to all of them, and outcomes at the end.

use alloc::vec::Vec;

use leasehold_core::op::{Fault, FaultKind, Outcome};

/// A request of the core to one server, in as many rounds as it takes. Drop it and its operations are
/// [`Outcome::Unknown`], unless nothing was sent that may write.
pub trait Exchange {
    /// A request to the server.
    type Ask;
    /// An answer of the server.
    type Heard;
    /// The memory of the server from one exchange to the next. Keep one for each server.
    type Memory: Default;

    /// The requests of this round. They may be sent in any order and at the same time, unless the exchange says otherwise.
    fn requests(&self) -> &[Self::Ask];

    /// Takes the answers to [`requests`](Self::requests), in their order, one for each. Another number of them says nothing
    /// of any operation.
    ///
    /// In the place of an answer that never came stands what is known of its request: [`Outcome::NotApplied`] if it
    /// certainly never left, and else [`Outcome::Unknown`]; see
    /// [`TransportFault::outcome`](leasehold_core::op::TransportFault::outcome).
    fn answers(&mut self, memory: &mut Self::Memory, answers: Vec<Result<Self::Heard, Outcome>>) -> Progress;

    /// Takes the server's clock, in milliseconds since 1970, which was shown because the sender's is wrong. Requests of this
    /// round that tell the time tell this one from now on.
    fn set_clock(&mut self, _unix_ms: u64) {}
}

/// Where an exchange stands after answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Progress {
    /// The outcome of each operation, in their order.
    Done(Vec<Outcome>),
    /// Send the requests of the exchange: they have changed.
    Again,
}

/// Something to do before the same request is sent once more. It was certainly not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repeat {
    /// Find other credentials than those that were refused.
    FreshCredentials,
    /// Sign with a clock that is set by the server's, which showed this when it answered, in milliseconds since 1970, and
    /// tell it to the exchange by [`Exchange::set_clock`]. Exchanges that begin later want that clock as well. It is good for
    /// signatures, for floors of tokens and for what people read; leases go by the monotonic clock.
    ServerTime(u64),
}

/// The repeats of one request in one round: one for each reason, so that a server that refuses all credentials and all
/// clocks is soon left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Repeats {
    has_other_credentials: bool,
    has_server_time: bool,
}

impl Repeats {
    /// Counts a repeat. Returns true if it was the first for this reason.
    pub const fn allow(&mut self, repeat: Repeat) -> bool {
        let done = match repeat {
            Repeat::FreshCredentials => &mut self.has_other_credentials,
            Repeat::ServerTime(_) => &mut self.has_server_time,
        };
        !core::mem::replace(done, true)
    }
}

/// The requests under way, the operations that each carries, and the outcomes so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Round<R, L = usize> {
    requests: Vec<R>,
    /// For each request.
    open: Vec<L>,
    outcomes: Vec<Option<Outcome>>,
}

impl<R, L> Round<R, L> {
    pub(crate) fn new(operations: usize) -> Self {
        let outcomes = (0..operations).map(|_| None).collect();
        Self { requests: Vec::with_capacity(operations), open: Vec::with_capacity(operations), outcomes }
    }

    pub(crate) fn ask(&mut self, of: L, request: R) {
        self.open.push(of);
        self.requests.push(request);
    }

    pub(crate) fn requests(&self) -> &[R] {
        &self.requests
    }

    pub(crate) fn open(&mut self) -> impl Iterator<Item = (&L, &mut R)> {
        self.open.iter().zip(&mut self.requests)
    }

    /// Ends the round: each request's operations, and its answer.
    pub(crate) fn take<H>(&mut self, answers: Vec<Result<H, Outcome>>) -> Vec<(L, Result<H, Outcome>)> {
        self.requests.clear();
        let open = core::mem::take(&mut self.open);
        if answers.len() == open.len() {
            return open.into_iter().zip(answers).collect();
        }
        open.into_iter().map(|of| (of, Err(odd()))).collect()
    }

    pub(crate) fn done(&mut self, at: usize, outcome: Outcome) {
        if let Some(place) = self.outcomes.get_mut(at) {
            *place = Some(outcome);
        }
    }

    pub(crate) fn progress(&mut self) -> Progress {
        if !self.open.is_empty() {
            return Progress::Again;
        }
        Progress::Done(self.outcomes.drain(..).map(|outcome| outcome.unwrap_or_else(odd)).collect())
    }
}

fn odd() -> Outcome {
    Outcome::Unknown(Fault::new(FaultKind::Protocol, "another number of answers than requests"))
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use leasehold_core::op::{Applied, Refusal};

    use super::*;

    fn released() -> Outcome {
        Outcome::Applied(Applied::Released)
    }

    #[test]
    fn answers_belong_to_the_requests_in_their_order() {
        let mut round = Round::<&str, Vec<usize>>::new(3);
        round.ask(vec![2, 0], "together");
        round.ask(vec![1], "alone");
        assert_eq!(round.requests(), ["together", "alone"]);
        let refused = Outcome::NotApplied(Refusal::Throttled(Fault::of(FaultKind::Busy)));
        let taken = round.take(vec![Ok("yes"), Err(refused.clone())]);
        assert_eq!(taken, [(vec![2, 0], Ok("yes")), (vec![1], Err(refused.clone()))]);
        round.done(1, refused.clone());
        round.ask(vec![0], "once more");
        round.done(2, released());
        assert_eq!((round.progress(), round.requests()), (Progress::Again, &["once more"][..]));
        round.take(vec![Ok("yes")]);
        round.done(0, released());
        assert_eq!(round.progress(), Progress::Done(vec![released(), refused, released()]));
    }

    #[test]
    fn another_number_of_answers_is_none() {
        for answers in [vec![], vec![Ok(1)], vec![Ok(1), Ok(2), Ok(3)]] {
            let mut round = Round::<&str>::new(2);
            round.ask(0, "first");
            round.ask(1, "second");
            let taken = round.take(answers);
            assert!(
                taken.iter().all(
                    |(_, answer)| matches!(answer, Err(Outcome::Unknown(fault)) if fault.kind == FaultKind::Protocol)
                ),
                "{taken:?}"
            );
            assert_eq!(taken.len(), 2);
        }
    }

    #[test]
    fn a_request_is_repeated_once_for_each_reason() {
        let mut repeats = Repeats::default();
        assert!(repeats.allow(Repeat::ServerTime(1)) && repeats.allow(Repeat::FreshCredentials));
        assert!(!repeats.allow(Repeat::ServerTime(2)) && !repeats.allow(Repeat::FreshCredentials));
    }
}
