//! What decides: the core, compiled in, or the same core as a WebAssembly component.

#[cfg(feature = "wasm")]
mod component;
#[cfg(feature = "wasm")]
mod incoming;
#[cfg(feature = "wasm")]
mod outgoing;

use leasehold_core::member::Stamp;
use leasehold_core::{
    Client as Core, Config, Entropy, LockId, LockOptions, NodeId, Now, Output, RequestId, Resource, Seed,
};

use crate::error::Error;
use crate::transport::Answer;
#[cfg(feature = "wasm")]
use component::Guest;

/// Which machine a client runs on.
#[derive(Clone, Debug, Default)]
pub(crate) enum Choice {
    #[default]
    Native,
    #[cfg(feature = "wasm")]
    Component(Box<leasehold_wasmtime::Component>),
}

/// The face of the core's client, as far as the driver uses it.
pub(crate) enum Engine {
    Native(Box<Core>),
    #[cfg(feature = "wasm")]
    Component(Box<Guest>),
}

impl Engine {
    pub(crate) fn new(choice: &Choice, config: Config, seed: Seed, now: Now) -> Result<Self, Error> {
        match choice {
            Choice::Native => Ok(Self::Native(Box::new(Core::new(config, seed, now)))),
            #[cfg(feature = "wasm")]
            Choice::Component(component) => {
                let limits = leasehold_wasmtime::Limits::default();
                Ok(Self::Component(Box::new(Guest::new(component, limits, &config, &seed, now)?)))
            }
        }
    }

    pub(crate) fn acquire(
        &mut self,
        lock: LockId,
        resource: Resource,
        options: LockOptions,
        fresh: &Entropy,
        now: Now,
    ) -> Result<(), Error> {
        match self {
            Self::Native(core) => core.acquire(lock, resource, options, fresh, now).map_err(|error| rejected(&error)),
            #[cfg(feature = "wasm")]
            Self::Component(guest) => guest.acquire(lock, &resource, &options, fresh, now),
        }
    }

    /// Answers whether the lock was alive.
    pub(crate) fn release(&mut self, lock: LockId, now: Now) -> bool {
        match self {
            Self::Native(core) => core.release(lock, now).is_ok(),
            #[cfg(feature = "wasm")]
            Self::Component(guest) => guest.release(lock, now),
        }
    }

    /// A lock that is not alive needs nothing.
    pub(crate) fn declare_lost(&mut self, lock: LockId, now: Now) {
        match self {
            Self::Native(core) => drop(core.declare_lost(lock, now)),
            #[cfg(feature = "wasm")]
            Self::Component(guest) => guest.declare_lost(lock, now),
        }
    }

    pub(crate) fn close(&mut self, now: Now) {
        match self {
            Self::Native(core) => core.close(now),
            #[cfg(feature = "wasm")]
            Self::Component(guest) => guest.close(now),
        }
    }

    pub(crate) fn handle_response(&mut self, id: RequestId, answer: Answer, now: Now) {
        match self {
            Self::Native(core) => core.handle_response(id, answer, now),
            #[cfg(feature = "wasm")]
            Self::Component(guest) => guest.handle_response(id, answer, now),
        }
    }

    pub(crate) fn handle_timeout(&mut self, fresh: &Entropy, now: Now) {
        match self {
            Self::Native(core) => core.handle_timeout(fresh, now),
            #[cfg(feature = "wasm")]
            Self::Component(guest) => guest.handle_timeout(fresh, now),
        }
    }

    pub(crate) fn notified(&mut self, resource: &Resource, now: Now) {
        match self {
            Self::Native(core) => core.notified(resource, now),
            #[cfg(feature = "wasm")]
            Self::Component(guest) => guest.notified(resource, now),
        }
    }

    pub(crate) fn subscribed(&mut self, node: NodeId, resource: &Resource, now: Now) {
        match self {
            Self::Native(core) => core.subscribed(node, resource, now),
            #[cfg(feature = "wasm")]
            Self::Component(guest) => guest.subscribed(node, resource, now),
        }
    }

    pub(crate) fn node_votes(&mut self, node: NodeId, loss: Option<Stamp>, now: Now) {
        match self {
            Self::Native(core) => core.node_votes(node, loss, now),
            #[cfg(feature = "wasm")]
            Self::Component(guest) => guest.node_votes(node, loss, now),
        }
    }

    /// [`Output::WakeAt`] means that there is nothing more.
    pub(crate) fn poll_output(&mut self, now: Now) -> Output {
        match self {
            Self::Native(core) => core.poll_output(now),
            #[cfg(feature = "wasm")]
            Self::Component(guest) => guest.poll_output(now).unwrap_or(Output::WakeAt(leasehold_core::Monotonic::FAR)),
        }
    }

    /// Whether an acquisition is queued behind another one.
    pub(crate) fn is_queued(&mut self, lock: LockId) -> bool {
        const QUEUED: &str = "Idle";
        match self {
            Self::Native(core) => core.state(lock) == Some(QUEUED),
            #[cfg(feature = "wasm")]
            Self::Component(guest) => guest.state(lock).as_deref() == Some(QUEUED),
        }
    }

    pub(crate) fn is_idle(&mut self) -> bool {
        match self {
            Self::Native(core) => core.is_idle(),
            #[cfg(feature = "wasm")]
            Self::Component(guest) => guest.is_idle(),
        }
    }
}

pub(crate) fn rejected(error: &leasehold_core::Error) -> Error {
    Error::config(error.to_string())
}
