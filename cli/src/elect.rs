//! `leasehold elect`: runs a command on the leader of several machines.

use std::future::IntoFuture;
use std::ops::ControlFlow;
use std::time::Duration;

use leasehold::{Client, Error, ErrorKind, Lease};
use rustix::process::Signal;

use crate::args::ElectArgs;
use crate::exec::{End, Exec, Job};
use crate::output::Failure;
use crate::store::Target;

/// The pause before the next try at a store that does not answer.
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &ElectArgs, target: &Target) -> Result<u8, Failure> {
    let job = |_: &Client| {
        let (resource, command) = (args.name.clone(), args.command.as_slice());
        Ok(Job { resource, hold: &args.hold, wait: None, command, permit: None, keeps_output: false })
    };
    let mut exec = Exec::start(target, (None, &args.hold), job)?;
    loop {
        let lease = match stand(&exec, args) {
            ControlFlow::Continue(lease) => lease?,
            ControlFlow::Break(signal) => return Ok(exec.gave_up(signal)),
        };
        let ended = exec.under(&lease)?;
        let status = exec.release(&lease, Ok(ended.status))?;
        if ended.how != End::Endangered {
            return Ok(status);
        }
        exec.say(format_args!("{:?}: no longer the leader; this machine stands again", args.name));
    }
}

/// Waits until this machine leads, whatever the store does meanwhile.
fn stand(exec: &Exec<'_>, args: &ElectArgs) -> ControlFlow<Signal, Result<Lease, Error>> {
    let mut is_told = false;
    loop {
        let mut request = exec.client.lock(&args.name).ttl(args.hold.ttl());
        if let Some(owner) = &args.hold.owner {
            request = request.owner(owner);
        }
        if let Some(max_hold) = args.hold.max_hold {
            request = request.max_hold(max_hold);
        }
        match exec.acquire(request.into_future())? {
            Err(error) if error.kind() == ErrorKind::StoreUnavailable => {
                if !std::mem::replace(&mut is_told, true) {
                    exec.say(format_args!("{:?}: waiting for the store: {error}", args.name));
                }
                exec.pause(PAUSE)?;
            }
            result => return ControlFlow::Continue(result),
        }
    }
}
