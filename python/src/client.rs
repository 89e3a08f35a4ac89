//! Connections to stores.

use std::time::Duration;

use leasehold::ffi::{self, Composed};
use leasehold::{ClientBuilder, DefaultStore, LockAllRequest};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::{self, Count, Kept, Natural, Seconds};
use crate::election::{self, Election};
use crate::errors::raised;
use crate::info::{self, LockInfo, ReleaseIfOutcome, RevokeOutcome, SessionInfo};
use crate::lease::{Lease, Leases};
use crate::observe;
use crate::outside;
use crate::pump::Pace;
use crate::reactor::{Operation, Outcome};
use crate::request::{self, Request, Settings, Wanted};
use crate::run::{self, RunRequest};
use crate::series::{Changes, Pages, RunPages};
use crate::shards::{self, Shards};
use crate::signals::{self, Signals};

/// The stores and settings of a client.
#[pyclass(frozen, module = "leasehold._native")]
pub(crate) struct Connector {
    builder: ClientBuilder,
    stores: Stores,
}

#[derive(Clone)]
enum Stores {
    Default,
    One(String),
    Several(Vec<String>),
}

impl Connector {
    pub(crate) fn settings(&self) -> ClientBuilder {
        self.builder.clone()
    }
}

#[pymethods]
impl Connector {
    #[new]
    #[pyo3(signature = (stores, *, owner=None, session=None, drift_ppm=None, request_timeout=None, max_ttl=None, quorum_id=None, create_quorum=false))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        stores: Option<Bound<'_, PyAny>>,
        owner: Option<String>,
        session: Option<String>,
        drift_ppm: Option<u32>,
        request_timeout: Option<Seconds>,
        max_ttl: Option<Seconds>,
        quorum_id: Option<String>,
        create_quorum: bool,
    ) -> PyResult<Self> {
        let mut builder = ClientBuilder::default();
        if let Some(owner) = owner {
            builder = builder.owner(owner);
        }
        if let Some(session) = session {
            builder = builder.session(session);
        }
        if let Some(ppm) = drift_ppm {
            builder = builder.drift_ppm(ppm);
        }
        if let Some(timeout) = request_timeout {
            builder = builder.request_timeout(timeout.finite(py, "request_timeout")?);
        }
        if let Some(max_ttl) = max_ttl {
            builder = builder.max_ttl(max_ttl.finite(py, "max_ttl")?);
        }
        if let Some(id) = quorum_id {
            builder = builder.quorum_id(id);
        }
        if create_quorum {
            builder = builder.create_quorum();
        }
        let stores = match stores {
            None => Stores::Default,
            Some(stores) => match (stores.extract::<String>(), stores.extract::<Vec<String>>()) {
                (Ok(url), _) => Stores::One(url),
                (_, Ok(urls)) => Stores::Several(urls),
                (Err(_), Err(_)) => {
                    let kind = stores.get_type().name()?;
                    return Err(PyTypeError::new_err(format!(
                        "stores is a url, such as \"redis://localhost\", or a list of urls for a quorum, not {kind}"
                    )));
                }
            },
        };
        Ok(Self { builder, stores })
    }

    /// The client, and warnings that no logger hears. On asyncio, which brings `logging` along, loggers hear all of them.
    fn connect(&self, py: Python<'_>) -> PyResult<(Client, Vec<String>)> {
        let (builder, stores) = (self.builder.clone(), self.stores.clone());
        let connected = py.detach(|| match stores {
            Stores::Default => ffi::observe::connect(builder, DefaultStore),
            Stores::One(url) => ffi::observe::connect(builder, url),
            Stores::Several(urls) => ffi::observe::connect(builder, urls),
        });
        let (client, unheard) = connected.map_err(|error| raised(py, &error))?;
        Ok((Client::new(client), unheard))
    }

    fn begin_connect(&self) -> Operation {
        let (builder, stores) = (self.builder.clone(), self.stores.clone());
        Operation::new(async move {
            let connected = match stores {
                Stores::Default => builder.connect(DefaultStore).await,
                Stores::One(url) => builder.connect(url).await,
                Stores::Several(urls) => builder.connect(urls).await,
            };
            connected.map(Outcome::Client)
        })
    }
}

/// A connection to a store, and everything that keeps its leases alive.
#[pyclass(frozen, module = "leasehold._native", weakref)]
pub(crate) struct Client(Kept<leasehold::Client>);

