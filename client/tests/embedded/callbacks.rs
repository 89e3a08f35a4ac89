//! Other people's code: callbacks that panic, that own other leases, and futures that are dropped half way.

use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::channel;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use crate::common::{PATIENCE, eventually, ms};
use leasehold::ErrorKind;
use leasehold::blocking::Client;

fn client() -> Client {
    Client::connect("memory:").unwrap()
}

#[test]
fn a_callback_that_owns_another_lease_is_dropped_outside_of_all_locks() {
    let client = client();
    let (one, two) = (client.lock("one").acquire().unwrap(), client.lock("two").acquire().unwrap());
    two.on_lost(move |_| drop(one));
    two.release().unwrap();
    eventually("the lease went with the callback that owned it", || client.inspect("one").unwrap().is_none());

    let (one, two) = (client.lock("one").acquire().unwrap(), client.lock("two").ttl(ms(300)).acquire().unwrap());
    two.on_expiring(move || drop(one));
    client.break_lock("two").unwrap();
    assert_eq!(two.lost().kind(), ErrorKind::Lost);
    eventually("the driver goes on", || client.inspect("one").unwrap().is_none());
}

#[test]
fn a_callback_that_panics_does_not_stop_others() {
    let client = client();
    let healthy = client.lock("healthy").ttl(ms(2_000)).acquire().unwrap();
    let (sender, told) = channel();
    for n in 0..5 {
        let lease = client.lock(format!("job-{n}")).ttl(ms(150)).no_renewal().acquire().unwrap();
        let sender = sender.clone();
        lease.on_lost(move |_| panic!("callback {n} panics, as it should in this test"));
        lease.on_lost(move |_| sender.send(n).unwrap());
        std::mem::forget(lease);
    }
    let mut heard: Vec<i32> = (0..5).map(|_| told.recv_timeout(PATIENCE).unwrap()).collect();
    heard.sort_unstable();
    assert_eq!(heard, [0, 1, 2, 3, 4]);
    std::thread::sleep(ms(3_000));
    healthy.check(ms(1)).unwrap();
    assert!(client.lock("healthy").wait(ms(50)).acquire().is_err());
}

#[test]
fn a_callback_that_hangs_does_not_delay_others() {
    let client = client();
    let (sender, told) = channel();
    let mut gates = Vec::new();
    for n in 0..8 {
        let lease = client.lock(format!("job-{n}")).ttl(ms(150)).no_renewal().acquire().unwrap();
        let (open, gate) = channel::<()>();
        let sender = sender.clone();
        lease.on_lost(move |_| {
            sender.send(n).unwrap();
            let _ = gate.recv();
        });
        gates.push(open);
        std::mem::forget(lease);
    }
    let mut heard: Vec<i32> = (0..8).map(|_| told.recv_timeout(PATIENCE).unwrap()).collect();
    heard.sort_unstable();
    assert_eq!(heard, (0..8).collect::<Vec<_>>());
    // Nor does it hold up the end of the client.
    client.close().unwrap();
    drop(gates);
}

#[test]
fn futures_that_are_dropped_leave_no_waker_behind() {
    struct Counted;

    impl Wake for Counted {
        fn wake(self: std::sync::Arc<Self>) {}
    }

    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let client = leasehold::Client::connect("memory:").await.unwrap();
        let lease = client.lock("job").await.unwrap();
        let counted = std::sync::Arc::new(Counted);
        for _ in 0..1_000 {
            let waker = Waker::from(std::sync::Arc::clone(&counted));
            let mut lost = pin!(lease.lost());
            assert!(lost.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        assert_eq!(std::sync::Arc::strong_count(&counted), 1);
    });
}

