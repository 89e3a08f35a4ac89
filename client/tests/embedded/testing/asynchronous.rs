//! Futures by a test clock, run by it or by another executor.

use std::sync::atomic::{AtomicU32, Ordering};

use leasehold::ErrorKind;

use super::{LONG, TTL, kind, secs, two};

#[test]
fn a_future_is_run_to_its_end_and_moves_the_clock() {
    let (clock, ..) = two();
    let (client, rival) = (clock.connect(), clock.connect());
    clock.run(async {
        let lease = rival.lock("job").ttl(TTL).no_renewal().await.unwrap();
        assert_eq!(kind(client.lock("job").wait(secs(1)).await), Some(ErrorKind::TimedOut));
        assert_eq!(clock.now(), secs(1));
        let ours = client.lock("job").await.unwrap();
        assert!(lease.is_lost() && lease.lost().await.kind() == ErrorKind::Lost);
        assert!(client.inspect("job").await.unwrap().is_some());
        ours.release().await.unwrap();
        client.clone().close().await.unwrap();
        assert_eq!(kind(client.lock("job").await), Some(ErrorKind::Closed));
    });
}

#[test]
fn tasks_take_turns() {
    let (clock, ..) = two();
    let (client, rival, inside) = (clock.connect(), clock.connect(), AtomicU32::new(0));
    let work = |client: leasehold::Client| {
        let inside = &inside;
        async move {
            let lease = client.lock("job").ttl(TTL).await.unwrap();
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
            tokio::task::yield_now().await;
            inside.fetch_sub(1, Ordering::SeqCst);
            lease.release().await.unwrap();
        }
    };
    clock.run(async {
        let (one, two) = (client.clone(), rival.clone());
        tokio::join!(work(client), work(rival), work(one), work(two));
    });
}

#[test]
fn a_loss_ends_the_wait_of_a_select() {
    let (clock, ..) = two();
    let client = clock.connect();
    let ended = clock.run(async {
        let lease = client.lock("job").ttl(TTL).max_hold(2 * TTL).await.unwrap();
        tokio::select! {
            loss = lease.lost() => loss.kind().name(),
            () = std::future::pending() => "never",
        }
    });
    assert_eq!(ended, "lost");
    assert!(clock.now() > 2 * TTL && clock.now() <= 3 * TTL, "{:?}", clock.now());
}

#[tokio::test]
async fn in_another_executor_a_future_waits_until_the_clock_is_moved() {
    let (clock, ..) = two();
    let (client, rival) = (clock.connect(), clock.connect());
    let held = rival.lock("job").await.unwrap();
    let waiting = tokio::spawn(async move { kind(client.lock("job").wait(LONG).await) });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished() && clock.now().is_zero());
    clock.advance(LONG);
    assert_eq!(waiting.await.unwrap(), Some(ErrorKind::TimedOut));
    held.release().await.unwrap();
}

#[test]
fn slow_answers_do_not_hold_up_other_futures() {
    let (clock, ..) = two();
    let client = clock.connect();
    clock.late(secs(1) / 10);
    clock.run(async {
        let (one, two) = tokio::join!(client.lock("a"), client.lock("b"));
        assert_eq!(clock.now(), secs(1) / 10, "both were under way at once");
        one.unwrap().release().await.unwrap();
        drop(two.unwrap());
    });
}
