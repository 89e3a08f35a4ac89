//! The lease under which a command runs.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::{duration, status};

const DEFAULT_TTL: Duration = Duration::from_secs(30);

/// The lease under which a command runs.
#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    /// The lifetime of the lease without renewal: 100ms to 24h
    ///
    /// leasehold renews it after a third of that. If leasehold is killed or its machine dies, others wait that long; if
    /// the store cannot be reached for that long, the lease is lost.
    /// [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_hyphen_values = true)]
    pub ttl: Option<Duration>,
    /// The holder's label that others see: at most 256 bytes [default: host:pid:thread]
    #[arg(long, value_name = "LABEL")]
    pub owner: Option<String>,
    /// A name for the session of this process, such as ci-42: 1 to 64 letters, digits and -_.:@/
    ///
    /// `leasehold sessions` shows it, and `leasehold revoke --session` asks all processes of that name to release their
    /// locks.
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// Stop renewing this long after the grant: at least the ttl
    ///
    /// So a command that hangs cannot hold the lock forever: its lease ends, and the command with it. Off by default.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_hyphen_values = true)]
    pub max_hold: Option<Duration>,
    /// The action when the lease is lost
    #[arg(long, value_name = "ACTION", default_value = "term")]
    pub on_lost: OnLost,
    /// Exit status if the lease was lost or in danger
    #[arg(long, value_name = "STATUS", default_value_t = status::LOST)]
    pub lost_status: u8,
    /// Report on stderr when the lock is acquired, with which token, and when it is released
    #[arg(short, long)]
    pub verbose: bool,
}

impl HoldArgs {
    pub(crate) fn ttl(&self) -> Duration {
        self.ttl.unwrap_or(DEFAULT_TTL)
    }
}

/// The action when the lease is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnLost {
    /// TERM while the lease is in danger, KILL before it ends
    Term,
    /// The command goes on, and a warning is printed
    Ignore,
}
