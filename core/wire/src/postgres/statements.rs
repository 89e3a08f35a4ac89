//! The texts of the statements. Each is complete in itself: none depends on a session, a prepared statement or another one.
//!
//! A condition on the lock's own row is checked on its latest version, after its lock was taken. Other rows are read as
//! they were when the statement began, so the marker of a quorum is locked before the lock's row is looked at.

use alloc::format;
use alloc::string::String;

use leasehold_core::member::{Durability, RETENTION};
use leasehold_core::{Seq, Token};

use super::queue::{self, NOBODY_WAITS, QueueTexts};
use super::schema;
use super::sql::Sql;

/// The resource of the row that holds the marker, as a literal. The byte 0x1F cannot occur in a resource.
pub(super) const MARKER_ROW: &str = "E'leasehold\\x1fquorum'";

/// The channel on which releases are told, with the resource as payload.
pub const CHANNEL: &str = "leasehold";

/// The columns of [`super::rows::LockRow`], in this order. Tables of earlier versions have no column for the record of a run: asked for by
/// its name in this way it is null there.
pub(super) const COLUMNS: &str = "l.resource, l.counter, l.nonce, l.seq, l.released, l.ttl_us, \
    (extract(epoch FROM l.expires_at - clock_timestamp()) * 1000000)::bigint, \
    (extract(epoch FROM l.since) * 1000)::bigint, l.owner, l.data, l.trust, \
    l.done_nonce, l.done_token, l.done_owner, (extract(epoch FROM l.done_at) * 1000)::bigint, \
    (extract(epoch FROM l.done_until - clock_timestamp()) * 1000000)::bigint, \
    (extract(epoch FROM l.done_until - l.done_at) * 1000000)::bigint, \
    CASE WHEN l.done_until > clock_timestamp() THEN to_jsonb(l) ->> 'about' END";

/// The server's clock in milliseconds since 1970.
pub(super) const NOW_MS: &str = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// The server's timeline, which every promotion of a replica and every recovery from an archive changes.
pub(super) const RUN: &str = "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)";

/// The server's words where [`super::Codec::completion_in`] is refused.
const MARK_REFUSED: &str = "leasehold: the lease of this run is lost, or its record is in another database: roll back";

const LIVE: &str = "NOT l.released AND l.expires_at > clock_timestamp()";

/// The statements for one table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Texts {
    pub(super) acquire: Sql,
    /// The same where somebody waits; without queues it is that one.
    pub(super) acquire_in_turn: Sql,
    pub(super) forget: Sql,
    pub(super) vote: Sql,
    pub(super) renew: Sql,
    /// Frees a lock that nobody waits for: the server plans it in half the time. Without queues it is the next one.
    pub(super) release: Sql,
    pub(super) release_to_next: Sql,
    pub(super) finish: Sql,
    /// The same with the record of the run, for which tables of earlier versions have no column.
    pub(super) finish_with_about: Sql,
    pub(super) revoke: Sql,
    pub(super) raise: Sql,
    pub(super) read: Sql,
    pub(super) read_in_quorum: Sql,
    pub(super) mark_new: Sql,
    pub(super) mark: Sql,
    pub(super) unmark: Sql,
    pub(super) look: Sql,
    pub(super) completion_in: Sql,
    pub(super) completion_in_with_about: Sql,
    pub(super) list: Sql,
    pub(super) list_runs: Sql,
    pub(super) queues: Option<QueueTexts>,
}

/// Releases are told to those who listen, or to nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Notify {
    /// Nobody: waiters poll. All commits that notify wait for one another.
    #[default]
    Off,
    /// Those who listen on [`CHANNEL`].
    On,
}

