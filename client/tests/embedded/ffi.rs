//! Blocking calls that bindings to other languages make.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::common::{PATIENCE, eventually, ms, url};
use leasehold::ffi::{CallbackEnd, CallbackRunner, Unawaited};
use leasehold::{Client, ClientBuilder, ErrorKind, ffi};

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
    let (client, unheard) = ffi::observe::connect(ClientBuilder::default(), store).unwrap();
    assert!(unheard.is_empty(), "{unheard:?}");
    client
}

#[test]
fn warnings_that_no_queue_wants_are_answered() {
    use ffi::observe::{EventQueue, Level, connect};

    let folder = tempfile::tempdir().unwrap();
    let nodes = ["a", "b"].map(|name| url(&folder.path().join(name)));
    let connect = || connect(Client::builder().create_quorum(), &nodes).unwrap().1;
    let is_told = |told: &[String]| matches!(told, [one] if one.contains("a quorum of 2 nodes survives no failure"));
    assert!(is_told(&connect()));
    let queue = EventQueue::open(|| {});
    queue.want(Some(Level::Error), false);
    assert!(connect().is_empty(), "who listens has chosen the level");
    queue.close();
    assert!(is_told(&connect()));
}

#[test]
fn an_interrupted_wait_leaves_nothing_behind() {
    let (_folder, stores) = stores();
    for store in stores {
        let client = connect(&store);
        // Of another thread, so that waiting for oneself is no question.
        let lease = std::thread::scope(|scope| scope.spawn(|| ffi::acquire(client.lock("job"), || false)).join())
            .unwrap()
            .unwrap();
        let asked = Cell::new(0);
        let error = ffi::acquire(client.lock("job"), after(&asked, 3)).unwrap_err();
        assert_eq!((error.kind(), asked.get()), (ErrorKind::Cancelled, 3));
        let asked = Cell::new(0);
        let error = ffi::acquire_all(client.lock_all(["a", "job"]), after(&asked, 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert!(ffi::try_acquire(client.lock("job"), || false).unwrap().is_none());
        lease.blocking().release().unwrap();
        for name in ["a", "job"] {
            let again = ffi::acquire(client.lock(name).wait(PATIENCE), || false).unwrap();
            again.blocking().release().unwrap();
        }
        eventually("all is free", || client.blocking().inspect("job").unwrap().is_none());
        ffi::close([client]).unwrap();
    }
}

#[test]
fn waiting_for_the_end_stops_at_the_timeout_or_an_interruption() {
    let client = connect("memory:");
    let lease = ffi::acquire(client.lock("job"), || false).unwrap();
    assert!(!ffi::wait_until_over(&lease, Some(ms(1)), || false).unwrap());
    assert!(!ffi::wait_until_over(&lease, Some(Duration::ZERO), || false).unwrap());
    let asked = Cell::new(0);
    assert!(!ffi::wait_until_over(&lease, None, after(&asked, 2)).unwrap());
    assert_eq!(asked.get(), 2);
    std::thread::scope(|scope| {
        let over = scope.spawn(|| ffi::wait_until_over(&lease, None, || false).unwrap());
        lease.blocking().release().unwrap();
        assert!(over.join().unwrap());
    });
    assert!(!lease.is_lost());
    let short = ffi::acquire(client.lock("job").ttl(ms(200)).no_renewal(), || false).unwrap();
    assert!(ffi::wait_until_over(&short, Some(PATIENCE), || false).unwrap() && short.is_lost());
}

#[test]
fn several_leases_are_released_and_several_clients_closed_at_once() {
    let (_folder, stores) = stores();
    let (sender, told) = channel();
    let clients: Vec<Client> = stores.iter().map(|store| connect(store)).collect();
    for client in &clients {
        let leases = ffi::acquire_all(client.lock_all(["a", "b"]), || false).unwrap();
        leases.blocking().release().unwrap();
        assert!(client.blocking().inspect("a").unwrap().is_none());
    }
    let leases: Vec<_> = clients.iter().map(|client| ffi::acquire(client.lock("job"), || false).unwrap()).collect();
    for lease in &leases {
        let sender = sender.clone();
        lease.on_lost(move |error| sender.send(error.kind()).unwrap());
    }
    ffi::close(clients.clone()).unwrap();
    ffi::close(clients).unwrap();
    for _ in &leases {
        assert_eq!(told.recv_timeout(PATIENCE).unwrap(), ErrorKind::NotOwned);
    }
    let after = connect(&stores[1]);
    assert!(after.blocking().inspect("job").unwrap().is_none());
}

#[test]
fn a_lease_whose_client_is_gone_is_released_at_the_end_of_the_host() {
    let (_folder, stores) = stores();
    let client = connect(&stores[1]);
    ffi::track(&client);
    ffi::track(&connect("memory:"));
    let lease = ffi::acquire(client.lock("job"), || false).unwrap();
    drop(client);
    ffi::close_tracked().unwrap();
    assert!(lease.is_lost());
    ffi::close_tracked().unwrap();
    assert!(connect(&stores[1]).blocking().inspect("job").unwrap().is_none());
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
fn a_lease_ends_at_the_given_time_and_is_free_at_once() {
    let (_folder, stores) = stores();
    for store in stores {
        let client = connect(&store);
        let (sender, told) = channel();
        let ttl = Duration::from_secs(600);
        let lease = ffi::acquire(client.lock("job").ttl(ttl), || false).unwrap();
        lease.on_lost(move |error| sender.send(error).unwrap());
        assert!(ffi::end_after(&lease, ttl / 2) && lease.remaining() <= ttl / 2);
        // Later than before, and sooner than before.
        assert!(ffi::end_after(&lease, ttl / 2 + ttl / 4) && lease.remaining() > ttl / 2);
        assert!(ffi::end_after(&lease, ms(50)));
        let error = told.recv_timeout(PATIENCE).unwrap();
        assert_eq!(error.kind(), ErrorKind::Lost);
        assert!(error.to_string().contains("max_hold"), "{error}");
        // The ttl is ten minutes: the record was taken away.
        let next = ffi::acquire(client.lock("job").wait(PATIENCE), || false).unwrap();
        assert!(lease.is_lost() && !ffi::end_after(&lease, ttl));
        assert_eq!(lease.blocking().release().unwrap_err().kind(), ErrorKind::Lost);
        drop(lease);
        assert!(next.check(ms(1)).is_ok());
        next.blocking().release().unwrap();
        assert!(!ffi::end_after(&next, ttl));
        // Nothing is left of a time that was set for a lease that is gone.
        let brief = ffi::acquire(client.lock("job"), || false).unwrap();
        assert!(ffi::end_after(&brief, ms(50)));
        brief.blocking().release().unwrap();
        let last = ffi::acquire(client.lock("job").ttl(ttl), || false).unwrap();
        assert!(!ffi::wait_until_over(&last, Some(ms(200)), || false).unwrap());
        ffi::close([client]).unwrap();
    }
}

#[test]
fn an_election_that_is_unawaited_ends_without_a_wait_for_its_callbacks() {
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
        (Unawaited::new(election), may_stop)
    };
    let leads = || client.blocking().inspect("leader").unwrap().is_some();

    let (election, may_stop) = stand();
    let asked = Cell::new(0);
    election.end(after(&asked, 2)).unwrap();
    assert_eq!((asked.get(), election.is_over(), leads()), (2, false, true));
    may_stop.send(()).unwrap();
    election.end(|| false).unwrap();
    assert!(election.is_over() && !leads());
    election.end(|| unreachable!("nothing is left to wait for")).unwrap();

    let (election, may_stop) = stand();
    assert!(!election.is_over());
    drop(election);
    assert!(leads());
    may_stop.send(()).unwrap();
    eventually("the lock is free", || !leads());
}

#[test]
fn a_callback_that_runs_elsewhere_ends_when_its_runner_says_so() {
    let client = connect("memory:");
    let ((began, elected), (stop, stopped)) = (channel(), channel());
    let request = ffi::on_start(client.elect("leader"), move |_| {
        let (runner, ended) = CallbackRunner::new();
        began.send(runner).unwrap();
        ended
    });
    let request = ffi::on_stop(request, move |loss| {
        let (runner, ended) = CallbackRunner::new();
        stop.send((runner, loss.is_some())).unwrap();
        ended
    });
    let election = Arc::new(Unawaited::new(request.start().unwrap()));
    let failing: CallbackRunner = elected.recv_timeout(PATIENCE).unwrap();
    assert!(stopped.try_recv().is_err(), "on_start has not ended");
    failing.end(Err(CallbackEnd(Some("onStart has thrown it".to_owned()))));
    let (runner, _) = stopped.recv_timeout(PATIENCE).unwrap();
    assert_eq!(election.last_error().unwrap().to_string(), r#""leader": onStart has thrown it"#);
    // Dropped, as by an event loop that has ended.
    drop(runner);

    drop(elected.recv_timeout(PATIENCE).unwrap());
    eventually("on_start has ended", || election.last_error().is_none());
    let ended = Arc::clone(&election).ended();
    let (runner, is_lost): (CallbackRunner, _) = stopped.recv_timeout(PATIENCE).unwrap();
    assert!(!is_lost && !election.is_over());
    let asked = Cell::new(0);
    assert_eq!(ffi::wait(ended, after(&asked, 2)).unwrap_err().kind(), ErrorKind::Cancelled);
    let ended = Arc::clone(&election).ended();
    runner.end(Ok(()));
    ffi::wait(ended, || false).unwrap();
    assert!(election.is_over() && client.blocking().inspect("leader").unwrap().is_none());
}

#[test]
fn a_candidacy_is_over_when_its_client_is_closed() {
    let client = connect("memory:");
    let election = Unawaited::new(client.elect("leader").start().unwrap());
    eventually("it leads", || election.token().is_some());
    assert!(!election.is_over());
    ffi::close([client]).unwrap();
    eventually("it is over", || election.is_over());
}

#[test]
fn only_a_loss_fails_the_end_of_a_body() {
    let client = connect("memory:");
    let lease = ffi::acquire(client.lock("job"), || false).unwrap();
    lease.blocking().release().unwrap();
    let not_owned = || lease.blocking().release();
    let short = ffi::acquire(client.lock("job").ttl(ms(200)).no_renewal(), || false).unwrap();
    assert!(ffi::wait_until_over(&short, Some(PATIENCE), || false).unwrap());
    let lost = || short.blocking().release();
    let kind = |was_lost, released| ffi::left(was_lost, released).map_err(|error| error.kind());
    assert_eq!(kind(false, lost()), Err(ErrorKind::Lost));
    assert_eq!(kind(true, lost()), Err(ErrorKind::Lost));
    assert_eq!(kind(true, not_owned()), Err(ErrorKind::NotOwned));
    assert_eq!(kind(false, not_owned()), Ok(()));
    assert_eq!(kind(true, Ok(())), Ok(()));
}
