//! The guard: checks fencing tokens at the protected resource.

use wasmtime::component::ResourceAny;

use crate::component::Component;
use crate::error::{CallError, HostError};
use crate::fence::{DynamodbGuard, RedisGuard, Rejected};
use crate::instance::{Instance, Limits};

/// The `guard` of the WIT: the high-water mark of one guarded item.
pub struct Guard {
    instance: Instance,
    guard: ResourceAny,
}

impl Guard {
    /// A mark as read from storage; `None` where the item was never claimed.
    ///
    /// # Errors
    /// A number that is no token.
    pub fn create(component: &Component, limits: Limits, high_water: Option<u64>) -> Result<Self, CallError<Rejected>> {
        let mut instance = Instance::new(component, limits)?;
        let made = instance
            .call(0, |store, exports| exports.leasehold_protocol_fence().guard().call_create(store, high_water))?;
        Ok(Self { instance, guard: made.map_err(CallError::Refused)? })
    }

    /// The highest token seen, to be written back to storage.
    ///
    /// # Errors
    /// An instance that is lost, here and below.
    pub fn high_water(&mut self) -> Result<Option<u64>, HostError> {
        let guard = self.guard;
        self.instance.call(0, |store, exports| exports.leasehold_protocol_fence().guard().call_high_water(store, guard))
    }

    /// Texts for a guard in DynamoDB.
    ///
    /// # Errors
    /// An instance that is lost.
    pub fn dynamodb(&mut self) -> Result<DynamodbGuard, HostError> {
        self.instance.call(0, |store, exports| exports.leasehold_protocol_fence().call_dynamodb(store))
    }

    /// Texts for a guard in Redis.
    ///
    /// # Errors
    /// An instance that is lost.
    pub fn redis(&mut self) -> Result<RedisGuard, HostError> {
        self.instance.call(0, |store, exports| exports.leasehold_protocol_fence().call_redis(store))
    }

    /// Makes a token the only one accepted from now on, apart from higher ones. Call it before reading the item.
    ///
    /// # Errors
    /// A stale token, or a number that is none.
    pub fn claim(&mut self, token: u64) -> Result<(), CallError<Rejected>> {
        let guard = self.guard;
        let claimed = self
            .instance
            .call(0, |store, exports| exports.leasehold_protocol_fence().guard().call_claim(store, guard, token))?;
        claimed.map_err(CallError::Refused)
    }

    /// Checks that a write with a token may happen.
    ///
    /// # Errors
    /// A stale token, an item that was never claimed, or a number that is no token.
    pub fn check(&mut self, token: u64) -> Result<(), CallError<Rejected>> {
        let guard = self.guard;
        let checked = self
            .instance
            .call(0, |store, exports| exports.leasehold_protocol_fence().guard().call_check(store, guard, token))?;
        checked.map_err(CallError::Refused)
    }

    /// As [`Guard::check`], and also refuses delayed writes of the same lease: `write` starts at 1 and grows.
    ///
    /// # Errors
    /// As for [`Guard::check`], and a write out of order.
    pub fn check_in_order(&mut self, token: u64, write: u64) -> Result<(), CallError<Rejected>> {
        let guard = self.guard;
        let checked = self.instance.call(0, |store, exports| {
            exports.leasehold_protocol_fence().guard().call_check_in_order(store, guard, token, write)
        })?;
        checked.map_err(CallError::Refused)
    }
}
