//! A report that is made once, although three workers start it. Run: `cargo run -p leasehold-examples --bin once`

use std::time::Duration;

use leasehold::Error;
use leasehold::blocking::{Client, Once};

fn main() -> Result<(), Error> {
    // `sqlite:locks.db` serves the processes of one machine, `redis://host` and `dynamodb://TABLE` many machines.
    let client = Client::connect("memory:")?;
    for worker in 1..=3 {
        // It stands by for a minute while another worker is at it.
        match client.once("report").key("monday").wait(Duration::from_secs(60)).begin()? {
            Once::Run(run) if worker == 1 => {
                println!("worker 1 fails");
                // Without a finish there is no completion, and the next worker may do the work.
                run.release()?;
            }
            Once::Run(run) => {
                println!("worker {worker} makes the report");
                run.finish()?;
            }
            Once::Done(_) => println!("worker {worker} finds it done"),
            Once::Running(_) => println!("worker {worker} steps aside"),
            _ => {}
        }
    }
    client.close()
}

// Output:
// worker 1 fails
// worker 2 makes the report
// worker 3 finds it done
