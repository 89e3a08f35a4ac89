//! A run as data: the world, the jobs of its workers, and all faults.
//!
//! A run is a function of its script alone. Without a fault in the script, a message takes the usual time and a process
//! runs at once. So a script can be made smaller by leaving things out, which is how a failure is understood.

mod check;

use std::time::Duration;

use leasehold_core::config::{Drift, Poll, Quorum, RunOptions};
use leasehold_core::member::QuorumId;
use leasehold_core::{Config, ConfigError, LockOptions, NodeConfig, NodeId, SessionLabel, Wait};
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
    /// The name of the script.
    pub name: String,
    /// The reason why it is worth keeping.
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
    pub foreign_clients: Vec<ForeignClient>,
}

/// Settings that hold for the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// The drift that all clients assume, in parts per million.
    pub drift_ppm: u32,
    /// The longest that a client awaits one reply.
    pub request_timeout_ns: u64,
    /// The usual time of a message, one way.
    pub latency_ns: u64,
    /// The store; absent where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<store::Spec>,
    /// The nodes of a quorum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<store::Spec>,
    /// The longest that a record of the quorum stands: for about as long a node that has lost its data abstains.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub max_ttl_ns: u64,
    /// True if the quorum's nodes have no markers when the world begins, as before `init`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unmarked: bool,
    /// True if clients read before they write, as where reads are cheaper.
    #[serde(default)]
    pub reads: bool,
    /// True if the store notifies waiters of a release.
    #[serde(default)]
    pub watch: bool,
    /// True if waiters stand in the queue. Needs `watch`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub queues: bool,
    /// True if clients keep their locks by sessions where only observers can declare a record dead. Needs such a store or node.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sessions: bool,
    /// True if each host has a kernel of its own, and so a boot of its own.
    #[serde(default)]
    pub kernels_apart: bool,
    /// The number of resources.
    pub resources: usize,
    /// The time when faults and jobs end.
    pub heals_ns: TrueTime,
    /// The end of the clients then.
    pub ending: Ending,
}

impl World {
    /// The settings of every client.
    ///
    /// # Errors
    /// A drift, a request timeout or a max_ttl outside its bounds.
    pub fn config(&self) -> Result<Config, ConfigError> {
        let polled = |spec: &store::Spec| self.is_quorum() && spec.kind == store::Kind::Dynamodb;
        let node = |spec: &store::Spec| NodeConfig {
            // As in reality: reads are cheaper there, and there are no notifications.
            poll: if self.reads || polled(spec) { Poll::Read } else { Poll::Acquire },
            watch: self.watch && !polled(spec),
            durability: spec.durability(),
            ..NodeConfig::default()
        };
        let mut config = Config::new(self.specs().iter().map(node).collect())?;
        if self.is_quorum() {
            config = config.with_quorum(Quorum::new(QUORUM, Duration::from_nanos(self.max_ttl_ns))?);
        }
        if self.sessions {
            let observed = self.specs().iter().zip(0..).filter(|(spec, _)| spec.kind == store::Kind::Dynamodb);
            config =
                config.with_observed(observed.map(|(_, n)| NodeId::new(n))).with_session(SessionLabel::new("host")?);
        }
        let config = config.with_drift(Drift::from_ppm(self.drift_ppm)?).with_queues(self.queues && self.watch);
        config.with_request_timeout(Duration::from_nanos(self.request_timeout_ns))
    }

    /// The store, or the nodes of the quorum.
    pub fn specs(&self) -> &[store::Spec] {
        self.store.as_ref().map_or(&self.nodes, std::slice::from_ref)
    }

    /// The specs, to be changed.
    pub fn specs_mut(&mut self) -> &mut [store::Spec] {
        match &mut self.store {
            Some(store) => std::slice::from_mut(store),
            None => &mut self.nodes,
        }
    }

    /// True if there are several nodes.
    pub const fn is_quorum(&self) -> bool {
        self.store.is_none()
    }

    /// True if all hosts are processes of one machine.
    pub fn one_kernel(&self) -> bool {
        self.specs().iter().any(|spec| spec.kind == store::Kind::Sqlite) && !self.kernels_apart
    }
}

/// The quorum of the nodes of a world.
pub const QUORUM: QuorumId = QuorumId([0x51; 16]);