impl Texts {
    pub(super) fn new(schema: &str, notify: Notify, durability: Durability, has_queues: bool) -> Self {
        let table = &*schema::table(schema);
        let waiters = has_queues.then(|| schema::waiters(schema));
        let waiters = waiters.as_deref();
        let run = match durability {
            Durability::Declared => "NULL::text",
            Durability::NotDeclared => RUN,
        };
        let all = format!("pg_notify('{CHANNEL}', l.resource)");
        let freed = Freed::new(waiters);
        let (turn, told, finished) = (&freed.turn, freed.told(&all, notify), freed.finished(&all, notify));
        let served = &freed.queue;
        let told_all = if notify == Notify::On { format!(", {all}") } else { String::new() };
        let (comes_first, rest) = waiters.map(queue::of_acquire).unwrap_or_default();
        let nobody_waits = if has_queues { NOBODY_WAITS } else { "" };
        let (free, waited_for) =
            (Kept { condition: nobody_waits, queue: "" }, Kept { condition: &comes_first, queue: &rest });
        let granting = |part: String| Sql::writes_in_time(&format!(", {part} SELECT a.counter, a.is_new FROM a"));
        let one = "l.resource = $2::text AND l.nonce = $3::bytea";
        let finish = |about: &str| {
            Sql::writes_in_time(&format!(
                "UPDATE {table} AS l SET released = true, done_nonce = l.nonce, \
                 done_token = $4::bigint, done_owner = $5::text, done_at = clock_timestamp(), \
                 done_until = clock_timestamp() + $6::bigint * interval '1 microsecond'{about}{served} FROM c WHERE {one} AND \
                 {LIVE} AND l.counter = $7::bigint RETURNING 1::bigint{turn}{finished}"
            ))
        };
        Self {
            acquire: granting(acquire(table, "c", &free)),
            acquire_in_turn: granting(acquire(table, "c", &waited_for)),
            forget: forget(table),
            vote: Sql::writes_in_time(&format!(
                ", r AS MATERIALIZED (SELECT {run} AS run), m AS MATERIALIZED (SELECT s.marker, \
                 s.marker = $10::text OR (starts_with(s.marker, $11::text) AND s.marker LIKE \
                 '% phase=member run=' || coalesce(r.run, '%')) AS votes \
                 FROM {table} AS s, c, r WHERE s.resource = {MARKER_ROW} FOR SHARE OF s), {} \
                 SELECT m.marker, m.votes, r.run, {NOW_MS}, a.counter, a.trust, a.is_new \
                 FROM r LEFT JOIN m ON true LEFT JOIN a ON true",
                acquire(table, "m WHERE m.votes", &Kept::default())
            )),
            // A row that is locked by a transaction of a user must not stop the renewals of all others.
            renew: Sql::writes_in_time(&format!(
                ", asked AS MATERIALIZED (SELECT k.* FROM c, unnest($2::text[], $3::bytea[], \
                 $4::bigint[], $5::bigint[]) AS k (resource, nonce, seq, ttl_us)), \
                 free AS MATERIALIZED (SELECT l.resource FROM {table} AS l JOIN asked AS k USING (resource, nonce) \
                 WHERE {LIVE} FOR UPDATE OF l SKIP LOCKED) \
                 UPDATE {table} AS l SET seq = k.seq, ttl_us = GREATEST(l.ttl_us, k.ttl_us), \
                 expires_at = GREATEST(l.expires_at, clock_timestamp() + k.ttl_us * interval '1 microsecond') \
                 FROM asked AS k, free WHERE free.resource = k.resource AND l.resource = k.resource \
                 AND l.nonce = k.nonce AND l.seq < k.seq AND {LIVE} RETURNING l.resource, l.nonce"
            )),
            release: Sql::writes_in_time(&format!(
                "UPDATE {table} AS l SET released = true FROM c WHERE {one} AND NOT l.released \
                 {nobody_waits} RETURNING 1::bigint{told_all}"
            )),
            release_to_next: Sql::writes_in_time(&format!(
                "UPDATE {table} AS l SET released = true{served} FROM c WHERE {one} AND NOT l.released \
                 RETURNING 1::bigint{turn}{told}"
            )),
            finish: finish(""),
            finish_with_about: finish(&first_about("$8::text")),
            // Every renewal is older than the last number there is.
            revoke: Sql::writes_in_time(&format!(
                "UPDATE {table} AS l SET seq = {last} FROM c WHERE {one} AND {LIVE} RETURNING 1::bigint",
                last = Seq::LAST
            )),
            raise: Sql::writes_in_time(&format!(
                "UPDATE {table} AS l SET counter = GREATEST(l.counter, $4::bigint), \
                 trust = CASE WHEN EXISTS (SELECT FROM {table} AS s WHERE s.resource = {MARKER_ROW} AND s.marker LIKE \
                 '% stamp=' || $5::text || ' phase=rejoined:%') THEN $5::text ELSE l.trust END \
                 FROM c WHERE {one} AND {LIVE} RETURNING l.counter"
            )),
            read: read(table, "NULL::text"),
            read_in_quorum: read(table, run),
            mark_new: Sql::writes(&format!(
                "INSERT INTO {table} (resource, counter, nonce, seq, released, ttl_us, since, expires_at, owner, \
                 marker) SELECT {MARKER_ROW}, 0, decode(repeat('00', 16), 'hex'), 0, true, 0, clock_timestamp(), \
                 clock_timestamp(), '', $1::text FROM c ON CONFLICT (resource) DO NOTHING RETURNING marker"
            )),
            mark: Sql::writes(&format!(
                "UPDATE {table} AS l SET marker = $1::text FROM c WHERE l.resource = {MARKER_ROW} AND l.marker = $2::text \
                 RETURNING l.marker"
            )),
            unmark: Sql::writes(&format!(
                "DELETE FROM {table} AS l USING c WHERE l.resource = {MARKER_ROW} AND l.marker = $1::text RETURNING l.marker"
            )),
            look: Sql::reads(format!(
                "SELECT (SELECT s.marker FROM {table} AS s WHERE s.resource = {MARKER_ROW}), {}, {}",
                schema::has_queues(schema),
                schema::has_column(schema, "about")
            )),
            completion_in: completion_in(table, ""),
            completion_in_with_about: completion_in(table, &first_about("($1::text[])[7]")),
            list: list(table, LIVE),
            list_runs: list(
                table,
                &format!(
                    "position('@' IN l.resource) > 0 AND ({LIVE} OR coalesce(l.done_until > clock_timestamp(), false))"
                ),
            ),
            queues: waiters.map(|waiters| QueueTexts::new(table, waiters, notify)),
        }
    }
}

