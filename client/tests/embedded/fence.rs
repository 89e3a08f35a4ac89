//! Guards against holders that do not know that they are too late, on a real file with a connection for each.

use leasehold::fence::{Guard, Rejected, SqliteGuard, SqliteRowGuard, Token};
use leasehold::{Error, ErrorKind};
use rusqlite::{Connection, TransactionBehavior};

const ITEM: &str = "invoice/42";
const OLD: u64 = 33;
const NEW: u64 = 34;

/// A database with one invoice, and the two workers that fight over it.
struct Scene {
    _folder: tempfile::TempDir,
    old: Connection,
    new: Connection,
    guard: SqliteGuard,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let db = Connection::open(folder.path().join("app.db")).unwrap();
            db.execute_batch("PRAGMA journal_mode = WAL").unwrap();
            db
        };
        let (old, new) = (open(), open());
        old.execute_batch(
            "CREATE TABLE invoices (id INTEGER PRIMARY KEY, total INTEGER, fence INTEGER);
             INSERT INTO invoices (id, total) VALUES (42, 100);",
        )
        .unwrap();
        let guard = SqliteGuard::new();
        guard.create(&old).unwrap();
        guard.create(&new).unwrap();
        Self { _folder: folder, old, new, guard }
    }
}

fn total(db: &Connection) -> i64 {
    db.query_row("SELECT total FROM invoices WHERE id = 42", [], |row| row.get(0)).unwrap()
}

fn set_total(db: &mut Connection, guard: &SqliteGuard, token: u64, total: i64) -> Result<(), Error> {
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    guard.check(&change, ITEM, token)?;
    change.execute("UPDATE invoices SET total = ?1 WHERE id = 42", [total]).unwrap();
    change.commit().unwrap();
    Ok(())
}

#[track_caller]
fn assert_stale<E: Into<Error>>(result: Result<(), E>) {
    let error = result.map_err(Into::into).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StaleToken, "{error}");
    let message = error.to_string();
    assert!(message.contains("33") && message.contains("34"), "{message}");
}

#[test]
fn a_holder_writes_repeatedly_until_its_successor_claims() {
    let Scene { mut old, mut new, guard, .. } = Scene::new();
    guard.claim(&old, ITEM, OLD).unwrap();
    guard.claim(&old, ITEM, OLD).unwrap();
    for total in [110, 120] {
        set_total(&mut old, &guard, OLD, total).unwrap();
    }
    guard.claim(&new, ITEM, NEW).unwrap();
    let fresh = total(&new) + 10;
    set_total(&mut new, &guard, NEW, fresh).unwrap();
    assert_stale(set_total(&mut old, &guard, OLD, 999));
    assert_stale(guard.claim(&old, ITEM, OLD));
    assert_eq!(total(&old), 130);
    set_total(&mut new, &guard, NEW, 140).unwrap();
    assert_eq!(guard.high_water(&old, ITEM).unwrap(), Some(NEW));
}

#[test]
fn a_claim_before_the_read_keeps_a_late_write_from_being_written_over() {
    let Scene { mut old, mut new, guard, .. } = Scene::new();
    guard.claim(&old, ITEM, OLD).unwrap();
    let stale = total(&old) + 1;
    // The old holder sleeps with its sum in hand; the new one claims, reads, and has not written yet.
    guard.claim(&new, ITEM, NEW).unwrap();
    let fresh = total(&new) + 10;
    assert_stale(set_total(&mut old, &guard, OLD, stale));
    set_total(&mut new, &guard, NEW, fresh).unwrap();
    assert_eq!(total(&old), 110);
}

#[test]
fn a_read_without_a_claim_loses_an_update() {
    let Scene { mut old, mut new, guard, .. } = Scene::new();
    guard.claim(&old, ITEM, OLD).unwrap();
    let fresh = total(&new) + 10;
    // Nothing has told the guard of the new holder, so the late write passes, and is overwritten.
    set_total(&mut old, &guard, OLD, 101).unwrap();
    guard.claim(&new, ITEM, NEW).unwrap();
    set_total(&mut new, &guard, NEW, fresh).unwrap();
    assert_eq!(total(&old), 110, "101 is lost: that is why the claim comes first");
}

