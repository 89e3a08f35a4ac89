//! Requests: operations as writes of one row under a condition, names and values apart from the expressions.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::json::{bytes, fields, number, text};
use super::record::{self, own, rvn, session_text, version_text};
use super::{Request, Settings, Target};
use leasehold_core::config::MAX_RECORD_TTL;
use leasehold_core::member::RETENTION;
use leasehold_core::op::{Acquire, Denial, DenialKind, Finish, Raise, Release, Renew, Revoke, Tell};
use leasehold_core::session::may_be_record;
use leasehold_core::{Resource, Seq, Token};

/// Which of several writes stands for an operation, for want of a `max()`: together they are one, as each computes what it
/// writes from the row itself. From what an earlier answer showed it could fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Form {
    pub(super) counter: Counter,
    pub(super) expires: Expires,
}

impl Form {
    /// The one that is sent first.
    pub(super) const FIRST: Self = Self { counter: Counter::Below, expires: Expires::Earlier };
}

/// The counter of an acquire or a raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Counter {
    /// It is below the number that was asked for, and becomes it.
    Below,
    /// It is not below it: an acquire makes it one more, a raise leaves it.
    Above,
}

/// The time from which DynamoDB may remove the row, of a run's resource: there it may cover a completion that is kept for longer
/// than rows are. Rows of other locks are kept from each write on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Expires {
    /// It is not later than what is written now.
    Earlier,
    /// It may be, and stays.
    Stays,
}

/// Placeholders for attributes in expressions.
const PLACEHOLDERS: [(&str, &str); 20] = [
    ("#on", record::OWNER),
    ("#ld", record::DURATION),
    ("#rvn", record::RVN),
    ("#ir", record::RELEASED),
    ("#d", record::DATA),
    ("#dn", record::DATA_OF),
    ("#se", record::SESSION),
    ("#tt", record::TOLD),
    ("#ft", record::COUNTER),
    ("#ga", record::GRANTED_AT),
    ("#fa", record::FREED_AT),
    ("#qt", record::TRUST),
    ("#un", record::UNDONE),
    ("#qm", record::MARKER),
    ("#mt", record::DONE_TOKEN),
    ("#mo", record::DONE_OWNER),
    ("#mn", record::DONE_NONCE),
    ("#ma", record::DONE_AT),
    ("#mu", record::DONE_UNTIL),
    ("#mr", record::DONE_ABOUT),
];

/// The time that a completion is kept longer than asked, since the clock of a later client may be ahead of that of the writer: 60 s.
const CLOCK_MARGIN: Duration = Duration::from_secs(60);

/// How much of the row the answer to a write shows, to tell that it is the answer to this write and to no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Returns {
    Written,
    All,
}

/// A write of one row in the making.
struct Update<'a> {
    settings: &'a Settings,
    row: &'a str,
    set: String,
    remove: &'static str,
    condition: String,
    expires: Expires,
    values: Map<String, Json>,
    returns: Returns,
}

impl<'a> Update<'a> {
    fn of(settings: &'a Settings, row: &'a str) -> Self {
        Self {
            settings,
            row,
            set: String::new(),
            remove: "",
            condition: String::new(),
            expires: Expires::Stays,
            values: Map::new(),
            returns: Returns::All,
        }
    }

    fn value(&mut self, name: &str, value: Json) {
        self.values.insert(name.to_string(), value);
    }

    /// Further assignments, as they stand in the expression.
    fn set(&mut self, assignments: &str) {
        self.set.push_str(if self.set.is_empty() { "SET " } else { ", " });
        self.set.push_str(assignments);
    }

    /// Every write of a lock puts off the time at which DynamoDB may remove the row, and none brings it forward. What lies on
    /// the row of a run may have to stay for longer than the row of a lock.
    fn keep_until(&mut self, lock: &Resource, expires: Expires, unix_ms: u64) {
        if !lock.may_be_of_run() {
            self.keep_for(RETENTION, unix_ms);
        } else if expires == Expires::Earlier && self.settings.expires_name().is_some() {
            self.expires = expires;
            self.keep_for(RETENTION, unix_ms);
        }
    }

    fn keep_for(&mut self, length: Duration, unix_ms: u64) {
        if self.settings.expires_name().is_some() {
            self.set("#ex = :ex");
            self.value(":ex", number(kept_until(length, unix_ms)));
        }
    }

