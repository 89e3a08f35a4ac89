//! The occurrence of a job that a request is about, by the rules of the core and the zones of this machine.

use std::time::Duration;

use leasehold_core::schedule::OccurrenceError;
pub(super) use leasehold_core::schedule::{Occurrence, Present};

#[cfg(feature = "local-time")]
#[path = "local_time.rs"]
mod local_time;

/// A client without zones, whose requests name none.
#[cfg(not(feature = "local-time"))]
mod local_time {
    pub(super) fn offsets(_: &str, _: u64) -> Result<Vec<leasehold_core::schedule::Offset>, String> {
        Err("this client has no zones: it was built without the feature local-time".to_owned())
    }
}

/// # Errors
/// Settings that contradict each other, or that cannot be.
pub(super) fn present(of: &Occurrence, unix_ms: u64) -> Result<Present, String> {
    let offsets = of.tz.as_deref().map(|zone| local_time::offsets(zone, unix_ms)).transpose()?;
    of.present(unix_ms, &offsets.unwrap_or_default()).map_err(|error| told(&error))
}

/// How long the completion of the present occurrence stands.
///
/// # Errors
/// Settings that contradict each other, or a completion that would end before the period.
pub(super) fn kept(of: &Occurrence, present: &Present, is_of_quorum: bool, removes: bool) -> Result<Duration, String> {
    of.kept(present, is_of_quorum, removes).map_err(|error| told(&error))
}

/// An error in the words of this client, which may have no zones.
fn told(error: &OccurrenceError) -> String {
    if cfg!(not(feature = "local-time")) && *error == OccurrenceError::Unspoken {
        return "say when the work may be done again: key (never for this key, such as a date), every (in the next period), \
                cooldown (after this time), or keep (after this time, if the name alone identifies the work)"
            .to_owned();
    }
    error.to_string()
}
