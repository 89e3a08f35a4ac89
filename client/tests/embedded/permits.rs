//! Leases that are lost while several locks are waited for or held together, and bad input.

use std::time::Duration;

use crate::common::{PATIENCE, eventually, ms};
use leasehold::ErrorKind;
use leasehold::blocking::Client;

const LONG: Duration = Duration::from_secs(600);

fn two_clients(name: &str) -> (Client, Client) {
    let url = format!("memory:permits-{name}");
    (Client::connect(&url).unwrap(), Client::connect(&url).unwrap())
}

#[test]
fn a_reader_that_lost_the_gate_while_it_waited_starts_over() {
    let (one, two) = two_clients("gate-of-a-reader");
    let first = two.rw_lock("catalog").readers(1).ttl(LONG).read().unwrap();
    let gates = std::thread::scope(|scope| {
        let reader = scope.spawn(|| one.rw_lock("catalog").readers(1).ttl(ms(1_000)).wait(PATIENCE).read().unwrap());
        let gate = || two.inspect("catalog#gate").unwrap().and_then(|info| info.token);
        eventually("the reader is at the gate", || gate().is_some());
        let lost = gate();
        two.break_lock("catalog#gate").unwrap();
        eventually("the reader is at the gate again", || gate().is_some_and(|token| Some(token) > lost));
        let again = gate();
        first.release().unwrap();
        (reader.join().unwrap(), again)
    });
    assert_eq!(Some(gates.0.token()), gates.1);
}

#[test]
fn a_writer_that_lost_the_gate_while_it_waited_starts_over() {
    let (one, two) = two_clients("gate-of-a-writer");
    let reader = two.rw_lock("catalog").readers(2).ttl(LONG).read().unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| one.rw_lock("catalog").readers(2).ttl(ms(1_000)).wait(PATIENCE).write().unwrap());
        let gate = || two.inspect("catalog#gate").unwrap().and_then(|info| info.token);
        eventually("the writer is at the gate", || gate().is_some());
        let lost = gate();
        two.break_lock("catalog#gate").unwrap();
        eventually("the writer is at the gate again", || gate().is_some_and(|token| Some(token) > lost));
        reader.release().unwrap();
        let writer = writer.join().unwrap();
        assert!(Some(writer.token()) > lost);
        writer.release().unwrap();
    });
    eventually("all of it was given back", || two.rw_lock("catalog").readers(2).wait(Duration::ZERO).write().is_ok());
}

#[test]
fn a_writer_that_loses_one_lock_has_lost_them_all() {
    let (one, two) = two_clients("lost-slot");
    let writer = one.rw_lock("catalog").readers(3).ttl(ms(1_000)).write().unwrap();
    writer.check(Duration::ZERO).unwrap();
    two.break_lock("catalog#reader1").unwrap();
    let loss = writer.lost();
    assert_eq!((loss.kind(), loss.resource()), (ErrorKind::Lost, Some("catalog#reader1")));
    assert!(writer.is_lost() && writer.remaining().is_zero());
    assert_eq!(writer.check(Duration::ZERO).unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(writer.release().unwrap_err().kind(), ErrorKind::Lost);
    two.rw_lock("catalog").readers(3).wait(PATIENCE).write().unwrap().release().unwrap();
}

#[test]
fn a_reader_cannot_become_a_writer() {
    let (one, two) = two_clients("upgrade");
    let reader = one.rw_lock("catalog").ttl(LONG).read().unwrap();
    let error = one.rw_lock("catalog").write().unwrap_err();
    assert!(error.kind() == ErrorKind::Config && error.to_string().contains("release the read lock first"), "{error}");
    assert_eq!(one.inspect("catalog#gate").unwrap(), None);
    // With a wait, another thread may release it meanwhile.
    assert_eq!(one.rw_lock("catalog").wait(ms(10)).write().unwrap_err().kind(), ErrorKind::TimedOut);
    reader.release().unwrap();
    assert_eq!(reader.check(Duration::ZERO).unwrap_err().kind(), ErrorKind::NotOwned);
    two.rw_lock("catalog").wait(PATIENCE).write().unwrap().release().unwrap();
}

#[test]
fn none_and_too_many_locks_are_refused() {
    let client = Client::connect("memory:permits-bounds").unwrap();
    let names = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
    for count in [0, 65] {
        let error = client.lock_any(names(count)).acquire().unwrap_err();
        assert!(error.kind() == ErrorKind::Config && error.to_string().contains("at most 64"), "{error}");
    }
    client.lock_any(names(64)).acquire().unwrap().release().unwrap();
    let error = client.lock_any(["a\n"]).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    for error in [client.semaphore("", 2).acquire().unwrap_err(), client.rw_lock("").read().unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    }
}

#[test]
fn a_record_of_the_number_that_is_not_ours_is_reported() {
    let client = Client::connect("memory:permits-record").unwrap();
    let leasehold::blocking::Once::Run(run) =
        client.once("license#permits").keep(PATIENCE).owner("a job").begin().unwrap()
    else {
        panic!("nobody has run it")
    };
    run.finish().unwrap();
    let error = client.semaphore("license", 2).acquire().unwrap_err();
    assert!(error.to_string().contains("leasehold once --forget"), "{error}");
    client.forget_run("license#permits", None).unwrap();
    client.semaphore("license", 2).wait(PATIENCE).acquire().unwrap().release().unwrap();
    // Setting the number replaces what is there.
    client.set_permits("license", 5).unwrap();
    client.semaphore("license", 5).acquire().unwrap().release().unwrap();
}
