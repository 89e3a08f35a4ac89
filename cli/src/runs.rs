//! `leasehold runs`: shows which work is done or under way.

use std::time::Duration;

use leasehold::{RunInfo, RunResult};
use serde_json::{Value, json};

use crate::args::ListArgs;
use crate::list::print;
use crate::output::{Failure, ago, attempts_json, attempts_text, completion_json, days, lock_json, printable, span};
use crate::store::Target;

pub(crate) fn run(args: &ListArgs, target: &Target) -> Result<u8, Failure> {
    let client = target.connect()?;
    let show = |run: &RunInfo| if args.json { json(run).to_string() } else { line(run) };
    print(client.runs(&*args.prefix), show, "no run is done or under way", args, &client)
}

/// A run for machines.
pub(crate) fn json(run: &RunInfo) -> Value {
    json!({
        "resource": run.resource,
        "name": run.name,
        "key": run.key,
        "held": run.holder.is_some(),
        "holder": run.holder.as_ref().map(lock_json),
        "done": run.done.as_ref().map(completion_json),
        "attempts": run.attempts.as_ref().map(attempts_json),
    })
}

fn size(result: &RunResult) -> String {
    format!("{} bytes", result.as_bytes().len())
}

/// One run on one line. A name may hold spaces, but no tab and no line break.
fn line(run: &RunInfo) -> String {
    let done = run.done.as_ref().map(|done| {
        let owner = done.owner.as_deref().unwrap_or("a client without a label");
        let left = done.result.as_ref().map(|result| format!(", left {} of {}", size(result), result.kind()));
        let took = done.began_unix_ms.and_then(|began| done.at_unix_ms.checked_sub(began));
        let took = took.map(|ms| format!(" in {}", span(Duration::from_millis(ms))));
        format!(
            "done {}{} by {owner}, token {}, not again for {}{}",
            ago(done.at_unix_ms),
            took.unwrap_or_default(),
            done.token,
            days(done.left),
            left.unwrap_or_default()
        )
    });
    let under_way = run.holder.as_ref().map(|holder| format!("under way, {holder}"));
    let failed = run.attempts.as_ref().map(attempts_text);
    let states: Vec<String> = [under_way, done, failed].into_iter().flatten().collect();
    printable(&format!("{}: {}", run.resource, states.join("; ")))
}
