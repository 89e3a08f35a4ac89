//! Guards for PostgreSQL against holders that do not know that they are too late, on a real server.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

mod common;

use common::eventually;
use leasehold::ErrorKind;
use leasehold::fence::{Error, PostgresGuard, PostgresRowGuard};
use leasehold_servers::postgres::{Schema, Server};
use postgres::error::SqlState;
use postgres::{Client, GenericClient, IsolationLevel};

const ITEM: &str = "invoice/42";
const OLD: u64 = 33;
const NEW: u64 = 34;
const MAX: u64 = (1 << 53) - 1;
const LEVELS: [IsolationLevel; 3] =
    [IsolationLevel::ReadCommitted, IsolationLevel::RepeatableRead, IsolationLevel::Serializable];

/// The trouble of a caller: a verdict of the guard, or an error of the driver.
#[derive(Debug)]
enum Trouble {
    Guard(Error),
    Driver(postgres::Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Guard(error)
    }
}

impl From<postgres::Error> for Trouble {
    fn from(error: postgres::Error) -> Self {
        Self::Driver(error)
    }
}

impl Trouble {
    #[track_caller]
    fn guard(self) -> Error {
        match self {
            Self::Guard(error) => error,
            Self::Driver(error) => panic!("{error:?}"),
        }
    }

    fn is_serialization_failure(&self) -> bool {
        matches!(self, Self::Driver(error) if error.code() == Some(&SqlState::T_R_SERIALIZATION_FAILURE))
    }
}

type Outcome = Result<(), Trouble>;

fn run(db: &mut impl GenericClient, sql: &str, item: &str, token: u64) -> Outcome {
    let (item, number) = PostgresGuard::parameters(item, token)?;
    let mark = db.query_opt(sql, &[&item, &number])?;
    Ok(PostgresGuard::outcome(item, token, mark.map(|row| row.get(0)))?)
}

fn claim(db: &mut impl GenericClient, token: u64) -> Outcome {
    run(db, PostgresGuard::new().claim_sql(), ITEM, token)
}

fn check(db: &mut impl GenericClient, token: u64) -> Outcome {
    run(db, PostgresGuard::new().check_sql(), ITEM, token)
}

fn high_water(db: &mut impl GenericClient) -> Option<i64> {
    db.query_opt(PostgresGuard::new().read_sql(), &[&ITEM]).unwrap().map(|row| row.get(0))
}

/// An invoice, a guard, and a worker's connection.
fn scene(schema: &Schema<'_>) -> Client {
    let mut db = schema.connect();
    db.batch_execute(
        "CREATE TABLE invoices (id bigint PRIMARY KEY, total bigint, fence bigint);
         INSERT INTO invoices (id, total) VALUES (42, 100)",
    )
    .unwrap();
    db.batch_execute(PostgresGuard::new().create_sql()).unwrap();
    db.batch_execute(PostgresGuard::new().create_sql()).unwrap();
    db
}

fn total(db: &mut impl GenericClient) -> i64 {
    db.query_one("SELECT total FROM invoices WHERE id = 42", &[]).unwrap().get(0)
}

fn write(db: &mut impl GenericClient, total: i64) {
    db.execute("UPDATE invoices SET total = $1 WHERE id = 42", &[&total]).unwrap();
}

fn set_total(db: &mut Client, token: u64, total: i64) -> Outcome {
    let mut change = db.transaction()?;
    check(&mut change, token)?;
    write(&mut change, total);
    Ok(change.commit()?)
}

#[track_caller]
fn assert_stale(outcome: Outcome) {
    let error = outcome.unwrap_err().guard();
    assert_eq!(error.kind(), ErrorKind::StaleToken, "{error}");
    let message = error.to_string();
    assert!(message.contains("33") && message.contains("34"), "{message}");
}

/// Waits until somebody's statement waits for a row.
fn wait_for_a_queue(db: &mut Client, backend: i32) {
    let sql = "SELECT cardinality(pg_blocking_pids($1)) > 0";
    eventually("one waits for the other", || db.query_one(sql, &[&backend]).unwrap().get(0));
}

fn backend(db: &mut Client) -> i32 {
    db.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0)
}

