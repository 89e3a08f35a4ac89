//! Making connections: sockets, TLS, who we are.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use ::redis::aio::{MultiplexedConnection, PubSub};
use ::redis::io::tcp::{TcpSettings, socket2};
use ::redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, ErrorKind as TheirKind, IntoConnectionInfo,
    RedisConnectionInfo, RedisError, TlsCertificates,
};
use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Refusal};
use leasehold_core::wire::redis::refusal;

use super::link::NoConnection;
use crate::error::Error;
use crate::url::redis::{RedisPlace, RedisUrl, TlsFiles};

/// How long a connection may take, greeting included.
pub(super) const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// A peer that vanished without a word is noticed after about this long, where nothing else notices it.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// The way to one server.
pub(super) struct Access {
    client: Client,
    shown: String,
}

impl Access {
    /// # Errors
    /// A certificate cannot be read.
    pub(super) fn new(url: &RedisUrl) -> Result<Self, Error> {
        // Without effect where the application has chosen its own.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let addr = match &url.place {
            RedisPlace::Tcp { host, port } => ConnectionAddr::Tcp(host.clone(), *port),
            RedisPlace::Unix { path } => ConnectionAddr::Unix(path.clone()),
            RedisPlace::Tls { host, port } => {
                ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure: false, tls_params: None }
            }
        };
        let mut login = RedisConnectionInfo::default()
            .set_db(i64::from(url.db))
            .set_lib_name("leasehold", env!("CARGO_PKG_VERSION"));
        if let Some(username) = &url.username {
            login = login.set_username(username);
        }
        if let Some(password) = &url.password {
            login = login.set_password(password.as_str());
        }
        let keepalive = socket2::TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 3);
        let tcp = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive);
        let wrong = |error: RedisError| Error::config(format!("{url}: {error}"));
        let info = addr.into_connection_info().map_err(wrong)?.set_tcp_settings(tcp).set_redis_settings(login);
        let client = match &url.place {
            RedisPlace::Tls { .. } => Client::build_with_tls(info, certificates(&url.tls)?).map_err(wrong)?,
            RedisPlace::Tcp { .. } | RedisPlace::Unix { .. } => Client::open(info).map_err(wrong)?,
        };
        Ok(Self { client, shown: url.to_string() })
    }

    pub(super) async fn connect(&self) -> Result<MultiplexedConnection, NoConnection> {
        // The core decides how long an answer is awaited, and for which request.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_PATIENCE))
            .set_response_timeout(None)
            .set_pipeline_buffer_size(1_024);
        let connected = self.client.get_multiplexed_async_connection_with_config(&config).await;
        connected.map_err(|error| self.no_connection(&error))
    }

    /// A connection for wake-ups alone.
    pub(super) async fn listen(&self) -> Result<PubSub, NoConnection> {
        let connected = tokio::time::timeout(CONNECT_PATIENCE, self.client.get_async_pubsub()).await;
        let timeout = |_| NoConnection::Fault(Fault::new(FaultKind::Timeout, "no greeting from the server in time"));
        connected.map_err(timeout)?.map_err(|error| self.no_connection(&error))
    }

    pub(super) fn no_connection(&self, error: &RedisError) -> NoConnection {
        let said = match (error.code(), error.detail()) {
            (Some(code), Some(detail)) => format!("{code} {detail}"),
            (Some(code), None) => code.to_owned(),
            (None, _) => error.to_string(),
        };
        if error.code().is_some()
            && let Some(refusal) = refusal(&said)
        {
            return NoConnection::Refused(refusal);
        }
        if error.kind() == TheirKind::AuthenticationFailed {
            let detail = format!("{said}; look at user and password in the store url, and at the server's ACL");
            return NoConnection::Refused(Refusal::Denied(Denial::new(DenialKind::Permission, &detail)));
        }
        NoConnection::Fault(Fault::new(FaultKind::Unreachable, &format!("{}: {said}", self.shown)))
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

fn certificates(files: &TlsFiles) -> Result<TlsCertificates, Error> {
    let client_tls = match (&files.cert, &files.key) {
        (Some(cert), Some(key)) => Some(ClientTlsConfig { client_cert: read(cert)?, client_key: read(key)? }),
        (_, _) => None,
    };
    Ok(TlsCertificates { client_tls, root_cert: files.ca.as_deref().map(read).transpose()? })
}

fn read(file: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(file).map_err(|error| Error::config(format!("the certificate file {}: {error}", file.display())))
}
