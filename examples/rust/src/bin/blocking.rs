//! Threads that add to one counter under a lock. Run: `cargo run -p leasehold-examples --bin blocking`

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use leasehold::Error;
use leasehold::blocking::Client;

fn main() -> Result<(), Error> {
    // `sqlite:locks.db` locks between processes, `redis://host` and `dynamodb://TABLE` between machines.
    let client = Client::connect("memory:")?;
    let counter = AtomicU32::new(0);
    thread::scope(|scope| {
        let worker = || (0..25).try_for_each(|_| add_one(&client, &counter));
        let workers = [(); 4].map(|()| scope.spawn(worker));
        workers.into_iter().try_for_each(|worker| worker.join().expect("no worker panics"))
    })?;
    println!("4 threads counted to {}", counter.into_inner());
    client.close()
}

fn add_one(client: &Client, counter: &AtomicU32) -> Result<(), Error> {
    let lease = client.lock("counter").ttl(Duration::from_secs(30)).wait(Duration::from_secs(60)).acquire()?;
    let seen = counter.load(Relaxed);
    thread::yield_now();
    counter.store(seen + 1, Relaxed);
    // Dropping the lease releases it too, but cannot report that it was lost.
    lease.release()
}

// Output:
// 4 threads counted to 100