/// The condition that queues add to an acquire, and the queue that is left.
#[derive(Default)]
struct Kept<'a> {
    condition: &'a str,
    queue: &'a str,
}

/// The parts that queues add to statements that free a lock.
struct Freed {
    queue: String,
    turn: &'static str,
}

impl Freed {
    fn new(waiters: Option<&str>) -> Self {
        let called = waiters.map(|waiters| queue::called_first("l.line", waiters));
        let queue = called.map(|called| format!(", line = CASE WHEN l.line IS NOT NULL THEN {called} END"));
        Self { queue: queue.unwrap_or_default(), turn: if waiters.is_some() { ", substr(l.line, 1, 24)" } else { "" } }
    }

    /// Tells the one whose turn has come, or all if nobody stands in the queue.
    fn told(&self, all: &str, notify: Notify) -> String {
        match (notify, self.queue.is_empty()) {
            (Notify::Off, _) => String::new(),
            (Notify::On, true) => format!(", {all}"),
            (Notify::On, false) => format!(", CASE WHEN l.line IS NULL THEN {all} ELSE {} END", queue::notified()),
        }
    }

    /// Tells all who stand by for the end of the work as well.
    fn finished(&self, all: &str, notify: Notify) -> String {
        match (notify, self.queue.is_empty()) {
            (Notify::Off, _) => String::new(),
            (Notify::On, true) => format!(", {all}"),
            (Notify::On, false) => format!(", {all}, CASE WHEN l.line IS NOT NULL THEN {} END", queue::notified()),
        }
    }
}

