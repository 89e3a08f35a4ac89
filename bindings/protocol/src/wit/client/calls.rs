//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.

use crate::wit::ops::Holding;
use crate::wit::stores::{Credentials, Store};
use crate::wit::types::{Config, ConfigError, LockOptions, Now, RunResult};
use super::{Error, Input, Outcomes, Output, Response, Revocation, Stats, Stepped};
use crate::face::*;

/// What there is beside values.
pub(crate) trait Guest {
    /// See [`GuestClient`].
    #[allow(dead_code)]
    type Client: GuestClient;
}

/// Its calls.
pub(crate) trait GuestClient: Sized {
    /// A client of the configured nodes.
    fn create(config: Config, seed: Vec<u8>, now: Now) -> Result<Client, ConfigError>;
    /// A client that writes its requests in the formats of stores: `stores` has one for each of `config.nodes`, in
    /// their order. How to `poll` is then decided here, and `watch` counts for `store.redis` alone: the host
    /// subscribes to `redis.channel`.
    fn create_wired(config: Config, stores: Vec<Store>, seed: Vec<u8>, now: Now) -> Result<Client, ConfigError>;
    /// Starts an acquisition under a lock id of the host's choice.
    fn acquire(&self, lock: u64, resource: String, options: LockOptions, fresh: Vec<u8>, now: Now) -> Result<(), Error>;
    /// Releases a lock, or abandons its acquisition: takes effect at once here, and is cleaned up in the
    /// background. A pending acquisition ends with `failed`, a lease with `released`. Releasing a lock again while it is
    /// being released does nothing; a lock that is no longer alive is an `unknown-lock`.
    fn release(&self, lock: u64, now: Now) -> Result<(), Error>;
    /// Finishes a run that is held: the store writes the completion that the work is done and frees the resource, in one step.
    /// It ends with `finished`, or with `lost` if the record was not ours any more and no completion was written. A lock
    /// without `lock-options.run` is `not-a-run`; one that is not held, or is no longer, is an `unknown-lock`.
    ///
    /// A result, for those who come later, is written with the completion. A store that refuses both, since it is full, gets the
    /// completion alone, and the end is told with `result-dropped`. A result above 4,096 bytes, or
    /// JSON that is not UTF-8, is refused as `invalid`, and the run goes on.
    fn finish(&self, lock: u64, run_result: Option<RunResult>, now: Now) -> Result<(), Error>;
    /// Reads the record of a resource on every node: for people, and for the attempts at a run. The requests come as all others do, and
    /// `take-read` has the answers. Fails for an invalid name.
    fn read(&self, resource: String, now: Now) -> Result<u64, ConfigError>;
    /// The answers to a read, one for each node in the order of `config.nodes`, once all are there: look after each call that may bring
    /// one. A node that does not answer in time has an unknown outcome. They are told once; absent before and afterwards.
    fn take_read(&self, read: u64) -> Option<Outcomes>;
    /// Asks the holder of a lease to let go, by the nonce that its record shows: its next renewal is refused, and nobody else gets the lock
    /// before it lets go or the record runs out. Revoking twice is the same as once. `take-revoke` has the answer. Fails for an invalid
    /// name, and a nonce that is none.
    fn revoke(&self, resource: String, holder: Vec<u8>, now: Now) -> Result<u64, ConfigError>;
    /// The outcome of a revocation, once all nodes have answered or had their time: look after each call that may bring an answer. It
    /// is told once; absent before and afterwards.
    fn take_revoke(&self, revoke: u64) -> Option<Revocation>;
    /// Declares a lease lost: the host has reported the loss from its own reading of the deadline, so it must stay lost.
    fn declare_lost(&self, lock: u64, now: Now) -> Result<(), Error>;
    /// Cancels all acquisitions and releases all leases; no new commands are accepted. Keep driving until
    /// `is-idle`.
    fn close(&self, now: Now) -> ();
    /// Takes the result of a request. A result of an unknown request is counted and ignored.
    fn handle_response(&self, id: u64, response: Response, now: Now) -> ();
    /// Does everything that is due. Fails, and does nothing, if `fresh` is too short.
    fn handle_timeout(&self, fresh: Vec<u8>, now: Now) -> Result<(), ConfigError>;
    /// A hint that a resource was released; it may be wrong. An invalid name is ignored.
    fn notified(&self, resource: String, now: Now) -> ();
    /// The node confirms that wake-ups on a resource will come.
    fn subscribed(&self, node: u16, resource: String, now: Now) -> ();
    /// The node has fresh credentials: waiting acquisitions may try again.
    fn credentials_renewed(&self, node: u16, now: Now) -> ();
    /// Sets the credentials for requests to a node, requested or not; waiting requests are sent. Fails for a
    /// node that takes none or others, and if they contain characters that no header can have.
    fn set_credentials(&self, node: u16, credentials: Credentials, now: Now) -> Result<(), ConfigError>;
    /// Reports that a node of a quorum votes; `loss` is the id of its last loss of data, after which its counters are
    /// in doubt, if there was one. Attempts from now on use this; without it, the first attempt learns of it, and
    /// the next one can count the node. Fails if `loss` is too short.
    fn node_votes(&self, node: u16, loss: Option<Vec<u8>>, now: Now) -> Result<(), ConfigError>;
    /// Replaces the seed, for hosts that know that they were copied. Fails if it is too short.
    fn reseed(&self, seed: Vec<u8>) -> Result<(), ConfigError>;
    /// The next thing for the host to do; `wake-at` means that there is nothing more.
    fn poll_output(&self, now: Now) -> Output;
    /// The whole loop in one call: takes the inputs, does what is due, and returns all outputs. A command that
    /// is not accepted is returned as `rejected`: before all other outputs if no client could accept it, such as a name
    /// that is too long. Fails, and takes no input, if `fresh` or a new seed is too
    /// short, or credentials do not fit their node.
    fn step(&self, fresh: Vec<u8>, now: Now, inputs: Vec<Input>) -> Result<Stepped, ConfigError>;
    /// The remaining validity of a lease; 0 when it is not held.
    fn remaining_ns(&self, lock: u64, now: Now) -> u64;
    /// The id of the attempt by which a lease is held: what tells it from all others in a record. Absent when it is not held.
    fn nonce(&self, lock: u64) -> Option<Vec<u8>>;
    /// The holder that blocks a pending acquisition, as far as the store shows it.
    fn holder(&self, lock: u64) -> Option<Holding>;
    /// The name of the state that a lock is in, for logs and tests; absent when it is not alive.
    fn state(&self, lock: u64) -> Option<String>;
    /// Counts of the client's state and history.
    fn stats(&self) -> Stats;
    /// True if nothing is alive, in flight or undrained.
    fn is_idle(&self) -> bool;
}

