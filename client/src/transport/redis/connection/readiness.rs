//! A runtime of tokio that tells when a socket can be read or written.

use std::io;
use std::task::{Context, Poll};

use super::io::Io;
#[cfg(unix)]
pub(super) use unix::Readiness;
#[cfg(windows)]
pub(super) use windows::Readiness;

impl Readiness {
    /// Watches the socket of a connection. The answer has to be dropped before the connection.
    ///
    /// # Errors
    /// The runtime cannot watch it.
    pub(super) fn of(io: &Io) -> io::Result<Self> {
        Self::watch(io.stream())
    }
}

#[cfg(unix)]
mod unix {
    use rustix::fd::{AsRawFd, RawFd};
    use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};

    use super::super::stream::Stream;
    use super::{Context, Poll, io};

    pub(in super::super) struct Readiness(AsyncFd<Descriptor>);

    /// A descriptor that somebody else closes.
    struct Descriptor(RawFd);

    impl AsRawFd for Descriptor {
        fn as_raw_fd(&self) -> RawFd {
            self.0
        }
    }

    /// A direction that is ready.
    pub(in super::super) struct Ready<'a>(AsyncFdReadyGuard<'a, Descriptor>);

    impl Readiness {
        pub(super) fn watch(stream: &Stream) -> io::Result<Self> {
            // SAFETY: it is the descriptor of an open socket, and the same at each call. Those who keep the answer keep the
            // socket open for longer: they declare it in front of the socket, and fields are dropped in that order.
            unsafe { AsyncFd::register(Descriptor(stream.descriptor().as_raw_fd())) }.map(Self).map_err(io::Error::from)
        }

        pub(in super::super) fn poll_read(&self, context: &mut Context<'_>) -> Poll<io::Result<Ready<'_>>> {
            self.0.poll_read_ready(context).map_ok(Ready)
        }

        pub(in super::super) fn poll_write(&self, context: &mut Context<'_>) -> Poll<io::Result<Ready<'_>>> {
            self.0.poll_write_ready(context).map_ok(Ready)
        }
    }

    impl Ready<'_> {
        /// It is no longer, as a call has found.
        pub(in super::super) fn clear(&mut self) {
            self.0.clear_ready();
        }
    }
}

/// The runtime watches sockets of its own only: a second handle of the same one.
#[cfg(windows)]
mod windows {
    use tokio::io::Interest;
    use tokio::net::TcpStream;

    use super::super::stream::Stream;
    use super::{Context, Poll, io};

    pub(in super::super) struct Readiness(TcpStream);

    /// A direction that is ready.
    pub(in super::super) struct Ready<'a>(&'a TcpStream, Interest);

    impl Readiness {
        pub(super) fn watch(stream: &Stream) -> io::Result<Self> {
            stream.duplicate().and_then(TcpStream::from_std).map(Self)
        }

        pub(in super::super) fn poll_read(&self, context: &mut Context<'_>) -> Poll<io::Result<Ready<'_>>> {
            self.0.poll_read_ready(context).map_ok(|()| Ready(&self.0, Interest::READABLE))
        }

        pub(in super::super) fn poll_write(&self, context: &mut Context<'_>) -> Poll<io::Result<Ready<'_>>> {
            self.0.poll_write_ready(context).map_ok(|()| Ready(&self.0, Interest::WRITABLE))
        }
    }

    impl Ready<'_> {
        /// It is no longer, as a call has found. The system is asked again, and tells also what has come meanwhile.
        pub(in super::super) fn clear(&mut self) {
            let _ = self.0.try_io(self.1, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
        }
    }
}
