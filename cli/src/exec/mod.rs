//! `leasehold exec`: runs a command while holding a lock.

mod command;
mod guard;
mod inbox;
mod messages;
mod patience;
mod signals;
mod supervise;
mod terminal;

use std::ffi::OsStr;
use std::future::{Future, IntoFuture, poll_fn};
use std::ops::ControlFlow;
use std::pin::pin;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use leasehold::{Client, ClientBuilder, ErrorKind, Lease, LockInfo, LockRequest, ffi};
use rustix::process::Signal;

use crate::args::{ExecArgs, OnLost};
use crate::output::{Failure, say};
use crate::store::Target;
use crate::{status, store, warnings};
use command::{Running, not_started};
use inbox::{Event, Inbox, tell};
use messages::Messages;
use patience::Patience;
use signals::Signals;
use supervise::{Ending, Supervisor};
use terminal::Terminal;

/// One run of `exec`. Its fields are dropped in order: first leases are released, then pending messages are written,
/// and only then are the former signal handlers restored.
struct Exec<'a> {
    client: Client,
    messages: Messages,
    signals: Signals,
    inbox: Inbox,
    args: &'a ExecArgs,
    target: &'a Target,
    patience: Patience,
}

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &ExecArgs, target: &Target) -> Result<u8, Failure> {
    let inbox = Inbox::new();
    let patience = Patience::start(args.wait());
    let client = connect(&target.settings(), target, &inbox, &patience)?;
    store::must_be_shared(client.stores())?;
    warn_of_waiting_for_itself(args, &client, &inbox);
    let refused = |error| Failure::system("cannot catch signals", &error);
    let signals = Signals::catch(inbox.sender()).map_err(refused)?;
    let messages = Messages::start().map_err(|error| Failure::system("cannot start a thread", &error))?;
    Exec { client, messages, signals, inbox, args, target, patience }.run()
}

