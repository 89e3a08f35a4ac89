//! Runs: work that is done once.
//!
//! A lock says "not at the same time". A run says "not twice": it is a lease whose success is written down, as a completion that
//! turns away all who come later.

use std::future::IntoFuture;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold_core::config::RunOptions;
use leasehold_core::{AttemptLimit, Attempts, Resource, Wait, check_replace};

use crate::admin::inspect::listed;
use crate::client::Client;
use crate::driver::Caller;
use crate::error::{Error, ErrorKind, LockInfo};
use crate::forward::{settings, settings_of_locks};
use crate::lengths;
use crate::locks::lease::Lease;
use crate::locks::request::LockRequest;
use crate::runs::completion::Completion;
use crate::runs::occurrence::{Occurrence, Present, kept, present};
use crate::runs::result::RunResult;
use crate::runs::{attempts, replace};

/// The answer to the request for a run. Whatever else there may be one day, only with [`Once::Run`] the work is the caller's.
#[derive(Debug)]
#[must_use = "dropping a run releases it at once, so that another worker may do the work"]
#[non_exhaustive]
pub enum Once {
    /// The work is to be done now, by the caller.
    Run(Run),
    /// It was done.
    Done(Completion),
    /// Somebody else is at it; the holder, as far as the store shows it.
    Running(Option<LockInfo>),
    /// It has failed, and the pause before the [next attempt](RunRequest::retry_after) is not over.
    Later(Attempts),
    /// A newer request has taken the place of this one: see [`RunRequest::replace`].
    Replaced,
}

/// A run: the lease under which the work is done. All that a [`Lease`] can do, it can do as well.
///
/// [`Run::finish`] writes down that the work is done. Dropping or releasing a run leaves no completion, so another worker may
/// do the work.
#[derive(Debug)]
#[must_use = "dropping a run releases it at once, so that another worker may do the work"]
pub struct Run(Lease);

impl Run {
    /// Writes the completion that the work is done and releases the lock, at once. The answer is awaited for as long as the
    /// lease lasts, and an answer that is lost is asked for again.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`]: the lease was lost before, no completion was written, and another worker may do the work again.
    /// [`ErrorKind::FinishUnconfirmed`]: the store has not answered, or only a minority of a quorum has the completion.
    /// [`ErrorKind::NotOwned`] after a release or finish.
    pub async fn finish(&self) -> Result<(), Error> {
        self.finish_by(None, Caller::Async).await
    }

    /// As [`Run::finish`], and leaves a result of at most 4 KiB for those who come later: the `result` of [`Once::Done`].
    ///
    /// # Errors
    /// As there; [`ErrorKind::ResultNotKept`] if it is too long, or the store has no room for it: the work counts as done.
    pub async fn finish_with(&self, result: RunResult) -> Result<(), Error> {
        self.finish_by(Some(result.to_keep()), Caller::Async).await
    }

    /// A statement that writes the completion in a transaction of yours: work and completion are then committed together, or not at all,
    /// so that the work is done exactly once. The lock has to be in the same PostgreSQL database as the work.
    ///
    /// Run it **last** in the transaction, commit, and only then [`Run::finish`], which confirms the completion. The statement
    /// fails if the lease is over: roll back. From here to the end of the transaction the lock's row is locked, so nobody
    /// else can begin the work; renewals wait as well, so the lease may be reported as lost if that takes longer than the
    /// ttl, and finishing then looks if the completion stands.
    ///
    /// ```no_run
    /// use leasehold::blocking::{Client, Once};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let locks = Client::connect("postgres://app@db/shop")?;
    /// let mut db = postgres::Client::connect("host=db user=app dbname=shop", postgres::NoTls)?;
    /// if let Once::Run(run) = locks.once("bill").key("2026-11").begin()? {
    ///     let mut work = db.transaction()?;
    ///     work.execute("INSERT INTO bills SELECT * FROM due", &[])?;
    ///     let completion = run.completion_in()?;
    ///     work.execute(&completion.sql, &[&completion.parameter])?;           // fails if the lease is over
    ///     work.commit()?;
    ///     run.finish()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Config`]: the store is no single PostgreSQL database. [`ErrorKind::Lost`]: the lease is over;
    /// [`ErrorKind::NotOwned`]: it was released.
    #[cfg(feature = "postgres")]
    pub fn completion_in(&self) -> Result<crate::CompletionStatement, Error> {
        self.0.completion_in(None)
    }

