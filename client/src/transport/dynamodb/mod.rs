//! DynamoDB: single-row conditional writes over HTTPS.
//!
//! The formats of messages are in `leasehold_wire::dynamodb`; this module signs them ([`credentials`]) and sends
//! them. The core alone decides on retries: this module repeats no request, except that a request whose signature was
//! refused is signed again, once, with fresh keys or by the server's clock. DynamoDB sends no notifications of releases,
//! so waiters poll by reads.

mod access;
pub(crate) mod credentials;
mod doctor;
mod items;
pub(crate) mod table;

use std::ffi::OsString;
use std::sync::Arc;

use leasehold_core::config::Poll;
use leasehold_core::member::Marker;
use leasehold_core::op::{Denial, Outcome};
use leasehold_core::{NodeConfig, Transmit};
use leasehold_wire::HttpResponse;
use leasehold_wire::dynamodb::{Codec, Request, Settings};
use leasehold_wire::listing::{Page, Which};
use leasehold_wire::sigv4::http_date;

use self::access::{DynamodbAccess, DynamodbLink};
use self::credentials::Keys;
#[cfg(feature = "fuzzing")]
pub(crate) use self::credentials::fuzzing;
use super::connections::{Connections, Homes};
use super::items::Store;
use super::readiness::{CONNECT_PATIENCE, NoServer};
use super::web::MOST_CONNECTIONS;
use super::web_link::WebStore as _;
use super::{Answer, Network, NodeRecord, Pool, Transport, UnderLock};
use crate::admin::doctor::Finding;
use crate::error::Error;
use crate::host::clock;
use crate::host::fork;
use crate::url::dynamodb::DynamodbUrl;
use crate::url::place::{Expiry, Facts, Place, Site};
use crate::url::reach::machine;

impl Place for DynamodbUrl {
    fn facts(&self) -> Facts {
        Facts { site: Site::Network, expiry: Expiry::ByObservers }
    }

    fn config(&self) -> NodeConfig {
        NodeConfig { poll: Poll::Read, watch: false, batch: MOST_CONNECTIONS, durability: self.durability }
    }

    fn store(&self) -> Result<Arc<dyn Store>, Error> {
        Ok(Arc::new(Dynamodb::open(self)?))
    }

    fn machine(&self) -> Option<String> {
        // Tables of one region fail together.
        self.host().as_deref().map(machine)
    }

    fn handed_on(&self) -> Option<OsString> {
        Some(self.in_full().into())
    }
}

/// One table.
pub(crate) struct Dynamodb {
    connections: Arc<Connections<DynamodbLink>>,
    codec: Codec,
    url: DynamodbUrl,
    /// The table's id in DynamoDB; `None` where the permission to read it is missing.
    id: Option<String>,
}

impl Dynamodb {
    /// Reads the table's description, so that a wrong url, key or permission is reported at once.
    pub(crate) fn open(url: &DynamodbUrl) -> Result<Self, Error> {
        let mut store = Self::unchecked(url)?;
        store.id = table::check(&store)?;
        Ok(store)
    }

    /// Makes a store without contacting it.
    fn unchecked(url: &DynamodbUrl) -> Result<Self, Error> {
        fork::install().map_err(|error| Error::internal(format!("cannot watch for forks: {error}")))?;
        let codec = Codec::new(settings(url)?);
        let access = Arc::new(DynamodbAccess::new(url, codec.clone())?);
        let connections = Arc::new(Connections::new(Homes::Runtimes, move |_| DynamodbLink::new(Arc::clone(&access))));
        Ok(Self { connections, codec, url: url.clone(), id: None })
    }

    /// Greets the server in the background, whose connections then serve all callers until they have their own.
    fn ask(&self, request: Request) -> Result<HttpResponse, NoServer> {
        let deadline = clock::monotonic().plus(CONNECT_PATIENCE + credentials::PATIENCE);
        let asked =
            self.connections.block_on_background(move |link| async move { link.greeted(&request, deadline).await });
        asked.map_err(NoServer::Fault)?.map_err(NoServer::from)
    }

    /// The keys that requests are signed with now.
    fn keys(&self) -> Result<Arc<Keys>, NoServer> {
        let found = self.connections.block_on_background(|link| async move {
            let deadline = clock::monotonic().plus(credentials::PATIENCE);
            DynamodbAccess::keys(&link, None, deadline).await
        });
        found.map_err(NoServer::Fault)?.map_err(NoServer::from)
    }

    fn to_error(&self, why: &NoServer) -> Error {
        why.error(&self.url)
    }

    pub(crate) fn judged(&self, outcome: Outcome) -> Error {
        NoServer::from(outcome).error(&self.url)
    }
}

/// # Errors
/// A name or setting that DynamoDB would refuse too.
fn settings(url: &DynamodbUrl) -> Result<Settings, Error> {
    let build = || -> Result<Settings, Denial> {
        let mut settings = Settings::new(&url.table)?.key(&url.key)?;
        if let Some(sort) = &url.sort {
            settings = settings.sort_key(&sort.name, &sort.value)?;
        }
        if let Some(expires) = &url.expires {
            settings = settings.expires(expires)?;
        }
        Ok(settings)
    };
    build().map_err(|denial| Error::config(format!("{url}: {denial}")))
}

impl UnderLock for Dynamodb {}

impl Transport for Dynamodb {
    fn config(&self) -> NodeConfig {
        self.url.config()
    }

    fn perform(&self, request: &Transmit, _pool: Pool) -> Answer {
        self.connections.perform(request)
    }

    fn close(&self) {
        self.connections.close();
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(&*self.connections)
    }

    fn diagnose(&self) -> Vec<Finding> {
        doctor::diagnose(self)
    }

    fn look(&self) -> Result<NodeRecord, Error> {
        let response = self.ask(self.codec.look()).map_err(|why| self.to_error(&why))?;
        let found = self.codec.found(&response).map_err(|outcome| self.judged(outcome))?;
        Ok(NodeRecord { marker: found.marker, text: found.text, table: self.id.clone(), ..NodeRecord::default() })
    }

    fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Result<bool, Error> {
        let response = self.ask(self.codec.mark(found, marker)).map_err(|why| self.to_error(&why))?;
        self.codec.marked(marker, &response).map_err(|outcome| self.judged(outcome))
    }

    fn list(&self, prefix: &str, after: &[u8], which: Which) -> Result<Page, Error> {
        let response = self.ask(self.codec.list(prefix, after, which)).map_err(|why| self.to_error(&why))?;
        self.codec.listed(prefix, &response).map_err(|outcome| self.judged(outcome))
    }

    /// Reads the header `Date`, which has whole seconds.
    fn clock_offset(&self) -> Option<(i64, u64)> {
        self.ask(self.codec.look()).ok()?;
        let sent = clock::unix_ms();
        let response = self.ask(self.codec.look()).ok()?;
        ahead(sent, clock::unix_ms(), &response)
    }
}

/// The offset of the server's clock from this machine's, and its error, in milliseconds.
fn ahead(sent: u64, got: u64, response: &HttpResponse) -> Option<(i64, u64)> {
    // The header has whole seconds, so half a second is missing on average.
    let theirs = i64::try_from(http_date(response.header("date")?)? + 500).ok()?;
    let ours = i64::try_from(sent / 2 + got / 2).ok()?;
    Some((theirs - ours, got.saturating_sub(sent) / 2 + 501))
}
