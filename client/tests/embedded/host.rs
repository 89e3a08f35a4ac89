//! Blocking calls that bindings to other languages make.

use std::cell::Cell;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::common::{PATIENCE, eventually, ms, url};
use leasehold::{Client, ClientBuilder, ErrorKind, host};

/// Answers `true` from the time on that it has been asked this often.
fn after(asked: &Cell<u32>, times: u32) -> impl FnMut() -> bool {
    move || {
        asked.set(asked.get() + 1);
        asked.get() >= times
    }
}

fn stores() -> (tempfile::TempDir, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = url(&folder.path().join("locks.db"));
    (folder, vec!["memory:".to_owned(), file])
}

fn connect(store: &str) -> Client {
    host::connect(ClientBuilder::default(), store).unwrap()
}

#[test]
fn an_interrupted_wait_leaves_nothing_behind() {
    let (_folder, stores) = stores();
    for store in stores {
        let client = connect(&store);
        // Of another thread, so that waiting for oneself is no question.
        let lease = std::thread::scope(|scope| scope.spawn(|| host::acquire(client.lock("job"), || false)).join())
            .unwrap()
            .unwrap();
        let asked = Cell::new(0);
        let error = host::acquire(client.lock("job"), after(&asked, 3)).unwrap_err();
        assert_eq!((error.kind(), asked.get()), (ErrorKind::Cancelled, 3));
        let asked = Cell::new(0);
        let error = host::acquire_all(client.lock_all(["a", "job"]), after(&asked, 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert!(host::try_acquire(client.lock("job"), || false).unwrap().is_none());
        host::release(&lease).unwrap();
        for name in ["a", "job"] {
            let again = host::acquire(client.lock(name).wait(PATIENCE), || false).unwrap();
            host::release(&again).unwrap();
        }
        eventually("all is free", || host::inspect(&client, "job").unwrap().is_none());
        host::close([client]).unwrap();
    }
}

#[test]
fn the_end_of_a_lease_is_awaited_for_so_long_or_until_interrupted() {
    let client = connect("memory:");
    let lease = host::acquire(client.lock("job"), || false).unwrap();
    assert!(!host::wait_until_over(&lease, Some(ms(1)), || false));
    assert!(!host::wait_until_over(&lease, Some(Duration::ZERO), || false));
    let asked = Cell::new(0);
    assert!(!host::wait_until_over(&lease, None, after(&asked, 2)));
    assert_eq!(asked.get(), 2);
    std::thread::scope(|scope| {
        let over = scope.spawn(|| host::wait_until_over(&lease, None, || false));
        host::release(&lease).unwrap();
        assert!(over.join().unwrap());
    });
    assert!(!lease.is_lost());
    let short = host::acquire(client.lock("job").ttl(ms(200)).no_renewal(), || false).unwrap();
    assert!(host::wait_until_over(&short, Some(PATIENCE), || false) && short.is_lost());
}

#[test]
fn several_leases_are_released_and_several_clients_closed_at_once() {
    let (_folder, stores) = stores();
    let (sender, told) = channel();
    let clients: Vec<Client> = stores.iter().map(|store| connect(store)).collect();
    for client in &clients {
        let leases = host::acquire_all(client.lock_all(["a", "b"]), || false).unwrap();
        host::release_all(&leases).unwrap();
        assert!(host::inspect(client, "a").unwrap().is_none());
    }
    let leases: Vec<_> = clients.iter().map(|client| host::acquire(client.lock("job"), || false).unwrap()).collect();
    for lease in &leases {
        let sender = sender.clone();
        lease.on_lost(move |error| sender.send(error.kind()).unwrap());
    }
    host::close(clients.clone()).unwrap();
    host::close(clients).unwrap();
    for _ in &leases {
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), ErrorKind::NotOwned);
    }
    let after = connect(&stores[1]);
    assert!(host::inspect(&after, "job").unwrap().is_none());
}

#[test]
fn a_lease_whose_client_is_gone_is_released_at_the_end_of_the_host() {
    let (_folder, stores) = stores();
    let client = connect(&stores[1]);
    host::track(&client);
    host::track(&connect("memory:"));
    let lease = host::acquire(client.lock("job"), || false).unwrap();
    drop(client);
    host::close_tracked().unwrap();
    assert!(lease.is_lost());
    host::close_tracked().unwrap();
    assert!(host::inspect(&connect(&stores[1]), "job").unwrap().is_none());
}

