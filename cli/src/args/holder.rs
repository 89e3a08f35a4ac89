//! The arguments of commands about the holder of a lock.

use clap::Args;

use super::StoreArgs;

#[derive(Debug, Args)]
pub(crate) struct BreakArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The lock
    pub resource: String,
    /// Only if its holder has this fencing token, as `leasehold inspect` shows it
    ///
    /// Each grant has its own token, so a later holder keeps the lock.
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<u64>,
    /// Only if its holder has this label; * stands for any characters
    ///
    /// With default labels, 'worker-7:1234:*' matches every thread of process 1234 on the machine worker-7.
    #[arg(long, value_name = "LABEL")]
    pub owner: Option<String>,
    /// Do not ask; needed without a terminal
    #[arg(long)]
    pub yes: bool,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}
