//! `leasehold inspect`: shows the holder of a lock.

use serde_json::json;

use crate::args::InspectArgs;
use crate::output::{Failure, answer, answer_json, lock_json, lock_text};
use crate::status;
use crate::store::{Target, shown};

pub(crate) fn run(args: &InspectArgs, target: &Target) -> Result<u8, Failure> {
    let client = target.connect()?;
    let store = shown(client.stores());
    let Some(info) = client.inspect(&args.resource)? else {
        if args.json {
            answer_json(&json!({ "resource": args.resource, "held": false, "store": store }))?;
        } else {
            answer(&format!("{} is free\n  store      {store}\n", args.resource))?;
        }
        return Ok(status::NOTHING);
    };
    if args.json {
        let mut answer = lock_json(&info);
        answer["store"] = store.into();
        answer_json(&answer)?;
    } else {
        answer(&format!("{}  store      {store}\n", lock_text(&info)))?;
    }
    Ok(status::DONE)
}
