//! The queue of waiters in a file.

use leasehold_core::op::Applied;

use super::*;

fn wait(name: &str, id: u8) -> LockOp {
    LockOp { lock: LockId::new(id.into()), ..acquire_with(name, id, |op| op.in_queue = true) }
}

fn waiting(store: &Sqlite) -> u64 {
    store.queue(&Resource::new("a").unwrap()).map_or(0, |queue| queue.waiting)
}

#[test]
fn a_file_without_waiters_has_no_table_for_them_and_gets_it_with_the_first() {
    let place = Place::new();
    let (one_store, other) = (place.open(), place.open());
    token(one(&one_store, wait("a", 1)));
    let table = "SELECT count(*) FROM sqlite_schema WHERE name = 'waiters'";
    let tables = || place.raw().query_row(table, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!((tables(), waiting(&other)), (0, 0), "older files and older versions need none");
    shown(one(&other, wait("a", 2))).expect("it is held");
    assert_eq!((tables(), waiting(&one_store)), (1, 1));
    assert_eq!(other.place_in_queue(&Resource::new("a").unwrap(), Some(LockId::new(2))), Some(1));
}

#[test]
fn a_release_reserves_the_lock_for_the_first_in_line_across_stores() {
    let place = Place::new();
    let (one_store, other) = (place.open(), place.open());
    token(one(&one_store, wait("a", 1)));
    shown(one(&other, wait("a", 2))).expect("it is held");
    assert_eq!(one(&one_store, release("a", 1)), Outcome::Applied(Applied::Released));
    let reserved = "SELECT count(*) FROM waiters WHERE reserved_ns > 0 AND lock = 2";
    assert_eq!(place.raw().query_row(reserved, [], |row| row.get::<_, i64>(0)).unwrap(), 1);
    token(one(&other, wait("a", 2)));
    assert_eq!(place.raw().query_row("SELECT count(*) FROM waiters", [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

#[test]
fn places_end_with_their_store() {
    let place = Place::new();
    let (one_store, other) = (place.open(), place.open());
    token(one(&one_store, wait("a", 1)));
    shown(one(&other, wait("a", 2))).expect("it is held");
    assert_eq!(waiting(&one_store), 1);
    drop(other);
    assert_eq!(waiting(&one_store), 0);
}

#[test]
fn rows_that_no_honest_client_writes_keep_nobody_waiting() {
    let place = Place::new();
    let store = place.open();
    token(one(&store, wait("a", 1)));
    shown(one(&store, wait("a", 2))).expect("it is held");
    for values in [
        "'a', -5, x'00', 1, 1, x'00', 1, NULL",
        "'a', -4, zeroblob(16), -1, -1, zeroblob(16), -1, -1",
        "'a', -3, zeroblob(16), 3, 0, zeroblob(16), 9223372036854775807, 9223372036854775807",
    ] {
        place.raw().execute_batch(&format!("INSERT INTO waiters VALUES ({values})")).unwrap();
    }
    assert_eq!(waiting(&store), 1);
    assert_eq!(one(&store, release("a", 1)), Outcome::Applied(Applied::Released));
    token(one(&store, wait("a", 2)));
}
