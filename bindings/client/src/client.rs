//! The client: connects to a store, takes locks, looks at them.

use std::env::VarError;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold_core::config::Drift;
use leasehold_core::op::{Applied, Fault, Holder, LockOp, Op, Outcome, Refusal, Release};
use leasehold_core::{Config, LockId, Resource};

use crate::all::LockAllRequest;
use crate::doctor::Finding;
use crate::driver::{Caller, Driver};
use crate::elect::ElectionRequest;
use crate::error::{Error, ErrorKind, LockInfo};
use crate::exec;
use crate::fork::PerProcess;
use crate::request::LockRequest;
use crate::transport;
use crate::url::StoreUrl;

/// A connection to a store, and everything that keeps its leases alive. Cheap to clone.
///
/// A client runs one background thread for the renewals and deadlines of all its leases, and one for the requests of
/// its store. When the last clone and the last lease are dropped, what is still held is released, for which the drop
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
    urls: Vec<StoreUrl>,
}

/// Settings of a client that are not its store; start with [`Client::builder`].
#[derive(Clone, Debug, Default)]
pub struct ClientBuilder {
    owner: Option<String>,
    drift_ppm: Option<u32>,
    request_timeout: Option<Duration>,
}

impl ClientBuilder {
    /// The label that others see beside a lock. Default `host:pid:thread` of whoever acquires; at most 256 bytes.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// The largest rate error of any clock involved, in parts per million: 100 to 100,000, default 10,000 (1%). All
    /// clients of a store should use the same.
    #[must_use]
    pub fn drift_ppm(mut self, ppm: u32) -> Self {
        self.drift_ppm = Some(ppm);
        self
    }

    /// The longest that one reply of the store is awaited: 10 ms to 60 s, default 500 ms. A sixth of a lock's ttl
    /// binds as well.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    /// Opens the store: see [`Client::connect`].
    ///
    /// # Errors
    /// As [`Client::connect`], and [`ErrorKind::Config`] for a setting outside its bounds.
    pub async fn connect(self, store: impl AsRef<str>) -> Result<Client, Error> {
        let url = parse(store.as_ref())?;
        exec::offload(move || self.open(url)).await?
    }

    pub(crate) fn open(self, url: StoreUrl) -> Result<Client, Error> {
        let transport = transport::open(&url)?;
        let mut config = Config::new(vec![transport.config()])?;
        if let Some(ppm) = self.drift_ppm {
            config = config.with_drift(Drift::from_ppm(ppm)?);
        }
        if let Some(timeout) = self.request_timeout {
            config = config.with_request_timeout(timeout)?;
        }
        if let Some(owner) = &self.owner {
            leasehold_core::Owner::new(owner)?;
        }
        let driver = Driver::start(config, vec![transport])?;
        let shared = Shared {
            driver: ManuallyDrop::new(driver),
            closed: AtomicBool::new(false),
            owner: self.owner,
            urls: vec![url],
        };
        Ok(Client { shared: Arc::new(shared) })
    }
}

/// The store that `text` names, or where it is empty the environment, or else the default.
pub(crate) fn parse(text: &str) -> Result<StoreUrl, Error> {
    let from_environment = match std::env::var("LEASEHOLD_STORE") {
        Ok(text) => text,
        Err(VarError::NotPresent) => String::new(),
        Err(VarError::NotUnicode(_)) => {
            return Err(Error::config(
                "LEASEHOLD_STORE is not valid UTF-8; write a url such as sqlite:/var/lib/app/locks.db",
            ));
        }
    };
    let text = if text.is_empty() { &from_environment } else { text };
    if !text.is_empty() && text.trim().is_empty() {
        return Err(Error::config(
            "the store url is blank; write one such as sqlite:locks.db, or nothing for the default",
        ));
    }
    let urls: Vec<&str> = text.split_whitespace().collect();
    match urls.as_slice() {
        [] => StoreUrl::default_store(),
        // A path may contain spaces, so that several words are several urls only if each has a scheme.
        [_, rest @ ..] if rest.iter().any(|word| word.contains(':')) => Err(Error::config(
            "several stores at once form a quorum, which this version does not offer yet: name one store",
        )),
        [_, ..] => text.trim().parse(),
    }
}

