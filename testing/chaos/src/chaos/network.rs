//! A network that can be cut: two network namespaces with a cable between them. It needs root.
//!
//! The machine's own network is not changed. The far namespace listens on an address of its own and forwards each
//! connection through a Unix socket to this process, which forwards it to a server on 127.0.0.1. A namespace exists as
//! long as a process is in it, and these processes are killed with this one, so nothing has to be cleaned up.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use leasehold_bench::child::{self, Child};

use super::workers;
use crate::Result;

const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// The first port of the far side.
const PORT: u16 = 20_000;
/// The longest wait for a namespace.
const PATIENCE: Duration = Duration::from_secs(20);

/// Names of the parts of this program that run inside a namespace.
pub const CARRY: &str = "carry";
pub const WAIT: &str = "wait";

/// The network between the workers in the near namespace and the servers.
pub struct Network {
    near: Child,
    far: Child,
    _carriers: Vec<Carrier>,
}

impl Network {
    /// Connects the namespaces, and forwards connections to each server.
    ///
    /// # Errors
    /// Where this is not allowed or not possible.
    pub fn open(folder: &Path, servers: &[SocketAddr]) -> Result<Self> {
        let sockets: Vec<PathBuf> = (0..servers.len()).map(|at| folder.join(format!("carry-{at}.sock"))).collect();
        let carriers = sockets.iter().zip(servers).map(|(socket, server)| Carrier::start(socket, *server));
        let carriers = carriers.collect::<io::Result<Vec<_>>>()?;
        let mut carry = vec![CARRY.to_owned()];
        carry.extend(sockets.iter().map(|socket| socket.display().to_string()));
        let network = Self { near: inside(&[WAIT.to_owned()])?, far: inside(&carry)?, _carriers: carriers };
        let (near, far) = (network.near.id().to_string(), network.far.id().to_string());
        run("ip", &["link", "add", "far", "netns", &far, "type", "veth", "peer", "name", "near", "netns", &near])?;
        for (pid, name, address) in [(&far, "far", FAR), (&near, "near", NEAR)] {
            let ip = |args: &[&str]| run("nsenter", &[&["--target", pid, "--net", "ip"], args].concat());
            ip(&["address", "add", &format!("{address}/24"), "dev", name])?;
            ip(&["link", "set", "lo", "up"])?;
            ip(&["link", "set", name, "up"])?;
        }
        Ok(network)
    }

    /// The address of a server for workers inside.
    pub fn address(&self, server: usize) -> SocketAddr {
        (FAR, PORT + server as u16).into()
    }

    /// The words before a command that is to run inside.
    pub fn enter(&self) -> Vec<String> {
        ["nsenter", "--target", &self.near.id().to_string(), "--net"].map(str::to_owned).into()
    }

    /// Cuts the cable: nothing passes, and connections stay open.
    ///
    /// # Errors
    /// When `ip` fails.
    pub fn cut(&self) -> Result {
        self.far_link("down")
    }

    /// Mends the cable.
    ///
    /// # Errors
    /// When `ip` fails.
    pub fn mend(&self) -> Result {
        self.far_link("up")
    }

    fn far_link(&self, state: &str) -> Result {
        run("nsenter", &["--target", &self.far.id().to_string(), "--net", "ip", "link", "set", "far", state])
    }
}

/// Starts a part of this program in a network namespace of its own, and waits until it is ready.
fn inside(part: &[String]) -> Result<Child> {
    let program = std::env::current_exe()?.display().to_string();
    let mut words = vec!["unshare".to_owned(), "--net".to_owned(), program, child::PART.to_owned()];
    words.extend_from_slice(part);
    let (ready, readiness) = channel();
    let child = Child::run(&mut workers::launch(&words)?, move |line| {
        // Only the first line matters.
        let _ = ready.send(line.map(str::to_owned));
    })?;
    match readiness.recv_timeout(PATIENCE) {
        Ok(Some(line)) if line == "ready" => Ok(child),
        Ok(_) => Err("a network namespace cannot be made here".into()),
        Err(_) => Err("a network namespace was not made in time".into()),
    }
}

fn run(program: &str, args: &[&str]) -> Result {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim()).into())
}

/// Forwards, in the far namespace, each port to the socket with the same number.
///
/// # Errors
/// When a port cannot be opened.
pub fn carry(sockets: &[String]) -> Result {
    for (number, socket) in sockets.iter().enumerate() {
        // Nothing else is in this namespace.
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT + number as u16))?;
        let socket = socket.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if let Ok(server) = UnixStream::connect(&socket) {
                    join(client, server);
                }
            }
        });
    }
    wait();
    Ok(())
}

/// Keeps the near namespace alive.
pub fn wait() {
    child::say("ready");
    child::listen();
}

/// A thread in this process that forwards a socket to a server.
struct Carrier {
    socket: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Carrier {
    fn start(socket: &Path, server: SocketAddr) -> io::Result<Self> {
        let listener = UnixListener::bind(socket)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if seen.load(Ordering::SeqCst) {
                    return;
                }
                if let Ok(server) = TcpStream::connect(server) {
                    join(server, client);
                }
            }
        });
        Ok(Self { socket: socket.to_owned(), is_over, thread: Some(thread) })
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // The thread sees the end when it accepts a connection.
        if let (Ok(_), Some(thread)) = (UnixStream::connect(&self.socket), self.thread.take()) {
            let _ = thread.join();
        }
        // The next network in this folder binds the same name.
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// Forwards bytes both ways until one side has ended.
fn join(tcp: TcpStream, unix: UnixStream) {
    let _ = tcp.set_nodelay(true);
    let (Ok(tcp_too), Ok(unix_too)) = (tcp.try_clone(), unix.try_clone()) else { return };
    thread::spawn(move || {
        pump(&tcp_too, &unix_too);
        let _ = unix_too.shutdown(Shutdown::Both);
        let _ = tcp_too.shutdown(Shutdown::Both);
    });
    thread::spawn(move || {
        pump(&unix, &tcp);
        let _ = tcp.shutdown(Shutdown::Both);
        let _ = unix.shutdown(Shutdown::Both);
    });
}

fn pump(mut from: impl Read, mut to: impl Write) {
    let mut chunk = [0; 16 << 10];
    while let Ok(read) = from.read(&mut chunk) {
        if read == 0 || to.write_all(&chunk[..read]).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carrier_forwards_both_ways_and_stops() {
        let dir = tempfile::tempdir().unwrap();
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let socket = dir.path().join("carry.sock");
        let carrier = Carrier::start(&socket, server.local_addr().unwrap()).unwrap();
        let mut client = UnixStream::connect(&socket).unwrap();
        client.write_all(b"to").unwrap();
        let (mut served, _) = server.accept().unwrap();
        let mut heard = [0; 2];
        served.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"to");
        served.write_all(b"fro").unwrap();
        drop(served);
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "fro");
        drop(carrier);
        assert!(UnixStream::connect(&socket).is_err());
    }
}