#[test]
fn a_write_from_a_snapshot_older_than_the_claim_is_refused() {
    let Scene { mut old, new, guard, .. } = Scene::new();
    guard.claim(&old, ITEM, OLD).unwrap();
    let change = old.transaction().unwrap();
    assert_eq!(total(&change), 100);
    guard.claim(&new, ITEM, NEW).unwrap();
    // Its view of the mark still says 33, but SQLite does not let it write from there.
    assert_eq!(guard.high_water(&change, ITEM).unwrap(), Some(OLD));
    let busy = guard.check(&change, ITEM, OLD).unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::StoreUnavailable, "{busy}");
    drop(change);
    assert_stale(set_total(&mut old, &guard, OLD, 999));
}

#[test]
fn a_claim_waits_for_a_write_that_has_been_checked() {
    let Scene { mut old, new, guard, .. } = Scene::new();
    guard.claim(&old, ITEM, OLD).unwrap();
    let change = old.transaction().unwrap();
    guard.check(&change, ITEM, OLD).unwrap();
    new.busy_timeout(std::time::Duration::ZERO).unwrap();
    let busy = guard.claim(&new, ITEM, NEW).unwrap_err();
    assert!(busy.kind() == ErrorKind::StoreUnavailable && busy.kind().is_temporary(), "{busy}");
    change.execute("UPDATE invoices SET total = 105 WHERE id = 42", []).unwrap();
    change.commit().unwrap();
    guard.claim(&new, ITEM, NEW).unwrap();
    assert_eq!(total(&new), 105, "whoever claims sees every write that was let through");
}

#[test]
fn a_row_that_a_later_holder_deleted_is_not_brought_back() {
    let Scene { mut old, mut new, guard, .. } = Scene::new();
    guard.claim(&old, ITEM, OLD).unwrap();
    guard.claim(&new, ITEM, NEW).unwrap();
    let change = new.transaction().unwrap();
    guard.check(&change, ITEM, NEW).unwrap();
    change.execute("DELETE FROM invoices WHERE id = 42", []).unwrap();
    change.commit().unwrap();

    let change = old.transaction().unwrap();
    assert_stale(guard.check(&change, ITEM, OLD));
    drop(change);
    assert_stale(guard.claim(&old, ITEM, OLD));
    let rows: i64 = old.query_row("SELECT count(*) FROM invoices", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 0);
}

#[test]
fn a_claim_that_is_rolled_back_has_no_effect() {
    let Scene { mut old, mut new, guard, .. } = Scene::new();
    let change = new.transaction().unwrap();
    guard.claim(&change, ITEM, NEW).unwrap();
    guard.check(&change, ITEM, NEW).unwrap();
    change.rollback().unwrap();
    assert_eq!(guard.high_water(&new, ITEM).unwrap(), None);
    guard.claim(&old, ITEM, OLD).unwrap();
    set_total(&mut old, &guard, OLD, 101).unwrap();

    let change = new.transaction().unwrap();
    guard.claim(&change, ITEM, NEW).unwrap();
    drop(change);
    set_total(&mut old, &guard, OLD, 102).unwrap();
}

#[test]
fn a_check_needs_a_claim_and_a_transaction() {
    let Scene { mut old, guard, .. } = Scene::new();
    let outside = guard.check(&old, ITEM, OLD).unwrap_err();
    assert!(outside.kind() == ErrorKind::Config && outside.to_string().contains("transaction"), "{outside}");
    let change = old.transaction().unwrap();
    let unclaimed = guard.check(&change, ITEM, OLD).unwrap_err();
    assert_eq!(unclaimed.kind(), ErrorKind::Config);
    assert!(unclaimed.to_string().contains("never claimed"), "{unclaimed}");
    drop(change);
    let no_token = guard.claim(&old, ITEM, 1 << 53).unwrap_err();
    assert!(no_token.kind() == ErrorKind::Config && no_token.to_string().contains("9007199254740991"), "{no_token}");
    guard.claim(&old, ITEM, (1 << 53) - 1).unwrap();
    guard.claim(&old, "another item", 1).unwrap();
}

