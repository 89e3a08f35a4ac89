//! `leasehold list`: shows the locks that are held.

use leasehold::LockInfo;

use crate::args::ListArgs;
use crate::output::{Failure, answer_line, lock_json, printable, say};
use crate::status;
use crate::store::{Target, shown};

pub(crate) fn run(args: &ListArgs, target: &Target) -> Result<u8, Failure> {
    let client = target.connect()?;
    let mut any = false;
    for lock in client.list(&*args.prefix) {
        let lock = lock?;
        let line = if args.json { lock_json(&lock).to_string() } else { line(&lock) };
        if !answer_line(&line)? {
            return Ok(status::DONE);
        }
        any = true;
    }
    if any {
        return Ok(status::DONE);
    }
    if !args.json {
        let which = if args.prefix.is_empty() { String::new() } else { format!(" below {:?}", args.prefix) };
        say(format_args!("no lock is held{which} in {}", shown(client.stores())));
    }
    Ok(status::NOTHING)
}

/// One lock on one line. A name may hold spaces, but no tab and no line break.
fn line(lock: &LockInfo) -> String {
    printable(&format!("{}: {lock}", lock.resource))
}
