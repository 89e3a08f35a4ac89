//! Futures by a test clock, run by it or by another executor.

use std::sync::atomic::{AtomicU32, Ordering};

use leasehold::ffi::{Executor, Task};
use leasehold::testing::TestClock;
use leasehold::{Error, ErrorKind};

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

type Loop = Executor<&'static str, (), Error>;

/// The task of a binding that waits for a lock, and gives it back.
fn wait_for(clock: &TestClock, wait: Option<std::time::Duration>) -> Task<(), Error> {
    let request = clock.connect().lock("job");
    let request = if let Some(wait) = wait { request.wait(wait) } else { request };
    Box::pin(async move { request.await?.release().await })
}

/// Steps until no task is left whose wait moves a clock: the waiters of those that have ended, and how.
fn all_of(executor: &Loop) -> Vec<(&'static str, Option<ErrorKind>)> {
    let mut all = Vec::new();
    while let Some(ended) = executor.step(|waiter| *waiter != "a loss") {
        all.extend(ended.into_iter().map(|(_, (waiter, end))| (waiter, kind(end))));
    }
    all
}

#[test]
fn an_idle_executor_moves_the_clocks_for_which_its_tasks_wait() {
    let (executor, clocks) = (Loop::new(|| {}), [(); 2].map(|()| TestClock::new(7)));
    assert!(all_of(&executor).is_empty(), "nobody waits");
    let held: Vec<_> = clocks.iter().map(|clock| clock.connect().blocking().lock("job").acquire().unwrap()).collect();
    for (clock, (name, wait)) in clocks.iter().zip([("one", secs(10)), ("two", secs(20))]) {
        executor.start(name, wait_for(clock, Some(wait)));
    }
    let mut ended = all_of(&executor);
    ended.sort_unstable_by_key(|(name, _)| *name);
    assert_eq!(ended, ["one", "two"].map(|name| (name, Some(ErrorKind::TimedOut))));
    assert_eq!([clocks[0].now(), clocks[1].now()], [secs(10), secs(20)]);
    executor.start("three", wait_for(&clocks[0], None));
    drop(held);
    assert_eq!(all_of(&executor), [("three", None)]);
    assert_eq!(clocks[1].now(), secs(20), "the other has stood still");
}

#[test]
fn a_wait_that_is_not_to_move_its_clock_does_not() {
    let (executor, clock) = (Loop::new(|| {}), TestClock::new(7));
    let (client, rival) = (clock.connect(), clock.connect());
    let request = client.lock("other").ttl(TTL);
    executor.start("a loss", Box::pin(async move { Err(request.await?.lost().await) }));
    assert!(all_of(&executor).is_empty() && clock.now().is_zero());
    executor.start("a call", Box::pin(async move { rival.lock("other").wait(TTL).await.map(drop) }));
    assert_eq!(all_of(&executor), [("a call", Some(ErrorKind::TimedOut))]);
    assert_eq!((executor.running(), clock.now()), (1, TTL));
}

#[test]
fn a_task_that_waits_for_what_never_happens_ends_with_an_error() {
    let (executor, clock) = (Loop::new(|| {}), TestClock::new(7));
    let held = clock.connect().blocking().lock("job").acquire().unwrap();
    executor.start("the first", wait_for(&clock, None));
    executor.start("the second", wait_for(&clock, Some(2 * LONG)));
    let (second, first) = (("the second", Some(ErrorKind::TimedOut)), ("the first", Some(ErrorKind::Config)));
    assert_eq!(all_of(&executor), [second, first], "one waits on as long as another's wait may end");
    assert!(executor.running() == 0 && clock.now() == 2 * LONG);
    held.release().unwrap();
}
