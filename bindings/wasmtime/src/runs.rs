//! The names of runs: work that is done once.

use crate::component::Component;
use crate::error::{CallError, HostError};
use crate::instance::{Instance, Limits};
use crate::size::{ELEMENT, Size};
use crate::types::ConfigError;
use crate::{Occurrence, RunPlan, ZoneOffset};

/// The functions of the WIT's `runs`.
pub struct Runs {
    instance: Instance,
}

impl Runs {
    /// An instance for these functions alone; it keeps nothing.
    ///
    /// # Errors
    /// Limits that the component does not fit in.
    pub fn new(component: &Component, limits: Limits) -> Result<Self, HostError> {
        Ok(Self { instance: Instance::new(component, limits)? })
    }

    /// The occurrence of a job that these settings mean at that time: its resource, and how long its completion stands.
    ///
    /// # Errors
    /// Settings that contradict each other, or that cannot be.
    pub fn plan_run(
        &mut self,
        name: &str,
        occurrence: &Occurrence,
        unix_ms: u64,
        offsets: &[ZoneOffset],
        is_quorum: bool,
        even_if_done: bool,
    ) -> Result<RunPlan, CallError<ConfigError>> {
        let bytes = name.len() + occurrence.size() + offsets.len() * ELEMENT;
        let planned = self.instance.call(bytes, |store, exports| {
            let runs = exports.leasehold_protocol_runs();
            runs.call_plan_run(store, name, occurrence, unix_ms, offsets, is_quorum, even_if_done)
        })?;
        planned.map_err(CallError::Refused)
    }

    /// The resource of one occurrence of a job: `name@key`.
    ///
    /// # Errors
    /// A name or a key that no run can have.
    pub fn run_resource(&mut self, name: &str, key: Option<&str>) -> Result<String, CallError<ConfigError>> {
        let named = self.instance.call(name.len() + key.map_or(0, str::len), |store, exports| {
            exports.leasehold_protocol_runs().call_run_resource(store, name, key)
        })?;
        named.map_err(CallError::Refused)
    }

    /// The key of a job that runs once in every period: the start of the period in UTC.
    ///
    /// # Errors
    /// A period out of its bounds, or an offset that is not below the period.
    pub fn period_key(
        &mut self,
        unix_ms: u64,
        every_ms: u64,
        offset_ms: u64,
    ) -> Result<String, CallError<ConfigError>> {
        let key = self.instance.call(0, |store, exports| {
            exports.leasehold_protocol_runs().call_period_key(store, unix_ms, every_ms, offset_ms)
        })?;
        key.map_err(CallError::Refused)
    }
}