#[test]
fn futures_of_the_client_may_move_to_another_thread() {
    fn movable<F: Future + Send>(_: &F) {}
    let client = connect("memory:");
    movable(&client.inspect("job"));
    movable(&client.break_lock("job"));
    movable(&client.doctor());
    movable(&client.lock("job").try_acquire());
    movable(&Client::connect("memory:"));
}

#[test]
fn a_lease_ends_when_it_was_said_to_and_is_free_at_once() {
    let (_folder, stores) = stores();
    for store in stores {
        let client = connect(&store);
        let (sender, told) = channel();
        let ttl = Duration::from_secs(600);
        let lease = host::acquire(client.lock("job").ttl(ttl), || false).unwrap();
        lease.on_lost(move |error| sender.send(error).unwrap());
        assert!(host::end_after(&lease, ttl / 2) && lease.remaining() <= ttl / 2);
        // Later than before, and sooner than before.
        assert!(host::end_after(&lease, ttl / 2 + ttl / 4) && lease.remaining() > ttl / 2);
        assert!(host::end_after(&lease, ms(50)));
        let error = told.recv_timeout(PATIENCE).unwrap();
        assert_eq!(error.kind(), ErrorKind::Lost);
        assert!(error.to_string().contains("max_hold"), "{error}");
        // The ttl is ten minutes: the record was taken away.
        let next = host::acquire(client.lock("job").wait(PATIENCE), || false).unwrap();
        assert!(lease.is_lost() && !host::end_after(&lease, ttl));
        assert_eq!(host::release(&lease).unwrap_err().kind(), ErrorKind::Lost);
        drop(lease);
        assert!(next.check(ms(1)).is_ok());
        host::release(&next).unwrap();
        assert!(!host::end_after(&next, ttl));
        // Nothing is left of a time that was set for a lease that is gone.
        let brief = host::acquire(client.lock("job"), || false).unwrap();
        assert!(host::end_after(&brief, ms(50)));
        host::release(&brief).unwrap();
        let last = host::acquire(client.lock("job").ttl(ttl), || false).unwrap();
        assert!(!host::wait_until_over(&last, Some(ms(200)), || false));
        host::close([client]).unwrap();
    }
}

#[test]
fn a_candidacy_ends_though_nobody_waits_for_its_callbacks() {
    let client = connect("memory:");
    let stand = || {
        let ((began, elected), (may_stop, stop)) = (channel(), channel());
        let election = client
            .elect("leader")
            .on_start(move |lease| began.send(lease.token()).unwrap())
            .on_stop(move |loss| {
                assert!(loss.is_none());
                stop.recv_timeout(PATIENCE).unwrap();
            })
            .start()
            .unwrap();
        elected.recv_timeout(PATIENCE).unwrap();
        (election, may_stop)
    };
    let leads = || host::inspect(&client, "leader").unwrap().is_some();

    let (election, may_stop) = stand();
    let asked = Cell::new(0);
    host::resign(&election, after(&asked, 2));
    assert_eq!((asked.get(), host::is_over(&election), leads()), (2, false, true));
    may_stop.send(()).unwrap();
    host::resign(&election, || false);
    assert!(host::is_over(&election) && !leads());
    host::resign(&election, || unreachable!("nothing is left to wait for"));

    let (election, may_stop) = stand();
    assert!(!host::is_over(&election));
    host::dismiss(election);
    assert!(leads());
    may_stop.send(()).unwrap();
    eventually("the lock is free", || !leads());
}

#[test]
fn a_candidacy_is_over_when_its_client_is_closed() {
    let client = connect("memory:");
    let election = client.elect("leader").start().unwrap();
    eventually("it leads", || election.term().is_some());
    assert!(!host::is_over(&election));
    host::close([client]).unwrap();
    eventually("it is over", || host::is_over(&election));
}

#[test]
fn of_the_end_of_a_body_a_loss_alone_is_told() {
    let client = connect("memory:");
    let lease = host::acquire(client.lock("job"), || false).unwrap();
    host::release(&lease).unwrap();
    let not_owned = || host::release(&lease);
    let short = host::acquire(client.lock("job").ttl(ms(200)).no_renewal(), || false).unwrap();
    assert!(host::wait_until_over(&short, Some(PATIENCE), || false));
    let lost = || host::release(&short);
    let kind = |was_lost, released| host::left(was_lost, released).map_err(|error| error.kind());
    assert_eq!(kind(false, lost()), Err(ErrorKind::Lost));
    assert_eq!(kind(true, lost()), Err(ErrorKind::Lost));
    assert_eq!(kind(true, not_owned()), Err(ErrorKind::NotOwned));
    assert_eq!(kind(false, not_owned()), Ok(()));
    assert_eq!(kind(true, Ok(())), Ok(()));
}
