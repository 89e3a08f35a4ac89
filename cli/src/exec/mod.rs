//! `leasehold exec`: runs a command while holding a lock. `leasehold once` uses the same parts for a run.

mod command;
mod guard;
mod inbox;
mod messages;
mod observations;
mod output;
mod patience;
mod remains;
mod signals;
mod supervise;
mod terminal;

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::future::{Future, IntoFuture, poll_fn};
use std::ops::ControlFlow;
use std::pin::pin;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use leasehold::{Client, ClientBuilder, Error, ErrorKind, Lease, LockInfo, Waiters, ffi};
use rustix::process::Signal;

use crate::args::{ExecArgs, HoldArgs, OnLost};
use crate::output::{Failure, say, seconds};
use crate::store::Target;
use crate::{status, store, warnings};
use command::{Running, not_started};
use inbox::tell;
pub(crate) use inbox::{Event, Inbox};
use messages::Messages;
pub(crate) use observations::Observations;
pub(crate) use output::Output;
use patience::Patience;
pub(crate) use signals::Signals;
use supervise::{Ending, Supervisor};
use terminal::Terminal;

/// One command under a lease. Its fields are dropped in order: first leases are released, then pending messages are
/// written, and only then are the former signal handlers restored.
pub(crate) struct Exec<'a> {
    pub client: Client,
    messages: Messages,
    signals: Signals,
    inbox: Inbox,
    pub job: Job<'a>,
    target: &'a Target,
    patience: Patience,
    /// That of the command, if it is kept.
    pub output: Option<Output>,
}

/// The command, and the lock or run that it needs.
pub(crate) struct Job<'a> {
    pub resource: String,
    pub hold: &'a HoldArgs,
    /// `None` waits forever.
    pub wait: Option<Duration>,
    pub command: &'a [OsString],
    /// The number of the permit, if it is a semaphore.
    pub permit: Option<usize>,
    /// The output of the command is kept for those who come later.
    pub keeps_output: bool,
}

/// The end of a command.
#[derive(Clone, Copy)]
pub(crate) struct Ended {
    /// That of leasehold.
    pub status: u8,
    pub how: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It ran, and its lease lasted.
    ByItself,
    NotStarted,
    /// Its lease was lost or in danger.
    Endangered,
}

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A request with the settings of the arguments: those for a lock and for a permit have the same ones.
macro_rules! with_settings {
    ($request:expr, $args:ident, $exec:ident) => {{
        let mut request = $request.ttl($args.hold.ttl());
        if let Some(left) = $exec.left() {
            request = request.wait(left);
        }
        if !$args.watching.no_watch {
            request = request.watch_holder();
        }
        if let Some(owner) = &$args.hold.owner {
            request = request.owner(owner);
        }
        if let Some(max_hold) = $args.hold.max_hold {
            request = request.max_hold(max_hold);
        }
        request.into_future()
    }};
}

pub(crate) fn run(args: &ExecArgs, target: &Target) -> Result<u8, Failure> {
    let job = |_: &Client| {
        // Of the permits of a semaphore, the holder of the first one is shown to those who wait.
        let resource = if args.permits.is_some() { format!("{}#0", args.name) } else { args.name.clone() };
        Ok(Job {
            resource,
            hold: &args.hold,
            wait: args.wait(),
            command: &args.command,
            permit: None,
            keeps_output: false,
        })
    };
    let mut exec = Exec::start(target, (args.wait(), &args.hold), job)?;
    let names = match args.permits {
        None => vec![args.name.clone()],
        Some(permits) => (0..permits).map(|index| format!("{}#{index}", args.name)).collect(),
    };
    let observations = Observations::of(&args.watching, &exec.client, names);
    let ask = || match args.permits {
        None => exec
            .acquire(with_settings!(exec.client.lock(&args.name), args, exec))
            .map_continue(|lease| lease.map(|lease| (lease, None))),
        Some(permits) => exec
            .acquire(with_settings!(exec.client.semaphore(&args.name, permits), args, exec))
            .map_continue(|permit| permit.map(|permit| (permit.index(), permit)))
            .map_continue(|permit| permit.map(|(index, permit)| (permit.into(), Some(index)))),
    };
    let held = observations.asked(ask, |held| matches!(held, Err(error) if status::of(error.kind()) == status::BUSY));
    let lease: Lease = match held {
        ControlFlow::Continue(Ok((lease, permit))) => {
            exec.job.permit = permit;
            lease
        }
        ControlFlow::Continue(Err(error)) => return not_had(error.into(), args.busy_status),
        ControlFlow::Break(signal) => return Ok(exec.gave_up(signal)),
    };
    let outcome = exec.under(&lease).map(|ended| ended.status);
    exec.release(&lease, outcome)
}

