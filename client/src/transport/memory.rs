//! A store in this process's memory: for tests, first steps, and threads that lock against each other.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use leasehold_core::config::Poll;
use leasehold_core::member::{Durability, LossId, Marker};
use leasehold_core::node::NodeMemory;
use leasehold_core::op::{Applied, Fault, FaultKind, LockOp, Outcome, Refusal, TransportFault};
use leasehold_core::queue::{self, ClientId, Reserved, Ticket, Waiter, serve_in_queue};
use leasehold_core::store::{self, BootId, Record, StoreNow};
use leasehold_core::{LockId, Monotonic, NodeConfig, Resource, Token, Transmit};
use leasehold_wire::cas::{Answer as ItemAnswer, Ask, Item};
use leasehold_wire::listing::{PAGE, Page, Which};

use super::items::{Asking, ItemStore, Store};
use super::wakeups::Wakeups;
use super::{Answer, NodeRecord, Pool, Queue, Transport, UnderLock, Watcher};
use crate::admin::checks::memory as check;
use crate::admin::doctor::Finding;
use crate::error::Error;
use crate::host::fork::{self, PerProcess};
use crate::host::sync::{Arc, Mutex, Weak};
use crate::host::time::Time;
use crate::url::HERE;
use crate::url::memory::MemoryUrl;
use crate::url::place::{Expiry, Facts, Place, Site};

/// All records of a process's memory are of one boot.
const BOOT: BootId = BootId([0; 16]);
/// The number of neighbours of a new name that are cleaned up. Two would keep up; four leave less behind.
const LOOKED_AT: usize = 4;

type Named = Mutex<BTreeMap<String, Weak<Memory>>>;
static NAMED: PerProcess<Named> = PerProcess::new(|| Mutex::new(BTreeMap::new()));

/// Opens a new store, or the one of this name that is in use in this process.
pub(super) fn open(name: Option<&str>) -> Arc<dyn Store> {
    let Some(name) = name else { return Arc::new(Opened::of(Arc::new(Memory::new(Time::System)))) };
    let mut named = NAMED.get().lock();
    if let Some(memory) = named.get(name).and_then(Weak::upgrade) {
        return Arc::new(Opened::of(memory));
    }
    named.retain(|_, memory| memory.strong_count() > 0);
    let memory = Arc::new(Memory::new(Time::System));
    named.insert(name.to_owned(), Arc::downgrade(&memory));
    Arc::new(Opened::of(memory))
}

impl Place for MemoryUrl {
    fn facts(&self) -> Facts {
        Facts { site: Site::Process, expiry: Expiry::ByStore }
    }

    fn config(&self) -> NodeConfig {
        config()
    }

    fn store(&self) -> Result<Arc<dyn Store>, Error> {
        Ok(open(self.name.as_deref()))
    }

    fn machine(&self) -> Option<String> {
        Some(HERE.to_owned())
    }

    fn is_shared(&self) -> bool {
        self.name.is_some()
    }
}

/// The properties of such a store. It forgets only when its process ends, and all its clients with it.
pub(super) fn config() -> NodeConfig {
    NodeConfig { poll: Poll::Acquire, watch: true, durability: Durability::Declared, ..NodeConfig::default() }
}

/// The store as one client has it. Its places in queues end with it.
pub(super) struct Opened {
    memory: Arc<Memory>,
    client: ClientId,
}

pub(super) struct Memory {
    contents: Mutex<Contents>,
    wakeups: Wakeups,
    time: Time,
    generation: u64,
}

#[derive(Default)]
struct Contents {
    records: BTreeMap<Resource, Entry>,
    queues: BTreeMap<Resource, Vec<Waiter>>,
    /// Those of compare-and-set, which locks of the same names do not touch.
    items: BTreeMap<Resource, Item>,
    clients: u64,
    /// The quorum membership that it remembers.
    marker: Option<Marker>,
    trust: BTreeMap<Resource, LossId>,
    /// The highest counter of all records that were forgotten. Names without a record count on from it, so that no token falls.
    forgotten: Option<Token>,
}

struct Entry {
    record: Record,
    touched: Monotonic,
}

