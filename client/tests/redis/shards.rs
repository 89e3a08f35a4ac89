//! Shards on a server that stops and comes back.

use std::sync::mpsc::channel;

use crate::common::{PATIENCE, eventually, ms};
use leasehold::ErrorKind;
use leasehold::blocking::Client;
use leasehold_servers::redis::{Data, Server};

#[test]
fn a_worker_has_its_shards_again_when_the_server_is_back() {
    let server = Server::start();
    let client = Client::connect(server.url()).unwrap();
    let ((gained, gains), (lost, losses)) = (channel(), channel());
    let shards = client
        .shards("mail")
        .count(2)
        .ttl(ms(2_000))
        .look_every(ms(300))
        .on_gain(move |shard| gained.send((shard.index(), shard.token())).unwrap())
        .on_loss(move |shard, loss| lost.send((shard.index(), loss.map(leasehold::Error::kind))).unwrap())
        .start()
        .unwrap();
    eventually("it has both", || shards.held().len() == 2);
    server.kill();
    for _ in 0..2 {
        assert_eq!(losses.recv_timeout(PATIENCE).unwrap().1, Some(ErrorKind::Lost));
    }
    eventually("the trouble is told", || shards.last_error().is_some_and(|error| error.kind().is_temporary()));
    assert!(shards.held().is_empty());
    let before: Vec<(usize, u64)> = gains.try_iter().collect();
    server.restart(Data::Lost);
    eventually("it has both again", || shards.held().len() == 2 && shards.last_error().is_none());
    for shard in shards.held() {
        let old = before.iter().filter(|(index, _)| *index == shard.index()).map(|(_, token)| *token).max();
        assert!(old.is_some_and(|old| old < shard.token()), "tokens grow: {old:?}, {}", shard.token());
    }
    shards.stop().unwrap();
    eventually("all are free", || client.list("mail#").next().is_none());
}
