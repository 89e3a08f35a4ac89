//! Settings and arguments on their way in, and why one was refused on its way out.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use leasehold_core::config::{self, Poll};
use leasehold_core::member::{LossId, QuorumId};
use leasehold_core::{self as core_, ConfigError, Entropy, LockOptions, Monotonic, Now, Seed};

use crate::ops::{ms_down, small};
use crate::wit::types as wit;

pub(crate) fn now(now: wit::Now) -> Now {
    Now { monotonic: Monotonic::from_ns(now.monotonic_ns), unix_ms: now.unix_ms }
}

pub(crate) fn seed(bytes: &[u8]) -> Result<Seed, wit::ConfigError> {
    leading("seed", bytes)
}

pub(crate) fn fresh(bytes: &[u8]) -> Result<Entropy, wit::ConfigError> {
    leading("fresh", bytes)
}

pub(crate) fn loss(bytes: Option<Vec<u8>>) -> Result<Option<LossId>, wit::ConfigError> {
    bytes.map(|bytes| exactly("loss", &bytes).map(LossId)).transpose()
}

/// The first bytes of what may be longer.
fn leading<const N: usize>(what: &str, bytes: &[u8]) -> Result<[u8; N], wit::ConfigError> {
    bytes.first_chunk().copied().ok_or_else(|| too_few(what, bytes, N))
}

fn exactly<const N: usize>(what: &str, bytes: &[u8]) -> Result<[u8; N], wit::ConfigError> {
    if bytes.len() > N {
        let (what, bytes, max_bytes) = (what.into(), small(bytes.len()), small(N));
        return Err(wit::ConfigError::TooLong(wit::TooLong { what, bytes, max_bytes }));
    }
    leading(what, bytes)
}

fn too_few(what: &str, bytes: &[u8], min: usize) -> wit::ConfigError {
    let (what, bytes, min_bytes) = (what.into(), small(bytes.len()), small(min));
    wit::ConfigError::TooFewBytes(wit::TooFewBytes { what, bytes, min_bytes })
}

pub(crate) fn config(config: wit::Config) -> Result<core_::Config, wit::ConfigError> {
    let nodes = config.nodes.into_iter().map(node).collect();
    let mut made = core_::Config::new(nodes).map_err(refused)?.with_limits(limits(config.limits)).map_err(refused)?;
    if let Some(ppm) = config.drift_ppm {
        made = made.with_drift(config::Drift::from_ppm(ppm).map_err(refused)?);
    }
    if let Some(ms) = config.request_timeout_ms {
        made = made.with_request_timeout(Duration::from_millis(ms)).map_err(refused)?;
    }
    if let Some(quorum) = config.quorum {
        let id = QuorumId(exactly("quorum id", &quorum.id)?);
        let max_ttl = quorum.max_ttl_ms.map_or(core_::Quorum::MAX_TTL, Duration::from_millis);
        made = made.with_quorum(core_::Quorum::new(id, max_ttl).map_err(refused)?);
    }
    Ok(made)
}

fn node(node: wit::NodeConfig) -> core_::NodeConfig {
    let default = core_::NodeConfig::default();
    core_::NodeConfig {
        poll: match node.poll {
            wit::Poll::Acquire => Poll::Acquire,
            wit::Poll::Read => Poll::Read,
        },
        watch: node.watch,
        batch: node.batch.map_or(default.batch, large),
        durability: node.durability.map_or(default.durability, Into::into),
    }
}

fn limits(limits: wit::Limits) -> config::Limits {
    let default = config::Limits::default();
    config::Limits {
        locks: limits.locks.map_or(default.locks, large),
        orphans: limits.orphans.map_or(default.orphans, large),
        observations: limits.observations.map_or(default.observations, large),
    }
}

pub(crate) fn large(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

pub(crate) fn run_options(run: wit::RunOptions) -> config::RunOptions {
    let keep = run.keep_ms.map_or(config::RunOptions::default().keep, Duration::from_millis);
    config::RunOptions { keep, trust_quorum: run.trust_quorum, even_if_done: run.even_if_done }
}

pub(crate) fn options(options: wit::LockOptions) -> Result<LockOptions, wit::ConfigError> {
    let mut builder = LockOptions::builder().lock_delay(Duration::from_millis(options.lock_delay_ms));
    if let Some(ms) = options.ttl_ms {
        builder = builder.ttl(Duration::from_millis(ms));
    }
    if let Some(ms) = options.max_hold_ms {
        builder = builder.max_hold(Duration::from_millis(ms));
    }
    if let Some(data) = &options.data {
        builder = builder.data(data);
    }
    if let Some(run) = options.run {
        builder = builder.run(run_options(run));
    }
    builder = builder.owner(&options.owner).wait(match options.wait {
        wit::Wait::Once => core_::Wait::Once,
        wit::Wait::For(wait) => core_::Wait::For(Duration::from_millis(wait.wait_ms)),
        wit::Wait::Forever => core_::Wait::Forever,
    });
    builder = match options.renewal {
        wit::Renewal::Automatic => builder,
        wit::Renewal::Off => builder.no_renewal(),
        wit::Renewal::Every(every) => builder.renew_every(Duration::from_millis(every.interval_ms)),
    };
    builder.build().map_err(refused)
}

pub(crate) fn refused(error: ConfigError) -> wit::ConfigError {
    let what = String::from;
    match error {
        ConfigError::EmptyResource => wit::ConfigError::EmptyResource,
        ConfigError::EmptyKey => wit::ConfigError::EmptyKey,
        ConfigError::TooLong { what: name, bytes, max } => {
            let (bytes, max_bytes) = (small(bytes), small(max));
            wit::ConfigError::TooLong(wit::TooLong { what: what(name), bytes, max_bytes })
        }
        ConfigError::ControlCharacter { what: name, at, code } => {
            wit::ConfigError::ControlCharacter(wit::ControlCharacter { what: what(name), at: small(at), code })
        }
        ConfigError::SessionLabel { given } => {
            wit::ConfigError::SessionLabel(wit::RefusedSessionLabel { given: given.into() })
        }
        ConfigError::TooShort { what: name, value, min } => {
            let (value_ms, min_ms) = (ms_down(value), ms_down(min));
            wit::ConfigError::TooShort(wit::TooShort { what: what(name), value_ms, min_ms })
        }
        ConfigError::TooFar { what: name, value, max } => {
            let (value_ms, max_ms) = (ms_down(value), ms_down(max));
            wit::ConfigError::TooFar(wit::TooFar { what: what(name), value_ms, max_ms })
        }
        ConfigError::KeepBelowTtl { keep, ttl } => {
            let (keep_ms, ttl_ms) = (ms_down(keep), ms_down(ttl));
            wit::ConfigError::KeepBelowTtl(wit::KeepBelowTtl { keep_ms, ttl_ms })
        }
        ConfigError::Drift { ppm, min: min_ppm, max: max_ppm } => {
            wit::ConfigError::Drift(wit::DriftOutOfBounds { ppm, min_ppm, max_ppm })
        }
        ConfigError::Nodes { count, max } => {
            wit::ConfigError::Nodes(wit::WrongNodeCount { count: small(count), max: small(max) })
        }
        ConfigError::ZeroLimit { what: name } => wit::ConfigError::ZeroLimit(wit::ZeroLimit { what: what(name) }),
        // The core may learn to refuse for other reasons before the interface has a case for them.
        other => wit::ConfigError::Other(wit::OtherError { message: other.to_string() }),
    }
}
