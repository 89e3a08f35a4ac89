//! A holder is killed: the time until another one has the lock, as a share of the ttl.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use leasehold::blocking::Client;
use leasehold_bench::child::{Child, say};
use leasehold_bench::figures::median;
use leasehold_bench::peers::Result;
use leasehold_bench::records::Case;
use leasehold_servers::redis::Server;

use super::Plan;

const TTL: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(60);

pub fn measure(server: &Server, plan: &Plan) -> Result {
    let client = Client::connect(server.url())?;
    let mut shares = Vec::new();
    for _ in 0..plan.deaths {
        let (sender, receiver) = channel();
        let hear = move |line: Option<&str>| {
            let _ = sender.send(line.is_some());
        };
        let mut holder = Child::start(&["die", &server.url(), &TTL.as_millis().to_string()], hear)?;
        if !receiver.recv_timeout(PATIENCE)? {
            return Err("the holder has ended".into());
        }
        holder.kill();
        let died = Instant::now();
        let lease = client.lock("mortal").ttl(TTL).wait(PATIENCE).acquire()?;
        shares.push(died.elapsed().as_secs_f64() / TTL.as_secs_f64());
        lease.release()?;
    }
    let most = shares.iter().copied().fold(0.0, f64::max);
    println!(
        "A holder is killed right after its grant: the next one has the lock after {:.2} of the ttl (most {most:.2})\n",
        median(&shares)
    );
    Case("a holder is killed", "until the next one has the lock", "ttl").alone(median(&shares));
    Ok(())
}

pub fn work(url: &str, ttl: Duration) -> Result {
    let client = Client::connect(url)?;
    let lease = client.lock("mortal").ttl(ttl).wait(PATIENCE).acquire()?;
    say("held");
    std::thread::sleep(PATIENCE);
    drop(lease);
    Ok(())
}
