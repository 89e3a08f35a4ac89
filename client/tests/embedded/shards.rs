//! Shards: callbacks that are slow, panic or stop; a lost place among the members; more workers than shards.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use crate::common::{PATIENCE, eventually, ms};
use leasehold::blocking::Client;
use leasehold::{ErrorKind, HolderMatch, Shards, ShardsRequest};

fn memory(name: &str) -> Client {
    Client::connect(format!("memory:shards-{name}")).unwrap()
}

fn request(client: &Client, count: usize) -> ShardsRequest {
    client.shards("mail").count(count).ttl(ms(6_000)).look_every(ms(200))
}

fn indexes(shards: &Shards) -> Vec<usize> {
    shards.held().iter().map(|shard| shard.index()).collect()
}

fn is_free(client: &Client) -> bool {
    client.list("mail#").next().is_none()
}

/// Blocks the callbacks of a shard until the sender is dropped.
fn gate() -> (Sender<()>, Arc<Mutex<Receiver<()>>>) {
    let (open, opened) = channel();
    (open, Arc::new(Mutex::new(opened)))
}

#[test]
fn a_slow_callback_delays_no_renewal_and_nothing_of_another_shard() {
    let client = memory("slow");
    let ((may_return, gate), (told, losses)) = (gate(), channel());
    let shards = request(&client, 3)
        .on_gain(move |shard| {
            if shard.index() == 0 {
                let _ = gate.lock().unwrap().recv_timeout(PATIENCE);
            }
        })
        .on_loss(move |shard, loss| told.send((shard.index(), loss.map(leasehold::Error::kind))).unwrap())
        .start()
        .unwrap();
    eventually("it has all", || indexes(&shards) == [0, 1, 2]);
    let slow = Arc::clone(&shards.held()[0]);
    let mut before = slow.remaining();
    eventually("the slow one is renewed", || {
        let now = slow.remaining();
        let was = std::mem::replace(&mut before, now);
        now > was
    });
    client.break_lock("mail#shard2").unwrap();
    assert_eq!(losses.recv_timeout(PATIENCE).unwrap(), (2, Some(ErrorKind::Lost)));
    client.break_lock("mail#shard0").unwrap();
    // The lease tells it, though the callback runs still.
    eventually("the slow one is lost", || slow.is_lost());
    assert!(!indexes(&shards).contains(&0) && losses.try_recv().is_err());
    drop(may_return);
    assert_eq!(losses.recv_timeout(PATIENCE).unwrap(), (0, Some(ErrorKind::Lost)));
    eventually("it has all again", || indexes(&shards) == [0, 1, 2]);
    shards.stop().unwrap();
    assert!(is_free(&client));
}

#[test]
fn a_shard_is_renewed_until_its_slow_end_has_returned() {
    let client = memory("slow-end");
    let ((may_return, gate), (told, ends)) = (gate(), channel());
    let shards = request(&client, 2)
        .on_loss(move |shard, loss| {
            assert!(loss.is_none());
            told.send(Arc::clone(shard)).unwrap();
            let _ = gate.lock().unwrap().recv_timeout(PATIENCE);
        })
        .start()
        .unwrap();
    eventually("it has all", || indexes(&shards) == [0, 1]);
    let other = request(&memory("slow-end"), 2).start().unwrap();
    let leaving = ends.recv_timeout(PATIENCE).unwrap();
    let mut before = leaving.remaining();
    eventually("it is renewed", || {
        let now = leaving.remaining();
        let was = std::mem::replace(&mut before, now);
        now > was
    });
    assert!(indexes(&other).is_empty() && !indexes(&shards).contains(&leaving.index()));
    drop(may_return);
    eventually("it is handed on", || indexes(&other) == [leaving.index()]);
    other.stop().unwrap();
    shards.stop().unwrap();
}

#[test]
fn a_revoked_shard_is_free_once_its_end_has_returned() {
    let client = memory("revoked");
    let ((may_return, gate), (told, ends)) = (gate(), channel());
    let shards = request(&client, 1)
        .on_loss(move |shard, loss| {
            told.send((Arc::clone(shard), loss.map(leasehold::Error::kind))).unwrap();
            let _ = gate.lock().unwrap().recv_timeout(PATIENCE);
        })
        .start()
        .unwrap();
    eventually("it has it", || indexes(&shards) == [0]);
    let token = shards.held()[0].token();
    client.revoke("mail#shard0", HolderMatch::default().token(token)).unwrap();
    // It is still referred to, which keeps a lease that nobody releases.
    let (shard, loss) = ends.recv_timeout(PATIENCE).unwrap();
    assert_eq!(loss, Some(ErrorKind::Lost));
    drop(may_return);
    eventually("it has it again", || shards.held().first().is_some_and(|held| held.token() > shard.token()));
    shards.stop().unwrap();
}

