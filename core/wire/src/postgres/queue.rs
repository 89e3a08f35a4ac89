//! The queue of waiters: a column of the lock's row, and beside the locks a table of the clients that wait.
//!
//! Conditions and columns of the lock's own row are of its latest version, after its lock was taken, so a lock and its queue
//! change together in one statement. The table only tells who is alive; it may be read as it was when the statement began.
//!
//! The server decides as [`leasehold_core::queue`] does. The column is empty while nobody waits. A place has 40 bytes: the
//! client (16), the number of its acquisition, the time of joining, and until when the lock is reserved for it (8 each, times
//! in microseconds since 1970).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use leasehold_core::op::{Acquire, Outcome};
use leasehold_core::queue::{ClientId, RESERVED, Ticket, UNSEEN};
use leasehold_core::{LockId, Resource};

use super::exchange::misfit;
use super::sql::Sql;
use super::statements::{CHANNEL, COLUMNS, MARKER_ROW, NOW_MS, Notify};
use super::{Answer, Codec, Field, Param, Statement};

/// The most places in a line. Who finds no place polls.
const MOST: usize = 1_000;
/// The time after which a client that was not seen is forgotten.
const FORGOTTEN_SECONDS: u32 = 60;

/// The server's clock in microseconds since 1970.
const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
/// Reserved for nobody.
const NEVER: &str = "decode('0000000000000000', 'hex')";

/// The statements of queues in one table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct QueueTexts {
    pub(super) join: Sql,
    pub(super) see: Sql,
    forget: Sql,
    leave: Sql,
    look: Sql,
    waiting: Sql,
}

/// The one who asks, as queues know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// Its client.
    pub client: ClientId,
    /// The client was [seen](Codec::see) within the last seconds.
    pub is_seen: bool,
    /// It had a place when it last asked.
    pub has_place: bool,
}

/// Turns and places that a statement has told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The tickets whose turn has come.
    pub turns: Vec<(Resource, Ticket)>,
    /// The place of each operation that has one, among those who wait.
    pub places: Vec<(Resource, LockId, u64)>,
    /// How long the lock of a place is reserved for another.
    pub reserved: Vec<(Resource, LockId, Duration)>,
    /// The client was seen.
    pub is_seen: bool,
}

/// A place in the queue, as its client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// The lock.
    pub resource: Resource,
    /// The acquisition.
    pub lock: LockId,
    /// It should try now.
    pub is_due: bool,
    /// The place among those who wait; `None` if it has none, and in its turn.
    pub place: Option<u64>,
}

/// The first place of a line, in its turn or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    ticket: Ticket,
    is_reserved: bool,
    until_us: u64,
}

impl Head {
    pub(super) fn of(field: &Field) -> Option<Self> {
        let Field::Bytes(bytes) = field else { return None };
        let until_us = u64::from_be_bytes(bytes.get(32..40)?.try_into().ok()?);
        Some(Self { ticket: ticket_of(bytes.get(..24)?)?, is_reserved: until_us != 0, until_us })
    }

    /// How long the lock is reserved for it, by the server's clock. What it was asked for has not passed.
    pub(super) fn reserved_for(&self, unix_ms: u64) -> Option<Duration> {
        let left = Duration::from_micros(self.until_us.saturating_sub(unix_ms.saturating_mul(1_000)));
        self.is_reserved.then(|| left.min(RESERVED))
    }

    /// Tells if it keeps a lock that is free from another.
    pub(super) fn comes_before(&self, ticket: Ticket, acquire: &Acquire) -> bool {
        self.ticket != ticket && (acquire.in_queue || self.is_reserved)
    }
}

