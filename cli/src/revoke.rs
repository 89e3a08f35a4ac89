//! `leasehold revoke`: asks the holder of a lock to let go.

use std::io::{IsTerminal, stdin};

use leasehold::{LockInfo, RevokeOutcome};
use serde_json::{Value, json};

use crate::args::BreakArgs;
use crate::break_lock::{agreed, meant};
use crate::output::{Failure, answer, answer_json, lock_json, lock_text, say};
use crate::status;
use crate::store::Target;

pub(crate) fn run(args: &BreakArgs, target: &Target) -> Result<u8, Failure> {
    let client = target.connect()?;
    let Some(holder) = client.inspect(&args.resource)? else {
        return free(args);
    };
    let meant = meant(args);
    if !args.yes && meant.matches(&holder) {
        if !stdin().is_terminal() {
            return Err(Failure::usage(format!(
                "there is no terminal to ask on; add --yes to revoke the lease of its holder ({holder})"
            )));
        }
        let question = "The holder is told at its next renewal, and the lock is free once its work has ended.\nRevoke its \
                        lease? Type yes:";
        if !agreed(format_args!("{}{question}", lock_text(&holder)))? {
            say("nothing was changed");
            return Ok(status::NOT_DONE);
        }
    }
    // Minutes may pass between question and answer: only the lease that was shown is revoked.
    match client.revoke(&args.resource, meant.clone().lease(&holder))? {
        RevokeOutcome::Revoked(holder) => revoked(args, &holder),
        RevokeOutcome::Free => free(args),
        RevokeOutcome::NotMatched(now) => {
            if meant.matches(&holder) {
                say("the lock changed hands meanwhile, so nothing was changed; try again");
            } else {
                let resource = &args.resource;
                say(format_args!("{resource:?}: {now}, which is not the holder that was named; nothing was changed"));
            }
            if args.json {
                answer_json(&told(&now, false))?;
            }
            Ok(status::NOT_DONE)
        }
    }
}

fn revoked(args: &BreakArgs, holder: &LockInfo) -> Result<u8, Failure> {
    if args.json {
        answer_json(&told(holder, true))?;
    } else {
        answer(&format!("{}: {holder}; it is free once the holder's work has ended, or its ttl\n", args.resource))?;
    }
    Ok(status::DONE)
}

fn told(holder: &LockInfo, revoked: bool) -> Value {
    json!({ "resource": holder.resource, "revoked": revoked, "holder": lock_json(holder) })
}

fn free(args: &BreakArgs) -> Result<u8, Failure> {
    if args.json {
        answer_json(&json!({ "resource": args.resource, "revoked": false, "holder": null }))?;
    } else {
        answer(&format!("{} is free\n", args.resource))?;
    }
    Ok(status::NOTHING)
}
