//! The ledger: what the services have told of their work, and what the clients were answered.

use std::collections::{BTreeMap, BTreeSet};

use leasehold_servers::http::Response;

use super::client::Order;

/// The ledger of one service.
pub struct Board {
    keys: Vec<Key>,
    /// By their receipts.
    works: BTreeMap<String, Work>,
    /// The number of processes so far.
    processes: usize,
    /// Those that stand still.
    stopped: BTreeSet<usize>,
    /// True where an answer may not be settled yet, as on a quorum.
    is_quorum: bool,
    counts: Counts,
}

/// The work of one request: from its handler's first line to the answer.
#[derive(Debug)]
struct Work {
    key: usize,
    eur: u64,
    process: usize,
    has_effect: bool,
    /// Its process was killed or stopped before it ended.
    is_struck: bool,
    /// The status of its answer.
    ended: Option<u16>,
}

#[derive(Default)]
struct Key {
    /// The first answer that work was done, and the sum that was asked for.
    answer: Option<(Answer, u64)>,
}

/// The parts of an answer that have to be the same for all requests with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    content_type: Option<String>,
    receipt: Option<String>,
    body: Vec<u8>,
}

/// The amounts, and all that must not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub keys: u64,
    /// Answers 201 from the work itself, and replayed ones.
    pub first: u64,
    pub replayed: u64,
    /// Answers 409, 422, 503 and 500.
    pub busy: u64,
    pub refused: u64,
    pub uncertain: u64,
    pub failed: u64,
    /// Requests without an answer: refused, reset, or given up.
    pub cut: u64,
    pub kills: u64,
    pub stops: u64,
    /// Works that had their effect, and keys with more than one of them.
    pub effects: u64,
    pub twice: u64,
    /// Effects besides the one that is answered, of works whose process was killed or stopped, and of those that were answered
    /// that nothing is certain.
    pub struck: u64,
    pub late: u64,
    /// Keys with a completion in the store.
    pub marked: u64,
    /// Broken promises.
    pub faults: Vec<String>,
}

impl Board {
    /// A ledger of that many keys.
    pub fn new(keys: u64, is_quorum: bool) -> Self {
        let mut all = Vec::new();
        all.resize_with(usize::try_from(keys).unwrap_or_default(), Key::default);
        let counts = Counts { keys, ..Counts::default() };
        Self { keys: all, works: BTreeMap::new(), processes: 0, stopped: BTreeSet::new(), is_quorum, counts }
    }

    /// The number of a process that starts.
    pub fn open(&mut self) -> usize {
        self.processes += 1;
        self.processes
    }

    /// Takes a line of a process: a work has `begun`, had its `effect`, has `ended`.
    pub fn hear(&mut self, process: usize, line: &str) {
        if self.take(process, line).is_none() {
            self.fault(format!("a service told: {line}"));
        }
    }