#[test]
fn a_holder_writes_repeatedly_until_its_successor_claims() {
    let server = Server::shared();
    let schema = server.schema();
    let (old, new) = (&mut scene(&schema), &mut schema.connect());
    claim(old, OLD).unwrap();
    claim(old, OLD).unwrap();
    for total in [110, 120] {
        set_total(old, OLD, total).unwrap();
    }
    claim(new, NEW).unwrap();
    let fresh = total(new) + 10;
    set_total(new, NEW, fresh).unwrap();
    assert_stale(set_total(old, OLD, 999));
    assert_stale(claim(old, OLD));
    assert_eq!(total(old), 130);
    set_total(new, NEW, 140).unwrap();
    assert_eq!(high_water(old), Some(34));
}

#[test]
fn a_claim_before_the_read_keeps_a_late_write_from_being_written_over() {
    let server = Server::shared();
    let schema = server.schema();
    let (old, new) = (&mut scene(&schema), &mut schema.connect());
    claim(old, OLD).unwrap();
    let stale = total(old) + 1;
    // The old holder sleeps with its sum in hand; the new one claims, reads, and has not written yet.
    claim(new, NEW).unwrap();
    let fresh = total(new) + 10;
    assert_stale(set_total(old, OLD, stale));
    set_total(new, NEW, fresh).unwrap();
    assert_eq!(total(old), 110);
}

#[test]
fn a_claim_waits_for_a_write_that_has_been_checked() {
    let server = Server::shared();
    let schema = server.schema();
    let (old, new) = (&mut scene(&schema), &mut schema.connect());
    claim(old, OLD).unwrap();
    let mut watch = schema.connect();
    let backend = backend(new);
    let mut change = old.transaction().unwrap();
    check(&mut change, OLD).unwrap();
    std::thread::scope(|scope| {
        let successor = scope.spawn(|| {
            claim(new, NEW).unwrap();
            total(new)
        });
        wait_for_a_queue(&mut watch, backend);
        write(&mut change, 105);
        change.commit().unwrap();
        assert_eq!(successor.join().unwrap(), 105, "whoever claims sees every write that was let through");
    });
}

#[test]
fn a_check_waits_for_a_claim_and_abides_by_its_end() {
    let server = Server::shared();
    for commits in [true, false] {
        let schema = server.schema();
        let (old, new) = (&mut scene(&schema), &mut schema.connect());
        claim(old, OLD).unwrap();
        let mut watch = schema.connect();
        let backend = backend(old);
        let mut change = new.transaction().unwrap();
        claim(&mut change, NEW).unwrap();
        std::thread::scope(|scope| {
            let late = scope.spawn(|| set_total(old, OLD, 101));
            wait_for_a_queue(&mut watch, backend);
            if commits {
                change.commit().unwrap();
                assert_stale(late.join().unwrap());
            } else {
                change.rollback().unwrap();
                late.join().unwrap().unwrap();
            }
        });
        assert_eq!(total(new), if commits { 100 } else { 101 });
    }
}

#[test]
fn two_first_claims_at_once_leave_the_higher() {
    let server = Server::shared();
    let schema = server.schema();
    let (old, new) = (&mut scene(&schema), &mut schema.connect());
    let mut watch = schema.connect();
    let backend = backend(old);
    let mut change = new.transaction().unwrap();
    claim(&mut change, NEW).unwrap();
    std::thread::scope(|scope| {
        let late = scope.spawn(|| claim(old, OLD));
        wait_for_a_queue(&mut watch, backend);
        change.commit().unwrap();
        assert_stale(late.join().unwrap());
    });
    assert_eq!(high_water(&mut watch), Some(34));
}

#[test]
fn a_snapshot_older_than_the_claim_or_the_write_is_refused() {
    let server = Server::shared();
    for level in LEVELS {
        let schema = server.schema();
        let (old, new) = (&mut scene(&schema), &mut schema.connect());
        claim(old, OLD).unwrap();
        // A stale writer whose transaction began before the claim.
        let mut change = old.build_transaction().isolation_level(level).start().unwrap();
        assert_eq!(total(&mut change), 100);
        claim(new, NEW).unwrap();
        let refused = check(&mut change, OLD).unwrap_err();
        match level {
            IsolationLevel::ReadCommitted => assert_stale(Err(refused)),
            _ => assert!(refused.is_serialization_failure(), "{refused:?}"),
        }
        drop(change);

        // A new holder whose transaction began before the last write that was let through.
        let (third, token) = (&mut schema.connect(), NEW + 1);
        let mut change = third.build_transaction().isolation_level(level).start().unwrap();
        assert_eq!(total(&mut change), 100);
        set_total(new, NEW, 110).unwrap();
        let claimed = claim(&mut change, token);
        match level {
            IsolationLevel::ReadCommitted => {
                claimed.unwrap();
                assert_eq!(total(&mut change), 110, "a statement after the claim sees the write");
            }
            _ => assert!(claimed.unwrap_err().is_serialization_failure()),
        }
    }
}