#[test]
fn a_shard_whose_callback_panics_is_let_go_and_tried_again() {
    let client = memory("panic");
    let ((told, ends), heals) = (channel(), Arc::new(AtomicBool::new(false)));
    let healed = Arc::clone(&heals);
    let shards = request(&client, 3)
        .on_gain(move |shard| {
            assert!(shard.index() != 1 || healed.load(Ordering::SeqCst), "as it should in this test");
        })
        .on_loss(move |shard, loss| told.send((shard.index(), loss.is_none())).unwrap())
        .start()
        .unwrap();
    let failed = (1, true);
    assert_eq!([(); 2].map(|()| ends.recv_timeout(PATIENCE).unwrap()), [failed, failed], "the others go on");
    let error = shards.last_error().unwrap();
    assert_eq!(error.kind(), ErrorKind::Callback);
    assert!(error.to_string().contains("on_gain has panicked: as it should in this test"), "{error}");
    eventually("it has the others", || indexes(&shards) == [0, 2]);
    heals.store(true, Ordering::SeqCst);
    eventually("it has all", || indexes(&shards) == [0, 1, 2]);
    eventually("nothing is wrong", || shards.last_error().is_none());
    shards.stop().unwrap();
    // The values that the callbacks own are dropped with the worker.
    assert_eq!(ends.iter().filter(|end| *end == failed).count(), 1);
}

#[test]
fn a_worker_whose_callbacks_all_panic_leaves_its_place_to_others() {
    let (broken, healthy) = (memory("broken"), memory("broken"));
    let shards = request(&broken, 2).on_gain(|_| panic!("as it should in this test")).start().unwrap();
    eventually("a panic is known", || shards.last_error().is_some_and(|error| error.kind() == ErrorKind::Callback));
    let others = request(&healthy, 2).start().unwrap();
    // For less than the pause, the broken one may have its share.
    eventually("the other one has all", || indexes(&others) == [0, 1] && others.members() == 1);
    assert_eq!(shards.stop().unwrap_err().kind(), ErrorKind::Callback);
    others.stop().unwrap();
    assert!(is_free(&healthy));
}

#[test]
fn a_callback_may_stop_and_drop_the_worker() {
    let client = memory("stop");
    let slot: Arc<Mutex<Option<Shards>>> = Arc::default();
    let (told, ends) = channel();
    let theirs = Arc::clone(&slot);
    let shards = request(&client, 3)
        .on_gain(move |_| {
            // Others may have it by now.
            if let Some(shards) = theirs.lock().unwrap().take() {
                shards.stop().unwrap();
            }
        })
        .on_loss(move |shard, _| told.send(shard.index()).unwrap())
        .start()
        .unwrap();
    *slot.lock().unwrap() = Some(shards);
    // One that was gained before has found nothing to stop.
    let _ = client.break_lock("mail#shard0");
    ends.recv_timeout(PATIENCE).unwrap();
    eventually("all are free", || is_free(&client));
    assert!(slot.lock().unwrap().is_none());
}

#[test]
fn a_worker_that_loses_its_place_keeps_its_shards_and_joins_again() {
    let client = memory("seat");
    let shards = request(&client, 3).start().unwrap();
    eventually("it has all", || indexes(&shards) == [0, 1, 2] && shards.members() == 1);
    let tokens: Vec<u64> = shards.held().iter().map(|shard| shard.token()).collect();
    let seat = client.list("mail#member").next().unwrap().unwrap();
    client.break_lock(&seat.resource).unwrap();
    eventually("it has another place", || {
        let found = client.list("mail#member").next();
        found.is_some_and(|found| found.unwrap().token > seat.token) && shards.members() == 1
    });
    let after: Vec<u64> = shards.held().iter().map(|shard| shard.token()).collect();
    assert_eq!(after, tokens, "nothing has moved");
    shards.stop().unwrap();
}

#[test]
fn a_worker_too_many_stands_by_and_replaces_one_that_stops() {
    let client = memory("standby");
    let first = request(&client, 2).start().unwrap();
    let second = request(&client, 2).start().unwrap();
    eventually("two share", || indexes(&first).len() == 1 && indexes(&second).len() == 1);
    let third = request(&client, 2).start().unwrap();
    eventually("all see two members", || first.members() == 2 && second.members() == 2);
    assert!(indexes(&third).is_empty() && third.members() == 0 && third.last_error().is_none());
    first.stop().unwrap();
    eventually("the third works", || indexes(&third).len() == 1 && third.members() == 2);
    assert_eq!(indexes(&second).len(), 1);
    // One of them gets the place that becomes free, and the other one lets go or stands by.
    let fourth = request(&client, 2).start().unwrap();
    let seats: Vec<String> = client.list("mail#member").map(|seat| seat.unwrap().resource).collect();
    client.break_lock(&seats[0]).unwrap();
    eventually("two of three have one each", || {
        let mut counts = [&second, &third, &fourth].map(|worker| indexes(worker).len());
        counts.sort_unstable();
        counts == [0, 1, 1]
    });
    for worker in [second, third, fourth] {
        worker.stop().unwrap();
    }
    assert!(is_free(&client));
}
