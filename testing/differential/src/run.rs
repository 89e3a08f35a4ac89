//! A script on a store and on the reference at once.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use leasehold_core::member::{Marker, RunId};
use leasehold_core::op::{Acquire, Applied, Holder, Holding, Op, Outcome, Refusal, Renew, Seen};
use leasehold_core::session::none_is_told;
use leasehold_core::store::{LeaseRecord, Record};
use leasehold_core::{LockId, Monotonic, Seq, Token, Version};

use leasehold_wire::cas::{Answer, Ask};

use crate::allowed::{Row, Used};
use crate::compare::{self, Difference, Fields, Value};
use crate::items::Items;
use crate::reference::{FOREIGN, OURS, Reference, nonce};
use crate::script::{Edit, Step, What};

/// A wrong write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoilt {
    /// The row may be removed so much later than now.
    Kept(Duration),
    /// The lease has this length.
    Length(Duration),
}

/// A store, or a model of one. Each sequence has one of its own.
pub trait Side {
    /// Its name in the table of differences.
    fn store(&self) -> &str;
    /// Nothing runs out by itself.
    fn is_observed(&self) -> bool;
    /// Waiters stand in the queue.
    fn keeps_queue(&self) -> bool;
    /// The time: since some instant, and since 1970 in milliseconds.
    fn now(&mut self) -> (Monotonic, u64);
    /// One operation; a resource is its place among the names.
    fn ask(&mut self, name: u8, client: u8, lock: LockId, op: &Op) -> Outcome;
    /// Asks for an item of compare-and-set; `None` where there are none.
    fn item(&mut self, _name: u8, _client: u8, _ask: Ask<'_>) -> Option<Answer> {
        None
    }
    /// Changes a row by hand; `false` where that cannot be done.
    fn edit(&mut self, _name: u8, _edit: &Edit) -> bool {
        false
    }
    /// The queue goes when the row is deleted.
    fn keeps_queue_in_row(&self) -> bool {
        false
    }
    /// Fields that the store keeps of a resource and shows to no client: `ttl`, `kept until`, `token`, as it calls them.
    fn raw(&mut self, _name: u8) -> Fields {
        Fields::new()
    }
    /// The marker, and the run of the server; `None` where it is no node of a quorum.
    fn look(&mut self) -> Option<(Option<Marker>, Option<RunId>)> {
        None
    }
    /// Writes the marker.
    fn mark(&mut self, _marker: Option<&Marker>) {}
    /// Changes a row as a client with a bug would.
    fn spoil(&mut self, _name: u8, _spoilt: &Spoilt) {}
    /// Gives up a place in the queue.
    fn leave(&mut self, _name: u8, _client: u8, _lock: LockId) {}
}

/// A step that did not agree.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The place of the step.
    pub at: usize,
    /// The fields that differ.
    pub what: Vec<Difference>,
    /// The part of the step: its answer, the record afterwards, the raw row.
    pub part: &'static str,
    /// The request of the step.
    pub asked: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} of step {}, {}:", self.part, self.at, self.asked)?;
        self.what.iter().try_for_each(|difference| writeln!(f, "    {difference}"))
    }
}

impl Failure {
    /// The same kind of difference, however it came about.
    pub fn is_like(&self, other: &Self) -> bool {
        let fields = |failure: &Self| failure.what.iter().map(|difference| difference.field).collect::<Vec<_>>();
        self.part == other.part && fields(self).first() == fields(other).first()
    }
}

/// One run.
pub struct Run<'a> {
    side: &'a mut dyn Side,
    reference: Reference,
    table: &'a [Row],
    used: &'a mut Used,
    /// Earlier requests, by the number of the step.
    sent: BTreeMap<u32, (u8, u8, LockId, Op)>,
    items: Items,
    /// The record whose lease is granted again: its end is never brought forward.
    again: Option<Record>,
    /// How many operations were sent.
    pub steps: u64,
}

impl<'a> Run<'a> {
    /// Begins one.
    pub fn new(side: &'a mut dyn Side, table: &'a [Row], used: &'a mut Used) -> Self {
        let reference =
            Reference { is_observed: side.is_observed(), keeps_queue: side.keeps_queue(), ..Reference::default() };
        Self { side, reference, table, used, sent: BTreeMap::new(), items: Items::default(), again: None, steps: 0 }
    }

    /// All steps, up to the first that differs.
    ///
    /// # Errors
    /// The difference.
    pub fn all(&mut self, script: &[Step]) -> Result<(), Failure> {
        if let Some((marker, run)) = self.side.look() {
            self.reference.marker = marker;
            self.reference.run = run;
        }
        script
            .iter()
            .enumerate()
            .try_for_each(|(at, step)| self.step(step).map_err(|(part, asked, what)| Failure { at, what, part, asked }))
    }

