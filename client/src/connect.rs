//! Opening a client: settings, one store or the nodes of a quorum.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::config::Drift;
use leasehold_core::{Config, NodeId, Owner, SessionLabel};
use tracing::dispatcher::{self, Dispatch};

use crate::client::{Backend, Client};
use crate::driver::Driver;
use crate::error::Error;
use crate::host::time::Time;
use crate::quorum::{self, Quorum, nodes};
use crate::stores::Stores;
use crate::url::StoreUrl;
use crate::url::place::{Expiry, Place};

/// Settings of a client that are not its stores; start with [`Client::builder`].
#[derive(Clone, Debug, Default)]
pub struct ClientBuilder {
    owner: Option<String>,
    drift_ppm: Option<u32>,
    request_timeout: Option<Duration>,
    max_ttl: Option<Duration>,
    quorum_id: Option<String>,
    session: Option<String>,
    create: Create,
}

/// The choice between joining a quorum and making one of new nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Create {
    #[default]
    Leave,
    Make,
}

impl Client {
    /// Opens a store: `sqlite:PATH` for all processes of one machine, `redis://HOST` for many, `memory:` for this process
    /// alone. [`DefaultStore`](crate::DefaultStore) means the urls in the environment variable `LEASEHOLD_STORE`, else a file
    /// in the user's state folder, with a warning, or an error where the variable `LEASEHOLD_REQUIRE_STORE` is `1`.
    ///
    /// Several urls form a **quorum** of independent nodes, of one kind or of different ones: a lock is had once a
    /// majority has granted it, so that a minority may fail. Use three or five: a fourth node helps no more than
    /// the third. All clients name the same nodes. A new quorum is made with `leasehold quorum init` or
    /// [`ClientBuilder::create_quorum`]; without either, its first lock waits until all nodes answer, and for a little
    /// more than [`max_ttl`](ClientBuilder::max_ttl).
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a url that cannot be read or a file that is no store of ours,
    /// [`ErrorKind::StoreRefused`](crate::ErrorKind::StoreRefused) where permissions are missing,
    /// [`ErrorKind::StoreUnavailable`](crate::ErrorKind::StoreUnavailable) otherwise. Of a quorum, a minority may be
    /// unavailable; it is connected to later. Two names for the same server, or a node that belongs to
    /// another quorum or has another `max_ttl`, are [`ErrorKind::Config`](crate::ErrorKind::Config).
    pub async fn connect(stores: impl Stores) -> Result<Self, Error> {
        Self::builder().connect(stores).await
    }

    /// Starts with settings other than the defaults.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }
}

impl ClientBuilder {
    /// The label that others see beside a lock. Default `host:pid:thread` of the thread that acquires; at most 256 bytes.
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

    /// A name for the session that all leases of the client belong to, such as `worker-7`: 1 to 64 ASCII letters, digits and
    /// `-_.:@/`. Default none.
    ///
    /// On DynamoDB, etcd and objects the session is renewed in the place of its leases: one write every third of the ttl,
    /// however many locks are held, and a thousand locks cost as much as one. They are lost together, too: nobody else gets any
    /// of them before the session has stood still for its ttl. Elsewhere the session is only a name beside each lock.
    /// Several clients may give the same name; each has a session of its own.
    #[must_use]
    pub fn session(mut self, label: impl Into<String>) -> Self {
        self.session = Some(label.into());
        self
    }

    /// For a quorum: the most that ttl and lock delay of a lock may be together, 100 ms to 48 h. Default: what a majority
    /// of the nodes remembers, or else 60 s. A node that has lost its data does not vote for a little longer than this.
    /// All clients of a quorum must use the same, and one that differs from the nodes' is refused.
    #[must_use]
    pub fn max_ttl(mut self, max_ttl: Duration) -> Self {
        self.max_ttl = Some(max_ttl);
        self
    }

    /// For a quorum: what its nodes know it by. By default that follows from the names of the nodes, which must then be
    /// the same for all clients; give an id where some reach a node under another name. 32 hexadecimal digits, as
    /// `leasehold quorum status` shows them, are the id itself; any other text, of 1 to 256 bytes, stands for one.
    #[must_use]
    pub fn quorum_id(mut self, id: impl Into<String>) -> Self {
        self.quorum_id = Some(id.into());
        self
    }

    /// For a quorum: if none of its nodes has been marked yet, marks all of them as members, so that the first lock need
    /// not wait. Where the quorum exists already, nothing is done.
    ///
    /// For tests, examples and the first start. Left in code that is deployed, it **skips the abstention when all nodes
    /// lose their data**: they look like new ones then, and the first client to connect marks them at once, while
    /// holders from before still believe in their leases. Normally use `leasehold quorum init`, once.
    #[must_use]
    pub fn create_quorum(mut self) -> Self {
        self.create = Create::Make;
        self
    }

