//! Test clocks of other languages, where a client loses its own leases only, and code of the language runs between two steps.

use std::time::Duration;

use crate::cas::Items;
use crate::client::Client;
use crate::error::Error;
use crate::host::sync::Weak;
use crate::host::time::Time;
use crate::host::world::{self, World};
use crate::locks::lease::Lease;
use crate::testing::TestClock;

/// As [`TestClock::lose`], of a lease of this client.
///
/// # Errors
/// [`ErrorKind::NotOwned`](crate::ErrorKind::NotOwned): this client does not hold it.
pub fn lose(clock: &TestClock, client: &Client, resource: &str) -> Result<(), Error> {
    clock.lose_of(client, resource)
}

/// Tells if it is a client of a test clock.
pub fn has_test_clock(client: &Client) -> bool {
    matches!(client.time(), Time::Test(_))
}

/// As [`TestClock::step`], but moves the clock no further than to this age. `false` if nothing is due until then.
pub fn step_until(clock: &TestClock, age: Duration) -> bool {
    clock.step_until(age)
}

/// The items of the clock's store, for writes that happen whatever requests meet.
pub fn items_beside(clock: &TestClock) -> Items {
    clock.items_beside()
}

/// Settles a clock, and does not keep it.
#[derive(Clone, Debug)]
pub struct Settler(Weak<World>);

impl Settler {
    /// That of this clock.
    pub fn of(clock: &TestClock) -> Self {
        Self(clock.world())
    }

    /// As [`TestClock::settle`]. Answers whether anything has happened; nothing if nobody has the clock any more.
    pub fn settle(&self) -> Option<bool> {
        self.0.upgrade().map(|world| world.settle())
    }
}

/// Lets happen what is due by the test clock of a client, if it has one.
pub fn settle(client: &Client) {
    settle_by(client.time());
}

/// The same for a lease.
pub fn settle_lease(lease: &Lease) {
    settle_by(lease.time());
}

fn settle_by(time: &Time) {
    if let Time::Test(world) = time {
        world.settle();
    }
}

/// Tells if this thread moves a test clock, and so has to run the callbacks of its clients.
pub fn is_moved_here() -> bool {
    world::is_here()
}

/// Tells if the error is that of a wait that never ends, which is a mistake of the test.
pub fn is_endless(error: &Error) -> bool {
    error.to_string().contains(world::NEVER_ENDS)
}
