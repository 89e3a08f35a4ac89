//! `leasehold list`: shows the locks that are held.

use leasehold::blocking::Client;
use leasehold::{Error, LockInfo};

use crate::args::ListArgs;
use crate::output::{Failure, answer_line, lock_json, printable, say};
use crate::status;
use crate::store::{Target, shown};

pub(crate) fn run(args: &ListArgs, target: &Target) -> Result<u8, Failure> {
    let client = target.connect()?;
    let show = |lock: &LockInfo| if args.json { lock_json(lock).to_string() } else { line(lock) };
    print(client.list(&*args.prefix), show, "no lock is held", args, &client)
}

/// Prints a line for each record, or says that there is `nothing`.
pub(crate) fn print<T>(
    records: impl Iterator<Item = Result<T, Error>>,
    show: impl Fn(&T) -> String,
    nothing: &str,
    args: &ListArgs,
    client: &Client,
) -> Result<u8, Failure> {
    let mut any = false;
    for record in records {
        if !answer_line(&show(&record?))? {
            return Ok(status::DONE);
        }
        any = true;
    }
    if any {
        return Ok(status::DONE);
    }
    if !args.json {
        let which = if args.prefix.is_empty() { String::new() } else { format!(" below {:?}", args.prefix) };
        say(format_args!("{nothing}{which} in {}", shown(client.stores())));
    }
    Ok(status::NOTHING)
}

/// One lock on one line. A name may hold spaces, but no tab and no line break.
fn line(lock: &LockInfo) -> String {
    printable(&format!("{}: {lock}", lock.resource))
}
