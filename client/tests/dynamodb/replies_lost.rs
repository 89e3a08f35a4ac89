//! Writes whose answer never came, or came to nobody: applied or not, each counts once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::on_dynamodb::{attribute, counter, is_held, row, through};
use crate::common::{PATIENCE, eventually, ms};
use crate::{new_table, server};
use leasehold::blocking::{Client, Lease};
use leasehold::{Client as AsyncClient, ErrorKind};
use leasehold_servers::dynamodb::Server;
use leasehold_servers::proxy::{Loss, Proxy, Request};
use serde_json::Value;

/// Texts that occur only in the write of one operation.
const ACQUIRE: &str = "REMOVE #ir";
const RENEW: &str = "AND #rvn < :rvn";
const RELEASE: &str = "SET #ir = :yes";

struct Rig {
    server: Server,
    proxy: Proxy,
    url: String,
    client: Client,
}

impl Rig {
    fn new() -> Self {
        Self::with(ms(3_000))
    }

    /// Silence is noticed after `request_timeout`.
    fn with(request_timeout: Duration) -> Self {
        let server = server();
        let proxy = Proxy::to(server.address());
        let url = new_table(&server);
        let settings = AsyncClient::builder().request_timeout(request_timeout);
        let client = Client::connect_with(settings, through(&url, proxy.address())).unwrap();
        // A server takes long for the first of each kind.
        client.lock("warm-up").wait(PATIENCE).acquire().unwrap().release().unwrap();
        Self { server, proxy, url, client }
    }

    /// Requests for rows from now on. A fault that comes later does not keep them from being counted.
    fn count(&self) -> Arc<AtomicUsize> {
        let counted = Arc::new(AtomicUsize::new(0));
        let counting = Arc::clone(&counted);
        let _ = self.proxy.reset_before_forwarding(Request::matching(move |request| {
            let is_of_a_row =
                contains(request, "DynamoDB_20120810.UpdateItem") || contains(request, "20120810.GetItem");
            counting.fetch_add(usize::from(is_of_a_row), Ordering::SeqCst);
            false
        }));
        counted
    }

    /// The bodies of requests like these, as they pass from now on.
    fn record(&self, what: &'static str) -> Arc<Mutex<Vec<Value>>> {
        let bodies: Arc<Mutex<Vec<Value>>> = Arc::default();
        let kept = Arc::clone(&bodies);
        let _ = self.proxy.reset_before_forwarding(Request::matching(move |request| {
            if contains(request, what) {
                let head = request.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
                kept.lock().unwrap().push(serde_json::from_slice(&request[head + 4..]).unwrap());
            }
            false
        }));
        bodies
    }

    fn lease(&self, name: &str) -> Lease {
        self.client.lock(name).ttl(ms(20_000)).renew_every(ms(200)).wait(PATIENCE).acquire().unwrap()
    }

    fn row(&self, name: &str) -> Value {
        row(&self.server, &self.url, name)
    }

    fn version(&self, name: &str) -> String {
        attribute(&self.row(name), "recordVersionNumber").to_owned()
    }

    fn wait_for_renewals(&self, name: &str, times: u32) {
        for _ in 0..times {
            let before = self.version(name);
            eventually("it is renewed", || self.version(name) != before);
        }
    }
}

fn contains(request: &[u8], what: &str) -> bool {
    request.windows(what.len()).any(|window| window == what.as_bytes())
}

#[test]
fn an_acquisition_whose_answer_is_lost_is_one_grant_and_costs_one_more_request() {
    let rig = Rig::new();
    for loss in Loss::ALL {
        let name = format!("{loss:?}");
        rig.proxy.pass();
        let requests = rig.count();
        let lost = rig.proxy.lose(loss, Request::containing(ACQUIRE));
        // No renewal is to be counted.
        let lease = rig.client.lock(&name).ttl(ms(60_000)).wait(PATIENCE).acquire().unwrap();
        assert_eq!((lost.hits(), requests.load(Ordering::SeqCst)), (1, 2), "{loss:?}");
        assert_eq!(counter(&rig.row(&name)), lease.token(), "{loss:?}: no second token is minted");
        lease.check(ms(1)).unwrap();
        lease.release().unwrap();
        assert!(!is_held(&rig.row(&name)), "{loss:?}");
        // The row is there now, so the counter may have to be stepped; it is not stepped twice.
        let before = counter(&rig.row(&name));
        let lost = rig.proxy.lose(loss, Request::containing(ACQUIRE));
        let lease = rig.lease(&name);
        assert_eq!((lost.hits(), counter(&rig.row(&name))), (1, lease.token()), "{loss:?}");
        assert!(lease.token() > before, "{loss:?}");
        lease.release().unwrap();
    }
}

#[test]
fn giving_up_without_an_answer_leaves_no_orphan() {
    let rig = Rig::with(ms(400));
    for loss in [Loss::ResetAfterwards, Loss::Silence] {
        let name = format!("{loss:?}");
        rig.proxy.pass();
        let lost = rig.proxy.lose(loss, Request::containing(ACQUIRE).always());
        // Far longer than the test has patience: only a release can free it.
        let asked = rig.client.lock(&name).ttl(ms(600_000)).wait(ms(900)).acquire();
        assert_eq!(asked.unwrap_err().kind(), ErrorKind::StoreUnavailable, "{loss:?}");
        assert!(lost.hits() >= 1 && rig.row(&name).is_object(), "{loss:?}: it had been taken");
        eventually("what was taken is released", || !is_held(&rig.row(&name)));
    }
}