#[test]
fn an_item_that_a_later_holder_deleted_is_not_brought_back() {
    let server = Server::shared();
    let schema = server.schema();
    let (old, new) = (&mut scene(&schema), &mut schema.connect());
    claim(old, OLD).unwrap();
    claim(new, NEW).unwrap();
    let mut change = new.transaction().unwrap();
    check(&mut change, NEW).unwrap();
    change.execute("DELETE FROM invoices WHERE id = 42", &[]).unwrap();
    change.commit().unwrap();

    let mut change = old.transaction().unwrap();
    assert_stale(check(&mut change, OLD));
    drop(change);
    assert_stale(claim(old, OLD));
    let rows: i64 = old.query_one("SELECT count(*) FROM invoices", &[]).unwrap().get(0);
    assert_eq!(rows, 0);
}

#[test]
fn a_claim_that_is_rolled_back_has_no_effect() {
    let server = Server::shared();
    let schema = server.schema();
    let (old, new) = (&mut scene(&schema), &mut schema.connect());
    let mut change = new.transaction().unwrap();
    claim(&mut change, NEW).unwrap();
    check(&mut change, NEW).unwrap();
    change.rollback().unwrap();
    assert_eq!(high_water(new), None);
    claim(old, OLD).unwrap();
    set_total(old, OLD, 101).unwrap();

    let mut change = new.transaction().unwrap();
    claim(&mut change, NEW).unwrap();
    drop(change);
    set_total(old, OLD, 102).unwrap();
}

#[test]
fn a_check_needs_a_claim_and_a_token() {
    let server = Server::shared();
    let schema = server.schema();
    let db = &mut scene(&schema);
    let unclaimed = set_total(db, OLD, 1).unwrap_err().guard();
    assert!(unclaimed.kind() == ErrorKind::Config && unclaimed.to_string().contains("never claimed"), "{unclaimed}");
    assert_eq!(total(db), 100);
    for token in [MAX + 1, u64::MAX] {
        let refused = [PostgresGuard::outcome(ITEM, token, Some(33)), PostgresGuard::parameters(ITEM, token).map(drop)];
        for error in refused.map(Result::unwrap_err) {
            assert!(error.kind() == ErrorKind::Config && error.to_string().contains("9007199254740991"), "{error}");
        }
    }
    claim(db, MAX - 1).unwrap();
    claim(db, MAX).unwrap();
    set_total(db, MAX, 101).unwrap();
    let stale = set_total(db, MAX - 1, 102).unwrap_err().guard();
    assert!(
        stale.to_string().contains("9007199254740990") && stale.to_string().contains("9007199254740991"),
        "{stale}"
    );
    // A caller without `parameters` meets the table's own bounds.
    for number in [-1, 1 << 53, i64::MAX] {
        let error = db.query_opt(PostgresGuard::new().claim_sql(), &[&"new", &number]).unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::CHECK_VIOLATION), "{error}");
    }
    for mark in [-1, 1 << 53, 7] {
        let error = PostgresGuard::outcome(ITEM, OLD, Some(mark)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreRefused, "{mark}: {error}");
    }
}