impl QueueTexts {
    pub(super) fn new(table: &str, waiters: &str, notify: Notify) -> Self {
        let is_free = "(l.released OR l.expires_at <= clock_timestamp())";
        let joins = format!("(octet_length(f.x) < {} AND position($3::bytea IN f.x) = 0)", 40 * MOST);
        let of_queue = |what: &str| {
            format!(
                "(SELECT {what} FROM (SELECT coalesce({}, ''), {is_free} OFFSET 0) AS f (x, is_free))",
                standing("l.line", waiters)
            )
        };
        let has_changed = of_queue(&format!(
            "CASE WHEN f.is_free THEN f.x <> '' AND substr(f.x, 1, 24) <> $3::bytea AND (substr(f.x, 33, 8) = {NEVER} \
             OR {joins}) ELSE {joins} END"
        ));
        let changed = of_queue(&format!(
            "CASE WHEN f.is_free THEN {} ELSE f.x END || CASE WHEN {joins} THEN $3::bytea || int8send({NOW}) || {NEVER} \
             ELSE '' END",
            called("f.x")
        ));
        let at = |k: &str| {
            format!(
                "generate_series(0, octet_length(l.line) / 40 - 1) AS k (i) WHERE substr(l.line, 40 * k.i + 1, 24) = {k}"
            )
        };
        let left = format!(
            "(SELECT CASE WHEN t.had_turn THEN {} ELSE nullif(t.rest, '') END FROM (SELECT \
             substr(l.line, 1, 40 * k.i) || substr(l.line, 40 * k.i + 41), substr(l.line, 40 * k.i + 33, 8) > int8send({NOW}) \
             FROM {} ORDER BY k.i LIMIT 1 OFFSET 0) AS t (rest, had_turn))",
            called_first("t.rest", waiters),
            at("$3::bytea")
        );
        let told = match notify {
            Notify::Off => String::new(),
            Notify::On => format!(", CASE WHEN substr(l.line, 33, 8) > int8send({NOW}) THEN {} END", notified()),
        };
        Self {
            join: Sql::writes_in_time(&format!(
                ", j AS (UPDATE {table} AS l SET line = {changed} FROM c WHERE l.resource = $2::text AND \
                 $4::boolean AND l.marker IS NULL AND (l.nonce IS DISTINCT FROM $5::bytea OR NOT l.released AND \
                 {is_free} AND l.seq < $6::bigint) AND NOT ($7::boolean AND \
                 coalesce(l.done_until > clock_timestamp(), false)) AND {has_changed} RETURNING l.line) \
                 SELECT m.marker, NULL::text, {NOW_MS}, {COLUMNS}, substr({first}, 1, 40), {place} FROM (SELECT 1) AS one \
                 LEFT JOIN {table} AS m ON m.resource = {MARKER_ROW} LEFT JOIN {table} AS l ON l.resource = $2::text \
                 LEFT JOIN LATERAL (SELECT coalesce((SELECT j.line FROM j), l.line) OFFSET 0) AS v (line) ON true",
                first = standing("v.line", waiters),
                place = place("v.line", waiters, "$3::bytea"),
            )),
            see: Sql::writes_for_now(format!(
                "INSERT INTO {waiters} AS w (client, seen_at) VALUES ($1::bytea, clock_timestamp()) ON CONFLICT (client) \
                 DO UPDATE SET seen_at = EXCLUDED.seen_at"
            )),
            forget: Sql::writes_for_now(format!(
                "DELETE FROM {waiters} AS w WHERE w.client IN (SELECT o.client FROM {waiters} AS o WHERE o.seen_at < \
                 clock_timestamp() - interval '{FORGOTTEN_SECONDS} seconds' LIMIT 100 FOR UPDATE SKIP LOCKED)"
            )),
            leave: Sql::writes_in_time(&format!(
                "UPDATE {table} AS l SET line = {left} FROM c WHERE l.resource = $2::text AND EXISTS \
                 (SELECT FROM {}) RETURNING CASE WHEN substr(l.line, 33, 8) > int8send({NOW}) THEN substr(l.line, 1, 24) END{told}",
                at("$3::bytea")
            )),
            look: Sql::reads(format!(
                "SELECT k.resource, k.ticket, coalesce({is_free}, true), substr({first}, 1, 40), {place} \
                 FROM unnest($1::text[], $2::bytea[]) AS k (resource, ticket) LEFT JOIN {table} AS l \
                 ON l.resource = k.resource",
                first = standing("l.line", waiters),
                place = place("l.line", waiters, "k.ticket"),
            )),
            waiting: Sql::reads(format!(
                "SELECT count(*) OVER (), substr(l.line, 40 * p.i + 25, 8) FROM {table} AS l, {} AND {} = {NEVER} \
                 AND l.resource = $1::text ORDER BY p.i LIMIT 1",
                places("l.line", waiters),
                reserved("l.line"),
            )),
        }
    }
}

