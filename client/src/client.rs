//! The client: a handle to a store, and all that keeps its leases alive.

use std::mem::ManuallyDrop;

use leasehold_core::op::Fault;
use leasehold_core::{Failure, Owner};

use crate::admin::doctor::Finding;
use crate::driver::{Caller, Driver};
use crate::error::{Error, ErrorKind};
use crate::host::host_clock;
use crate::host::owner_label;
use crate::host::sync::Arc;
use crate::host::sync::atomic::{AtomicBool, Ordering};
use crate::host::threads::is_own_thread;
use crate::host::time::Time;
use crate::quorum::nodes::Nodes;
use crate::url::StoreUrl;

/// A connection to a store, and everything that keeps its leases alive. Cheap to clone.
///
/// A client runs one background thread for the renewals and deadlines of all its leases, and one for the requests of
/// its store; all clients of a process share one that reports to its log. When the last clone and the last lease are dropped, what is still held is released, for which the drop
/// waits up to 2 s; [`Client::close`] does the same and says how it went.
///
/// ```
/// # async fn example() -> Result<(), leasehold::Error> {
/// let client = leasehold::Client::connect("memory:").await?;
/// let lease = client.lock("invoice/42").await?;
/// println!("fencing token {}", lease.token());
/// lease.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
    /// The one that makes the calls of this handle: a future, unless it is of [`blocking`](crate::blocking).
    pub(crate) caller: Caller,
}

/// Shared by the clones of a client and its leases; dropping the last one closes the driver.
pub(crate) struct Shared {
    driver: ManuallyDrop<Arc<Driver>>,
    /// Closing has been waited for, and dropping need not wait again.
    pub(crate) closed: AtomicBool,
    owner: Option<Owner>,
    backend: Backend,
}

/// One store, or the nodes of a quorum.
pub(crate) enum Backend {
    Store(Box<StoreUrl>),
    Quorum(Arc<Nodes>),
}

impl Client {
    pub(crate) fn new(driver: Arc<Driver>, owner: Option<Owner>, backend: Backend) -> Self {
        let driver = ManuallyDrop::new(driver);
        let shared = Shared { driver, closed: AtomicBool::new(false), owner, backend };
        Self { shared: Arc::new(shared), caller: Caller::Async }
    }

    /// The same client for another caller.
    pub(crate) fn by(&self, caller: Caller) -> Self {
        Self { shared: Arc::clone(&self.shared), caller }
    }

    /// Checks the store for what could make locks fail.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] in a forked child, [`ErrorKind::Closed`] after the client was closed.
    pub async fn doctor(&self) -> Result<Vec<Finding>, Error> {
        self.driver().check_open()?;
        self.offload(self.diagnosis()).await
    }

    /// Does blocking work where the caller is not held up: on its own thread, if it waits there anyway.
    pub(crate) async fn offload<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Error> {
        if self.caller == Caller::Blocking { Ok(work()) } else { self.time().offload(work).await }
    }

    /// Without the client itself, which must not end on the thread that does this.
    fn diagnosis(&self) -> impl FnOnce() -> Vec<Finding> + Send + 'static {
        let (transports, quorum) = (self.driver().transports().to_vec(), self.shared.quorum().cloned());
        let drift = self.driver().drift;
        move || {
            let mut findings = match quorum {
                Some(quorum) => quorum.diagnose(&transports),
                None => transports.iter().flat_map(|transport| transport.diagnose()).collect::<Vec<_>>(),
            };
            // Stores of this machine have the same clock, whatever its rate.
            if transports.iter().any(|transport| transport.network().is_some()) {
                findings.push(host_clock::examine(drift));
            }
            findings
        }
    }

    /// Releases all leases of this client, cancels all its waiters, and waits up to 2 s until the store has confirmed
    /// it. The client can acquire nothing afterwards.
    ///
    /// # Errors
    /// [`ErrorKind::StoreUnavailable`] when a release is not confirmed yet; it goes on in the background.
    pub async fn close(self) -> Result<(), Error> {
        let driver = Arc::clone(self.driver());
        driver.check_process()?;
        driver.close();
        self.shared.closed.store(true, Ordering::Relaxed);
        self.offload(move || confirm_closed(driver.wait_closed())).await?
    }

    /// The url of the store; of a quorum, that of its first node.
    pub fn store(&self) -> &StoreUrl {
        &self.stores()[0]
    }

    /// The urls of all nodes, in the order in which they were named; one where there is no quorum.
    pub fn stores(&self) -> &[StoreUrl] {
        match &self.shared.backend {
            Backend::Store(url) => std::slice::from_ref(url),
            Backend::Quorum(nodes) => nodes.urls(),
        }
    }

    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.shared.driver
    }

    /// The time by which the client lives.
    pub(crate) fn time(&self) -> &Time {
        self.shared.time()
    }
}

pub(crate) fn confirm_closed(confirmed: bool) -> Result<(), Error> {
    if confirmed {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::StoreUnavailable,
        "some releases are not confirmed yet: they are tried again in the background while the process lives, and \
         locks that they do not reach expire after their ttl",
    ))
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let stores: Vec<String> = self.stores().iter().map(StoreUrl::to_string).collect();
        f.debug_struct("Client").field("stores", &stores).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    pub(crate) fn time(&self) -> &Time {
        self.driver.time()
    }

    /// Of a quorum that cannot be used, the nodes that did not answer when they were asked last, and why.
    pub(crate) fn silent_nodes(&self, failure: &Failure) -> Vec<(String, Fault)> {
        let is_about_nodes =
            matches!(failure, Failure::Unavailable(_) | Failure::Abstains { .. } | Failure::Throttled(_));
        let Some(nodes) = self.quorum().filter(|_| is_about_nodes) else { return Vec::new() };
        let faults = self.driver.last_faults().into_iter();
        faults.map(|(node, fault)| (nodes.name(node).to_owned(), fault)).collect()
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn backend(&self) -> &Backend {
        &self.backend
    }

    /// The nodes, where there are several.
    pub(crate) fn quorum(&self) -> Option<&Arc<Nodes>> {
        match &self.backend {
            Backend::Store(_) => None,
            Backend::Quorum(nodes) => Some(nodes),
        }
    }

    /// The label of a lease that the calling thread acquires.
    pub(crate) fn owner(&self) -> Owner {
        self.owner.clone().unwrap_or_else(owner_label::of_this_thread)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A forked child leaks what it inherited: the parent's threads, files and mutexes are not there.
        if self.driver.is_inherited() {
            return;
        }
        self.driver.close();
        if !is_own_thread() && !self.closed.load(Ordering::Relaxed) {
            self.driver.wait_closed();
        }
        // SAFETY: the field is not used again; `drop` runs once.
        unsafe { ManuallyDrop::drop(&mut self.driver) }
    }
}
