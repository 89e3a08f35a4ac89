//! The interface `runs`: the names of work that is done once.

use alloc::string::String;
use core::time::Duration;

use leasehold_core::{Resource, period_key};

use crate::Component;
use crate::settings::refused;
use crate::wit::runs as wit;
use crate::wit::types::ConfigError;

impl wit::Guest for Component {
    fn run_resource(name: String, key: Option<String>) -> Result<String, ConfigError> {
        Resource::of_run(&name, key.as_deref()).map(|resource| resource.as_str().into()).map_err(refused)
    }

    fn period_key(unix_ms: u64, every_ms: u64, offset_ms: u64) -> Result<String, ConfigError> {
        period_key(unix_ms, Duration::from_millis(every_ms), Duration::from_millis(offset_ms)).map_err(refused)
    }
}
