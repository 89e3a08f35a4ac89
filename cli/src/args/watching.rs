//! The search for signs of life of a holder, for as long as a wait is too short for it.

use std::path::PathBuf;

use clap::Args;

/// The search for signs of life of a holder.
#[derive(Debug, Args)]
pub(crate) struct WatchingArgs {
    /// Give up at the end of the wait, though the holder may be dead
    ///
    /// On dynamodb://, etcd:// and object stores, a client can tell that a holder is dead only by watching the lock's
    /// record. So after the wait leasehold watches the record until it is renewed (the holder lives; at most about a
    /// third of its ttl), or has not changed for all of its ttl, and then takes the lock. With this option, processes
    /// that live for less than the ttl never take over from a dead holder there, unless they have --observations.
    #[arg(long)]
    pub no_watch: bool,
    /// Keep what was seen of the holder in this folder, for later processes of this machine
    ///
    /// On dynamodb://, etcd:// and object stores: a process that gives up notes since when it has seen the lock's record,
    /// and a later one that finds the record unchanged counts from then on. So a dead holder costs its ttl once, and not
    /// each process again. The folder is made if it is missing; it must belong to this user, and be writable by nobody
    /// else.
    #[arg(long, value_name = "FOLDER")]
    pub observations: Option<PathBuf>,
}
