//! A clock and a store for tests of your own code: no server, no sleeping, and the same course each time. Feature `testing`.
//!
//! ```
//! use std::time::Duration;
//!
//! use leasehold::blocking::Client;
//! use leasehold::testing::TestClock;
//! use leasehold::{Error, ErrorKind};
//!
//! // Your code under test.
//! fn settle_invoice(client: &Client) -> Result<&'static str, Error> {
//!     match client.lock("invoice/42").wait(Duration::from_secs(5)).acquire() {
//!         Ok(lease) => {
//!             lease.check(Duration::from_secs(10))?;
//!             lease.release()?;
//!             Ok("settled")
//!         }
//!         Err(error) if error.kind() == ErrorKind::TimedOut => Ok("later"),
//!         Err(error) if error.kind() == ErrorKind::StoreUnavailable => Ok("down"),
//!         Err(error) => Err(error),
//!     }
//! }
//!
//! let clock = TestClock::new(1);
//! let (client, rival) = (clock.connect().blocking(), clock.connect().blocking());
//! assert_eq!(settle_invoice(&client)?, "settled");
//!
//! let held = rival.lock("invoice/42").acquire()?;
//! assert_eq!(settle_invoice(&client)?, "later"); // busy: waiting moves the clock, and takes no time
//! clock.advance(Duration::from_secs(3_600)); // renewals and losses happen on the way
//! assert!(!held.is_lost());
//! clock.lose("invoice/42")?; // as if it had not been renewed for too long
//! assert!(held.is_lost());
//! assert_eq!(settle_invoice(&client)?, "settled");
//!
//! clock.store_down(); // and `store_up`: the records are still there
//! assert_eq!(settle_invoice(&client)?, "down");
//! # Ok::<(), Error>(())
//! ```
//!
//! Clients of a [`TestClock`] are real ones: they run the same protocol and the same code, over a store in memory that belongs to the
//! clock. Each is another process on the same store. Only time, randomness and threads are the clock's.
//!
//! **Who moves the clock.** [`TestClock::advance`] does, and every wait of [`blocking`](crate::blocking): while a call waits,
//! the clock goes from one due time to the next until the call ends. So does [`TestClock::run`] with a future, in the place of the executor.
//! Awaited in another executor, such as one of tokio, a future waits until somebody moves the clock.
//!
//! **What happens, and when.** Renewals, deadlines, elections and shards happen in the call that moves the clock, on its thread, and so do
//! callbacks: one after the other, each once everything else that was due has happened. A callback may do whatever a test may do. What a
//! drop brings about for others happens with the next such call, [`TestClock::settle`] at the latest.
//!
//! **Threads** may share a clock, but a thread that waits moves it for all of them, even if another is about to release; a request that the clock
//! overtakes in another thread fails as if the store had not answered. For tests
//! of threads that compete, `memory:NAME` is a store in real time.

use std::time::Duration;

use leasehold_core::{Monotonic, Resource};

use crate::cas::Items;
use crate::client::Client;
use crate::connect::ClientBuilder;
use crate::driver::Driver;
use crate::error::{Error, ErrorKind};
use crate::exec;
use crate::host::sync::{Arc, Mutex, Weak};
use crate::host::time::Time;
use crate::host::world::World;
use crate::transport::test_store::{TestPlace, TestStore};
use crate::url::StoreUrl;
use crate::url::place::Place;

/// Time that passes when a test says so, and a store that all of its clients share. See the [module](self).
#[derive(Clone)]
pub struct TestClock {
    world: Arc<World>,
    store: Arc<TestStore>,
    clients: Arc<Mutex<Vec<Weak<Driver>>>>,
}

impl TestClock {
    /// A clock that begins now, with an empty store. What is random follows from the seed.
    pub fn new(seed: u64) -> Self {
        let world = World::new(seed);
        let store = TestStore::new(&Time::Test(Arc::clone(&world)));
        Self { world, store, clients: Arc::default() }
    }

    /// Another client of the clock's store. Its leases have the owner `test`.
    ///
    /// # Panics
    /// As [`TestClock::connect_with`] would fail.
    pub fn connect(&self) -> Client {
        self.connect_with(Client::builder().owner("test")).expect("the settings are the defaults")
    }

    /// The same with settings of your own. Those of quorums are refused: there is one store.
    ///
    /// # Errors
    /// As [`ClientBuilder::connect`].
    pub fn connect_with(&self, settings: ClientBuilder) -> Result<Client, Error> {
        let client = settings.open(&[self.url()], Time::Test(Arc::clone(&self.world)))?;
        let mut clients = self.clients.lock();
        clients.retain(|known| known.strong_count() > 0);
        clients.push(Arc::downgrade(client.driver()));
        Ok(client)
    }

