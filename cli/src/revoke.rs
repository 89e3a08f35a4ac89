//! `leasehold revoke`: asks the holder of a lock to let go.

use std::io::{IsTerminal, stdin};

use leasehold::{LockInfo, RevokeOutcome};
use serde_json::{Value, json};

use crate::args::RevokeArgs;
use crate::break_lock::{agreed, meant};
use crate::output::{Failure, answer, answer_json, lock_json, lock_text, say};
use crate::sessions;
use crate::status;
use crate::store::Target;

pub(crate) fn run(args: &RevokeArgs, target: &Target) -> Result<u8, Failure> {
    match (&args.name, &args.session) {
        (Some(resource), _) => one(resource, args, target),
        (None, session) => sessions::revoke(session.as_deref().unwrap_or_default(), args, target),
    }
}

fn one(resource: &str, args: &RevokeArgs, target: &Target) -> Result<u8, Failure> {
    let client = target.connect()?;
    let Some(holder) = client.inspect(resource)? else {
        return free(resource, args);
    };
    let meant = meant(&args.meant);
    if !args.yes && meant.matches(&holder) {
        if !stdin().is_terminal() {
            return Err(Failure::usage(format!(
                "there is no terminal to ask on; add --yes to revoke the lease of its holder ({holder})"
            )));
        }
        let question = "The holder is notified at its next renewal, and the lock becomes free when its work has \
                        ended.\nRevoke its lease? Type yes:";
        if !agreed(format_args!("{}{question}", lock_text(&holder)))? {
            say("nothing was changed");
            return Ok(status::NOT_DONE);
        }
    }
    // Minutes may pass between question and answer: only the lease that was shown is revoked.
    match client.revoke(resource, meant.clone().lease(&holder))? {
        RevokeOutcome::Revoked(holder) => revoked(args, &holder),
        RevokeOutcome::NotMatched(now) => {
            if meant.matches(&holder) {
                say("the lock changed hands meanwhile, so nothing was changed; try again");
            } else {
                say(format_args!("{resource:?}: {now}, which is not the holder that was named; nothing was changed"));
            }
            if args.json {
                answer_json(&told(&now, false))?;
            }
            Ok(status::NOT_DONE)
        }
        RevokeOutcome::Free | _ => free(resource, args),
    }
}

fn revoked(args: &RevokeArgs, holder: &LockInfo) -> Result<u8, Failure> {
    if args.json {
        answer_json(&told(holder, true))?;
    } else {
        answer(&format!(
            "{}: {holder}; it becomes free when the holder's work has ended, or after its ttl\n",
            holder.resource
        ))?;
    }
    Ok(status::DONE)
}

fn told(holder: &LockInfo, revoked: bool) -> Value {
    json!({ "resource": holder.resource, "revoked": revoked, "holder": lock_json(holder) })
}

fn free(resource: &str, args: &RevokeArgs) -> Result<u8, Failure> {
    if args.json {
        answer_json(&json!({ "resource": resource, "revoked": false, "holder": null }))?;
    } else {
        answer(&format!("{resource} is free\n"))?;
    }
    Ok(status::NOTHING)
}
