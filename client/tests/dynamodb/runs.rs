//! Runs on DynamoDB: answers to the write of a completion that never come, and rows that say nonsense.

use std::time::Duration;

use crate::common::on_dynamodb::{attribute, is_held, put, row, through};
use crate::common::{PATIENCE, eventually, ms};
use crate::{new_table, server};
use leasehold::blocking::{Client, Once, Run};
use leasehold::{Client as AsyncClient, ErrorKind};
use leasehold_servers::dynamodb::Server;
use leasehold_servers::proxy::{Proxy, Request};
use serde_json::json;

/// Occurs only in the write of a completion.
const FINISH: &str = "#mt = :mt";

struct Rig {
    server: Server,
    proxy: Proxy,
    url: String,
    client: Client,
    /// Past the proxy.
    other: Client,
}

impl Rig {
    fn new() -> Self {
        let server = server();
        let proxy = Proxy::to(server.address());
        let url = new_table(&server);
        let settings = AsyncClient::builder().request_timeout(ms(1_000));
        let client = Client::connect_with(settings, through(&url, proxy.address())).unwrap();
        // A server takes long for the first of each kind.
        client.lock("warm-up").wait(PATIENCE).acquire().unwrap().release().unwrap();
        let other = Client::connect(&url).unwrap();
        Self { server, proxy, url, client, other }
    }

    fn run(&self, key: &str, ttl: Duration) -> Run {
        match self.client.once("job").key(key).ttl(ttl).wait(PATIENCE).begin().unwrap() {
            Once::Run(run) => run,
            other => panic!("it is to be done: {other:?}"),
        }
    }

    fn asked(&self, key: &str, wait: Duration) -> Once {
        self.other.once("job").key(key).wait(wait).begin().unwrap()
    }
}

#[test]
fn a_finish_whose_answer_is_lost_is_confirmed_by_repetition() {
    let rig = Rig::new();
    for (key, lose) in [
        ("reset afterwards", Proxy::reset_after_forwarding as fn(&Proxy, Request) -> _),
        ("silence", Proxy::lose_replies),
        ("never arrives", Proxy::reset_before_forwarding),
    ] {
        rig.proxy.pass();
        let run = rig.run(key, ms(20_000));
        let lost = lose(&rig.proxy, Request::containing(FINISH));
        run.finish().unwrap();
        assert_eq!(lost.hits(), 1, "{key}");
        assert!(!is_held(&row(&rig.server, &rig.url, &format!("job@{key}"))), "{key}");
        let Once::Done(completion) = rig.asked(key, Duration::ZERO) else { panic!("{key}: it is done") };
        assert_eq!(completion.token, run.token(), "{key}");
    }
}

#[test]
fn a_finish_without_any_answer_is_unconfirmed_whether_the_mark_stands_or_not() {
    let rig = Rig::new();
    let run = rig.run("applied", ms(4_000));
    let lost = rig.proxy.lose_replies(Request::containing(FINISH).always());
    assert_eq!(run.finish().unwrap_err().kind(), ErrorKind::FinishUnconfirmed);
    assert!(lost.hits() > 0);
    assert!(matches!(rig.asked("applied", Duration::ZERO), Once::Done(_)));
    rig.proxy.pass();

    let run = rig.run("not applied", ms(4_000));
    rig.proxy.reset_before_forwarding(Request::containing(FINISH).always());
    assert_eq!(run.finish().unwrap_err().kind(), ErrorKind::FinishUnconfirmed);
    let Once::Run(next) = rig.asked("not applied", PATIENCE) else { panic!("nothing was written down") };
    assert!(next.token() > run.token());
    next.finish().unwrap();
}

/// DynamoDB removes a row some time after this, and the completion with it.
#[track_caller]
fn end(rig: &Rig) -> u64 {
    attribute(&row(&rig.server, &rig.url, "job@monday"), "expires").parse().unwrap()
}

#[test]
fn nothing_brings_forward_the_end_of_a_row_with_a_completion() {
    let mut rig = Rig::new();
    let with = |url: &str| Client::connect(format!("{url}&expires=expires")).unwrap();
    (rig.client, rig.other) = (with(&rig.url), with(&rig.url));
    let year = Duration::from_secs(365 * 86_400);
    let run = match rig.client.once("job").key("monday").keep(year).begin().unwrap() {
        Once::Run(run) => run,
        other => panic!("it is to be done: {other:?}"),
    };
    run.finish().unwrap();
    let kept = end(&rig);
    let stands = |after: &str| {
        assert_eq!(end(&rig), kept, "{after}");
        assert!(matches!(rig.asked("monday", Duration::ZERO), Once::Done(_)), "{after}");
    };
    let version = || attribute(&row(&rig.server, &rig.url, "job@monday"), "recordVersionNumber").to_owned();
    let take = |client: &Client| client.lock("job@monday").ttl(ms(20_000)).renew_every(ms(50)).acquire().unwrap();
    let lease = take(&rig.client);
    stands("an acquire");
    let granted = version();
    eventually("it is renewed", || version() != granted);
    stands("a renewal");
    lease.release().unwrap();
    stands("a release");
    // By others, who have seen no answer to its acquire.
    let lease = take(&rig.client);
    rig.other.break_lock("job@monday").unwrap();
    stands("a break");
    drop(lease);
    let lease = take(&rig.client);
    rig.other.release_if("job@monday", lease.token().into()).unwrap();
    stands("a release by another");
    drop(lease);
    // One that is done again has the end of its own completion.
    let Once::Run(again) = rig.other.once("job").key("monday").even_if_done().begin().unwrap() else { panic!() };
    assert_eq!(end(&rig), kept, "an acquire of a run");
    again.release().unwrap();
    stands("a run that was given up");
    // What ends sooner is put off.
    let mut row = row(&rig.server, &rig.url, "job@monday");
    row["expires"] = json!({"N": "7"});
    put(&rig.server, &rig.url, &row);
    let lease = take(&rig.client);
    assert!(end(&rig) > 1_700_000_000);
    lease.release().unwrap();
}

#[test]
fn a_completion_that_makes_no_sense_is_never_taken_for_none() {
    let rig = Rig::new();
    rig.run("monday", ms(20_000)).finish().unwrap();
    let good = row(&rig.server, &rig.url, "job@monday");
    for (name, value) in [
        ("doneUntil", json!({"S": "never"})),
        ("doneUntil", json!({"N": "9999999999999999"})),
        ("doneToken", json!({"S": "7"})),
        ("doneOwner", json!({"N": "7"})),
        ("doneAt", json!({"BOOL": true})),
    ] {
        let mut bad = good.clone();
        bad[name] = value;
        put(&rig.server, &rig.url, &bad);
        let error = rig.other.once("job").key("monday").begin().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreRefused, "{name}: {error}");
        // A lock has nothing to do with it.
        rig.other.lock("job@monday").acquire().unwrap().release().unwrap();
    }
    put(&rig.server, &rig.url, &good);
    assert!(matches!(rig.asked("monday", Duration::ZERO), Once::Done(_)));
    eventually("a person removes it", || rig.other.forget_run("job", Some("monday")).unwrap().is_some());
    assert!(matches!(rig.asked("monday", Duration::ZERO), Once::Run(_)), "at once, by any clock");
}