/// The end of the clients when faults end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// All crash at once; a newcomer must get every lock within the time that is promised.
    Crash,
    /// All clients are closed. All locks must be released, and a newcomer gets every lock at once.
    Close,
    /// The holders crash. Waiting clients must get the locks within the promised time.
    Inherit,
}

/// One process and its machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// The excess of its monotonic clock's rate over true time, in parts per million.
    #[serde(default)]
    pub rate_ppm: i32,
    /// The time by which its wall clock is ahead.
    #[serde(default)]
    pub unix_offset_ms: i64,
    /// True if its monotonic clock stops while the machine is suspended, which it must not.
    #[serde(default)]
    pub forgets_suspend: bool,
    /// True if it reads its clock before it reads what arrived, which it must not.
    #[serde(default)]
    pub stale_now: bool,
    /// True if its fresh bytes come from a generator of its own, which a fork copies, instead of from the system.
    #[serde(default, skip_serializing_if = "is_false")]
    pub own_entropy: bool,
    /// True if it starts only as the child of another host.
    #[serde(default)]
    pub unborn: bool,
    /// Its workers, each with its jobs in order.
    #[serde(default)]
    pub workers: Vec<Vec<Job>>,
}

/// A worker's use of one lock. By default it waits without limit, and neither holds nor writes; `ttl_ns` must be given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Pause before it begins.
    pub after_ns: u64,
    /// The resource, by number.
    pub resource: usize,
    /// The ttl.
    pub ttl_ns: u64,
    /// The time to try: absent forever, 0 once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ns: Option<u64>,
    /// It watches a record that only observers can declare dead beyond the end of its `wait_ns`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub watches: bool,
    /// The time for which the lock stays closed after an expiry.
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
    /// Makes it a run, whose work is done once: the time for which its completion stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_ns: Option<u64>,
    /// The work of the run fails: the lock is released, without a completion.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fails: bool,
    /// The time for which the lock is held.
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
    /// The options of the acquisition.
    ///
    /// # Errors
    /// A setting outside its bounds.
    pub fn options(&self, host: usize) -> Result<LockOptions, ConfigError> {
        let ns = Duration::from_nanos;
        let mut options = LockOptions::builder().ttl(ns(self.ttl_ns)).lock_delay(ns(self.lock_delay_ns));
        options = options.owner(&format!("host {host}")).wait(match self.wait_ns {
            None => Wait::Forever,
            Some(wait) if self.watches => Wait::Watch(ns(wait)),
            Some(wait) => Wait::For(ns(wait)),
        });
        if let Some(max_hold) = self.max_hold_ns {
            options = options.max_hold(ns(max_hold));
        }
        if self.no_renewal {
            options = options.no_renewal();
        }
        if let Some(keep) = self.keep_ns {
            options = options.run(RunOptions { keep: ns(keep), ..RunOptions::default() });
        }
        options.build()
    }
}

/// A fault, and its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The time.
    pub at_ns: TrueTime,
    /// The kind of fault.
    pub what: What,
}

/// Kinds of faults. `host` and `child` are numbers of hosts, `node` is that of a node, 0 where there is only one store;
/// `for_ns` says how long it lasts.
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
    /// Nothing gets through between a host and these nodes, or any where none is named.
    Partition {
        host: usize,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        nodes: Vec<usize>,
        for_ns: u64,
    },
    /// The store refuses every connection.
    StoreDown {
        #[serde(default, skip_serializing_if = "is_first")]
        node: usize,
        for_ns: u64,
    },
    /// The store swallows every request.
    StoreSilent {
        #[serde(default, skip_serializing_if = "is_first")]
        node: usize,
        for_ns: u64,
    },
    /// The store answers with a failure after it has carried out the request.
    StoreErrors {
        #[serde(default, skip_serializing_if = "is_first")]
        node: usize,
        for_ns: u64,
    },
    /// The store asks for patience.
    Throttle {
        #[serde(default, skip_serializing_if = "is_first")]
        node: usize,
        for_ns: u64,
    },
    /// The store wants fresh credentials.
    Credentials {
        #[serde(default, skip_serializing_if = "is_first")]
        node: usize,
        for_ns: u64,
    },
    /// The store refuses for good, as when a right was taken away.
    Denied {
        #[serde(default, skip_serializing_if = "is_first")]
        node: usize,
        for_ns: u64,
    },
    /// The store's clock runs at another rate from now on.
    StoreRate {
        #[serde(default, skip_serializing_if = "is_first")]
        node: usize,
        rate_ppm: i32,
    },
    /// The store's wall clock is set.
    StoreJump {
        #[serde(default, skip_serializing_if = "is_first")]
        node: usize,
        by_ms: i64,
    },
    /// The store loses everything, and goes on.
    StoreWiped,
    /// A node of a quorum loses everything, marker included, and goes on.
    NodeWiped { node: usize },
    /// A node of a quorum is away, and comes back in another run: the same server again, or a replica in its place.
    NodeRestart { node: usize, for_ns: u64, data: Data },
    /// The store drops one record, but not its counter.
    Evicted {
        #[serde(default, skip_serializing_if = "is_first")]
        node: usize,
        resource: usize,
    },
    /// A supervisor revokes the lease of the holder, on every node that answers.
    Revoked { resource: usize },
}

