//! The arguments about attempts at a job.

use std::time::Duration;

use clap::Args;

use crate::{duration, status};

#[derive(Debug, Args)]
pub(crate) struct AttemptsArgs {
    /// How often the job may be begun; after that it is given up [default: without limit]
    ///
    /// Each attempt counts, also one whose process dies. `once --forget` begins to count anew.
    #[arg(long, value_name = "COUNT")]
    pub max_attempts: Option<u32>,
    /// The pause from the start of an attempt to the start of the next one [default: none]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, allow_hyphen_values = true)]
    #[arg(requires = "max_attempts")]
    pub retry_after: Option<Duration>,
    /// Exit status if the job was given up
    #[arg(long, value_name = "STATUS", default_value_t = status::GIVEN_UP)]
    pub given_up_status: u8,
}
