//! A run as data: the world, what its workers want, and every fault that befalls them.
//!
//! A run is a function of its script alone. Whatever is not in the script goes well: a message takes the usual time, a
//! process runs at once. So a script can be made smaller by leaving things out, which is how a failure is understood.

use std::time::Duration;

use leasehold_core::config::{Drift, Poll};
use leasehold_core::{Config, ConfigError, LockOptions, NodeConfig, Wait};
use serde::{Deserialize, Serialize};

use crate::clock::TrueTime;
use crate::store;

/// The version of the format that this program reads and writes.
pub const FORMAT: u32 = 1;

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// [`FORMAT`].
    pub format: u32,
    /// What to call it.
    pub name: String,
    /// Why it is worth keeping.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The seed that it was made from, before anything was taken away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Settings that hold for the whole run.
    pub world: World,
    /// The processes.
    pub hosts: Vec<Host>,
    /// Faults at an instant, or from one on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// Messages that do not take the usual way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Message>,
    /// Steps at which a process is held up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<Stall>,
    /// Clients of other libraries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strangers: Vec<Stranger>,
}

/// Settings that hold for the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// The drift that all clients assume, in parts per million.
    pub drift_ppm: u32,
    /// The longest that a client awaits one reply.
    pub request_timeout_ns: u64,
    /// What a message usually takes, one way.
    pub latency_ns: u64,
    /// The store.
    pub store: store::Spec,
    /// Whether looking comes before writing, as where reads are cheaper.
    #[serde(default)]
    pub reads: bool,
    /// Whether the store tells waiters of a release.
    #[serde(default)]
    pub watch: bool,
    /// Whether each host has a kernel of its own, and so a boot of its own.
    #[serde(default)]
    pub kernels_apart: bool,
    /// How many resources there are.
    pub resources: usize,
    /// When faults and jobs end, and the world gets well.
    pub heals_ns: TrueTime,
    /// What becomes of the clients then.
    pub ending: Ending,
}

impl World {
    /// The settings of every client.
    ///
    /// # Errors
    /// A drift or a request timeout outside its bounds.
    pub fn config(&self) -> Result<Config, ConfigError> {
        let node = NodeConfig {
            poll: if self.reads { Poll::Read } else { Poll::Acquire },
            watch: self.watch,
            ..NodeConfig::default()
        };
        let config = Config::new(vec![node])?.with_drift(Drift::from_ppm(self.drift_ppm)?);
        config.with_request_timeout(Duration::from_nanos(self.request_timeout_ns))
    }

    /// Whether all hosts are processes of one machine.
    pub fn one_kernel(&self) -> bool {
        self.store.kind == store::Kind::Sqlite && !self.kernels_apart
    }
}

/// What becomes of the clients when the world gets well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// All crash at once; a newcomer must get every lock within the time that is promised.
    Crash,
    /// All are closed; everything must be given back, and a newcomer gets every lock at once.
    Close,
    /// Whoever holds crashes; those who wait must follow within the time that is promised.
    Inherit,
}

/// One process and its machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// How much faster than true time its monotonic clock runs, in parts per million.
    #[serde(default)]
    pub rate_ppm: i32,
    /// How far its wall clock is ahead.
    #[serde(default)]
    pub unix_offset_ms: i64,
    /// Whether its monotonic clock stands still while the machine is suspended, which it must not.
    #[serde(default)]
    pub forgets_suspend: bool,
    /// Whether it reads its clock before it reads what arrived, which it must not.
    #[serde(default)]
    pub stale_now: bool,
    /// Whether its fresh bytes come from a generator of its own, which a fork copies, instead of from the system.
    #[serde(default, skip_serializing_if = "is_false")]
    pub own_entropy: bool,
    /// Comes to life only as somebody's child.
    #[serde(default)]
    pub unborn: bool,
    /// Its workers, each with its jobs in order.
    #[serde(default)]
    pub workers: Vec<Vec<Job>>,
}

/// What one worker wants of one lock. By default it waits without limit, and neither holds nor writes; `ttl_ns` must be
/// given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Pause before it begins.
    pub after_ns: u64,
    /// Which resource, by number.
    pub resource: usize,
    /// How long a grant lasts.
    pub ttl_ns: u64,
    /// How long to try: absent for ever, 0 once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ns: Option<u64>,
    /// How long the lock stays closed after an expiry.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lock_delay_ns: u64,
    /// Ends the renewals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hold_ns: Option<u64>,
    /// Without automatic renewal.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_renewal: bool,
    /// Cancelled this long after its start, if still waiting then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_ns: Option<u64>,
    /// How long the lock is held.
    pub hold_ns: u64,
    /// Guarded writes meanwhile.
    pub writes: u32,
    /// Writes without asking whether the lease still stands: only the guard can save the data then.
    #[serde(default, skip_serializing_if = "is_false")]
    pub careless: bool,
    /// Its last write deletes the item, and the mark of the guard with it, which it must not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deletes: bool,
}

