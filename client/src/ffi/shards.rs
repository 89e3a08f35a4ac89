//! Shards of callers whose threads cannot wait for callbacks.

use super::SLICE;
use crate::error::Error;
use crate::groups::shards::Shards;

/// See [`Shards::stop`]; waits no longer once `interrupted` answers `true`, and the shards are let go all the same.
///
/// # Errors
/// As there.
pub fn stop(shards: &Shards, interrupted: impl FnMut() -> bool) -> Result<(), Error> {
    shards.stop_until(SLICE, interrupted);
    shards.failure().map_or(Ok(()), Err)
}

/// Stops without waiting for the end of any shard, for a callback that the end itself waits for.
pub fn begin_to_stop(shards: &Shards) {
    shards.begin_to_stop();
}

/// As [`begin_to_stop`], of shards that are not needed any more: for a thread that the callbacks may want.
pub fn dismiss(shards: Shards) {
    shards.dismiss();
}

/// Tells if the worker has ended: it was stopped, or its client was closed.
pub fn is_over(shards: &Shards) -> bool {
    shards.is_over()
}
