//! One request of the core on its way to a node: which requests to the server it takes, and what their answers make of it.

use alloc::vec::Vec;

use super::face::{HttpResponse, Response};
use super::node::{Kind, Node, RedisHttp};
use crate::Transmit;
use crate::ids::{NodeId, RequestId};
use crate::op::{Denial, DenialKind, Fault, FaultKind, LockOp, Outcome, Refusal, TransportFault};
use crate::time::{Monotonic, Now};
use crate::timers::Entry;
use crate::wire::dynamodb::{self, Repeat};
use crate::wire::redis::{self, of_one_server};
use crate::wire::rest;

const CLUSTER: &str =
    "the server is a node of a Redis Cluster, and the name belongs to another node: name a single server";

/// Far more rounds than any exchange has.
const MOST_ROUNDS: usize = 16;

#[derive(Clone)]
pub(super) struct Flight {
    pub(super) node: NodeId,
    pub(super) deadline: Monotonic,
    pub(super) timer: Entry,
    pub(super) exchange: Exchange,
    /// The requests of this round.
    slots: Vec<Slot>,
    /// The newest credentials that any of them has carried.
    generation: u64,
}

#[derive(Clone)]
pub(super) enum Exchange {
    Operations(Vec<LockOp>),
    Redis(redis::Exchange),
    RedisHttp(redis::Exchange),
    Dynamodb(dynamodb::Exchange),
}

/// One request to the server.
#[derive(Clone)]
enum Slot {
    Open,
    Sent(RequestId),
    Answered(Result<dynamodb::Response, Outcome>),
}

/// What follows from an answer.
pub(super) enum Next {
    /// Other requests of the round are still under way.
    Wait,
    /// Another round.
    Round,
    /// The same again, with credentials other than those of this number.
    Credentials(u64),
    /// The same again, by a clock that shows this, in milliseconds since 1970.
    Clock(u64),
    Done(Result<Vec<Outcome>, TransportFault>),
}

impl Flight {
    /// # Errors
    /// A name or a length that the store does not take.
    pub(super) fn new(transmit: Transmit, node: &Node, now: Now) -> Result<Self, Denial> {
        let Transmit { id, node: to, deadline, ops } = transmit;
        let left = deadline.since(now.monotonic);
        let exchange = match &node.kind {
            Kind::Operations => Exchange::Operations(ops),
            Kind::Redis(session) => Exchange::Redis(session.begin(id, &ops, left, now.unix_ms)?),
            Kind::RedisHttp(http) => {
                let exchange = http.session.begin(id, &ops, left, now.unix_ms)?;
                if exchange.commands().len() != 1 {
                    let detail = "operations that share no command cannot be asked for together over HTTP";
                    return Err(Denial::new(DenialKind::Other, detail));
                }
                Exchange::RedisHttp(exchange)
            }
            Kind::Dynamodb(dynamodb) => Exchange::Dynamodb(dynamodb.session.begin(&ops, node.unix_ms(now))?),
        };
        let mut flight = Self { node: to, deadline, timer: None, exchange, slots: Vec::new(), generation: 0 };
        flight.open();
        Ok(flight)
    }

    /// How many requests this round has.
    pub(super) const fn requests(&self) -> usize {
        self.slots.len()
    }