/// The data of a node after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Data {
    /// Everything.
    Kept,
    /// Nothing.
    Lost,
    /// The data of some time before: the last writes had not reached the disk, or the replica.
    Lags {
        /// The time.
        by_ns: u64,
    },
}

/// A message that does not take the usual way. Requests of a host are counted from 1, each with its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// The host.
    pub host: usize,
    /// To whom.
    pub to: Peer,
    /// To which node, where there are several.
    #[serde(default, skip_serializing_if = "is_first")]
    pub node: usize,
    /// The number of the message, in the order of sending to that peer and node.
    pub n: u64,
    /// The way there.
    #[serde(default, skip_serializing_if = "Way::is_usual")]
    pub request: Way,
    /// The way back.
    #[serde(default, skip_serializing_if = "Way::is_usual")]
    pub reply: Way,
    /// The connection breaks this long after sending, and the host notices. The request goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_ns: Option<u64>,
}

/// The other end of a link.
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
    /// Sessions, which a supervisor tells of revoked leases. It shares host 0.
    Session,
}

/// The journey of one message.
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
    /// True if nothing happens to it.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// A step at which a process is held up. Steps of a host are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// The host.
    pub host: usize,
    /// The number of the step.
    pub n: u64,
    /// The place in the step.
    pub place: StallPoint,
    /// The length.
    pub for_ns: u64,
}

/// The place in a step where a process is stalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StallPoint {
    /// Before it reads its clock.
    Before,
    /// Between its decisions and their effects: the requests leave late, and nothing of the process runs.
    Process,
    /// As above, but only the thread that talks to the store is stalled. Workers go on.
    Driver,
}

/// A client of another library that takes a lock for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForeignClient {
    /// The time when it begins to try.
    pub at_ns: TrueTime,
    /// The resource, by number.
    pub resource: usize,
    /// The ttl of its record.
    pub ttl_ns: u64,
    /// The excess of its clock's rate over true time, in parts per million.
    #[serde(default)]
    pub rate_ppm: i32,
    /// The time for which it holds the lock, with heartbeats.
    pub hold_ns: u64,
    /// True if it releases the lock at the end instead of dying.
    #[serde(default)]
    pub releases: bool,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// A script that does not fit the format, with the place; another version; an index without a meaning.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let script: Self = serde_json::from_str(text).map_err(|error| format!("not a script: {error}"))?;
        if script.format != FORMAT {
            return Err(format!("the script has format {}, this program reads format {FORMAT}", script.format));
        }
        script.check()?;
        Ok(script)
    }

    /// The script as readable text.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The most by which wall clocks of hosts can differ.
    pub fn wall_spread_ms(&self) -> u64 {
        let (mut least, mut most) = (0_i64, 0_i64);
        for (n, host) in self.hosts.iter().enumerate() {
            let jumps = self.faults.iter().filter_map(|fault| {
                if let What::WallJump { host, by_ms } = fault.what { Some(by_ms).filter(|_| host == n) } else { None }
            });
            let (mut low, mut high) = (host.unix_offset_ms, host.unix_offset_ms);
            for by_ms in jumps {
                (low, high) = (low + by_ms.min(0), high + by_ms.max(0));
            }
            (least, most) = (least.min(low), most.max(high));
        }
        most.abs_diff(least)
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
fn is_first(value: &usize) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}
