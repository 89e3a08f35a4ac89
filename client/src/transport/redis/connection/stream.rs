//! A socket that never blocks, with or without TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
#[cfg(unix)]
use std::os::unix::net::UnixStream;

use rustix::fd::{AsFd, BorrowedFd};
use rustls::ClientConnection;

/// A socket in non-blocking mode.
#[derive(Debug)]
pub(in super::super) enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

/// A socket, and its encryption.
pub(in super::super) struct Stream {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
}

impl Socket {
    /// Ends both directions, so that the thread which waits for the socket notices.
    fn shut_down(&self) {
        // It may be closed by the other side already.
        let _ = rustix::net::shutdown(self.descriptor(), rustix::net::Shutdown::Both);
    }
}

impl Socket {
    fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            #[cfg(unix)]
            Self::Unix(socket) => socket.as_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.read(buffer),
            #[cfg(unix)]
            Self::Unix(socket) => socket.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.write(bytes),
            #[cfg(unix)]
            Self::Unix(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream {
    pub(in super::super) fn new(socket: Socket, tls: Option<ClientConnection>) -> Self {
        Self { socket, tls: tls.map(Box::new) }
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Tells if the server has not finished its part of the TLS handshake.
    pub(in super::super) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Reads what has arrived. 0 is the end of the stream.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] where nothing has arrived. A TLS stream that ends without saying so is an error.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(tls) = &mut self.tls else { return retry(|| self.socket.read(buffer)) };
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            if retry(|| tls.read_tls(&mut self.socket))? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            if let Err(error) = tls.process_new_packets() {
                // The alert tells the server why.
                let _ = tls.write_tls(&mut self.socket);
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
            // A handshake goes on with an answer, and nothing else may be about to be written.
            match self.write_tls() {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// Writes some of the bytes, and returns how many it has taken.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] where the socket takes nothing now.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return retry(|| self.socket.write(bytes)) };
        let taken = match tls.writer().write(bytes)? {
            // Its buffer is full. Once that has left, there is room; before the end of the handshake there may be none.
            0 => {
                self.write_tls()?;
                match &mut self.tls {
                    Some(tls) => tls.writer().write(bytes)?,
                    None => 0,
                }
            }
            taken => taken,
        };
        match self.write_tls() {
            // Some of it may have left, whatever the error. The next call meets it again.
            Err(_) if taken > 0 => Ok(taken),
            Err(error) => Err(error),
            Ok(()) if taken == 0 => Err(ErrorKind::WouldBlock.into()),
            Ok(()) => Ok(taken),
        }
    }

    /// Writes what the encryption has ready.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] where the socket takes no more now.
    pub(super) fn write_tls(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                retry(|| tls.write_tls(&mut self.socket))?;
            }
        }
        Ok(())
    }

    pub(in super::super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.descriptor()
    }

    /// A second handle of the socket.
    #[cfg(windows)]
    pub(super) fn duplicate(&self) -> io::Result<TcpStream> {
        let Socket::Tcp(socket) = &self.socket;
        socket.try_clone()
    }

    /// Ends the stream for the thread that waits for it.
    pub(super) fn shut_down(&self) {
        self.socket.shut_down();
    }
}

/// Calls again what a signal has interrupted.
fn retry(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}
