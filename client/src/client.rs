//! The client: connects to a store, takes locks, looks at them.

use std::cell::RefCell;
use std::mem::ManuallyDrop;

use leasehold_core::Failure;
use leasehold_core::op::Fault;

use crate::all::LockAllRequest;
use crate::connect::ClientBuilder;
use crate::doctor::Finding;
use crate::driver::{Caller, Driver, is_own_thread};
use crate::elect::ElectionRequest;
use crate::error::{Error, ErrorKind, LockInfo};
use crate::exec;
use crate::fork::PerProcess;
use crate::host_clock;
use crate::quorum::Nodes;
use crate::release_if::{HolderMatch, ReleaseIfOutcome};
use crate::request::LockRequest;
use crate::stores::Stores;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, thread};
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
}

/// What clients and leases hold together; dropping the last one closes the driver.
pub(crate) struct Shared {
    driver: ManuallyDrop<Arc<Driver>>,
    /// Closing has been waited for, and dropping need not wait again.
    pub(crate) closed: AtomicBool,
    owner: Option<String>,
    place: Place,
}

/// Where the locks are.
pub(crate) enum Place {
    Store(Box<StoreUrl>),
    Quorum(Arc<Nodes>),
}

impl Client {
    /// Opens a store: `sqlite:PATH` for all processes of one machine, `redis://HOST` for many, `memory:` for this process
    /// alone. An empty text means the urls in the environment variable `LEASEHOLD_STORE`, else a file in the user's state
    /// folder, with a warning, or an error where the variable `LEASEHOLD_REQUIRE_STORE` is `1`: see [`Stores`].
    ///
    /// Several urls form a **quorum** of independent nodes, of one kind or of different ones: a lock is had once a
    /// majority has granted it, so that a minority may fail. Use three or five: a fourth node helps no more than
    /// the third. All clients name the same nodes. A new quorum is made with `leasehold quorum init` or
    /// [`ClientBuilder::create_quorum`]; without either, its first lock waits until all nodes answer, and for a little
    /// more than [`max_ttl`](ClientBuilder::max_ttl).
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a url that cannot be read or a file that is no store of ours,
    /// [`ErrorKind::StoreRefused`] where permissions are missing, [`ErrorKind::StoreUnavailable`] otherwise. Of a quorum,
    /// a minority may be unavailable; it is connected to later. Two names for the same server, or a node that belongs to
    /// another quorum or has another `max_ttl`, are [`ErrorKind::Config`].
    pub async fn connect(stores: impl Stores) -> Result<Self, Error> {
        Self::builder().connect(stores).await
    }

    pub(crate) fn new(driver: Arc<Driver>, owner: Option<String>, place: Place) -> Self {
        let driver = ManuallyDrop::new(driver);
        Self { shared: Arc::new(Shared { driver, closed: AtomicBool::new(false), owner, place }) }
    }

    /// Starts with settings other than the defaults.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Asks for a lock; awaiting the request acquires it. See [`LockRequest`] for what can be set.
    pub fn lock(&self, resource: impl Into<String>) -> LockRequest {
        LockRequest::new(Arc::clone(&self.shared), resource.into())
    }

    /// Asks for several locks at once, all or nothing. They are taken in sorted order, so that two callers who want the
    /// same ones cannot block each other for ever.
    pub fn lock_all<R: Into<String>>(&self, resources: impl IntoIterator<Item = R>) -> LockAllRequest {
        LockAllRequest::new(self.clone(), resources.into_iter().map(Into::into).collect())
    }

    /// Asks to lead: see [`ElectionRequest`].
    pub fn elect(&self, resource: impl Into<String>) -> ElectionRequest {
        ElectionRequest::new(self.clone(), resource.into())
    }

    /// Who holds a lock, `None` when nobody does.
    ///
    /// The answer is old when it arrives: use it to look, never to decide. Of a quorum all nodes are asked, and a majority
    /// must answer; [`LockInfo::votes`] says how many show the record.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a name that cannot be, [`ErrorKind::StoreUnavailable`], [`ErrorKind::StoreRefused`].
    pub async fn inspect(&self, resource: impl AsRef<str>) -> Result<Option<LockInfo>, Error> {
        self.look(resource.as_ref(), Caller::Async).await
    }

