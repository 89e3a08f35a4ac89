//! Runs on Redis: answers to Finish that never come, and a server that is full.

use std::time::Duration;

use super::rig::Rig;
use crate::common::on_redis::{is_taken, request};
use crate::common::{PATIENCE, ms};
use leasehold::blocking::{Client, Once, Run, RunRequest};
use leasehold::{ErrorKind, RunResult};
use leasehold_servers::proxy::{Proxy, Request};
use leasehold_servers::redis::Server;

impl Rig {
    fn run(&self, ttl: Duration) -> Run {
        begun(self.client.once("job").key("monday").ttl(ttl))
    }

    fn past_the_proxy(&self) -> Client {
        Client::connect(self.server.url()).unwrap()
    }

    fn asked(&self, wait: Duration) -> Once {
        self.past_the_proxy().once("job").key("monday").wait(wait).begin().unwrap()
    }

    fn finish() -> Request {
        request("finish")
    }
}

#[track_caller]
fn begun(request: RunRequest) -> Run {
    match request.begin().unwrap() {
        Once::Run(run) => run,
        other => panic!("it is to be done: {other:?}"),
    }
}

#[test]
fn a_finish_whose_answer_is_lost_is_confirmed_by_repetition() {
    for (name, lose) in [
        ("the connection is reset afterwards", Proxy::reset_after_forwarding as fn(&Proxy, Request) -> _),
        ("silence follows", Proxy::lose_replies),
        ("it never arrives", Proxy::reset_before_forwarding),
    ] {
        let rig = Rig::new();
        let run = rig.run(ms(20_000));
        let lost = lose(&rig.proxy, Rig::finish());
        run.finish().unwrap();
        assert_eq!(lost.hits(), 1, "{name}");
        assert!(!is_taken(&rig.server, "job@monday"), "{name}");
        let Once::Done(completion) = rig.asked(Duration::ZERO) else { panic!("{name}: it is done") };
        assert_eq!(completion.token, run.token(), "{name}");
    }
}

#[test]
fn a_finish_without_any_answer_is_unconfirmed_and_the_mark_may_stand() {
    let rig = Rig::new();
    let run = rig.run(ms(2_000));
    let lost = rig.proxy.lose_replies(Rig::finish().always());
    let error = run.finish().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FinishUnconfirmed, "{error}");
    assert!(lost.hits() > 0 && error.to_string().contains("it may be done again"), "{error}");
    assert!(matches!(rig.asked(Duration::ZERO), Once::Done(_)), "it was applied");
}

#[test]
fn a_finish_that_never_arrives_is_unconfirmed_and_the_work_is_done_again() {
    let rig = Rig::new();
    let run = rig.run(ms(2_000));
    rig.proxy.reset_before_forwarding(Rig::finish().always());
    let error = run.finish().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FinishUnconfirmed, "{error}");
    let Once::Run(next) = rig.asked(PATIENCE) else { panic!("nothing was written down") };
    assert!(next.token() > run.token());
    next.finish().unwrap();
}

#[test]
fn a_runner_that_was_away_past_its_lease_has_lost_it() {
    let rig = Rig::new();
    let run = rig.run(ms(1_000));
    rig.proxy.black_hole();
    let Once::Run(next) = rig.asked(PATIENCE) else { panic!("its lease is over") };
    rig.proxy.pass();
    assert_eq!(run.lost().kind(), ErrorKind::Lost);
    assert_eq!(run.finish().unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(rig.past_the_proxy().inspect("job@monday").unwrap().and_then(|info| info.token), Some(next.token()));
    next.finish().unwrap();
}

#[test]
fn a_full_server_still_takes_the_mark_of_finished_work() {
    let server = Server::builder().maxmemory(100 << 20).start();
    let client = Client::connect(server.url()).unwrap();
    let run = begun(client.once("job").key("monday"));
    assert!(!server.command(&["CONFIG", "SET", "maxmemory", "1"]).is_error());
    run.finish().unwrap();
    assert!(!is_taken(&server, "job@monday"));
    assert!(client.inspect_run("job", Some("monday")).unwrap().done.is_some());
    let error = client.once("job").key("tuesday").begin().unwrap_err();
    assert!(error.kind() == ErrorKind::StoreUnavailable && error.to_string().contains("maxmemory"), "{error}");
    assert!(!server.command(&["CONFIG", "SET", "maxmemory", "0"]).is_error());
    let Once::Done(completion) = client.once("job").key("monday").begin().unwrap() else { panic!("it is done") };
    assert_eq!(completion.token, run.token());
}

#[test]
fn a_full_server_takes_the_result_as_well() {
    let server = Server::builder().maxmemory(100 << 20).start();
    let client = Client::connect(server.url()).unwrap();
    let run = begun(client.once("job").key("monday"));
    assert!(!server.command(&["CONFIG", "SET", "maxmemory", "1"]).is_error());
    let result = RunResult::Json("[1]".to_owned());
    run.finish_with(result.clone()).unwrap();
    let done = client.inspect_run("job", Some("monday")).unwrap().done.unwrap();
    assert_eq!((done.token, done.result), (run.token(), Some(result)));
}

#[test]
fn clients_that_know_no_results_see_and_leave_completions_as_ever() {
    let server = Server::start();
    let client = Client::connect(server.url()).unwrap();
    let result = RunResult::Json("[1]".to_owned());
    begun(client.once("job").key("monday")).finish_with(result.clone()).unwrap();
    let (done, about) = ("{job@monday}\u{1f}done of name", "{job@monday}\u{1f}about of name");
    let value = server.command(&["GET", done]).text();
    let parts: Vec<&str> = value.split(['@', ';']).collect();
    assert!(parts[0].len() == 32 && parts.len() == 4, "the value is what it was: {value}");
    let ends = [done, about].map(|key| server.command(&["PTTL", key]).integer());
    assert!(ends[0] > 0 && (ends[0] - ends[1]).abs() < 1_000, "{ends:?}");
    // Such a client finishes: it replaces the completion, and knows nothing of the other key.
    server.command(&["SET", done, &value.replacen(parts[0], &"9".repeat(32), 1), "PX", "60000"]);
    let shown = client.inspect_run("job", Some("monday")).unwrap().done.unwrap();
    assert_eq!(shown.result, None, "that of another run");
    begun(client.once("job").key("monday").even_if_done()).finish().unwrap();
    assert_eq!(server.command(&["EXISTS", about]).integer(), 0, "a finish without a result leaves none behind");
}

#[test]
fn the_completion_is_a_key_beside_the_lock_that_expires_with_it() {
    let server = Server::start();
    let client = Client::connect(server.url()).unwrap();
    let run = begun(client.once("job").key("monday").owner("one").keep(ms(3_600_000)));
    run.finish().unwrap();
    let key = "{job@monday}\u{1f}done of name";
    let left = server.command(&["PTTL", key]).integer();
    assert!((3_000_000..=3_600_000).contains(&left), "{left}");
    let kept = server.command(&["PTTL", &crate::common::on_redis::fence_key("job@monday")]).integer();
    assert!(kept == -1 || kept >= left, "the counter outlives it: {kept}");
    server.command(&["DEL", key]);
    assert!(begun(client.once("job").key("monday")).token() > run.token());
    // What is no completion is never taken for none.
    server.command(&["SET", key, "nonsense"]);
    let error = client.once("job").key("monday").wait(PATIENCE).begin().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
}
