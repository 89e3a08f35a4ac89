//! A worker that holds a lock while it works. Run two at once: `cargo run -p leasehold-examples --bin worker`

use std::thread::sleep;
use std::time::Duration;

use leasehold::Error;
use leasehold::blocking::Client;

fn main() -> Result<(), Error> {
    // A file, for all processes of this machine.
    let client = Client::connect("sqlite:locks.db")?;

    // An error if it cannot get the lock within 10 s.
    let lease = client.lock("invoice/42").ttl(Duration::from_secs(30)).wait(Duration::from_secs(10)).acquire()?;
    println!("the work begins");
    sleep(Duration::from_millis(200)); // the work
    lease.check(Duration::from_secs(5))?; // an error unless 5 s of validity are left
    println!("the work ends");
    lease.release()
}

// Output:
// the work begins
// the work ends
