//! Errors that pass while somebody waits, and those that are final: see `docs/errors.md`.

use std::time::Duration;

use crate::common::on_redis::{Switch, wait_for_renewals};
use crate::common::{PATIENCE, connect_patiently, eventually, ms};
use leasehold::ErrorKind;
use leasehold::blocking::Client;
use leasehold_servers::proxy::{Proxy, Request};
use leasehold_servers::redis::{Server, Watched};

fn failed(server: &Server, error: &str) -> bool {
    let stats = server.command(&["INFO", "errorstats"]).text();
    stats.lines().any(|line| line.starts_with(&format!("errorstat_{error}:")))
}

#[test]
fn a_server_without_room_is_waited_for() {
    let server = Server::builder().maxmemory(100 << 20).start();
    let client = connect_patiently(server.url());
    server.must(&["CONFIG", "SET", "maxmemory", "1"]);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| client.lock("job").wait(PATIENCE).acquire());
        eventually("it was refused", || failed(&server, "OOM"));
        server.must(&["CONFIG", "SET", "maxmemory", "0"]);
        waiter.join().unwrap().unwrap().release().unwrap();
    });
}

#[test]
fn a_password_that_is_being_exchanged_ends_no_wait_of_those_who_were_let_in() {
    let server = Server::builder().acl_file("user worker on >hunter2 ~* &* +@all").start();
    let url = format!("redis://worker:hunter2@127.0.0.1:{}/", server.port());
    let client = connect_patiently(&url);
    server.must(&["ACL", "SETUSER", "worker", "resetpass", ">another"]);
    server.must(&["CLIENT", "KILL", "USER", "worker"]);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| client.lock("job").wait(PATIENCE).acquire());
        eventually("it was refused", || failed(&server, "WRONGPASS"));
        let error = Client::connect(&url).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreRefused, "nobody has let this one in: {error}");
        let error = client.lock("other").wait(ms(300)).acquire().unwrap_err();
        assert!(error.kind() == ErrorKind::StoreUnavailable && error.to_string().contains("WRONGPASS"), "{error}");
        server.must(&["ACL", "SETUSER", "worker", ">hunter2"]);
        waiter.join().unwrap().unwrap().release().unwrap();
    });
}

#[test]
fn waiting_for_replicas_is_refused_at_once_where_there_is_no_wait() {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("settings");
    std::fs::write(&settings, "rename-command WAIT no-wait\n").unwrap();
    let server = Server::builder().arg("--include", settings.to_str().unwrap()).start();
    let error = Client::connect(format!("{}?wait_replicas=1", server.url())).map(drop).unwrap_err();
    assert!(error.kind() == ErrorKind::StoreRefused && error.to_string().contains("leave it out"), "{error}");
    Client::connect(server.url()).unwrap().lock("job").try_acquire().unwrap().unwrap().release().unwrap();
}

/// As twemproxy does with commands that it does not know.
#[test]
fn a_proxy_that_closes_on_what_is_not_needed_is_asked_without_it() {
    let server = Server::start();
    let proxy = Proxy::to(server.address());
    let names = proxy.reset_before_forwarding(Request::containing("SETINFO").always());
    let roles = proxy.reset_before_forwarding(Request::containing("ROLE").always());
    let client = connect_patiently(server.url_at(proxy.port()));
    // Asked twice for the role: a server that dies closes connections as well.
    assert!(names.hits() == 1 && roles.hits() == 2, "{names:?} {roles:?}");
    client.lock("job").wait(PATIENCE).acquire().unwrap().release().unwrap();
    proxy.cut_all();
    client.lock("job").wait(PATIENCE).acquire().unwrap().release().unwrap();
    assert!(names.hits() == 1 && roles.hits() == 2, "it is remembered: {names:?} {roles:?}");
}

#[test]
fn sentinels_that_do_not_answer_are_named() {
    let watched = Watched::start();
    let sentinel = Proxy::to((std::net::Ipv4Addr::LOCALHOST, watched.ports()[0]).into());
    let client = Client::connect(format!("redis+sentinel://{}/main", sentinel.address())).unwrap();
    sentinel.black_hole();
    watched.servers()[0].kill();
    let named = format!("1 of 1 Sentinels do not answer: {}", sentinel.address());
    eventually("they are named", || {
        let error = client.lock("job").wait(Duration::ZERO).acquire().unwrap_err().to_string();
        error.contains("no connection in time") && error.contains(&named)
    });
}

#[test]
fn a_name_that_leads_elsewhere_is_asked_again_before_the_lease_is_lost() {
    let primary = Server::start();
    let replica = Server::builder().replica_of(&primary).start();
    let hole = Proxy::to(primary.address());
    let name = Switch::to(hole.port());
    let client = Client::connect(name.url()).unwrap();
    // One attempt alone would last as long as this.
    let lease = client.lock("job").ttl(ms(5_000)).renew_every(ms(200)).acquire().unwrap();
    primary.wait_replicas_in_sync(1);
    replica.promote();
    let before = hole.connections();
    hole.black_hole();
    eventually("an attempt has gone into the hole", || hole.connections() > before);
    name.turn(replica.port());
    wait_for_renewals(&replica, 2);
    lease.check(ms(1)).unwrap();
}
