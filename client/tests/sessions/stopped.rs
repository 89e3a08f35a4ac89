//! A session whose process stands still for too long: it is buried, and wakes up to its losses.

use leasehold::blocking::Client;

use leasehold_servers::etcd;
use leasehold_servers::objects::{self, Api};

use crate::common::{Role, eventually, ms, on_dynamodb, on_objects, role_args, say, stay};
use crate::{Store, client, lease};

/// Holds two locks, tells of their ends, and takes a third one then.
#[test]
#[ignore = "a role of other tests"]
fn role_holder() {
    let Some(args) = role_args() else { return };
    let (session, url) = args.split_once(' ').unwrap();
    let client = client(url, (session != "-").then_some(session));
    let leases = ["a", "b"].map(|name| lease(&client, name, ms(3_000)));
    let tokens = leases.each_ref().map(|lease| lease.token().to_string());
    say(tokens.join(" "));
    stay_until_lost(&leases[0]);
    stay_until_lost(&leases[1]);
    say("lost");
    say(lease(&client, &format!("after {session}"), ms(30_000)).token());
    stay();
}

fn stay_until_lost(lease: &leasehold::blocking::Lease) {
    eventually("it is lost", || lease.is_lost());
}

fn is_succeeded(url: &str, holder: &str, rival: Option<&str>) {
    let role = Role::start("stopped::role_holder", &format!("{holder} {url}"));
    let said = role.says();
    let tokens: Vec<u64> = said.split(' ').map(|token| token.parse().unwrap()).collect();
    role.stop();
    let rival = client(url, rival);
    let taken: Vec<_> = ["a", "b"].iter().map(|name| lease(&rival, name, ms(60_000))).collect();
    assert!(taken.iter().zip(&tokens).all(|(lease, before)| lease.token() > *before));
    role.signal(libc::SIGCONT);
    assert_eq!(role.says(), "lost");
    assert!(role.says().parse::<u64>().is_ok(), "a new session takes locks");
    for lease in &taken {
        lease.check(ms(1)).unwrap();
    }
    for lease in taken {
        let name = lease.resource().to_owned();
        // A slow server may leave it unconfirmed.
        let _ = lease.release();
        eventually("it is free", || rival.inspect(&name).unwrap().is_none());
    }
}

pub(crate) fn a_session_that_stands_still_is_succeeded_and_wakes_to_its_loss(store: &Store<'_>) {
    is_succeeded(&store.url(), "dead", Some("rival"));
}

pub(crate) fn clients_with_and_without_sessions_succeed_each_other(store: &Store<'_>) {
    is_succeeded(&store.url(), "dead", None);
    is_succeeded(&store.url(), "-", Some("rival"));
}

#[test]
fn a_quorum_of_three_kinds_of_stores_buries_a_session_on_each() {
    let dynamodb = on_dynamodb::server();
    on_objects::set_keys();
    let (etcd, objects) = (etcd::Server::start(), objects::Server::start(Api::Gcs));
    let url = [on_dynamodb::new_table(&dynamodb), etcd.url(), objects.url("p")].join(" ");
    let create = leasehold::Client::builder().create_quorum();
    Client::connect_with(create, &url).unwrap().close().unwrap();
    is_succeeded(&url, "dead", Some("rival"));
}
