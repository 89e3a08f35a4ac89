//! The same key shared with real clients of other lock libraries, in both directions.

mod peer;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use leasehold::blocking::{Client, Lease};
use leasehold::{ClientBuilder, Error, ErrorKind, RevokeOutcome};
use leasehold_servers::redis::Server;
use leasehold_servers::resp::Reply;
use leasehold_servers::wait_until;
use peer::{Answer, Lasts, Library, Peer};

/// The longest wait before a test gives up; only a failure takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A ttl that no test outlives.
const LONG: Duration = Duration::from_secs(120);

/// A ttl that tests wait for.
const SHORT: Duration = Duration::from_secs(2);

/// Renewals that a test sees within a moment.
const OFTEN: Duration = Duration::from_millis(100);

/// Turns that each side takes at least where both want one lock.
const TURNS: u64 = 20;

const KEY: &str = "{invoice}/42";

macro_rules! with {
    ($library:ident as $module:ident: $($test:ident)*) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    crate::$test(crate::Library::$library);
                }
            )*
        }
    };
}

macro_rules! with_every_library {
    ($($test:ident)*) => {
        with!(RedisPy as redis_py: $($test)*);
        with!(NodeRedlock as node_redlock: $($test)*);
        with!(Rslock as rslock_crate: $($test)*);
    };
}

with_every_library! {
    our_lock_blocks_them_until_release
    our_lock_blocks_them_until_expiry
    our_revoked_lock_blocks_them_until_release
    their_lock_blocks_us_until_release
    their_lock_blocks_us_until_expiry
    their_stale_lock_cannot_release_ours
    our_stale_lease_cannot_release_theirs
    our_tokens_grow_despite_their_locks
    eight_workers_lose_no_update
}

struct World {
    ours: Client,
    theirs: Peer,
    /// Below those who use it: it ends last.
    server: Server,
}

impl World {
    fn new(library: Library) -> Self {
        let server = Server::start();
        let ours = connect(&server);
        let theirs = Peer::start(library, &server.url());
        Self { ours, theirs, server }
    }

    /// The record under the key, of any library.
    fn record(&self) -> Reply {
        self.server.command(&["GET", KEY])
    }

    /// The time that the record lasts; negative where there is none, or where it has no end.
    fn left_ms(&self) -> i64 {
        self.server.command(&["PTTL", KEY]).integer()
    }

    fn delete_record(&self) {
        assert_eq!(self.server.command(&["DEL", KEY]), Reply::Integer(1));
    }

    /// Waits for the lock on another thread, and is seen trying for it by the server.
    fn wait_for_it(&self) -> thread::JoinHandle<Result<Lease, Error>> {
        let tries = || self.server.commands_processed("evalsha");
        let before = tries();
        let request = self.ours.lock(KEY).ttl(LONG).wait(PATIENCE);
        let waiting = thread::spawn(move || request.acquire());
        wait_until("ours tries to acquire", || tries() > before);
        waiting
    }

    #[track_caller]
    fn assert_foreign(&self) {
        let seen = self.ours.inspect(KEY).unwrap().expect("somebody holds the lock");
        assert!(seen.foreign, "{seen:?}");
        assert_eq!((seen.owner, seen.token, seen.data), (None, None, None));
    }
}

fn connect(server: &Server) -> Client {
    // A busy machine may take longer to answer than the default waits.
    Client::connect_with(ClientBuilder::default().request_timeout(PATIENCE), server.url()).unwrap()
}

fn our_lock_blocks_them_until_release(library: Library) {
    let mut world = World::new(library);
    let ttl = Duration::from_secs(30);
    let lease = world.ours.lock(KEY).ttl(ttl).renew_every(OFTEN).acquire().unwrap();
    let granted = Instant::now();
    assert_eq!(world.theirs.acquire(KEY, Lasts::For(LONG)), Answer::No);

    let record = world.record();
    wait_until("the record lasts longer than the grant", || {
        let elapsed = granted.elapsed();
        let left = Duration::from_millis(world.left_ms().try_into().unwrap());
        assert_eq!(world.theirs.acquire(KEY, Lasts::For(LONG)), Answer::No);
        elapsed + left > ttl + OFTEN
    });
    assert_eq!(world.record(), record);
    lease.check(Duration::ZERO).unwrap();

    lease.release().unwrap();
    assert_eq!(world.theirs.acquire(KEY, Lasts::For(LONG)), Answer::Yes);
    world.assert_foreign();
}

fn our_lock_blocks_them_until_expiry(library: Library) {
    let mut world = World::new(library);
    let lease = world.ours.lock(KEY).ttl(SHORT).no_renewal().acquire().unwrap();
    wait_until("theirs gets the lock", || world.theirs.acquire(KEY, Lasts::For(LONG)) == Answer::Yes);
    // At the earliest when our client knew of it.
    assert!(lease.is_lost());

    let record = world.record();
    let _ = lease.release();
    drop(lease);
    assert_eq!(world.record(), record);
    assert_ne!(world.theirs.release(KEY), Answer::No);
}