impl Client {
    pub(crate) fn new(client: leasehold::Client) -> Self {
        ffi::track(&client);
        Self::untracked(client)
    }

    /// One that the end of the interpreter does not close.
    pub(crate) fn untracked(client: leasehold::Client) -> Self {
        Self(Kept::new(client))
    }

    pub(crate) fn native(&self) -> &leasehold::Client {
        &self.0
    }

    /// Lets happen what a client of a test clock has begun.
    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        if ffi::has_test_clock(&self.0) {
            py.detach(|| ffi::settle(&self.0));
            py.check_signals()?;
        }
        Ok(())
    }

    fn all(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        [ttl, wait, max_hold]: [Option<Seconds>; 3],
        owner: Option<String>,
    ) -> PyResult<LockAllRequest> {
        convert::warn_of_milliseconds(py, [("ttl", ttl), ("wait", wait)])?;
        let mut request = self.0.lock_all(names);
        if let Some(ttl) = ttl {
            request = request.ttl(ttl.finite(py, "ttl")?);
        }
        if let Some(wait) = wait.and_then(Seconds::if_finite) {
            request = request.wait(wait);
        }
        if let Some(max_hold) = max_hold {
            request = request.max_hold(max_hold.finite(py, "max_hold")?);
        }
        if let Some(owner) = owner {
            request = request.owner(owner);
        }
        Ok(request)
    }
}

