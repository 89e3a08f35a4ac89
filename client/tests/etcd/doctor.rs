//! The findings of the doctor.

use leasehold::{Finding, Severity};
use leasehold_servers::etcd::Server;
use leasehold_servers::proxy::Proxy;

use crate::common::{eventually, ms};
use crate::{client, url_of};

#[track_caller]
fn found(url: &str, check: &str) -> Finding {
    let findings = client(url).doctor().unwrap();
    let finding = findings.iter().find(|finding| finding.check == check);
    finding.unwrap_or_else(|| panic!("no {check} in {findings:?}")).clone()
}

#[test]
fn a_good_cluster_has_no_findings() {
    let servers: [Server; 3] = Server::cluster(&[]);
    eventually("all know the leader", || {
        let findings = client(&url_of(&servers)).doctor().unwrap();
        let bad: Vec<_> = findings.iter().filter(|finding| finding.severity != Severity::Good).collect();
        assert!(bad.iter().all(|finding| matches!(finding.check, "etcd.leader" | "etcd.latency")), "{bad:?}");
        bad.is_empty() && findings.len() >= 9
    });
    assert!(found(&url_of(&servers), "etcd.members").what.contains("3 of 3"));
    assert_eq!(found(&servers[0].url(), "etcd.members").severity, Severity::Warning, "it finds no other");
    servers[2].kill();
    // It may have been the leader, and the others answer once they have another.
    eventually("there is a leader", || leasehold::blocking::Client::connect(url_of(&servers)).is_ok());
    assert_eq!(found(&url_of(&servers), "etcd.reach").severity, Severity::Warning);
    servers[1].kill();
    let (alone, check) = (url_of(&servers), "etcd.server");
    let findings = leasehold::blocking::Client::connect(&alone).map(|client| client.doctor().unwrap());
    assert!(findings.is_err_and(|error| error.kind() == leasehold::ErrorKind::StoreUnavailable), "{check}");
}

#[test]
fn servers_that_cannot_keep_locks_are_told() {
    let server = Server::with(&["--quota-backend-bytes=300000"]);
    assert_eq!(found(&server.url(), "etcd.members").severity, Severity::Warning, "there is only one");
    assert_eq!(found(&server.url(), "etcd.alarms").severity, Severity::Good);
    let body = format!(r#"{{"key": "bGFyZ2U=", "value": "{}"}}"#, "x".repeat(60_000));
    eventually("it is full", || server.post("/v3/kv/put", &body).status == 429);
    let alarms = found(&server.url(), "etcd.alarms");
    assert!(alarms.severity == Severity::Problem && alarms.advice.contains("alarm disarm"), "{alarms:?}");
    assert_eq!(found(&server.url(), "etcd.space").severity, Severity::Warning);
    let proxy = Proxy::to(server.address());
    let url = format!("etcd://{}", proxy.address());
    let slow = client(&url);
    proxy.delay(ms(700));
    let findings = slow.doctor().unwrap();
    assert!(findings.iter().any(|it| it.check == "etcd.latency" && it.severity == Severity::Warning), "{findings:?}");
}

#[test]
fn two_etcds_in_one_url_are_told() {
    let servers = [Server::start(), Server::start()];
    let cluster = found(&url_of(&servers), "etcd.cluster");
    assert_eq!(cluster.severity, Severity::Problem);
    assert!(cluster.what.contains("different clusters"), "{cluster:?}");
}