/// The places of a line that stand: their client was seen, and their turn has not passed. A time that no honest client
/// writes reserves nothing.
fn places(queue: &str, waiters: &str) -> String {
    let reserved = reserved(queue);
    format!(
        "generate_series(0, octet_length({queue}) / 40 - 1) AS p (i), {waiters} AS w \
         WHERE w.client = substr({queue}, 40 * p.i + 1, 16) AND w.seen_at >= clock_timestamp() - interval '{} seconds' \
         AND ({reserved} = {NEVER} OR {reserved} > int8send({NOW}) AND {reserved} <= int8send({NOW} + {}))",
        UNSEEN.as_secs(),
        RESERVED.as_micros(),
    )
}

fn reserved(queue: &str) -> String {
    format!("substr({queue}, 40 * p.i + 33, 8)")
}

/// The queue from the first place that stands.
fn standing(queue: &str, waiters: &str) -> String {
    format!("(SELECT substr({queue}, 40 * p.i + 1) FROM {} ORDER BY p.i LIMIT 1)", places(queue, waiters))
}

/// A queue whose first place has its turn.
fn called(queue: &str) -> String {
    format!(
        "CASE WHEN substr({queue}, 33, 8) = {NEVER} THEN overlay({queue} PLACING int8send({NOW} + {}) FROM 33) ELSE {queue} END",
        RESERVED.as_micros()
    )
}

/// A queue that begins with the turn of the first who stands; NULL if nobody does.
pub(super) fn called_first(queue: &str, waiters: &str) -> String {
    format!("(SELECT {} FROM (SELECT {} OFFSET 0) AS f (x))", called("f.x"), standing(queue, waiters))
}

/// The number of a ticket among those who wait.
fn place(queue: &str, waiters: &str, ticket: &str) -> String {
    format!(
        "(SELECT q.n FROM (SELECT substr({queue}, 40 * p.i + 1, 24), row_number() OVER (ORDER BY p.i) FROM {} AND {} = \
         {NEVER}) AS q (ticket, n) WHERE q.ticket = {ticket} LIMIT 1)",
        places(queue, waiters),
        reserved(queue)
    )
}

/// Tells the first in the queue of its turn, on the channel of its client.
pub(super) fn notified() -> String {
    format!(
        "pg_notify('{CHANNEL}_' || encode(substr(l.line, 1, 16), 'hex'), encode(substr(l.line, 17, 8), 'hex') || l.resource)"
    )
}

/// The condition that an acquire adds to its statement where a ticket may have a place, and the queue that is left.
pub(super) fn of_acquire(waiters: &str) -> (String, String) {
    let of_first =
        |what: &str| format!("(SELECT {what} FROM (SELECT {} OFFSET 0) AS f (x))", standing("l.line", waiters));
    let comes_first = of_first(&format!(
        "f.x IS NULL OR substr(f.x, 1, 24) = $10::bytea OR NOT $11::boolean AND substr(f.x, 33, 8) = {NEVER}"
    ));
    let rest = of_first("CASE WHEN substr(f.x, 1, 24) = $10::bytea THEN nullif(substr(f.x, 41), '') ELSE f.x END");
    (format!("AND (l.line IS NULL OR {comes_first})"), format!(", line = CASE WHEN l.line IS NOT NULL THEN {rest} END"))
}

/// The parameter that names a ticket.
pub(super) fn named(ticket: Ticket) -> Vec<u8> {
    let mut bytes = ticket.client.0.to_vec();
    bytes.extend(ticket.lock.get().to_be_bytes());
    bytes
}

fn ticket_of(bytes: &[u8]) -> Option<Ticket> {
    let (client, lock) = bytes.split_at_checked(16)?;
    let lock = LockId::new(u64::from_be_bytes(lock.try_into().ok()?));
    Some(Ticket { client: ClientId(client.try_into().ok()?), lock })
}

pub(super) fn turn(field: Option<&Field>) -> Option<Ticket> {
    let Field::Bytes(bytes) = field? else { return None };
    ticket_of(bytes)
}

pub(super) fn number(field: &Field) -> Option<u64> {
    let Field::Int(number) = field else { return None };
    u64::try_from(*number).ok()
}

