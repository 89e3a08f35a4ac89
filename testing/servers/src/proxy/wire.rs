//! Two ends, of which one is readable as soon as the other is dropped.

use std::io;
#[cfg(windows)]
pub(super) use std::net::TcpStream as Wire;
#[cfg(unix)]
pub(super) use std::os::unix::net::UnixStream as Wire;

#[cfg(unix)]
pub(super) fn pair() -> io::Result<(Wire, Wire)> {
    Wire::pair()
}

#[cfg(windows)]
pub(super) fn pair() -> io::Result<(Wire, Wire)> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    let end = Wire::connect(listener.local_addr()?)?;
    Ok((end, listener.accept()?.0))
}
