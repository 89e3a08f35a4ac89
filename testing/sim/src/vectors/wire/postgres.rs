//! PostgreSQL, by a driver of the host.

use leasehold_core::config::Wait;
use leasehold_wire::client::{PostgresStore, Store};
use leasehold_wire::postgres::Notify;

use super::scenario::Scenario;
use crate::format::{RefusalTime, Row, SqlValue, WireVector};

pub(super) const ALL: &[fn() -> WireVector] = &[postgres_statements, postgres_errors];

const NOW_MS: u64 = 1_700_000_000_000;

fn table(schema: &str, notify: Notify) -> Store {
    Store::Postgres(PostgresStore { schema: schema.to_owned(), notify })
}

fn number(value: u64) -> SqlValue {
    SqlValue::Number { value }
}

fn text(text: &str) -> SqlValue {
    SqlValue::Text { value: text.to_owned() }
}

fn bytes(bytes: &[u8]) -> SqlValue {
    SqlValue::Bytes { value: bytes.iter().map(|byte| format!("{byte:02x}")).collect() }
}

fn one(columns: Vec<SqlValue>) -> Vec<Row> {
    vec![Row { columns }]
}

/// Marker, run and clock as a read shows them, where there is no quorum.
fn memory() -> Vec<SqlValue> {
    vec![SqlValue::Null {}, SqlValue::Null {}, number(NOW_MS)]
}

/// The row of a lock that another client holds for 8 s more, as a read shows it.
fn held(name: &str) -> Vec<Row> {
    let mut columns = memory();
    columns.extend([text(name), number(NOW_MS), bytes(&[0xee; 16]), number(1), SqlValue::Truth { value: false }]);
    columns.extend([number(12_000_000), number(8_000_000), number(NOW_MS - 4_000), text("host-b")]);
    columns.resize(21, SqlValue::Null {});
    one(columns)
}

impl Scenario {
    /// The oldest request is granted. A new name is followed by a statement that cleans up.
    fn granted(&mut self, counter: u64, is_new: bool) -> &mut Self {
        self.rows(one(vec![number(counter), SqlValue::Truth { value: is_new }]))
    }
}

fn postgres_statements() -> WireVector {
    let mut s = Scenario::new(
        "postgres_statements",
        "Statements for a PostgreSQL: a lease granted under a new name, whose neighbours are looked after behind it, renewed and \
         released; a lock that another client holds, found by a second statement.",
        &[table("public", Notify::Off)],
    );
    s.acquire(1, "invoice/42", Wait::Forever).granted(NOW_MS, true).rows(Vec::new());
    s.wake_until_sent();
    let nonce = s.nonce();
    s.rows(one(vec![text("invoice/42"), bytes(&nonce)]));
    s.release(1).rows(one(vec![number(1)]));
    s.acquire(2, "größe \"x\" \\", Wait::Once).rows(Vec::new()).rows(held("größe \"x\" \\"));
    s.told()
}

fn postgres_errors() -> WireVector {
    let mut s = Scenario::new(
        "postgres_errors",
        "Refusals of a PostgreSQL in the order: a user who may not log in, a table that is missing, a row that a transaction \
         holds, a session that ends in the middle, rows that fit no statement of ours, and no connection at all.",
        &[table("locks \"of\" ours", Notify::On)],
    );
    use RefusalTime::{AtLogin, AtTheEnd, InSession};
    for (lock, (code, message, when)) in (1..).zip([
        ("28P01", "password authentication failed for user \"app\"", AtLogin),
        ("42P01", "relation \"leasehold\" does not exist", InSession),
        ("55P03", "canceling statement due to lock timeout", InSession),
        ("57P01", "terminating connection due to administrator command", AtTheEnd),
    ]) {
        s.acquire(lock, &format!("lock {lock}"), Wait::Once).server_error(code, message, when);
        if !s.is_over(lock) {
            s.wake_until_sent().granted(NOW_MS, false);
            s.release(lock).rows(one(vec![number(1)]));
        }
    }
    s.acquire(5, "lock 5", Wait::Once).rows(one(vec![text("who are you?")]));
    s.wake_until_sent().granted(NOW_MS, false);
    s.release(5).rows(one(vec![number(1)]));
    s.acquire(6, "lock 6", Wait::Once).not_sent();
    s.acquire(7, "lock 7", Wait::Once).lost();
    s.wake_until_sent().granted(NOW_MS, false);
    s.release(7).unanswered();
    s.told()
}
