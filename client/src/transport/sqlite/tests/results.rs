//! Results of runs, beside clients that know none.

use super::*;
use crate::blocking::{Client, Once};
use crate::runs::result::RunResult;

/// The write of a client that knows no results: a whole row, and nothing else.
const REPLACE: &str = "INSERT OR REPLACE INTO leases SELECT resource, counter, touched_ms, nonce, seq, released, ttl_ns, boot, \
     expires_ns, since_ms, owner, data, zeroblob(16), done_token, done_owner, done_ms, done_until FROM leases";

fn done(client: &Client) -> Option<RunResult> {
    match client.once("job").key("monday").begin().unwrap() {
        Once::Done(completion) => completion.result,
        other => panic!("it is done: {other:?}"),
    }
}

fn finish(client: &Client, result: Option<RunResult>) {
    let Once::Run(run) = client.once("job").key("monday").even_if_done().begin().unwrap() else { panic!("a run") };
    match result {
        Some(result) => run.finish_with(result),
        None => run.finish(),
    }
    .unwrap();
}

#[test]
fn clients_that_know_no_results_see_and_leave_completions_as_ever() {
    let place = Place::new();
    let client = Client::connect(format!("sqlite:{}", place.file().display())).unwrap();
    let result = RunResult::Json("[1]".to_owned());
    finish(&client, None);
    let tables = |name: &str| -> i64 {
        let count = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        place.raw().query_row(count, [name], |row| row.get(0)).unwrap()
    };
    assert_eq!((tables("leases"), tables("abouts")), (1, 0), "a file without results is the file that it was");
    finish(&client, Some(result.clone()));
    assert_eq!(done(&client), Some(result.clone()));
    place.raw().execute_batch(REPLACE).unwrap();
    assert_eq!(done(&client), None, "that of another run");
    finish(&client, Some(result));
    place.raw().execute_batch("UPDATE abouts SET about = x'00'").unwrap();
    assert_eq!(done(&client), None, "what cannot be read is none");
    finish(&client, None);
    let left: i64 = place.raw().query_row("SELECT count(*) FROM abouts", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}
