//! One connection through the proxy, on a thread of its own.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_linger;

use super::frames::{Frames, Protocol};
use super::wire::Wire;
use super::{Effect, Fault, Mode, Shared};
use crate::PATIENCE;

/// Between two pieces of an answer that is split: long enough for a reader that waits to wake up for each.
const BETWEEN_PIECES: Duration = Duration::from_millis(1);

pub(super) struct Link {
    shared: Arc<Shared>,
    number: usize,
    client: TcpStream,
    /// `None` for a connection that a black hole accepted.
    server: Option<TcpStream>,
    /// Readable when the connection is to be cut.
    cut: Wire,
    requests: Frames,
    replies: Frames,
    /// The numbers of requests that were forwarded, and of those that were answered.
    asked: u64,
    answered: u64,
    /// The request whose answer ends the connection, by its number.
    fatal: Option<(u64, Fault)>,
    /// The first request whose answer the client does not get.
    muted: Option<u64>,
    /// Nothing passes any more, in either direction.
    swallows: bool,
    client_open: bool,
    server_open: bool,
}

/// The state of a connection after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Continue,
    Reset,
}

impl Link {
    /// An error means that the client is reset: the server cannot be reached.
    pub(super) fn new(shared: &Arc<Shared>, number: usize, client: TcpStream, cut: Wire) -> io::Result<Self> {
        let swallows = shared.script().mode == Mode::BlackHole;
        let server = if swallows { Ok(None) } else { TcpStream::connect(shared.target).map(Some) };
        let server = match server {
            Ok(server) => server,
            Err(error) => {
                reset(client);
                return Err(error);
            }
        };
        for stream in server.iter().chain([&client]) {
            stream.set_nodelay(true)?;
            stream.set_write_timeout(Some(PATIENCE))?;
        }
        let server_open = server.is_some();
        Ok(Self {
            shared: Arc::clone(shared),
            number,
            client,
            server,
            cut,
            requests: Frames::new(),
            replies: Frames::new(),
            asked: 0,
            answered: 0,
            fatal: None,
            muted: None,
            swallows,
            client_open: true,
            server_open,
        })
    }

    /// Carries bytes until both sides have ended, or the client is reset.
    pub(super) fn run(mut self) -> io::Result<()> {
        let outcome = self.carry();
        match outcome {
            Ok(Next::Continue) => {}
            Ok(Next::Reset) | Err(_) => reset(self.client),
        }
        outcome.map(|_| ())
    }

    fn carry(&mut self) -> io::Result<Next> {
        let mut chunk = vec![0; 64 << 10];
        while self.client_open || self.server_open {
            let (from_client, from_server, cut) = self.wait()?;
            if cut {
                return Ok(Next::Reset);
            }
            let script = self.shared.script();
            self.swallows |= script.mode == Mode::BlackHole || self.number < script.silent_below;
            drop(script);
            if from_client {
                let read = self.client.read(&mut chunk)?;
                if self.hear_client(&chunk[..read])? == Next::Reset {
                    return Ok(Next::Reset);
                }
            }
            if let (true, Some(server)) = (from_server, &mut self.server) {
                let read = server.read(&mut chunk)?;
                if self.hear_server(&chunk[..read])? == Next::Reset {
                    return Ok(Next::Reset);
                }
            }
        }
        Ok(Next::Continue)
    }

