//! Permits, readers, several locks and runs by a test clock.

use leasehold::ErrorKind;
use leasehold::blocking::Once;

use super::{Journal, TTL, kind, secs, two};

#[test]
fn several_locks_are_taken_together_or_any_of_them() {
    let (clock, client, rival) = two();
    let both = client.lock_all(["b", "a"]).ttl(TTL).acquire().unwrap();
    assert_eq!(both.iter().map(|lease| lease.resource()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(kind(rival.lock_all(["0", "b"]).wait(secs(1)).acquire()), Some(ErrorKind::TimedOut));
    assert!(rival.inspect("0").unwrap().is_none());
    let any = rival.lock_any(["a", "b"]);
    assert!(any.clone().try_acquire().unwrap().is_none());
    clock.lose("b").unwrap();
    assert_eq!(any.acquire().unwrap().resource(), "b");
    assert_eq!(kind(both.release()), Some(ErrorKind::Lost));
}

#[test]
fn the_permit_of_a_dead_holder_comes_back() {
    let (_clock, client, rival) = two();
    let permit = client.semaphore("license", 1).ttl(TTL).max_hold(TTL).acquire().unwrap();
    assert!(rival.semaphore("license", 1).try_acquire().unwrap().is_none());
    assert_eq!(kind(rival.set_permits("license", 3)), Some(ErrorKind::Busy));
    let next = rival.semaphore("license", 1).wait(3 * TTL).acquire().unwrap();
    assert!(permit.is_lost() && next.token() > permit.token() && next.index() == 0);
    drop((permit, next));
    rival.set_permits("license", 3).unwrap();
    assert_eq!(kind(client.semaphore("license", 1).acquire()), Some(ErrorKind::Config));
}

#[test]
fn a_write_is_lost_with_any_of_its_locks() {
    let (clock, client, rival) = two();
    let journal = Journal::default();
    let reading = rival.rw_lock("catalog").readers(2).ttl(TTL).read().unwrap();
    assert_eq!(kind(client.rw_lock("catalog").readers(2).wait(secs(0)).write()), Some(ErrorKind::Busy));
    reading.release().unwrap();
    let writing = client.rw_lock("catalog").readers(2).ttl(TTL).write().unwrap();
    let heard = journal.clone();
    writing.on_lost(move |error| heard.tell(error.kind().name()));
    clock.lose("catalog#reader1").unwrap();
    assert!(writing.is_lost() && writing.remaining().is_zero() && journal.take() == ["lost"]);
    assert_eq!(kind(writing.release()), Some(ErrorKind::Lost));
    rival.rw_lock("catalog").readers(2).wait(secs(0)).write().unwrap().release().unwrap();
}

#[test]
fn a_completion_stands_for_as_long_as_it_is_kept() {
    let (clock, client, rival) = two();
    let again = || rival.once("job").cooldown(secs(60)).begin().unwrap();
    let Once::Run(run) = client.once("job").cooldown(secs(60)).begin().unwrap() else { panic!("somebody runs it") };
    assert!(matches!(again(), Once::Running(Some(holder)) if holder.owner.as_deref() == Some("me")));
    run.finish().unwrap();
    clock.advance(secs(58));
    assert!(matches!(again(), Once::Done(completion) if completion.token == run.token()));
    clock.advance(secs(5));
    assert!(matches!(again(), Once::Run(_)));
}

#[test]
fn each_period_is_done_once() {
    const DAY: std::time::Duration = secs(24 * 3_600);
    let (clock, client, _rival) = two();
    let mut resources = Vec::new();
    for _ in 0..3 {
        let Once::Run(run) = client.once("job").every(DAY).begin().unwrap() else { panic!("it was done") };
        resources.push(run.resource().to_owned());
        run.finish().unwrap();
        assert!(matches!(client.once("job").every(DAY).begin().unwrap(), Once::Done(_)));
        clock.advance(DAY);
    }
    assert_eq!(resources, ["job@2023-11-14T00:00:00Z", "job@2023-11-15T00:00:00Z", "job@2023-11-16T00:00:00Z"]);
}

#[test]
fn a_stand_by_takes_over_and_gives_up_after_its_wait() {
    let (clock, client, rival) = two();
    let stands_by = || rival.once("job").keep(20 * TTL).wait(secs(10)).begin().unwrap();
    let Once::Run(run) = client.once("job").keep(20 * TTL).begin().unwrap() else { panic!("somebody runs it") };
    assert!(matches!(stands_by(), Once::Running(_)));
    assert!(clock.now() >= secs(10) && clock.now() < secs(11));
    clock.lose(run.resource()).unwrap();
    let Once::Run(taken) = stands_by() else { panic!("nobody runs it") };
    assert!(taken.token() > run.token());
    assert_eq!(kind(run.finish()), Some(ErrorKind::Lost));
    taken.finish().unwrap();
    assert!(matches!(stands_by(), Once::Done(_)));
    assert!(client.forget_run("job", None).unwrap().is_some_and(|completion| completion.token == taken.token()));
}

#[test]
fn a_list_shows_what_is_held() {
    let (_clock, client, rival) = two();
    let _held = [client.lock("job/1").acquire().unwrap(), client.lock("job/2").acquire().unwrap()];
    let _other = client.lock("other").acquire().unwrap();
    let names: Vec<_> = rival.list("job/").map(|lock| lock.unwrap().resource).collect();
    assert_eq!(names, ["job/1", "job/2"]);
    let sessions = rival.sessions().unwrap();
    assert!(sessions.is_empty(), "{sessions:?}");
}