impl Memory {
    pub(super) fn new(time: Time) -> Self {
        Self { contents: Mutex::default(), wakeups: Wakeups::default(), time, generation: fork::generation() }
    }

    fn answer(&self, name: &Resource, ask: Ask<'_>) -> ItemAnswer {
        if self.generation != fork::generation() {
            let detail = "these items belong to the parent process; connect again after the fork";
            let fault = Fault::new(FaultKind::Unreachable, detail);
            return ItemAnswer::Failed(Outcome::NotApplied(Refusal::Unavailable(fault)));
        }
        let items = &mut self.contents.lock().items;
        match ask {
            Ask::Write { seen, new } if items.get(name) == seen => {
                items.insert(name.clone(), new.clone());
                ItemAnswer::Written
            }
            Ask::Read | Ask::Write { .. } => ItemAnswer::Found(items.get(name).cloned()),
        }
    }

    fn apply(&self, client: ClientId, ops: &[LockOp], now: &StoreNow) -> Vec<Outcome> {
        ops.iter().map(|op| self.apply_one(client, op, now)).collect()
    }

    fn apply_one(&self, client: ClientId, LockOp { lock, resource, op }: &LockOp, now: &StoreNow) -> Outcome {
        let mut contents = self.contents.lock();
        let known = contents.records.get(resource);
        let forgotten = contents.forgotten.map(|counter| Record { counter, lease: None, completion: None });
        let memory = NodeMemory { marker: contents.marker.as_ref(), trusted: contents.trust.get(resource), run: None };
        let queue = contents.queues.get(resource).map_or(&[][..], Vec::as_slice);
        let ticket = Ticket { client, lock: *lock };
        let record = known.map(|known| &known.record).or(forgotten.as_ref());
        let decided = serve_in_queue(record, memory, queue, ticket, op, now);
        let (is_new, served) = (known.is_none(), decided.served);
        if let Some(marker) = served.marker {
            contents.trust.retain(|_, stamp| *stamp == marker.stamp);
            contents.marker = Some(marker);
        }
        if let Some(stamp) = served.trusted {
            contents.trust.insert(resource.clone(), stamp);
        }
        contents.write_queue(resource, decided.queue);
        if let Some(record) = served.record {
            contents.records.insert(resource.clone(), Entry { record, touched: now.uptime });
            if is_new {
                contents.forget_neighbours(resource, now);
            }
        }
        drop(contents);
        if let Some(next) = decided.turn {
            self.wakeups.reserved(resource, next);
        }
        // All who stand by for the end of the work are told.
        let is_free = matches!(served.outcome, Outcome::Applied(Applied::Released)) && decided.turn.is_none();
        if is_free || matches!(served.outcome, Outcome::Applied(Applied::Finished)) {
            self.wakeups.released(resource);
        }
        served.outcome
    }

    fn leave(&self, resource: &Resource, ticket: Ticket) {
        let mut contents = self.contents.lock();
        let Some(queue) = contents.queues.get(resource) else { return };
        let (queue, turn) = queue::leave(queue, ticket, &self.time.store_now(BOOT));
        contents.write_queue(resource, queue);
        drop(contents);
        if let Some(next) = turn {
            self.wakeups.reserved(resource, next);
        }
    }
}

impl Contents {
    fn write_queue(&mut self, resource: &Resource, queue: Option<Vec<Waiter>>) {
        match queue {
            Some(queue) if queue.is_empty() => drop(self.queues.remove(resource)),
            Some(queue) => drop(self.queues.insert(resource.clone(), queue)),
            None => {}
        }
    }
}

