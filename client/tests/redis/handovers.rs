//! Locks that go from one client to another, while their waiters have long fallen back to asking every second or two: who is
//! not woken by the release is found out by the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use leasehold::Client;
use leasehold_servers::redis::Server;

use crate::common::PATIENCE;

/// How many locks change hands. `cargo xtask prove handovers` asks for 100,000, which take a quarter of an hour. On a machine
/// that does nothing else none of their waiters is late; where it does, a request of a waiter that was woken in time may be
/// slow.
const HOW_MANY: &str = "LEASEHOLD_HANDOVERS";
const LOCKS: usize = 500;
/// By then a waiter sleeps for up to 2 s, and for one on average.
const HELD: Duration = Duration::from_secs(4);
/// A waiter that polls is later than this three times out of four.
const LATE: Duration = Duration::from_millis(500);

/// Notices when this process or the server stood still, which excuses a late waiter.
#[derive(Clone, Default)]
struct Stalls(Arc<(AtomicU64, AtomicBool)>);

impl Stalls {
    fn watch(&self, client: Client) {
        let watched = self.clone();
        std::thread::spawn(move || {
            while !watched.0.1.load(Ordering::Relaxed) {
                let before = Instant::now();
                std::thread::sleep(Duration::from_millis(10));
                watched.note(before);
            }
        });
        let watched = self.clone();
        tokio::spawn(async move {
            loop {
                let before = Instant::now();
                tokio::time::sleep(Duration::from_millis(10)).await;
                let _ = client.inspect("nobody's").await;
                watched.note(before);
            }
        });
    }

    fn note(&self, before: Instant) {
        if before.elapsed() > LATE / 5 {
            self.0.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn count(&self) -> u64 {
        self.0.0.load(Ordering::Relaxed)
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "the figures of a long run")]
fn every_hand_over_wakes_its_waiter() {
    let rounds = std::env::var(HOW_MANY).ok().map_or(1, |text| text.parse::<usize>().unwrap().div_ceil(LOCKS));
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let patient = || Client::builder().request_timeout(PATIENCE / 2);
        let clients = [patient().connect(server.url()).await.unwrap(), patient().connect(server.url()).await.unwrap()];
        let stalls = Stalls::default();
        stalls.watch(clients[0].clone());
        let (late, excused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut locks = tokio::task::JoinSet::new();
        for n in 0..LOCKS {
            let (clients, stalls) = (clients.clone(), stalls.clone());
            let (late, excused) = (Arc::clone(&late), Arc::clone(&excused));
            locks.spawn(async move {
                let name = format!("job-{n}");
                let request = |of: usize| clients[of % 2].lock(&name).ttl(3 * PATIENCE).wait(3 * PATIENCE);
                // Not all at once.
                tokio::time::sleep(HELD * u32::try_from(n).unwrap() / u32::try_from(LOCKS).unwrap()).await;
                let mut held = request(0).await.unwrap();
                for round in 1..=rounds {
                    let waiting = request(round);
                    let waiter = tokio::spawn(async move { waiting.await.map(|lease| (lease, Instant::now())) });
                    tokio::time::sleep(HELD).await;
                    let before = stalls.count();
                    held.release().await.unwrap();
                    let released = Instant::now();
                    let (next, granted) = waiter.await.unwrap().unwrap();
                    held = next;
                    if granted.saturating_duration_since(released) > LATE {
                        let whom = if stalls.count() == before { &late } else { &excused };
                        whom.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        while let Some(done) = locks.join_next().await {
            done.unwrap();
        }
        stalls.0.1.store(true, Ordering::Relaxed);
        let (late, excused) = (late.load(Ordering::Relaxed), excused.load(Ordering::Relaxed));
        let all = rounds * LOCKS;
        println!("of {all} waiters {late} were late, and {excused} more while something stood still");
        assert!(late <= all / 100, "{late} of {all} waiters were woken by nobody");
        assert!(excused <= all / 4, "{excused} of {all} were late where something stood still again and again");
    });
}