#[test]
fn a_heartbeat_whose_answer_is_lost_costs_no_lease() {
    let rig = Rig::new();
    for loss in Loss::ALL {
        let name = format!("{loss:?}");
        rig.proxy.pass();
        let lease = rig.lease(&name);
        let lost = rig.proxy.lose(loss, Request::containing(RENEW));
        lost.wait_for_hits(1);
        rig.wait_for_renewals(&name, 3);
        lease.check(ms(1)).unwrap();
        assert!(!lease.is_lost(), "{loss:?}");
        assert_eq!(counter(&rig.row(&name)), lease.token(), "{loss:?}: a heartbeat mints nothing");
        lease.release().unwrap();
    }
}

#[test]
fn a_heartbeat_changes_nothing_but_the_version() {
    let rig = Rig::new();
    let lease = rig.client.lock("job").ttl(ms(20_000)).renew_every(ms(200)).owner("me").data(b"x").acquire().unwrap();
    let mut before = rig.row("job");
    rig.wait_for_renewals("job", 2);
    let mut after = rig.row("job");
    for row in [&mut before, &mut after] {
        row.as_object_mut().unwrap().remove("recordVersionNumber").unwrap();
    }
    assert_eq!(before, after);
    lease.release().unwrap();
}

#[test]
fn a_release_whose_answer_is_lost_is_confirmed_by_repetition() {
    let rig = Rig::with(ms(1_000));
    for loss in Loss::ALL {
        let name = format!("{loss:?}");
        rig.proxy.pass();
        let lease = rig.lease(&name);
        let lost = rig.proxy.lose(loss, Request::containing(RELEASE));
        lease.release().unwrap();
        assert_eq!(lost.hits(), 1, "{loss:?}");
        let row = rig.row(&name);
        assert!(!is_held(&row) && counter(&row) == lease.token(), "{loss:?}: the row stays, and its token: {row}");
        let next = rig.client.lock(&name).try_acquire().unwrap().expect("it is free");
        assert!(next.token() > lease.token(), "{loss:?}");
    }
}

#[test]
fn writes_that_arrive_late_are_refused() {
    let rig = Rig::new();
    let refused = |bodies: &[Value], when: &str| {
        let before = rig.row("job");
        for body in bodies {
            let response = rig.server.request("UpdateItem", body);
            assert_eq!(response.status, 400, "{when}: {body}");
            assert!(response.text().contains("ConditionalCheckFailedException"), "{when}: {}", response.text());
        }
        let changed = |row: &Value| -> Vec<String> {
            // The holder goes on.
            let ours = row.as_object().unwrap().iter().filter(|(name, _)| *name != "recordVersionNumber");
            ours.map(|(name, value)| format!("{name} {value}")).collect()
        };
        assert_eq!(changed(&before), changed(&rig.row("job")), "{when}");
    };
    let (acquires, heartbeats, releases) = (rig.record(ACQUIRE), rig.record(RENEW), rig.record(RELEASE));
    let taken = |bodies: &Mutex<Vec<Value>>| bodies.lock().unwrap().clone();
    let lease = rig.lease("job");
    rig.wait_for_renewals("job", 3);
    let older = taken(&heartbeats);
    rig.wait_for_renewals("job", 1);
    refused(&older[..2], "an older heartbeat after a newer one");
    refused(&taken(&acquires), "the first write after a heartbeat");
    lease.check(ms(1)).unwrap();
    rig.wait_for_renewals("job", 1);
    lease.release().unwrap();
    let ours = [taken(&acquires), taken(&heartbeats)].concat();
    refused(&ours, "what was sent before the release, after it");
    let next = Client::connect(&rig.url).unwrap().lock("job").acquire().unwrap();
    refused(&[ours, taken(&releases)].concat(), "all of it while another holds the lock");
    next.check(ms(1)).unwrap();
    next.release().unwrap();
}

#[test]
fn a_store_that_is_away_for_a_while_costs_no_lease() {
    let rig = Rig::with(ms(400));
    let lease = rig.lease("job");
    rig.proxy.black_hole();
    let before = rig.proxy.requests();
    eventually("two renewals are swallowed", || rig.proxy.requests() >= before + 2);
    rig.proxy.refuse();
    rig.proxy.cut_all();
    let before = rig.proxy.connections();
    eventually("and refused", || rig.proxy.connections() >= before + 2);
    rig.proxy.pass();
    rig.wait_for_renewals("job", 2);
    lease.check(ms(1)).unwrap();
    lease.release().unwrap();
}

#[test]
fn what_a_proxy_sends_twice_counts_once() {
    let server = server();
    let proxy = Proxy::to(server.address());
    let url = through(&new_table(&server), proxy.address());
    crate::common::twice::whatever_is_sent_twice_counts_once(&proxy, &url, Request::containing("UpdateItem"));
}

#[test]
fn connections_that_fell_silent_are_left_after_one_request() {
    let server = server();
    let url = new_table(&server);
    let proxy = Proxy::to(server.address());
    crate::common::silence::is_noticed_once(&proxy, &through(&url, proxy.address()));
}
