//! The file, and the connections to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use leasehold_core::Monotonic;
use leasehold_core::queue::ClientId;
use leasehold_core::store::BootId;

use super::connection::{self, Connection};
use super::error::{Kind, SqliteError};
use super::queue::{Queue, Queues};
use super::transaction::Stop;
use crate::host::clock;
use crate::host::fork;
use crate::host::fork::gate::{self, CloseBeforeFork, Pass, Shut};
use crate::transport::Pool;
use crate::transport::wakeups::Wakeups;

/// A file, as one client has it open.
pub(super) struct File {
    path: PathBuf,
    boot: BootId,
    client: ClientId,
    pub(super) queues: Arc<Queues>,
    wakeups: Arc<Wakeups>,
    generation: u64,
}

impl File {
    /// # Errors
    /// The process is being forked, or was at a bad moment.
    pub(super) fn new(path: &Path, boot: BootId, client: ClientId) -> Result<Self, SqliteError> {
        let queues = Arc::new(Queues::new());
        let pass = gate::enter(Monotonic::FAR)?;
        gate::register(&pass, queues.clone());
        drop(pass);
        Ok(Self {
            path: path.to_owned(),
            boot,
            client,
            queues,
            wakeups: Arc::default(),
            generation: fork::generation(),
        })
    }

    /// Shares the wake-ups of the file with others of this process.
    pub(super) fn share(&mut self, wakeups: Arc<Wakeups>) {
        self.wakeups = wakeups;
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) const fn boot(&self) -> BootId {
        self.boot
    }

    /// The name of the client, in the boot that its uptimes belong to.
    pub(super) const fn client(&self) -> (BootId, ClientId) {
        (self.boot, self.client)
    }

    pub(super) fn wakeups(&self) -> &Wakeups {
        &self.wakeups
    }

    /// Tells if the process that opened it was forked since, and this is the child.
    pub(super) fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }

    /// Closes its connections. A later request opens them again.
    pub(super) fn close(&self) {
        if let Ok(_inside) = gate::enter(Monotonic::FAR) {
            self.queues.close();
        }
    }

    fn queue(&self, pool: Pool) -> &Queue {
        match pool {
            Pool::Caller => &self.queues.callers,
            Pool::Background => &self.queues.background,
        }
    }

    /// Gives `work` a connection. In all cases the connection is kept or closed inside the gate.
    pub(super) fn with_connection<R>(
        &self,
        pool: Pool,
        until: Monotonic,
        mut work: impl FnMut(&Connection) -> Result<R, Stop>,
    ) -> Result<R, Stop> {
        if self.is_inherited() {
            let detail = "this store belongs to the parent process; connect again after the fork";
            return Err(Stop::NotApplied(SqliteError::new(Kind::Io, detail)));
        }
        loop {
            let Some(turn) = self.queue(pool).turn(until) else {
                let busy = SqliteError::new(Kind::Busy, "other threads of this process came first");
                return Err(Stop::NotApplied(busy.at(&self.path)));
            };
            let done = {
                let _inside: Pass = gate::enter(until).map_err(|shut| Stop::NotApplied(shut.into()))?;
                match turn.connection(&self.path, until) {
                    Err(error) => Err(Stop::NotApplied(error)),
                    Ok(connection) => {
                        let done = work(&connection);
                        if connection.is_idle() && (done.is_ok() || is_busy(&done)) {
                            turn.keep(connection);
                        } else {
                            connection.abandon();
                        }
                        done
                    }
                }
            };
            // Also when a fork wanted all threads to leave, and those that waited for the file answered "busy".
            if is_busy(&done) && clock::monotonic() < until {
                connection::pause();
                continue;
            }
            return done;
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // A forked child has nothing to close: the fork did it, or it was unclean, and the gate stays shut.
        let Ok(pass) = gate::enter(Monotonic::FAR) else { return };
        let erased: Arc<dyn CloseBeforeFork> = self.queues.clone();
        gate::unregister(&pass, &erased);
        self.queues.close();
    }
}

impl From<Shut> for SqliteError {
    fn from(shut: Shut) -> Self {
        match shut {
            Shut::Forking => Self::new(Kind::Busy, "this process is being forked"),
            Shut::Unclean => Self::new(
                Kind::Permission,
                "this process was forked while another thread of its parent was inside SQLite, so it must not use \
                 SQLite; exec a new program, or fork when no lock is being taken",
            ),
        }
    }
}

fn is_busy<R>(done: &Result<R, Stop>) -> bool {
    matches!(done, Err(Stop::NotApplied(error)) if error.kind() == Kind::Busy)
}