    /// As [`Run::completion_in`], with a result for those who come later. [`Run::finish`] then confirms both.
    ///
    /// # Errors
    /// As there; [`ErrorKind::Config`] for a result above 4 KiB. The statement itself fails where the table was made by a version
    /// without results: `leasehold store create` adds what it lacks.
    #[cfg(feature = "postgres")]
    pub fn completion_in_with(&self, result: &RunResult) -> Result<crate::CompletionStatement, Error> {
        let result = result.to_keep().map_err(|why| Error::config(why).on(self.resource()))?;
        self.0.completion_in(Some(&result))
    }

    /// See [`Lease::release`]: the work was not done, and another worker may do it.
    ///
    /// # Errors
    /// As there.
    pub async fn release(&self) -> Result<(), Error> {
        self.0.release().await
    }

    /// The attempts at the work with this one, where they [are counted](RunRequest::max_attempts).
    pub fn attempts(&self) -> Option<&Attempts> {
        self.0.counting().map(|counting| &counting.attempts)
    }

    /// As [`Run::release`], and says why the work has failed: its type and message in one line, cut after 256 bytes. Where
    /// [attempts are counted](RunRequest::max_attempts), the reason is kept beside their number, for those who look at the run or are told
    /// that it was given up. Others can read it in the store, so leave secrets out.
    ///
    /// # Errors
    /// As [`Run::release`]. A reason that cannot be kept is only logged.
    pub async fn fail(&self, reason: impl AsRef<str>) -> Result<(), Error> {
        attempts::fail(&self.0, reason.as_ref(), Caller::Async).await
    }

    pub(crate) fn into_lease(self) -> Lease {
        self.0
    }

    pub(super) const fn of(lease: Lease) -> Self {
        Self(lease)
    }
}

impl Deref for Run {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.0
    }
}

/// A request for a run. Awaiting it answers at once, unless [`RunRequest::wait`] is given.
///
/// Dropping the future at any await gives the acquisition up and cleans up behind it.
#[must_use = "nothing runs until the request is awaited"]
#[derive(Clone)]
pub struct RunRequest {
    name: String,
    occurrence: Occurrence,
    trust_quorum: bool,
    even_if_done: bool,
    replaces: bool,
    has_wait: bool,
    max_attempts: Option<u32>,
    retry_after: Option<Duration>,
    /// The name of the resource is set when the request is made.
    lock: LockRequest,
}

impl Client {
    /// Asks to do a job once. Give it a [key](RunRequest::key), a [period](RunRequest::every), a
    /// [cooldown](RunRequest::cooldown) or the time to [keep](RunRequest::keep) its completion: without any, nothing says when the job
    /// is to be done again, which is an error of the kind [`ErrorKind::Config`].
    ///
    /// ```
    /// # async fn example() -> Result<(), leasehold::Error> {
    /// use leasehold::Once;
    ///
    /// let client = leasehold::Client::connect("memory:").await?;
    /// match client.once("nightly-report").key("2026-11-24").await? {
    ///     Once::Run(run) => {
    ///         println!("write the report, with the fencing token {}", run.token());
    ///         run.finish().await?;
    ///     }
    ///     Once::Done(completion) => println!("done {completion}"),
    ///     Once::Running(_) => println!("somebody else is at it"),
    ///     _ => {}
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn once(&self, name: impl Into<String>) -> RunRequest {
        let name = name.into();
        let lock = self.lock(name.as_str()).once();
        RunRequest {
            name,
            occurrence: Occurrence::default(),
            trust_quorum: false,
            even_if_done: false,
            replaces: false,
            has_wait: false,
            max_attempts: None,
            retry_after: None,
            lock,
        }
    }

    /// The holder and the completion of one occurrence of a job.
    ///
    /// # Errors
    /// As [`Client::inspect`].
    pub async fn inspect_run(&self, name: &str, key: Option<&str>) -> Result<RunInfo, Error> {
        let resource = resource(name, key)?;
        let (holder, done) = self.inspect_marked(resource.as_str()).await?;
        let attempts = self.attempts(resource.as_str()).await?;
        let (name, key, resource) = (name.to_owned(), key.map(str::to_owned), resource.as_str().to_owned());
        Ok(RunInfo { resource, name, key, holder, done, attempts })
    }