/// The result of a lock or run that somebody else has: `busy` is the status for that.
pub(crate) fn not_had(failure: Failure, busy: u8) -> Result<u8, Failure> {
    match (failure.status, busy) {
        // With status 0 it counts as success, and cron would mail any output.
        (status::BUSY, status::DONE) => Ok(status::DONE),
        (status::BUSY, busy) => Err(failure.with_status(busy)),
        _ => Err(failure),
    }
}

/// Connects, and tries again while there is time: a server that is being restarted comes back.
fn connect(settings: &ClientBuilder, target: &Target, inbox: &Inbox, patience: &Patience) -> Result<Client, Error> {
    let mut pause = FIRST_PAUSE;
    loop {
        let error = match warnings::said(|| inbox.finish(settings.clone().connect(target))) {
            Err(error) if error.kind() == ErrorKind::StoreUnavailable => error,
            result => return result,
        };
        // Without a time limit, a wrong store url would be retried forever.
        let Some(left) = patience.left().filter(|left| !left.is_zero()) else { return Err(error) };
        if patience.is_due() {
            say(format_args!("waiting for the store: {error}; for {} so far", seconds(patience.passed())));
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

impl<'a> Exec<'a> {
    pub(crate) fn start(
        target: &'a Target,
        (wait, hold): (Option<Duration>, &HoldArgs),
        job: impl FnOnce(&Client) -> Result<Job<'a>, Error>,
    ) -> Result<Self, Failure> {
        let inbox = Inbox::new();
        let patience = Patience::start(wait);
        let settings = target.settings();
        let settings = hold.session.iter().fold(settings, |settings, name| settings.session(name));
        let client = connect(&settings, target, &inbox, &patience)?;
        store::must_be_shared(client.stores())?;
        let job = job(&client)?;
        warn_of_waiting_for_itself(&job, &client, &inbox);
        let refused = |error| Failure::system("cannot catch signals", &error);
        let signals = Signals::catch(inbox.sender()).map_err(refused)?;
        let messages = Messages::start().map_err(|error| Failure::system("cannot start a thread", &error))?;
        Ok(Self { client, messages, signals, inbox, job, target, patience, output: None })
    }

    pub(crate) fn say(&self, what: impl Display) {
        self.messages.say(what);
    }

    /// For `--verbose` only.
    fn say_in_full(&self, what: impl FnOnce() -> String) {
        if self.job.hold.verbose {
            self.messages.say(what());
        }
    }

    /// The rest of the wait; `None` is forever. Of a wait that has passed a nanosecond is left, since zero would mean a single try,
    /// whose failure is another one.
    pub(crate) fn left(&self) -> Option<Duration> {
        let least = if self.job.wait == Some(Duration::ZERO) { Duration::ZERO } else { Duration::from_nanos(1) };
        self.patience.left().map(|left| left.max(least))
    }

    /// Waits for the answer to a request. A signal ends the wait. If it comes together with a grant, that is given back.
    pub(crate) fn acquire<T>(
        &self,
        request: impl Future<Output = Result<T, Error>>,
    ) -> ControlFlow<Signal, Result<T, Error>> {
        let interrupted = |event| match event {
            Event::Signal(signal) => ControlFlow::Break(signal),
            Event::Stopped(_) | Event::Ended | Event::Expiring | Event::Lost | Event::Wake => ControlFlow::Continue(()),
        };
        let result = self.inbox.drive(self.announced(request), interrupted)?;
        while let Some(event) = self.inbox.next(Duration::ZERO) {
            interrupted(event)?;
        }
        ControlFlow::Continue(result)
    }

    /// Waits. A signal ends it.
    pub(crate) fn pause(&self, length: Duration) -> ControlFlow<Signal> {
        let start_ns = ffi::clocks().0;
        loop {
            let passed = Duration::from_nanos(ffi::clocks().0.saturating_sub(start_ns));
            match self.inbox.next(length.saturating_sub(passed)) {
                Some(Event::Signal(signal)) => return ControlFlow::Break(signal),
                Some(_) => {}
                None => return ControlFlow::Continue(()),
            }
        }
    }

    /// The status after a signal ended the wait. Cleans up what was given up, or the next client would wait for its ttl.
    pub(crate) fn gave_up(&self, signal: Signal) -> u8 {
        if let Err(error) = self.inbox.finish(self.client.clone().close()) {
            self.messages.say(error);
        }
        status::of_signal(signal.as_raw())
    }

    /// Releases the lease after its command has ended.
    pub(crate) fn release(&self, lease: &Lease, outcome: Result<u8, Failure>) -> Result<u8, Failure> {
        self.release_by(lease, lease.release(), outcome)
    }

    /// The same by a release that does more.
    pub(crate) fn release_by(
        &self,
        lease: &Lease,
        release: impl Future<Output = Result<(), Error>>,
        outcome: Result<u8, Failure>,
    ) -> Result<u8, Failure> {
        if lease.is_lost() {
            // A revoked lock is free from here on; nothing else is left to release.
            let _ = self.finish(release);
            return outcome;
        }
        match self.finish(release) {
            Ok(()) => {
                self.say_in_full(|| format!("{:?}: released", lease.resource()));
                outcome
            }
            Err(error) if error.kind() == ErrorKind::Lost => {
                self.messages.say(&error);
                self.messages.say("the command has ended, and a part of its work may not have been protected");
                if self.job.hold.on_lost == OnLost::Ignore {
                    outcome
                } else {
                    outcome.and(Ok(self.job.hold.lost_status))
                }
            }
            Err(error) => {
                self.messages.say(error);
                outcome
            }
        }
    }

    /// Runs a future to its end, ignoring signals.
    pub(crate) fn finish<F: Future>(&self, future: F) -> F::Output {
        self.inbox.finish(future)
    }

    /// Runs a future to its end, or to the second signal. The first one has `meanwhile` said.
    pub(crate) fn patiently<F: Future>(&self, future: F, meanwhile: &str) -> ControlFlow<Signal, F::Output> {
        let mut is_told = false;
        self.inbox.drive(future, |event| match event {
            Event::Signal(signal) if std::mem::replace(&mut is_told, true) => ControlFlow::Break(signal),
            Event::Signal(_) => {
                self.say(format_args!("{meanwhile}: another signal ends the wait"));
                ControlFlow::Continue(())
            }
            Event::Stopped(_) | Event::Ended | Event::Expiring | Event::Lost | Event::Wake => ControlFlow::Continue(()),
        })
    }

    /// Says from time to time for whom it waits.
    async fn announced<T>(&self, request: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let mut request = pin!(request);
        let look = async || {
            let holder = self.client.inspect(&self.job.resource).await;
            (holder, self.client.waiters(&self.job.resource).await.ok().flatten())
        };
        let mut looking = None;
        poll_fn(|context| {
            if let Poll::Ready(result) = request.as_mut().poll(context) {
                return Poll::Ready(result);
            }
            if looking.is_none() && self.patience.is_due() {
                looking = Some(Box::pin(look()));
            }
            if let Some(look) = &mut looking
                && let Poll::Ready((holder, waiters)) = look.as_mut().poll(context)
            {
                looking = None;
                self.say_for_whom(holder, waiters);
            }
            Poll::Pending
        })
        .await
    }

    fn say_for_whom(&self, holder: Result<Option<LockInfo>, Error>, waiters: Option<Waiters>) {
        let place = waiters.and_then(|waiters| Some((waiters.own_place?, waiters.count)));
        let place = place.map(|(place, count)| format!("; in the queue: {place} of {count}")).unwrap_or_default();
        let passed = seconds(self.patience.passed());
        match holder {
            Ok(Some(holder)) => self
                .messages
                .say(format_args!("{:?}: waiting: {holder}{place}; for {passed} so far", self.job.resource)),
            // It is about to be granted, or nodes of the quorum do not vote yet.
            Ok(None) => self.messages.say(format_args!(
                "{:?}: waiting: nobody holds it, and it is not granted yet (of a quorum, `leasehold quorum status` shows \
                 which nodes vote); for {passed} so far",
                self.job.resource
            )),
            Err(error) => self.messages.say(format_args!("waiting: {error}; for {passed} so far")),
        }
    }

    /// Runs the command while the lease lasts.
    pub(crate) fn under(&mut self, lease: &Lease) -> Result<Ended, Failure> {
        self.say_in_full(|| {
            let left = seconds(lease.remaining());
            format!(
                "{:?}: acquired as {}, token {}, {left} left unless renewed",
                lease.resource(),
                lease.owner(),
                lease.token()
            )
        });
        // leasehold may have been stopped while the grant was under way.
        if let Err(error) = lease.check(Duration::ZERO) {
            return Err(Failure::from(error).with_status(self.job.hold.lost_status));
        }
        let events = self.inbox.sender();
        lease.on_expiring(move || tell(&events, Event::Expiring));
        let events = self.inbox.sender();
        lease.on_lost(move |_| tell(&events, Event::Lost));

        self.signals.catch_stops().map_err(|error| Failure::system("cannot catch signals", &error))?;
        let terminal = Terminal::open();
        let environment = [
            ("LEASEHOLD_RESOURCE", lease.resource().into()),
            ("LEASEHOLD_TOKEN", lease.token().to_string().into()),
            (store::STORE, self.target.handed_on(self.client.stores())),
        ];
        let permit = self.job.permit.map(|permit| ("LEASEHOLD_PERMIT", permit.to_string().into()));
        let environment = environment.into_iter().chain(permit).chain(self.target.environment());
        let wanted = (self.job.command, self.job.keeps_output);
        let command = match Running::start(wanted, environment, &terminal, self.inbox.sender()) {
            Ok(mut command) => {
                self.output = command.take_output();
                command
            }
            Err(error) => {
                terminal.reclaim();
                let (status, message) = not_started(self.job.command, &error);
                self.messages.say(message);
                return Ok(Ended { status, how: End::NotStarted });
            }
        };
        match Supervisor::new(self, lease, command, terminal).run() {
            Ending::Command(Ok(status)) => Ok(Ended { status, how: End::ByItself }),
            Ending::Command(Err(error)) => Err(Failure::system("the status of the command is not known", &error)),
            Ending::Endangered => Ok(Ended { status: self.job.hold.lost_status, how: End::Endangered }),
        }
    }
}

/// Detects a command that asks for the lock under which it runs: it would wait for its own end.
fn warn_of_waiting_for_itself(job: &Job<'_>, client: &Client, inbox: &Inbox) {
    let is_set = |name: &str, value: &OsStr| std::env::var_os(name).is_some_and(|set| set == value);
    let runs_under_it =
        is_set("LEASEHOLD_RESOURCE", OsStr::new(&job.resource)) && store::is_in_environment(client.stores());
    if !runs_under_it || job.wait == Some(Duration::ZERO) {
        return;
    }
    // A daemon that outlived its lock may ask again. Only while the token is still the holder's is the lock its own.
    if let Ok(Some(holder)) = inbox.finish(client.inspect(&job.resource))
        && holder.token.is_some_and(|token| is_set("LEASEHOLD_TOKEN", OsStr::new(&token.to_string())))
    {
        say(format_args!(
            "{:?}: this command already runs under the lock that it waits for, so it would wait until its own parent \
             ends: locks are not reentrant",
            job.resource
        ));
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};
    use crate::settings::Settings;

    #[test]
    fn a_signal_that_comes_with_the_grant_gives_the_lock_back() {
        let cli = Cli::try_parse_from(["leasehold", "exec", "job", "--", "true"]).unwrap();
        let Command::Exec(args) = &cli.command else { unreachable!("it is exec") };
        let target = &Target::of(&cli.store, None, Settings::default()).unwrap();
        let inbox = Inbox::new();
        let client = inbox.finish(Client::connect("memory:")).unwrap();
        let (messages, signals) = (Messages::start().unwrap(), Signals::catch(inbox.sender()).unwrap());
        let patience = Patience::start(None);
        let (resource, command) = (args.name.clone(), args.command.as_slice());
        let job = Job { resource, hold: &args.hold, wait: None, command, permit: None, keeps_output: false };
        let exec = Exec { client, messages, signals, inbox, job, target, patience, output: None };
        // A store in memory grants at once, before any event is handled.
        tell(&exec.inbox.sender(), Event::Signal(Signal::INT));
        match exec.acquire(exec.client.lock("job").into_future()) {
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
