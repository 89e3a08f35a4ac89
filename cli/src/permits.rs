//! `leasehold permits`: changes the number of permits or readers.

use crate::args::{PermitsAction, PermitsArgs};
use crate::output::{Failure, answer};
use crate::status;
use crate::store::Target;

pub(crate) fn run(args: &PermitsArgs, target: &Target) -> Result<u8, Failure> {
    let PermitsAction::Set(args) = &args.action;
    let client = target.connect()?;
    let (word, result) = if args.readers {
        ("readers", client.set_readers(&args.name, args.number))
    } else {
        ("permits", client.set_permits(&args.name, args.number))
    };
    result?;
    client.close()?;
    answer(&format!("{:?} has {} {word}\n", args.name, args.number))?;
    Ok(status::DONE)
}
