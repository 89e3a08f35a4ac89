//! Shards: each has one holder, all are held, and nobody has more than its share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::blocking::Client;
use leasehold::{ErrorKind, Shards};

use crate::common::{Role, eventually, ms, role_args, say, stay};
use crate::{Can, Store};

const COUNT: usize = 5;
/// Long enough for a busy machine to renew.
const TTL: Duration = Duration::from_secs(6);

/// The words of the callbacks: for each shard the token of its holder, until that one has stopped.
type Told = Arc<Mutex<BTreeMap<usize, u64>>>;

fn work(client: &Client, told: &Told) -> Shards {
    let (gained, lost) = (Arc::clone(told), Arc::clone(told));
    client
        .shards("mail")
        .count(COUNT)
        .ttl(TTL)
        .look_every(ms(300))
        .on_gain(move |shard| {
            let before = gained.lock().unwrap().insert(shard.index(), shard.token());
            assert!(before.is_none_or(|before| before < shard.token()), "tokens of a shard grow");
            assert_eq!(shard.resource(), format!("mail#shard{}", shard.index()));
        })
        .on_loss(move |shard, _| {
            let mut told = lost.lock().unwrap();
            if told.get(&shard.index()) == Some(&shard.token()) {
                told.remove(&shard.index());
            }
        })
        .start()
        .unwrap()
}

fn counts(workers: &[&Shards]) -> Vec<usize> {
    let mut counts: Vec<usize> = workers.iter().map(|worker| worker.held().len()).collect();
    counts.sort_unstable();
    counts
}

pub(crate) fn shards_are_shared_evenly(store: &Store) {
    let clients = [store.client(), store.client(), store.client()];
    let told = Told::default();
    let first = work(&clients[0], &told);
    eventually("one worker has all shards", || counts(&[&first]) == [5]);
    let second = work(&clients[1], &told);
    eventually("two workers share", || counts(&[&first, &second]) == [2, 3]);
    let third = work(&clients[2], &told);
    eventually("three workers share", || counts(&[&first, &second, &third]) == [1, 2, 2]);
    eventually("the number of workers is told", || first.members() == 3);
    let error = clients[0].set_shards("mail", 6).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    second.stop().unwrap();
    eventually("two are left", || counts(&[&first, &third]) == [2, 3]);
    eventually("all of them are told", || told.lock().unwrap().len() == COUNT);
    third.stop().unwrap();
    first.stop().unwrap();
    assert!(told.lock().unwrap().is_empty(), "the work on all of them has stopped");
    let locks: Vec<String> = (0..COUNT).map(|index| format!("mail#shard{index}")).collect();
    for lease in clients[1].lock_all(locks).wait(crate::common::PATIENCE).acquire().unwrap().iter() {
        lease.release().unwrap();
    }
    eventually("the number can be changed", || clients[0].set_shards("mail", 6).is_ok());
    let fourth = work(&clients[1], &told);
    eventually("another number is told", || {
        fourth.last_error().is_some_and(|error| error.to_string().contains("shards is 5 here, and 6 in the store"))
    });
    assert!(fourth.held().is_empty());
}

/// Works on shards until the process ends.
#[test]
#[ignore = "the part of another process"]
fn role_worker() {
    let Some(url) = role_args() else { return };
    let client = Client::connect_with(crate::patient(&url), url).unwrap();
    let worker = work(&client, &Told::default());
    eventually("a share", || worker.held().len() >= 2);
    say("working");
    stay();
}

pub(crate) fn the_shards_of_a_process_that_dies_are_taken_over(store: &Store) {
    if !store.can(Can::ServeSeveralProcesses) {
        return;
    }
    let (client, told) = (store.client(), Told::default());
    let first = work(&client, &told);
    eventually("one worker has all shards", || counts(&[&first]) == [5]);
    let mut other = Role::start("shards::role_worker", store.url());
    assert_eq!(other.says(), "working");
    eventually("the worker has let go of its surplus", || first.held().len() <= 3);
    other.kill();
    other.wait();
    eventually("the rest works on all shards", || first.held().len() == 5);
    first.stop().unwrap();
}
