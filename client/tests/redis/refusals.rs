//! Servers that refuse: whose fault it is, what to do about it, and that a waiter gets through once it has passed.

use std::sync::atomic::Ordering;

use crate::common::on_redis::{
    HIGH, Switch, count_grants, digest, fence_key, is_taken, load_scripts, wait_for_renewals,
};
use crate::common::{PATIENCE, connect_patiently, eventually, ms};
use leasehold::blocking::Client;
use leasehold::{Error, ErrorKind};
use leasehold_servers::proxy::{Proxy, Request};
use leasehold_servers::redis::{Data, Server};
use leasehold_servers::resp::{Connection, Reply};

/// How taking a lock fails, be it at connecting or at asking.
#[track_caller]
fn failure(url: &str) -> Error {
    let patient = leasehold::Client::builder().request_timeout(PATIENCE / 2);
    let asked =
        Client::connect_with(patient, url).and_then(|client| client.lock("job").wait(ms(1_500)).acquire().map(drop));
    asked.expect_err("the store refuses")
}

#[track_caller]
fn expect(error: &Error, kind: ErrorKind, says: &str) {
    assert!(error.kind() == kind && error.to_string().contains(says), "not {kind:?} {says:?}: {error:?}");
}

#[test]
fn passwords_that_are_wrong_or_missing_are_refused_and_never_repeated() {
    let server = Server::builder().password("hunter2-right").start();
    let port = server.port();
    for userinfo in ["", ":wrong-one@", "nobody:wrong-one@", "default:wrong-one@"] {
        let error = failure(&format!("redis://{userinfo}127.0.0.1:{port}/"));
        expect(&error, ErrorKind::StoreRefused, "password");
        assert!(!error.to_string().contains("wrong-one"), "{error}");
    }
    let open = Server::start();
    let error = failure(&format!("redis://:needless@127.0.0.1:{}/", open.port()));
    expect(&error, ErrorKind::StoreRefused, "password");
    drop(connect_patiently(server.url()).lock("job").acquire().unwrap());
}

#[test]
fn each_missing_right_is_a_refusal_that_says_what_to_grant() {
    let server = Server::builder().acl_file("user default off").start();
    let url = format!("redis://worker:hunter2@127.0.0.1:{}/", server.port());
    let allow = |rules: &[&str]| {
        let words = [&["ACL", "SETUSER", "worker", "reset", "on", ">hunter2"], rules].concat();
        assert!(!server.command(&words).is_error());
    };
    allow(&["~*", "&*", "+@all"]);
    drop(Client::connect(&url).unwrap().lock("job").acquire().unwrap());
    let without: [&[&str]; 6] = [
        &["~*", "&*"],
        &["~*", "&*", "+@all", "-evalsha", "-eval"],
        &["~*", "&*", "+@all", "-set"],
        &["~*", "&*", "+@all", "-getrange"],
        &["&*", "+@all", "~other"],
        &["&*", "+@all", "~job"],
    ];
    for rules in without {
        allow(rules);
        let error = failure(&url);
        expect(&error, ErrorKind::StoreRefused, "the user needs");
        assert!(!is_taken(&server, "job"), "{rules:?}");
    }
    allow(&["~*", "+@all"]);
    drop(Client::connect(&url).unwrap().lock("job").acquire().expect("wake-ups are a convenience"));
}

#[test]
fn rights_that_are_taken_away_end_the_lease_at_its_deadline() {
    let server = Server::builder().acl_file("user worker on >hunter2 ~* &* +@all").start();
    let client = Client::connect(format!("redis://worker:hunter2@127.0.0.1:{}/", server.port())).unwrap();
    let lease = client.lock("job").ttl(ms(1_500)).renew_every(ms(200)).acquire().unwrap();
    assert!(!server.command(&["ACL", "SETUSER", "worker", "-pexpire"]).is_error());
    let error = lease.lost();
    expect(&error, ErrorKind::Lost, "no renewal was confirmed in time");
}

#[test]
fn a_replica_grants_nothing_and_is_named() {
    let primary = Server::start();
    let replica = Server::builder().replica_of(&primary).start();
    primary.wait_replicas_in_sync(1);
    expect(&failure(&replica.url()), ErrorKind::StoreUnavailable, "replica");
    // Looking is allowed there.
    let holder = Client::connect(primary.url()).unwrap().lock("other").acquire().unwrap();
    primary.wait_replicas_in_sync(1);
    let seen = Client::connect(replica.url()).unwrap().inspect("other").unwrap();
    assert_eq!(seen.unwrap().token, Some(holder.token()));
}

#[test]
fn a_resend_that_meets_the_record_on_a_replica_is_no_grant() {
    let primary = Server::start();
    let replica = Server::builder().replica_of(&primary).start();
    load_scripts(&primary);
    load_scripts(&replica);
    count_grants(&primary, "job");
    primary.wait_replicas_in_sync(1);
    let name = Switch::to(primary.port());
    let proxy = Proxy::to(name.address());
    let client = Client::connect(format!("redis://127.0.0.1:{}/", proxy.port())).unwrap();
    // The name leads to the replica from the moment in which the request is on its way.
    let (target, elsewhere, script) = (name.handle(), replica.port(), digest("acquire").as_bytes());
    let turning = Request::matching(move |request| {
        let is_acquire = request.windows(script.len()).any(|window| window == script);
        if is_acquire {
            target.store(elsewhere, Ordering::SeqCst);
        }
        is_acquire
    });
    let lost = proxy.reset_after_forwarding(turning);
    let asked = client.lock("job").ttl(ms(600_000)).wait(ms(1_500)).acquire();
    assert_eq!(lost.hits(), 1);
    expect(&asked.unwrap_err(), ErrorKind::StoreUnavailable, "replica");
    assert!(is_taken(&replica, "job"), "the record was there to be taken for a success");
    assert_eq!(primary.command(&["GET", &fence_key("job")]).text(), (HIGH + 1).to_string());
    name.turn(primary.port());
    proxy.cut_all();
    eventually("the release finds the primary again", || !is_taken(&primary, "job"));
}

