//! Threads that share a test clock.

use super::{TTL, kind, secs, two};

#[test]
fn threads_may_share_a_clock() {
    let (clock, client, rival) = two();
    let hold = |name: &str| {
        let lease = client.lock(name).ttl(TTL).wait(TTL).acquire().unwrap();
        lease.check(secs(0)).unwrap();
        // Another thread may have moved the clock beyond the 2 s that a confirmation is awaited.
        let unconfirmed = kind(lease.release());
        assert!(matches!(unconfirmed, None | Some(leasehold::ErrorKind::StoreUnavailable)), "{unconfirmed:?}");
    };
    let works: [Box<dyn Fn() + Sync + Send>; 4] = [
        Box::new(|| hold("a")),
        Box::new(|| hold("b")),
        Box::new(|| clock.advance(secs(1))),
        Box::new(|| assert_eq!(kind(rival.inspect("a")), None)),
    ];
    std::thread::scope(|scope| {
        for work in &works {
            scope.spawn(move || (0..50).for_each(|_| work()));
        }
    });
    assert!(clock.now() >= secs(50));
}

#[test]
fn a_thread_waits_for_a_callback_that_another_thread_runs() {
    let (clock, client, _rival) = two();
    let (began, has_begun) = std::sync::mpsc::channel();
    let (go_on, gate) = std::sync::mpsc::channel::<()>();
    let election = client.elect("leader").on_start(move |_| {
        began.send(()).unwrap();
        gate.recv().unwrap();
    });
    let election = election.start().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| clock.settle());
        has_begun.recv().unwrap();
        let resigning = scope.spawn(|| election.resign().unwrap());
        go_on.send(()).unwrap();
        resigning.join().unwrap();
    });
    assert!(client.lock("leader").try_acquire().unwrap().is_some());
}