impl Client {
    /// Opens a store: `sqlite:PATH` for all processes of one machine, `memory:` for this process alone. An empty text
    /// means the url in the environment variable `LEASEHOLD_STORE`, else a file in the user's state folder.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a url that cannot be read or a file that is no store of ours,
    /// [`ErrorKind::StoreRefused`] where permissions are missing, [`ErrorKind::StoreUnavailable`] otherwise.
    pub async fn connect(store: impl AsRef<str>) -> Result<Self, Error> {
        Self::builder().connect(store).await
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
    /// The answer is old when it arrives: use it to look, never to decide.
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

    /// Checks the store for what could make locks fail.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] in a forked child.
    pub async fn doctor(&self) -> Result<Vec<Finding>, Error> {
        self.driver().check_process()?;
        let transports = self.driver().transports().to_vec();
        exec::offload(move || transports.iter().flat_map(|transport| transport.diagnose()).collect()).await
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

    /// The url of the store.
    pub fn store(&self) -> &StoreUrl {
        &self.shared.urls[0]
    }

    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.shared.driver
    }

    pub(crate) async fn look(&self, resource: &str, caller: Caller) -> Result<Option<LockInfo>, Error> {
        let seen = match self.request(resource, Op::Read, caller).await? {
            Applied::Read(seen) => seen,
            Applied::Acquired { .. } | Applied::Renewed | Applied::Released | Applied::Raised { .. } => {
                return Err(nonsense(resource));
            }
        };
        Ok(seen.held().map(|holding| LockInfo::of(resource, holding)))
    }

    pub(crate) async fn break_it(&self, resource: &str, caller: Caller) -> Result<Option<LockInfo>, Error> {
        let Applied::Read(seen) = self.request(resource, Op::Read, caller).await? else {
            return Err(nonsense(resource));
        };
        let Some(holding) = seen.held() else { return Ok(None) };
        let Holder::Lease { nonce, .. } = holding.holder else {
            let advice = "the lock belongs to another library; release it with that library's own tools";
            return Err(Error::new(ErrorKind::StoreRefused, advice).on(resource));
        };
        self.request(resource, Op::Release(Release { nonce }), caller).await?;
        Ok(Some(LockInfo::of(resource, holding)))
    }

    async fn request(&self, resource: &str, op: Op, caller: Caller) -> Result<Applied, Error> {
        let name = Resource::new(resource)?;
        let op = LockOp { lock: LockId::new(u64::MAX), resource: name, op };
        let unavailable = |fault: Fault| Error::new(ErrorKind::StoreUnavailable, fault.to_string()).on(resource);
        match self.driver().ask(0, op, caller).await? {
            Outcome::Applied(applied) => Ok(applied),
            Outcome::Unknown(fault) => Err(unavailable(fault)),
            Outcome::NotApplied(refusal) => Err(match refusal {
                Refusal::Throttled(fault) | Refusal::Unavailable(fault) | Refusal::NeedsCredentials(fault) => {
                    unavailable(fault)
                }
                Refusal::Abstains { .. } => {
                    Error::new(ErrorKind::StoreUnavailable, "the node does not vote").on(resource)
                }
                Refusal::Denied(denial) => Error::new(ErrorKind::StoreRefused, denial.to_string()).on(resource),
                Refusal::Conflict(_) => {
                    Error::new(ErrorKind::Busy, "somebody else took the lock in between; look again").on(resource)
                }
            }),
        }
    }
}

fn nonsense(resource: &str) -> Error {
    Error::new(ErrorKind::StoreUnavailable, "the store's answer fits another question").on(resource)
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
        f.debug_struct("Client").field("store", &self.store().to_string()).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.driver
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
        if !self.driver.is_own_thread() && !self.closed.load(Ordering::Relaxed) {
            self.driver.wait_closed();
        }
        // SAFETY: the field is not used again; `drop` runs once.
        unsafe { ManuallyDrop::drop(&mut self.driver) }
    }
}

/// `host:pid:thread`, with control characters replaced and the length kept in bounds.
fn default_owner() -> String {
    static PROCESS: PerProcess<String> = PerProcess::new(|| {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        format!("{host}:{}", std::process::id())
    });
    let thread = std::thread::current();
    let thread = thread.name().map_or_else(|| format!("{:?}", thread.id()), str::to_owned);
    let mut owner = format!("{}:{thread}", PROCESS.get()).replace(char::is_control, "?");
    owner.truncate(owner.floor_char_boundary(leasehold_core::Owner::MAX_BYTES));
    owner
}