    /// The items of the clock's store, for compare-and-set.
    ///
    /// # Panics
    /// Never: the store is open.
    pub fn items(&self) -> Items {
        let store = self.place().items().expect("invariant: a store in memory is open");
        Items::over(store, self.url(), Time::Test(Arc::clone(&self.world)))
    }

    /// The same, where no fault reaches them.
    pub(crate) fn items_beside(&self) -> Items {
        Items::over(self.store.items(), self.url(), Time::Test(Arc::clone(&self.world)))
    }

    /// The time since the clock began.
    pub fn now(&self) -> Duration {
        self.world.age()
    }

    /// Lets this much time pass, with everything that happens meanwhile: renewals, losses, callbacks, elections.
    pub fn advance(&self, time: Duration) {
        self.world.advance(time);
    }

    /// Lets happen what is due now. No time passes.
    pub fn settle(&self) {
        self.world.settle();
    }

    /// Lets happen what is due now, or if that is nothing, moves the clock to the next time at which something is due. `false` if nothing
    /// ever will be.
    pub fn step(&self) -> bool {
        self.world.step(Monotonic::FAR)
    }

    pub(crate) fn step_until(&self, age: Duration) -> bool {
        self.world.step(self.world.monotonic().plus(age.saturating_sub(self.now())))
    }

    pub(crate) fn world(&self) -> Weak<World> {
        Arc::downgrade(&self.world)
    }

    /// Runs a future to its end on this thread, and moves the clock whenever nothing can happen without.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use leasehold::testing::TestClock;
    ///
    /// let clock = TestClock::new(1);
    /// let (client, rival) = (clock.connect(), clock.connect());
    /// clock.run(async {
    ///     let lease = rival.lock("report").no_renewal().await?;
    ///     let ours = client.lock("report").await?; // it waits until the lease has run out
    ///     assert!(lease.is_lost() && clock.now() > Duration::from_secs(29));
    ///     ours.release().await
    /// })?;
    /// # Ok::<(), leasehold::Error>(())
    /// ```
    ///
    /// # Panics
    /// The future waits for something that never happens: an hour has passed since the last deadline that it has named.
    pub fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = std::pin::pin!(future);
        exec::block_on(std::future::poll_fn(|context| {
            self.world.note_wait(None);
            future.as_mut().poll(context)
        }))
    }

    /// Ends the lease on this resource, as if it had not been renewed for too long: its holder is notified, and the lock is free for others.
    ///
    /// # Errors
    /// [`ErrorKind::NotOwned`]: no client of this clock holds it.
    pub fn lose(&self, resource: impl AsRef<str>) -> Result<(), Error> {
        let clients: Vec<Arc<Driver>> = self.clients.lock().iter().filter_map(Weak::upgrade).collect();
        self.lose_one_of(&clients, resource.as_ref())
    }

    /// The same, of the lease of one client.
    pub(crate) fn lose_of(&self, client: &Client, resource: &str) -> Result<(), Error> {
        self.lose_one_of(std::slice::from_ref(client.driver()), resource)
    }

    fn lose_one_of(&self, clients: &[Arc<Driver>], resource: &str) -> Result<(), Error> {
        let name = Resource::new(resource)?;
        let Some(nonce) = clients.iter().find_map(|client| client.lose(&name)) else {
            return Err(Error::new(ErrorKind::NotOwned, "nobody holds it").on(resource));
        };
        self.store.free(&name, nonce);
        self.world.settle();
        Ok(())
    }

    /// From now on no request of any client reaches the store. Leases last until they expire.
    pub fn store_down(&self) {
        self.store.set_down(true);
    }

    /// Requests reach the store again, and its records are still there. Candidates that pause after a failure stand again at once; an
    /// acquisition under way tries again within a few seconds, as after any failure.
    pub fn store_up(&self) {
        self.store.set_down(false);
        self.world.end_pauses();
        self.world.settle();
    }

    /// The next request is served, and its answer is lost: its sender does not know what has become of it.
    pub fn lose_reply(&self) {
        self.store.lose_replies(1);
    }

    /// From now on every answer takes this long, or does not come before the sender's patience ends. Zero, as at the beginning, for none.
    pub fn late(&self, time: Duration) {
        self.store.set_delay(time);
    }

    fn place(&self) -> Arc<dyn Place> {
        Arc::new(TestPlace(Arc::clone(&self.store)))
    }

    fn url(&self) -> StoreUrl {
        self.place().into()
    }
}

impl std::fmt::Debug for TestClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestClock").field("now", &self.now()).finish_non_exhaustive()
    }
}