impl Contents {
    /// Forgets records that no longer matter, a few for each new name, so that ever-new names cannot fill the memory. A lease that
    /// is over matters until its time has passed: it tells its holder who has ended it. Names that count upwards or have a date are
    /// followed by their oldest relatives, in a circle.
    fn forget_neighbours(&mut self, name: &Resource, now: &StoreNow) {
        let after = self.records.range((Bound::Excluded(name), Bound::Unbounded));
        let over: Vec<Resource> = after
            .chain(self.records.iter())
            .take(LOOKED_AT)
            .filter(|(_, entry)| {
                let seen = store::seen(Some(&entry.record), now);
                let stays = entry.record.lease.as_ref().map_or(Duration::ZERO, |lease| lease.record_ttl);
                seen.held().is_none() && seen.done.is_none() && now.uptime.since(entry.touched) > stays
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in over {
            if let Some(entry) = self.records.remove(&name) {
                self.forgotten = self.forgotten.max(Some(entry.record.counter));
            }
        }
    }
}

impl Opened {
    pub(super) fn of(memory: Arc<Memory>) -> Self {
        let mut contents = memory.contents.lock();
        contents.clients += 1;
        let mut client = [0; 16];
        client[..8].copy_from_slice(&contents.clients.to_le_bytes());
        drop(contents);
        Self { memory, client: ClientId(client) }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // In a forked child another thread of the parent may have locked it, for good.
        if self.memory.generation != fork::generation() {
            return;
        }
        let tickets: Vec<(Resource, Ticket)> = {
            let contents = self.memory.contents.lock();
            let waiters =
                contents.queues.iter().flat_map(|(resource, queue)| queue.iter().map(move |at| (resource, at)));
            let ours = waiters.filter(|(_, waiter)| waiter.ticket.client == self.client);
            ours.map(|(resource, waiter)| (resource.clone(), waiter.ticket)).collect()
        };
        for (resource, ticket) in tickets {
            self.memory.leave(&resource, ticket);
        }
        self.memory.wakeups.forget(self.client);
    }
}

impl ItemStore for Opened {
    fn ask<'a>(&'a self, name: &'a Resource, ask: Ask<'a>) -> Asking<'a> {
        Box::pin(std::future::ready(self.memory.answer(name, ask)))
    }
}

impl UnderLock for Opened {
    fn watch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        self.memory.wakeups.tell(self.client, watcher);
        self.memory.wakeups.watch(resource, watcher);
    }

    fn unwatch(&self, resource: &Resource, watcher: &Arc<dyn Watcher>) {
        self.memory.wakeups.unwatch(resource, watcher);
    }

    fn leave_queue(&self, resource: &Resource, lock: LockId) {
        if self.memory.generation == fork::generation() {
            self.memory.leave(resource, Ticket { client: self.client, lock });
        }
    }

    fn place_in_queue(&self, resource: &Resource, lock: Option<LockId>) -> Option<u64> {
        let (contents, now) = (self.memory.contents.lock(), self.memory.time.store_now(BOOT));
        let is_ours = |ticket: Ticket| ticket.client == self.client && lock.is_none_or(|lock| ticket.lock == lock);
        let at = queue::waiting(contents.queues.get(resource)?, &now).position(|waiter| is_ours(waiter.ticket))?;
        Some(at as u64 + 1)
    }

    fn reserved_before(&self, resource: &Resource, lock: LockId) -> Option<Reserved> {
        let (contents, now) = (self.memory.contents.lock(), self.memory.time.store_now(BOOT));
        queue::reserved_before(contents.queues.get(resource)?, Ticket { client: self.client, lock }, &now)
    }
}

impl Transport for Opened {
    fn config(&self) -> NodeConfig {
        config()
    }

    fn is_instant(&self) -> bool {
        true
    }

    fn perform(&self, request: &Transmit, _pool: Pool) -> Answer {
        if self.memory.generation != fork::generation() {
            let detail = "this store belongs to the parent process; connect again after the fork";
            return Err(TransportFault::NotSent(Fault::new(FaultKind::Unreachable, detail)));
        }
        Ok(self.memory.apply(self.client, &request.ops, &self.memory.time.store_now(BOOT)))
    }

    fn keeps_queue(&self) -> bool {
        true
    }

    fn queue(&self, resource: &Resource) -> Option<Queue> {
        let (contents, now) = (self.memory.contents.lock(), self.memory.time.store_now(BOOT));
        let mut waiting = queue::waiting(contents.queues.get(resource)?, &now);
        let since_unix_ms = waiting.next()?.joined_unix_ms;
        Some(Queue { waiting: 1 + waiting.count() as u64, since_unix_ms })
    }

