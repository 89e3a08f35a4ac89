//! The RESP functions for a host that has its own connection to Redis.

use wasmtime::component::ResourceAny;

use crate::bindings::exports::leasehold::protocol::redis::Malformed;
use crate::component::Component;
use crate::error::{CallError, HostError};
use crate::instance::{Instance, Limits};
use crate::size::total;
use crate::stores::RedisCommand;
use crate::types::ConfigError;

/// The functions of the WIT's `redis`.
pub struct Redis {
    instance: Instance,
}

impl Redis {
    /// An instance for these functions alone; it keeps nothing.
    ///
    /// # Errors
    /// Limits that the component does not fit in.
    pub fn new(component: &Component, limits: Limits) -> Result<Self, HostError> {
        Ok(Self { instance: Instance::new(component, limits)? })
    }

    /// Commands as the bytes to be sent, one after the other.
    ///
    /// # Errors
    /// An instance that is lost.
    pub fn encode(&mut self, commands: &[RedisCommand]) -> Result<Vec<u8>, HostError> {
        self.instance
            .call(total(commands), |store, exports| exports.leasehold_protocol_redis().call_encode(store, commands))
    }

    /// The channel on which the release of a resource is told.
    ///
    /// # Errors
    /// A name that no lock can have.
    pub fn channel(&mut self, resource: &str) -> Result<Vec<u8>, CallError<ConfigError>> {
        let named = self.instance.call(resource.len(), |store, exports| {
            exports.leasehold_protocol_redis().call_channel(store, &resource.to_owned())
        })?;
        named.map_err(CallError::Refused)
    }

    /// The resource that a message on a channel says is free; `None` if it is no message of ours.
    ///
    /// # Errors
    /// An instance that is lost.
    pub fn released_by(&mut self, channel: &[u8], message: &[u8]) -> Result<Option<String>, HostError> {
        self.instance.call(channel.len() + message.len(), |store, exports| {
            exports.leasehold_protocol_redis().call_released_by(store, channel, message)
        })
    }
}

/// The `reader` of the WIT: tells whole replies apart in what comes over one connection.
pub struct Reader {
    instance: Instance,
    reader: ResourceAny,
}

impl Reader {
    /// A reader that has read nothing. `max_reply_bytes` is the longest that one reply may be, by default 1 MiB.
    ///
    /// # Errors
    /// A bound of 0.
    pub fn create(
        component: &Component,
        limits: Limits,
        max_reply_bytes: Option<u32>,
    ) -> Result<Self, CallError<ConfigError>> {
        let mut instance = Instance::new(component, limits)?;
        let made = instance.call(0, |store, exports| {
            exports.leasehold_protocol_redis().reader().call_create(store, max_reply_bytes)
        })?;
        Ok(Self { instance, reader: made.map_err(CallError::Refused)? })
    }

    /// Takes bytes that have arrived, in pieces of any size.
    ///
    /// # Errors
    /// An instance that is lost.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), HostError> {
        let reader = self.reader;
        self.instance.call(bytes.len(), |store, exports| {
            exports.leasehold_protocol_redis().reader().call_push(store, reader, bytes)
        })
    }

    /// The next so many replies; `None` as long as they are not all there.
    ///
    /// # Errors
    /// A server that does not speak RESP, or says too much: the connection is of no further use.
    pub fn take(&mut self, replies: u32) -> Result<Option<Vec<u8>>, CallError<Malformed>> {
        let reader = self.reader;
        let taken = self
            .instance
            .call(0, |store, exports| exports.leasehold_protocol_redis().reader().call_take(store, reader, replies))?;
        taken.map_err(CallError::Refused)
    }
}
