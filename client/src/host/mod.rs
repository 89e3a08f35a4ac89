//! The only code that asks this machine: for time, randomness, threads, and what process this is.

pub(crate) mod clock;
pub(crate) mod entropy;
pub(crate) mod fork;
pub(crate) mod host_clock;
pub(crate) mod owner_label;
pub(crate) mod sync;
pub(crate) mod threads;
pub(crate) mod time;
#[cfg(feature = "testing")]
pub(crate) mod world;