    /// Opens a store, or the nodes of a quorum: see [`Client::connect`].
    ///
    /// # Errors
    /// As [`Client::connect`], and [`ErrorKind::Config`](crate::ErrorKind::Config) for a setting outside its bounds, or
    /// one of a quorum where a single store is named.
    pub async fn connect(self, stores: impl Stores) -> Result<Client, Error> {
        let urls = stores.urls()?;
        // The caller's log subscriber also hears the warnings of the connecting thread.
        let log = dispatcher::get_default(Dispatch::clone);
        let opened = Time::System.offload(move || dispatcher::with_default(&log, || self.open(&urls, Time::System)));
        opened.await?
    }

    pub(crate) fn open(self, urls: &[StoreUrl], time: Time) -> Result<Client, Error> {
        let owner = self.owner.as_deref().map(Owner::new).transpose()?;
        let places = places(urls)?;
        if let [url] = places.as_slice() {
            self.refuse_settings_of_a_quorum()?;
            let transport = url.open()?;
            quorum::refuse_node(&**url, &*transport)?;
            if let (Some(_), Some(why)) = (&self.session, transport.refuses_sessions()) {
                return Err(Error::config(format!("{url}: {why}")));
            }
            let config = self.config(&places, vec![transport.config()])?.with_queues(transport.keeps_queue());
            let driver = Driver::start(config, vec![transport], time)?;
            return Ok(Client::new(driver, owner, Backend::Store(Box::new(Arc::clone(url).into()))));
        }
        let mut quorum = self.quorum(places)?;
        quorum::check(&quorum)?;
        if self.create == Create::Make {
            quorum.create()?;
        }
        quorum::announce(&quorum);
        let (config, votes) = (quorum.config().clone(), quorum.votes());
        let (transports, nodes) = quorum.into_parts();
        let driver = Driver::start(config, transports, time)?;
        driver.note_votes(&votes);
        Ok(Client::new(driver, owner, Backend::Quorum(Arc::new(nodes))))
    }

    /// The nodes, as far as they answer.
    fn quorum(&self, places: Vec<Arc<dyn Place>>) -> Result<Quorum, Error> {
        let names: Vec<String> = places.iter().map(|place| place.node_name()).collect();
        nodes::refuse_doubles(&places, &names)?;
        // Refuses too many nodes before any of them is asked.
        let config = self.config(&places, places.iter().map(|place| place.config()).collect())?;
        let id = nodes::id(self.quorum_id.as_deref(), &names)?;
        Quorum::open(places, names, id, self.max_ttl, config)
    }

    fn config(&self, places: &[Arc<dyn Place>], nodes: Vec<leasehold_core::NodeConfig>) -> Result<Config, Error> {
        let observed =
            (0..).map(NodeId::new).zip(places).filter(|(_, place)| place.facts().expiry == Expiry::ByObservers);
        let mut config = Config::new(nodes)?.with_observed(observed.map(|(node, _)| node));
        if let Some(session) = &self.session {
            config = config.with_session(SessionLabel::new(session)?);
        }
        if let Some(ppm) = self.drift_ppm {
            config = config.with_drift(Drift::from_ppm(ppm)?);
        }
        if let Some(timeout) = self.request_timeout {
            config = config.with_request_timeout(timeout)?;
        }
        Ok(config)
    }

    fn refuse_settings_of_a_quorum(&self) -> Result<(), Error> {
        let set = [
            (self.max_ttl.is_some(), "max_ttl"),
            (self.quorum_id.is_some(), "quorum_id"),
            (self.create == Create::Make, "create_quorum"),
        ];
        match set.iter().find(|(is_set, _)| *is_set) {
            Some((_, name)) => Err(Error::config(format!(
                "{name} is a setting of quorums, but only one store is named: name all nodes of the quorum, or leave \
                 {name} out"
            ))),
            None => Ok(()),
        }
    }
}

impl Quorum {
    /// Looks at all nodes, at the same time. Of `settings`, those of quorums count. That a node does not answer is no
    /// error here: [`Quorum::status`] tells.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for urls that cannot be read, fewer than two of them, the same
    /// one twice, and settings outside their bounds.
    pub fn connect(settings: &ClientBuilder, stores: impl Stores) -> Result<Self, Error> {
        let urls = stores.urls()?;
        let places = places(&urls)?;
        if let [only] = places.as_slice() {
            return Err(Error::config(format!(
                "{only} alone is no quorum, and needs no membership record: name all nodes, three or five of them"
            )));
        }
        settings.quorum(places)
    }
}

/// The places of stores, with what their urls leave to the environment and to files.
fn places(urls: &[StoreUrl]) -> Result<Vec<Arc<dyn Place>>, Error> {
    urls.iter().map(StoreUrl::place).collect()
}
