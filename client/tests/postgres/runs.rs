//! Runs whose finish the server refuses, or whose process is killed during it.

use leasehold::blocking::{Client, Once, Run};
use leasehold::{ErrorKind, RunResult, Severity, schema};
use leasehold_servers::postgres::Server;
use leasehold_servers::proxy::{Proxy, Request};

use crate::common::on_postgres::new_table;
use crate::common::{PATIENCE, Role, eventually, ms, role_args, say};
use crate::{Rig, client, patient};

#[track_caller]
fn begun(client: &Client) -> Run {
    match client.once("job").key("monday").ttl(ms(3_000)).wait(PATIENCE).begin().unwrap() {
        Once::Run(run) => run,
        other => panic!("it is to be done: {other:?}"),
    }
}

#[test]
fn a_finish_that_the_server_refuses_ends_with_its_reason() {
    let server = Server::start();
    let url = new_table(&server, server.port());
    let run = begun(&client(&url));
    server.configure("SET default_transaction_read_only = on");
    eventually("it takes no writes", || server.value("SELECT current_setting('default_transaction_read_only') = 'on'"));
    let error = run.finish().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FinishUnconfirmed, "{error}");
    for words in ["it may be done again", "takes no writes", "25006"] {
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_table_of_an_earlier_version_does_runs_and_keeps_results_once_it_is_brought_up_to_date() {
    let rig = Rig::new();
    let table = rig.table();
    rig.server.run(&format!("ALTER TABLE {table} DROP COLUMN about"));
    let client = rig.client();
    let done = |key: &str| match client.once("job").key(key).begin().unwrap() {
        Once::Done(completion) => completion,
        other => panic!("it is done: {other:?}"),
    };
    begun(&client).finish().unwrap();
    assert_eq!(done("monday").result, None);
    let result = RunResult::Json("[1]".to_owned());
    let run = |key: &str| match client.once("job").key(key).begin().unwrap() {
        Once::Run(run) => run,
        other => panic!("it is to be done: {other:?}"),
    };
    let error = run("tuesday").finish_with(result.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResultNotKept, "{error}");
    assert!(error.to_string().contains("leasehold store create"), "{error}");
    assert_eq!(done("tuesday").result, None, "the work counts");
    let told = |severity: Severity| {
        let findings = client.doctor().unwrap();
        findings.iter().any(|it| it.check == "postgres.results" && it.severity == severity)
    };
    assert!(told(Severity::Warning));
    schema::create(&rig.url).unwrap();
    assert!(told(Severity::Good));
    run("friday").finish_with(result.clone()).unwrap();
    assert_eq!(done("friday").result, Some(result));
    // As a client writes it that knows no results.
    rig.server
        .run(&format!("UPDATE {table} SET done_nonce = decode(repeat('09', 16), 'hex') WHERE resource = 'job@friday'"));
    assert_eq!(done("friday").result, None);
}

/// Finishes a run as soon as it has begun.
#[test]
#[ignore = "a role of other tests"]
fn role_finisher() {
    let Some(url) = role_args() else { return };
    let run = begun(&patient(&url));
    say(run.token());
    run.finish().unwrap();
    say("finished");
}

/// The request was carried out, or never arrived; nobody who was killed knows.
#[test]
fn a_process_that_is_killed_during_its_finish_leaves_a_mark_or_the_work() {
    let finish = || Request::containing("done_nonce = l.nonce").always();
    for is_carried_out in [true, false] {
        let rig = Rig::new();
        let proxy = Proxy::to(rig.server.address());
        let fault = if is_carried_out { proxy.lose_replies(finish()) } else { proxy.reset_before_forwarding(finish()) };
        let (_, parameters) = rig.url.split_once('?').unwrap();
        let through = format!("{}?{parameters}", rig.server.url_at(proxy.port()));
        let mut finisher = Role::start("runs::role_finisher", &through);
        let token: u64 = finisher.says().parse().unwrap();
        fault.wait_for_hits(1);
        if is_carried_out {
            eventually("it is written", || rig.column::<bool>("released", "job@monday"));
        }
        finisher.kill();
        finisher.wait();
        match rig.client().once("job").key("monday").ttl(ms(3_000)).wait(PATIENCE).begin().unwrap() {
            Once::Done(completion) if is_carried_out => assert_eq!(completion.token, token),
            Once::Run(next) if !is_carried_out => assert!(next.token() > token),
            other => panic!("carried out: {is_carried_out}, and then {other:?}"),
        }
    }
}
