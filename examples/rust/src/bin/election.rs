//! Two candidates of which one leads. Run: `cargo run -p leasehold-examples --bin election`

use std::sync::mpsc::{Sender, channel};

use leasehold::blocking::Client;
use leasehold::{Election, Error};

fn main() -> Result<(), Error> {
    let (elected, terms) = channel();
    let first = stand_for_election("first", elected.clone())?;
    terms.recv().expect("the first candidate is elected");

    let second = stand_for_election("second", elected)?;
    // Returns once `on_stop` has. A leader that crashes is replaced after its ttl.
    first.resign()?;
    terms.recv().expect("the second candidate is elected");
    second.resign()?;
    Ok(())
}

fn stand_for_election(name: &'static str, elected: Sender<()>) -> Result<Election, Error> {
    let candidate = Client::connect("memory:cluster")?.elect("leader").owner(name);
    let candidate = candidate.on_start(move |_lease| {
        println!("{name} leads");
        // Callbacks return soon: start the work of a leader elsewhere, and pass the lease's token to it.
        let _ = elected.send(());
    });
    candidate.on_stop(move |_loss| println!("{name} stops")).start()
}

// Output:
// first leads
// first stops
// second leads
// second stops
