//! TCP connections: their settings, and which address of a name they are made to.

use std::time::Duration;
#[cfg(any(feature = "redis", feature = "postgres"))]
use std::{io, net::SocketAddr};

#[cfg(any(feature = "redis", feature = "postgres"))]
use futures_util::{StreamExt, stream::FuturesUnordered};
#[cfg(any(feature = "redis", feature = "postgres"))]
use tokio::net::TcpStream;

#[cfg(any(feature = "redis", feature = "postgres"))]
use super::deadline::until;
#[cfg(any(feature = "redis", feature = "postgres"))]
use crate::host::clock;

/// The time after which a peer that vanished silently is asked for the first time, where nothing else notices it.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(15);

/// The time that is left for other addresses to connect once a server has spoken.
#[cfg(any(feature = "redis", feature = "postgres"))]
const GRACE: Duration = Duration::from_millis(500);

/// A connection that was tried.
#[cfg(any(feature = "redis", feature = "postgres"))]
pub(super) enum Tried<T, E> {
    Good(T),
    /// It works, but another address may lead to a better server.
    Spare(T),
    Bad(E),
}

/// The addresses of a name, asked for again each time.
#[cfg(any(feature = "redis", feature = "postgres"))]
pub(super) async fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let mut addresses = Vec::new();
    for address in tokio::net::lookup_host((host.trim_matches(['[', ']']), port)).await? {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address"));
    }
    Ok(addresses)
}

/// Connects to all addresses at the same time, since some may belong to an unreachable network, and tries the connections one
/// by one in the order in which they are made, until one is good. Each has its share of `patience`. Without a good one, a spare one
/// is returned; `None` where all is silent. Once a server has spoken, addresses that do not even connect are not awaited for long:
/// what it said must not be lost.
///
/// # Errors
/// The last error, if there is no connection.
#[cfg(any(feature = "redis", feature = "postgres"))]
pub(super) async fn first_good<T, E, F: Future<Output = Tried<T, E>>>(
    addresses: &[SocketAddr],
    patience: Duration,
    wrong: impl Fn(io::Error) -> E,
    mut enter: impl FnMut(TcpStream) -> F,
) -> Result<T, Option<E>> {
    let deadline = clock::monotonic().plus(patience);
    let mut connecting: FuturesUnordered<_> = addresses.iter().copied().map(TcpStream::connect).collect();
    let (mut spare, mut last, mut connected_by) = (None, None, deadline);
    while let Some(Some(connected)) = until(connected_by, connecting.next()).await {
        // Those that are not connected yet share the rest of the time with those that are silent afterwards.
        let waiting = u32::try_from(connecting.len()).unwrap_or(u32::MAX).saturating_add(1);
        let share = deadline.since(clock::monotonic()) / waiting;
        let socket = match connected.and_then(|socket| configure(&socket).map(|()| socket)) {
            Ok(socket) => socket,
            Err(error) => {
                last = Some(wrong(error));
                continue;
            }
        };
        match tokio::time::timeout(share, enter(socket)).await {
            Ok(Tried::Good(good)) => return Ok(good),
            Ok(Tried::Spare(connection)) => spare = spare.or(Some(connection)),
            Ok(Tried::Bad(error)) => last = Some(error),
            Err(_) => continue,
        }
        connected_by = deadline.min(clock::monotonic().plus(GRACE));
    }
    spare.ok_or(last)
}

/// Makes a connection send at once, and end when its peer has vanished.
#[cfg(any(feature = "redis", feature = "postgres"))]
fn configure(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let asking = socket2::TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 3);
    socket2::SockRef::from(socket).set_tcp_keepalive(&asking)
}

#[cfg(test)]
#[cfg(any(feature = "redis", feature = "postgres"))]
mod tests {
    use std::net::TcpListener;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A server that takes connections, and answers a question with this, or with nothing.
    fn server(says: Option<&'static [u8]>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut socket, _)) = listener.accept().await {
                if socket.read_u8().await.is_ok() {
                    socket.write_all(says.unwrap_or_default()).await.unwrap();
                }
                open.push(socket);
            }
        });
        address
    }

    async fn heard(mut socket: TcpStream) -> Tried<u8, String> {
        let mut byte = [0];
        socket.write_all(b"?").await.unwrap();
        match socket.read_exact(&mut byte).await {
            Ok(_) if byte == *b"w" => Tried::Good(byte[0]),
            Ok(_) => Tried::Spare(byte[0]),
            Err(error) => Tried::Bad(error.to_string()),
        }
    }

    async fn found(addresses: &[SocketAddr], patience: Duration) -> Result<u8, Option<String>> {
        first_good(addresses, patience, |error| error.to_string(), heard).await
    }

    #[tokio::test]
    async fn an_address_that_swallows_all_leaves_time_for_the_others() {
        let (silent, writer) = (server(None), server(Some(b"w")));
        for addresses in [[silent, writer], [writer, silent]] {
            assert_eq!(found(&addresses, Duration::from_secs(2)).await, Ok(b'w'));
        }
        assert_eq!(found(&[silent], Duration::from_millis(20)).await, Err(None));
    }

    /// An address that swallows packets: its queue of connections is full, and nobody takes them from it.
    fn swallows() -> (SocketAddr, Vec<socket2::Socket>) {
        let new = || socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        let listener = new();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let mut open = vec![listener];
        for _ in 0..4 {
            let waiting = new();
            waiting.set_nonblocking(true).unwrap();
            let _ = waiting.connect(&address);
            open.push(waiting);
        }
        (address.as_socket().unwrap(), open)
    }

    #[tokio::test]
    async fn what_a_server_says_is_not_lost_for_an_address_that_swallows_packets() {
        let (lost, _open) = swallows();
        let (replica, closes) = (server(Some(b"r")), server(None));
        let patience = Duration::from_secs(3_600);
        let soon = |addresses| async move {
            tokio::time::timeout(Duration::from_secs(60), found(addresses, patience)).await.expect("it has spoken")
        };
        assert_eq!(soon(&[lost, replica]).await, Ok(b'r'));
        let says_no = |_| async { Tried::<u8, _>::Bad("no".to_owned()) };
        let addresses = [lost, closes];
        let refused = first_good(&addresses, patience, |error| error.to_string(), says_no);
        let refused = tokio::time::timeout(Duration::from_secs(60), refused).await.expect("it has refused");
        assert_eq!(refused, Err(Some("no".to_owned())));
    }

    #[tokio::test]
    async fn a_replica_is_used_only_where_no_address_leads_to_a_writer() {
        let (replica, writer) = (server(Some(b"r")), server(Some(b"w")));
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        for addresses in [[replica, writer], [writer, replica]] {
            assert_eq!(found(&addresses, Duration::from_secs(60)).await, Ok(b'w'));
        }
        assert_eq!(found(&[replica, nobody], Duration::from_secs(60)).await, Ok(b'r'));
        assert!(matches!(found(&[nobody], Duration::from_secs(60)).await, Err(Some(_))));
    }
}
