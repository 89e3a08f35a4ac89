//! A real store, through the client's own transports.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use leasehold::direct::Direct;
use leasehold_core::member::{Marker, RunId};
use leasehold_core::op::{Op, Outcome};
use leasehold_core::{LockId, Monotonic, Resource};

use leasehold_wire::cas::{Answer, Ask};

use super::rows::Rows;
use crate::compare::Fields;
use crate::run::Side;
use crate::script::{CLIENTS, Edit, NAMES};

static SEQUENCES: AtomicU64 = AtomicU64::new(0);

/// One sequence at a store: its clients, and resources of its own.
pub struct Real<'a> {
    store: &'static str,
    clients: Vec<Direct>,
    url: String,
    rows: &'a dyn Rows,
    resources: Vec<Resource>,
    items: Vec<Resource>,
    began: Instant,
    asked: u64,
    is_node: bool,
}

impl<'a> Real<'a> {
    /// Connects to a store. No marker is left of the sequence before.
    ///
    /// # Panics
    /// The store cannot be opened.
    pub fn new(store: &'static str, url: &str, rows: &'a dyn Rows, is_node: bool) -> Self {
        let clients = connect(url);
        let sequence = SEQUENCES.fetch_add(1, Ordering::Relaxed);
        // The beginning of a name says if it is that of a session.
        let name = |name: &&str| Resource::new(&format!("{name}-{sequence}")).expect("a good name");
        let resources = NAMES.iter().map(name).collect();
        let items = (0..NAMES.len()).map(|item| name(&&*format!("item-{item}"))).collect();
        let mut real = Self {
            store,
            clients,
            url: url.to_owned(),
            rows,
            resources,
            items,
            began: Instant::now(),
            asked: 0,
            is_node,
        };
        if is_node {
            Side::mark(&mut real, None);
        }
        real
    }

    fn resource(&self, name: u8) -> &Resource {
        &self.resources[usize::from(name)]
    }
}

fn connect(url: &str) -> Vec<Direct> {
    (0..CLIENTS).map(|_| Direct::open(url).expect("the store opens")).collect()
}

impl Side for Real<'_> {
    fn store(&self) -> &str {
        self.store
    }

    fn is_observed(&self) -> bool {
        self.clients[0].is_observed()
    }

    fn keeps_queue(&self) -> bool {
        self.clients[0].keeps_queue()
    }

    fn keeps_queue_in_row(&self) -> bool {
        self.store == "postgres"
    }

    fn now(&mut self) -> (Monotonic, u64) {
        // Far from 0, so that there is an instant before every other.
        let uptime = Monotonic::from_ns(1_000_000_000).plus(self.began.elapsed());
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
        (uptime, u64::try_from(unix.as_millis()).expect("it is not that late"))
    }

    fn ask(&mut self, name: u8, client: u8, lock: LockId, op: &Op) -> Outcome {
        self.asked += 1;
        self.clients[usize::from(client)].ask(self.asked, lock, self.resource(name), op)
    }

    fn item(&mut self, name: u8, client: u8, ask: Ask<'_>) -> Option<Answer> {
        Some(self.clients[usize::from(client)].ask_item(&self.items[usize::from(name)], ask))
    }

    fn edit(&mut self, name: u8, edit: &Edit) -> bool {
        self.rows.edit(self.resource(name).as_str(), edit)
    }

    fn raw(&mut self, name: u8) -> Fields {
        self.rows.raw(self.resource(name).as_str())
    }

    fn look(&mut self) -> Option<(Option<Marker>, Option<RunId>)> {
        self.is_node.then(|| {
            let (marker, _, run) = self.clients[0].look().expect("the marker can be read");
            (marker, run)
        })
    }

    fn mark(&mut self, marker: Option<&Marker>) {
        let (_, found, _) = self.clients[0].look().expect("the marker can be read");
        if !found.is_empty() || marker.is_some() {
            assert!(self.clients[0].mark(&found, marker).expect("the marker can be written"), "nobody else writes it");
        }
        // A client of objects that had read another marker may not know how its next write has ended: so none has.
        if ["azure-blob", "s3", "gcs"].contains(&self.store) {
            self.clients = connect(&self.url);
        }
    }

    fn leave(&mut self, name: u8, client: u8, lock: LockId) {
        self.clients[usize::from(client)].leave_queue(self.resource(name), lock);
    }
}