    /// Removes the completion of one occurrence of a job and the number of its attempts, so that it is done again. For people: waits
    /// until nobody runs it, up to 10 s.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] while somebody runs it, [`ErrorKind::StoreUnavailable`] if nodes of a quorum keep the completion or do
    /// not answer, with their names, and as [`Run::finish`].
    pub async fn forget_run(&self, name: &str, key: Option<&str>) -> Result<Option<Completion>, Error> {
        let resource = resource(name, key)?;
        let resource = resource.as_str();
        let attempts = self.attempts(resource).await?;
        let (_, done) = self.inspect_marked(resource).await?;
        // Work that is under way and was never done is waited for, as other work is by the removal of its completion.
        let held =
            if attempts.is_some() && done.is_none() { Some(self.forgetting(resource).acquire().await?) } else { None };
        // Where a node of a quorum does not answer, the others forget all the same.
        let uncounted = self.forget_attempts(resource).await;
        if let Some(held) = held {
            held.release_by(self.caller).await?;
        }
        let forgotten = self.forget(resource).await?;
        uncounted.map(|()| forgotten)
    }

    /// The request for a run whose finish removes the completion.
    fn forgetting(&self, resource: &str) -> LockRequest {
        let run = RunOptions { keep: Duration::ZERO, trust_quorum: true, even_if_done: true };
        let longest = self.shared.quorum().map_or(Duration::MAX, |quorum| quorum.max_ttl());
        let ttl = longest.min(FORGET_TTL);
        self.lock(resource).ttl(ttl).wait(FORGET_WAIT).run(run)
    }

    /// Removes a completion, if there is one.
    pub(super) async fn forget(&self, resource: &str) -> Result<Option<Completion>, Error> {
        let (_, done) = self.inspect_marked(resource).await?;
        let Some(completion) = &done else { return Ok(None) };
        let request = self.forgetting(resource);
        // A node of a quorum that has missed the record of this run keeps the completion.
        let (mut doubtful, mut tries) = (Vec::new(), 0);
        loop {
            let run = request.clone().acquire().await?;
            run.finish_by(None, self.caller).await?;
            let mut left = done.clone();
            for _ in 0..FORGET_LOOKS {
                (_, left) = self.inspect_marked(resource).await?;
                // Its own completion ends at once, and hides an earlier one until then.
                if left.as_ref().is_none_or(|left| left.token != run.token()) {
                    break;
                }
            }
            let mut all_answer = true;
            if let Some(quorum) = self.shared.quorum() {
                (doubtful, all_answer) = self.may_be_marked(quorum, resource, completion).await?;
            }
            if doubtful.is_empty() && left.is_none_or(|left| left.token > completion.token) {
                return Ok(done);
            }
            tries += 1;
            if tries >= if all_answer { FORGET_TRIES_OF_SLOW_NODES } else { FORGET_TRIES } {
                break;
            }
        }
        let message = format!(
            "the completion is removed, but some nodes of the quorum have kept it or do not answer, so other machines \
             may still skip the work: forget it again when all nodes answer ({})",
            listed(&doubtful)
        );
        Err(Error::new(ErrorKind::StoreUnavailable, message).on(resource))
    }
}

/// The ttl of the run whose finish removes a completion, and how long it waits for another run.
const FORGET_TTL: Duration = Duration::from_secs(10);
const FORGET_WAIT: Duration = Duration::from_secs(10);
/// Further tries reach a node whose answer was late.
const FORGET_TRIES: u32 = 3;
/// A node that answers and still shows the completion is behind its neighbours, and each try gives it time.
const FORGET_TRIES_OF_SLOW_NODES: u32 = 30;
/// More than fit into a millisecond.
const FORGET_LOOKS: u32 = 100;

/// Tells if a job is skipped for the last twentieth of its cooldown, which counts from the end of the work: one that starts as often as
/// the cooldown is long is then skipped every second time.
pub(crate) fn is_just_missed(cooldown: Duration, completion: &Completion) -> bool {
    completion.left <= cooldown / 20
}

fn resource(name: &str, key: Option<&str>) -> Result<Resource, Error> {
    Resource::of_run(name, key).map_err(|error| Error::config(error.to_string()).on(name))
}