    fn request(mut self) -> Request {
        if self.expires == Expires::Earlier {
            self.condition = alloc::format!("({}) AND (attribute_not_exists(#ex) OR #ex <= :ex)", self.condition);
        }
        let update = [self.set.as_str(), self.remove].join(" ");
        let update = update.trim();
        let names = names(self.settings, &[update, &self.condition]);
        let returns = match self.returns {
            Returns::Written => "UPDATED_NEW",
            Returns::All => "ALL_NEW",
        };
        let body = fields([
            ("TableName", self.settings.table().into()),
            ("Key", key(self.settings, self.row)),
            ("UpdateExpression", update.into()),
            ("ConditionExpression", self.condition.into()),
            ("ExpressionAttributeNames", names.into()),
            ("ExpressionAttributeValues", self.values.into()),
            ("ReturnValues", returns.into()),
            ("ReturnValuesOnConditionCheckFailure", "ALL_OLD".into()),
        ]);
        Request::new(Target::UpdateItem, &body)
    }
}

/// In seconds, as DynamoDB's time to live wants it.
fn kept_until(length: Duration, unix_ms: u64) -> u64 {
    unix_ms / 1000 + length.as_secs()
}

/// Tells if DynamoDB may remove this row only later than if it were written now.
pub(super) fn is_kept_longer(lock: &Resource, row: &record::Row, unix_ms: u64) -> bool {
    let now = kept_until(RETENTION, unix_ms);
    // Of another type it is none that removes the row.
    lock.may_be_of_run() && row.expires.is_some_and(|expires| expires.is_none_or(|expires| expires > now))
}

/// The row's primary key.
pub(super) fn key(settings: &Settings, row: &str) -> Json {
    let mut key = Map::new();
    key.insert(settings.key_name().to_string(), text(row));
    if let Some(sort) = settings.sort() {
        key.insert(sort.name.to_string(), text(&sort.value));
    }
    Json::Object(key)
}

/// Those names that the expressions mention: DynamoDB refuses any other.
fn names(settings: &Settings, expressions: &[&str]) -> Map<String, Json> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '#';
    let words: Vec<&str> = expressions.iter().flat_map(|text| text.split(|c| !is_part(c))).collect();
    let known = PLACEHOLDERS.into_iter().chain([("#pk", settings.key_name())]);
    let known = known.chain(settings.expires_name().map(|name| ("#ex", name)));
    known.filter(|(short, _)| words.contains(short)).map(|(short, name)| (short.to_string(), name.into())).collect()
}

/// The row as it is after all writes that were answered before.
pub(super) fn get(settings: &Settings, row: &str) -> Request {
    let body = json!({
        "TableName": settings.table(),
        "Key": key(settings, row),
        "ConsistentRead": true,
    });
    Request::new(Target::GetItem, &body)
}

/// The smallest token that an acquire mints: no grant has token 0, which the form would mint in an empty table.
pub(super) fn floor(op: &Acquire) -> Token {
    op.floor.max(Token::ZERO.next().unwrap_or(Token::MAX))
}

/// Writes our record into a row that is not there, or was released, or still shows the expected version. In a quorum one of
/// this attempt is free too, if an earlier send has written it and had to undo that.
///
/// A released row is free only if it looks like a lock of Java's clients: others write under the same names, and lengths
/// of time that end in a unit.
pub(super) fn acquire(
    settings: &Settings,
    lock: &Resource,
    op: &Acquire,
    form: Form,
    unix_ms: u64,
) -> Result<Request, Denial> {
    let mut update = Update::of(settings, lock.as_str());
    let not_ours = match &op.member {
        // Versions of one attempt have one length, so these are exactly its sends before this one.
        Some(_) => "(NOT begins_with(#rvn, :own) OR (#un = #rvn AND #rvn < :rvn))",
        None => "NOT begins_with(#rvn, :own)",
    };
    let mut free = alloc::format!(
        "attribute_not_exists(#pk) OR (#ir = :yes AND attribute_type(#rvn, :text) AND attribute_type(#ld, :text) \
         AND NOT contains(#ld, :unit) AND {not_ours})",
    );
    if let Some(seen) = op.expect.as_ref().and_then(version_text).filter(|(_, whose)| *whose != Some(op.nonce)) {
        free.push_str(" OR #rvn = :seen");
        update.value(":seen", text(&seen.0));
    }
    update.value(":yes", text("1"));
    update.value(":text", text("S"));
    update.value(":unit", text("s"));
    update.value(":own", text(&own(&op.nonce)));
    update.set("#rvn = :rvn, #on = :on, #ld = :ld, #ga = :ga");
    update.value(":rvn", text(&rvn(&op.nonce, op.seq)));
    update.value(":on", text(op.owner.as_str()));
    update.value(":ld", text(&lasting(op.record_ttl)?));
    update.value(":ga", number(unix_ms));
    let counter = match form.counter {
        Counter::Below => {
            update.set("#ft = :floor");
            "attribute_not_exists(#ft) OR #ft < :floor"
        }
        Counter::Above => {
            update.set("#ft = #ft + :one");
            update.value(":one", number(1));
            update.value(":max", number(Token::MAX.get()));
            "#ft >= :floor AND #ft < :max"
        }
    };
    update.value(":floor", number(floor(op).get()));
    // DynamoDB bills whole rows, so each renewal would pay for the record of the last run, whose completion has ended.
    update.remove = if lock.may_be_of_run() && op.unless_done { "REMOVE #ir, #un, #mr" } else { "REMOVE #ir, #un" };
    // Without data of ours, what one of Java's left for the next of its kind stays.
    if let Some(data) = &op.data {
        update.set("#d = :d, #dn = :own");
        update.value(":d", bytes(data.as_bytes()));
    }
    if let Some(session) = &op.session {
        update.set("#se = :se");
        update.value(":se", text(&session_text(&op.nonce, session)));
    }
    update.keep_until(lock, form.expires, unix_ms);
    update.condition = alloc::format!("({free}) AND ({counter})");
    if op.unless_done {
        update.condition.push_str(" AND (attribute_not_exists(#mu) OR #mu <= :now)");
        update.value(":now", number(unix_ms));
    }
    Ok(update.request())
}

