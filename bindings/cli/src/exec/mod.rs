//! `leasehold exec`: runs a command while holding a lock, and not a moment longer.

mod command;
mod guard;
mod inbox;
mod messages;
mod signals;
mod supervise;
mod terminal;

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::time::Duration;

use leasehold::{Client, Lease, LockRequest};
use rustix::process::Signal;

use crate::args::ExecArgs;
use crate::output::{Failure, say};
use crate::store::Target;
use crate::{status, store};
use command::{Running, not_started};
use inbox::{Event, Inbox, tell};
use messages::Messages;
use signals::Signals;
use supervise::{Ending, Supervisor};
use terminal::Terminal;

/// One run of `exec`. Dropped from the first field to the last: what is still held is given back before anything can wait
/// for a reader of stderr, and only then are signals left to themselves.
struct Exec<'a> {
    client: Client,
    messages: Messages,
    signals: Signals,
    inbox: Inbox,
    args: &'a ExecArgs,
    target: &'a Target,
}

pub(crate) fn run(args: &ExecArgs, target: &Target) -> Result<u8, Failure> {
    let inbox = Inbox::new();
    let settings = target.settings();
    #[cfg(feature = "wasm")]
    let settings = args.engine.choose(settings)?;
    let client = inbox.finish(settings.connect(target))?;
    store::must_be_shared(client.stores())?;
    warn_of_waiting_for_itself(args, &client, &inbox);
    let refused = |error| Failure::system("cannot catch signals", &error);
    let signals = Signals::catch(inbox.sender()).map_err(refused)?;
    let messages = Messages::start().map_err(|error| Failure::system("cannot start a thread", &error))?;
    Exec { client, messages, signals, inbox, args, target }.run()
}

impl Exec<'_> {
    fn run(mut self) -> Result<u8, Failure> {
        let lease = match self.acquire() {
            ControlFlow::Continue(Ok(lease)) => lease,
            ControlFlow::Continue(Err(error)) => return self.not_had(error),
            ControlFlow::Break(signal) => {
                // What was given up is cleaned up behind, or the next one would wait for its ttl.
                if let Err(error) = self.inbox.finish(self.client.clone().close()) {
                    self.messages.say(error);
                }
                return Ok(status::of_signal(signal.as_raw()));
            }
        };
        // leasehold may have been stopped while the grant was on its way.
        if let Err(error) = lease.check(Duration::ZERO) {
            return Err(Failure::from(error).with_status(self.args.lost_status));
        }
        let outcome = self.under(&lease);
        if !lease.is_lost()
            && let Err(error) = self.inbox.finish(lease.release())
        {
            self.messages.say(error);
        }
        outcome
    }

    /// Waits for the lock. A signal breaks off, also one that comes together with the grant, which is then given back.
    fn acquire(&self) -> ControlFlow<Signal, Result<Lease, leasehold::Error>> {
        let interrupted = |event| match event {
            Event::Signal(signal) => ControlFlow::Break(signal),
            Event::Stopped(_) | Event::Ended | Event::Expiring | Event::Lost | Event::Wake => ControlFlow::Continue(()),
        };
        let result = self.inbox.drive(self.request().into_future(), interrupted)?;
        while let Some(event) = self.inbox.next(Duration::ZERO) {
            interrupted(event)?;
        }
        ControlFlow::Continue(result)
    }

    fn request(&self) -> LockRequest {
        let mut request = self.client.lock(&self.args.resource).ttl(self.args.ttl);
        if let Some(wait) = self.args.wait() {
            request = request.wait(wait);
        }
        if let Some(owner) = &self.args.owner {
            request = request.owner(owner);
        }
        if let Some(max_hold) = self.args.max_hold {
            request = request.max_hold(max_hold);
        }
        request
    }

    fn not_had(&self, error: leasehold::Error) -> Result<u8, Failure> {
        let failure = Failure::from(error);
        match (failure.status, self.args.busy_status) {
            // Not having the lock is as good as having had it, then, and a line would be mailed by cron.
            (status::BUSY, status::DONE) => Ok(status::DONE),
            (status::BUSY, busy) => Err(failure.with_status(busy)),
            _ => Err(failure),
        }
    }

    /// Runs the command while the lease lasts.
    fn under(&mut self, lease: &Lease) -> Result<u8, Failure> {
        let events = self.inbox.sender();
        lease.on_expiring(move || tell(&events, Event::Expiring));
        let events = self.inbox.sender();
        lease.on_lost(move |_| tell(&events, Event::Lost));

        self.signals.catch_stops().map_err(|error| Failure::system("cannot catch signals", &error))?;
        let terminal = Terminal::open();
        let environment = [
            ("LEASEHOLD_RESOURCE", self.args.resource.as_str().into()),
            ("LEASEHOLD_TOKEN", lease.token().to_string().into()),
            (store::STORE, self.target.handed_on(self.client.stores())),
        ];
        let environment = environment.into_iter().chain(self.target.environment());
        let command = match Running::start(&self.args.command, environment, &terminal, self.inbox.sender()) {
            Ok(command) => command,
            Err(error) => {
                terminal.reclaim();
                let (status, message) = not_started(&self.args.command, &error);
                self.messages.say(message);
                return Ok(status);
            }
        };
        match Supervisor::new(self, lease, command, terminal).run() {
            Ending::Command(Ok(status)) => Ok(status),
            Ending::Command(Err(error)) => Err(Failure::system("the status of the command is not known", &error)),
            Ending::Endangered => Ok(self.args.lost_status),
        }
    }
}

/// A command that asks for the lock under which it runs waits for its own end.
fn warn_of_waiting_for_itself(args: &ExecArgs, client: &Client, inbox: &Inbox) {
    let told = |name: &str, value: &OsStr| std::env::var_os(name).is_some_and(|told| told == value);
    let runs_under_it =
        told("LEASEHOLD_RESOURCE", OsStr::new(&args.resource)) && store::is_in_environment(client.stores());
    if !runs_under_it || args.wait() == Some(Duration::ZERO) {
        return;
    }
    // A daemon that outlived its lock may ask again; while the token is still the holder's, the lock is the own one.
    if let Ok(Some(holder)) = inbox.finish(client.inspect(&args.resource))
        && holder.token.is_some_and(|token| told("LEASEHOLD_TOKEN", OsStr::new(&token.to_string())))
    {
        say(format_args!(
            "{:?}: this runs under the very lock that it asks for, and waits until its own parent ends: locks are not \
             reentrant",
            args.resource
        ));
    }
}
