//! Waiters in the queue by the thousand, and waiters that give up at each step of their way to the lock.

use std::pin::Pin;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::on_redis::{is_taken, load_scripts, request};
use crate::common::{PATIENCE, connect_patiently, eventually, ms};
use leasehold::Client as AsyncClient;
use leasehold::blocking::Lease;
use leasehold_core::op::{Acquire, Applied, LockOp, Op, Outcome, Release};
use leasehold_core::{LockId, Nonce, Owner, RequestId, Resource, Seq};
use leasehold_servers::proxy::Proxy;
use leasehold_servers::redis::Server;
use leasehold_servers::resp::{Connection, Reply};
use leasehold_wire::Progress;
use leasehold_wire::redis::{ClientId, Codec, ConnectionMemory, Settings, Subscription};
use leasehold_wire::resp::Value;
use tokio::runtime::Builder;

const LINE: &str = "{job}\x1fline of name";
/// Longer than any wait here: nothing is granted because a lease ran out.
const LONG: Duration = Duration::from_secs(600);
const CLIENT: [u8; 16] = [0xc1; 16];

fn waiting(server: &Server) -> i64 {
    server.command(&["ZCARD", LINE]).integer()
}

/// A client by hand that stands in the queue as often as it likes.
struct Crowd {
    asks: Connection,
    /// It listens on the client's channel.
    hears: Connection,
    codec: Codec,
    memory: ConnectionMemory,
    asked: u64,
}

impl Crowd {
    fn new(server: &Server) -> Self {
        let client = ClientId::new(CLIENT);
        let mut hears = server.connect();
        assert!(!hears.command(&[&b"SUBSCRIBE"[..], &client.channel()]).unwrap().is_error());
        let mut memory = ConnectionMemory::default();
        memory.listens(Some(Subscription { client, generation: 1 }));
        Self { asks: server.connect(), hears, codec: Codec::new(Settings::default()), memory, asked: 0 }
    }

    fn ask(&mut self, lock: u64, op: Op) -> Outcome {
        self.asked += 1;
        let ops = [LockOp { lock: LockId::new(lock), resource: Resource::new("job").unwrap(), op }];
        let id = RequestId::new(self.asked);
        let mut exchange = self.codec.begin_on(&self.memory, id, &ops, LONG, 0).unwrap();
        loop {
            let commands: Vec<Vec<Vec<u8>>> =
                exchange.commands().iter().map(|command| command.words().map(<[u8]>::to_vec).collect()).collect();
            let replies = commands.iter().map(|words| value(self.asks.command(words).unwrap())).collect();
            if let Progress::Done(mut outcomes) = exchange.replies(replies) {
                self.memory.learn(&exchange, &ops, &outcomes);
                return outcomes.remove(0);
            }
        }
    }

    /// Its first request joins, and its second takes its turn.
    fn acquire(&mut self, lock: u64, seq: u32) -> Outcome {
        let acquire = Acquire {
            owner: Owner::new("crowd").unwrap(),
            in_queue: true,
            ..Acquire::new(nonce(lock), Seq::new(seq), LONG)
        };
        self.ask(lock, Op::Acquire(Box::new(acquire)))
    }

    fn release(&mut self, lock: u64) {
        let released = self.ask(lock, Op::Release(Release { nonce: nonce(lock), quorum: None }));
        assert!(matches!(released, Outcome::Applied(Applied::Released)), "{released:?}");
    }

    /// The ticket whose turn it is.
    fn hears_of(&mut self) -> u64 {
        loop {
            let message = self.hears.receive().unwrap().array()[2].text();
            // A test has nothing to say.
            if !message.is_empty() {
                return Codec::reserved_by(message.as_bytes()).unwrap().1.get();
            }
        }
    }
}

fn nonce(lock: u64) -> Nonce {
    let mut bytes = [0x5a; 16];
    bytes[..8].copy_from_slice(&lock.to_le_bytes());
    Nonce::from_bytes(bytes)
}

fn value(reply: Reply) -> Value {
    match reply {
        Reply::Status(text) => Value::Simple(text.into()),
        Reply::Error(text) => Value::Error(text),
        Reply::Integer(number) => Value::Integer(number),
        Reply::Bulk(bytes) => Value::Bulk(bytes),
        Reply::Nil => Value::Nil,
        Reply::Array(parts) => Value::Array(parts.into_iter().map(value).collect()),
    }
}

