//! `leasehold break`: takes a lock from its holder, after asking.

use std::io::{BufRead, IsTerminal, stdin};

use leasehold::LockInfo;
use leasehold::blocking::Client;
use serde_json::{Value, json};

use crate::args::BreakArgs;
use crate::output::{Failure, answer, answer_json, ask, lock_json, lock_text, say};
use crate::status;
use crate::store::Target;

pub(crate) fn run(args: &BreakArgs, target: &Target) -> Result<u8, Failure> {
    let client = target.connect()?;
    let Some(holder) = client.inspect(&args.resource)? else {
        return free(args);
    };
    if !args.yes {
        if !stdin().is_terminal() {
            return Err(Failure::usage(format!(
                "there is no terminal to ask on; say --yes to take the lock from its holder ({holder})"
            )));
        }
        if !confirmed(&holder)? {
            say("nothing was changed");
            return Ok(status::NOT_DONE);
        }
    }
    take(args, &client, &holder)
}

fn confirmed(holder: &LockInfo) -> Result<bool, Failure> {
    ask(format_args!(
        "{}If the holder still works, two do from now on; it learns of its loss with its next renewal.\n\
         Take the lock from it? Type yes:",
        lock_text(holder)
    ));
    let mut line = String::new();
    stdin().lock().read_line(&mut line).map_err(|error| Failure::system("cannot read the answer", &error))?;
    Ok(matches!(line.trim(), "yes" | "y"))
}

fn take(args: &BreakArgs, client: &Client, shown: &LockInfo) -> Result<u8, Failure> {
    // Minutes may lie between question and answer, and somebody else may have the lock by now.
    match client.inspect(&args.resource)? {
        None => return free(args),
        Some(now) if now.token != shown.token => {
            say("the lock changed hands meanwhile, so nothing was changed; look again");
            if args.json {
                answer_json(&broken(&now, false))?;
            }
            return Ok(status::NOT_DONE);
        }
        Some(_) => {}
    }
    let Some(loser) = client.break_lock(&args.resource)? else {
        return free(args);
    };
    if args.json {
        answer_json(&broken(&loser, true))?;
    } else {
        let token = match loser.token {
            Some(token) => format!(" The next token is above {token}."),
            None => String::new(),
        };
        answer(&format!("{} is free now; it was {loser}.{token}\n", args.resource))?;
    }
    Ok(status::DONE)
}

fn broken(holder: &LockInfo, broken: bool) -> Value {
    json!({ "resource": holder.resource, "broken": broken, "holder": lock_json(holder) })
}

fn free(args: &BreakArgs) -> Result<u8, Failure> {
    if args.json {
        answer_json(&json!({ "resource": args.resource, "broken": false, "holder": null }))?;
    } else {
        answer(&format!("{} is free already\n", args.resource))?;
    }
    Ok(status::NOTHING)
}
