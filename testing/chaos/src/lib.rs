//! The chaos tests: workers on real stores, while they, the servers and the ways to them are stopped, killed and cut.

pub mod chaos;
pub mod cron;
pub mod http;
pub mod permits;
pub mod sessions;
pub mod shards;
pub mod upgrade;

use std::error::Error;

/// An error is shown to a person at a terminal.
pub type Result<T = (), E = Box<dyn Error>> = std::result::Result<T, E>;