    fn step(&mut self, step: &Step) -> Result<(), (&'static str, String, Vec<Difference>)> {
        let (uptime, unix_ms) = self.side.now();
        let now = self.reference.now(uptime, unix_ms);
        let Step { id, client, name, ref what } = *step;
        let item_wrong = |(part, what)| (part, format!("{:?}", step.what), what);
        let (name, client, lock, op) = match what {
            What::ReadItem => return self.items.read(self.side, name, client).map_err(item_wrong),
            What::WriteItem { value } => {
                return self.items.write(self.side, name, client, id, value).map_err(item_wrong);
            }
            What::Again { of } => match self.sent.get(of) {
                Some(sent) => sent.clone(),
                None => return self.items.again(self.side, *of).map_err(item_wrong),
            },
            What::Leave { attempt } => {
                let lock = LockId::new(u64::from(nonce(name, *attempt).as_bytes()[1]));
                self.side.leave(name, client, lock);
                self.reference.leave(name, client, lock, &now);
                return Ok(());
            }
            What::Edit(edit) => {
                self.edit(name, edit, uptime, unix_ms);
                return self.compare_record(name, "edit").map_err(|(part, what)| (part, format!("{edit:?}"), what));
            }
            What::Mark(marker) => {
                let (phase_and_stamp, run) = (*marker, self.reference.run.clone());
                let (quorum, max_ttl_ms) = OURS;
                let marker = phase_and_stamp.map(|(phase, stamp)| Marker { quorum, max_ttl_ms, stamp, phase, run });
                self.side.mark(marker.as_ref());
                self.reference.marker = marker;
                return Ok(());
            }
            _ => match self.reference.op(name, what) {
                Some((lock, op)) => (name, client, lock, op),
                None => return Ok(()),
            },
        };
        self.sent.insert(id, (name, client, lock, op.clone()));
        if matches!(what, What::PrepareTell { .. }) {
            return Ok(());
        }
        let kind = kind(&op);
        let wrong = |part, what| (part, format!("{op:?}"), what);
        self.forgotten(name, kind, &op, uptime);
        let judged = self.judged(name, &op);
        let real = self.side.ask(name, client, lock, &self.reference.with_foreign(name, &op));
        let (answered, answered_unix_ms) = self.side.now();
        let slack = answered.since(uptime);
        let before = self.reference.clone();
        let marker = self.side.look().map(|(marker, _)| marker);
        // What runs out by the store's clock may do so between the two ends of the step.
        let later = self.reference.now(answered.plus(slack), answered_unix_ms);
        // A reservation began as late as the end of the step that made it.
        let queue_slack =
            before.rows.get(&name).map_or(0, |row| row.queue_slack.as_nanos().try_into().unwrap_or(u64::MAX));
        let earlier = self.reference.now(Monotonic::from_ns(uptime.ns().saturating_sub(queue_slack)), unix_ms);
        let mut first = None;
        let mut expected = None;
        for now in [now, later, earlier] {
            self.reference = before.clone();
            let untold = self.untold(&op);
            let outcome = untold.unwrap_or_else(|| self.reference.ask(name, client, lock, &judged, &now, slack));
            self.granted_again(name, &outcome);
            let outcome = self.over(name, &op, outcome);
            let row_slack = self.reference.rows.get(&name).map_or(Duration::ZERO, |row| row.slack);
            let (mut shown, mut wanted) = (compare::outcome(&real), compare::outcome(&outcome));
            if self.reference.is_observed {
                shown.remove("left");
                wanted.remove("left");
            }
            if let Some(marker) = &marker {
                relative(&mut shown, marker.as_ref());
                relative(&mut wanted, self.reference.marker.as_ref());
            }
            let differences = self.not_allowed(kind, compare::differences(&shown, &wanted, slack + row_slack));
            if differences.is_empty() {
                expected = Some((outcome, shown, wanted));
                break;
            }
            first.get_or_insert(differences);
        }
        self.steps += 1;
        self.again = None;
        let Some((expected, shown, wanted)) = expected else {
            return Err(wrong("the answer", first.unwrap_or_default()));
        };
        if let Some(marker) = marker
            && self.reference.marker != before.marker
        {
            self.adopt_marker(marker);
        }
        let refused = matches!(real, Outcome::NotApplied(_)) && !matches!(expected, Outcome::NotApplied(_));
        if refused {
            // An allowed difference: the store did nothing.
            self.reference = before;
        }
        if let (Some(Value::Number(minted)), Some(Value::Number(reference))) =
            (shown.get("counter"), wanted.get("counter"))
        {
            self.adopt(name, *minted, *reference);
        }
        if let (Some(Value::Number(shown)), Some(Value::Number(reference))) = (shown.get("token"), wanted.get("token"))
        {
            self.adopt(name, *shown, *reference);
        }
        self.compare_marker().map_err(|what| wrong("the marker after it", what))?;
        self.compare_record(name, kind).map_err(|(part, what)| wrong(part, what))
    }

