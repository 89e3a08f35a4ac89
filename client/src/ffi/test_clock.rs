//! Test clocks of other languages, where a client loses its own leases only.

use crate::client::Client;
use crate::error::Error;
use crate::testing::TestClock;

/// As [`TestClock::lose`], of a lease of this client.
///
/// # Errors
/// [`ErrorKind::NotOwned`](crate::ErrorKind::NotOwned): this client does not hold it.
pub fn lose(clock: &TestClock, client: &Client, resource: &str) -> Result<(), Error> {
    clock.lose_of(client, resource)
}