impl Job {
    /// What it asks of the core.
    ///
    /// # Errors
    /// A setting outside its bounds.
    pub fn options(&self, host: usize) -> Result<LockOptions, ConfigError> {
        let ns = Duration::from_nanos;
        let mut options = LockOptions::builder().ttl(ns(self.ttl_ns)).lock_delay(ns(self.lock_delay_ns));
        options = options.owner(&format!("host {host}")).wait(match self.wait_ns {
            None => Wait::Forever,
            Some(wait) => Wait::For(ns(wait)),
        });
        if let Some(max_hold) = self.max_hold_ns {
            options = options.max_hold(ns(max_hold));
        }
        if self.no_renewal {
            options = options.no_renewal();
        }
        options.build()
    }
}

/// A fault, and when it strikes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// When.
    pub at_ns: TrueTime,
    /// What.
    pub what: What,
}

/// Kinds of faults. `host` and `child` are numbers of hosts; `for_ns` says how long it lasts.
#[expect(missing_docs, reason = "the fields are named alike, and described above")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum What {
    /// The process dies, and comes back after a while.
    Crash { host: usize, for_ns: u64 },
    /// The machine restarts: the process dies, and its uptime begins again under a new boot.
    Reboot { host: usize, for_ns: u64 },
    /// The process is copied, seed included, into the unborn host `child`.
    Fork { host: usize, child: usize },
    /// The process does not run.
    Stop { host: usize, for_ns: u64 },
    /// The machine does not run.
    Suspend { host: usize, for_ns: u64 },
    /// The wall clock is set.
    WallJump { host: usize, by_ms: i64 },
    /// The monotonic clock runs at another rate from now on.
    Rate { host: usize, rate_ppm: i32 },
    /// Nothing gets through between a host and the store.
    Partition { host: usize, for_ns: u64 },
    /// The store refuses every connection.
    StoreDown { for_ns: u64 },
    /// The store swallows every request.
    StoreSilent { for_ns: u64 },
    /// The store says that it failed, having done what was asked.
    StoreErrors { for_ns: u64 },
    /// The store asks for patience.
    Throttle { for_ns: u64 },
    /// The store wants fresh credentials.
    Credentials { for_ns: u64 },
    /// The store refuses for good, as when a right was taken away.
    Denied { for_ns: u64 },
    /// The store's clock runs at another rate from now on.
    StoreRate { rate_ppm: i32 },
    /// The store's wall clock is set.
    StoreJump { by_ms: i64 },
    /// The store loses everything.
    StoreWiped,
    /// The store drops one record, but not its counter.
    Evicted { resource: usize },
}

/// A message that does not take the usual way. Requests of a host are counted from 1, each with its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Whose.
    pub host: usize,
    /// To whom.
    pub to: Peer,
    /// Which, in the order of sending.
    pub n: u64,
    /// The way there.
    #[serde(default, skip_serializing_if = "Way::is_usual")]
    pub request: Way,
    /// The way back.
    #[serde(default, skip_serializing_if = "Way::is_usual")]
    pub reply: Way,
    /// The connection breaks this long after sending, and the host is told so; the request goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_ns: Option<u64>,
}

/// Who is at the other end of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Peer {
    /// The store.
    #[default]
    Store,
    /// The guarded registers.
    Register,
    /// The store's wake-ups, which are counted on their own.
    Wakeups,
}

/// How one message travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Way {
    /// It gets lost.
    #[serde(skip_serializing_if = "is_false")]
    pub lost: bool,
    /// It takes this much longer than usual.
    #[serde(skip_serializing_if = "is_zero")]
    pub delay_ns: u64,
    /// A copy follows this long after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_ns: Option<u64>,
}

impl Way {
    /// Nothing befalls it.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// A step at which a process is held up. Steps of a host are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// Whose.
    pub host: usize,
    /// Which step.
    pub n: u64,
    /// Where in the step.
    pub place: Place,
    /// For how long.
    pub for_ns: u64,
}

/// Where in a step a process is held up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Before it reads its clock.
    Before,
    /// Between its decisions and what they lead to: the requests leave late, and nothing of the process runs.
    Process,
    /// As above, but only the thread that speaks with the store is held up; workers go on.
    Driver,
}

