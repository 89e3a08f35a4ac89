//! The client, call by call.

use wasmtime::Store;
use wasmtime::component::ResourceAny;

use crate::bindings::exports::leasehold::protocol::client::GuestClient;
use crate::client::{Error, Input, Output, Response, Stats, Stepped};
use crate::component::Component;
use crate::error::{CallError, HostError};
use crate::instance::{Guest, Instance, Limits};
use crate::ops::Holding;
use crate::size::{Size, total};
use crate::stores::{Credentials, Store as Place};
use crate::types::{Config, ConfigError, LockId, LockOptions, NodeId, Now, RequestId, RunResult};

/// The `client` of the WIT: the machine for all locks of one set of nodes.
///
/// Every method fails with a [`HostError`] once the instance is lost.
pub struct Client {
    instance: Instance,
    client: ResourceAny,
}

impl Client {
    /// A client of the configured nodes. `seed` are at least 32 random bytes.
    ///
    /// # Errors
    /// A setting out of its bounds.
    pub fn create(
        component: &Component,
        limits: Limits,
        config: &Config,
        seed: &[u8],
        now: Now,
    ) -> Result<Self, CallError<ConfigError>> {
        let mut instance = Instance::new(component, limits)?;
        let bytes = config.size() + seed.len();
        let made = instance.call(bytes, |store, exports| {
            exports.leasehold_protocol_client().client().call_create(store, config, &seed.to_vec(), now)
        })?;
        Ok(Self { instance, client: made.map_err(CallError::Refused)? })
    }

    /// A client that writes its requests in the formats of stores: one store for each of the nodes, in their order.
    ///
    /// # Errors
    /// A setting out of its bounds, or stores that make no sense.
    pub fn create_wired(
        component: &Component,
        limits: Limits,
        config: &Config,
        stores: &[Place],
        seed: &[u8],
        now: Now,
    ) -> Result<Self, CallError<ConfigError>> {
        let mut instance = Instance::new(component, limits)?;
        let bytes = config.size() + total(stores) + seed.len();
        let made = instance.call(bytes, |store, exports| {
            exports.leasehold_protocol_client().client().call_create_wired(store, config, stores, &seed.to_vec(), now)
        })?;
        Ok(Self { instance, client: made.map_err(CallError::Refused)? })
    }

    /// Starts an acquisition under a lock id of the host's choice. `fresh` are at least 16 bytes drawn from the operating
    /// system for this call.
    ///
    /// # Errors
    /// An id in use, too many locks, a closed client, an argument out of its bounds.
    pub fn acquire(
        &mut self,
        lock: LockId,
        resource: &str,
        options: &LockOptions,
        fresh: &[u8],
        now: Now,
    ) -> Result<(), CallError<Error>> {
        self.refusing(resource.len() + options.size() + fresh.len(), |guest, store, client| {
            guest.call_acquire(store, client, lock, &resource.to_owned(), options, &fresh.to_vec(), now)
        })
    }

    /// Gives a lock back, or gives up on getting it.
    ///
    /// # Errors
    /// A lock that is not alive.
    pub fn release(&mut self, lock: LockId, now: Now) -> Result<(), CallError<Error>> {
        self.refusing(0, |guest, store, client| guest.call_release(store, client, lock, now))
    }

    /// Finishes a run that is held: the completion that the work is done is written, and the resource freed, at once.
    ///
    /// # Errors
    /// A lock that is no run, or is not held.
    pub fn finish(&mut self, lock: LockId, run_result: Option<&RunResult>, now: Now) -> Result<(), CallError<Error>> {
        let size = run_result.map_or(0, |result| result.bytes.len());
        self.refusing(size, |guest, store, client| guest.call_finish(store, client, lock, run_result, now))
    }

    /// The host's own reading of the deadline has told somebody that the lease is lost, so it must stay lost.
    ///
    /// # Errors
    /// A lock that is not alive.
    pub fn declare_lost(&mut self, lock: LockId, now: Now) -> Result<(), CallError<Error>> {
        self.refusing(0, |guest, store, client| guest.call_declare_lost(store, client, lock, now))
    }

    /// Cancels all that is pending and releases all that is held.
    ///
    /// # Errors
    /// An instance that is lost.
    pub fn close(&mut self, now: Now) -> Result<(), HostError> {
        self.call(0, |guest, store, client| guest.call_close(store, client, now))
    }

    /// The result of a request.
    ///
    /// # Errors
    /// A response above [`Limits::argument_bytes`]: report it as unknown instead. An instance that is lost.
    pub fn handle_response(&mut self, id: RequestId, response: &Response, now: Now) -> Result<(), HostError> {
        self.call(response.size(), |guest, store, client| guest.call_handle_response(store, client, id, response, now))
    }

    /// Does what is due. `fresh` are at least 16 bytes drawn from the operating system for this call.
    ///
    /// # Errors
    /// Too few fresh bytes.
    pub fn handle_timeout(&mut self, fresh: &[u8], now: Now) -> Result<(), CallError<ConfigError>> {
        self.refusing(fresh.len(), |guest, store, client| {
            guest.call_handle_timeout(store, client, &fresh.to_vec(), now)
        })
    }

