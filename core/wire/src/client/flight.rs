//! One request of the core on its way to a node: which requests to the server it takes, and what their answers make of it.

use alloc::vec::Vec;

use super::face::Response;
use super::keys::{Carried, Keys, ServerClock};
use super::node::{Kind, Node};
use super::objects::Offered;
use super::postgres;
use super::web::{self, CLUSTER, Web, Written, given};
use crate::exchange::{Exchange as _, Progress, Repeat, Repeats};
use crate::http::HttpResponse;
use crate::postgres::Statement;
use crate::redis::{self, of_one_server};
use crate::resp::Value;
use crate::{dynamodb, etcd, objects, rest};
use leasehold_core::Transmit;
use leasehold_core::op::{Denial, Fault, FaultKind, LockOp, Outcome, Refusal, TransportFault};
use leasehold_core::time::{Monotonic, Now};
use leasehold_core::timers::Entry;
use leasehold_core::{NodeId, OneOrMany, RequestId};

/// Far more rounds than any exchange has.
const MOST_ROUNDS: usize = 16;

#[derive(Clone)]
pub(super) struct Flight {
    pub(super) node: NodeId,
    pub(super) deadline: Monotonic,
    pub(super) timer: Entry,
    pub(super) exchange: Exchange,
    round: Round,
}

#[derive(Clone)]
pub(super) enum Exchange {
    Operations(OneOrMany<LockOp>),
    Redis(redis::Exchange),
    RedisHttp(redis::Exchange),
    Dynamodb(dynamodb::Exchange),
    Etcd(etcd::Exchange),
    Objects(objects::Exchange, Offered),
    Postgres(crate::postgres::Exchange, postgres::Offered),
    /// A statement after an exchange, whose answer does not matter.
    Afterwards(Statement, postgres::Offered),
}

/// Does the same for every store behind HTTP.
macro_rules! over_http {
    (($exchange:expr, $kind:expr), |$of:ident, $web:ident| $all:expr, else $other:expr) => {
        match ($exchange, $kind) {
            (Exchange::RedisHttp($of), Kind::RedisHttp($web)) => $all,
            (Exchange::Dynamodb($of), Kind::Dynamodb($web)) => $all,
            (Exchange::Etcd($of), Kind::Etcd($web)) => $all,
            (Exchange::Objects($of, _), Kind::Objects($web)) => $all,
            _ => $other,
        }
    };
}

/// The requests of a round.
#[derive(Clone)]
struct Round(Vec<Slot>);

/// One request to the server.
#[derive(Clone)]
struct Slot {
    state: State,
    repeats: Repeats,
}

#[derive(Clone)]
enum State {
    Open,
    Sent { id: RequestId, carried: Option<Carried> },
    Answered(Result<HttpResponse, Outcome>, Option<Carried>),
}

/// The next step after an answer.
pub(super) enum Next {
    /// Other requests of the round are still under way.
    Wait,
    /// The same request once more.
    Again,
    /// Another round.
    Round,
    Done(Result<Vec<Outcome>, TransportFault>),
    /// The core does not wait for it.
    Over,
}

impl Flight {
    /// # Errors
    /// A name or a length that the store does not take.
    pub(super) fn new(transmit: Transmit, node: &Node, now: Now) -> Result<Self, Denial> {
        let Transmit { id, node: to, deadline, ops } = transmit;
        let left = deadline.since(now.monotonic);
        let unix_ms = node.clock.unix_ms(now);
        let exchange = match &node.kind {
            Kind::Operations => Exchange::Operations(ops),
            Kind::Redis(session) => Exchange::Redis(session.begin(id, &ops, left, now.unix_ms)?),
            Kind::RedisHttp(http) => Exchange::RedisHttp(rest::only_one(http.codec.begin(id, &ops, left, unix_ms)?)?),
            Kind::Dynamodb(dynamodb) => Exchange::Dynamodb(dynamodb.codec.begin(&ops, unix_ms)?),
            Kind::Etcd(etcd) => Exchange::Etcd(etcd.codec.begin(&etcd.memory, &ops, unix_ms)),
            Kind::Objects(objects) => {
                Exchange::Objects(objects.codec.begin(&objects.memory, &ops, unix_ms), objects.offered)
            }
            Kind::Postgres(postgres) => Exchange::Postgres(postgres.codec.begin(&ops, left), postgres.offered),
        };
        let round = Round::of(exchange.requests());
        Ok(Self { node: to, deadline, timer: None, exchange, round })
    }