/// They know nothing of a revoke: the record is held, and is not theirs.
fn our_revoked_lock_blocks_them_until_release(library: Library) {
    let mut world = World::new(library);
    let lease = world.ours.lock(KEY).ttl(LONG).renew_every(OFTEN).acquire().unwrap();
    let outcome = connect(&world.server).revoke(KEY, lease.token()).unwrap();
    assert!(matches!(outcome, RevokeOutcome::Revoked(_)), "{outcome:?}");
    let record = world.record();
    assert_eq!(world.theirs.acquire(KEY, Lasts::For(LONG)), Answer::No);
    assert_eq!(lease.lost().lost_reason(), Some("revoked"));
    assert_eq!(world.theirs.acquire(KEY, Lasts::For(LONG)), Answer::No);
    assert_eq!(world.record(), record, "its holder has not let go yet");

    assert_eq!(lease.release().unwrap_err().lost_reason(), Some("revoked"));
    wait_until("theirs gets the lock", || world.theirs.acquire(KEY, Lasts::For(LONG)) == Answer::Yes);
    world.assert_foreign();
}

fn their_lock_blocks_us_until_release(library: Library) {
    let mut world = World::new(library);
    assert_eq!(world.theirs.acquire(KEY, Lasts::For(LONG)), Answer::Yes);
    let record = world.record();
    assert!(world.ours.lock(KEY).try_acquire().unwrap().is_none());
    let error = world.ours.lock(KEY).wait(Duration::ZERO).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);

    world.assert_foreign();
    let left = world.ours.inspect(KEY).unwrap().unwrap().left.expect("their lock has an end");
    assert!(Duration::ZERO < left && left <= LONG, "{left:?}");
    assert_eq!(world.ours.break_lock(KEY).unwrap_err().kind(), ErrorKind::StoreRefused);

    let waiting = world.wait_for_it();
    assert_eq!(world.theirs.extend(KEY, 2 * LONG), Answer::Yes);
    let left = world.ours.inspect(KEY).unwrap().unwrap().left.expect("their lock has an end");
    assert!(left > LONG, "{left:?}");
    assert!(!waiting.is_finished());
    assert_eq!(world.record(), record);

    assert_ne!(world.theirs.release(KEY), Answer::No);
    let lease = waiting.join().unwrap().unwrap();
    assert_eq!(world.theirs.acquire(KEY, Lasts::For(LONG)), Answer::No);
    assert_eq!(world.ours.inspect(KEY).unwrap().unwrap().token, Some(lease.token()));
}

fn their_lock_blocks_us_until_expiry(library: Library) {
    let mut world = World::new(library);
    let start = Instant::now();
    assert_eq!(world.theirs.acquire(KEY, Lasts::For(SHORT)), Answer::Yes);
    let lease = world.ours.lock(KEY).ttl(LONG).wait(PATIENCE).acquire().unwrap();
    // A slow machine makes this longer and never shorter. The server's clock may run a little fast.
    assert!(start.elapsed() > SHORT.mul_f64(0.9));

    let record = world.record();
    assert_eq!(world.theirs.extend(KEY, LONG), Answer::No);
    assert_ne!(world.theirs.release(KEY), Answer::Yes);
    assert_eq!(world.record(), record);
    lease.release().unwrap();
}

/// The record is taken from under their lock. So their client still believes in it, and asks the server.
fn their_stale_lock_cannot_release_ours(library: Library) {
    let mut world = World::new(library);
    assert_eq!(world.theirs.acquire(KEY, Lasts::For(LONG)), Answer::Yes);
    world.delete_record();
    let lease = world.ours.lock(KEY).ttl(LONG).data("ours").acquire().unwrap();

    let record = world.record();
    assert_eq!(world.theirs.extend(KEY, 2 * LONG), Answer::No);
    assert!(Duration::from_millis(world.left_ms().try_into().unwrap()) <= LONG);
    assert_ne!(world.theirs.release(KEY), Answer::Yes);
    assert_eq!(world.record(), record);
    lease.check(Duration::ZERO).unwrap();
    lease.release().unwrap();
}

fn our_stale_lease_cannot_release_theirs(library: Library) {
    let mut world = World::new(library);
    let lease = world.ours.lock(KEY).ttl(2 * LONG).renew_every(OFTEN).acquire().unwrap();
    let unaware = world.ours.lock("another").ttl(LONG).no_renewal().acquire().unwrap();
    world.delete_record();
    assert_eq!(world.theirs.acquire(KEY, Lasts::For(LONG)), Answer::Yes);
    let record = world.record();

    wait_until("a renewal finds their record", || lease.is_lost());
    assert!(Duration::from_millis(world.left_ms().try_into().unwrap()) <= LONG);
    let _ = lease.release();
    assert_eq!(world.record(), record);

    // The same for a lease that notices only at its release.
    assert_eq!(world.server.command(&["DEL", "another"]), Reply::Integer(1));
    assert_eq!(world.theirs.acquire("another", Lasts::For(LONG)), Answer::Yes);
    let record = world.server.command(&["GET", "another"]);
    let _ = unaware.release();
    assert_eq!(world.server.command(&["GET", "another"]), record);
    assert_ne!(world.theirs.release("another"), Answer::No);
}

