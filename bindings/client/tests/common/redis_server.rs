//! A redis-server of the test's own, and just enough of its protocol to talk to it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use super::{PATIENCE, eventually};

/// Listens on a free port of 127.0.0.1, keeps nothing on disk, and ends when it is dropped.
pub(crate) struct RedisServer {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl RedisServer {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// With more settings, as on the command line of redis-server.
    pub(crate) fn start_with(settings: &[&str]) -> Self {
        // Between the look for a free port and the server's bind somebody else may take it.
        for _ in 0..10 {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
            let mut server = Self::spawn(port, settings);
            if server.is_up() {
                return server;
            }
            let log = server.log();
            assert!(log.contains("Address already in use"), "redis-server does not start:\n{log}");
        }
        panic!("no port of 127.0.0.1 stays free long enough for redis-server");
    }

    fn spawn(port: u16, settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = File::create(folder.path().join("log")).unwrap();
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"])
            .arg(folder.path())
            .args(settings)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("cannot run redis-server ({error}); install it, on Debian: apt-get install redis-server")
            });
        Self { child, port, folder }
    }

    /// Waits until it answers; `false` if it has ended instead.
    fn is_up(&mut self) -> bool {
        let mut ended = false;
        eventually("redis-server answers", || {
            ended = self.child.try_wait().unwrap().is_some();
            ended || self.answers()
        });
        !ended
    }

    fn answers(&self) -> bool {
        let Ok(mut connection) = Resp::connect(self.port) else { return false };
        // Whoever else listens there has another process id.
        let own = format!("process_id:{}\r\n", self.child.id());
        match connection.call(&["INFO", "server"]) {
            Ok(Reply::Bulk(info)) => String::from_utf8_lossy(&info).contains(&own),
            Ok(_) | Err(_) => false,
        }
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn connect(&self) -> Resp {
        Resp::connect(self.port).unwrap_or_else(|error| panic!("{error}\n{}", self.log()))
    }

    /// What it has said so far.
    pub(crate) fn log(&self) -> String {
        let said = std::fs::read(self.folder.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&said).into_owned()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What Redis answers in RESP2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Self>),
}

/// One blocking connection.
pub(crate) struct Resp {
    stream: BufReader<TcpStream>,
}

impl Resp {
    pub(crate) fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    pub(crate) fn call<A: AsRef<[u8]>>(&mut self, words: &[A]) -> io::Result<Reply> {
        let mut command = format!("*{}\r\n", words.len()).into_bytes();
        for word in words.iter().map(AsRef::as_ref) {
            command.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            command.extend_from_slice(word);
            command.extend_from_slice(b"\r\n");
        }
        self.stream.get_mut().write_all(&command)?;
        self.reply()
    }

    fn reply(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let line = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        let (kind, rest) = line.split_at_checked(1).ok_or(io::ErrorKind::InvalidData)?;
        let number = || rest.parse::<i64>().map_err(io::Error::other);
        Ok(match kind {
            "+" => Reply::Simple(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Integer(number()?),
            "$" => match usize::try_from(number()?) {
                Ok(length) => {
                    let mut bulk = vec![0; length + 2];
                    self.stream.read_exact(&mut bulk)?;
                    bulk.truncate(length);
                    Reply::Bulk(bulk)
                }
                Err(_) => Reply::Nil,
            },
            "*" => match usize::try_from(number()?) {
                Ok(length) => Reply::Array((0..length).map(|_| self.reply()).collect::<io::Result<_>>()?),
                Err(_) => Reply::Nil,
            },
            other => return Err(io::Error::other(format!("unknown kind of reply {other:?}"))),
        })
    }
}
