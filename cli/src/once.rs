//! `leasehold once`: runs a command unless it was done before.

use std::ops::ControlFlow;
use std::time::Duration;

use leasehold::{Attempts, Client, Completion, ErrorKind, Once, Run, RunRequest, blocking, ffi};

use crate::args::{OccurrenceArgs, OnceArgs};
use crate::exec::{End, Ended, Exec, Job, Observations, Output, not_had};
use crate::output::{Failure, answer, answer_bytes, seconds};
use crate::status;
use crate::store::Target;

pub(crate) fn run(args: &OnceArgs, target: &Target) -> Result<u8, Failure> {
    if args.forget {
        return forget(args, target);
    }
    // A runner that is replaced ends in any case.
    let wait = args.wait.or((!args.replacing.replace).then_some(Duration::ZERO));
    let job = |client: &Client| {
        let resource = request(args, client).resource()?;
        Ok(Job {
            resource,
            hold: &args.hold,
            wait,
            command: &args.command,
            permit: None,
            keeps_output: args.save_output,
        })
    };
    let mut exec = Exec::start(target, (wait, &args.hold), job)?;
    let observations = Observations::of(&args.watching, &exec.client, vec![exec.job.resource.clone()]);
    let ask = || {
        let request = request(args, &exec.client);
        let request = exec.left().into_iter().fold(request, RunRequest::wait);
        let request = if args.watching.no_watch || args.replacing.replace { request } else { request.watch_holder() };
        exec.acquire(request.into_future())
    };
    // Asked again, it would be a newer start.
    let may_ask_again = |answer: &Result<Once, _>| !args.replacing.replace && matches!(answer, Ok(Once::Running(_)));
    match observations.asked(ask, may_ask_again) {
        ControlFlow::Continue(Ok(Once::Run(run))) => {
            let outcome = exec.under(&run);
            end(&mut exec, args, &run, outcome)
        }
        ControlFlow::Continue(Ok(Once::Done(completion))) => {
            exec.say(format_args!("{:?}: done already, {completion}", exec.job.resource));
            if args.save_output {
                show(&exec, &completion)?;
            }
            if args.cooldown.is_some_and(|cooldown| ffi::is_just_missed(cooldown, &completion)) {
                exec.say(format_args!(
                    "{:?}: the cooldown ends in {}, and counts from the end of the work: a job that is started just as \
                     often is skipped every second time; give a --cooldown that is a tenth shorter, or --every",
                    exec.job.resource,
                    seconds(completion.left)
                ));
            }
            Ok(args.done_status)
        }
        ControlFlow::Continue(Ok(Once::Running(holder))) => {
            let who = holder.map_or_else(|| "held by another client".to_owned(), |holder| holder.to_string());
            not_had(
                Failure::busy(format!("{:?}: somebody else runs it: {who}", exec.job.resource)),
                args.running_status,
            )
        }
        ControlFlow::Continue(Ok(Once::Later(attempts))) => {
            let (_, now) = ffi::clocks();
            let pause = Duration::from_millis(attempts.retry_unix_ms.saturating_sub(now));
            let what = format!(
                "{:?}: it has failed, and may be tried again in {}{}",
                exec.job.resource,
                seconds(pause),
                because(&attempts)
            );
            not_had(Failure::busy(what), args.running_status)
        }
        ControlFlow::Continue(Ok(Once::Replaced)) => {
            exec.say(format!("{:?}: a newer start has taken the place of this one", exec.job.resource));
            Ok(args.replacing.replaced_status)
        }
        ControlFlow::Continue(Ok(_)) => {
            not_had(Failure::busy(format!("{:?}: somebody else runs it", exec.job.resource)), args.running_status)
        }
        ControlFlow::Continue(Err(error)) if error.kind() == ErrorKind::GivenUp => {
            exec.say(error.to_string());
            Ok(args.attempts.given_up_status)
        }
        ControlFlow::Continue(Err(error)) => not_had(error.into(), args.running_status),
        ControlFlow::Break(signal) => Ok(exec.gave_up(signal)),
    }
}

/// A request about the given occurrence, for either face of the client.
macro_rules! about {
    ($occurrence:expr, $request:expr) => {{
        let mut request = $request;
        if let Some(every) = $occurrence.every {
            request = request.every(every);
        }
        if let Some(offset) = $occurrence.offset {
            request = request.offset(offset);
        }
        if let Some(key) = &$occurrence.key {
            request = request.key(key);
        }
        if let Some(at) = &$occurrence.at {
            request = request.at(at);
        }
        if let Some(tz) = &$occurrence.tz {
            request = request.tz(tz);
        }
        if let Some(cron) = &$occurrence.cron {
            request = request.cron(cron);
        }
        request
    }};
}