    fn granted_again(&mut self, name: u8, outcome: &Outcome) {
        let (Some(again), Some(row)) = (self.again.clone(), self.reference.rows.get_mut(&name)) else { return };
        if !matches!(outcome, Outcome::Applied(_)) {
            row.record = Some(again);
        } else if let (Some(lease), Some(before)) =
            (row.record.as_mut().and_then(|record| record.lease.as_mut()), again.lease)
        {
            lease.expires = lease.expires.max(before.expires);
            lease.since_unix_ms = before.since_unix_ms;
        }
    }

    /// A new marker has its stamp, and when it ends, from the clock of the store.
    fn adopt_marker(&mut self, marker: Option<Marker>) {
        if let (Some(real), Some(ours)) = (marker, &self.reference.marker)
            && (real.quorum, real.max_ttl_ms, &real.run) == (ours.quorum, ours.max_ttl_ms, &ours.run)
            && std::mem::discriminant(&real.phase) == std::mem::discriminant(&ours.phase)
        {
            self.reference.marker = Some(real);
        }
    }

    /// A store that mints by its own clock may be ahead of the reference, as the table has it.
    fn adopt(&mut self, name: u8, minted: u64, reference: u64) {
        if minted != reference
            && let Some(token) = Token::new(minted)
            && let Some(record) = self.reference.rows.entry(name).or_default().record.as_mut()
        {
            record.counter = token;
        }
    }

    /// Some stores keep nothing of a lease that is over, or grant the same attempt again, by rows of the table. The reference
    /// forgets the lease too, then.
    fn forgotten(&mut self, name: u8, kind: &str, op: &Op, uptime: Monotonic) {
        let (store, is_observed) = (self.side.store().to_owned(), self.reference.is_observed);
        for row in self.table.iter().filter(|row| row.is_about(&store, kind)) {
            let Some(record) = self.reference.rows.get_mut(&name).and_then(|row| row.record.as_mut()) else { return };
            let Some(lease) = record.lease.as_mut() else { return };
            if let Op::Renew(renew) = op
                && row.rule == "renews_late"
                && (renew.nonce == lease.nonce && renew.seq <= lease.seq && lease.seq != Seq::LAST)
            {
                lease.seq = Seq::new(0);
                *self.used.entry(*row).or_default() += 1;
            }
            let is_over = lease.released || !is_observed && uptime >= lease.expires;
            let is_same = matches!(op, Op::Acquire(acquire) if acquire.nonce == lease.nonce);
            let forgets = match row.rule {
                "forgets" => is_over,
                "again" => is_same && !is_over && lease.seq != Seq::LAST,
                _ => false,
            };
            if forgets {
                let before = record.clone();
                self.again = (!is_over).then_some(before);
                record.lease = None;
                if is_same && !is_over {
                    // It is the same grant.
                    record.counter = Token::new(record.counter.get().saturating_sub(1)).unwrap_or(record.counter);
                }
                *self.used.entry(*row).or_default() += 1;
            }
        }
    }

    /// Where the table says so, a raise is refused for a revoked record, as a renewal is.
    fn judged(&mut self, name: u8, op: &Op) -> Op {
        let store = self.side.store().to_owned();
        let row = self.table.iter().find(|row| row.rule == "no_raise" && row.is_about(&store, "raise"));
        match (row, op, self.reference.lease(name)) {
            (Some(row), Op::Raise(raise), Some(lease)) if lease.nonce == raise.nonce && lease.seq == Seq::LAST => {
                *self.used.entry(*row).or_default() += 1;
                let (nonce, seq, record_ttl) = (raise.nonce, Seq::new(1), Duration::ZERO);
                Op::Renew(Renew { nonce, seq, record_ttl, quorum: None })
            }
            _ => op.clone(),
        }
    }

