//! Elections and shards by a test clock.

use std::sync::{Arc, Mutex};

use leasehold::blocking::Client;
use leasehold::{Election, ErrorKind, Shards};

use super::{Journal, TTL, kind, owned, secs, two};

fn candidate(client: &Client, name: &'static str, journal: &Journal) -> Election {
    let (start, stop) = (journal.clone(), journal.clone());
    let request = client.elect("leader").on_start(move |_| start.tell(format!("{name} leads")));
    let request = request.on_stop(move |loss| {
        let why = loss.map_or("resigned", |loss| loss.kind().name());
        stop.tell(format!("{name} stops: {why}"));
    });
    request.start().unwrap()
}

#[test]
fn candidates_lead_until_they_lose_or_resign() {
    let (clock, client, rival) = two();
    let journal = Journal::default();
    let (mine, theirs) = (candidate(&client, "I", &journal), candidate(&rival, "they", &journal));
    clock.settle();
    assert_eq!(journal.take(), ["I leads"]);
    assert!(mine.token().is_some() && theirs.token().is_none() && clock.now().is_zero());
    clock.lose("leader").unwrap();
    assert_eq!(journal.take(), ["I stops: lost", "they leads"]);
    assert!(mine.token().is_none() && theirs.token().is_some());
    clock.store_down();
    clock.advance(2 * TTL);
    assert_eq!(journal.take(), ["they stops: lost"]);
    assert_eq!(mine.last_error().map(|error| error.kind()), Some(ErrorKind::StoreUnavailable));
    clock.store_up();
    clock.advance(secs(10));
    let leads = journal.take();
    assert!(leads == ["I leads"] || leads == ["they leads"], "{leads:?}");
    let (first, second) = if mine.token().is_some() { (mine, theirs) } else { (theirs, mine) };
    let before = clock.now();
    first.resign().unwrap();
    assert_eq!(journal.take().len(), 2, "one has stopped, and the other leads");
    assert!(second.token().is_some() && clock.now() == before);
    drop(second);
    assert_eq!(journal.take().len(), 1);
    assert!(client.inspect("leader").unwrap().is_none());
}

#[test]
fn a_candidate_that_pauses_stands_again_as_soon_as_the_store_is_up() {
    let (clock, client, _rival) = two();
    let journal = Journal::default();
    clock.store_down();
    let election = candidate(&client, "I", &journal);
    // An attempt takes 5 s, and the pause after it 1 s.
    clock.advance(secs(11) / 2);
    assert!(election.last_error().is_some() && journal.take().is_empty());
    let before = clock.now();
    clock.store_up();
    assert_eq!((journal.take(), clock.now()), (vec!["I leads".to_owned()], before));
}

#[test]
fn a_callback_that_panics_ends_the_term_and_is_tried_again_after_a_pause() {
    let (clock, client, _rival) = two();
    let journal = Journal::default();
    let heard = journal.clone();
    let request = client.elect("leader").on_start(move |_| {
        heard.tell("starts");
        panic!("on purpose");
    });
    let election = request.start().unwrap();
    clock.settle();
    assert_eq!((journal.take().len(), election.token()), (1, None));
    assert_eq!(election.last_error().map(|error| error.kind()), Some(ErrorKind::Callback));
    assert!(client.inspect("leader").unwrap().is_none());
    clock.advance(secs(1));
    assert_eq!(journal.take().len(), 1);
    clock.advance(secs(1));
    assert_eq!(journal.take().len(), 0, "each pause is twice as long");
    assert_eq!(kind(election.resign()), Some(ErrorKind::Callback));
}

#[test]
fn a_candidate_may_resign_in_its_own_callback() {
    let (clock, client, rival) = two();
    let journal = Journal::default();
    let own = Arc::<Mutex<Option<Election>>>::default();
    let (heard, resigning) = (journal.clone(), Arc::clone(&own));
    let election = client.elect("leader").on_start(move |_| {
        heard.tell("leads");
        drop(resigning.lock().unwrap().take());
        heard.tell("resigned");
    });
    *own.lock().unwrap() = Some(election.start().unwrap());
    clock.settle();
    assert_eq!(journal.take(), ["leads", "resigned"]);
    assert!(rival.lock("leader").try_acquire().unwrap().is_some());
}

fn worker(client: &Client, name: &'static str, journal: &Journal) -> Shards {
    let (gain, loss) = (journal.clone(), journal.clone());
    let request = client.shards("mail").count(4).ttl(TTL);
    let request = request.on_gain(move |shard| gain.tell(format!("{name} gains {}", shard.index())));
    request.on_loss(move |shard, _| loss.tell(format!("{name} loses {}", shard.index()))).start().unwrap()
}

fn held(shards: &Shards) -> Vec<usize> {
    shards.held().iter().map(|shard| shard.index()).collect()
}

#[test]
fn workers_share_evenly_as_they_come_and_go() {
    let (clock, client, rival) = two();
    let journal = Journal::default();
    let first = worker(&client, "first", &journal);
    clock.settle();
    assert_eq!((held(&first), first.members()), (vec![0, 1, 2, 3], 1));
    assert_eq!(journal.take().len(), 4);
    let second = worker(&rival, "second", &journal);
    clock.advance(secs(6));
    assert_eq!((held(&first).len(), held(&second).len(), second.members()), (2, 2, 2));
    assert_eq!(journal.take().len(), 4, "two were lost by one, and gained by the other");
    assert_eq!(kind(client.set_shards("mail", 5)), Some(ErrorKind::Busy));
    first.stop().unwrap();
    clock.advance(secs(6));
    assert_eq!(held(&second), [0, 1, 2, 3]);
    rival.close().unwrap();
    clock.settle();
    assert!(held(&second).is_empty() && client.inspect("mail#shard0").unwrap().is_none());
}

#[test]
fn a_shard_that_is_lost_is_gained_again() {
    let (clock, client, _rival) = two();
    let journal = Journal::default();
    let shards = worker(&client, "I", &journal);
    clock.settle();
    let before = shards.held()[1].token();
    journal.take();
    clock.lose("mail#shard1").unwrap();
    assert_eq!(journal.take(), ["I loses 1", "I gains 1"]);
    assert!(shards.held()[1].token() > before);
    clock.store_down();
    clock.advance(2 * TTL);
    assert_eq!((held(&shards).len(), journal.take().len()), (0, 4));
    assert_eq!(shards.last_error().map(|error| error.kind()), Some(ErrorKind::StoreUnavailable));
    clock.store_up();
    clock.advance(2 * TTL);
    assert!(held(&shards) == [0, 1, 2, 3] && shards.last_error().is_none());
    shards.stop().unwrap();
}

#[test]
fn elections_and_shards_go_the_same_way_each_time() {
    let story = || {
        let (clock, client, rival) = two();
        let third = owned(&clock, "third");
        let journal = Journal::default();
        let workers = [worker(&client, "a", &journal), worker(&rival, "b", &journal), worker(&third, "c", &journal)];
        let elections = [candidate(&client, "a", &journal), candidate(&rival, "b", &journal)];
        clock.advance(secs(20));
        clock.store_down();
        clock.advance(2 * TTL);
        clock.store_up();
        clock.advance(secs(20));
        drop((workers, elections));
        (journal.take(), clock.now())
    };
    let (told, ended) = story();
    assert!(told.len() > 20, "{told:?}");
    assert_eq!((told, ended), story());
}
