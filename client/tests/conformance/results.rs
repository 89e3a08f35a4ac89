//! Results: what a run leaves for those who come later.

use leasehold::blocking::{Client, Once, RunRequest};
use leasehold::{Completion, ErrorKind, RunResult};

use crate::Store;
use crate::runs::{begun, done};

fn report(client: &Client, key: &str) -> RunRequest {
    client.once("report").key(key)
}

fn json(text: &str) -> RunResult {
    RunResult::Json(text.to_owned())
}

/// The completion as a person is shown it.
fn inspected(client: &Client, key: &str) -> Completion {
    client.inspect_run("report", Some(key)).unwrap().done.expect("it is done")
}

pub(crate) fn the_second_caller_gets_the_first_ones_result(store: &Store) {
    let (one, two) = store.two_clients();
    let everything: Vec<u8> = (0..=u8::MAX).cycle().take(RunResult::MAX_BYTES).collect();
    for (key, result) in [
        ("json", json("{\"rows\":7,\"of\":\"\u{e9}\"}")),
        ("empty", RunResult::Bytes(Vec::new())),
        ("bytes", RunResult::Bytes(everything.clone())),
        ("output", RunResult::Output(everything)),
    ] {
        let run = begun(report(&one, key));
        run.finish_with(result.clone()).unwrap();
        for client in [&one, &two, &store.client()] {
            let completion = done(report(client, key));
            assert_eq!((completion.token, completion.result_unsettled), (run.token(), false), "{key}");
            assert_eq!(completion.result.as_ref(), Some(&result), "{key}");
            let began = completion.began_unix_ms.expect("a run with a result");
            assert!(began > 1_700_000_000_000, "{key}: {began}");
        }
        assert_eq!(inspected(&two, key).result, Some(result), "{key}");
    }
}

pub(crate) fn a_run_without_a_result_shows_none(store: &Store) {
    let (one, two) = store.two_clients();
    begun(report(&one, "plain")).finish().unwrap();
    let completion = done(report(&two, "plain"));
    assert_eq!((completion.result, completion.result_unsettled, completion.began_unix_ms), (None, false, None));
}

pub(crate) fn a_result_that_is_too_long_is_dropped_and_the_work_counts(store: &Store) {
    let (one, two) = store.two_clients();
    let run = begun(report(&one, "long"));
    let error = run.finish_with(RunResult::Bytes(vec![0; RunResult::MAX_BYTES + 1])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResultNotKept, "{error}");
    assert!(error.to_string().contains("result has 4097 bytes; at most 4096 are allowed"), "{error}");
    let completion = done(report(&two, "long"));
    assert_eq!((completion.token, completion.result), (run.token(), None));
}

pub(crate) fn a_result_goes_with_its_completion(store: &Store) {
    let (one, two) = store.two_clients();
    begun(report(&one, "again")).finish_with(json("1")).unwrap();
    begun(report(&two, "again").even_if_done()).finish_with(json("2")).unwrap();
    assert_eq!(done(report(&one, "again")).result, Some(json("2")));
    begun(report(&one, "again").even_if_done()).finish().unwrap();
    assert_eq!(done(report(&two, "again")).result, None, "the next one has left none");
    begun(report(&two, "again").even_if_done()).finish_with(json("3")).unwrap();
    let forgotten = one.forget_run("report", Some("again")).unwrap().expect("it was done");
    assert_eq!(forgotten.result, Some(json("3")));
    begun(report(&two, "again")).finish().unwrap();
    assert_eq!(done(report(&one, "again")).result, None, "nor does the forgotten one come back");
}

pub(crate) fn a_run_that_lost_its_lease_leaves_no_result(store: &Store) {
    let (one, two) = store.two_clients();
    let broken = begun(report(&one, "lost"));
    two.break_lock("report@lost").unwrap();
    let next = begun(report(&two, "lost"));
    assert!(broken.finish_with(json("\"late\"")).is_err());
    next.finish_with(json("\"in time\"")).unwrap();
    let Once::Done(completion) = report(&one, "lost").begin().unwrap() else { panic!("it is done") };
    assert_eq!(completion.result, Some(json("\"in time\"")));
}