/// One more tell, and nothing else: those who observe the row, or wait for its length, go on as before.
pub(super) fn tell(settings: &Settings, row: &str, op: &Tell) -> Request {
    let mut update = Update::of(settings, row);
    update.set("#tt = if_not_exists(#tt, :none) + :one");
    update.value(":none", number(0));
    update.value(":one", number(1));
    update.value(":own", text(&own(&op.nonce)));
    update.condition = "begins_with(#rvn, :own) AND attribute_not_exists(#ir)".to_string();
    update.request()
}

/// A heartbeat. Any earlier write of the attempt will do, whichever has landed; a later one makes this one harmless.
///
/// That of a session shows the number of tells as well.
pub(super) fn renew(
    settings: &Settings,
    lock: &Resource,
    op: &Renew,
    expires: Expires,
    unix_ms: u64,
) -> Result<Request, Denial> {
    let mut update = Update::of(settings, lock.as_str());
    update.set("#rvn = :rvn, #ld = :ld");
    update.value(":rvn", text(&rvn(&op.nonce, op.seq)));
    update.value(":own", text(&own(&op.nonce)));
    update.value(":ld", text(&lasting(op.record_ttl)?));
    update.keep_until(lock, expires, unix_ms);
    // Versions of one attempt have one length, so these are exactly its sends before this one.
    update.condition = "begins_with(#rvn, :own) AND #rvn < :rvn AND attribute_not_exists(#ir)".to_string();
    update.returns = if may_be_record(lock) { Returns::All } else { Returns::Written };
    Ok(update.request())
}

/// The version stays, as Java leaves it: it names the attempt whose delayed sends are still to be refused, also where an
/// earlier one was undone. A row that was released before is refused, as is every other that is not ours any more.
pub(super) fn release(settings: &Settings, lock: &Resource, op: &Release, unix_ms: u64) -> Request {
    let mut update = Update::of(settings, lock.as_str());
    update.set("#ir = :yes, #fa = :fa");
    update.remove = "REMOVE #un";
    update.value(":yes", text("1"));
    update.value(":fa", number(unix_ms));
    update.value(":own", text(&own(&op.nonce)));
    update.keep_until(lock, Expires::Stays, unix_ms);
    update.condition = "begins_with(#rvn, :own) AND (attribute_not_exists(#ir) OR attribute_exists(#un))".to_string();
    update.request()
}

/// The completion and the release are one write, under the very grant: a counter that has moved since shows another. A row that is not held any more is refused: the completion of an earlier send is found by
/// what the refusal shows.
pub(super) fn finish(settings: &Settings, lock: &Resource, op: &Finish, unix_ms: u64) -> Request {
    let mut update = Update::of(settings, lock.as_str());
    // One that is kept no time is over for every clock.
    let keep = op.keep.saturating_add(CLOCK_MARGIN);
    let until = if op.keep.is_zero() { 0 } else { unix_ms.saturating_add(whole_ms(keep)) };
    update.set("#ir = :yes, #mt = :mt, #mo = :mo, #mn = :own, #ma = :ma, #mu = :mu");
    update.remove = "REMOVE #un, #mr";
    if let Some(about) = &op.about {
        update.set("#mr = :mr");
        update.value(":mr", bytes(about.as_bytes()));
        update.remove = "REMOVE #un";
    }
    update.value(":yes", text("1"));
    update.value(":own", text(&own(&op.nonce)));
    update.value(":mt", number(op.token.get()));
    update.value(":mo", text(op.owner.as_str()));
    update.value(":ma", number(unix_ms));
    update.value(":mu", number(until));
    update.value(":ft", number(op.counter.get()));
    update.keep_for(keep.max(RETENTION), unix_ms);
    update.condition = "begins_with(#rvn, :own) AND attribute_not_exists(#ir) AND #ft = :ft".to_string();
    update.request()
}

