//! Standbys, and failover to one that lags.

use std::time::Duration;

use leasehold::blocking::Client;
use leasehold::quorum::Quorum;
use leasehold::{ErrorKind, schema};
use leasehold_servers::postgres::Server;

use crate::common::on_postgres::new_table;
use crate::common::{PATIENCE, eventually, ms};
use crate::{client, lease};

#[test]
fn a_standby_takes_no_locks_and_says_why() {
    let server = Server::start();
    let url = new_table(&server, server.port());
    let standby = server.standby();
    let url = url.replace(&server.port().to_string(), &standby.port().to_string());
    let error = client(&url).lock("a").wait(ms(300)).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable);
    assert!(error.to_string().contains("connect to the primary"), "{error}");
}

/// The name leads to another server from now on, and the first takes no writes any more: clients that stay there would wait forever.
#[cfg(feature = "redis")]
#[test]
fn connections_to_a_server_that_takes_no_writes_any_more_are_left() {
    let (one, two) = (Server::start(), Server::start());
    for server in [&one, &two] {
        schema::create(&server.url()).unwrap();
    }
    let name = crate::common::on_redis::Switch::to(one.port());
    let client = client(&one.url_at(name.address().port()));
    // Several connections are idle.
    std::thread::scope(|scope| {
        for resource in ["a", "b", "c", "d"] {
            let client = &client;
            scope.spawn(move || lease(client, resource).release().unwrap());
        }
    });
    one.configure("SET default_transaction_read_only = on");
    eventually("it takes no writes", || one.value::<String>("SHOW default_transaction_read_only") == "on");
    name.turn(two.port());
    client.lock("a").wait(PATIENCE).acquire().unwrap().release().unwrap();
}

/// A server and its standby, which has not got what was written after `before`.
fn lagging(before: impl FnOnce(&Server)) -> (Server, Server) {
    let server = Server::start();
    schema::create(&server.url()).unwrap();
    let standby = server.standby();
    before(&server);
    let written: String = server.value("SELECT pg_current_wal_flush_lsn()::text");
    let replayed = format!("SELECT coalesce(pg_last_wal_replay_lsn() >= '{written}', false)");
    eventually("it follows", || standby.value(&replayed));
    standby.configure("SET primary_conninfo = ''");
    eventually("it is cut off", || !server.value::<bool>("SELECT EXISTS (SELECT FROM pg_stat_replication)"));
    (server, standby)
}

fn fail_over(server: &Server, standby: &Server) {
    server.kill();
    standby.promote();
    eventually("it takes writes", || !standby.value::<bool>("SELECT pg_is_in_recovery()"));
}

#[test]
fn a_failover_that_loses_a_lock_keeps_the_order_of_tokens() {
    let (server, standby) = lagging(|_| {});
    let held = lease(&client(&server.url()), "a");
    fail_over(&server, &standby);
    // The loss: the lock is held twice. Only tokens tell the holders apart.
    let second = lease(&client(&standby.url()), "a");
    assert!(!held.is_lost() && second.token() > held.token());
}

#[test]
fn a_quorum_notices_a_failover_and_waits() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["one.db", "two.db"].map(|name| crate::common::url(&folder.path().join(name)));
    let urls = |server: &Server| format!("{} {} {}", server.url(), files[0], files[1]);
    let settings = || leasehold::Client::builder().max_ttl(Duration::from_secs(2)).quorum_id("failover");
    let (server, standby) = lagging(|server| {
        Client::connect_with(settings().create_quorum(), urls(server)).unwrap().close().unwrap();
    });
    let votes = |server: &Server| Quorum::connect(&settings(), urls(server)).unwrap().status()[0].standing.votes();
    assert!(votes(&server));
    fail_over(&server, &standby);
    let one = Client::connect_with(settings(), urls(&standby)).unwrap();
    let lock = || one.lock("a").ttl(ms(1_500)).acquire().unwrap().release().unwrap();
    lock();
    assert!(!votes(&standby), "its timeline has changed");
    eventually("it votes again", || {
        lock();
        votes(&standby)
    });
}

/// A volume that is put back to an earlier state has the same timeline and the same marker, so nothing shows the loss. The
/// operator removes the marker, as the guide says.
#[test]
fn a_restored_snapshot_is_noticed_once_its_marker_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["one.db", "two.db"].map(|name| crate::common::url(&folder.path().join(name)));
    let server = Server::with(&["fsync=on"]);
    schema::create(&server.url()).unwrap();
    let urls = format!("{} {} {}", server.url(), files[0], files[1]);
    let settings = || leasehold::Client::builder().max_ttl(Duration::from_secs(2)).quorum_id("snapshot");
    Client::connect_with(settings().create_quorum(), &urls).unwrap().close().unwrap();
    let votes = || Quorum::connect(&settings(), &urls).unwrap().status()[0].standing.votes();
    server.take_snapshot();
    let one = Client::connect_with(settings(), &urls).unwrap();
    let lock = || one.lock("a").ttl(ms(1_500)).wait(PATIENCE).acquire().unwrap().release().unwrap();
    lock();
    eventually("the node has the lock's row", || server.value("SELECT count(*) = 2 FROM leasehold"));
    server.restore_snapshot();
    assert!(server.value::<bool>("SELECT count(*) = 1 FROM leasehold"), "its data is lost");
    assert!(votes(), "and nobody can tell");
    server.run("DELETE FROM leasehold WHERE marker IS NOT NULL");
    assert!(!votes(), "it has to wait");
    eventually("it votes again", || {
        lock();
        votes()
    });
}
