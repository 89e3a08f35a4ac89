//! Sockets: listening, TLS, and the limits of connections.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::fs::Mode;
use rustix::process::umask;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::reply::MOST_HEAD;
use crate::args::ServeArgs;
use crate::output::{Failure, say};

/// The time for the handshake of TLS.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(10);
/// The time for the head of a request, with the pause before it: a connection serves renewals every 10 s, as those of a ttl
/// of 30 s are.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);
/// The time after which a peer that vanished silently is given up.
const SILENCE: Duration = Duration::from_secs(30);
/// The pause after the system could give no connection, as when there are too many files.
const PAUSE: Duration = Duration::from_millis(100);

/// An open socket of the daemon.
pub(super) struct Door {
    listener: Listener,
    tls: Option<TlsAcceptor>,
    room: Arc<Semaphore>,
}

enum Listener {
    Tcp(TcpListener, SocketAddr),
    /// Its file is removed at the end.
    Unix(UnixListener, PathBuf),
}

enum Accepted {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Door {
    /// # Errors
    /// The address is taken or forbidden, or a certificate cannot be read.
    pub(super) async fn open(args: &ServeArgs) -> Result<Self, Failure> {
        let tls = match (&args.tls_cert, &args.tls_key) {
            (Some(cert), Some(key)) => Some(acceptor(cert, key)?),
            (_, _) => None,
        };
        let listener = match &args.socket {
            Some(path) => unix(path).await,
            None => tcp(args.listen).await,
        };
        let place = || args.socket.as_ref().map_or_else(|| args.listen.to_string(), |path| path.display().to_string());
        let listener = listener.map_err(|error| {
            let is_taken = error.kind() == io::ErrorKind::AddrInUse;
            let advice = ": another program listens there; choose another one by --listen or --socket";
            Failure::system(&format!("cannot listen on {}{}", place(), if is_taken { advice } else { "" }), &error)
        })?;
        Ok(Self { listener, tls, room: Arc::new(Semaphore::new(args.max_connections)) })
    }

    pub(super) fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        match &self.listener {
            Listener::Tcp(_, address) => format!("{scheme}://{address}"),
            Listener::Unix(_, path) => format!("unix:{}", path.display()),
        }
    }

    /// Serves until it is dropped.
    pub(super) async fn serve(&self, router: Router) {
        let mut has_told = false;
        loop {
            // The semaphore is never closed. More connections wait in the queue of the system.
            let Ok(turn) = Arc::clone(&self.room).acquire_owned().await else { return };
            let stream = match self.accept().await {
                Ok(stream) => {
                    has_told = false;
                    stream
                }
                Err(error) => {
                    if !has_told {
                        say(format_args!("cannot accept connections: {error}"));
                    }
                    has_told = true;
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let (tls, router) = (self.tls.clone(), router.clone());
            tokio::spawn(async move {
                match (stream, tls) {
                    (Accepted::Tcp(stream), None) => talk(stream, router).await,
                    (Accepted::Unix(stream), _) => talk(stream, router).await,
                    (Accepted::Tcp(stream), Some(tls)) => {
                        if let Ok(Ok(stream)) = timeout(HANDSHAKE_PATIENCE, tls.accept(stream)).await {
                            talk(stream, router).await;
                        }
                    }
                }
                drop(turn);
            });
        }
    }

    async fn accept(&self) -> io::Result<Accepted> {
        match &self.listener {
            Listener::Unix(listener, _) => Ok(Accepted::Unix(listener.accept().await?.0)),
            Listener::Tcp(listener, _) => {
                let (stream, _) = listener.accept().await?;
                // These fail where the client has gone again, which is seen soon enough.
                let _ = stream.set_nodelay(true);
                #[cfg(target_os = "linux")]
                {
                    let silence = u32::try_from(SILENCE.as_millis()).unwrap_or(u32::MAX);
                    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, silence);
                }
                let _ = rustix::net::sockopt::set_socket_keepalive(&stream, true);
                Ok(Accepted::Tcp(stream))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

async fn talk(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router) {
    let mut http = http1::Builder::new();
    // Longer than a head may be, so that one that is too long is answered as such.
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE).max_buf_size(2 * MOST_HEAD);
    // An error is the client's: it has gone, was too slow, or speaks another protocol.
    let _ = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).await;
}

async fn tcp(address: SocketAddr) -> io::Result<Listener> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok(Listener::Tcp(listener, address))
}

/// A file that a dead daemon has left is replaced; it is for its owner only.
async fn unix(path: &Path) -> io::Result<Listener> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket && UnixStream::connect(path).await.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    {
        std::fs::remove_file(path)?;
    }
    // From its first moment, so that nobody slips in before.
    let mask = umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
    let listener = UnixListener::bind(path);
    umask(mask);
    let listener = listener?;
    Ok(Listener::Unix(listener, path.to_owned()))
}

fn acceptor(cert: &Path, key: &Path) -> Result<TlsAcceptor, Failure> {
    let wrong = |file: &Path, error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", file.display()));
    // No effect where one is installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let chain = CertificateDer::pem_file_iter(cert).and_then(|all| all.collect::<Result<Vec<_>, _>>());
    let chain = chain.map_err(|error| wrong(cert, &error))?;
    if chain.is_empty() {
        return Err(wrong(cert, &"there is no certificate in PEM in it"));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, secret);
    Ok(TlsAcceptor::from(Arc::new(config.map_err(|error| wrong(cert, &error))?)))
}
