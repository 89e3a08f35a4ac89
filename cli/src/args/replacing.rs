//! The arguments about a client that runs the job already.

use clap::Args;

use crate::status;

#[derive(Debug, Args)]
pub(crate) struct ReplacingArgs {
    /// Take the job over from a client that runs it; the newest start gets it
    ///
    /// That client is notified at its next renewal that its lease is lost, and ends its command as --on-lost says. leasehold waits until
    /// it has let go, or its lease has run out, and then starts the command. --wait is the longest wait.
    #[arg(long, conflicts_with = "max_attempts")]
    pub replace: bool,
    /// Exit status if a newer start has taken the place of this one
    #[arg(long, value_name = "STATUS", default_value_t = status::REPLACED)]
    pub replaced_status: u8,
}
