//! An etcd as one node of a quorum of several kinds of stores.

use leasehold::blocking::{Client, Once};
use leasehold_servers::etcd::{Backup, Server};
use leasehold_servers::redis;

use crate::common::{PATIENCE, eventually, four_clients_get_growing_tokens, ms};
use crate::{lease, renewals};

struct Mixed {
    etcd: Server,
    redis: redis::Server,
    _folder: tempfile::TempDir,
    urls: String,
}

impl Mixed {
    /// Etcd, Redis and SQLite.
    fn new() -> Self {
        let (etcd, redis, folder) = (Server::start(), redis::Server::start(), tempfile::tempdir().unwrap());
        let file = crate::common::url(&folder.path().join("locks.db"));
        let urls = format!("{} {} {file}", etcd.url(), redis.url());
        Client::connect_with(settings().create_quorum(), &urls).unwrap().close().unwrap();
        Self { etcd, redis, _folder: folder, urls }
    }

    fn client(&self) -> Client {
        Client::connect_with(settings(), &self.urls).unwrap()
    }

    fn phase(&self) -> String {
        let marker = self.etcd.get("leasehold/quorum");
        let (_, rest) = marker.split_once("phase=").unwrap_or_else(|| panic!("no marker: {marker:?}"));
        rest.split(' ').next().unwrap().to_owned()
    }
}

fn settings() -> leasehold::ClientBuilder {
    leasehold::Client::builder().max_ttl(PATIENCE).request_timeout(ms(2_000))
}

#[test]
fn stores_of_three_kinds_grant_one_lock_at_a_time() {
    let mixed = Mixed::new();
    four_clients_get_growing_tokens(|| mixed.client());
}

#[cfg(feature = "dynamodb")]
#[test]
fn dynamodb_and_etcd_share_a_quorum() {
    let (etcd, redis, dynamodb) = (Server::start(), redis::Server::start(), crate::common::on_dynamodb::server());
    let urls = format!("{} {} {}", etcd.url(), redis.url(), crate::common::on_dynamodb::new_table(&dynamodb));
    let one = Client::connect_with(settings().create_quorum(), &urls).unwrap();
    let held = lease(&one, "a");
    redis.kill();
    let two = Client::connect_with(settings(), &urls).unwrap();
    assert!(two.lock("a").wait(ms(500)).acquire().is_err());
    let before = renewals(&etcd, "a");
    eventually("two of three renew it", || renewals(&etcd, "a") > before);
    held.release().unwrap();
    assert!(lease(&two, "a").token() > held.token());
}

#[test]
fn a_lease_outlives_any_one_of_its_nodes() {
    let mixed = Mixed::new();
    let client = mixed.client();
    let held = lease(&client, "a");
    mixed.redis.kill();
    let before = renewals(&mixed.etcd, "a");
    eventually("etcd renews it without Redis", || renewals(&mixed.etcd, "a") > before);
    mixed.redis.restart(redis::Data::Lost);
    mixed.etcd.restart();
    let before = renewals(&mixed.etcd, "a");
    eventually("it is renewed there again", || renewals(&mixed.etcd, "a") > before);
    assert_eq!(mixed.phase(), "member", "a restart of etcd forgets nothing");
    assert!(mixed.client().lock("a").wait(ms(500)).acquire().is_err());
    held.release().unwrap();
}

#[test]
fn a_run_that_a_majority_marked_is_done() {
    let mixed = Mixed::new();
    let (one, two) = (mixed.client(), mixed.client());
    let begun = |client: &Client| client.once("report").key("monday").ttl(ms(20_000)).begin().unwrap();
    let Once::Run(run) = begun(&one) else { panic!("it is new") };
    run.finish().unwrap();
    assert!(matches!(begun(&two), Once::Done(_)));
    mixed.redis.kill();
    assert!(matches!(begun(&two), Once::Done(_)), "the completion is on the others too");
}

#[test]
fn a_node_that_lost_its_keys_abstains() {
    let mixed = Mixed::new();
    let client = mixed.client();
    lease(&client, "a").release().unwrap();
    mixed.etcd.etcdctl(&["del", "--prefix", "leasehold/"]);
    lease(&client, "a").release().unwrap();
    eventually("it is marked", || mixed.etcd.get("leasehold/quorum").contains("phase=joining"));
}

#[test]
fn a_restored_backup_is_noticed_by_the_id_of_its_cluster() {
    let mixed = Mixed::new();
    let client = mixed.client();
    lease(&client, "a").release().unwrap();
    let backup = mixed.etcd.backup();
    lease(&client, "a").release().unwrap();
    assert_eq!(mixed.phase(), "member");
    client.close().unwrap();
    mixed.etcd.restore(&backup, "another-token");
    // This client has never seen the former cluster.
    lease(&mixed.client(), "a").release().unwrap();
    eventually("it is marked", || mixed.phase() == "joining");
}

#[test]
fn a_restored_backup_of_the_same_cluster_is_noticed_by_clients_that_knew_more() {
    let mixed = Mixed::new();
    let client = mixed.client();
    lease(&client, "a").release().unwrap();
    let backup = mixed.etcd.backup();
    for _ in 0..3 {
        lease(&client, "a").release().unwrap();
    }
    mixed.etcd.restore(&backup, Backup::SAME_CLUSTER);
    lease(&client, "a").release().unwrap();
    eventually("it is marked", || {
        lease(&client, "b").release().unwrap();
        mixed.phase() == "joining"
    });
}