    /// The statement that follows, once the outcomes are told.
    pub(super) fn afterwards(mut self) -> Option<Self> {
        let Exchange::Postgres(exchange, offered) = &mut self.exchange else { return None };
        let exchange = Exchange::Afterwards(exchange.afterwards()?, *offered);
        Some(Self { exchange, round: Round::of(1), timer: None, ..self })
    }

    /// The statement of this round, if it is one.
    pub(super) const fn statement(&self) -> Option<&Statement> {
        match &self.exchange {
            Exchange::Postgres(exchange, _) => Some(exchange.statement()),
            Exchange::Afterwards(statement, _) => Some(statement),
            Exchange::Operations(_)
            | Exchange::Redis(_)
            | Exchange::RedisHttp(_)
            | Exchange::Dynamodb(_)
            | Exchange::Etcd(_)
            | Exchange::Objects(..) => None,
        }
    }

    /// How many requests this round has.
    pub(super) const fn requests(&self) -> usize {
        self.round.0.len()
    }

    /// A request of this round as it leaves, if it leaves over HTTP; `None` where it has to wait.
    pub(super) fn write(&self, index: usize, node: &mut Node, now: Now) -> Option<(Written, Option<Carried>)> {
        let Node { kind, keys, clock, .. } = node;
        over_http!(
            (&self.exchange, kind),
            |exchange, web| web::write(web, exchange.requests().get(index)?, keys, clock, now),
            else None
        )
    }

    /// A request of this round has left.
    pub(super) fn sent(&mut self, index: usize, id: RequestId, carried: Option<Carried>) {
        if let Some(slot) = self.round.0.get_mut(index) {
            slot.state = State::Sent { id, carried };
        }
    }

    /// Requests that have no answer yet.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = RequestId> {
        self.round.0.iter().filter_map(|slot| match slot.state {
            State::Sent { id, .. } => Some(id),
            State::Open | State::Answered(..) => None,
        })
    }

    pub(super) fn answered(&mut self, index: usize, response: Response, node: &mut Node, now: Now) -> Next {
        let Self { exchange, round, .. } = self;
        match exchange {
            Exchange::Operations(_) => Next::Done(match response {
                Response::Outcomes(outcomes) => Ok(outcomes),
                Response::Fault(fault) => Err(fault),
                Response::Http(_) | Response::Redis(_) | Response::Postgres(_) => {
                    Err(TransportFault::Unknown(misfit()))
                }
            }),
            Exchange::Redis(exchange) => {
                let answers = match response {
                    Response::Redis(replies) => {
                        replies.into_iter().map(|reply| of_one_server(reply, CLUSTER)).collect()
                    }
                    Response::Fault(fault) => same(exchange, &fault.outcome()),
                    Response::Outcomes(_) | Response::Http(_) | Response::Postgres(_) => {
                        same(exchange, &Outcome::Unknown(misfit()))
                    }
                };
                let progress = exchange.answers(&mut (), answers);
                round.next(progress, 1)
            }
            Exchange::Postgres(exchange, _) => {
                let answer = match response {
                    Response::Postgres(answer) => answer,
                    Response::Fault(fault) => Err(fault.outcome()),
                    Response::Outcomes(_) | Response::Http(_) | Response::Redis(_) => Err(Outcome::Unknown(misfit())),
                };
                let progress = exchange.answer(answer);
                round.next(progress, 1)
            }
            Exchange::Afterwards(..) => Next::Over,
            Exchange::RedisHttp(_) | Exchange::Dynamodb(_) | Exchange::Etcd(_) | Exchange::Objects(..) => {
                let answer = match response {
                    Response::Http(response) => Ok(response),
                    Response::Fault(fault) => Err(fault.outcome()),
                    Response::Outcomes(_) | Response::Redis(_) | Response::Postgres(_) => {
                        Err(Outcome::Unknown(misfit()))
                    }
                };
                let Node { kind, keys, clock, .. } = node;
                over_http!(
                    (exchange, kind),
                    |exchange, web| round.answered(index, answer, exchange, web, (keys, clock), now),
                    else Next::Wait
                )
            }
        }
    }

    /// The deadline has passed: what is known of each operation. `None` if that is nothing. `unsent` is why a request has
    /// not left.
    pub(super) fn expired(mut self, node: &mut Node, unsent: &Outcome) -> Option<Vec<Outcome>> {
        let Self { exchange, round, .. } = &mut self;
        for _ in 0..MOST_ROUNDS {
            let next = match (&mut *exchange, &mut node.kind) {
                // It was handed out in the moment that it came, or nobody waits for it.
                (Exchange::Operations(_) | Exchange::Afterwards(..), _) => return None,
                (Exchange::Postgres(exchange, _), _) => {
                    let progress = exchange.answer(Err(round.without_answer(unsent)));
                    round.next(progress, 1)
                }
                (Exchange::Redis(exchange), _) => {
                    let answer = round.without_answer(unsent);
                    let progress = exchange.answers(&mut (), same(exchange, &answer));
                    round.next(progress, 1)
                }
                (exchange, kind) => over_http!(
                    (exchange, kind),
                    // The memory of the node stays: the next write compares it.
                    |exchange, web| round.ended(exchange, web, Some(&mut Default::default()), unsent),
                    else return None
                ),
            };
            match next {
                Next::Done(result) => return result.ok(),
                Next::Wait | Next::Again | Next::Round | Next::Over => {}
            }
        }
        None
    }
}

