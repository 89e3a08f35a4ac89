//! Secrets that must not leave: nonces and passwords in output, and requests through somebody else.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use leasehold::blocking::Client;
use leasehold_servers::redis::Server;
use leasehold_servers::rest;

use crate::common::log::Log;
use crate::common::{Role, eventually, ms, role_args, say};

const PASSWORD: &str = "hunter2-of-this-test";

#[test]
fn no_output_has_a_nonce_or_a_password() {
    let log = Log::default();
    // No other test of this program has one for all threads. Before the first server, which would bring its own.
    tracing::subscriber::set_global_default(log.clone()).unwrap();
    let server = Server::builder().password(PASSWORD).start();
    let (one, two) = (Client::connect(server.url()).unwrap(), Client::connect(server.url()).unwrap());
    let lease = one.lock("job").ttl(ms(60_000)).renew_every(ms(50)).data(b"step 3").acquire().unwrap();
    let value = server.command(&["GET", "job"]).text();
    let (nonce, _) = value.split_once('@').unwrap();
    assert!(nonce.len() == 32 && nonce.bytes().all(|byte| byte.is_ascii_hexdigit()), "{value}");
    let bytes: Vec<u8> = (0..16).map(|at| u8::from_str_radix(&nonce[2 * at..2 * at + 2], 16).unwrap()).collect();
    let list = format!("{bytes:?}");

    let busy = two.lock("job").wait(Duration::ZERO).acquire().unwrap_err();
    let late = two.lock("job").wait(ms(50)).acquire().unwrap_err();
    let wrong = Client::connect(server.url().replace(PASSWORD, "hunter2-guess")).unwrap_err();
    let election = two.elect("leader").start().unwrap();
    let findings = two.doctor().unwrap();
    let mut shown = format!("{one:?} {lease:?} {busy} {busy:?} {late} {late:?} {wrong} {wrong:?} {findings:?}");
    shown.push_str(&format!("{:?} {} {:?}", one.stores(), one.store(), two.inspect("job")));
    server.command(&["DEL", "job"]);
    shown.push_str(&format!("{:?} {:?}", lease.lost(), lease.check(ms(1))));
    eventually("the loss is told", || log.has("lock.lost", &["resource=\"job\""]));
    election.resign().unwrap();
    assert!(log.has("lock.acquired", &[]) && log.has("lock.contended", &[]));
    for secret in [nonce, list.trim_matches(['[', ']']), "hunter2"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
        assert!(!log.has("", &[secret]), "{secret} in {log:?}");
    }
}

/// Its environment names a proxy for everything.
#[test]
#[ignore = "the part of another process"]
fn role_behind_a_proxy() {
    let Some(args) = role_args() else { return };
    let (proxy, url) = args.split_once(' ').unwrap();
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        // SAFETY: nothing else runs in this process yet that reads the environment.
        unsafe { std::env::set_var(name, proxy) };
    }
    let client = Client::connect(url).unwrap();
    client.lock("job").acquire().unwrap().release().unwrap();
    client.close().unwrap();
    say("done");
}

#[test]
fn requests_pass_by_no_proxy_that_the_environment_names() {
    let redis = Server::start();
    let server = rest::Server::start(&redis);
    let proxy = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    proxy.set_nonblocking(true).unwrap();
    let url = format!("upstash+http://:{}@{}", server.token(), server.address());
    let mut role =
        Role::start("secrets::role_behind_a_proxy", &format!("http://{} {url}", proxy.local_addr().unwrap()));
    assert_eq!(role.says(), "done");
    role.wait();
    assert!(proxy.accept().is_err(), "somebody has asked the proxy");
    assert!(server.requests() > 2);
}