    /// Takes a lock from whoever holds it, and says from whom. The token counter survives, so that a guard still
    /// refuses the former holder, who learns of the loss with its next renewal.
    ///
    /// For administrators: if the holder still works, two do from now on.
    ///
    /// # Errors
    /// As [`Client::inspect`]; [`ErrorKind::StoreRefused`] for a lock of another library.
    pub async fn break_lock(&self, resource: impl AsRef<str>) -> Result<Option<LockInfo>, Error> {
        self.break_it(resource.as_ref(), Caller::Async).await
    }

    /// Releases a lock if its holder is the one that is meant, for a supervisor that knows that this holder is dead. The
    /// record that was compared is released in one conditional write, so a holder that came in between is left alone.
    ///
    /// The token counter survives, as with [`Client::break_lock`]. Of a quorum, the holder is who a majority shows.
    ///
    /// # Errors
    /// As [`Client::inspect`]; [`ErrorKind::Config`] if `holder` says nothing; [`ErrorKind::StoreRefused`] if a client of
    /// another library is meant: its own tools release it. [`ErrorKind::StoreUnavailable`] also when too few nodes of a
    /// quorum answer to tell who holds the lock, or to release it; ask again then.
    pub async fn release_if(&self, resource: impl AsRef<str>, holder: HolderMatch) -> Result<ReleaseIfOutcome, Error> {
        self.release_matching(resource.as_ref(), &holder, Caller::Async).await
    }

    /// Checks the store for what could make locks fail.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] in a forked child.
    pub async fn doctor(&self) -> Result<Vec<Finding>, Error> {
        self.driver().check_process()?;
        exec::offload(self.examination()).await
    }

    /// Without the client itself, which must not end on the thread that does this.
    pub(crate) fn examination(&self) -> impl FnOnce() -> Vec<Finding> + Send + 'static {
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
        exec::offload(move || confirm_closed(driver.wait_closed())).await?
    }

    /// The url of the store; of a quorum, that of its first node.
    pub fn store(&self) -> &StoreUrl {
        &self.stores()[0]
    }

    /// The urls of all nodes, in the order in which they were named; one where there is no quorum.
    pub fn stores(&self) -> &[StoreUrl] {
        match &self.shared.place {
            Place::Store(url) => std::slice::from_ref(url),
            Place::Quorum(nodes) => nodes.urls(),
        }
    }

    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.shared.driver
    }
}

pub(crate) fn confirm_closed(confirmed: bool) -> Result<(), Error> {
    if confirmed {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::StoreUnavailable,
        "some releases are not confirmed yet: they go on in the background while the process lives, and what they do \
         not reach runs out by itself",
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

    /// Of a quorum that cannot be used, the nodes that did not answer when they were asked last, and why.
    pub(crate) fn silent_nodes(&self, failure: &Failure) -> Vec<(String, Fault)> {
        let is_about_nodes =
            matches!(failure, Failure::Unavailable(_) | Failure::Abstains { .. } | Failure::Throttled(_));
        let Some(nodes) = self.quorum().filter(|_| is_about_nodes) else { return Vec::new() };
        let troubles = self.driver.troubles().into_iter();
        troubles.map(|(node, fault)| (nodes.name(node).to_owned(), fault)).collect()
    }

    /// The nodes, where there are several.
    pub(crate) fn quorum(&self) -> Option<&Arc<Nodes>> {
        match &self.place {
            Place::Store(_) => None,
            Place::Quorum(nodes) => Some(nodes),
        }
    }

    /// The label of whoever acquires now.
    pub(crate) fn owner(&self) -> String {
        self.owner.clone().unwrap_or_else(default_owner)
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

thread_local! {
    /// The host's name for this thread, where it has given one.
    static THREAD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// See [`ffi::name_thread`](crate::ffi::name_thread).
pub(crate) fn name_thread(name: &str) {
    THREAD.set(Some(name.to_owned()));
}

/// `host:pid:thread`, with control characters replaced and the length kept in bounds.
fn default_owner() -> String {
    static PROCESS: PerProcess<String> = PerProcess::new(|| {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        format!("{host}:{}", std::process::id())
    });
    let thread = THREAD.with_borrow(Clone::clone).unwrap_or_else(|| {
        let thread = thread::current();
        thread.name().map_or_else(|| format!("{:?}", thread.id()), str::to_owned)
    });
    let mut owner = format!("{}:{thread}", PROCESS.get()).replace(char::is_control, "?");
    owner.truncate(owner.floor_char_boundary(leasehold_core::Owner::MAX_BYTES));
    owner
}