    /// Waits for bytes of the client or the server, or for the order to cut the connection.
    fn wait(&self) -> io::Result<(bool, bool, bool)> {
        let mut fds = vec![PollFd::new(&self.cut, PollFlags::IN)];
        if self.client_open {
            fds.push(PollFd::new(&self.client, PollFlags::IN));
        }
        if let (true, Some(server)) = (self.server_open, &self.server) {
            fds.push(PollFd::new(server, PollFlags::IN));
        }
        while let Err(error) = poll(&mut fds, None) {
            if error != rustix::io::Errno::INTR {
                return Err(error.into());
            }
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let mut next = |asked: bool| asked && ready.next() == Some(true);
        let cut = next(true);
        Ok((next(self.client_open), next(self.server_open), cut))
    }

    fn hear_client(&mut self, bytes: &[u8]) -> io::Result<Next> {
        if bytes.is_empty() {
            self.client_open = false;
            let rest = self.requests.rest();
            if let (false, Some(server)) = (self.swallows, &mut self.server) {
                server.write_all(&rest)?;
                server.shutdown(Shutdown::Write)?;
            } else {
                self.server_open = false;
            }
            return Ok(Next::Continue);
        }
        for request in self.requests.push(bytes) {
            let fault = self.shared.fault_for(&request);
            if self.swallows {
                self.shared.swallowed.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            let number = self.asked + 1;
            if let Some(fault) = fault {
                match fault.effect {
                    Effect::ResetBefore => {
                        fault.strike();
                        return Ok(Next::Reset);
                    }
                    Effect::ResetAfter => {
                        self.fatal.get_or_insert((number, fault));
                    }
                    Effect::LoseReplies => {
                        fault.strike();
                        self.muted.get_or_insert(number);
                    }
                    Effect::Hold => {
                        self.swallows = true;
                        fault.hold(request.clone());
                        continue;
                    }
                    Effect::Repeat => {
                        fault.strike();
                        perform(self.shared.target, &request)?;
                    }
                }
            }
            if let Some(server) = &mut self.server {
                server.write_all(&request)?;
            }
            self.asked = number;
        }
        Ok(Next::Continue)
    }

    fn hear_server(&mut self, bytes: &[u8]) -> io::Result<Next> {
        if bytes.is_empty() {
            self.server_open = false;
            if !self.swallows && self.muted.is_none() {
                let rest = self.replies.rest();
                self.client.write_all(&rest)?;
                self.client.shutdown(Shutdown::Write)?;
            }
            return Ok(Next::Continue);
        }
        // Only RESP shows the number of answers. Elsewhere a request waits for the answer to the one before, so that
        // every byte belongs to the last one.
        let counts = self.requests.protocol == Protocol::Resp;
        self.replies.protocol = match self.replies.protocol {
            Protocol::Unknown if counts => Protocol::Resp,
            Protocol::Unknown => Protocol::Raw,
            known @ (Protocol::Resp | Protocol::Http | Protocol::Raw) => known,
        };
        let mut passing = Vec::new();
        let mut next = Next::Continue;
        for reply in self.replies.push(bytes) {
            let answered = if counts && self.replies.protocol == Protocol::Resp {
                // Pushes and attributes are not answers. Messages of a RESP2 subscription cannot be distinguished.
                self.answered + u64::from(!reply.starts_with(b">") && !reply.starts_with(b"|"))
            } else {
                self.asked
            };
            self.answered = answered.min(self.asked);
            if let Some((number, fault)) = &self.fatal
                && self.answered >= *number
            {
                fault.strike();
                next = Next::Reset;
                break;
            }
            if self.muted.is_none_or(|number| self.answered < number) {
                passing.extend_from_slice(&reply);
            }
        }
        if self.swallows || self.pass_on(&passing)? == Next::Continue { Ok(next) } else { Ok(Next::Reset) }
    }

    /// Sends an answer the way the script has it.
    fn pass_on(&mut self, bytes: &[u8]) -> io::Result<Next> {
        if bytes.is_empty() {
            return Ok(Next::Continue);
        }
        let (delay, split) = {
            let script = self.shared.script();
            (script.delay, script.split)
        };
        if let Some(delay) = delay
            && self.pause(delay)? == Next::Reset
        {
            return Ok(Next::Reset);
        }
        for (number, piece) in bytes.chunks(split.unwrap_or(bytes.len())).enumerate() {
            if number > 0 && self.pause(BETWEEN_PIECES)? == Next::Reset {
                return Ok(Next::Reset);
            }
            self.client.write_all(piece)?;
        }
        Ok(Next::Continue)
    }

    /// Waits, unless the connection is cut meanwhile.
    fn pause(&self, duration: Duration) -> io::Result<Next> {
        let duration = Timespec::try_from(duration).map_err(io::Error::other)?;
        let mut fds = [PollFd::new(&self.cut, PollFlags::IN)];
        match poll(&mut fds, Some(&duration)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(Next::Continue),
            Ok(_) => Ok(Next::Reset),
            Err(error) => Err(error.into()),
        }
    }
}

/// Sends a request of its own, and waits until it is being answered: then the work is done.
pub(super) fn perform(server: SocketAddr, request: &[u8]) -> io::Result<()> {
    let mut server = TcpStream::connect(server)?;
    server.set_read_timeout(Some(PATIENCE))?;
    server.write_all(request)?;
    server.read(&mut [0]).map(drop)
}

/// Ends a connection with a reset, which the other side cannot take for an orderly end.
pub(super) fn reset(stream: TcpStream) {
    let _ = set_socket_linger(&stream, Some(Duration::ZERO));
}