#[pymethods]
impl Client {
    #[pyo3(signature = (name, *, ttl=None, wait=None, owner=None, data=None, lock_delay=None, max_hold=None, renew_every=None, renew=true, fair=true, watch_holder=false))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn request(
        &self,
        py: Python<'_>,
        name: &str,
        ttl: Option<Seconds>,
        wait: Option<Seconds>,
        owner: Option<String>,
        data: Option<Bound<'_, PyBytes>>,
        lock_delay: Option<Seconds>,
        max_hold: Option<Seconds>,
        renew_every: Option<Seconds>,
        renew: bool,
        fair: bool,
        watch_holder: bool,
    ) -> PyResult<Request> {
        let settings =
            Settings { ttl, wait, owner, data, lock_delay, max_hold, renew_every, renew, fair, watch_holder };
        settings.apply(py, self.0.lock(name)).map(Wanted::Lock).map(Request::new)
    }

    /// A request for what is made of the locks with these names, or of those of one name and a number.
    #[pyo3(signature = (kind, names, count=None, *, ttl=None, wait=None, owner=None, data=None, max_hold=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn composed(
        &self,
        py: Python<'_>,
        kind: &str,
        names: Vec<String>,
        count: Option<Count>,
        ttl: Option<Seconds>,
        wait: Option<Seconds>,
        owner: Option<String>,
        data: Option<Bound<'_, PyBytes>>,
        max_hold: Option<Seconds>,
    ) -> PyResult<Request> {
        let settings = Settings {
            ttl,
            wait,
            owner,
            data,
            lock_delay: None,
            max_hold,
            renew_every: None,
            renew: true,
            fair: true,
            watch_holder: false,
        };
        let request = settings.apply(py, self.0.lock(""))?;
        let count = count.map(|Count(count)| count);
        let name = names.first().cloned().unwrap_or_default();
        Ok(Request::new(Wanted::Composed(match kind {
            "permit" => Composed::permit(request, name, count.unwrap_or_default()),
            "read" => Composed::read(request, name, count),
            "write" => Composed::write(request, name, count),
            _ => Composed::any(request, names),
        })))
    }

    fn set_permits(&self, py: Python<'_>, name: &str, permits: Count) -> PyResult<()> {
        let mut signals = Signals::default();
        let set = py.detach(|| ffi::wait(ffi::by_thread(&self.0).set_permits(name, permits.0), || signals.interrupt()));
        signals.check()?;
        set.map_err(|error| raised(py, &error))
    }

    fn begin_set_permits(&self, name: String, permits: Count) -> Operation {
        let client = leasehold::Client::clone(&self.0);
        Operation::new(async move { client.set_permits(name, permits.0).await.map(|()| Outcome::Nothing) })
    }

    fn set_readers(&self, py: Python<'_>, name: &str, readers: Count) -> PyResult<()> {
        let mut signals = Signals::default();
        let set = py.detach(|| ffi::wait(ffi::by_thread(&self.0).set_readers(name, readers.0), || signals.interrupt()));
        signals.check()?;
        set.map_err(|error| raised(py, &error))
    }

    fn begin_set_readers(&self, name: String, readers: Count) -> Operation {
        let client = leasehold::Client::clone(&self.0);
        Operation::new(async move { client.set_readers(name, readers.0).await.map(|()| Outcome::Nothing) })
    }

    fn pages(&self, prefix: &str) -> Pages {
        Pages::new(ffi::Pages::of(&self.0, prefix))
    }

    fn run_pages(&self, prefix: &str) -> RunPages {
        RunPages::new(ffi::Pages::of_runs(&self.0, prefix))
    }

    #[pyo3(signature = (name, every=None))]
    fn changes(&self, py: Python<'_>, name: &str, every: Option<Seconds>) -> PyResult<Changes> {
        let every = every.map(|every| every.finite(py, "every")).transpose()?;
        Ok(Changes::new(ffi::Changes::of(&self.0, name, every)))
    }

    /// Begins to acquire, as [`Client::request`] and [`Request::begin_acquire`] do.
    #[pyo3(signature = (name, task, *, ttl=None, wait=None, owner=None, data=None, lock_delay=None, max_hold=None, renew_every=None, renew=true, fair=true, watch_holder=false))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn begin_acquire(
        &self,
        py: Python<'_>,
        name: &str,
        task: Option<u64>,
        ttl: Option<Seconds>,
        wait: Option<Seconds>,
        owner: Option<String>,
        data: Option<Bound<'_, PyBytes>>,
        lock_delay: Option<Seconds>,
        max_hold: Option<Seconds>,
        renew_every: Option<Seconds>,
        renew: bool,
        fair: bool,
        watch_holder: bool,
    ) -> PyResult<Operation> {
        let settings =
            Settings { ttl, wait, owner, data, lock_delay, max_hold, renew_every, renew, fair, watch_holder };
        request::begin_acquire(py, settings.apply(py, self.0.lock(name))?, task)
    }

    #[pyo3(signature = (name, *, key=None, every=None, offset=None, at=None, tz=None, cron=None, cooldown=None, keep=None, wait=None, ttl=None, owner=None, data=None, lock_delay=None, max_hold=None, renew_every=None, renew=true, trust_quorum=false, even_if_done=false, replace=false, watch_holder=false, max_attempts=None, retry_after=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn run_request(
        &self,
        py: Python<'_>,
        name: &str,
        key: Option<String>,
        every: Option<Seconds>,
        offset: Option<Seconds>,
        at: Option<String>,
        tz: Option<String>,
        cron: Option<String>,
        cooldown: Option<Seconds>,
        keep: Option<Seconds>,
        wait: Option<Seconds>,
        ttl: Option<Seconds>,
        owner: Option<String>,
        data: Option<Bound<'_, PyBytes>>,
        lock_delay: Option<Seconds>,
        max_hold: Option<Seconds>,
        renew_every: Option<Seconds>,
        renew: bool,
        trust_quorum: bool,
        even_if_done: bool,
        replace: bool,
        watch_holder: bool,
        max_attempts: Option<u32>,
        retry_after: Option<Seconds>,
    ) -> PyResult<RunRequest> {
        let settings = run::Settings {
            key,
            every,
            offset,
            at,
            tz,
            cron,
            cooldown,
            keep,
            wait,
            ttl,
            owner,
            data,
            lock_delay,
            max_hold,
            renew_every,
            renew,
            trust_quorum,
            even_if_done,
            replace,
            watch_holder,
            max_attempts,
            retry_after,
        };
        settings.apply(py, self.0.once(name)).map(RunRequest::new)
    }

    #[pyo3(signature = (names, *, ttl=None, wait=None, owner=None, max_hold=None))]
    fn acquire_all(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        ttl: Option<Seconds>,
        wait: Option<Seconds>,
        owner: Option<String>,
        max_hold: Option<Seconds>,
    ) -> PyResult<Leases> {
        observe::begin(py)?;
        let request = self.all(py, names, [ttl, wait, max_hold], owner)?;
        let mut signals = Signals::default();
        let result = py.detach(|| ffi::acquire_all(request, || signals.interrupt()));
        signals.check()?;
        result.map(Leases::new).map_err(|error| raised(py, &error))
    }

    #[pyo3(signature = (names, *, ttl=None, wait=None, owner=None, max_hold=None))]
    fn begin_acquire_all(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        ttl: Option<Seconds>,
        wait: Option<Seconds>,
        owner: Option<String>,
        max_hold: Option<Seconds>,
    ) -> PyResult<Operation> {
        observe::begin(py)?;
        let request = self.all(py, names, [ttl, wait, max_hold], owner)?;
        Ok(Operation::new(async move { request.await.map(Outcome::Leases) }))
    }

    #[pyo3(signature = (name, *, ttl=None, owner=None, on_start=None, on_stop=None))]
    fn elect(
        &self,
        py: Python<'_>,
        name: &str,
        ttl: Option<Seconds>,
        owner: Option<String>,
        on_start: Option<Py<PyAny>>,
        on_stop: Option<Py<PyAny>>,
    ) -> PyResult<Election> {
        observe::begin(py)?;
        convert::warn_of_milliseconds(py, [("ttl", ttl)])?;
        let ttl: Option<Duration> = ttl.map(|ttl| ttl.finite(py, "ttl")).transpose()?;
        let election = election::start(py, self.0.elect(name), name, (ttl, owner), (on_start, on_stop))?;
        self.settle(py)?;
        Ok(election)
    }

    #[pyo3(signature = (name, count=None, *, on_gain=None, on_loss=None, ttl=None, owner=None, look_every=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn shards(
        &self,
        py: Python<'_>,
        name: &str,
        count: Option<Count>,
        on_gain: Option<Py<PyAny>>,
        on_loss: Option<Py<PyAny>>,
        ttl: Option<Seconds>,
        owner: Option<String>,
        look_every: Option<Seconds>,
    ) -> PyResult<Shards> {
        observe::begin(py)?;
        convert::warn_of_milliseconds(py, [("ttl", ttl), ("look_every", look_every)])?;
        let settings = shards::Settings {
            count: count.map(|Count(count)| count),
            ttl: ttl.map(|ttl| ttl.finite(py, "ttl")).transpose()?,
            owner,
            look_every: look_every.map(|every| every.finite(py, "look_every")).transpose()?,
        };
        let shards = shards::start(py, self.0.shards(name), name, settings, [on_gain, on_loss])?;
        self.settle(py)?;
        Ok(shards)
    }

    fn set_shards(&self, py: Python<'_>, name: &str, count: Count) -> PyResult<()> {
        let mut signals = Signals::default();
        let set = py.detach(|| ffi::wait(ffi::by_thread(&self.0).set_shards(name, count.0), || signals.interrupt()));
        signals.check()?;
        set.map_err(|error| raised(py, &error))
    }

    fn begin_set_shards(&self, name: String, count: Count) -> Operation {
        let client = leasehold::Client::clone(&self.0);
        Operation::new(async move { client.set_shards(name, count.0).await.map(|()| Outcome::Nothing) })
    }

    fn inspect(&self, py: Python<'_>, name: &str) -> PyResult<Option<LockInfo>> {
        let seen = py.detach(|| self.0.blocking().inspect(name));
        seen.map(|info| info.map(LockInfo::new)).map_err(|error| raised(py, &error))
    }

    fn begin_inspect(&self, name: String) -> Operation {
        let client = leasehold::Client::clone(&self.0);
        Operation::new(async move { client.inspect(name).await.map(Outcome::Info) })
    }

    #[pyo3(signature = (name, key=None))]
    fn inspect_run<'py>(&self, py: Python<'py>, name: &str, key: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let seen = py.detach(|| self.0.blocking().inspect_run(name, key));
        run::info(py, seen.map_err(|error| raised(py, &error))?)
    }

    #[pyo3(signature = (name, key=None))]
    fn begin_inspect_run(&self, name: String, key: Option<String>) -> Operation {
        let client = leasehold::Client::clone(&self.0);
        Operation::new(async move {
            client.inspect_run(&name, key.as_deref()).await.map(|info| Outcome::RunInfo(Box::new(info)))
        })
    }

    #[pyo3(signature = (name, key=None))]
    fn forget_run<'py>(&self, py: Python<'py>, name: &str, key: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
        let mut signals = Signals::default();
        let forgotten = py.detach(|| ffi::wait(ffi::by_thread(&self.0).forget_run(name, key), || signals.interrupt()));
        signals.check()?;
        run::completion(py, forgotten.map_err(|error| raised(py, &error))?)
    }

    #[pyo3(signature = (name, key=None))]
    fn begin_forget_run(&self, name: String, key: Option<String>) -> Operation {
        let client = leasehold::Client::clone(&self.0);
        Operation::new(async move { client.forget_run(&name, key.as_deref()).await.map(Outcome::Completion) })
    }

    #[pyo3(signature = (name, *, token=None, owner=None))]
    fn release_if(
        &self,
        py: Python<'_>,
        name: &str,
        token: Option<Natural>,
        owner: Option<String>,
    ) -> PyResult<ReleaseIfOutcome> {
        let meant = info::meant(token, owner);
        let outcome = py.detach(|| self.0.blocking().release_if(name, meant)).map_err(|error| raised(py, &error))?;
        ReleaseIfOutcome::new(py, outcome)
    }

    fn begin_release_if(&self, name: String, token: Option<Natural>, owner: Option<String>) -> Operation {
        let client = leasehold::Client::clone(&self.0);
        Operation::new(async move { client.release_if(name, info::meant(token, owner)).await.map(Outcome::ReleaseIf) })
    }

    #[pyo3(signature = (name, token, *, owner=None))]
    fn revoke(&self, py: Python<'_>, name: &str, token: Natural, owner: Option<String>) -> PyResult<RevokeOutcome> {
        let meant = info::meant(Some(token), owner);
        let outcome = py.detach(|| self.0.blocking().revoke(name, meant)).map_err(|error| raised(py, &error))?;
        RevokeOutcome::new(py, outcome)
    }

    fn begin_revoke(&self, name: String, token: Natural, owner: Option<String>) -> Operation {
        let client = leasehold::Client::clone(&self.0);
        Operation::new(async move { client.revoke(name, info::meant(Some(token), owner)).await.map(Outcome::Revoke) })
    }

    fn sessions(&self, py: Python<'_>) -> PyResult<Vec<SessionInfo>> {
        let sessions = py.detach(|| self.0.blocking().sessions()).map_err(|error| raised(py, &error))?;
        Ok(info::sessions(sessions))
    }

    fn begin_sessions(&self) -> Operation {
        let client = leasehold::Client::clone(&self.0);
        Operation::new(async move { client.sessions().await.map(Outcome::Sessions) })
    }

    fn revoke_session(&self, py: Python<'_>, label: &str) -> PyResult<Vec<SessionInfo>> {
        let sessions = py.detach(|| self.0.blocking().revoke_session(label)).map_err(|error| raised(py, &error))?;
        Ok(info::sessions(sessions))
    }

    fn begin_revoke_session(&self, label: String) -> Operation {
        let client = leasehold::Client::clone(&self.0);
        Operation::new(async move { client.revoke_session(label).await.map(Outcome::Sessions) })
    }

    /// Tells if the store shows the lease, and makes its record last for `record_ttl` from now on.
    fn refresh(&self, py: Python<'_>, lease: &Lease, record_ttl: Seconds) -> PyResult<bool> {
        let record_ttl = record_ttl.finite(py, "record_ttl")?;
        let refreshed =
            py.detach(|| ffi::wait(ffi::refresh(&ffi::by_thread(&self.0), lease.held(), record_ttl), || false));
        refreshed.map_err(|error| raised(py, &error))
    }

    fn begin_refresh(&self, py: Python<'_>, lease: &Lease, record_ttl: Seconds) -> PyResult<Operation> {
        let (client, held) = (leasehold::Client::clone(&self.0), lease.held().clone());
        let record_ttl = record_ttl.finite(py, "record_ttl")?;
        Ok(Operation::new(async move { ffi::refresh(&client, &held, record_ttl).await.map(Outcome::Answer) }))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let client = leasehold::Client::clone(&self.0);
        let closed = py.detach(|| ffi::close([client]));
        self.settle(py)?;
        closed.map_err(|error| raised(py, &error))
    }

    fn begin_close(&self) -> Operation {
        let client = leasehold::Client::clone(&self.0);
        Operation::new(async move { client.close().await.map(|()| Outcome::Nothing) }).paced(Pace::AfterCallbacks)
    }

    /// The urls of the stores, without secrets.
    #[getter]
    fn stores(&self) -> Vec<String> {
        self.0.stores().iter().map(ToString::to_string).collect()
    }
}

/// Closes all clients at once, within 2 s together, at the end of the interpreter. A lease whose release is not
/// confirmed by then expires.
#[pyfunction]
pub(crate) fn end(py: Python<'_>) {
    signals::end();
    // An unconfirmed release can be reported to nobody.
    py.detach(|| {
        let _ = ffi::close_tracked();
        outside::end();
    });
}