    /// Where the table says so, a record that is gone is shown as over to its attempt while the counter stands.
    fn over(&mut self, name: u8, op: &Op, outcome: Outcome) -> Outcome {
        let (Op::Renew(_) | Op::Release(_) | Op::Finish(_)) = op else { return outcome };
        let row = self.table.iter().find(|row| row.rule == "over" && row.is_about(self.side.store(), kind(op)));
        let record = self.reference.rows.get(&name).and_then(|row| row.record.as_ref());
        let counter = record.map(|record| record.counter).filter(|counter| *counter > Token::ZERO);
        match (row, op.nonce(), counter, outcome) {
            (Some(row), Some(nonce), Some(counter), Outcome::NotApplied(Refusal::Conflict(seen)))
                if seen.holding.is_none() =>
            {
                *self.used.entry(*row).or_default() += 1;
                let Some(version) = Version::new(nonce.as_bytes()) else { unreachable!("16 bytes") };
                let over = Holding::of(Holder::Lease { nonce, seq: None }, version);
                let holding = Holding { released: true, counter: Some(counter), ..over };
                Outcome::NotApplied(Refusal::Conflict(Seen { holding: Some(Box::new(holding)), ..seen }))
            }
            (_, _, _, outcome) => outcome,
        }
    }

    /// Where the table says so, there is nobody to tell.
    fn untold(&mut self, op: &Op) -> Option<Outcome> {
        let store = self.side.store().to_owned();
        let row = self.table.iter().find(|row| row.rule == "untold" && row.is_about(&store, kind(op)))?;
        *self.used.entry(*row).or_default() += 1;
        Some(Outcome::NotApplied(Refusal::Denied(none_is_told())))
    }

    fn not_allowed(&mut self, kind: &str, differences: Vec<Difference>) -> Vec<Difference> {
        let store = self.side.store().to_owned();
        let mut left = Vec::new();
        for difference in differences {
            let allowed = self.table.iter().find(|row| row.is_about(&store, kind) && row.allows(&difference));
            match allowed {
                Some(row) => *self.used.entry(*row).or_default() += 1,
                None => left.push(difference),
            }
        }
        left
    }

    fn compare_marker(&mut self) -> Result<(), Vec<Difference>> {
        let Some((marker, _)) = self.side.look() else { return Ok(()) };
        let text = |marker: &Option<Marker>| marker.as_ref().map(|marker| Value::Text(marker.text()));
        let (store, reference) = (text(&marker), text(&self.reference.marker));
        if store == reference {
            return Ok(());
        }
        Err(vec![Difference { field: "marker", store, reference }])
    }

    /// The whole record: as a read shows it, and as the store keeps it.
    fn compare_record(&mut self, name: u8, kind: &str) -> Result<(), (&'static str, Vec<Difference>)> {
        let (uptime, unix_ms) = self.side.now();
        let real = self.side.ask(name, 0, LockId::new(0), &Op::Read);
        let slack = self.side.now().0.since(uptime);
        self.forgotten(name, "record", &Op::Read, uptime);
        let now = self.reference.now(uptime, unix_ms);
        let expected = self.reference.seen(name, &now);
        let row_slack = self.reference.rows.get(&name).map_or(Duration::ZERO, |row| row.slack);
        let (mut shown, mut wanted) =
            (compare::outcome(&real), compare::outcome(&Outcome::Applied(Applied::Read(expected))));
        if self.reference.is_observed {
            shown.remove("left");
            wanted.remove("left");
        }
        let differences = self.not_allowed(kind, compare::differences(&shown, &wanted, slack + row_slack));
        if !differences.is_empty() {
            return Err(("the record after it", differences));
        }
        if let (Some(Value::Span(ttl)), Some(record)) =
            (shown.get("ttl"), self.reference.rows.get_mut(&name).and_then(|row| row.record.as_mut()))
            && let Some(lease) = record.lease.as_mut()
        {
            // Where another length is allowed, it counts from now on.
            lease.record_ttl = *ttl;
        }
        let raw = self.raw_differences(name, unix_ms);
        let minted = raw.iter().find_map(|difference| match (&difference.store, &difference.reference) {
            (Some(Value::Number(store)), Some(Value::Number(reference))) => Some((*store, *reference)),
            _ => None,
        });
        let raw = self.not_allowed(kind, raw);
        if let Some((minted, reference)) = minted.filter(|_| raw.is_empty()) {
            self.adopt(name, minted, reference);
        }
        if raw.is_empty() { Ok(()) } else { Err(("the row as the store keeps it after it", raw)) }
    }

