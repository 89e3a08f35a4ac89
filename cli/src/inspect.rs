//! `leasehold inspect`: shows the holder of a lock, or the completion of a run.

use leasehold::blocking::Client;
use leasehold::{Attempts, Completion, ErrorKind, LockInfo, RunInfo, Waiters, ffi};
use serde_json::{Value, json};

use crate::args::InspectArgs;
use crate::output::{
    Failure, answer, answer_json, attempts_json, attempts_text, completion_json, completion_text, lock_json, lock_text,
    printable, waiters_text,
};
use crate::status;
use crate::store::{Target, shown};

/// A lock or run as the store shows it.
struct Seen {
    resource: String,
    holder: Option<LockInfo>,
    /// `None` for a lock.
    done: Option<Option<Completion>>,
    waiters: Option<Waiters>,
    /// Of a run that is not done.
    attempts: Option<Attempts>,
}

pub(crate) fn run(args: &InspectArgs, target: &Target) -> Result<u8, Failure> {
    let client = target.connect()?;
    let store = shown(client.stores());
    let seen = look(&client, args)?;
    let done = seen.done.as_ref();
    let is_free = seen.holder.is_none() && done.is_none_or(Option::is_none);
    if args.json {
        let free = || json!({ "resource": seen.resource, "held": false });
        let mut answer = seen.holder.as_ref().map_or_else(free, lock_json);
        if let Some(done) = done {
            answer["done"] = done.as_ref().map_or(Value::Null, completion_json);
        }
        if let Some(waiters) = seen.waiters {
            answer["waiting"] = json!({ "count": waiters.count, "since_unix_ms": waiters.since_unix_ms });
        }
        if let Some(attempts) = &seen.attempts {
            answer["attempts"] = attempts_json(attempts);
        }
        answer["store"] = store.into();
        answer_json(&answer)?;
    } else {
        let free = || match done {
            Some(Some(_)) => format!("{} is done\n", printable(&seen.resource)),
            Some(None) => format!("{} is not done, and nobody runs it\n", printable(&seen.resource)),
            None => format!(
                "{resource} is free\n  as a job   `leasehold runs {resource}@` shows what ran; add the --every or --key of its `once` \
                 to see if it is done\n",
                resource = printable(&seen.resource)
            ),
        };
        let holder = seen.holder.as_ref().map_or_else(free, lock_text);
        let done = done.and_then(Option::as_ref).map(completion_text).unwrap_or_default();
        let waiting = seen.waiters.map(waiters_text).unwrap_or_default();
        let attempts = seen.attempts.as_ref().map(|attempts| format!("  attempts   {}\n", attempts_text(attempts)));
        let attempts = attempts.unwrap_or_default();
        answer(&format!("{holder}{done}{attempts}{waiting}  store      {store}\n"))?;
    }
    Ok(if is_free { status::NOTHING } else { status::DONE })
}

fn look(client: &Client, args: &InspectArgs) -> Result<Seen, Failure> {
    let resource = args.name.clone();
    let parts = match args.occurrence.key(client, &resource)? {
        Some(key) => Some((resource.clone(), Some(key))),
        None => ffi::parts_of_run(&resource),
    };
    if let Some((name, key)) = parts {
        let run = client.inspect_run(&name, key.as_deref())?;
        return Ok(of_run(run));
    }
    let holder = client.inspect(&resource)?;
    // A job that has no key shares its name with no lock: where it was done, the question is about that.
    if holder.is_none() && !resource.contains(['@', '%']) {
        match client.inspect_run(&resource, None) {
            Ok(run) if run.holder.is_some() || run.done.is_some() || run.attempts.is_some() => return Ok(of_run(run)),
            Ok(_) => {}
            // The name is too long for that of a job.
            Err(error) if error.kind() == ErrorKind::Config => {}
            Err(error) => return Err(error.into()),
        }
    }
    let waiters = client.waiters(&resource)?;
    Ok(Seen { resource, holder, done: None, waiters, attempts: None })
}

fn of_run(run: RunInfo) -> Seen {
    let attempts = run.attempts.filter(|_| run.done.is_none());
    Seen { resource: run.resource, holder: run.holder, done: Some(run.done), waiters: None, attempts }
}