#[test]
fn names_are_taken_as_they_are() {
    let server = Server::shared();
    let schema = server.schema();
    let db = &mut scene(&schema);
    let odd = "a \"b\"; DROP TABLE invoices; --";
    for guard in [PostgresGuard::with_table(odd).unwrap(), PostgresGuard::in_schema(schema.name(), "Ä.b").unwrap()] {
        db.query_opt(guard.claim_sql(), &[&ITEM, &1_i64]).expect_err("there is no table yet");
        db.batch_execute(guard.create_sql()).unwrap();
        for (item, token) in ["'; DROP TABLE invoices; --", "", "é\u{1f}\\ \"", "É\u{1f}\\ \""].iter().zip(OLD..) {
            run(db, guard.claim_sql(), item, token).unwrap();
            run(db, guard.check_sql(), item, token).unwrap();
            let mark: i64 = db.query_one(guard.read_sql(), &[item]).unwrap().get(0);
            assert_eq!(u64::try_from(mark).unwrap(), token, "no two items share a mark");
        }
    }
    assert_eq!(total(db), 100);
    let nul = PostgresGuard::parameters("a\0b", OLD).unwrap_err();
    assert!(nul.kind() == ErrorKind::Config && nul.to_string().contains("NUL"), "{nul}");
    let long = "x".repeat(64);
    for bad in ["", "a\0b", &long] {
        let errors = [
            PostgresGuard::with_table(bad).map(drop),
            PostgresGuard::in_schema(bad, "t").map(drop),
            PostgresGuard::in_schema("s", bad).map(drop),
            PostgresRowGuard::new(bad, "id", "fence").map(drop),
            PostgresRowGuard::new("t", bad, "fence").map(drop),
            PostgresRowGuard::new("t", "id", bad).map(drop),
        ];
        for error in errors.map(Result::unwrap_err) {
            assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        }
    }
}

fn marks(db: &mut impl GenericClient, sql: &str, key: i64, token: Option<u64>) -> Vec<Option<i64>> {
    let number = token.map(|token| PostgresRowGuard::parameter(token).unwrap());
    let rows = match &number {
        Some(number) => db.query(sql, &[&key, number]),
        None => db.query(sql, &[&key]),
    };
    rows.unwrap().iter().map(|row| row.get(0)).collect()
}

#[test]
fn a_column_of_the_row_guards_it_as_well() {
    let server = Server::shared();
    let schema = server.schema();
    let (old, new) = (&mut scene(&schema), &mut schema.connect());
    let guard = PostgresRowGuard::new("invoices", "id", "fence").unwrap();
    let claim = |db: &mut Client, token| -> Outcome {
        let marks = marks(db, guard.claim_sql(), 42, Some(token));
        Ok(PostgresRowGuard::claim_outcome(token, &marks)?)
    };
    let checked = |db: &mut Client, token, total| -> Outcome {
        let mut change = db.transaction()?;
        let marks = marks(&mut change, guard.check_sql(), 42, Some(token));
        PostgresRowGuard::check_outcome(token, &marks)?;
        write(&mut change, total);
        Ok(change.commit()?)
    };
    let at_once = |db: &mut Client, token, total: i64| -> Outcome {
        let sql =
            format!("UPDATE invoices SET total = $2, {} WHERE id = $1 AND {}", guard.raise(3), guard.condition(3));
        match db.execute(&sql, &[&42_i64, &total, &PostgresRowGuard::parameter(token)?])? {
            0 => Err(PostgresRowGuard::refusal(token, &marks(db, guard.read_sql(), 42, None)).into()),
            _ => Ok(()),
        }
    };
    for write in [&checked as &dyn Fn(&mut Client, u64, i64) -> Outcome, &at_once] {
        new.batch_execute("DELETE FROM invoices; INSERT INTO invoices (id, total) VALUES (42, 100)").unwrap();
        let unclaimed = write(old, OLD, 1).unwrap_err().guard();
        assert!(unclaimed.kind() == ErrorKind::Config && unclaimed.to_string().contains("claimed"), "{unclaimed}");
        claim(old, OLD).unwrap();
        claim(old, OLD).unwrap();
        write(old, OLD, 101).unwrap();
        write(old, OLD, 102).unwrap();
        claim(new, NEW).unwrap();
        assert_stale(write(old, OLD, 999));
        assert_stale(claim(old, OLD));
        write(new, NEW, 103).unwrap();
        assert_eq!(total(old), 103);

        new.execute("DELETE FROM invoices", &[]).unwrap();
        let gone = write(old, OLD, 999).unwrap_err().guard();
        assert!(gone.kind() == ErrorKind::StaleToken && gone.to_string().contains("deleted"), "{gone}");
        assert_eq!(claim(new, NEW).unwrap_err().guard().kind(), ErrorKind::Config);
    }
    // The reason for a write that hit nothing may be gone before anybody asks.
    assert_eq!(PostgresRowGuard::refusal(NEW, &[Some(34)]).kind(), ErrorKind::StoreUnavailable);
    assert_eq!(PostgresRowGuard::refusal(NEW, &[Some(33)]).kind(), ErrorKind::StoreUnavailable);
    assert_eq!(PostgresRowGuard::refusal(MAX + 1, &[Some(33)]).kind(), ErrorKind::Config);
}