/// The last version that the attempt can have: every heartbeat of it is an earlier one. Others see a row that has moved.
pub(super) fn revoke(settings: &Settings, lock: &Resource, op: &Revoke, unix_ms: u64) -> Request {
    let mut update = Update::of(settings, lock.as_str());
    update.set("#rvn = :rvn");
    update.value(":rvn", text(&rvn(&op.nonce, Seq::LAST)));
    update.value(":own", text(&own(&op.nonce)));
    update.keep_until(lock, Expires::Stays, unix_ms);
    update.condition = "begins_with(#rvn, :own) AND attribute_not_exists(#ir)".to_string();
    update.request()
}

/// The counter and what is known of its trust are one write. The trust names the loss that it was meant for: a reader
/// compares that with the marker, so one for an earlier loss makes nobody trusted.
pub(super) fn raise(settings: &Settings, lock: &Resource, op: &Raise, counter: Counter, unix_ms: u64) -> Request {
    let mut update = Update::of(settings, lock.as_str());
    let counter = match counter {
        Counter::Below => {
            update.set("#ft = :ft");
            "(attribute_not_exists(#ft) OR #ft < :ft)"
        }
        Counter::Above => "#ft >= :ft",
    };
    update.value(":ft", number(op.token.get()));
    if let Some(loss) = op.loss {
        update.set("#qt = :qt");
        update.value(":qt", text(&loss.to_string()));
    }
    update.value(":own", text(&own(&op.nonce)));
    update.keep_until(lock, Expires::Stays, unix_ms);
    update.condition = alloc::format!("begins_with(#rvn, :own) AND attribute_not_exists(#ir) AND {counter}");
    update.request()
}

/// Writes a marker's text in the place of the one that was found, if that still stands. The row reads as a released lock
/// of Java's clients, whose listing would otherwise fail on it.
pub(super) fn mark(settings: &Settings, row: &str, found: &str, marker: &str, version: &str) -> Request {
    let mut update = Update::of(settings, row);
    update.set("#qm = :qm, #rvn = :rvn, #on = :on, #ld = :ld, #ir = :yes");
    update.value(":qm", text(marker));
    update.value(":rvn", text(version));
    update.value(":on", text("leasehold quorum"));
    update.value(":ld", text("1"));
    update.value(":yes", text("1"));
    update.condition = match found {
        "" => "attribute_not_exists(#qm)".to_string(),
        found => {
            update.value(":found", text(found));
            "#qm = :found".to_string()
        }
    };
    update.request()
}

/// Takes a marker back, if it still stands. The row stays, as that of a released lock.
pub(super) fn unmark(settings: &Settings, row: &str, found: &str) -> Request {
    let mut update = Update::of(settings, row);
    update.remove = "REMOVE #qm";
    update.value(":found", text(found));
    update.condition = "#qm = :found".to_string();
    update.request()
}

/// A write that never happens: a row has the key by which it is named, or is not there.
pub(super) fn never(settings: &Settings, row: &str) -> Request {
    let mut update = Update::of(settings, row);
    update.set("#ir = :yes");
    update.value(":yes", text("1"));
    update.value(":other", text(&alloc::format!("not {row}")));
    update.condition = "#pk = :other".to_string();
    update.request()
}

/// Frees what one send has written, for others and for later sends of its attempt. One of those may count on the row by the
/// time this arrives, or the holder may have left.
pub(super) fn undo(settings: &Settings, lock: &Resource, op: &Acquire, unix_ms: u64) -> Request {
    let mut update = Update::of(settings, lock.as_str());
    update.set("#ir = :yes, #un = :rvn");
    update.value(":yes", text("1"));
    update.value(":rvn", text(&rvn(&op.nonce, op.seq)));
    update.keep_until(lock, Expires::Stays, unix_ms);
    update.condition = "#rvn = :rvn AND attribute_not_exists(#ir)".to_string();
    update.request()
}

/// Decimal milliseconds, rounded up: a record must not end before its holder believes that it does.
fn lasting(length: Duration) -> Result<String, Denial> {
    if length > MAX_RECORD_TTL {
        let detail = alloc::format!("a record of {length:?} is longer than the longest allowed, {MAX_RECORD_TTL:?}");
        return Err(Denial::new(DenialKind::Other, &detail));
    }
    Ok(whole_ms(length).to_string())
}

/// As the table keeps it.
pub(super) fn whole_ms(length: Duration) -> u64 {
    u64::try_from(length.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).max(1)
}