fn our_tokens_grow_despite_their_locks(library: Library) {
    let mut world = World::new(library);
    let mut last = 0;
    let mut grows = |lease: Lease| {
        assert!(lease.token() > last, "{} after {last}", lease.token());
        last = lease.token();
        lease.release().unwrap();
    };
    grows(world.ours.lock(KEY).acquire().unwrap());
    assert_eq!(world.theirs.acquire(KEY, Lasts::For(LONG)), Answer::Yes);
    assert_ne!(world.theirs.release(KEY), Answer::No);
    grows(world.ours.lock(KEY).acquire().unwrap());
    assert_eq!(world.theirs.acquire(KEY, Lasts::For(SHORT)), Answer::Yes);
    grows(world.ours.lock(KEY).wait(PATIENCE).acquire().unwrap());
    assert_eq!(world.theirs.acquire(KEY, Lasts::For(LONG)), Answer::Yes);
    world.delete_record();
    grows(world.ours.lock(KEY).acquire().unwrap());
}

/// Nothing but the lock guards the counter: each increment reads the file, takes its time, and writes it.
fn eight_workers_lose_no_update(library: Library) {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let counter = folder.path().join("counter");
    fs::write(&counter, "0").unwrap();
    let (ours, theirs) = (AtomicU64::new(0), AtomicU64::new(0));
    let stop = AtomicBool::new(false);

    thread::scope(|scope| {
        let _stops = StopAtTheEnd(&stop);
        let mut workers = Vec::new();
        for _ in 0..4 {
            workers.push(scope.spawn(|| {
                let client = connect(&server);
                while !stop.load(Ordering::SeqCst) {
                    // Ours are woken by a release, theirs look now and then: who has had their turns lets others have
                    // some.
                    if ours.load(Ordering::SeqCst) > theirs.load(Ordering::SeqCst) + TURNS {
                        thread::sleep(Duration::from_millis(20));
                        continue;
                    }
                    let lease = client.lock(KEY).ttl(LONG).wait(PATIENCE).acquire().unwrap();
                    increment(&counter);
                    ours.fetch_add(1, Ordering::SeqCst);
                    lease.release().unwrap();
                }
            }));
            workers.push(scope.spawn(|| {
                let mut peer = Peer::start(library, &server.url());
                while !stop.load(Ordering::SeqCst) {
                    if peer.acquire(KEY, Lasts::For(LONG)) == Answer::Yes {
                        increment(&counter);
                        theirs.fetch_add(1, Ordering::SeqCst);
                        assert_ne!(peer.release(KEY), Answer::No);
                    }
                    thread::sleep(Duration::from_millis(2));
                }
            }));
        }
        wait_until("both sides get their turns", || {
            assert!(workers.iter().all(|worker| !worker.is_finished()), "a worker has failed");
            ours.load(Ordering::SeqCst) >= TURNS && theirs.load(Ordering::SeqCst) >= TURNS
        });
    });
    let (ours, theirs) = (ours.into_inner(), theirs.into_inner());
    println!("{ours} turns of ours, {theirs} of {library:?}");
    assert_eq!(fs::read_to_string(&counter).unwrap(), (ours + theirs).to_string());
}

/// Also when a test fails: the threads of a scope are waited for.
struct StopAtTheEnd<'a>(&'a AtomicBool);

impl Drop for StopAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn increment(counter: &Path) {
    let text = fs::read_to_string(counter).unwrap();
    let count: u64 = text.parse().unwrap_or_else(|_| panic!("somebody writes while we read: {text:?}"));
    thread::sleep(Duration::from_micros(200));
    fs::write(counter, (count + 1).to_string()).unwrap();
}

/// redis-py's default.
#[test]
fn lock_without_ttl_is_never_taken_over() {
    let mut world = World::new(Library::RedisPy);
    assert_eq!(world.theirs.acquire(KEY, Lasts::Forever), Answer::Yes);
    let record = world.record();
    assert!(world.ours.lock(KEY).try_acquire().unwrap().is_none());
    world.assert_foreign();
    assert_eq!(world.ours.inspect(KEY).unwrap().unwrap().left, None);
    assert_eq!(world.ours.break_lock(KEY).unwrap_err().kind(), ErrorKind::StoreRefused);

    let error = world.ours.lock(KEY).wait(20 * OFTEN).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!((world.record(), world.left_ms()), (record, -1));

    let waiting = world.wait_for_it();
    assert!(!waiting.is_finished());
    assert_eq!(world.theirs.release(KEY), Answer::Yes);
    waiting.join().unwrap().unwrap().release().unwrap();
}