#[test]
fn a_column_that_cannot_guard_is_refused() {
    let server = Server::shared();
    let schema = server.schema();
    let db = &mut scene(&schema);
    db.batch_execute(
        "CREATE TABLE texts (id bigint, fence text); INSERT INTO texts VALUES (1, '9');
         CREATE TABLE narrow (id bigint, fence int); INSERT INTO narrow VALUES (1, 9);
         CREATE TABLE coarse (id bigint, fence real); INSERT INTO coarse VALUES (1, 9);
         CREATE TABLE minus (id bigint, fence bigint); INSERT INTO minus VALUES (1, -1);
         CREATE TABLE large (id bigint, fence bigint); INSERT INTO large VALUES (1, 9007199254740992);
         CREATE TABLE pairs (id bigint, fence bigint); INSERT INTO pairs VALUES (1, 1), (1, 1);",
    )
    .unwrap();
    let guard = |table| PostgresRowGuard::new(table, "id", "fence").unwrap();
    let token = 1_789_000_000_000_001;
    let number = PostgresRowGuard::parameter(token).unwrap();
    for table in ["texts", "narrow"] {
        db.query(guard(table).claim_sql(), &[&1_i64, &number]).unwrap_err();
    }
    for table in ["coarse", "minus", "large"] {
        for sql in [guard(table).claim_sql(), guard(table).check_sql()] {
            let marks = marks(db, sql, 1, Some(token));
            for outcome in [PostgresRowGuard::claim_outcome, PostgresRowGuard::check_outcome] {
                let error = outcome(token, &marks).unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::StoreRefused | ErrorKind::StaleToken), "{table}: {error}");
            }
        }
    }
    assert_eq!(marks(db, guard("minus").read_sql(), 1, None), [Some(-1)], "what is no token stays as it was");
    let pairs = PostgresRowGuard::claim_outcome(10, &marks(db, guard("pairs").claim_sql(), 1, Some(10))).unwrap_err();
    assert!(pairs.kind() == ErrorKind::Config && pairs.to_string().contains("2 rows"), "{pairs}");
}

#[test]
fn many_writers_with_growing_tokens_lose_no_update() {
    let server = Server::shared();
    for level in LEVELS {
        let schema = server.schema();
        let mut db = scene(&schema);
        write(&mut db, 0);
        let next = std::sync::atomic::AtomicU64::new(1);
        let accepted: i64 = std::thread::scope(|scope| {
            // No lock at all: tokens in order, holders that overlap at will.
            let work = || {
                let db = &mut schema.connect();
                let mut accepted = 0;
                for _ in 0..40 {
                    let token = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    let increment = |db: &mut Client| -> Outcome {
                        claim(db, token)?;
                        let sum = total(db) + 1;
                        std::thread::yield_now();
                        let mut change = db.build_transaction().isolation_level(level).start()?;
                        check(&mut change, token)?;
                        write(&mut change, sum);
                        Ok(change.commit()?)
                    };
                    match increment(db) {
                        Ok(()) => accepted += 1,
                        Err(Trouble::Guard(error)) => assert_eq!(error.kind(), ErrorKind::StaleToken, "{error}"),
                        Err(trouble) => assert!(trouble.is_serialization_failure(), "{trouble:?}"),
                    }
                }
                accepted
            };
            let workers: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum()
        });
        assert_eq!(total(&mut db), accepted);
        assert!(accepted > 0);
    }
}

#[test]
fn claims_in_any_order_leave_the_highest() {
    let server = Server::shared();
    let schema = server.schema();
    let mut db = scene(&schema);
    std::thread::scope(|scope| {
        for worker in 0..8_u64 {
            let schema = &schema;
            scope.spawn(move || {
                let db = &mut schema.connect();
                // All numbers below 257, the workers' shares mixed, none in order.
                for step in 0..32 {
                    let token = (step * 8 + worker) * 101 % 257;
                    if let Err(trouble) = claim(db, token) {
                        assert_eq!(trouble.guard().kind(), ErrorKind::StaleToken);
                    }
                }
            });
        }
    });
    let highest = (0..256).map(|n: i64| n * 101 % 257).max();
    assert_eq!(high_water(&mut db), highest);
}
