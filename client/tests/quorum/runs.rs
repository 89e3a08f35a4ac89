//! Runs on a quorum: nodes that are away at the finish, and nodes that have forgotten completions.

use std::time::Duration;

use crate::common::on_redis::request;
use crate::common::quorum::{MAX_TTL, Nodes, TTL};
use crate::common::{PATIENCE, eventually};
use leasehold::blocking::{Client, Once, Run, RunRequest};
use leasehold::quorum::Standing;
use leasehold::{ErrorKind, Finding, Severity};
use leasehold_servers::redis::{Data, Server};

fn on(client: &Client, key: &str) -> RunRequest {
    client.once("job").key(key).ttl(TTL)
}

#[track_caller]
fn begun(request: RunRequest) -> Run {
    match request.wait(PATIENCE).begin().unwrap() {
        Once::Run(run) => run,
        other => panic!("it is to be done: {other:?}"),
    }
}

#[track_caller]
fn is_done(request: RunRequest, token: u64) {
    match request.wait(PATIENCE).begin().unwrap() {
        Once::Done(completion) => assert_eq!(completion.token, token),
        other => panic!("it is done: {other:?}"),
    }
}

#[test]
fn a_minority_that_is_away_at_the_finish_changes_nothing() {
    for away in 0..3 {
        let nodes = Nodes::start(3);
        let (client, other) = (nodes.create(), nodes.connect_directly());
        let run = begun(on(&client, "monday"));
        nodes.servers[away].stop_process();
        run.finish().unwrap();
        is_done(on(&other, "monday"), run.token());
        nodes.servers[away].continue_process();
        is_done(on(&other, "monday"), run.token());
        begun(on(&other, "tuesday")).finish().unwrap();
    }
}

#[test]
fn a_finish_that_only_a_minority_takes_is_unconfirmed() {
    let nodes = Nodes::start(3);
    let client = nodes.create();
    let run = begun(on(&client, "monday"));
    for proxy in &nodes.proxies[1..] {
        proxy.black_hole();
    }
    let error = run.finish().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FinishUnconfirmed, "{error}");
    nodes.proxies.iter().for_each(|proxy| proxy.pass());
    // One node has the completion: it may be done again or not, and then never a third time.
    let other = nodes.connect_directly();
    match on(&other, "monday").wait(PATIENCE).begin().unwrap() {
        Once::Done(completion) => assert_eq!(completion.token, run.token()),
        Once::Run(next) => {
            assert!(next.token() > run.token());
            next.finish().unwrap();
        }
        other => panic!("nobody runs it: {other:?}"),
    }
    assert!(matches!(on(&client, "monday").begin().unwrap(), Once::Done(_)));
}

#[test]
fn answers_to_a_finish_that_are_lost_are_asked_for_again() {
    let nodes = Nodes::start(3);
    let client = nodes.create();
    let run = begun(on(&client, "monday"));
    let lost: Vec<_> = nodes.proxies.iter().map(|proxy| proxy.reset_after_forwarding(request("conclude"))).collect();
    run.finish().unwrap();
    assert!(lost.iter().all(|lost| lost.hits() <= 1) && lost.iter().any(|lost| lost.hits() == 1));
    is_done(on(&nodes.connect_directly(), "monday"), run.token());
}

#[test]
fn a_node_that_was_wiped_after_the_finish_lets_nothing_be_done_again() {
    let nodes = Nodes::start(3);
    let (client, other) = (nodes.create(), nodes.connect_directly());
    let is_good = |finding: &Finding| finding.check == "quorum.runs" && finding.severity == Severity::Good;
    assert!(client.doctor().unwrap().iter().any(is_good));
    let run = begun(on(&client, "monday"));
    run.finish().unwrap();
    for server in &nodes.servers {
        eventually("each node has the completion", || {
            server.command(&["EXISTS", "{job@monday}\u{1f}done of name"]).integer() == 1
        });
    }
    nodes.servers[1].restart(Data::Lost);
    is_done(on(&other, "monday"), run.token());
    // The nodes that are left to answer: one that knows, and one that has forgotten.
    nodes.servers[2].stop_process();
    is_done(on(&other, "monday"), run.token());
    nodes.servers[2].continue_process();
    assert_eq!(
        other.inspect_run("job", Some("monday")).unwrap().done.map(|completion| completion.token),
        Some(run.token())
    );
    begun(on(&other, "tuesday")).finish().unwrap();
}