#[test]
fn names_of_tables_are_taken_as_they_are() {
    let Scene { mut old, guard, .. } = Scene::new();
    let odd = SqliteGuard::with_table("a \"b\"; DROP TABLE invoices; --").unwrap();
    assert_eq!(odd.claim(&old, ITEM, OLD).unwrap_err().kind(), ErrorKind::StoreRefused, "there is no table yet");
    odd.create(&old).unwrap();
    odd.claim(&old, "'; DROP TABLE invoices; --", OLD).unwrap();
    odd.claim(&old, ITEM, NEW).unwrap();
    let change = old.transaction().unwrap();
    odd.check(&change, ITEM, NEW).unwrap();
    drop(change);
    assert_eq!(guard.high_water(&old, ITEM).unwrap(), None);
    assert_eq!(total(&old), 100);
    for bad in ["", "a\0b"] {
        assert_eq!(SqliteGuard::with_table(bad).unwrap_err().kind(), ErrorKind::Config);
        assert_eq!(SqliteRowGuard::new(bad, "id", "fence").unwrap_err().kind(), ErrorKind::Config);
        assert_eq!(SqliteRowGuard::new("t", bad, "fence").unwrap_err().kind(), ErrorKind::Config);
        assert_eq!(SqliteRowGuard::new("t", "id", bad).unwrap_err().kind(), ErrorKind::Config);
    }
}

#[test]
fn a_column_of_the_row_guards_it_as_well() {
    let Scene { mut old, mut new, .. } = Scene::new();
    let guard = SqliteRowGuard::new("invoices", "id", "fence").unwrap();
    let write = |db: &mut Connection, token, total: i64| {
        let change = db.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        guard.check(&change, 42, token)?;
        change.execute("UPDATE invoices SET total = ?1 WHERE id = 42", [total]).unwrap();
        change.commit().unwrap();
        Ok::<_, Error>(())
    };
    assert_eq!(write(&mut old, OLD, 1).unwrap_err().kind(), ErrorKind::Config, "a check needs a claim");
    guard.claim(&old, 42, OLD).unwrap();
    let outside = guard.check(&old, 42, OLD).unwrap_err();
    assert!(outside.kind() == ErrorKind::Config && outside.to_string().contains("transaction"), "{outside}");
    write(&mut old, OLD, 101).unwrap();
    write(&mut old, OLD, 102).unwrap();
    guard.claim(&new, 42, NEW).unwrap();
    assert_stale(write(&mut old, OLD, 999));
    assert_stale(guard.claim(&old, 42, OLD));
    write(&mut new, NEW, 103).unwrap();
    assert_eq!(total(&old), 103);

    new.execute_batch("DELETE FROM invoices").unwrap();
    let gone = write(&mut old, OLD, 999).unwrap_err();
    assert!(gone.kind() == ErrorKind::StaleToken && gone.to_string().contains("deleted"), "{gone}");
    assert_eq!(guard.claim(&new, 42, NEW).unwrap_err().kind(), ErrorKind::Config);
}

#[test]
fn a_column_that_cannot_guard_is_refused() {
    let Scene { old, .. } = Scene::new();
    // As text, 9 would be above 10.
    old.execute_batch(
        "CREATE TABLE texts (id, fence TEXT); INSERT INTO texts VALUES (1, '9');
         CREATE TABLE reals (id, fence REAL); INSERT INTO reals VALUES (1, 9);
         CREATE TABLE minus (id, fence INTEGER); INSERT INTO minus VALUES (1, 9007199254740992);
         CREATE TABLE pairs (id, fence INTEGER); INSERT INTO pairs VALUES (1, 1), (1, 1);",
    )
    .unwrap();
    for table in ["texts", "reals", "minus"] {
        let guard = SqliteRowGuard::new(table, "id", "fence").unwrap();
        let error = guard.claim(&old, 1, 10).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreRefused, "{table}: {error}");
        assert!(error.to_string().contains("not a token"), "{table}: {error}");
    }
    let pairs = SqliteRowGuard::new("pairs", "id", "fence").unwrap().claim(&old, 1, 10).unwrap_err();
    assert!(pairs.kind() == ErrorKind::Config && pairs.to_string().contains("2 rows"), "{pairs}");
    // SQLite reads a mistyped name in double quotes as a string, if one lets it.
    for (key, fence) in [("ident", "fence"), ("id", "fnce")] {
        let guard = SqliteRowGuard::new("invoices", key, fence).unwrap();
        assert_eq!(guard.claim(&old, key, 10).unwrap_err().kind(), ErrorKind::StoreRefused);
    }
}

