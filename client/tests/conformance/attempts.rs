//! Attempts: work that always fails is given up.

use std::time::Duration;

use leasehold::blocking::{Client, Once, RunRequest};
use leasehold::{Attempts, ErrorKind, RunResult};

use crate::common::{eventually, ms};
use crate::runs::{begun, done};
use crate::{Can, Store};

/// A job that may be tried twice.
fn bill(client: &Client) -> RunRequest {
    client.once("bill").key("may").ttl(Duration::from_secs(300)).max_attempts(2)
}

fn given_up(request: RunRequest) -> Attempts {
    let error = request.begin().unwrap_err();
    assert_eq!((error.kind(), error.resource()), (ErrorKind::GivenUp, Some("bill@may")), "{error}");
    let attempts = error.attempts().expect("they are counted").clone();
    assert!(error.to_string().contains(&format!("given up after {} attempt", attempts.count)), "{error}");
    attempts
}

fn shown(client: &Client) -> Option<u32> {
    client.inspect_run("bill", Some("may")).unwrap().attempts.map(|attempts| attempts.count)
}

pub(crate) fn work_that_always_fails_is_given_up(store: &Store) {
    let (one, two) = store.two_clients();
    assert_eq!(shown(&two), None);
    let first = begun(bill(&one));
    assert_eq!(first.attempts().map(|attempts| (attempts.count, attempts.max)), Some((1, 2)));
    assert!(matches!(bill(&two).begin().unwrap(), Once::Running(Some(_))));
    first.fail("Timeout: the bank\ndoes not answer").unwrap();
    let listed = || two.runs("bill@").map(Result::unwrap).collect::<Vec<_>>();
    let [failed] = &listed()[..] else { panic!("{:?}", listed()) };
    assert_eq!((failed.name.as_str(), failed.key.as_deref(), failed.done.is_none()), ("bill", Some("may"), true));
    let reason = |attempts: Option<&Attempts>| attempts.and_then(|attempts| attempts.reason.clone());
    assert_eq!(reason(failed.attempts.as_ref()).as_deref(), Some("Timeout: the bank does not answer"));
    let second = begun(bill(&two));
    let under_way = second.attempts().unwrap();
    assert_eq!((under_way.count, under_way.reason.as_deref()), (2, None));
    assert_eq!(listed().len(), 1, "it is under way, and comes once");
    second.fail("no money").unwrap();
    for client in [&one, &two] {
        let attempts = given_up(bill(client));
        assert_eq!((attempts.count, attempts.reason.as_deref()), (2, Some("no money")));
        assert!(attempts.since_unix_ms > 1_700_000_000_000, "{attempts:?}");
    }
    assert_eq!(two.inspect("bill@may").unwrap(), None, "nobody holds what was given up");
    assert_eq!((shown(&one), listed()[0].attempts.as_ref().map(Attempts::are_used_up)), (Some(2), Some(true)));
    begun(bill(&one).max_attempts(3)).finish_with(RunResult::Bytes(b"paid".to_vec())).unwrap();
    assert_eq!(done(bill(&two)).result, Some(RunResult::Bytes(b"paid".to_vec())));
    assert_eq!((listed().len(), listed()[0].done.is_some()), (1, true));
}

pub(crate) fn an_attempt_counts_however_it_ends(store: &Store) {
    let (one, two) = store.two_clients();
    begun(bill(&one)).release().unwrap();
    let lost = begun(bill(&one));
    two.break_lock("bill@may").unwrap();
    assert_eq!(given_up(bill(&two)).reason, None);
    begun(bill(&two).max_attempts(3)).release().unwrap();
    // It may not know of its loss yet.
    let _ = lost.fail("too late");
    let last = given_up(bill(&two));
    assert_eq!((last.count, last.reason), (3, None), "a runner that has lost the run says nothing any more");
    begun(two.once("bill").key("may")).finish().unwrap();
    done(bill(&one));
}

pub(crate) fn an_attempt_waits_for_its_pause(store: &Store) {
    let (one, two) = store.two_clients();
    let patient = |client: &Client| bill(client).retry_after(Duration::from_secs(3600));
    begun(patient(&one)).fail("not now").unwrap();
    let Once::Later(attempts) = patient(&two).begin().unwrap() else { panic!("it is too early") };
    assert_eq!((attempts.count, attempts.reason.as_deref()), (1, Some("not now")));
    assert_eq!(attempts.retry_unix_ms - attempts.since_unix_ms, 3_600_000);
    begun(bill(&two)).fail("nor now").unwrap();
    assert_eq!(given_up(patient(&one)).count, 2);
}

pub(crate) fn attempts_begin_anew_once_the_work_was_done(store: &Store) {
    if !store.can(Can::EndCompletionsOnTime) {
        return;
    }
    let client = store.client();
    // The lock of the count has no longer ttl than that, and a slow store has to answer within it.
    let brief = ms(2_000);
    let often = || client.once("bill").ttl(brief).cooldown(brief).max_attempts(2);
    begun(often()).fail("once").unwrap();
    begun(often()).finish().unwrap();
    let mut next = None;
    eventually("its cooldown is over", || {
        let answer = often().begin().unwrap();
        if let Once::Run(run) = answer {
            next = Some(run);
        }
        next.is_some()
    });
    assert_eq!(next.unwrap().attempts().map(|attempts| attempts.count), Some(1));
}

pub(crate) fn forgetting_a_run_forgets_its_attempts(store: &Store) {
    let (one, two) = store.two_clients();
    begun(bill(&one).max_attempts(1)).fail("broken").unwrap();
    given_up(bill(&two).max_attempts(1));
    assert_eq!(two.forget_run("bill", Some("may")).unwrap(), None, "it was never done");
    assert_eq!((shown(&one), two.runs("bill@").count()), (None, 0));
    begun(bill(&one).max_attempts(1)).finish().unwrap();
    two.forget_run("bill", Some("may")).unwrap().expect("it was done");
    begun(bill(&two).max_attempts(1)).finish().unwrap();
    // By a finish that leaves no completion.
    let removed = two.once("bill").key("may").keep(Duration::ZERO).even_if_done();
    begun(removed).finish().unwrap();
    begun(bill(&one).max_attempts(1)).finish().unwrap();
}

pub(crate) fn settings_of_attempts_that_cannot_be_are_refused(store: &Store) {
    let client = store.client();
    let job = || client.once("bill").key("may");
    let long = client.once("b".repeat(1_014)).key("may");
    for (request, words) in [
        (job().max_attempts(0), "with 0 attempts"),
        (job().max_attempts(2).even_if_done(), "does it although it is done"),
        (job().retry_after(ms(1)), "needs a number of attempts"),
        (job().max_attempts(2).retry_after(Duration::from_secs(7 * 86_400)), "has to be shorter than"),
        (long.max_attempts(2), "at most 1015 are allowed"),
    ] {
        let error = request.begin().unwrap_err();
        assert!(error.kind() == ErrorKind::Config && error.to_string().contains(words), "{error}");
    }
    assert_eq!(shown(&client), None);
}
