//! `leasehold watch`: shows each change of a lock's holder.

use leasehold::{Change, ErrorKind, ffi};
use serde_json::{Value, json};

use crate::args::WatchArgs;
use crate::output::{Failure, answer_line, instant, lock_json, printable, utc};
use crate::status;
use crate::store::Target;

pub(crate) fn run(args: &WatchArgs, target: &Target) -> Result<u8, Failure> {
    let client = target.connect()?;
    for (index, change) in client.watch(&*args.name).every(args.every).enumerate() {
        let change = change?;
        if let (0, Change::Unreadable(error)) = (index, &change) {
            return Err(error.clone().into());
        }
        let (_, unix_ms) = ffi::clocks();
        let line = if args.json { line_json(&change, unix_ms).to_string() } else { line_text(&change, unix_ms) };
        if !answer_line(&line)? {
            break;
        }
    }
    Ok(status::DONE)
}

fn line_text(change: &Change, unix_ms: u64) -> String {
    let what = match change {
        Change::Held(holder) => holder.to_string(),
        Change::Free => "free".to_owned(),
        Change::Unreadable(error) if error.kind() == ErrorKind::StoreRefused => format!("the store refuses: {error}"),
        Change::Unreadable(error) => format!("unknown: {error}"),
        _ => "changed".to_owned(),
    };
    printable(&format!("{}  {what}", instant(unix_ms))).replace('\n', " ")
}

fn line_json(change: &Change, unix_ms: u64) -> Value {
    let (change, name, value) = match change {
        Change::Held(holder) => ("held", "holder", lock_json(holder)),
        Change::Unreadable(error) => {
            ("unreadable", "error", json!({ "kind": error.kind().name(), "message": error.to_string() }))
        }
        Change::Free | _ => ("free", "holder", Value::Null),
    };
    json!({ "at": utc(unix_ms), "change": change, name: value })
}