/// For those who wait. All of it does nothing where the codec has no [queues](super::Settings::queues).
impl Codec {
    /// Says that a client waits and is alive, so that it keeps its places.
    pub fn see(&self, client: ClientId) -> Statement {
        Statement::maybe(self.texts.queues.as_ref().map(|queues| &queues.see), [Param::Bytea(Some(client.0.to_vec()))])
    }

    /// Forgets clients that were not seen for a minute, some at a time.
    pub fn forget_unseen(&self) -> Statement {
        Statement::maybe(self.texts.queues.as_ref().map(|queues| &queues.forget), [])
    }

    /// Gives up a ticket, and passes on what is reserved for it; [`Codec::left`] reads the answer.
    pub fn leave(&self, resource: &Resource, ticket: Ticket, patience: core::time::Duration) -> Statement {
        let text = self.texts.queues.as_ref().map(|queues| &queues.leave);
        let patience = patience.as_millis().max(1).to_string();
        let (patience, name) = (Param::Text(Some(patience)), Param::Text(Some(resource.as_str().to_string())));
        Statement::maybe(text, [patience, name, Param::Bytea(Some(named(ticket)))])
    }

    /// The ticket whose turn has come.
    pub fn left(answer: &Answer) -> Option<Ticket> {
        turn(answer.as_ref().ok()?.first()?.first())
    }

    /// Looks for the turns of tickets of a client; [`Codec::sights`] reads the answer.
    pub fn look_at_places(&self, client: ClientId, places: &[(Resource, LockId)]) -> Statement {
        let text = self.texts.queues.as_ref().map(|queues| &queues.look);
        let names = places.iter().map(|(resource, _)| resource.as_str().to_string()).collect();
        let tickets = places.iter().map(|(_, lock)| named(Ticket { client, lock: *lock })).collect();
        Statement::maybe(text, [Param::TextArray(names), Param::ByteaArray(tickets)])
    }

    /// Reads the answer to [`Codec::look_at_places`].
    ///
    /// # Errors
    /// The queue could not be read.
    pub fn sights(answer: Answer) -> Result<Vec<Sight>, Outcome> {
        let sight = |row: &Vec<Field>| {
            let [Field::Text(name), Field::Bytes(ticket), Field::Bool(is_free), head, place] = row.as_slice() else {
                return None;
            };
            let (resource, ticket, place) = (Resource::new(name).ok()?, ticket_of(ticket)?, number(place));
            let own = Head::of(head).filter(|head| head.ticket == ticket);
            // A lock that is free, and reserved for nobody, although somebody waits: a turn was missed, or the lock ran out. The
            // try of the waiter that sees it passes the turn on.
            let is_passed = *is_free && Head::of(head).is_some_and(|head| !head.is_reserved);
            let is_due = is_passed || own.map_or(place.is_none(), |own| own.is_reserved);
            Some(Sight { resource, lock: ticket.lock, is_due, place })
        };
        answer?.iter().map(sight).collect::<Option<_>>().ok_or_else(misfit)
    }

    /// Asks how many wait for a lock; [`Codec::waiting`] reads the answer.
    pub fn ask_waiting(&self, resource: &Resource) -> Statement {
        let text = self.texts.queues.as_ref().map(|queues| &queues.waiting);
        Statement::maybe(text, [Param::Text(Some(resource.as_str().to_string()))])
    }

    /// How many wait, and since when in milliseconds since 1970; `None` for nobody.
    pub fn waiting(answer: &Answer) -> Option<(u64, u64)> {
        let [count, Field::Bytes(joined)] = answer.as_ref().ok()?.first()?.as_slice() else { return None };
        let joined_us = u64::from_be_bytes(joined.as_slice().try_into().ok()?);
        Some((number(count)?, joined_us / 1_000))
    }

    /// The channel on which a client is told of its turns.
    pub fn turns_channel(client: ClientId) -> String {
        let client: String = client.0.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{CHANNEL}_{client}")
    }

    /// Reads a message on [`Codec::turns_channel`].
    pub fn turn_of(payload: &str) -> Option<(Resource, LockId)> {
        let (lock, resource) = payload.split_at_checked(16)?;
        Some((Resource::new(resource).ok()?, LockId::new(u64::from_str_radix(lock, 16).ok()?)))
    }
}

/// The condition of an acquire that has no place: nobody may have one. It is checked on the latest version of the row.
pub(super) const NOBODY_WAITS: &str = "AND l.line IS NULL";