#[test]
fn closing_the_client_is_reported_to_its_holders() {
    let client = client();
    let lease = client.lock("job").acquire().unwrap();
    let (sender, told) = channel();
    lease.on_lost(move |error| sender.send(error.to_string()).unwrap());
    client.close().unwrap();
    assert!(told.recv_timeout(PATIENCE).unwrap().contains("client was closed"));
    assert!(lease.is_lost());
    assert!(lease.lost().to_string().contains("client was closed"));
    assert_eq!(lease.release().unwrap_err().kind(), ErrorKind::NotOwned);
}

#[test]
fn a_term_ends_with_its_lease() {
    let store = "memory:terms";
    let (client, other) = (Client::connect(store).unwrap(), Client::connect(store).unwrap());
    let (sender, terms) = channel();
    let ends = sender.clone();
    let election = client
        .elect("leader")
        .on_start(move |lease| {
            sender.send("starts".to_owned()).unwrap();
            lease.on_lost(|_| {});
        })
        .on_stop(move |loss| ends.send(format!("stops {}", loss.is_some())).unwrap())
        .start()
        .unwrap();
    assert_eq!(terms.recv_timeout(PATIENCE).unwrap(), "starts");
    assert!(election.token().is_some());
    client.clone().close().unwrap();
    assert_eq!(terms.recv_timeout(PATIENCE).unwrap(), "stops true");
    assert_eq!(election.token(), None);
    assert!(other.lock("leader").wait(PATIENCE).acquire().is_ok());
    election.resign().unwrap();
}

#[test]
fn a_candidate_whose_callback_panics_releases_and_stands_again() {
    let client = client();
    let ((sender, terms), (asks, answers)) = (channel(), channel::<bool>());
    let ends = sender.clone();
    let election = client
        .elect("leader")
        .on_start(move |lease| {
            sender.send(format!("starts {}", lease.token() > 0)).unwrap();
            assert!(answers.recv().unwrap(), "as it should in this test");
        })
        .on_stop(move |loss| ends.send(format!("stops {}", loss.is_some())).unwrap())
        .start()
        .unwrap();
    let next = || terms.recv_timeout(PATIENCE).unwrap();
    for _ in 0..2 {
        assert_eq!(next(), "starts true");
        asks.send(false).unwrap();
        assert_eq!(next(), "stops false", "also of what has begun half");
        eventually("the lock is free", || client.inspect("leader").unwrap().is_none());
        let error = election.last_error().unwrap();
        assert_eq!((error.kind(), election.token()), (ErrorKind::Callback, None));
        assert_eq!(error.to_string(), r#""leader": on_start has panicked: as it should in this test"#);
    }
    assert_eq!(next(), "starts true");
    asks.send(true).unwrap();
    eventually("it leads as if nothing had happened", || election.last_error().is_none());
    election.resign().unwrap();
    assert_eq!(next(), "stops false");
}

#[test]
fn a_panic_of_a_callback_is_the_error_of_the_end() {
    let client = client();
    let election = client.elect("leader").on_start(|_| panic!("as it should in this test")).start().unwrap();
    eventually("the panic is known", || election.last_error().is_some());
    // The pause after a failure does not delay it.
    assert_eq!(election.resign().unwrap_err().kind(), ErrorKind::Callback);
    let election = client.elect("leader").on_stop(|_| panic!("as it should in this test")).start().unwrap();
    eventually("it leads", || election.token().is_some());
    let error = election.resign().unwrap_err();
    assert_eq!(error.to_string(), r#""leader": on_stop has panicked: as it should in this test"#);
    assert!(client.inspect("leader").unwrap().is_none());
}

#[test]
fn elections_have_bounds() {
    let client = client();
    assert!(client.elect("leader").owner("x".repeat(257)).start().is_err());
}

#[test]
fn a_released_lease_ends_the_wait_for_its_loss() {
    let client = client();
    let lease = client.lock("job").acquire().unwrap();
    lease.release().unwrap();
    assert_eq!(lease.lost().kind(), ErrorKind::NotOwned);
    assert_eq!(lease.remaining(), Duration::ZERO);
}