/// Connects, and tries again while there is time: a server that is being restarted comes back.
fn connect(
    settings: &ClientBuilder,
    target: &Target,
    inbox: &Inbox,
    patience: &Patience,
) -> Result<Client, leasehold::Error> {
    let (mut pause, mut is_announced) = (FIRST_PAUSE, false);
    loop {
        let error = match warnings::said(|| inbox.finish(settings.clone().connect(target))) {
            Err(error) if error.kind() == ErrorKind::StoreUnavailable => error,
            result => return result,
        };
        // Without a time limit, a wrong store url would be retried for ever.
        let Some(left) = patience.left().filter(|left| !left.is_zero()) else { return Err(error) };
        if !is_announced && patience.is_long() {
            is_announced = true;
            say(format_args!("waiting for the store: {error}"));
        }
        thread::sleep(jittered(pause).min(left));
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// A random pause from half of it to all of it: many clients may have lost the same server at once.
fn jittered(pause: Duration) -> Duration {
    let now = Duration::from_nanos(ffi::clocks().0);
    pause.mul_f64(0.5 + f64::from(now.subsec_nanos()) / 2e9)
}

impl Exec<'_> {
    fn run(mut self) -> Result<u8, Failure> {
        let lease = match self.acquire() {
            ControlFlow::Continue(Ok(lease)) => lease,
            ControlFlow::Continue(Err(error)) => return self.not_had(error),
            ControlFlow::Break(signal) => {
                // Clean up what was given up, or the next client would wait for its ttl.
                if let Err(error) = self.inbox.finish(self.client.clone().close()) {
                    self.messages.say(error);
                }
                return Ok(status::of_signal(signal.as_raw()));
            }
        };
        // leasehold may have been stopped while the grant was under way.
        if let Err(error) = lease.check(Duration::ZERO) {
            return Err(Failure::from(error).with_status(self.args.lost_status));
        }
        let outcome = self.under(&lease);
        if lease.is_lost() {
            return outcome;
        }
        match self.inbox.finish(lease.release()) {
            Ok(()) => outcome,
            Err(error) if error.kind() == ErrorKind::Lost => {
                self.messages.say(&error);
                self.messages.say("the command has ended, and a part of its work may not have been protected");
                if self.args.on_lost == OnLost::Ignore { outcome } else { outcome.and(Ok(self.args.lost_status)) }
            }
            Err(error) => {
                self.messages.say(error);
                outcome
            }
        }
    }

    /// Waits for the lock. A signal ends the wait. If it comes together with the grant, the lock is released.
    fn acquire(&self) -> ControlFlow<Signal, Result<Lease, leasehold::Error>> {
        let interrupted = |event| match event {
            Event::Signal(signal) => ControlFlow::Break(signal),
            Event::Stopped(_) | Event::Ended | Event::Expiring | Event::Lost | Event::Wake => ControlFlow::Continue(()),
        };
        let result = self.inbox.drive(self.wait_for_lock(), interrupted)?;
        while let Some(event) = self.inbox.next(Duration::ZERO) {
            interrupted(event)?;
        }
        ControlFlow::Continue(result)
    }

    /// Announces the holder once, on a terminal.
    async fn wait_for_lock(&self) -> Result<Lease, leasehold::Error> {
        let mut request = pin!(self.request().into_future());
        let mut look = pin!(self.client.inspect(&self.args.resource));
        let mut looked = false;
        poll_fn(|context| {
            if let Poll::Ready(result) = request.as_mut().poll(context) {
                return Poll::Ready(result);
            }
            if !looked
                && self.patience.is_long()
                && let Poll::Ready(holder) = look.as_mut().poll(context)
            {
                looked = true;
                self.say_for_whom(holder);
            }
            Poll::Pending
        })
        .await
    }

    fn say_for_whom(&self, holder: Result<Option<LockInfo>, leasehold::Error>) {
        match holder {
            Ok(Some(holder)) => self.messages.say(format_args!("{:?}: waiting: {holder}", self.args.resource)),
            // The lock is about to be granted.
            Ok(None) => {}
            Err(error) => self.messages.say(format_args!("waiting: {error}")),
        }
    }

    fn request(&self) -> LockRequest {
        let mut request = self.client.lock(&self.args.resource).ttl(self.args.ttl);
        if let Some(left) = self.patience.left() {
            request = request.wait(left);
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
            // With status 0 a busy lock counts as success, and cron would mail any output.
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

/// Detects a command that asks for the lock under which it runs: it would wait for its own end.
fn warn_of_waiting_for_itself(args: &ExecArgs, client: &Client, inbox: &Inbox) {
    let is_set = |name: &str, value: &OsStr| std::env::var_os(name).is_some_and(|set| set == value);
    let runs_under_it =
        is_set("LEASEHOLD_RESOURCE", OsStr::new(&args.resource)) && store::is_in_environment(client.stores());
    if !runs_under_it || args.wait() == Some(Duration::ZERO) {
        return;
    }
    // A daemon that outlived its lock may ask again. Only while the token is still the holder's is the lock its own.
    if let Ok(Some(holder)) = inbox.finish(client.inspect(&args.resource))
        && holder.token.is_some_and(|token| is_set("LEASEHOLD_TOKEN", OsStr::new(&token.to_string())))
    {
        say(format_args!(
            "{:?}: this runs under the very lock that it asks for, and waits until its own parent ends: locks are not \
             reentrant",
            args.resource
        ));
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn a_signal_that_comes_with_the_grant_gives_the_lock_back() {
        let cli = Cli::try_parse_from(["leasehold", "exec", "job", "--", "true"]).unwrap();
        let Command::Exec(args) = &cli.command else { unreachable!("it is exec") };
        let target = &Target::of(&cli.store, None).unwrap();
        let inbox = Inbox::new();
        let client = inbox.finish(Client::connect("memory:")).unwrap();
        let (messages, signals) = (Messages::start().unwrap(), Signals::catch(inbox.sender()).unwrap());
        let patience = Patience::start(None);
        let exec = Exec { client, messages, signals, inbox, args, target, patience };
        // A store in memory grants at once, before any event is handled.
        tell(&exec.inbox.sender(), Event::Signal(Signal::INT));
        match exec.acquire() {
            ControlFlow::Break(signal) => assert_eq!(signal, Signal::INT),
            ControlFlow::Continue(result) => panic!("{result:?}"),
        }
        let again = exec.client.lock("job").wait(Duration::from_secs(20)).into_future();
        drop(exec.inbox.finish(again).expect("what was granted is given back"));
    }

    #[test]
    fn pauses_differ_and_are_no_longer_than_planned() {
        for _ in 0..100 {
            let pause = jittered(LONGEST_PAUSE);
            assert!(LONGEST_PAUSE / 2 <= pause && pause <= LONGEST_PAUSE, "{pause:?}");
        }
    }
}