#[test]
fn ten_thousand_waiters_cost_a_turn_no_more_than_one() {
    const WAITERS: u64 = 10_000;
    const TURNS: u64 = 200;
    let server = Server::start();
    let (holder, other) = (connect_patiently(server.url()), connect_patiently(server.url()));
    let lease = holder.lock("job").ttl(LONG).acquire().unwrap();
    let mut crowd = Crowd::new(&server);
    for lock in 0..WAITERS {
        let refused = crowd.acquire(lock, 1);
        assert!(matches!(refused, Outcome::NotApplied(_)), "{refused:?}");
    }
    assert_eq!(waiting(&server), 10_000);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| other.lock("job").ttl(LONG).wait(PATIENCE * 2).acquire().unwrap());
        eventually("it stands in the queue", || waiting(&server) == 10_001);
        lease.release().unwrap();
        let commands = || ["zpopmin", "publish", "set"].map(|name| server.commands_processed(name));
        let before = commands();
        for lock in 0..TURNS {
            assert_eq!(crowd.hears_of(), lock, "the order of joining");
            let granted = crowd.acquire(lock, 2);
            assert!(matches!(granted, Outcome::Applied(Applied::Acquired { .. })), "{granted:?}");
            crowd.release(lock);
        }
        let after = commands();
        // Each turn: one ticket and one message, a record, its counter and the next reservation. The waiter behind polls.
        assert_eq!(after[0] - before[0], TURNS);
        assert_eq!(after[2] - before[2], 3 * TURNS);
        assert!(after[1] - before[1] < 2 * TURNS, "{before:?} {after:?}");
        // All of them die at once. Each script passes over a bounded number of them.
        drop(crowd);
        let channel = String::from_utf8(ClientId::new(CLIENT).channel()).unwrap();
        eventually("the server knows", || server.command(&["PUBSUB", "NUMSUB", &channel]).array()[1].integer() == 0);
        let before = (server.commands_processed("zpopmin"), waiting(&server));
        let last = waiter.join().unwrap();
        let passed = server.commands_processed("zpopmin") - before.0;
        assert!(passed <= 2 * 32, "{passed} were passed over");
        assert_eq!(before.1 - waiting(&server), i64::try_from(passed).unwrap());
        last.release().unwrap();
    });
}

/// The step at which a waiter gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Its acquire was not carried out.
    BeforeItJoins,
    /// It has joined, and was not told so.
    NotToldOfItsPlace,
    /// It stands in the queue, and knows it.
    InQueue,
    /// The lock is reserved for it, and it has not asked for it.
    Reserved,
    /// It has asked for the reserved lock.
    Redeeming,
    /// The lock is its own, and it was not told so.
    NotToldOfItsGrant,
}

const STEPS: [Step; 6] = [
    Step::BeforeItJoins,
    Step::NotToldOfItsPlace,
    Step::InQueue,
    Step::Reserved,
    Step::Redeeming,
    Step::NotToldOfItsGrant,
];

/// Runs a wait until the condition holds, and no longer.
async fn wait_until<W: Future>(waits: &mut Pin<Box<W>>, what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    let holds = async {
        while !condition() {
            assert!(start.elapsed() < PATIENCE, "still not so after {PATIENCE:?}: {what}");
            tokio::time::sleep(ms(2)).await;
        }
    };
    tokio::select! {
        () = holds => {}
        _ = waits => panic!("granted before it gave up: {what}"),
    }
}

/// Gives up at a step. Nothing else runs in the runtime meanwhile: who blocks it hears of no turn.
async fn give_up(step: Step, server: &Server, proxy: &Proxy, client: &AsyncClient, lease: Lease) {
    let fault = match step {
        Step::BeforeItJoins => Some(proxy.reset_before_forwarding(request("join").always())),
        Step::NotToldOfItsPlace => Some(proxy.lose_replies(request("join"))),
        Step::InQueue | Step::Reserved | Step::Redeeming | Step::NotToldOfItsGrant => None,
    };
    let mut waits = Box::pin(client.lock("job").ttl(LONG).wait(PATIENCE * 2).into_future());
    if let Some(fault) = fault {
        wait_until(&mut waits, "it asks", || fault.hits() > 0).await;
        drop(waits);
        proxy.pass();
        eventually("no ticket is left", || waiting(server) == 0);
        return lease.release().unwrap();
    }
    wait_until(&mut waits, "it stands in the queue", || waiting(server) == 1).await;
    let fault = match step {
        Step::Redeeming => Some(proxy.reset_before_forwarding(request("join").always())),
        Step::NotToldOfItsGrant => Some(proxy.lose_replies(request("join"))),
        Step::BeforeItJoins | Step::NotToldOfItsPlace | Step::InQueue | Step::Reserved => None,
    };
    if step == Step::InQueue {
        drop(waits);
        eventually("no ticket is left", || waiting(server) == 0);
        return lease.release().unwrap();
    }
    lease.release().unwrap();
    if let Some(fault) = fault {
        wait_until(&mut waits, "it asks for its lock", || fault.hits() > 0).await;
    }
    if step != Step::NotToldOfItsGrant {
        // No reservation may be left that has to run out.
        server.command(&["PEXPIRE", "job", "600000"]);
    }
    drop(waits);
    proxy.pass();
}

