//! Work that stops when its lease is lost. Run: `cargo run -p leasehold-examples --bin asynchronous`

use std::time::Duration;

use leasehold::{Client, Error};
use tokio::time::sleep;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let client = Client::connect("memory:").await?;

    let lease = client.lock("report").wait(Duration::from_secs(10)).await?;
    tokio::select! {
        reason = lease.lost() => return Err(reason),
        () = sleep(Duration::from_millis(10)) => println!("the report is written"),
    }
    lease.release().await?;

    // A lease is renewed in the background until it is released or lost.
    let lease = client.lock("report").ttl(Duration::from_millis(500)).await?;
    client.break_lock("report").await?;
    tokio::select! {
        _ = lease.lost() => println!("an operator broke the lock: the report is abandoned"),
        () = sleep(Duration::from_secs(60)) => println!("never printed"),
    }
    Ok(())
}

// Output:
// the report is written
// an operator broke the lock: the report is abandoned
