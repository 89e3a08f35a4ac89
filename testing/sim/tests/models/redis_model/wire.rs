//! A plain socket to the server, with everything that a real host uses above it: the codec, its scripts, the decoder.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use leasehold_core::RequestId;
use leasehold_core::op::{LockOp, Outcome};
use leasehold_servers::redis::Server;
use leasehold_sim::rng::{Draws, Stream};
use leasehold_wire::Progress;
use leasehold_wire::redis::{Codec, Command, Settings};
use leasehold_wire::resp::{Decoder, Limits, Value, encode};

const PATIENCE: Duration = Duration::from_secs(30);

/// The time of the sender's wall clock: years behind the server's, which must not matter.
pub(crate) const SENT_UNIX_MS: u64 = 1_600_000_000_000;

/// The server's clock before and after something, in milliseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) from_ms: u64,
    pub(crate) to_ms: u64,
}

pub(crate) struct Wire {
    stream: TcpStream,
    decoder: Decoder,
    codec: Codec,
    asked: u64,
    draws: Draws,
}

impl Wire {
    /// Every other seed speaks version 3 of the protocol.
    pub(crate) fn open(server: &Server, retention: Duration, seed: u64) -> Self {
        let stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let codec = Codec::new(Settings { retention, ..Settings::default() });
        let draws = Stream::new(seed, "pieces of replies").draws();
        let mut wire = Self { stream, decoder: Decoder::new(Limits::default()), codec, asked: 0, draws };
        if seed % 2 == 1 {
            assert!(matches!(wire.call(&[b"HELLO", b"3"]), Value::Map(_)));
        }
        wire
    }

    /// Operations as one request, in as many rounds as it takes.
    pub(crate) fn ask(&mut self, ops: &[LockOp]) -> (Span, Vec<Outcome>) {
        self.asked += 1;
        let mut exchange = self.codec.begin(RequestId::new(self.asked), ops, PATIENCE, SENT_UNIX_MS).unwrap();
        let mut began = None;
        loop {
            let (span, replies) = self.timed(exchange.commands());
            let from_ms = *began.get_or_insert(span.from_ms);
            if let Progress::Done(outcomes) = exchange.replies(replies) {
                return (Span { from_ms, to_ms: span.to_ms }, outcomes);
            }
        }
    }

    /// Commands, and what the server's clock shows around them.
    pub(crate) fn timed(&mut self, commands: &[Command]) -> (Span, Vec<Value>) {
        let time = || std::iter::once(command(&[b"TIME"]));
        let all: Vec<_> = time().chain(commands.iter().cloned()).chain(time()).collect();
        let mut replies = self.round_trip(&all);
        let to_ms = unix_ms(&replies.pop().unwrap());
        let from_ms = unix_ms(&replies.remove(0));
        (Span { from_ms, to_ms }, replies)
    }

    pub(crate) fn call(&mut self, words: &[&[u8]]) -> Value {
        self.round_trip(&[command(words)]).remove(0)
    }

    /// Replies come in pieces of any size.
    fn round_trip(&mut self, commands: &[Command]) -> Vec<Value> {
        let mut sent = Vec::new();
        commands.iter().for_each(|command| encode(command, &mut sent));
        self.stream.write_all(&sent).unwrap();
        let mut piece = vec![0; *self.draws.pick(&[1, 13, 100, 4096, 4096, 4096])];
        let mut replies = Vec::new();
        while replies.len() < commands.len() {
            let count = self.stream.read(&mut piece).unwrap();
            assert!(count > 0, "the server has ended the connection");
            self.decoder.push(&piece[..count]);
            while let Some(reply) = self.decoder.next().unwrap() {
                replies.push(reply);
            }
        }
        assert!(replies.len() == commands.len() && !self.decoder.is_pending(), "more replies than commands");
        replies
    }
}

pub(crate) fn command(words: &[&[u8]]) -> Command {
    Command::new(words)
}

pub(crate) fn integer(value: &Value) -> i64 {
    match value {
        Value::Integer(number) => *number,
        other => panic!("no integer: {other:?}"),
    }
}

pub(crate) fn text(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Bulk(bytes) => Some(bytes),
        Value::Nil => None,
        other => panic!("no text: {other:?}"),
    }
}

/// The time in TIME's answer: seconds and microseconds.
fn unix_ms(value: &Value) -> u64 {
    let Value::Array(parts) = value else { panic!("no time: {value:?}") };
    let number = |part: usize| -> u64 { std::str::from_utf8(text(&parts[part]).unwrap()).unwrap().parse().unwrap() };
    number(0) * 1000 + number(1) / 1000
}