/// A server whose next start takes seconds.
fn slow_to_load() -> Server {
    let server =
        Server::builder().arg("--key-load-delay", "500").arg("--loading-process-events-interval-bytes", "1024").start();
    let fill = "for i = 1, 6000 do redis.call('SET', 'filling:' .. i, string.rep('x', 50)) end";
    assert!(!server.command(&["EVAL", fill, "0"]).is_error());
    assert!(!server.command(&["SAVE"]).is_error());
    server
}

#[test]
fn a_loading_server_is_waited_for() {
    let server = slow_to_load();
    let client = Client::connect(server.url()).unwrap();
    client.lock("job").acquire().unwrap().release().unwrap();
    let is_loading = |address| {
        let ping = Connection::open(address).and_then(|mut connection| connection.command(&["PING"]));
        matches!(ping, Ok(Reply::Error(why)) if why.starts_with("LOADING"))
    };
    std::thread::scope(|scope| {
        let restarted = scope.spawn(|| server.restart(Data::Kept));
        eventually("the server is loading", || is_loading(server.address()));
        let waiter = scope.spawn(|| client.lock("job").wait(PATIENCE).acquire().unwrap());
        let error = client.lock("once").try_acquire().expect_err("loading takes longer than asking");
        expect(&error, ErrorKind::StoreUnavailable, "reading its data");
        restarted.join().unwrap();
        waiter.join().unwrap().release().unwrap();
    });
}

#[test]
fn a_full_server_grants_nothing_new_and_holders_are_unharmed() {
    let server = Server::builder().maxmemory(100 << 20).start();
    let client = Client::connect(server.url()).unwrap();
    let lease = client.lock("job").ttl(ms(120_000)).renew_every(ms(200)).acquire().unwrap();
    assert!(!server.command(&["CONFIG", "SET", "maxmemory", "1"]).is_error());
    let error = client.lock("more").wait(ms(1_500)).acquire().unwrap_err();
    expect(&error, ErrorKind::StoreUnavailable, "maxmemory");
    assert!(!is_taken(&server, "more"));
    wait_for_renewals(&server, 2);
    lease.check(ms(1)).unwrap();
    lease.release().unwrap();
    assert!(!is_taken(&server, "job"));
    assert!(!server.command(&["CONFIG", "SET", "maxmemory", "0"]).is_error());
    client.lock("more").acquire().unwrap().release().unwrap();
}

#[test]
fn a_server_without_a_connection_left_is_waited_for() {
    let server = Server::start();
    let client = Client::connect(server.url()).unwrap();
    let mut admin = server.connect();
    assert!(!admin.command(&["CONFIG", "SET", "maxclients", "1"]).unwrap().is_error());
    assert!(!admin.command(&["CLIENT", "KILL", "TYPE", "normal"]).unwrap().is_error());
    let error = Client::connect(server.url()).unwrap_err();
    expect(&error, ErrorKind::StoreUnavailable, &format!("127.0.0.1:{}", server.port()));
    let error = client.lock("job").try_acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| client.lock("job").wait(PATIENCE).acquire().unwrap());
        assert!(!admin.command(&["CONFIG", "SET", "maxclients", "100"]).unwrap().is_error());
        waiter.join().unwrap().release().unwrap();
    });
}

#[test]
fn a_script_without_end_is_named_and_its_end_waited_for() {
    let server = Server::builder().arg("--lua-time-limit", "1").start();
    let client = Client::connect(server.url()).unwrap();
    let lease = client.lock("held").ttl(ms(120_000)).renew_every(ms(200)).acquire().unwrap();
    let mut endless = server.connect();
    endless.send(&["EVAL", "while true do end", "0"]).unwrap();
    let is_busy = || server.command(&["PING"]).is_error();
    eventually("the server is busy", is_busy);
    let error = client.lock("job").wait(ms(1_500)).acquire().unwrap_err();
    expect(&error, ErrorKind::StoreUnavailable, "SCRIPT KILL");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| client.lock("job").wait(PATIENCE).acquire().unwrap());
        eventually("the script is killed", || !server.command(&["SCRIPT", "KILL"]).is_error() || !is_busy());
        assert!(endless.receive().unwrap().is_error());
        waiter.join().unwrap().release().unwrap();
    });
    wait_for_renewals(&server, 2);
    lease.check(ms(1)).unwrap();
}

#[test]
fn a_counter_that_is_no_number_is_refused_with_advice_and_left_alone() {
    let server = Server::start();
    let client = Client::connect(server.url()).unwrap();
    for broken in ["abc", "-1", "1.5", "99999999999999999999", ""] {
        server.command(&["SET", &fence_key("job"), broken]);
        let error = client.lock("job").wait(ms(1_500)).acquire().unwrap_err();
        expect(&error, ErrorKind::StoreRefused, "counter");
        assert!(!is_taken(&server, "job"), "{broken:?}");
        assert_eq!(server.command(&["GET", &fence_key("job")]).text(), broken);
    }
    server.command(&["SET", &fence_key("job"), &((1_u64 << 53) - 1).to_string()]);
    expect(&client.lock("job").try_acquire().unwrap_err(), ErrorKind::StoreRefused, "2^53");
}