#[test]
fn more_losses_than_a_minority_block_runs_until_an_operator_vouches() {
    let nodes = Nodes::start(3);
    let (client, other) = (nodes.create(), nodes.connect_directly());
    let run = begun(on(&client, "monday"));
    run.finish().unwrap();
    for server in &nodes.servers[..2] {
        server.restart(Data::Lost);
    }
    // For locks they vote again after a while.
    let lease = other.lock("other").ttl(MAX_TTL).wait(PATIENCE).acquire().unwrap();
    eventually("they are back", || {
        nodes.standings().iter().filter(|standing| matches!(standing, Standing::Member | Standing::Rejoined)).count()
            == 3
    });
    lease.release().unwrap();
    is_done(on(&other, "monday"), run.token());
    for wait in [Duration::ZERO, MAX_TTL] {
        let error = on(&other, "tuesday").wait(wait).begin().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
        assert!(error.to_string().contains("have lost their data within 7 days"), "{error}");
        assert!(error.to_string().contains("leasehold once --trust-quorum"), "{error}");
    }
    let findings = client.doctor().unwrap();
    let of_runs = findings.iter().find(|finding| finding.check == "quorum.runs").unwrap();
    assert_eq!(of_runs.severity, Severity::Warning, "{findings:#?}");
    assert!(of_runs.what.starts_with("1 of 3 nodes count for runs, 2 are needed"), "{of_runs:?}");
    assert!(of_runs.what.contains("another 7.0 days") && of_runs.advice.contains("--trust-quorum"), "{of_runs:?}");
    let next = begun(on(&other, "tuesday").trust_quorum());
    next.finish().unwrap();
    is_done(on(&other, "tuesday").trust_quorum(), next.token());
    is_done(on(&client, "monday").trust_quorum(), run.token());
}

#[test]
fn a_completion_is_forgotten_by_all_nodes() {
    let nodes = Nodes::start(3);
    let (client, other) = (nodes.create(), nodes.connect_directly());
    let run = begun(on(&client, "monday"));
    run.finish().unwrap();
    assert_eq!(other.forget_run("job", Some("monday")).unwrap().map(|completion| completion.token), Some(run.token()));
    eventually("no node shows it", || other.inspect_run("job", Some("monday")).unwrap().done.is_none());
    assert!(begun(on(&client, "monday")).token() > run.token());

    let tuesday = begun(on(&client, "tuesday"));
    tuesday.finish().unwrap();
    let has_completion =
        |server: &Server| server.command(&["EXISTS", "{job@tuesday}\u{1f}done of name"]).integer() == 1;
    eventually("each node has the completion", || nodes.servers.iter().all(has_completion));
    // This node takes no part: somebody else's record is there.
    nodes.servers[2].command(&["SET", "job@tuesday", &format!("{}@other;1", "0".repeat(32))]);
    let error = other.forget_run("job", Some("tuesday")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    assert!(error.to_string().contains("forget it again"), "{error}");
    let name = |node: usize| format!("127.0.0.1:{}/0", nodes.servers[node].port());
    assert!(error.to_string().contains(&format!("{}: it has kept the completion", name(2))), "{error}");
    assert!(!error.to_string().contains(&name(0)), "{error}");
    assert!(has_completion(&nodes.servers[2]) && !has_completion(&nodes.servers[0]));
    nodes.servers[2].command(&["DEL", "job@tuesday"]);
    assert_eq!(
        other.forget_run("job", Some("tuesday")).unwrap().map(|completion| completion.token),
        Some(tuesday.token())
    );
    assert!(begun(on(&client, "tuesday")).token() > tuesday.token());

    let thursday = begun(on(&client, "thursday"));
    thursday.finish().unwrap();
    nodes.servers[1].stop_process();
    let error = other.forget_run("job", Some("thursday")).unwrap_err();
    nodes.servers[1].continue_process();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable, "{error}");
    assert!(error.to_string().contains(&name(1)) && !error.to_string().contains(&name(0)), "{error}");

    let days = Duration::from_secs(8 * 86_400);
    assert_eq!(on(&client, "wednesday").keep(days).begin().unwrap_err().kind(), ErrorKind::Config);
}