/// The state of one occurrence of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunInfo {
    /// The resource that stands for it in the store.
    pub resource: String,
    /// The name of the job.
    pub name: String,
    /// The key of the occurrence; `None` for the job as a whole.
    pub key: Option<String>,
    /// The runner, if there is one.
    pub holder: Option<LockInfo>,
    /// The completion, if the work is done.
    pub done: Option<Completion>,
    /// How often the work was begun, where [attempts are counted](RunRequest::max_attempts). In a list, that of runs that are neither
    /// done nor under way.
    pub attempts: Option<Attempts>,
}

impl RunInfo {
    /// That of a record; `None` if its resource is that of no run.
    pub(crate) fn of(resource: &Resource, holder: Option<LockInfo>, done: Option<Completion>) -> Option<Self> {
        let (name, key) = resource.parts_of_run()?;
        Some(Self { resource: resource.as_str().to_owned(), name, key, holder, done, attempts: None })
    }
}

settings_of_locks! { RunRequest:
    ttl(ttl: Duration);
    owner(owner: impl AsRef<str>);
    data(data: impl AsRef<[u8]>);
    lock_delay(lock_delay: Duration);
    max_hold(max_hold: Duration);
    renew_every(every: Duration);
    no_renewal();
}

settings! { RunRequest:
    /// The occurrence of the job: a date, an invoice, a batch. Each is done once. 1 byte or more, at most 1,024 together
    /// with the name.
    pub fn key(self, key: impl Into<String>) -> Self {
        self.about(|occurrence| occurrence.key = Some(key.into()))
    }

    /// One occurrence in each period, 1 s or longer (7 days at most on a quorum), by this machine's clock: the key is the start of the period in UTC.
    /// Machines whose clocks differ agree on all but the moments in which a period begins, where one may still be in the
    /// old period; each key is done once at most all the same.
    pub fn every(self, period: Duration) -> Self {
        self.about(|occurrence| occurrence.every = Some(period))
    }

    /// How long after the start of 1970, in UTC or by the clocks of [`RunRequest::tz`], the periods of [`RunRequest::every`] begin;
    /// less than a period, default 0.
    pub fn offset(self, offset: Duration) -> Self {
        self.about(|occurrence| occurrence.offset = offset)
    }

    /// The time of day at which the periods of [`RunRequest::every`] begin, from `00:00` to `23:59` by the clocks of
    /// [`RunRequest::tz`]. Periods are then whole days. Default: midnight.
    #[cfg(feature = "local-time")]
    pub fn at(self, time_of_day: impl Into<String>) -> Self {
        self.about(|occurrence| occurrence.at = Some(time_of_day.into()))
    }

    /// The zone by whose clocks [`RunRequest::every`] and [`RunRequest::cron`] count, by its name in the IANA database, such as
    /// `Europe/Berlin` or `UTC`. The key is the local time with the zone as you wrote it, `2026-10-25T02:30[Europe/Berlin]`: a time
    /// that comes twice when clocks are set back is done once, and so is one that clocks leave out, as soon as they are past it.
    #[cfg(feature = "local-time")]
    pub fn tz(self, zone: impl Into<String>) -> Self {
        self.about(|occurrence| occurrence.tz = Some(zone.into()))
    }

    /// One occurrence for each time of a cron expression by the clocks of [`RunRequest::tz`], which has to be given: minute, hour, day
    /// of the month, month and day of the week, such as `0 2 * * 1-5`. The occurrence is the latest one until now, so a machine that
    /// comes late does it.
    #[cfg(feature = "local-time")]
    pub fn cron(self, expression: impl Into<String>) -> Self {
        self.about(|occurrence| occurrence.cron = Some(expression.into()))
    }

    /// Once done, the job is not done again for this long. In place of a key or period.
    pub fn cooldown(self, cooldown: Duration) -> Self {
        self.about(|occurrence| occurrence.cooldown = Some(cooldown))
    }

    /// How long the completion of the finished work stands: at least the ttl and the period, at most 100 years (7 days on a
    /// quorum). By default 7 days, or twice the period if that is longer than 7 days. With a [zone](RunRequest::tz) it stands until a day
    /// after the next time at least.
    pub fn keep(self, keep: Duration) -> Self {
        self.about(|occurrence| occurrence.keep = Some(keep))
    }

    /// How long to stand by while somebody else runs: the answer is [`Once::Done`] when that one finishes, and
    /// [`Once::Run`] with a higher token if it dies. Default 0: step aside at once.
    pub fn wait(self, wait: Duration) -> Self {
        Self { has_wait: true, ..self }.map(|lock| lock.wait(wait))
    }

    /// See [`LockRequest::watch_holder`]: the answer is [`Once::Running`] if somebody who lives runs it, and [`Once::Run`] if the
    /// runner is dead.
    pub fn watch_holder(self) -> Self {
        self.map(LockRequest::watch_holder)
    }

    /// Runs although the work may be done, but not while somebody else runs. Its finish replaces the completion; with a
    /// [`RunRequest::keep`] of zero it removes the completion.
    pub fn even_if_done(self) -> Self {
        Self { even_if_done: true, ..self }
    }

    /// Takes the run over from its runner, for work that only the newest request has right. The runner is told at its next renewal that
    /// its lease is lost, with the reason `revoked`. Nobody begins before it has let go, or its lease has run out. Of several requests that
    /// wait the newest begins, and the others get [`Once::Replaced`]. Work that was done before the request is not done again, unless with
    /// [`RunRequest::even_if_done`]; what the runner finishes in its last moments does not count.
    ///
    /// [`RunRequest::wait`] is the longest that it waits for the runner to end; by default, as long as that takes. An attempt that is asked for
    /// again is a newer request. A thread that runs the work itself is refused, and so are `max_attempts`, `watch_holder` and a wait of
    /// zero beside it. Costs a read, two writes and an attempt that is refused when the work begins. The name with its key has 1,017 bytes at most.
    pub fn replace(self) -> Self {
        Self { replaces: true, ..self }
    }

    /// How often the work may be begun, 1 or more. Each attempt counts, also one whose process dies; once so many have begun and none has
    /// finished, the run is given up: an error of the kind [`ErrorKind::GivenUp`], which says why the last one [failed](Run::fail), until
    /// somebody [forgets](Client::forget_run) the run. Attempts are remembered for as long as the completion is kept, from the start of
    /// the latest one. Without it, failed work is begun again without end.
    ///
    /// Costs two more writes and a read when the work begins. The name with its key has 1,015 bytes at most.
    pub fn max_attempts(self, max: u32) -> Self {
        Self { max_attempts: Some(max), ..self }
    }

    /// The pause from the start of an attempt to the start of the next one, by this machine's clock: until then the answer is
    /// [`Once::Later`]. Default 0. Needs [`RunRequest::max_attempts`].
    pub fn retry_after(self, pause: Duration) -> Self {
        Self { retry_after: Some(pause), ..self }
    }

    /// An operator's word that no completion was lost: on a quorum, nodes that have lost their data within 7 days count all the
    /// same. Without it they do not count for runs.
    pub fn trust_quorum(self) -> Self {
        Self { trust_quorum: true, ..self }
    }
}

