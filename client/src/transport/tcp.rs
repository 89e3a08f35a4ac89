//! The settings of TCP connections.

use std::time::Duration;

/// The time after which a peer that vanished silently is asked for the first time, where nothing else notices it.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(15);

/// Makes a connection send at once, and end when its peer has vanished.
#[cfg(any(feature = "redis", feature = "postgres"))]
pub(super) fn configure(socket: &tokio::net::TcpStream) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let asking = socket2::TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 3);
    socket2::SockRef::from(socket).set_tcp_keepalive(&asking)
}
