//! One machine: starts the job in each key, by its own clock.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use leasehold::{Client, Error, ErrorKind, Lease, Once, RunRequest, RunResult};
use leasehold_bench::child::say;
use leasehold_bench::rng::Rng;

use super::builder;
use crate::Result;

/// The name of the part that a child process plays.
pub const MACHINE: &str = "machine";
/// The name of the job.
pub(super) const JOB: &str = "nightly-report";

/// How long a machine stands by for another one: longer than any stop and any ttl.
const WAIT: Duration = Duration::from_secs(20);
/// The length of the work.
const WORK_TIME: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(250)];

/// How often a job that may fail is begun.
pub(super) const MOST_ATTEMPTS: u32 = 3;
/// Of so many attempts, one succeeds.
const FAILS: u64 = 3;

/// The way in which a job is kept from being done twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// As runs, whose results those who come later get.
    Runs,
    /// As runs whose work fails most of the time, and may be begun three times.
    Attempts,
    /// Under a lock of the key's own.
    Locks,
}

impl Manner {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Runs, Self::Attempts, Self::Locks];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Attempts => "attempts",
            Self::Locks => "locks",
        }
    }
}

/// The work of one process. Times by the machine's own clock are ahead of the real one by `offset`.
pub struct Task {
    pub(super) manner: Manner,
    pub(super) ttl: Duration,
    /// The start of key 0, in milliseconds since 1970.
    pub(super) begin: u64,
    pub(super) period: Duration,
    pub(super) offset: Duration,
    pub(super) keys: Range<u64>,
    pub(super) seed: u64,
    pub(super) urls: Vec<String>,
}

pub(super) fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

impl Task {
    pub(super) fn text(&self) -> String {
        let ms = |time: Duration| time.as_millis();
        format!(
            "{} {} {} {} {} {} {} {} {}",
            self.manner.name(),
            ms(self.ttl),
            self.begin,
            ms(self.period),
            ms(self.offset),
            self.keys.start,
            self.keys.end,
            self.seed,
            self.urls.join(" ")
        )
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let word = words.next()?;
        let manner = Manner::ALL.into_iter().find(|manner| manner.name() == word)?;
        let mut number = || words.next()?.parse::<u64>().ok();
        let ttl = Duration::from_millis(number()?);
        let begin = number()?;
        let period = Duration::from_millis(number()?);
        let offset = Duration::from_millis(number()?);
        let keys = number()?..number()?;
        let seed = number()?;
        let urls = words.map(str::to_owned).collect();
        Some(Self { manner, ttl, begin, period, offset, keys, seed, urls })
    }
}

/// Plays one machine.
///
/// # Errors
/// When the store cannot be used at all.
pub fn work(text: &str) -> Result {
    let task = Task::parse(text).ok_or("not the task of a machine")?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let client = builder(task.urls.len()).connect(task.urls.as_slice()).await?;
        let mut jobs = Vec::new();
        let mut rng = Rng::new(task.seed, 1);
        for key in task.keys.clone() {
            let due = task.begin + key * task.period.as_millis() as u64;
            let now = unix_ms() + task.offset.as_millis() as u64;
            tokio::time::sleep(Duration::from_millis(due.saturating_sub(now))).await;
            let (client, work) = (client.clone(), rng.between(WORK_TIME[0], WORK_TIME[1]));
            let (manner, ttl, fails) = (task.manner, task.ttl, !rng.once_in(FAILS));
            jobs.push(tokio::spawn(async move {
                let answer = match manner {
                    Manner::Runs => as_run(client.once(JOB).key(key.to_string()).ttl(ttl), key, work, false).await,
                    Manner::Attempts => {
                        let request = client.once(JOB).key(key.to_string()).ttl(ttl).max_attempts(MOST_ATTEMPTS);
                        as_run(request, key, work, fails).await
                    }
                    Manner::Locks => under_lock(&client, key, ttl, work).await,
                };
                match answer {
                    Ok(what) => say(&format!("{what} {key} 0")),
                    Err(error) if error.kind() == ErrorKind::Lost => say(&format!("lost {key} 0")),
                    Err(error) if error.kind() == ErrorKind::GivenUp => say(&format!("given_up {key} 0")),
                    Err(error) if error.kind() == ErrorKind::FinishUnconfirmed => say(&format!("unconfirmed {key} 0")),
                    // A process that stood still may have met the end of its wait.
                    Err(error) if error.kind() == ErrorKind::StoreUnavailable => say(&format!("unavailable {key} 0")),
                    Err(error) => say(&format!("failed {key} 0 {error}")),
                }
            }));
        }
        for job in jobs {
            job.await?;
        }
        Ok(client.close().await?)
    })
}

async fn as_run(
    request: RunRequest,
    key: u64,
    work: Duration,
    fails: bool,
) -> std::result::Result<&'static str, Error> {
    match request.wait(WAIT).await? {
        Once::Run(run) => {
            body(&run, key, work).await;
            if fails {
                run.fail("as it was told to").await?;
                return Ok("failing");
            }
            run.finish_with(result_of(run.token())).await?;
            Ok("finished")
        }
        // Any other result is not that of the run that has done it.
        Once::Done(done) => Ok(match done.result {
            Some(result) if result != result_of(done.token) => "different",
            Some(_) => "skipped",
            None => "missing",
        }),
        Once::Running(_) | _ => Ok("left"),
    }
}

/// The result that a run leaves.
fn result_of(token: u64) -> RunResult {
    RunResult::Bytes(token.to_string().into_bytes())
}

async fn under_lock(
    client: &Client,
    key: u64,
    ttl: Duration,
    work: Duration,
) -> std::result::Result<&'static str, Error> {
    let lease = client.lock(format!("{JOB}-{key}")).ttl(ttl).wait(WAIT).await?;
    body(&lease, key, work).await;
    lease.release().await?;
    Ok("finished")
}

/// The work, of a program that does not look if it still has the lease: the guard does.
async fn body(lease: &Lease, key: u64, work: Duration) {
    let token = lease.token();
    say(&format!("begun {key} {token}"));
    tokio::time::sleep(work).await;
    say(&format!("written {key} {token}"));
}