impl Exchange {
    /// How many requests a host sends for this round.
    fn requests(&self) -> usize {
        match self {
            Self::Operations(_) | Self::Redis(_) | Self::RedisHttp(_) | Self::Postgres(..) | Self::Afterwards(..) => 1,
            Self::Dynamodb(exchange) => exchange.requests().len(),
            Self::Etcd(exchange) => exchange.requests().len(),
            Self::Objects(exchange, _) => exchange.requests().len(),
        }
    }
}

impl Round {
    fn of(requests: usize) -> Self {
        Self((0..requests).map(|_| Slot { state: State::Open, repeats: Repeats::default() }).collect())
    }

    /// The outcome of its only request, which has no answer.
    fn without_answer(&self, unsent: &Outcome) -> Outcome {
        match self.0.first().map(|slot| &slot.state) {
            Some(State::Open) => unsent.clone(),
            Some(State::Sent { .. } | State::Answered(..)) | None => late(),
        }
    }

    fn answered<W: Web>(
        &mut self,
        index: usize,
        answer: Result<HttpResponse, Outcome>,
        exchange: &mut W::Exchange,
        web: &mut W,
        (keys, clock): (&mut Keys, &mut ServerClock),
        now: Now,
    ) -> Next {
        let Some(slot) = self.0.get_mut(index) else { return Next::Wait };
        let carried = match core::mem::replace(&mut slot.state, State::Open) {
            State::Sent { carried, .. } => carried,
            State::Open | State::Answered(..) => None,
        };
        // At once, while it is known which credentials were judged, and when the clock showed that.
        if let Ok(response) = &answer
            && let Some(repeat) = web::learn(web, response, carried.as_ref(), keys, clock, now)
            && slot.repeats.allow(repeat)
        {
            if let Repeat::ServerTime(unix_ms) = repeat {
                exchange.set_clock(unix_ms);
            }
            return Next::Again;
        }
        slot.state = State::Answered(answer, carried);
        if self.0.iter().any(|slot| !matches!(slot.state, State::Answered(..))) {
            return Next::Wait;
        }
        self.ended(exchange, web, None, &unsent(""))
    }

    /// Hands over the answers of the round, and what is known of requests without one.
    fn ended<W: Web>(
        &mut self,
        exchange: &mut W::Exchange,
        web: &mut W,
        memory: Option<&mut web::Memory<W>>,
        unsent: &Outcome,
    ) -> Next {
        let answers = self.0.drain(..).map(|slot| match slot.state {
            State::Open => Err(unsent.clone()),
            State::Sent { .. } => Err(late()),
            State::Answered(answer, carried) => answer.and_then(|response| web.read(response, given(carried.as_ref()))),
        });
        let answers = answers.collect();
        let progress = exchange.answers(memory.unwrap_or_else(|| web.memory()), answers);
        self.next(progress, exchange.requests().len())
    }

    fn next(&mut self, progress: Progress, requests: usize) -> Next {
        match progress {
            Progress::Done(outcomes) => Next::Done(Ok(outcomes)),
            Progress::Again => {
                *self = Self::of(requests);
                Next::Round
            }
        }
    }
}

fn same(exchange: &redis::Exchange, outcome: &Outcome) -> Vec<Result<Value, Outcome>> {
    exchange.commands().iter().map(|_| Err(outcome.clone())).collect()
}

fn misfit() -> Fault {
    Fault::new(FaultKind::Protocol, "an answer of another kind than was asked for")
}

fn late() -> Outcome {
    Outcome::Unknown(Fault::of(FaultKind::Timeout))
}

/// Nothing has left, for this reason.
pub(super) fn unsent(why: &str) -> Outcome {
    Outcome::NotApplied(Refusal::Unavailable(Fault::new(FaultKind::Timeout, why)))
}