#[test]
fn who_gives_up_at_any_step_leaves_neither_a_ticket_nor_a_reservation() {
    for step in STEPS {
        let server = Server::start();
        load_scripts(&server);
        let proxy = Proxy::to(server.address());
        let holder = connect_patiently(server.url());
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        // A client that listens already joins with its first request.
        let warm = holder.lock("warm").ttl(LONG).acquire().unwrap();
        let client = runtime.block_on(async {
            let settings = AsyncClient::builder().request_timeout(ms(1_000));
            let client = settings.connect(server.url_at(proxy.port())).await.unwrap();
            let mut waits = Box::pin(client.lock("warm").wait(PATIENCE).into_future());
            let queue = "{warm}\x1fline of name";
            wait_until(&mut waits, "it listens", || server.command(&["ZCARD", queue]).integer() == 1).await;
            warm.release().unwrap();
            waits.await.unwrap().release().await.unwrap();
            client
        });
        let lease = holder.lock("job").ttl(LONG).acquire().unwrap();
        runtime.block_on(give_up(step, &server, &proxy, &client, lease));
        // Whatever is late may still arrive.
        runtime.block_on(async {
            let start = Instant::now();
            while waiting(&server) > 0 || is_taken(&server, "job") {
                assert!(start.elapsed() < PATIENCE, "{step:?}: {:?}", server.command(&["GET", "job"]));
                tokio::time::sleep(ms(2)).await;
            }
        });
    }
}

#[test]
fn a_client_that_is_closed_leaves_no_ticket_on_a_slow_server() {
    let server = Server::start();
    load_scripts(&server);
    let holder = connect_patiently(server.url());
    let lease = holder.lock("job").ttl(LONG).acquire().unwrap();
    let other = connect_patiently(server.url());
    let waiter = other.clone();
    let waits = thread::spawn(move || waiter.lock("job").wait(PATIENCE).acquire().map(drop));
    eventually("it stands in the queue", || waiting(&server) == 1);
    server.command(&["CLIENT", "PAUSE", "500"]);
    drop(other.close());
    assert!(waits.join().unwrap().is_err());
    assert_eq!(waiting(&server), 0);
    lease.release().unwrap();
}

#[test]
fn who_listened_in_a_runtime_that_has_ended_listens_in_another() {
    let server = Server::start();
    let holder = connect_patiently(server.url());
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let client = first.block_on(AsyncClient::connect(server.url())).unwrap();
    for runtime in [first, second] {
        let lease = holder.lock("job").ttl(LONG).acquire().unwrap();
        // A client in the queue has a channel that is heard.
        runtime.block_on(async {
            let mut waits = Box::pin(client.lock("job").ttl(LONG).wait(PATIENCE).into_future());
            wait_until(&mut waits, "it stands in the queue", || waiting(&server) == 1).await;
            lease.release().unwrap();
            waits.await.unwrap().release().await.unwrap();
        });
    }
}

#[test]
fn waiters_are_told_of_their_turns_while_another_runtime_of_their_client_is_blocked() {
    let server = Server::start();
    let holder = connect_patiently(server.url());
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let (blocked, other) = (runtime(), runtime());
    let client = blocked.block_on(AsyncClient::connect(server.url())).unwrap();
    let lease = holder.lock("job").ttl(LONG).acquire().unwrap();
    blocked.block_on(async {
        let mut waits = Box::pin(client.lock("job").ttl(LONG).wait(PATIENCE).into_future());
        wait_until(&mut waits, "it stands in the queue", || waiting(&server) == 1).await;
        lease.release().unwrap();
        waits.await.unwrap().release().await.unwrap();
    });
    let channels = || server.command(&["PUBSUB", "CHANNELS", "leasehold\x1fclient\x1f*"]);
    let listeners = || {
        channels()
            .array()
            .first()
            .map_or(0, |channel| server.command(&["PUBSUB", "NUMSUB", &channel.text()]).array()[1].integer())
    };
    assert_eq!(listeners(), 1, "in the runtime that does nothing from here on");
    let lease = holder.lock("job").ttl(LONG).acquire().unwrap();
    other.block_on(async {
        let mut waits = Box::pin(client.lock("job").ttl(LONG).wait(PATIENCE).into_future());
        wait_until(&mut waits, "it is listened to elsewhere", || waiting(&server) == 1 && listeners() == 2).await;
        lease.release().unwrap();
        waits.await.unwrap().release().await.unwrap();
    });
    drop(blocked);
    assert_eq!(listeners(), 1);
}