    /// A request of this round has left.
    pub(super) fn sent(&mut self, index: usize, id: RequestId, generation: u64) {
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = Slot::Sent(id);
        }
        self.generation = self.generation.max(generation);
    }

    /// Requests that have no answer yet.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = RequestId> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Sent(id) => Some(*id),
            Slot::Open | Slot::Answered(_) => None,
        })
    }

    pub(super) const fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn answered(&mut self, index: usize, response: Response, node: &Node) -> Next {
        match &mut self.exchange {
            Exchange::Operations(_) => Next::Done(match response {
                Response::Outcomes(outcomes) => Ok(outcomes),
                Response::Fault(fault) => Err(fault),
                Response::Http(_) | Response::Redis(_) => Err(TransportFault::Unknown(misfit())),
            }),
            Exchange::Redis(exchange) => {
                let answers = match response {
                    Response::Redis(replies) => {
                        replies.into_iter().map(|reply| of_one_server(reply, CLUSTER)).collect()
                    }
                    Response::Fault(fault) => same(exchange, &fault.outcome()),
                    Response::Outcomes(_) | Response::Http(_) => same(exchange, &Outcome::Unknown(misfit())),
                };
                let progress = exchange.answers(answers);
                self.redis(progress)
            }
            Exchange::RedisHttp(exchange) => {
                let answer = match (response, &node.kind) {
                    (Response::Http(response), Kind::RedisHttp(http)) => {
                        judge(http, &response, node.secret()).and_then(|reply| of_one_server(reply, CLUSTER))
                    }
                    (Response::Fault(fault), _) => Err(fault.outcome()),
                    (Response::Outcomes(_) | Response::Http(_) | Response::Redis(_), _) => {
                        Err(Outcome::Unknown(misfit()))
                    }
                };
                let progress = exchange.answers(alloc::vec![answer]);
                self.redis(progress)
            }
            Exchange::Dynamodb(_) => {
                let answer = match response {
                    Response::Http(response) => Ok(dynamodb::Response {
                        status: response.status,
                        date: response.header("date").map(Into::into),
                        body: response.body,
                    }),
                    Response::Fault(fault) => Err(fault.outcome()),
                    Response::Outcomes(_) | Response::Redis(_) => Err(Outcome::Unknown(misfit())),
                };
                if let Some(slot) = self.slots.get_mut(index) {
                    *slot = Slot::Answered(answer);
                }
                let is_answered = |slot: &Slot| matches!(slot, Slot::Answered(_));
                if self.slots.iter().all(is_answered) { self.dynamodb(&unsent("")) } else { Next::Wait }
            }
        }
    }

    /// The deadline has passed: what is known of each operation. `None` if that is nothing. `unsent` is why a request has
    /// not left.
    pub(super) fn expired(mut self, unsent: &Outcome) -> Option<Vec<Outcome>> {
        for _ in 0..MOST_ROUNDS {
            let next = match &mut self.exchange {
                Exchange::Dynamodb(_) => self.dynamodb(unsent),
                Exchange::Redis(exchange) | Exchange::RedisHttp(exchange) => {
                    let answer = match self.slots.first() {
                        Some(Slot::Open) => unsent.clone(),
                        Some(Slot::Sent(_) | Slot::Answered(_)) | None => late(),
                    };
                    let progress = exchange.answers(same(exchange, &answer));
                    self.redis(progress)
                }
                // It was handed out in the moment that it came.
                Exchange::Operations(_) => return None,
            };
            match next {
                Next::Done(result) => return result.ok(),
                Next::Wait | Next::Round | Next::Credentials(_) | Next::Clock(_) => {}
            }
        }
        None
    }

    fn redis(&mut self, progress: redis::Progress) -> Next {
        match progress {
            redis::Progress::Done(outcomes) => Next::Done(Ok(outcomes)),
            redis::Progress::Again => {
                self.open();
                Next::Round
            }
        }
    }

    fn dynamodb(&mut self, unsent: &Outcome) -> Next {
        let Exchange::Dynamodb(exchange) = &mut self.exchange else { return Next::Wait };
        let answers = self.slots.drain(..).map(|slot| match slot {
            Slot::Open => Err(unsent.clone()),
            Slot::Sent(_) => Err(late()),
            Slot::Answered(answer) => answer,
        });
        let next = match exchange.answers(answers.collect()) {
            dynamodb::Progress::Done(outcomes) => return Next::Done(Ok(outcomes)),
            dynamodb::Progress::Again => Next::Round,
            dynamodb::Progress::Repeat(Repeat::FreshCredentials) => Next::Credentials(self.generation),
            dynamodb::Progress::Repeat(Repeat::ServerTime(shown)) => Next::Clock(shown),
        };
        self.open();
        next
    }

    /// Begins a round.
    fn open(&mut self) {
        let count = match &self.exchange {
            Exchange::Operations(_) | Exchange::Redis(_) | Exchange::RedisHttp(_) => 1,
            Exchange::Dynamodb(exchange) => exchange.requests().len(),
        };
        self.slots = (0..count).map(|_| Slot::Open).collect();
    }
}

fn judge(http: &RedisHttp, response: &HttpResponse, secret: Option<&str>) -> Result<crate::wire::resp::Value, Outcome> {
    let head = rest::Head {
        status: response.status,
        content_type: response.header("content-type"),
        location: response.header("location"),
    };
    rest::judge(http.dialect, &head, &response.body, secret)
}

fn same(exchange: &redis::Exchange, outcome: &Outcome) -> Vec<Result<crate::wire::resp::Value, Outcome>> {
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