    fn take(&mut self, process: usize, line: &str) -> Option<()> {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["begun", key, eur, receipt] => {
                let key = key.parse::<usize>().ok().filter(|key| *key < self.keys.len())?;
                let is_struck = self.stopped.contains(&process);
                let work = Work { key, eur: eur.parse().ok()?, process, has_effect: false, is_struck, ended: None };
                self.works.insert(receipt.to_owned(), work).is_none().then_some(())
            }
            ["effect", receipt] => {
                let work = self.works.get_mut(receipt)?;
                (!std::mem::replace(&mut work.has_effect, true)).then_some(())
            }
            ["ended", receipt, status] => {
                self.works.get_mut(receipt)?.ended.replace(status.parse().ok()?).is_none().then_some(())
            }
            _ => None,
        }
    }

    /// Notes that a process is about to be stopped.
    pub fn stop(&mut self, process: usize) {
        self.counts.stops += 1;
        self.stopped.insert(process);
        self.strike(process);
    }

    /// Notes that a process goes on.
    pub fn go_on(&mut self, process: usize) {
        self.stopped.remove(&process);
    }

    /// Notes that a process was killed, and its last line heard.
    pub fn kill(&mut self, process: usize) {
        self.counts.kills += 1;
        self.end(process);
    }

    /// Notes that a process was killed when all was over.
    pub fn end(&mut self, process: usize) {
        self.stopped.remove(&process);
        self.strike(process);
    }

    fn strike(&mut self, process: usize) {
        let hit = self.works.values_mut().filter(|work| work.process == process && work.ended.is_none());
        hit.for_each(|work| work.is_struck = true);
    }

    /// True once a client was answered that the work of a key is done.
    pub fn is_done(&self, key: usize) -> bool {
        self.keys[key].answer.is_some()
    }

    /// Notes a request without an answer.
    pub fn cut(&mut self) {
        self.counts.cut += 1;
    }

    /// Notes a promise that was broken.
    pub fn fault(&mut self, what: String) {
        self.counts.faults.push(what);
    }

    /// Takes the answer of a process. `was_done` is the word of [`Board::is_done`] from before the request was sent. True if the
    /// client has what it wants.
    pub fn answered(&mut self, order: Order, process: usize, was_done: bool, response: &Response) -> bool {
        let Order { key, eur } = order;
        let fault = match response.status {
            201 => self.take_answer(order, response),
            422 => {
                self.counts.refused += 1;
                let won = self.keys[key].answer.as_ref().is_some_and(|(_, won)| *won == eur);
                (was_done && won).then(|| "answered 422 to the request that was done".to_owned())
            }
            409 => {
                self.counts.busy += 1;
                let is_late = was_done && !self.is_quorum;
                let is_wrong = is_late || response.header("retry-after").is_none();
                is_wrong.then(|| format!("answered 409: {}", response.text()))
            }
            503 => {
                self.counts.uncertain += 1;
                response.header("retry-after").is_none().then(|| format!("answered 503: {}", response.text()))
            }
            500 if response.header("x-receipt").is_some() => {
                self.counts.failed += 1;
                was_done.then(|| "was worked at after it was done".to_owned())
            }
            status => Some(format!("answered {status}: {}", response.text())),
        };
        if let Some(what) = fault {
            let works: Vec<_> = self.works.iter().filter(|(_, work)| work.key == key).collect();
            let what = format!("key {key}: process {process} {what}; its works until then: {works:?}");
            self.fault(what);
        }
        // While the other one is at work, it may still die, and leave the key to this one.
        response.status == 201 || response.status == 422 && self.is_done(key)
    }

    fn take_answer(&mut self, Order { key, eur }: Order, response: &Response) -> Option<String> {
        let header = |name: &str| response.header(name).map(str::to_owned);
        let answer = Answer {
            status: response.status,
            content_type: header("content-type"),
            receipt: header("x-receipt"),
            body: response.body.clone(),
        };
        match response.header("idempotency-replayed") {
            Some(_) => self.counts.replayed += 1,
            None => self.counts.first += 1,
        }
        match &self.keys[key].answer {
            None => {
                self.keys[key].answer = Some((answer, eur));
                None
            }
            Some((_, won)) if *won != eur => Some(format!("answered 201 to both {won} and {eur}")),
            Some((first, _)) if *first != answer => Some(format!("answered {first:?}, and then {answer:?}")),
            Some(_) => None,
        }
    }

    /// The amounts and faults, when all requests are answered and all processes gone.
    pub fn counts(&self) -> Counts {
        let mut counts = self.counts.clone();
        let mut by_key: Vec<Vec<(&str, &Work)>> = Vec::new();
        by_key.resize_with(self.keys.len(), Vec::new);
        self.works.iter().for_each(|(receipt, work)| by_key[work.key].push((receipt.as_str(), work)));
        for (number, (key, works)) in self.keys.iter().zip(by_key).enumerate() {
            let effects = works.iter().filter(|(_, work)| work.has_effect).count() as u64;
            counts.effects += effects;
            counts.twice += u64::from(effects > 1);
            let faults = key.judge(&works, &mut counts);
            counts.faults.extend(faults.into_iter().map(|what| format!("key {number}: {what}")));
        }
        counts
    }
}

impl Key {
    /// Holds what was answered against the works.
    fn judge(&self, works: &[(&str, &Work)], counts: &mut Counts) -> Vec<String> {
        let Some((answer, eur)) = &self.answer else { return vec!["was never answered 201".to_owned()] };
        let mut faults = Vec::new();
        let receipt = answer.receipt.as_deref().unwrap_or_default();
        match works.iter().find(|(known, _)| *known == receipt) {
            Some((_, work)) if work.has_effect && work.eur == *eur => {}
            _ => faults.push(format!("its answer {answer:?} is of no work that had its effect")),
        }
        for (other, work) in works.iter().filter(|(known, _)| *known != receipt) {
            if work.ended == Some(201) {
                faults.push(format!("{other} was answered 201, and so was {receipt}"));
            } else if work.has_effect {
                match (work.is_struck, work.ended) {
                    (true, _) => counts.struck += 1,
                    (false, Some(503)) => counts.late += 1,
                    (false, ended) => {
                        faults.push(format!("{other} had its effect as well as {receipt}, and ended with {ended:?}"))
                    }
                }
            }
        }
        faults
    }
}

impl Counts {
    /// Tells why these cannot be of requests that are done once.
    pub fn broken(&self) -> Option<String> {
        match self.faults.as_slice() {
            [] if self.marked < self.keys => {
                Some(format!("{} of {} keys have no completion", self.keys - self.marked, self.keys))
            }
            [] => None,
            [first, others @ ..] => Some(format!("{first} ({} more)", others.len())),
        }
    }

    /// Tells what was not tried, so that these prove nothing about it.
    pub fn blind(&self) -> Option<String> {
        let tried = [
            ("was replayed", self.replayed),
            ("was answered 409", self.busy),
            ("was answered 422", self.refused),
            ("was answered 500", self.failed),
            ("was without an answer", self.cut),
            ("met a kill", self.kills),
            ("met a stop", self.stops),
            ("had its effect again after a kill", self.struck),
        ];
        tried.iter().find(|(_, count)| *count == 0).map(|(what, _)| format!("no request {what}: ask more of them"))
    }
}