/// A client of another library that takes a lock for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stranger {
    /// When it begins to try.
    pub at_ns: TrueTime,
    /// Which resource, by number.
    pub resource: usize,
    /// How long its record lasts.
    pub ttl_ns: u64,
    /// How much faster than true time its clock runs, in parts per million.
    #[serde(default)]
    pub rate_ppm: i32,
    /// How long it holds the lock, keeping it alive.
    pub hold_ns: u64,
    /// Whether it gives the lock back at the end, instead of dying.
    #[serde(default)]
    pub releases: bool,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// What does not fit the format, with the place; another version; an index that names nothing.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let script: Self = serde_json::from_str(text).map_err(|error| format!("not a script: {error}"))?;
        if script.format != FORMAT {
            return Err(format!("the script has format {}, this program reads format {FORMAT}", script.format));
        }
        script.check()?;
        Ok(script)
    }

    /// As readable text.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Whether everything that is named by number exists.
    pub(crate) fn check(&self) -> Result<(), String> {
        let host = |n: usize| if n < self.hosts.len() { Ok(()) } else { Err(format!("there is no host {n}")) };
        let resource = |n: usize| {
            if n < self.world.resources { Ok(()) } else { Err(format!("there is no resource {n}")) }
        };
        if self.hosts.is_empty() || self.world.resources == 0 {
            return Err("a world needs a host and a resource".to_owned());
        }
        self.within_bounds()?;
        self.world.config().map_err(|error| format!("world: {error}"))?;
        for (n, spec) in self.hosts.iter().enumerate() {
            for job in spec.workers.iter().flatten() {
                resource(job.resource)?;
                job.options(n).map_err(|error| format!("a job of host {n}: {error}"))?;
            }
        }
        for named in self.messages.iter().map(|message| message.host).chain(self.stalls.iter().map(|stall| stall.host))
        {
            host(named)?;
        }
        for stranger in &self.strangers {
            resource(stranger.resource)?;
        }
        for fault in &self.faults {
            match &fault.what {
                What::Fork { host: parent, child } => {
                    host(*parent)?;
                    host(*child)?;
                }
                What::Crash { host: n, .. }
                | What::Reboot { host: n, .. }
                | What::Stop { host: n, .. }
                | What::Suspend { host: n, .. }
                | What::WallJump { host: n, .. }
                | What::Rate { host: n, .. }
                | What::Partition { host: n, .. } => host(*n)?,
                What::Evicted { resource: n } => resource(*n)?,
                What::StoreDown { .. }
                | What::StoreSilent { .. }
                | What::StoreErrors { .. }
                | What::Throttle { .. }
                | What::Credentials { .. }
                | What::Denied { .. }
                | What::StoreRate { .. }
                | What::StoreJump { .. }
                | What::StoreWiped => {}
            }
        }
        Ok(())
    }

    /// Numbers that no run means, and that would only overflow.
    fn within_bounds(&self) -> Result<(), String> {
        const HOUR_NS: u64 = 3_600_000_000_000;
        let at_most = |what: &str, value: u64, most: u64| {
            if value <= most { Ok(()) } else { Err(format!("{what} {value} is above the largest, {most}")) }
        };
        let rate = |what: &str, ppm: i32| at_most(what, ppm.unsigned_abs().into(), 500_000);
        at_most("hosts", self.hosts.len() as u64, 1_000)?;
        at_most("resources", self.world.resources as u64, 1_000)?;
        at_most("heals_ns", self.world.heals_ns.0, 24 * HOUR_NS)?;
        at_most("latency_ns", self.world.latency_ns, HOUR_NS)?;
        rate("rate_ppm of the store", self.world.store.rate_ppm)?;
        at_most("unix_offset_ms of the store", self.world.store.unix_offset_ms.unsigned_abs(), HOUR_NS)?;
        for host in &self.hosts {
            rate("rate_ppm of a host", host.rate_ppm)?;
            at_most("unix_offset_ms of a host", host.unix_offset_ms.unsigned_abs(), HOUR_NS)?;
            for job in host.workers.iter().flatten() {
                at_most("writes", job.writes.into(), 10_000)?;
                for ns in [job.after_ns, job.hold_ns, job.wait_ns.unwrap_or(0), job.cancel_ns.unwrap_or(0)] {
                    at_most("a time of a job", ns, 1_000 * HOUR_NS)?;
                }
            }
        }
        for stranger in &self.strangers {
            rate("rate_ppm of a stranger", stranger.rate_ppm)?;
            at_most("hold_ns of a stranger", stranger.hold_ns, HOUR_NS)?;
            if !(1_000_000..=HOUR_NS).contains(&stranger.ttl_ns) {
                return Err(format!("ttl_ns {} of a stranger is not between 1 ms and 1 h", stranger.ttl_ns));
            }
        }
        for message in &self.messages {
            for way in [message.request, message.reply] {
                at_most("delay_ns", way.delay_ns, 24 * HOUR_NS)?;
                at_most("copy_ns", way.copy_ns.unwrap_or(0), 24 * HOUR_NS)?;
            }
        }
        for fault in &self.faults {
            if let What::StoreJump { by_ms } | What::WallJump { by_ms, .. } = fault.what {
                at_most("by_ms", by_ms.unsigned_abs(), HOUR_NS / 1_000_000)?;
            }
        }
        Ok(())
    }

    /// The longest that any record of ours lasts unless it is renewed.
    pub fn longest_record_ns(&self) -> u64 {
        let jobs = self.hosts.iter().flat_map(|host| host.workers.iter().flatten());
        jobs.map(|job| job.ttl_ns + job.lock_delay_ns).max().unwrap_or(0)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}
