//! Workers that share the partitions of a queue. Run: `cargo run -p leasehold-examples --bin shards`

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use leasehold::blocking::Client;
use leasehold::{Error, Shard, Shards};

/// Each partition is read by one worker at a time, so its items are done in order.
type Partitions = Arc<[Mutex<Receiver<u32>>; 4]>;

fn main() -> Result<(), Error> {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..4).map(|_| channel()).unzip();
    let receivers: Vec<_> = receivers.into_iter().map(Mutex::new).collect();
    let partitions: Partitions = Arc::new(receivers.try_into().expect("there are four"));
    let (done, items) = channel();

    let client = Client::connect("memory:mail")?;
    let first = work(&client, &partitions, &done)?;
    let second = work(&client, &partitions, &done)?;
    wait_until(|| first.held().len() == 2 && second.held().len() == 2);
    println!("two workers have 2 shards each");

    for number in 0..20 {
        senders[number as usize % 4].send(number).expect("the queue is open");
    }
    first.stop()?;
    wait_until(|| second.held().len() == 4);
    println!("one has stopped, and the other one has all 4");

    let items: Vec<(usize, u32)> = items.iter().take(20).collect();
    let of_first: Vec<u32> = items.into_iter().filter(|(shard, _)| *shard == 0).map(|(_, number)| number).collect();
    println!("partition 0: {of_first:?}");
    second.stop()?;
    Ok(())
}

type Done = std::sync::mpsc::Sender<(usize, u32)>;

fn work(client: &Client, partitions: &Partitions, done: &Done) -> Result<Shards, Error> {
    let working: Arc<Mutex<HashMap<usize, JoinHandle<()>>>> = Arc::default();
    let (partitions, done, ended) = (Arc::clone(partitions), done.clone(), Arc::clone(&working));
    let stops: Arc<Mutex<HashMap<usize, Arc<()>>>> = Arc::default();
    let dropped = Arc::clone(&stops);
    client
        .shards("mail")
        .count(4)
        .look_every(Duration::from_millis(100))
        .on_gain(move |shard| {
            let stop = Arc::new(());
            let is_wanted = Arc::downgrade(&stop);
            stops.lock().expect("no panic").insert(shard.index(), stop);
            let (shard, partitions, done) = (Arc::clone(shard), Arc::clone(&partitions), done.clone());
            let index = shard.index();
            let consumer = thread::spawn(move || consume(&shard, &partitions, &done, || is_wanted.strong_count() > 0));
            working.lock().expect("no panic").insert(index, consumer);
        })
        .on_loss(move |shard, _| {
            // The shard is kept until this returns: the piece in hand is finished.
            dropped.lock().expect("no panic").remove(&shard.index());
            let consumer = ended.lock().expect("no panic").remove(&shard.index());
            let _ = consumer.map(JoinHandle::join);
        })
        .start()
}

fn consume(shard: &Shard, partitions: &Partitions, done: &Done, is_wanted: impl Fn() -> bool) {
    let items = partitions[shard.index()].lock().expect("no panic");
    while is_wanted() && !shard.is_lost() {
        // The store that the work writes to should refuse tokens older than `shard.token()`.
        if let Ok(number) = items.recv_timeout(Duration::from_millis(10)) {
            let _ = done.send((shard.index(), number));
        }
    }
}

fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::sleep(Duration::from_millis(5));
    }
}

// Output:
// two workers have 2 shards each
// one has stopped, and the other one has all 4
// partition 0: [0, 4, 8, 12, 16]
