//! `leasehold break`: takes a lock from its holder, after asking.

use std::fmt::Display;
use std::io::{BufRead, IsTerminal, stdin};

use leasehold::{HolderMatch, LockInfo, ReleaseIfOutcome};
use serde_json::{Value, json};

use crate::args::{BreakArgs, MeantArgs};
use crate::output::{Failure, answer, answer_json, ask, lock_json, lock_text, say};
use crate::status;
use crate::store::Target;

pub(crate) fn run(args: &BreakArgs, target: &Target) -> Result<u8, Failure> {
    let client = target.connect()?;
    let Some(holder) = client.inspect(&args.name)? else {
        return free(args);
    };
    let meant = meant(&args.meant);
    if !args.yes && meant.matches(&holder) {
        if !stdin().is_terminal() {
            return Err(Failure::usage(format!(
                "there is no terminal to ask on; add --yes to take the lock from its holder ({holder})"
            )));
        }
        if !confirmed(&holder)? {
            say("nothing was changed");
            return Ok(status::NOT_DONE);
        }
    }
    // Minutes may pass between question and answer: only the lease that was shown is released.
    match client.release_if(&args.name, meant.clone().lease(&holder))? {
        ReleaseIfOutcome::Released(loser) => taken(args, &loser),
        ReleaseIfOutcome::NotMatched(now) => {
            if meant.matches(&holder) {
                say("the lock changed hands meanwhile, so nothing was changed; try again");
            } else {
                say(format_args!(
                    "{:?}: {now}, which is not the holder that was named; nothing was changed",
                    args.name
                ));
            }
            if args.json {
                answer_json(&broken(&now, false))?;
            }
            Ok(status::NOT_DONE)
        }
        ReleaseIfOutcome::Free | _ => free(args),
    }
}

/// The holder that the arguments name, or else the present one.
pub(crate) fn meant(args: &MeantArgs) -> HolderMatch {
    let mut meant = HolderMatch::default();
    if let Some(token) = args.token {
        meant = meant.token(token);
    }
    if let Some(owner) = &args.owner {
        meant = meant.owner(owner);
    }
    meant
}

fn confirmed(holder: &LockInfo) -> Result<bool, Failure> {
    agreed(format_args!(
        "{}If the holder is still working, two clients work from now on: the holder notices the loss at its next \
         renewal.\nTake the lock from it? Type yes:",
        lock_text(holder)
    ))
}

/// Asks, and tells if the answer is yes.
pub(crate) fn agreed(question: impl Display) -> Result<bool, Failure> {
    ask(question);
    let mut line = String::new();
    stdin().lock().read_line(&mut line).map_err(|error| Failure::system("cannot read the answer", &error))?;
    Ok(matches!(line.trim(), "yes" | "y"))
}

fn taken(args: &BreakArgs, loser: &LockInfo) -> Result<u8, Failure> {
    if args.json {
        answer_json(&broken(loser, true))?;
    } else {
        let token = match loser.token {
            Some(token) => format!(" The next token is above {token}."),
            None => String::new(),
        };
        answer(&format!("{} is free now; it was {loser}.{token}\n", args.name))?;
    }
    Ok(status::DONE)
}

fn broken(holder: &LockInfo, broken: bool) -> Value {
    json!({ "resource": holder.resource, "broken": broken, "holder": lock_json(holder) })
}

fn free(args: &BreakArgs) -> Result<u8, Failure> {
    if args.json {
        answer_json(&json!({ "resource": args.name, "broken": false, "holder": null }))?;
    } else {
        answer(&format!("{} is free already\n", args.name))?;
    }
    Ok(status::NOTHING)
}