impl RunRequest {
    /// The resource that stands for the run in the store.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a name, key or period that cannot be.
    pub fn resource(&self) -> Result<String, Error> {
        self.named().map(|resource| resource.as_str().to_owned())
    }

    fn named(&self) -> Result<Resource, Error> {
        resource(&self.name, self.present()?.key.as_deref())
    }

    fn present(&self) -> Result<Present, Error> {
        present(&self.occurrence, self.lock.time().unix_ms()).map_err(|misfit| Error::config(misfit).on(&self.name))
    }

    /// The request of the lock.
    fn into_lock(self) -> Result<(LockRequest, RunOptions, Option<AttemptLimit>), Error> {
        let present = self.present()?;
        let resource = resource(&self.name, present.key.as_deref())?;
        let kept = kept(&self.occurrence, &present, self.lock.is_of_quorum(), self.even_if_done);
        let keep = kept.map_err(|misfit| Error::config(misfit).on(&self.name))?;
        let run = RunOptions { keep, trust_quorum: self.trust_quorum, even_if_done: self.even_if_done };
        let limit = AttemptLimit::new(self.max_attempts, self.retry_after, &run);
        let limit = limit.map_err(|misfit| Error::config(misfit).on(&self.name))?;
        if limit.is_some() {
            resource.of_attempts().map_err(|error| Error::config(error.to_string()).on(&self.name))?;
        }
        if self.replaces {
            let wait = self.lock.settings()?.wait();
            let (watches, waits) = (matches!(wait, Wait::Watch(_)), !self.has_wait || wait != Wait::Once);
            let misfit = check_replace(limit.is_some(), watches, waits).err();
            let misfit = misfit.or_else(|| resource.of_newest().err().map(|error| error.to_string()));
            misfit.map_or(Ok(()), |misfit| Err(Error::config(misfit).on(&self.name)))?;
        }
        Ok((self.lock.named(resource.as_str()).run(run), run, limit))
    }

