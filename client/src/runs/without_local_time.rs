//! A client without zones, whose periods are those of UTC.

use std::time::Duration;

use leasehold_core::schedule::Due;

#[derive(Clone, Debug, Default)]
pub(crate) struct LocalTimes;

impl LocalTimes {
    pub(crate) fn has_cron(&self) -> bool {
        false
    }

    pub(crate) fn due(&self, _: Option<Duration>, _: Duration, _: u64) -> Result<Option<Due>, String> {
        Ok(None)
    }
}
