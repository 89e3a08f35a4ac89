//! Settings of a client and of an acquisition.

use leasehold_core::{self as core, config};
use serde::{Deserialize, Serialize};

use super::bytes::{from_hex, to_hex};
use super::member::{Durability, Quorum, is_not_declared, not_declared};
use super::{Error, Within, duration, each, integer, names, ns};

names! {
    /// How to look whether a held lock became free.
    Poll = config::Poll {
        /// By trying.
        Acquire,
        /// By reading first.
        Read,
    }
}

/// Settings of one client; nothing is left to defaults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// One for each store.
    pub nodes: Vec<NodeConfig>,
    /// How far the rate of a clock may be off, in parts per million.
    pub drift_ppm: u32,
    /// The longest that one reply is awaited.
    pub request_timeout_ns: u64,
    /// Bounds on what the client keeps.
    pub limits: Limits,
    /// What the nodes remember of their quorum; absent for a single store, and for nodes that never forget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<Quorum>,
}

/// What one store can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// How to look whether a held lock became free.
    pub poll: Poll,
    /// Whether it can tell waiters of a release.
    pub watch: bool,
    /// Most renewals in one request.
    pub batch: u64,
    /// In a quorum, whether the store keeps every acknowledged write through a crash; absent where that is not known.
    #[serde(default = "not_declared", skip_serializing_if = "is_not_declared")]
    pub durability: Durability,
}

/// Bounds on what one client keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Acquisitions alive at once.
    pub locks: u64,
    /// Background releases alive at once.
    pub orphans: u64,
    /// Resources whose foreign versions are remembered.
    pub observations: u64,
}

impl From<&core::Config> for Config {
    fn from(config: &core::Config) -> Self {
        let limits = config.limits();
        Self {
            nodes: config.nodes().iter().map(NodeConfig::from).collect(),
            drift_ppm: config.drift().ppm(),
            request_timeout_ns: ns(config.request_timeout()),
            limits: Limits {
                locks: limits.locks as u64,
                orphans: limits.orphans as u64,
                observations: limits.observations as u64,
            },
            quorum: config.quorum().map(Quorum::from),
        }
    }
}

impl From<&core::NodeConfig> for NodeConfig {
    fn from(node: &core::NodeConfig) -> Self {
        Self { poll: node.poll.into(), watch: node.watch, batch: node.batch as u64, durability: node.durability.into() }
    }
}

impl Config {
    /// The settings themselves.
    ///
    /// # Errors
    /// Whatever the core refuses.
    pub fn to_core(&self) -> Result<core::Config, Error> {
        let node = |node: &NodeConfig| {
            let batch = count(node.batch).within("batch")?;
            let durability = node.durability.into();
            Ok(core::NodeConfig { poll: node.poll.into(), watch: node.watch, batch, durability })
        };
        let limits = config::Limits {
            locks: count(self.limits.locks).within("limits.locks")?,
            orphans: count(self.limits.orphans).within("limits.orphans")?,
            observations: count(self.limits.observations).within("limits.observations")?,
        };
        let config = core::Config::new(each(&self.nodes, node).within("nodes")?).within("nodes")?;
        let mut config = config.with_drift(config::Drift::from_ppm(self.drift_ppm).within("drift_ppm")?);
        if let Some(quorum) = &self.quorum {
            config = config.with_quorum(quorum.to_core().within("quorum")?);
            if config.quorum().is_none() {
                return Err(Error::new("a single store has no use for it")).within("quorum");
            }
        }
        let request_timeout = duration(self.request_timeout_ns).within("request_timeout_ns")?;
        config.with_request_timeout(request_timeout).within("request_timeout_ns")?.with_limits(limits).within("limits")
    }
}

fn count(value: u64) -> Result<usize, Error> {
    usize::try_from(integer(value)?).map_err(Error::new)
}

/// What one acquisition asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockOptions {
    /// How long a grant lasts without renewal.
    pub ttl_ns: u64,
    /// How long to try.
    pub wait: Wait,
    /// When to push the expiry out.
    pub renewal: Renewal,
    /// How long the lock stays closed after a lease ran out; absent for 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lock_delay_ns: u64,
    /// When renewal stops, counted from the grant; absent for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hold_ns: Option<u64>,
    /// A label for people; absent for an empty one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// Bytes for others to read, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
}

/// How long to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Wait {
    /// One attempt.
    Once {},
    /// New attempts until some time has passed.
    For {
        /// How long.
        wait_ns: u64,
    },
    /// Until granted, cancelled or refused.
    Forever {},
}

/// When to push the expiry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Renewal {
    /// Never.
    Off {},
    /// Again and again.
    Every {
        /// Time between renewals.
        interval_ns: u64,
    },
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl From<&core::LockOptions> for LockOptions {
    fn from(options: &core::LockOptions) -> Self {
        Self {
            ttl_ns: ns(options.ttl().get()),
            wait: match options.wait() {
                core::Wait::Once => Wait::Once {},
                core::Wait::For(wait) => Wait::For { wait_ns: ns(wait) },
                core::Wait::Forever => Wait::Forever {},
            },
            renewal: match options.renew_every() {
                Some(interval) => Renewal::Every { interval_ns: ns(interval) },
                None => Renewal::Off {},
            },
            lock_delay_ns: ns(options.lock_delay()),
            max_hold_ns: options.max_hold().map(ns),
            owner: options.owner().as_str().to_owned(),
            data: options.data().map(|data| to_hex(data.as_bytes())),
        }
    }
}

