//! A guard that rejects the late write of a stalled worker. Run: `cargo run -p leasehold-examples --bin fencing`

use std::time::Duration;

use leasehold::blocking::Client;
use leasehold::fence::Guards;
use leasehold::{Error, ErrorKind};

const ITEM: &str = "invoice/42";

fn main() -> Result<(), Error> {
    let (first, second) = (Client::connect("memory:shop")?, Client::connect("memory:shop")?);
    // The guard belongs to the resource. `leasehold::fence` has others for SQLite, PostgreSQL, Redis and DynamoDB.
    let guards = Guards::new(10_000);

    // Without renewal the lease ends after its ttl, as if this worker were paused.
    let stalled = first.lock(ITEM).ttl(Duration::from_millis(200)).no_renewal().acquire()?;
    guards.claim(ITEM, stalled.token())?;

    let successor = second.lock(ITEM).acquire()?;
    guards.claim(ITEM, successor.token())?; // before the first read
    guards.with(ITEM, successor.token(), || println!("the successor writes"))?;

    match guards.with(ITEM, stalled.token(), || println!("never printed")) {
        Err(error) if error.kind() == ErrorKind::StaleToken => println!("the stalled worker is rejected"),
        other => other?,
    }
    successor.release()
}

// Output:
// the successor writes
// the stalled worker is rejected
