//! Acquires and releases a lock again and again, for tools that count instructions: `pairs 1000`.

use std::process::ExitCode;
use std::time::Duration;

use leasehold_bench::exit_code;
use leasehold_core::op::Op;
use leasehold_core::{
    Client, Config, LockId, LockOptions, Monotonic, NodeConfig, Now, OneOrMany, Output, Resource, Transmit,
};
use leasehold_wire::Progress;
use leasehold_wire::redis::{Codec, ConnectionMemory, Settings};
use leasehold_wire::resp::{Decoder, Limits, encode};

const UNIX_MS: u64 = 1_700_000_000_000;

fn main() -> ExitCode {
    let given = std::env::args().nth(1).and_then(|pairs| pairs.parse().ok());
    exit_code("pairs", given.ok_or_else(|| "give a number of pairs".into()).and_then(through_the_codec))
}

type Result<T = (), E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// By the core, whose requests become bytes for a Redis, and whose answers come from bytes: a transaction that takes the lock, and a
/// script that frees it.
fn through_the_codec(pairs: u64) -> Result {
    let mut wire = Wire::new();
    let config = Config::new(vec![NodeConfig::default()])?;
    let mut client = Client::new(config, [7; 32], wire.now());
    let options = LockOptions::builder().owner("host:1:main").build()?;
    let resource = Resource::new("invoice/42")?;
    for pair in 0..pairs {
        let lock = LockId::new(pair);
        client.acquire(lock, resource.clone(), options.clone(), &[1; 16], wire.now())?;
        wire.settle(&mut client)?;
        client.release(lock, wire.now())?;
        wire.settle(&mut client)?;
    }
    Ok(())
}

struct Wire {
    codec: Codec,
    memory: ConnectionMemory,
    decoder: Decoder,
    sent: Vec<u8>,
    counter: u64,
}

impl Wire {
    fn new() -> Self {
        let limits = Limits { max_bytes: 1 << 20, depth: 8, elements: 1 << 10 };
        Self {
            codec: Codec::new(Settings::default()),
            memory: ConnectionMemory::default(),
            decoder: Decoder::new(limits),
            sent: Vec::new(),
            counter: UNIX_MS * 1_000,
        }
    }

    fn now(&self) -> Now {
        Now { monotonic: Monotonic::from_ns(1_000_000_000), unix_ms: UNIX_MS }
    }

    fn settle(&mut self, client: &mut Client) -> Result {
        loop {
            match client.poll_output(self.now()) {
                Output::Transmit(transmit) => self.exchange(client, &transmit)?,
                Output::WakeAt(_) => return Ok(()),
                _ => {}
            }
        }
    }

    fn exchange(&mut self, client: &mut Client, transmit: &Transmit) -> Result {
        let (id, ops) = (transmit.id, &transmit.ops);
        let begun = self.codec.begin_on(&self.memory, id, ops, Duration::from_secs(4), UNIX_MS);
        let mut exchange = begun.map_err(|denial| denial.detail.to_string())?;
        self.sent.clear();
        exchange.commands().iter().for_each(|command| encode(command, &mut self.sent));
        let is_transaction = exchange.commands().first().is_some_and(|command| command.name() == b"MULTI");
        let asks = exchange.commands().len() > 1 && !is_transaction;
        let id_text = id.get().to_string();
        let id_word = format!("${}\r\n{id_text}\r\n", id_text.len());
        let mut answer = match ops.first().map(|op| &op.op) {
            Some(Op::Acquire(_)) if is_transaction => {
                self.counter += 1;
                format!("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n:{}\r\n", self.counter)
            }
            Some(Op::Acquire(_)) => {
                self.counter += 1;
                format!("*3\r\n$7\r\ngranted\r\n$16\r\n{}\r\n{id_word}", self.counter)
            }
            Some(Op::Release(_)) => id_word,
            other => return Err(format!("nobody asked for this: {other:?}").into()),
        };
        if asks {
            answer.push_str("+OK\r\n*0\r\n");
        }
        self.decoder.push(answer.as_bytes());
        let mut replies = Vec::with_capacity(exchange.commands().len());
        while let Some(reply) = self.decoder.next().map_err(|_| "no RESP")? {
            replies.push(reply);
        }
        let Progress::Done(outcomes) = exchange.replies(replies) else { return Err("one more round".into()) };
        self.memory.learn(&exchange, ops, &outcomes);
        client.handle_response(id, Ok(outcomes.into_iter().collect::<OneOrMany<_>>()), self.now());
        Ok(())
    }
}
