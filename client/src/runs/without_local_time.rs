//! A client without zones, whose periods are those of UTC.

use std::time::Duration;

use leasehold_core::schedule::{Due, Schedule};

#[derive(Clone, Debug, Default)]
pub(crate) struct LocalTimes;

impl LocalTimes {
    pub(crate) fn has_cron(&self) -> bool {
        false
    }

    pub(crate) fn due(&self, _: Option<Duration>, _: Duration, _: u64) -> Result<Option<(Due, Schedule)>, String> {
        Ok(None)
    }
}
