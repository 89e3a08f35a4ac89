//! Connections to stores.

use leasehold::{DefaultStore, ffi};
use napi::Either;
use napi::bindgen_prelude::ClassInstance;
use napi_derive::napi;

use crate::calls::Connection;
use crate::election;
use crate::failure::{Failure, either};
use crate::options::{
    AllOptions, Composition, ConnectOptions, ElectOptions, HolderOptions, LockOptions, ShardsOptions, count, length,
};
use crate::reactor::{Operation, Outcome};
use crate::run::{self, RunOptions};
use crate::series::{Changes, Pages, RunPages};
use crate::shards;

/// A connection to a store, and everything that keeps its leases alive.
#[napi]
pub struct Client(leasehold::Client, Vec<String>);

impl Client {
    pub(crate) fn new(client: leasehold::Client, unheard: Vec<String>) -> Self {
        Self(client, unheard)
    }

    pub(crate) fn client(&self) -> &leasehold::Client {
        &self.0
    }
}

/// Names the calling thread of JavaScript in the labels of leases.
#[napi(catch_unwind)]
pub fn name_thread(name: String) {
    ffi::name_thread(&name);
}

/// Opens a store, or the nodes of a quorum; the default where none is named.
#[napi(catch_unwind)]
pub fn connect(stores: Option<Vec<String>>, options: ConnectOptions) -> Operation {
    let builder = match options.builder() {
        Ok(builder) => builder,
        Err(failure) => return Operation::failed(failure),
    };
    Operation::new(async move {
        let (client, unheard) = match stores.map(<[String; 1]>::try_from) {
            None => ffi::observe::connect_async(builder, DefaultStore).await?,
            // A text may have several urls.
            Some(Ok([text])) => ffi::observe::connect_async(builder, text).await?,
            Some(Err(urls)) => ffi::observe::connect_async(builder, urls).await?,
        };
        Ok(Outcome::Client(client, unheard))
    })
}

#[napi]
impl Client {
    /// See `LockRequest`.
    #[napi(catch_unwind)]
    pub fn acquire(&self, name: String, options: LockOptions) -> Operation {
        match options.request(self.0.lock(name)) {
            Ok(request) => Operation::new(async move { Ok(Outcome::Lease(request.await?)) }),
            Err(failure) => Operation::failed(failure),
        }
    }

    /// See `LockRequest::try_acquire`.
    #[napi(catch_unwind)]
    pub fn try_acquire(&self, name: String, options: LockOptions) -> Operation {
        match options.request(self.0.lock(name)) {
            Ok(request) => Operation::new(async move { Ok(Outcome::MaybeLease(request.try_acquire().await?)) }),
            Err(failure) => Operation::failed(failure),
        }
    }

    /// See `Client::lock_all`.
    #[napi(catch_unwind)]
    pub fn lock_all(&self, names: Vec<String>, options: AllOptions) -> Operation {
        match options.request(self.0.lock_all(names)) {
            Ok(request) => Operation::new(async move { Ok(Outcome::Leases(request.await?)) }),
            Err(failure) => Operation::failed(failure),
        }
    }

    /// Acquires one lease of what is made of locks; nothing, when it only tries and others hold it.
    #[napi(catch_unwind)]
    pub fn acquire_composed(&self, composition: Composition, options: LockOptions, tries: bool) -> Operation {
        match options.request(self.0.lock("")).and_then(|request| composition.of(request)) {
            Ok(composed) if tries => {
                Operation::new(async move { Ok(Outcome::MaybeHeld(composed.try_acquire_async().await?)) })
            }
            Ok(composed) => {
                Operation::new(async move { Ok(Outcome::MaybeHeld(Some(composed.acquire_async().await?))) })
            }
            Err(failure) => Operation::failed(failure),
        }
    }

    /// See `Client::set_permits`.
    #[napi(catch_unwind)]
    pub fn set_permits(&self, name: String, permits: f64) -> Operation {
        let client = self.0.clone();
        Operation::new(async move {
            client.set_permits(name, count("permits", permits)?).await?;
            Ok(Outcome::Nothing)
        })
    }

    /// See `Client::set_readers`.
    #[napi(catch_unwind)]
    pub fn set_readers(&self, name: String, readers: f64) -> Operation {
        let client = self.0.clone();
        Operation::new(async move {
            client.set_readers(name, count("readers", readers)?).await?;
            Ok(Outcome::Nothing)
        })
    }

    /// See `Client::list`.
    #[napi(catch_unwind)]
    pub fn pages(&self, prefix: String) -> Pages {
        Pages::new(ffi::Pages::of(&self.0, &prefix))
    }

    /// See `Client::runs`.
    #[napi(catch_unwind)]
    pub fn run_pages(&self, prefix: String) -> RunPages {
        RunPages::new(ffi::Pages::of_runs(&self.0, &prefix))
    }

    /// See `Client::watch`.
    #[napi(catch_unwind)]
    pub fn changes(&self, name: String, every: Option<f64>) -> Either<Changes, Failure> {
        let every = every.map(|every| length("every", every)).transpose();
        either(every.map(|every| Changes::new(ffi::Changes::of(&self.0, &name, every))))
    }

