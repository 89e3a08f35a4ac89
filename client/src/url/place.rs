//! The faces of a store before it is opened: what each kind says of itself.

use std::any::Any;
use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use leasehold_core::NodeConfig;

use super::environment::EnvVars;
use crate::error::Error;
use crate::transport::Transport;
use crate::transport::items::{ItemStore, Store};

/// The place of a store: all that is needed to open it. Neither `Debug` nor `Display` shows a secret.
pub(crate) trait Place: Same + fmt::Display + fmt::Debug + Send + Sync {
    /// The properties of all stores of this kind.
    fn facts(&self) -> Facts;

    /// The properties of this store.
    fn config(&self) -> NodeConfig;

    /// Opens it.
    ///
    /// # Errors
    /// As for [`Client::connect`](crate::Client::connect).
    fn store(&self) -> Result<Arc<dyn Store>, Error>;

    /// Opens it for locks.
    ///
    /// # Errors
    /// As for [`Place::store`].
    fn open(&self) -> Result<Arc<dyn Transport>, Error> {
        Ok(self.store()?)
    }

    /// Opens it for items of compare-and-set.
    ///
    /// # Errors
    /// As for [`Place::store`].
    fn items(&self) -> Result<Arc<dyn ItemStore>, Error> {
        Ok(self.store()?)
    }

    /// The machine of the store; `None` where the url names servers that know it.
    fn machine(&self) -> Option<String>;

    /// Its name among the nodes of a quorum.
    fn node_name(&self) -> String {
        self.to_string()
    }

    /// The number of its database in a server that has several.
    fn database(&self) -> Option<u32> {
        None
    }

    /// Tells if the same url leads to the same store each time.
    fn is_shared(&self) -> bool {
        true
    }

    /// The url for people, who may be in another folder.
    fn shown(&self) -> String {
        self.to_string()
    }

    /// The url for another process, if the text that was given here may lead elsewhere there.
    fn handed_on(&self) -> Option<OsString> {
        None
    }
}

/// A url that leaves something to the environment or to files of the user.
pub(crate) trait Draft: Same + Send + Sync {
    /// Looks there for what the url leaves out.
    ///
    /// # Errors
    /// The rule that is missing or wrong, and its place.
    fn resolve(&self, env: &EnvVars) -> Result<Arc<dyn Place>, String>;
}

/// The properties of all stores of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) site: Site,
    pub(crate) expiry: Expiry,
}

/// The distance to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    /// It ends with this process.
    Process,
    /// It is on this machine, and has its clock.
    Machine,
    /// It is behind a socket.
    Network,
}

/// The judge of records whose time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// The store, by its clock.
    ByStore,
    /// Nothing expires by itself, so that only those who observe a record can declare it dead.
    ByObservers,
}

/// Equality with a value that may be of another type.
pub(crate) trait Same: Any {
    fn is_same(&self, other: &dyn Any) -> bool;
}

impl<T: Any + PartialEq> Same for T {
    fn is_same(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>() == Some(self)
    }
}
