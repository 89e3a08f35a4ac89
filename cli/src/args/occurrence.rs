//! The arguments that say which occurrence of a job is meant.

use std::time::Duration;

use clap::Args;

use crate::duration;

/// The part of a job that is done once.
#[derive(Debug, Args)]
pub(crate) struct OccurrenceArgs {
    /// The occurrence of the job: a date, an invoice, a batch; each is done once
    ///
    /// At least 1 byte, no control characters, and 1024 bytes together with the name.
    #[arg(long, value_name = "KEY", conflicts_with = "every")]
    pub key: Option<String>,
    /// One occurrence in each period, such as 1d: its key is the start of the period in UTC, by this machine's clock
    ///
    /// At least 1s. Where the clocks of two machines differ, one may still be in the old period when the other begins the
    /// new one; each period is still done at most once.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_hyphen_values = true)]
    pub every: Option<Duration>,
    /// A shift of the periods, the first of which began at midnight UTC on 1 January 1970, a Thursday; shorter than a period
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_hyphen_values = true)]
    #[arg(requires = "every")]
    pub offset: Option<Duration>,
    /// The local time of day at which the periods of --every begin, such as 02:00; they are whole days then, and --tz is needed
    #[arg(long, value_name = "HH:MM")]
    pub at: Option<String>,
    /// The zone by whose clocks --every and --cron count, such as Europe/Berlin or UTC
    ///
    /// The key is the local time with the zone as written here. A time that comes twice when clocks are set back is done once; so is
    /// one that clocks leave out, as soon as they are past it.
    #[arg(long, value_name = "ZONE")]
    pub tz: Option<String>,
    /// One occurrence for each time of a cron expression by the clocks of --tz, such as '0 2 * * 1-5'
    ///
    /// Minute, hour, day of the month, month, day of the week. The occurrence is the latest one until now, so a machine that comes
    /// late does it.
    #[arg(long, value_name = "EXPRESSION", conflicts_with_all = ["key", "every"])]
    pub cron: Option<String>,
}