/// The machine for all locks of one set of nodes. Every method first expires what is due at its `now`.
pub struct Client(pub(crate) crate::client::Client);

impl Client {
    pub(crate) fn new(made: crate::client::Client) -> Self {
        Self(made)
    }

    /// Makes one by the name of a static function.
    ///
    /// # Errors
    /// Whatever the function refuses, and arguments that it does not take.
    pub fn make<S: Source>(name: &str, args: &[S]) -> Result<Self, Problem> {
        match name {
            "create" => {
                let [config, seed, now] = arguments(args)?;
                let config = argument(config, "config")?;
                let seed = argument(seed, "seed")?;
                let now = argument(now, "now")?;
                Ok(<crate::client::Client as GuestClient>::create(config, seed, now)?)
            }
            "create-wired" => {
                let [config, stores, seed, now] = arguments(args)?;
                let config = argument(config, "config")?;
                let stores = argument(stores, "stores")?;
                let seed = argument(seed, "seed")?;
                let now = argument(now, "now")?;
                Ok(<crate::client::Client as GuestClient>::create_wired(config, stores, seed, now)?)
            }
            _ => Err(Problem::no_call(name)),
        }
    }

    /// Calls a method by its name.
    ///
    /// # Errors
    /// Whatever the method refuses, and arguments that it does not take.
    pub fn call<S: Source, W: Sink>(&self, name: &str, args: &[S], to: &W) -> Result<W::Value, Problem> {
        match name {
            "acquire" => {
                let [lock, resource, options, fresh, now] = arguments(args)?;
                let lock = argument(lock, "lock")?;
                let resource = argument(resource, "resource")?;
                let options = argument(options, "options")?;
                let fresh = argument(fresh, "fresh")?;
                let now = argument(now, "now")?;
                self.0.acquire(lock, resource, options, fresh, now)?;
                Ok(to.nothing())
            }
            "release" => {
                let [lock, now] = arguments(args)?;
                let lock = argument(lock, "lock")?;
                let now = argument(now, "now")?;
                self.0.release(lock, now)?;
                Ok(to.nothing())
            }
            "finish" => {
                let [lock, run_result, now] = arguments(args)?;
                let lock = argument(lock, "lock")?;
                let run_result = argument(run_result, "run-result")?;
                let now = argument(now, "now")?;
                self.0.finish(lock, run_result, now)?;
                Ok(to.nothing())
            }
            "read" => {
                let [resource, now] = arguments(args)?;
                let resource = argument(resource, "resource")?;
                let now = argument(now, "now")?;
                let made = self.0.read(resource, now)?;
                Ok(made.write(to))
            }
            "take-read" => {
                let [read] = arguments(args)?;
                let read = argument(read, "read")?;
                let made = self.0.take_read(read);
                Ok(made.write(to))
            }
            "revoke" => {
                let [resource, holder, now] = arguments(args)?;
                let resource = argument(resource, "resource")?;
                let holder = argument(holder, "holder")?;
                let now = argument(now, "now")?;
                let made = self.0.revoke(resource, holder, now)?;
                Ok(made.write(to))
            }
            "take-revoke" => {
                let [revoke] = arguments(args)?;
                let revoke = argument(revoke, "revoke")?;
                let made = self.0.take_revoke(revoke);
                Ok(made.write(to))
            }
            "declare-lost" => {
                let [lock, now] = arguments(args)?;
                let lock = argument(lock, "lock")?;
                let now = argument(now, "now")?;
                self.0.declare_lost(lock, now)?;
                Ok(to.nothing())
            }
            "close" => {
                let [now] = arguments(args)?;
                let now = argument(now, "now")?;
                self.0.close(now);
                Ok(to.nothing())
            }
            "handle-response" => {
                let [id, response, now] = arguments(args)?;
                let id = argument(id, "id")?;
                let response = argument(response, "response")?;
                let now = argument(now, "now")?;
                self.0.handle_response(id, response, now);
                Ok(to.nothing())
            }
            "handle-timeout" => {
                let [fresh, now] = arguments(args)?;
                let fresh = argument(fresh, "fresh")?;
                let now = argument(now, "now")?;
                self.0.handle_timeout(fresh, now)?;
                Ok(to.nothing())
            }
            "notified" => {
                let [resource, now] = arguments(args)?;
                let resource = argument(resource, "resource")?;
                let now = argument(now, "now")?;
                self.0.notified(resource, now);
                Ok(to.nothing())
            }
            "subscribed" => {
                let [node, resource, now] = arguments(args)?;
                let node = argument(node, "node")?;
                let resource = argument(resource, "resource")?;
                let now = argument(now, "now")?;
                self.0.subscribed(node, resource, now);
                Ok(to.nothing())
            }
            "credentials-renewed" => {
                let [node, now] = arguments(args)?;
                let node = argument(node, "node")?;
                let now = argument(now, "now")?;
                self.0.credentials_renewed(node, now);
                Ok(to.nothing())
            }
            "set-credentials" => {
                let [node, credentials, now] = arguments(args)?;
                let node = argument(node, "node")?;
                let credentials = argument(credentials, "credentials")?;
                let now = argument(now, "now")?;
                self.0.set_credentials(node, credentials, now)?;
                Ok(to.nothing())
            }
            "node-votes" => {
                let [node, loss, now] = arguments(args)?;
                let node = argument(node, "node")?;
                let loss = argument(loss, "loss")?;
                let now = argument(now, "now")?;
                self.0.node_votes(node, loss, now)?;
                Ok(to.nothing())
            }
            "reseed" => {
                let [seed] = arguments(args)?;
                let seed = argument(seed, "seed")?;
                self.0.reseed(seed)?;
                Ok(to.nothing())
            }
            "poll-output" => {
                let [now] = arguments(args)?;
                let now = argument(now, "now")?;
                let made = self.0.poll_output(now);
                Ok(made.write(to))
            }
            "step" => {
                let [fresh, now, inputs] = arguments(args)?;
                let fresh = argument(fresh, "fresh")?;
                let now = argument(now, "now")?;
                let inputs = argument(inputs, "inputs")?;
                let made = self.0.step(fresh, now, inputs)?;
                Ok(made.write(to))
            }
            "remaining-ns" => {
                let [lock, now] = arguments(args)?;
                let lock = argument(lock, "lock")?;
                let now = argument(now, "now")?;
                let made = self.0.remaining_ns(lock, now);
                Ok(to.nanoseconds(made))
            }
            "nonce" => {
                let [lock] = arguments(args)?;
                let lock = argument(lock, "lock")?;
                let made = self.0.nonce(lock);
                Ok(made.write(to))
            }
            "holder" => {
                let [lock] = arguments(args)?;
                let lock = argument(lock, "lock")?;
                let made = self.0.holder(lock);
                Ok(made.write(to))
            }
            "state" => {
                let [lock] = arguments(args)?;
                let lock = argument(lock, "lock")?;
                let made = self.0.state(lock);
                Ok(made.write(to))
            }
            "stats" => {
                let [] = arguments(args)?;
                let made = self.0.stats();
                Ok(made.write(to))
            }
            "is-idle" => {
                let [] = arguments(args)?;
                let made = self.0.is_idle();
                Ok(made.write(to))
            }
            _ => Err(Problem::no_call(name)),
        }
    }
}