#[test]
fn a_key_that_names_two_rows_lets_no_token_through() {
    let Scene { mut old, .. } = Scene::new();
    old.execute_batch(
        "CREATE TABLE pairs (id INTEGER, total INTEGER, fence INTEGER);
         INSERT INTO pairs VALUES (1, 100, 33), (1, 100, 34), (2, 100, NULL), (2, 100, 34);",
    )
    .unwrap();
    let guard = SqliteRowGuard::new("pairs", "id", "fence").unwrap();
    let marks = |db: &Connection| -> Vec<Option<i64>> {
        let mut read = db.prepare("SELECT fence FROM pairs ORDER BY rowid").unwrap();
        read.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let before = marks(&old);
    // High enough for the one row, and too old for the other.
    for key in [1, 2] {
        let claim = guard.claim(&old, key, OLD).unwrap_err();
        assert!(claim.kind() == ErrorKind::Config && claim.to_string().contains("2 rows"), "{claim}");
        let change = old.transaction().unwrap();
        let check = guard.check(&change, key, OLD).unwrap_err();
        assert!(check.kind() == ErrorKind::Config && check.to_string().contains("2 rows"), "{check}");
        change.commit().unwrap();
    }
    assert_eq!(marks(&old), before, "what is refused raises no mark");
}

#[test]
fn a_guard_protects_data_in_memory() {
    let (old, new) = (Token::new(OLD).unwrap(), Token::new(NEW).unwrap());
    let mut guard = Guard::default();
    guard.claim(new).unwrap();
    let rejected = guard.check(old).unwrap_err();
    assert_eq!(rejected, Rejected::Stale { token: old, high_water: new });
    assert_stale(Err(rejected));
    assert_eq!(Error::from(Rejected::Unclaimed).kind(), ErrorKind::Config);
}

#[test]
fn many_writers_with_growing_tokens_lose_no_update() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let open = || {
        let db = Connection::open(&path).unwrap();
        db.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
        db
    };
    let (guard, next) = (SqliteGuard::new(), std::sync::atomic::AtomicU64::new(1));
    open()
        .execute_batch(
            "PRAGMA journal_mode = WAL; CREATE TABLE sums (id PRIMARY KEY, n); INSERT INTO sums VALUES (1, 0)",
        )
        .unwrap();
    guard.create(&open()).unwrap();
    let accepted: i64 = std::thread::scope(|scope| {
        // No lock at all: tokens in order, holders that overlap at will.
        let work = || {
            let mut db = open();
            let mut accepted = 0;
            for _ in 0..40 {
                let token = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                let mut increment = || -> Result<(), Error> {
                    guard.claim(&db, "sum", token)?;
                    let n: i64 = db.query_row("SELECT n FROM sums", [], |row| row.get(0)).unwrap();
                    std::thread::yield_now();
                    let change = db.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
                    guard.check(&change, "sum", token)?;
                    change.execute("UPDATE sums SET n = ?1", [n + 1]).unwrap();
                    change.commit().unwrap();
                    Ok(())
                };
                match increment() {
                    Ok(()) => accepted += 1,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::StaleToken, "{error}"),
                }
            }
            accepted
        };
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    let n: i64 = open().query_row("SELECT n FROM sums", [], |row| row.get(0)).unwrap();
    assert_eq!(n, accepted);
    assert!(accepted > 0);
}