    /// See [`ffi::check_run`](crate::ffi::check_run).
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.clone().into_lock()?.0.check()
    }

    /// Warns, once in a process, of a length that was most likely meant in a smaller unit.
    fn doubt_lengths(&self) {
        static WARNED: AtomicBool = AtomicBool::new(false);
        let Occurrence { every, cooldown, keep, .. } = self.occurrence;
        for (setting, length) in [("every", every), ("cooldown", cooldown), ("keep", keep)] {
            let Some(meant) = length.and_then(lengths::meant) else { continue };
            if !WARNED.swap(true, Ordering::Relaxed) {
                let (days, hours) = (meant.as_secs() * 1000 / 86_400, meant.as_secs() / 3600);
                tracing::warn!(
                    name: "run.long", target: "leasehold", resource = %self.name,
                    "{setting} of {:?} is {days} days, a thousand times {hours} h: was a smaller unit meant?", self.name
                );
            }
        }
    }

    /// Warns, once in a process, of a cooldown that a start has just missed.
    fn doubt_cooldown(name: &str, cooldown: Duration, completion: &Completion) {
        static WARNED: AtomicBool = AtomicBool::new(false);
        if is_just_missed(cooldown, completion) && !WARNED.swap(true, Ordering::Relaxed) {
            let (cooldown_s, left_s) = (cooldown.as_secs_f64(), completion.left.as_secs_f64());
            tracing::warn!(
                name: "run.just_missed", target: "leasehold", resource = name, cooldown_s, left_s,
                "run.just_missed: {name:?} is skipped for the last {left_s:.1} s of its cooldown of {cooldown_s:.0} s: \
                 started that often, it is skipped every second time; give a cooldown that is a tenth shorter, or a \
                 period (every)"
            );
        }
    }

    pub(crate) async fn begin(self) -> Result<Once, Error> {
        self.doubt_lengths();
        let cooldown = self.occurrence.cooldown.map(|cooldown| (self.name.clone(), cooldown));
        let (even_if_done, replaces, has_wait) = (self.even_if_done, self.replaces, self.has_wait);
        let (lock, run, limit) = self.into_lock()?;
        let client = limit.is_some().then(|| lock.client().clone());
        let lock = if replaces && !has_wait { lock.wait(Duration::MAX) } else { lock };
        let acquired = if replaces { replace::acquire(lock, run).await } else { lock.acquire().await.map(Some) };
        match acquired {
            Ok(None) => Ok(Once::Replaced),
            Ok(Some(lease)) => match limit.zip(client) {
                Some((limit, client)) => attempts::begin(lease, run, limit, client).await,
                None if even_if_done => Ok(Once::Run(Run(lease.that_forgets_attempts()))),
                None => Ok(Once::Run(Run(lease))),
            },
            Err(error) => match (error.kind(), error.completion()) {
                (ErrorKind::Done, Some(completion)) => {
                    if let Some((name, cooldown)) = cooldown {
                        Self::doubt_cooldown(&name, cooldown, completion);
                    }
                    Ok(Once::Done(completion.clone()))
                }
                (ErrorKind::Busy | ErrorKind::TimedOut, _) => Ok(Once::Running(error.holder().cloned())),
                (_, _) => Err(error),
            },
        }
    }

    fn about(mut self, change: impl FnOnce(&mut Occurrence)) -> Self {
        change(&mut self.occurrence);
        self
    }

    fn map(self, change: impl FnOnce(LockRequest) -> LockRequest) -> Self {
        Self { lock: change(self.lock), ..self }
    }

    pub(crate) fn by(self, caller: Caller) -> Self {
        self.map(|lock| lock.by(caller))
    }
}

impl IntoFuture for RunRequest {
    type Output = Result<Once, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.begin())
    }
}
