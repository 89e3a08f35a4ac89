//! Time and randomness of a client. What a client does by time asks this, and not the clock: so a clock of tests can take its
//! place. Transports to servers and files ask the clock, since nobody can move that of a server.

#![allow(clippy::disallowed_methods, reason = "clients ask this file for the time")]

use std::time::Duration;

use leasehold_core::store::{BootId, StoreNow};
use leasehold_core::{Monotonic, Now};

use crate::error::Error;
use crate::host::sync::Arc;
#[cfg(feature = "testing")]
use crate::host::world::World;
use crate::host::{clock, entropy};

/// Code of a user's.
pub(crate) type Callback = Box<dyn FnOnce() + Send>;

/// The next turn that a task has asked for.
#[derive(Default)]
pub(crate) struct Ring {
    pub(crate) at: Option<Monotonic>,
    /// It need not sleep until then.
    pub(crate) is_cut_short: bool,
}

/// One who does something by the time of a client.
#[cfg_attr(not(feature = "testing"), allow(dead_code, reason = "on a machine, a thread keeps time"))]
pub(crate) trait Kept: Send + Sync {
    /// When it wants its next turn.
    fn due(&self) -> Monotonic;

    /// Does what is due. Answers whether that was its last turn.
    fn turn(self: Arc<Self>) -> bool;
}

/// The time by which a client lives.
#[derive(Clone, Debug)]
pub(crate) enum Time {
    /// The clocks, random bytes and threads of this machine.
    System,
    /// Those of a test.
    #[cfg(feature = "testing")]
    Test(Arc<World>),
}

impl Time {
    /// The monotonic clock alone.
    pub(crate) fn monotonic(&self) -> Monotonic {
        match self {
            Self::System => clock::monotonic(),
            #[cfg(feature = "testing")]
            Self::Test(world) => world.monotonic(),
        }
    }

    /// Milliseconds since 1970.
    pub(crate) fn unix_ms(&self) -> u64 {
        match self {
            Self::System => clock::unix_ms(),
            #[cfg(feature = "testing")]
            Self::Test(world) => world.unix_ms(),
        }
    }

    /// Both clocks.
    pub(crate) fn now(&self) -> Now {
        Now { monotonic: self.monotonic(), unix_ms: self.unix_ms() }
    }

    /// The clocks of a store in this process.
    pub(crate) fn store_now(&self, boot: BootId) -> StoreNow {
        StoreNow { boot, uptime: self.monotonic(), unix_ms: self.unix_ms() }
    }

    /// Fills all of it with random bytes.
    ///
    /// # Errors
    /// [`ErrorKind::StoreUnavailable`](crate::ErrorKind::StoreUnavailable): the system gives none.
    pub(crate) fn fill(&self, bytes: &mut [u8]) -> Result<(), Error> {
        match self {
            Self::System => entropy::fill(bytes),
            #[cfg(feature = "testing")]
            Self::Test(world) => {
                world.fill(bytes);
                Ok(())
            }
        }
    }

    /// The end of a wait that begins now.
    pub(crate) fn after(&self, wait: Duration) -> Monotonic {
        let until = self.monotonic().plus(wait);
        self.note(Some(until));
        until
    }

    /// Notes that a future of this thread waits for what happens by this time: a thread that waits for the future has to let it happen.
    pub(crate) fn note_wait(&self) {
        self.note(None);
    }

    #[cfg_attr(not(feature = "testing"), allow(clippy::unused_self, reason = "nobody lets the time of a machine pass"))]
    fn note(&self, _until: Option<Monotonic>) {
        match self {
            Self::System => {}
            #[cfg(feature = "testing")]
            Self::Test(world) => world.note_wait(_until),
        }
    }

    /// Gives one its turns: on a thread of its own, which `on_thread` starts, or by the world of the test.
    ///
    /// # Errors
    /// As `on_thread`.
    pub(crate) fn keep<K: Kept + 'static>(
        &self,
        kept: &Arc<K>,
        on_thread: impl FnOnce(Arc<K>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self {
            Self::System => on_thread(Arc::clone(kept)),
            #[cfg(feature = "testing")]
            Self::Test(world) => {
                world.keep(Arc::clone(kept) as Arc<dyn Kept>);
                Ok(())
            }
        }
    }

    /// Calls a callback of a user's: on a thread for them, to which `on_thread` hands it, or by the world of the test.
    pub(crate) fn call(&self, callback: Callback, on_thread: impl FnOnce(Callback)) {
        match self {
            Self::System => on_thread(callback),
            #[cfg(feature = "testing")]
            Self::Test(world) => world.call(callback),
        }
    }

    /// Waits on this thread until something holds, for so long at most, and answers whether it holds. On a machine another
    /// thread brings it about: `on_thread` waits for that.
    pub(crate) fn wait_until(
        &self,
        _most: Duration,
        _holds: impl Fn() -> bool,
        on_thread: impl FnOnce() -> bool,
    ) -> bool {
        match self {
            Self::System => on_thread(),
            #[cfg(feature = "testing")]
            Self::Test(world) => world.step_until(_most, _holds),
        }
    }
}
