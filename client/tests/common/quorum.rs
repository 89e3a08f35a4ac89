//! Quorums of real servers, and looking at what is left on each of them.

use std::time::Duration;

use leasehold::blocking::Client;
use leasehold::quorum::{Quorum, Standing};
use leasehold::{Client as AsyncClient, ClientBuilder, Error};
use leasehold_servers::proxy::Proxy;
use leasehold_servers::redis::Server;

use super::on_redis::{is_taken, load_scripts};
use super::{eventually, ms};

/// The longest ttl of all tests' quorums; a node that lost its memory abstains for a second more.
pub(crate) const MAX_TTL: Duration = ms(2_000);
/// So that several renewals fit into a test, and a machine that is busy with other things into a renewal.
pub(crate) const TTL: Duration = MAX_TTL;

/// Some Redis servers, each behind a proxy.
pub(crate) struct Nodes {
    pub(crate) servers: Vec<Server>,
    pub(crate) proxies: Vec<Proxy>,
}

impl Nodes {
    pub(crate) fn start(nodes: usize) -> Self {
        let servers: Vec<Server> = std::thread::scope(|scope| {
            let started: Vec<_> = (0..nodes).map(|_| scope.spawn(Server::start)).collect();
            started.into_iter().map(|server| server.join().unwrap()).collect()
        });
        servers.iter().for_each(load_scripts);
        let proxies = servers.iter().map(|server| Proxy::to(server.address())).collect();
        Self { servers, proxies }
    }

    /// Through the proxies.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.servers.iter().zip(&self.proxies).map(|(server, proxy)| server.url_at(proxy.port())).collect()
    }

    /// Straight to the servers.
    pub(crate) fn direct(&self) -> Vec<String> {
        self.servers.iter().map(Server::url).collect()
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect_with(settings(), self.urls()).unwrap()
    }

    /// As [`Nodes::connect`], past the proxies.
    pub(crate) fn connect_directly(&self) -> Client {
        Client::connect_with(settings(), self.direct()).unwrap()
    }

    /// Marks the nodes, and connects through the proxies.
    pub(crate) fn create(&self) -> Client {
        Client::connect_with(settings().create_quorum(), self.urls()).unwrap()
    }

    pub(crate) fn taken(&self, resource: &str) -> Vec<bool> {
        self.servers.iter().map(|server| is_taken(server, resource)).collect()
    }

    /// Waits until no node shows the lock.
    pub(crate) fn wait_for_nothing_left(&self, resource: &str) {
        eventually("nothing is left behind", || self.taken(resource).iter().all(|taken| !taken));
    }

    pub(crate) fn standings(&self) -> Vec<Standing> {
        self.look().unwrap().status().iter().map(|status| status.standing).collect()
    }

    pub(crate) fn look(&self) -> Result<Quorum, Error> {
        Quorum::connect(&settings(), self.direct())
    }
}

/// Servers and proxies have other names, and are one quorum.
pub(crate) fn settings() -> ClientBuilder {
    AsyncClient::builder().max_ttl(MAX_TTL).quorum_id("of these tests")
}

/// The longest ttl of [`patient`] clients.
pub(crate) const LONG_TTL: Duration = ms(60_000);

/// Clients that take no slow answer for a lost one, however busy the machine is.
pub(crate) fn patient() -> ClientBuilder {
    settings().max_ttl(LONG_TTL).request_timeout(ms(10_000))
}