    fn diagnose(&self) -> Vec<Finding> {
        vec![check::SCOPE.fails(
            "this store exists in one process only: other processes do not see its locks, and its tokens end with it",
            "to lock against other processes, use a file: sqlite:PATH",
        )]
    }

    fn list(&self, prefix: &str, after: &[u8], which: Which) -> Result<Page, Error> {
        let now = self.memory.time.store_now(BOOT);
        let contents = self.memory.contents.lock();
        let begin = std::str::from_utf8(after).ok().and_then(|after| Resource::new(after).ok());
        let begin = match begin {
            Some(after) => Bound::Excluded(after),
            // No name is below the prefix and begins with it. An empty one is no name, nor is one that is too long.
            None => Resource::new(prefix).map_or(Bound::Unbounded, Bound::Included),
        };
        let of_page = contents.records.range((begin, Bound::Unbounded)).take(PAGE as usize);
        let (mut page, mut looked_at, mut ended) = (Page::default(), 0, false);
        for (name, entry) in of_page {
            if !name.as_str().starts_with(prefix) {
                ended = true;
                break;
            }
            looked_at += 1;
            page.next = Some(name.as_str().as_bytes().to_vec());
            let seen = store::seen(Some(&entry.record), &now);
            if which.has(name, &seen) {
                page.records.push((name.clone(), Some(seen)));
            }
        }
        page.next = page.next.filter(|_| !ended && looked_at == PAGE);
        Ok(page)
    }

    fn look(&self) -> Result<NodeRecord, Error> {
        let marker = self.memory.contents.lock().marker.clone();
        let text = marker.as_ref().map(|marker| marker.text().into_bytes()).unwrap_or_default();
        Ok(NodeRecord { marker, text, ..NodeRecord::default() })
    }