/// Grants a lock that is free.
fn acquire(table: &str, from: &str, kept: &Kept<'_>) -> String {
    let Kept { condition, queue } = kept;
    let ttl = "$6::bigint * interval '1 microsecond'";
    format!(
        "a AS (INSERT INTO {table} AS l (resource, counter, nonce, seq, released, ttl_us, since, expires_at, owner, data) \
         SELECT $2::text, $3::bigint, $4::bytea, $5::bigint, false, $6::bigint, clock_timestamp(), \
         clock_timestamp() + {ttl}, $7::text, $8::bytea FROM {from} \
         ON CONFLICT (resource) DO UPDATE SET counter = GREATEST(l.counter + 1, EXCLUDED.counter), \
         nonce = EXCLUDED.nonce, seq = EXCLUDED.seq, released = false, ttl_us = EXCLUDED.ttl_us, \
         since = clock_timestamp(), expires_at = clock_timestamp() + {ttl}, owner = EXCLUDED.owner, \
         data = EXCLUDED.data{queue} \
         WHERE (l.released OR l.expires_at <= clock_timestamp()) \
         AND (l.nonce <> EXCLUDED.nonce OR (NOT l.released AND l.seq < EXCLUDED.seq)) AND l.counter < {max} \
         AND NOT ($9::boolean AND coalesce(l.done_until > clock_timestamp(), false)) {condition} \
         RETURNING l.counter, l.trust, l.xmax = 0 AS is_new)",
        max = Token::MAX
    )
}

/// Forgets a few neighbours of a new name whose counter no longer matters. Names that count upwards or have a date are
/// followed by their oldest relatives, so a few for each new name keep ever-new names from filling the disk.
fn forget(table: &str) -> Sql {
    let is_old = |row: &str| {
        let retention = RETENTION.as_secs();
        format!("{row}.marker IS NULL AND {row}.expires_at < clock_timestamp() - interval '{retention} seconds'")
    };
    Sql::writes(&format!(
        "DELETE FROM {table} AS l USING c WHERE l.resource IN (\
         SELECT o.resource FROM {table} AS o WHERE o.resource IN (\
         SELECT n.resource FROM {table} AS n WHERE n.resource > $1::text ORDER BY n.resource LIMIT 4) \
         AND {} AND coalesce(o.done_until <= clock_timestamp(), true) FOR UPDATE SKIP LOCKED) AND {}",
        is_old("o"),
        is_old("l")
    ))
}

/// A page of names, and which of their rows are asked for. The name of the first page may be the prefix itself, which no later one can be.
fn list(table: &str, which: &str) -> Sql {
    Sql::reads(format!(
        "SELECT l.resource, {which} AND l.marker IS NULL FROM {table} AS l WHERE l.resource >= $1::text AND \
         (l.resource > $1::text OR $1::text = $2::text) ORDER BY l.resource LIMIT $3::bigint"
    ))
}

/// Writes the record of the run, unless this attempt has finished already: the first result is told to everybody.
fn first_about(about: &str) -> String {
    format!(
        ", about = CASE WHEN l.done_nonce = l.nonce AND l.done_until > clock_timestamp() THEN l.about ELSE {about} END"
    )
}

/// Marks finished work in a transaction of the user's, and fails if the lease is over, so that nothing of it is committed.
///
/// From here to the end of that transaction the row is locked, so nobody else is granted the lock meanwhile. The failure is a
/// text that is no number, since a statement cannot raise an error of its own; an aggregate is what no planner reads ahead.
fn completion_in(table: &str, about: &str) -> Sql {
    let run = |at: u8| format!("($1::text[])[{at}]");
    Sql::writes_in_theirs(&format!(
        ", marked AS (UPDATE {table} AS l SET done_nonce = l.nonce, done_token = {token}::bigint, \
         done_owner = {owner}, done_at = clock_timestamp(), \
         done_until = clock_timestamp() + {keep}::bigint * interval '1 microsecond'{about} \
         FROM leasehold_on_disk WHERE l.resource = {resource} AND l.nonce = decode({nonce}, 'hex') \
         AND l.counter = {counter}::bigint AND {LIVE} RETURNING 1) \
         SELECT (SELECT CASE count(*) WHEN 1 THEN '1' ELSE '{MARK_REFUSED}' END FROM marked)::bigint AS marked",
        resource = run(1),
        nonce = run(2),
        token = run(3),
        owner = run(4),
        keep = run(5),
        counter = run(6),
    ))
}

fn read(table: &str, run: &str) -> Sql {
    Sql::reads(format!(
        "SELECT m.marker, {run}, {NOW_MS}, {COLUMNS} FROM (SELECT 1) AS one \
         LEFT JOIN {table} AS m ON m.resource = {MARKER_ROW} LEFT JOIN {table} AS l ON l.resource = ANY($1::text[])"
    ))
}
