//! One request of the core on its way to a node: which requests to the server it takes, and what their answers make of it.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::face::{HttpResponse, Response};
use super::keys::Carried;
use super::node::{Kind, Node, RedisHttp, pair};
use super::objects::Offered;
use super::store::Credentials;
use crate::redis::{self, of_one_server, refuses_credentials};
use crate::resp::Value;
use crate::{dynamodb, etcd, objects, rest};
use leasehold_core::Transmit;
use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, LockOp, Outcome, Refusal, TransportFault};
use leasehold_core::time::{Monotonic, Now};
use leasehold_core::timers::Entry;
use leasehold_core::{NodeId, OneOrMany, RequestId};

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
    /// Set once a round was repeated because newer credentials had come.
    repeated: bool,
    /// The requests of this round that were sent once more.
    sent_again: BTreeSet<usize>,
}

#[derive(Clone)]
pub(super) enum Exchange {
    Operations(OneOrMany<LockOp>),
    Redis(redis::Exchange),
    RedisHttp(redis::Exchange),
    Dynamodb(dynamodb::Exchange),
    Etcd(etcd::Exchange),
    Objects(objects::Exchange, Offered),
}

/// One request to the server.
#[derive(Clone)]
enum Slot {
    Open,
    Sent { id: RequestId, carried: Option<Carried> },
    Answered(Result<HttpResponse, Outcome>),
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
            Kind::Etcd(etcd) => Exchange::Etcd(etcd.session.begin(&etcd.memory, &ops, now.unix_ms)),
            Kind::Objects(objects) => {
                let exchange = objects.session.begin(&objects.memory, &ops, node.unix_ms(now));
                Exchange::Objects(exchange, objects.offered)
            }
        };
        let (slots, sent_again) = (Vec::new(), BTreeSet::new());
        let mut flight = Self { node: to, deadline, timer: None, exchange, slots, repeated: false, sent_again };
        flight.open();
        Ok(flight)
    }

    /// How many requests this round has.
    pub(super) const fn requests(&self) -> usize {
        self.slots.len()
    }

    /// A request of this round has left.
    pub(super) fn sent(&mut self, index: usize, id: RequestId, carried: Option<Carried>) {
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = Slot::Sent { id, carried };
        }
    }

    /// Requests that have no answer yet.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = RequestId> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Sent { id, .. } => Some(*id),
            Slot::Open | Slot::Answered(_) => None,
        })
    }

    pub(super) fn answered(&mut self, index: usize, response: Response, node: &mut Node, now: Now) -> Next {
        let carried = match self.slots.get(index) {
            Some(Slot::Sent { carried, .. }) => carried.clone(),
            Some(Slot::Open | Slot::Answered(_)) | None => None,
        };
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
                        let reply = judge(http, &response, carried.as_ref());
                        if let Some(carried) = carried.filter(|_| is_refusal(response.status, &reply)) {
                            if node.keys.replace(&carried) && !self.repeated {
                                self.repeated = true;
                                self.open();
                                return Next::Round;
                            }
                            node.keys.doubt(carried.generation);
                        }
                        reply.and_then(|reply| of_one_server(reply, CLUSTER))
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
                let answer = over_http(response);
                // At once, while it is known which credentials were judged, and when the clock showed that.
                if let Ok(response) = &answer {
                    node.learn(response, carried.as_ref(), now);
                }
                if self.is_last(index, answer) { self.dynamodb(&unsent("")) } else { Next::Wait }
            }
            Exchange::Etcd(_) => {
                let answer = over_http(response);
                if let (Ok(response), Some(carried)) = (&answer, &carried)
                    && response.status != 200
                    && matches!(
                        etcd::classify(&response.clone().into()),
                        Outcome::NotApplied(Refusal::NeedsCredentials(_))
                    )
                {
                    if node.keys.replace(carried) && !self.repeated && self.slots.len() == 1 {
                        self.repeated = true;
                        self.open();
                        return Next::Round;
                    }
                    node.keys.doubt(carried.generation);
                }
                match (self.is_last(index, answer), &mut node.kind) {
                    (true, Kind::Etcd(etcd)) => self.etcd(&mut etcd.memory, &unsent("")),
                    _ => Next::Wait,
                }
            }
            Exchange::Objects(..) => {
                let answer = over_http(response);
                if let Ok(response) = &answer
                    && node.learn_of_object(response, carried.as_ref(), now)
                    && self.sent_again.insert(index)
                    && let Some(slot) = self.slots.get_mut(index)
                {
                    *slot = Slot::Open;
                    return Next::Again;
                }
                match (self.is_last(index, answer), &mut node.kind) {
                    (true, Kind::Objects(objects)) => self.objects(&mut objects.memory, &unsent("")),
                    _ => Next::Wait,
                }
            }
        }
    }

    /// Takes an answer. Returns true if no other request of the round is under way.
    fn is_last(&mut self, index: usize, answer: Result<HttpResponse, Outcome>) -> bool {
        if let Some(slot) = self.slots.get_mut(index) {
            *slot = Slot::Answered(answer);
        }
        self.slots.iter().all(|slot| matches!(slot, Slot::Answered(_)))
    }

    /// The answers of the round, and what is known of requests without one.
    fn taken(&mut self, unsent: &Outcome) -> Vec<Result<HttpResponse, Outcome>> {
        let taken = self.slots.drain(..).map(|slot| match slot {
            Slot::Open => Err(unsent.clone()),
            Slot::Sent { .. } => Err(late()),
            Slot::Answered(answer) => answer,
        });
        taken.collect()
    }

    /// The deadline has passed: what is known of each operation. `None` if that is nothing. `unsent` is why a request has
    /// not left.
    pub(super) fn expired(mut self, unsent: &Outcome) -> Option<Vec<Outcome>> {
        for _ in 0..MOST_ROUNDS {
            let next = match &mut self.exchange {
                Exchange::Dynamodb(_) => self.dynamodb(unsent),
                // What is remembered of the node stays: the next write compares it.
                Exchange::Etcd(_) => self.etcd(&mut etcd::Memory::default(), unsent),
                Exchange::Objects(..) => self.objects(&mut objects::Memory::default(), unsent),
                Exchange::Redis(exchange) | Exchange::RedisHttp(exchange) => {
                    let answer = match self.slots.first() {
                        Some(Slot::Open) => unsent.clone(),
                        Some(Slot::Sent { .. } | Slot::Answered(_)) | None => late(),
                    };
                    let progress = exchange.answers(same(exchange, &answer));
                    self.redis(progress)
                }
                // It was handed out in the moment that it came.
                Exchange::Operations(_) => return None,
            };
            match next {
                Next::Done(result) => return result.ok(),
                Next::Wait | Next::Again | Next::Round => {}
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
        let answers = self.taken(unsent).into_iter().map(|answer| answer.map(Into::into)).collect();
        let Exchange::Dynamodb(exchange) = &mut self.exchange else { return Next::Wait };
        match exchange.answers(answers) {
            dynamodb::Progress::Done(outcomes) => Next::Done(Ok(outcomes)),
            // What to repeat it with, the node has learnt when the answer came.
            dynamodb::Progress::Again | dynamodb::Progress::Repeat(_) => {
                self.open();
                Next::Round
            }
        }
    }

    fn etcd(&mut self, memory: &mut etcd::Memory, unsent: &Outcome) -> Next {
        let answers = self.taken(unsent).into_iter().map(|answer| answer.map(Into::into)).collect();
        let Exchange::Etcd(exchange) = &mut self.exchange else { return Next::Wait };
        match exchange.answers(memory, answers) {
            etcd::Progress::Done(outcomes) => Next::Done(Ok(outcomes)),
            etcd::Progress::Again => {
                self.open();
                Next::Round
            }
        }
    }

    fn objects(&mut self, memory: &mut objects::Memory, unsent: &Outcome) -> Next {
        let answers = self.taken(unsent).into_iter().map(|answer| answer.map(super::objects::response)).collect();
        let Exchange::Objects(exchange, _) = &mut self.exchange else { return Next::Wait };
        match exchange.answers(memory, answers) {
            objects::Progress::Done(outcomes) => Next::Done(Ok(outcomes)),
            objects::Progress::Again => {
                self.open();
                Next::Round
            }
        }
    }

    /// Begins a round.
    fn open(&mut self) {
        let count = match &self.exchange {
            Exchange::Operations(_) | Exchange::Redis(_) | Exchange::RedisHttp(_) => 1,
            Exchange::Dynamodb(exchange) => exchange.requests().len(),
            Exchange::Etcd(exchange) => exchange.requests().len(),
            Exchange::Objects(exchange, _) => exchange.requests().len(),
        };
        self.sent_again.clear();
        self.slots = (0..count).map(|_| Slot::Open).collect();
    }
}

impl From<HttpResponse> for dynamodb::Response {
    fn from(response: HttpResponse) -> Self {
        Self { status: response.status, date: response.header("date").map(Into::into), body: response.body }
    }
}

impl From<HttpResponse> for etcd::Response {
    fn from(HttpResponse { status, body, .. }: HttpResponse) -> Self {
        Self { status, body }
    }
}

fn over_http(response: Response) -> Result<HttpResponse, Outcome> {
    match response {
        Response::Http(response) => Ok(response),
        Response::Fault(fault) => Err(fault.outcome()),
        Response::Outcomes(_) | Response::Redis(_) => Err(Outcome::Unknown(misfit())),
    }
}

fn judge(http: &RedisHttp, response: &HttpResponse, carried: Option<&Carried>) -> Result<Value, Outcome> {
    let head = rest::Head {
        status: response.status,
        content_type: response.header("content-type"),
        location: response.header("location"),
    };
    let judge = |secrets: &[&str]| rest::judge_without(http.dialect, &head, &response.body, secrets);
    match carried.map(|carried| &*carried.credentials) {
        Some(Credentials::Token(bearer)) => judge(&[&bearer.token]),
        Some(Credentials::Password(login)) => judge(&[&login.password, &pair(login)]),
        Some(Credentials::Aws(_) | Credentials::AccountKey(_) | Credentials::AccessSignature(_)) | None => judge(&[]),
    }
}

/// Returns true if the server rejects the credentials or their rights: nothing was done then.
fn is_refusal(status: u16, reply: &Result<Value, Outcome>) -> bool {
    match reply {
        Ok(reply) => reply.as_error().is_some_and(refuses_credentials),
        Err(_) => matches!(status, 401 | 403),
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