impl OccurrenceArgs {
    /// The key that was given, or that of the present period or time.
    pub(crate) fn key(&self, client: &blocking::Client, name: &str) -> Result<Option<String>, Failure> {
        if self.key.is_some() && self.tz.is_none() {
            return Ok(self.key.clone());
        }
        let times = [&self.at, &self.tz, &self.cron];
        if self.key.is_none()
            && self.every.is_none()
            && self.offset.is_none()
            && times.iter().all(|time| time.is_none())
        {
            // It may be the name of a lock, which may be longer than that of a job.
            return Ok(None);
        }
        let resource = about!(self, client.once(name)).resource()?;
        Ok(resource.rsplit_once('@').map(|(_, key)| key.to_owned()).filter(|key| !key.is_empty()))
    }
}

fn request(args: &OnceArgs, client: &Client) -> RunRequest {
    let mut request = about!(&args.occurrence, client.once(&args.name)).ttl(args.hold.ttl());
    for (given, set) in [
        (args.cooldown, RunRequest::cooldown as fn(RunRequest, Duration) -> RunRequest),
        (args.keep, RunRequest::keep),
        (args.hold.max_hold, RunRequest::max_hold),
        (args.attempts.retry_after, RunRequest::retry_after),
    ] {
        if let Some(duration) = given {
            request = set(request, duration);
        }
    }
    if let Some(max) = args.attempts.max_attempts {
        request = request.max_attempts(max);
    }
    if let Some(owner) = &args.hold.owner {
        request = request.owner(owner);
    }
    if args.even_if_done {
        request = request.even_if_done();
    }
    if args.replacing.replace {
        request = request.replace();
    }
    if args.trust_quorum { request.trust_quorum() } else { request }
}

/// Writes the completion, or leaves the work to the next one.
fn end(exec: &mut Exec<'_>, args: &OnceArgs, run: &Run, outcome: Result<Ended, Failure>) -> Result<u8, Failure> {
    let done =
        matches!(outcome, Ok(Ended { status, how: End::ByItself }) if status == status::DONE || args.keep_failures);
    let reason = outcome.as_ref().map_or_else(
        |failure| failure.message().to_owned(),
        |ended| match ended.how {
            End::ByItself => format!("exit status {}", ended.status),
            End::NotStarted => "it was not started".to_owned(),
            End::Endangered => "its lease was in danger".to_owned(),
        },
    );
    let outcome = outcome.map(|ended| ended.status);
    if run.is_lost() {
        exec.say("no completion was written: the job may be run again");
        return outcome;
    }
    if !done {
        return exec.release_by(run, run.fail(reason), outcome);
    }
    let output = exec.output.take().map(Output::taken).transpose();
    let is_whole = output.is_ok();
    let output = output.unwrap_or_else(|why| {
        exec.say(format!("the output of the command is not kept: {why}"));
        None
    });
    let finish = async {
        match output {
            Some(output) => run.finish_with(output).await,
            None => run.finish().await,
        }
    };
    let finished = match exec.patiently(finish, "the work is done, but its completion is not confirmed yet") {
        ControlFlow::Continue(finished) => finished,
        ControlFlow::Break(_) => {
            exec.say("the store did not confirm the completion: the job may be run again");
            return Ok(status::UNCONFIRMED);
        }
    };
    match finished {
        Ok(()) if is_whole => outcome,
        Ok(()) => Ok(status::RESULT_NOT_KEPT),
        Err(error) if error.kind() == ErrorKind::ResultNotKept => {
            exec.say(error.to_string());
            Ok(status::RESULT_NOT_KEPT)
        }
        Err(error) => {
            exec.say(error.to_string());
            exec.say("the command has ended, and may be run again");
            Ok(match status::of(error.kind()) {
                status::LOST => args.hold.lost_status,
                status => status,
            })
        }
    }
}

/// Why the last attempt has failed, as far as it said so.
fn because(attempts: &Attempts) -> String {
    attempts.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default()
}

/// Writes what the first run has left to stdout.
fn show(exec: &Exec<'_>, completion: &Completion) -> Result<(), Failure> {
    match &completion.result {
        Some(result) => answer_bytes(result.as_bytes()),
        None if completion.result_unsettled => {
            exec.say("its output is not settled: too few nodes of the quorum have shown it; ask again");
            Ok(())
        }
        None => {
            exec.say("its output was not kept");
            Ok(())
        }
    }
}

fn forget(args: &OnceArgs, target: &Target) -> Result<u8, Failure> {
    let client = target.connect()?;
    let key = args.occurrence.key(&client, &args.name)?;
    let attempts = client.inspect_run(&args.name, key.as_deref())?.attempts;
    let completion = client.forget_run(&args.name, key.as_deref())?;
    let resource = client.once(&args.name);
    let resource = match key {
        Some(key) => resource.key(key),
        None => resource,
    };
    let resource = resource.resource()?;
    match completion {
        Some(completion) => {
            answer(&format!("{resource} may be done again; it was done {completion}\n"))?;
            Ok(status::DONE)
        }
        None if let Some(attempts) = attempts => {
            let times = if attempts.count == 1 { "once".to_owned() } else { format!("{} times", attempts.count) };
            answer(&format!("{resource} may be tried again; it was begun {times}{}\n", because(&attempts)))?;
            Ok(status::DONE)
        }
        None => {
            answer(&format!("{resource} has no completion\n"))?;
            Ok(status::NOTHING)
        }
    }
}