    fn raw_differences(&mut self, name: u8, unix_ms: u64) -> Vec<Difference> {
        let raw = self.side.raw(name);
        let row = self.reference.rows.entry(name).or_default().clone();
        let mut differences = Vec::new();
        if let (Some(Value::At(kept)), Some(record)) = (raw.get("kept until"), &row.record) {
            // Until the lease and the completion are over, whichever is later, and the counter is needed no more.
            let completion = record.completion.as_ref().map_or(0, |completion| completion.until_unix_ms);
            let lease = record.lease.as_ref().filter(|lease| !lease.released).map_or(0, |lease| {
                unix_ms.saturating_add(u64::try_from(lease.record_ttl.as_millis()).unwrap_or(u64::MAX))
            });
            let least = if completion > unix_ms { completion.max(lease) } else { lease };
            if kept.saturating_add(3_000) < least {
                let reference = Some(Value::At(least));
                differences.push(Difference { field: "kept until", store: Some(Value::At(*kept)), reference });
            }
        }
        if let (Some(Value::Number(token)), Some(record)) = (raw.get("token"), &row.record)
            && *token != record.counter.get()
        {
            let reference = Some(Value::Number(record.counter.get()));
            differences.push(Difference { field: "row's token", store: Some(Value::Number(*token)), reference });
        }
        differences
    }

    fn edit(&mut self, name: u8, edit: &Edit, uptime: Monotonic, unix_ms: u64) {
        let now = self.reference.now(uptime, unix_ms);
        let is_held = self.reference.is_held(name, &now);
        let is_possible = match edit {
            Edit::Expire | Edit::Free => is_held,
            Edit::Delete => self.reference.record(name).is_some(),
            Edit::Foreign(_) => !is_held,
        };
        if !is_possible || !self.side.edit(name, edit) {
            return;
        }
        let foreign = match edit {
            Edit::Foreign(_) => version(&self.side.ask(name, 0, LockId::new(0), &Op::Read)),
            Edit::Expire | Edit::Delete | Edit::Free => None,
        };
        let slack = self.side.now().0.since(uptime);
        let queue_goes = *edit == Edit::Delete && self.side.keeps_queue_in_row();
        let row = self.reference.rows.entry(name).or_default();
        if queue_goes {
            row.queue.clear();
        }
        let lease = row.record.as_mut().and_then(|record| record.lease.as_mut());
        match (edit, lease) {
            (Edit::Expire, Some(lease)) => lease.expires = Monotonic::from_ns(uptime.ns().saturating_sub(1)),
            (Edit::Free, Some(lease)) => lease.released = true,
            (Edit::Delete, _) => (row.record, row.trusted) = (None, None),
            (Edit::Foreign(ttl), _) => {
                let mut given = Acquire::new(FOREIGN, Seq::new(1), *ttl);
                given.floor = Token::ZERO;
                let counter = row.record.as_ref().map_or(Token::ZERO, |record| record.counter);
                let completion = row.record.as_ref().and_then(|record| record.completion.clone());
                let op = Op::Acquire(Box::new(given));
                // It keeps what it does not know, if it keeps the row.
                let told = row.record.as_ref().and_then(|record| record.lease.as_ref()).map_or(0, |lease| lease.told);
                let write = leasehold_core::store::apply(None, &op, &now).write;
                row.record = write.map(|record| {
                    let lease = record.lease.map(|lease| LeaseRecord { told, ..lease });
                    Record { counter, completion, lease }
                });
                (row.foreign, row.slack) = (foreign, slack);
            }
            (Edit::Expire | Edit::Free, None) => {}
        }
    }
}

/// Stamps are drawn by clocks: only whether it is that of the marker matters.
fn relative(fields: &mut Fields, marker: Option<&Marker>) {
    if let Some(stamp) = fields.get_mut("stamp") {
        let is_of_marker = marker.is_some_and(|marker| *stamp == Value::Text(marker.stamp.to_string()));
        *stamp = Value::Text(if is_of_marker { "that of the marker" } else { "another" }.to_owned());
    }
}

fn version(outcome: &Outcome) -> Option<Version> {
    let seen: &Seen = match outcome {
        Outcome::Applied(Applied::Read(seen)) | Outcome::NotApplied(Refusal::Conflict(seen)) => seen,
        _ => return None,
    };
    seen.holding.as_ref().map(|holding| holding.version.clone())
}

/// The kind of an operation, as the table names it.
pub fn kind(op: &Op) -> &'static str {
    match op {
        Op::Acquire(_) => "acquire",
        Op::Renew(_) => "renew",
        Op::Release(_) => "release",
        Op::Finish(_) => "finish",
        Op::Revoke(_) => "revoke",
        Op::Tell(_) => "tell",
        Op::Raise(_) => "raise",
        Op::Read => "read",
    }
}
