//! The arguments of commands about the holder of a lock, or of many.

use clap::Args;

use super::StoreArgs;

#[derive(Debug, Args)]
pub(crate) struct BreakArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The lock
    pub name: String,
    #[command(flatten)]
    pub meant: MeantArgs,
    /// Do not ask; needed without a terminal
    #[arg(long)]
    pub yes: bool,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The lock
    #[arg(required_unless_present = "session")]
    pub name: Option<String>,
    #[command(flatten)]
    pub meant: MeantArgs,
    /// All locks of the sessions of this name, as `leasehold sessions` shows it; * stands for any characters
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "token", "owner"])]
    pub session: Option<String>,
    /// Do not ask; needed without a terminal
    #[arg(long)]
    pub yes: bool,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

/// The holder that is meant.
#[derive(Debug, Args)]
pub(crate) struct MeantArgs {
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
}

#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Answer in JSON: one object for each session, on a line of its own
    #[arg(long)]
    pub json: bool,
}