impl LockOptions {
    /// The options themselves.
    ///
    /// # Errors
    /// Whatever the core refuses, and what it would round: a file says what it means.
    pub fn to_core(&self) -> Result<core::LockOptions, Error> {
        let mut builder = core::LockOptions::builder()
            .ttl(duration(self.ttl_ns).within("ttl_ns")?)
            .lock_delay(duration(self.lock_delay_ns).within("lock_delay_ns")?)
            .owner(&self.owner);
        builder = builder.wait(match self.wait {
            Wait::Once {} => core::Wait::Once,
            Wait::For { wait_ns } => core::Wait::For(duration(wait_ns).within("wait.for.wait_ns")?),
            Wait::Forever {} => core::Wait::Forever,
        });
        builder = match self.renewal {
            Renewal::Off {} => builder.no_renewal(),
            Renewal::Every { interval_ns } => {
                builder.renew_every(duration(interval_ns).within("renewal.every.interval_ns")?)
            }
        };
        if let Some(max_hold_ns) = self.max_hold_ns {
            builder = builder.max_hold(duration(max_hold_ns).within("max_hold_ns")?);
        }
        if let Some(data) = &self.data {
            builder = builder.data(&from_hex(data).within("data")?);
        }
        let options = builder.build()?;
        if Self::from(&options) == *self {
            Ok(options)
        } else {
            Err(Error::new("the core would round this: ttl and lock_delay are whole milliseconds, a wait of 0 is once"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_setting_survives() {
        let nodes = vec![
            core::NodeConfig {
                poll: config::Poll::Read,
                watch: true,
                batch: 7,
                durability: core::member::Durability::Declared,
            },
            core::NodeConfig { batch: 1, ..core::NodeConfig::default() },
        ];
        let limits = config::Limits { locks: 3, orphans: 4, observations: 5 };
        let config = core::Config::new(nodes).unwrap().with_drift(config::Drift::from_ppm(500).unwrap());
        let config = config.with_request_timeout(Duration::from_millis(20)).unwrap().with_limits(limits).unwrap();
        assert_eq!(Config::from(&config).to_core().unwrap(), config);
        let quorum = core::Quorum::new(core::member::QuorumId([1; 16]), Duration::from_secs(9)).unwrap();
        let config = config.with_quorum(quorum);
        assert_eq!(Config::from(&config).to_core().unwrap(), config);

        let builder = || core::LockOptions::builder().ttl(Duration::from_secs(7)).owner("me");
        for options in [
            builder(),
            builder().no_renewal().wait(core::Wait::Once).lock_delay(Duration::from_secs(1)),
            builder().renew_every(Duration::from_secs(1)).wait(core::Wait::For(Duration::from_nanos(3))).data(&[1, 2]),
            builder().max_hold(Duration::from_secs(60)),
        ] {
            let options = options.build().unwrap();
            assert_eq!(LockOptions::from(&options).to_core().unwrap(), options);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let good = LockOptions::from(&core::LockOptions::builder().build().unwrap());
        let refused = |options: LockOptions| options.to_core().unwrap_err().to_string();
        assert_eq!(refused(LockOptions { ttl_ns: 1, ..good.clone() }), "ttl 1ns is below the smallest, 100ms");
        assert_eq!(
            refused(LockOptions { max_hold_ns: Some(1 << 53), ..good.clone() }),
            "max_hold_ns: 9007199254740992 is above the largest, 2^53 - 1"
        );
        assert_eq!(
            refused(LockOptions { data: Some("0".into()), ..good.clone() }),
            "data: \"0\" has an odd number of digits"
        );
        assert!(refused(LockOptions { wait: Wait::For { wait_ns: 0 }, ..good }).contains("round"));
        let config = Config::from(&core::Config::new(vec![core::NodeConfig::default()]).unwrap());
        let refused = Config { drift_ppm: 1, ..config.clone() }.to_core().unwrap_err().to_string();
        assert_eq!(refused, "drift_ppm: drift of 1 ppm is outside 100 to 100000 ppm");
        let quorum = Some(Quorum { id: "01".repeat(16), max_ttl_ns: 60_000_000_000 });
        let refused = Config { quorum, ..config.clone() }.to_core().unwrap_err().to_string();
        assert_eq!(refused, "quorum: a single store has no use for it");
        let nodes = vec![NodeConfig { batch: 1 << 53, ..config.nodes[0] }];
        let refused = Config { nodes, ..config }.to_core().unwrap_err().to_string();
        assert!(refused.starts_with("nodes[0].batch: "), "{refused}");
    }
}
