//! A client behind a proxy.

use crate::common::ms;
use crate::common::on_redis::load_scripts;
use leasehold::Client as AsyncClient;
use leasehold::blocking::Client;
use leasehold_servers::proxy::Proxy;
use leasehold_servers::redis::Server;

/// A client whose way to its server can be broken.
pub(super) struct Rig {
    pub(super) server: Server,
    pub(super) proxy: Proxy,
    pub(super) client: Client,
}

impl Rig {
    pub(super) fn new() -> Self {
        let server = Server::start();
        load_scripts(&server);
        let proxy = Proxy::to(server.address());
        // Silence is to be noticed soon; a machine that is slower only asks more often.
        let settings = AsyncClient::builder().request_timeout(ms(250));
        let client = Client::connect_with(settings, server.url_at(proxy.port())).unwrap();
        Self { server, proxy, client }
    }
}
