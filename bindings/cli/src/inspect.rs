//! `leasehold inspect`: who holds a lock.

use serde_json::json;

use crate::args::InspectArgs;
use crate::output::{Failure, answer, answer_json, lock_json, lock_text};
use crate::status;
use crate::store::Target;

pub(crate) fn run(args: &InspectArgs, target: &Target) -> Result<u8, Failure> {
    let client = target.connect()?;
    let Some(info) = client.inspect(&args.resource)? else {
        if args.json {
            answer_json(&json!({ "resource": args.resource, "held": false }))?;
        } else {
            answer(&format!("{} is free\n", args.resource))?;
        }
        return Ok(status::NOTHING);
    };
    if args.json {
        answer_json(&lock_json(&info))?;
    } else {
        answer(&lock_text(&info))?;
    }
    Ok(status::DONE)
}