    fn mark(&self, found: &[u8], marker: Option<&Marker>) -> Result<bool, Error> {
        let mut contents = self.memory.contents.lock();
        let text = contents.marker.as_ref().map(Marker::text).unwrap_or_default();
        if text.as_bytes() != found {
            return Ok(false);
        }
        contents.marker = marker.cloned();
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold_core::member::{Phase, QuorumId};
    use leasehold_core::op::{Acquire, Finish, Op, Refusal, Release};
    use leasehold_core::{LockId, NodeId, Nonce, Owner, RequestId, Seq};

    use super::super::wakeups::tests::RecordingWatcher;
    use super::*;

    const CLIENT: ClientId = ClientId([0; 16]);
    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn at(uptime: Duration) -> StoreNow {
        StoreNow { boot: BOOT, uptime: Monotonic::default().plus(uptime), unix_ms: 1 }
    }

    fn op(name: &str, op: Op) -> LockOp {
        LockOp { lock: LockId::new(1), resource: Resource::new(name).unwrap(), op }
    }

    fn acquire(name: &str, nonce: u8) -> LockOp {
        op(
            name,
            Op::Acquire(Box::new(Acquire {
                owner: Owner::new("me").unwrap(),
                ..Acquire::new(Nonce::from_bytes([nonce; 16]), Seq::new(1), Duration::from_secs(30))
            })),
        )
    }

    fn release(name: &str, nonce: u8) -> LockOp {
        op(name, Op::Release(Release { nonce: Nonce::from_bytes([nonce; 16]), quorum: None }))
    }

    fn request(ops: Vec<LockOp>) -> Transmit {
        Transmit { id: RequestId::new(1), node: NodeId::new(0), deadline: Monotonic::FAR, ops: ops.into() }
    }

    fn perform(store: &Arc<dyn Store>, op: LockOp) -> Outcome {
        store.perform(&request(vec![op]), Pool::Caller).unwrap().remove(0)
    }

    #[test]
    fn a_named_store_is_shared_while_in_use_and_an_unnamed_one_never() {
        let (one, two) = (open(Some("shared")), open(Some("shared")));
        assert!(matches!(perform(&one, acquire("a", 1)), Outcome::Applied(_)));
        assert!(matches!(perform(&two, acquire("a", 2)), Outcome::NotApplied(Refusal::Conflict(_))));
        for other in [open(None), open(None), open(Some("other"))] {
            assert!(matches!(perform(&other, acquire("a", 3)), Outcome::Applied(_)));
        }
        drop((one, two));
        assert!(matches!(perform(&open(Some("shared")), acquire("a", 4)), Outcome::Applied(_)));
    }

    #[test]
    fn watchers_are_notified_of_releases_only() {
        let store = open(None);
        let (heard, watcher) = RecordingWatcher::new();
        store.watch(&Resource::new("a").unwrap(), &watcher);
        perform(&store, acquire("a", 1));
        perform(&store, release("a", 2));
        assert_eq!(heard.take(), Vec::<String>::new());
        perform(&store, release("a", 1));
        assert_eq!(heard.take(), ["a"]);
        store.unwatch(&Resource::new("a").unwrap(), &watcher);
        perform(&store, acquire("a", 3));
        perform(&store, release("a", 3));
        assert_eq!(heard.take(), Vec::<String>::new());
    }

    #[test]
    fn a_marker_is_written_where_it_was_found() {
        let store = open(None);
        let marker = Marker {
            quorum: QuorumId([1; 16]),
            max_ttl_ms: 60_000,
            stamp: LossId([2; 16]),
            phase: Phase::Member,
            run: None,
        };
        assert!(store.look().unwrap().text.is_empty() && !store.mark(b"something else", Some(&marker)).unwrap());
        assert!(store.mark(b"", Some(&marker)).unwrap() && !store.mark(b"", Some(&marker)).unwrap());
        let found = store.look().unwrap();
        assert_eq!((found.text, found.marker), (marker.text().into_bytes(), Some(marker)));
    }

    #[test]
    fn ever_new_names_do_not_fill_the_memory_and_their_tokens_do_not_fall() {
        let digest = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_string();
        let schemes: [fn(u64) -> String; 3] = [|n| format!("job/{n:08}"), |n| n.to_string(), digest];
        for scheme in schemes {
            let store = Memory::new(Time::System);
            let mut highest = Token::ZERO;
            // A lease lasts for 30 s, and its record as long.
            for n in 0..10_000 {
                let now = at(Duration::from_secs(n));
                let outcomes = store.apply(CLIENT, &[acquire(&scheme(n), 1), release(&scheme(n), 1)], &now);
                if n % 100 == 0 {
                    let again = store.apply(CLIENT, &[acquire("again", 1), release("again", 1)], &now);
                    let Outcome::Applied(Applied::Acquired { counter }) = again[0] else { panic!("{again:?}") };
                    assert!(counter > highest, "{counter:?} after {highest:?}");
                    highest = counter;
                }
                assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Applied(_))), "{outcomes:?}");
            }
            let left = store.contents.lock().records.len();
            assert!((30..100).contains(&left), "{left} names are left");
        }
    }

    #[test]
    fn a_held_lock_a_mark_and_a_lease_that_was_just_over_are_not_forgotten() {
        let store = Memory::new(Time::System);
        let resource = |name: &str| Resource::new(name).unwrap();
        let finish = |name: &str| {
            let counter = store.contents.lock().records[&resource(name)].record.counter;
            let (nonce, owner) = (Nonce::from_bytes([1; 16]), Owner::new("me").unwrap());
            op(
                name,
                Op::Finish(Box::new(Finish {
                    nonce,
                    token: counter,
                    counter,
                    keep: DAY,
                    owner,
                    about: None,
                    quorum: None,
                })),
            )
        };
        store.apply(CLIENT, &[acquire("b", 1), acquire("c", 1), release("c", 1), acquire("d", 1)], &at(DAY));
        store.apply(CLIENT, &[finish("d")], &at(DAY));
        let names = || store.contents.lock().records.keys().map(|name| name.as_str().to_owned()).collect::<Vec<_>>();
        store.apply(CLIENT, &[acquire("a", 1)], &at(DAY + Duration::from_secs(29)));
        assert_eq!(names(), ["a", "b", "c", "d"]);
        store.apply(CLIENT, &[acquire("aa", 1)], &at(DAY + Duration::from_secs(31)));
        assert_eq!(names(), ["a", "aa", "d"], "b has run out, and c would have");
    }
}
