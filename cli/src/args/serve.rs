//! The arguments of `leasehold serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::StoreArgs;

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The address to listen on; port 0 takes a free one
    ///
    /// An address beyond this machine needs --tls-cert, --tls-key and --tokens.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070", value_parser = address)]
    pub listen: SocketAddr,
    /// Listen on a unix socket instead, which only this user can open
    #[arg(long, value_name = "PATH", conflicts_with_all = ["listen", "tls_cert", "tls_key"])]
    pub socket: Option<PathBuf>,
    /// A file with the server's certificates, in PEM
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// A file with the key of the first certificate, in PEM
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// A file with the clients that are let in: lines of NAME TOKEN
    ///
    /// A token has 16 characters or more. Each name has its own leases.
    #[arg(long, value_name = "FILE")]
    pub tokens: Option<PathBuf>,
    /// A name for the session of this daemon, such as serve-7: 1 to 64 letters, digits and -_.:@/
    ///
    /// `leasehold sessions` shows it. In DynamoDB, etcd and objects the daemon then renews one record, however many locks
    /// its clients hold.
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// The most leases and waits of one client
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = count)]
    pub max_leases: usize,
    /// The most connections, of which three quarters may wait for locks or hold them; further ones wait
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = count)]
    pub max_connections: usize,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write an IP address and a port, such as 127.0.0.1:7070".to_owned())
}

fn count(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| (1..=100_000).contains(count)).ok_or_else(|| "write 1 to 100000".to_owned())
}

pub(super) const HELP: &str = "\
Examples:
  leasehold serve --store redis://locks.example.com
  curl -s -H 'Content-Type: application/json' \\
       -d '{\"resource\": \"nightly\", \"wait_ms\": 10000}' \\
       http://127.0.0.1:7070/v1/acquire
  leasehold serve --socket /run/leasehold/serve.sock
  leasehold serve --listen 0.0.0.0:7443 --tls-cert cert.pem --tls-key key.pem \\
       --tokens /etc/leasehold/tokens

The first line on stdout says where it listens. The routes are in /openapi.json,
the metrics in /metrics, and the page is /. See docs/serve.md.

Any signal that ends programs (TERM, INT, HUP and others) stops it: it releases
what its clients hold.

Exit status:
    0  it was stopped
and 64, 69, 70, 71, 74, 77 as in `leasehold --help`.
";