    /// See `Client::elect`.
    #[napi(catch_unwind)]
    pub fn elect(&self, name: String, options: ElectOptions) -> Operation {
        let client = self.0.clone();
        match options.request(client.elect(name)) {
            Ok(request) => Operation::new(async move { Ok(Outcome::Election(election::start(&client, request)?)) }),
            Err(failure) => Operation::failed(failure),
        }
    }

    /// See `Client::shards`.
    #[napi(catch_unwind)]
    pub fn shards(&self, name: String, options: ShardsOptions) -> Operation {
        let client = self.0.clone();
        match options.request(client.shards(name)) {
            Ok(request) => Operation::new(async move { Ok(Outcome::Shards(shards::start(&client, request)?)) }),
            Err(failure) => Operation::failed(failure),
        }
    }

    /// See `Client::set_shards`.
    #[napi(catch_unwind)]
    pub fn set_shards(&self, name: String, shards: f64) -> Operation {
        let client = self.0.clone();
        Operation::new(async move {
            client.set_shards(name, count("count", shards)?).await?;
            Ok(Outcome::Nothing)
        })
    }

    /// See `Client::inspect`.
    #[napi(catch_unwind)]
    pub fn inspect(&self, name: String) -> Operation {
        let client = self.0.clone();
        Operation::new(async move { Ok(Outcome::Info(client.inspect(name).await?)) })
    }

    /// See `Client::release_if`.
    #[napi(catch_unwind)]
    pub fn release_if(&self, name: String, holder: HolderOptions) -> Operation {
        let client = self.0.clone();
        match holder.meant() {
            Ok(meant) => Operation::new(async move { Ok(Outcome::ReleaseIf(client.release_if(name, meant).await?)) }),
            Err(failure) => Operation::failed(failure),
        }
    }

    /// See `Client::revoke`.
    #[napi(catch_unwind)]
    pub fn revoke(&self, name: String, holder: HolderOptions) -> Operation {
        let client = self.0.clone();
        match holder.meant() {
            Ok(meant) => Operation::new(async move { Ok(Outcome::Revoke(client.revoke(name, meant).await?)) }),
            Err(failure) => Operation::failed(failure),
        }
    }

    /// See `Client::sessions`.
    #[napi(catch_unwind)]
    pub fn sessions(&self) -> Operation {
        let client = self.0.clone();
        Operation::new(async move { Ok(Outcome::Sessions(client.sessions().await?)) })
    }

    /// See `Client::revoke_session`.
    #[napi(catch_unwind)]
    pub fn revoke_session(&self, label: String) -> Operation {
        let client = self.0.clone();
        Operation::new(async move { Ok(Outcome::Sessions(client.revoke_session(label).await?)) })
    }

    /// See `Client::once`.
    #[napi(catch_unwind)]
    pub fn begin_run(&self, name: String, options: RunOptions) -> Operation {
        match options.request(self.0.once(name)) {
            Ok(request) => Operation::new(async move { Ok(run::begun(request.await?)) }),
            Err(failure) => Operation::failed(failure),
        }
    }

    /// See `Client::inspect_run`.
    #[napi(catch_unwind)]
    pub fn inspect_run(&self, name: String, key: Option<String>) -> Operation {
        let client = self.0.clone();
        Operation::new(async move { Ok(Outcome::RunInfo(client.inspect_run(&name, key.as_deref()).await?)) })
    }

    /// See `Client::forget_run`.
    #[napi(catch_unwind)]
    pub fn forget_run(&self, name: String, key: Option<String>) -> Operation {
        let client = self.0.clone();
        Operation::new(async move { Ok(Outcome::Completion(client.forget_run(&name, key.as_deref()).await?)) })
    }

    /// See `Client::close`.
    #[napi(catch_unwind)]
    pub fn close(&self) -> Operation {
        let client = self.0.clone();
        Operation::new(async move {
            client.close().await?;
            Ok(Outcome::Nothing)
        })
    }

    /// The client for calls of [`crate::calls`].
    #[napi(catch_unwind, ts_return_type = "object")]
    pub fn connection(&self) -> Connection {
        Connection::new(self.0.clone())
    }

    /// The label of leases whose callers give none.
    #[napi(getter, catch_unwind)]
    pub fn owner(&self) -> String {
        ffi::owner(&self.0)
    }

    /// The urls of the stores, without secrets.
    #[napi(getter, catch_unwind)]
    pub fn stores(&self) -> Vec<String> {
        self.0.stores().iter().map(ToString::to_string).collect()
    }

    /// Warnings about the stores that no observer hears.
    #[napi(getter, catch_unwind)]
    pub fn unheard(&self) -> Vec<String> {
        self.1.clone()
    }
}

/// Closes all clients at once, within 2 s together, at the end of the process. A lease whose release is not confirmed
/// by then expires.
#[napi(catch_unwind)]
pub fn end(clients: Vec<ClassInstance<'_, Client>>) {
    // An unconfirmed release can be reported to nobody.
    let _ = ffi::close(clients.iter().map(|client| client.0.clone()));
}