    /// A hint that a resource was released; it may be wrong.
    ///
    /// # Errors
    /// An instance that is lost.
    pub fn notified(&mut self, resource: &str, now: Now) -> Result<(), HostError> {
        self.call(resource.len(), |guest, store, client| guest.call_notified(store, client, &resource.to_owned(), now))
    }

    /// The node confirms that wake-ups on a resource will come.
    ///
    /// # Errors
    /// An instance that is lost.
    pub fn subscribed(&mut self, node: NodeId, resource: &str, now: Now) -> Result<(), HostError> {
        self.call(resource.len(), |guest, store, client| {
            guest.call_subscribed(store, client, node, &resource.to_owned(), now)
        })
    }

    /// The node has fresh credentials.
    ///
    /// # Errors
    /// An instance that is lost.
    pub fn credentials_renewed(&mut self, node: NodeId, now: Now) -> Result<(), HostError> {
        self.call(0, |guest, store, client| guest.call_credentials_renewed(store, client, node, now))
    }

    /// Replaces the credentials that the requests to a node carry.
    ///
    /// # Errors
    /// A node that takes none or others, or a secret that no header can hold.
    pub fn set_credentials(
        &mut self,
        node: NodeId,
        credentials: &Credentials,
        now: Now,
    ) -> Result<(), CallError<ConfigError>> {
        self.refusing(credentials.size(), |guest, store, client| {
            guest.call_set_credentials(store, client, node, credentials, now)
        })
    }

    /// A look at a node of a quorum has shown that it votes.
    ///
    /// # Errors
    /// A `loss` of other than 16 bytes.
    pub fn node_votes(&mut self, node: NodeId, loss: Option<&[u8]>, now: Now) -> Result<(), CallError<ConfigError>> {
        let loss = loss.map(<[u8]>::to_vec);
        self.refusing(loss.as_ref().map_or(0, Vec::len), |guest, store, client| {
            guest.call_node_votes(store, client, node, loss.as_ref(), now)
        })
    }

    /// Replaces the seed.
    ///
    /// # Errors
    /// Fewer than 32 bytes.
    pub fn reseed(&mut self, seed: &[u8]) -> Result<(), CallError<ConfigError>> {
        self.refusing(seed.len(), |guest, store, client| guest.call_reseed(store, client, &seed.to_vec()))
    }

    /// The next thing for the host to do; `wake-at` means that there is nothing more.
    ///
    /// # Errors
    /// An instance that is lost.
    pub fn poll_output(&mut self, now: Now) -> Result<Output, HostError> {
        self.call(0, |guest, store, client| guest.call_poll_output(store, client, now))
    }

    /// The whole loop in one call: takes the inputs, does what is due, and answers with all outputs.
    ///
    /// # Errors
    /// Too few fresh bytes, a new seed or a loss of the wrong size, or credentials that do not fit their node: then no
    /// input was taken.
    pub fn step(&mut self, fresh: &[u8], now: Now, inputs: &[Input]) -> Result<Stepped, CallError<ConfigError>> {
        let bytes = fresh.len() + total(inputs);
        self.refusing(bytes, |guest, store, client| guest.call_step(store, client, &fresh.to_vec(), now, inputs))
    }

    /// How much validity a lease has left, in nanoseconds; 0 when it is not held.
    ///
    /// # Errors
    /// An instance that is lost.
    pub fn remaining_ns(&mut self, lock: LockId, now: Now) -> Result<u64, HostError> {
        self.call(0, |guest, store, client| guest.call_remaining_ns(store, client, lock, now))
    }

    /// The holder that blocks a pending acquisition, as far as the store shows it.
    ///
    /// # Errors
    /// An instance that is lost.
    pub fn holder(&mut self, lock: LockId) -> Result<Option<Holding>, HostError> {
        self.call(0, |guest, store, client| guest.call_holder(store, client, lock))
    }

    /// The name of the state that a lock is in; `None` when it is not alive.
    ///
    /// # Errors
    /// An instance that is lost.
    pub fn state(&mut self, lock: LockId) -> Result<Option<String>, HostError> {
        self.call(0, |guest, store, client| guest.call_state(store, client, lock))
    }

    /// Counts of what the client keeps and has seen.
    ///
    /// # Errors
    /// An instance that is lost.
    pub fn stats(&mut self) -> Result<Stats, HostError> {
        self.call(0, |guest, store, client| guest.call_stats(store, client))
    }

    /// Returns true if no lock is alive, no request is in flight and no output is left to poll.
    ///
    /// # Errors
    /// An instance that is lost.
    pub fn is_idle(&mut self) -> Result<bool, HostError> {
        self.call(0, |guest, store, client| guest.call_is_idle(store, client))
    }

    fn call<T>(
        &mut self,
        argument_bytes: usize,
        call: impl FnOnce(GuestClient<'_>, &mut Store<Guest>, ResourceAny) -> wasmtime::Result<T>,
    ) -> Result<T, HostError> {
        let client = self.client;
        self.instance
            .call(argument_bytes, |store, exports| call(exports.leasehold_protocol_client().client(), store, client))
    }

    fn refusing<T, E>(
        &mut self,
        argument_bytes: usize,
        call: impl FnOnce(GuestClient<'_>, &mut Store<Guest>, ResourceAny) -> wasmtime::Result<Result<T, E>>,
    ) -> Result<T, CallError<E>> {
        self.call(argument_bytes, call)?.map_err(CallError::Refused)
    }
}
