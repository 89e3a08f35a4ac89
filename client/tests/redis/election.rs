//! Elections on a server that stops and comes back.

use std::sync::mpsc::channel;

use crate::common::{PATIENCE, eventually, ms};
use leasehold::ErrorKind;
use leasehold::blocking::Client;
use leasehold_servers::redis::{Data, Server};

#[test]
fn a_candidate_leads_again_when_the_server_is_back() {
    let server = Server::start();
    let client = Client::connect(server.url()).unwrap();
    let ((began, starts), (ended, stops)) = (channel(), channel());
    let election = client
        .elect("leader")
        .ttl(ms(2_000))
        .on_start(move |lease| began.send(lease.token()).unwrap())
        .on_stop(move |loss| ended.send(loss.map(leasehold::Error::kind)).unwrap())
        .start()
        .unwrap();
    let first = starts.recv_timeout(PATIENCE).unwrap();
    server.kill();
    assert_eq!(stops.recv_timeout(PATIENCE).unwrap(), Some(ErrorKind::Lost));
    eventually("the failed campaign is told", || election.last_error().is_some());
    assert!(election.last_error().unwrap().kind().is_temporary());
    assert_eq!(election.token(), None);
    server.restart(Data::Lost);
    let second = starts.recv_timeout(PATIENCE).unwrap();
    assert!(second > first, "{second} after {first}");
    eventually("no error is left of a campaign that was won", || election.last_error().is_none());
    election.resign().unwrap();
    eventually("the lock is free", || client.inspect("leader").unwrap().is_none());
}
