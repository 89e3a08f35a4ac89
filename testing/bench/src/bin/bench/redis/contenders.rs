//! Processes whose workers want one lock: each prints a line for each worker, with the instants of its turns.

use std::time::{Duration, Instant};

use leasehold_bench::child::say;
use leasehold_bench::database::now_ns;
use leasehold_bench::peers::Result;
use redis::aio::MultiplexedConnection;

use super::runtime;

pub const KEY: &str = "contended";
/// One token in a list, which the server hands to the client that has waited longest: what any order costs.
pub const FLOOR: &str = "BLPOP";
/// Those that are measured in this program, the floor first.
pub const RUST: [&str; 4] = [FLOOR, "leasehold", UNFAIR, "rslock"];
const UNFAIR: &str = "leasehold, fair(false)";
const TTL: Duration = Duration::from_secs(10);

/// A way to wait for the lock.
enum Contender {
    Tokens(MultiplexedConnection),
    Ours { client: leasehold::Client, fair: bool },
    Rslock(rslock::LockManager),
}

/// The times of a process: how long it works, how long it holds the lock, and how long it then leaves it to others.
#[derive(Clone, Copy)]
pub struct Pace {
    end: Instant,
    hold: Duration,
    pause: Duration,
}

pub fn work(url: &str, library: &str, workers: usize, [time, hold, pause]: [Duration; 3]) -> Result {
    runtime()?.block_on(async {
        let client = leasehold::Client::connect(url).await?;
        let manager = rslock::LockManager::from_clients(vec![redis::Client::open(url)?]);
        let pace = Pace { end: Instant::now() + time, hold, pause };
        let mut contenders = Vec::new();
        for _ in 0..workers {
            contenders.push(match library {
                FLOOR => {
                    // A connection of its own: one that waits serves nobody else.
                    let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
                    let connection = redis::Client::open(url)?;
                    Contender::Tokens(connection.get_multiplexed_async_connection_with_config(&config).await?)
                }
                "rslock" => Contender::Rslock(manager.clone()),
                _ => Contender::Ours { client: client.clone(), fair: library != UNFAIR },
            });
        }
        let local = tokio::task::LocalSet::new();
        let all = async {
            let tasks: Vec<_> = contenders
                .into_iter()
                .map(|contender| tokio::task::spawn_local(async move { contender.turns(pace).await.unwrap() }))
                .collect();
            for task in tasks {
                let instants = task.await?;
                say(&instants.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
            }
            Ok(())
        };
        local.run_until(all).await
    })
}

impl Contender {
    /// Wishes, grants and releases, one after the other.
    async fn turns(mut self, pace: Pace) -> Result<Vec<i64>> {
        let mut instants = Vec::new();
        while Instant::now() < pace.end {
            let wanted = now_ns();
            let Some((granted, released)) = self.turn(pace).await? else { break };
            instants.extend([wanted, granted, released]);
            rest(pace.pause).await;
        }
        Ok(instants)
    }

    /// `None` where the time ended first.
    async fn turn(&mut self, pace: Pace) -> Result<Option<(i64, i64)>> {
        Ok(Some(match self {
            Self::Tokens(connection) => {
                redis::cmd("BLPOP").arg(KEY).arg(0).exec_async(connection).await?;
                let times = held(pace.hold).await;
                redis::cmd("RPUSH").arg(KEY).arg("token").exec_async(connection).await?;
                times
            }
            Self::Ours { client, fair } => {
                let lease = client.lock(KEY).ttl(TTL).fair(*fair).await?;
                let times = held(pace.hold).await;
                lease.release().await?;
                times
            }
            Self::Rslock(manager) => {
                let lock = loop {
                    match manager.lock(KEY, TTL).await {
                        Ok(lock) => break lock,
                        Err(_) if Instant::now() < pace.end => {}
                        Err(_) => return Ok(None),
                    }
                };
                let times = held(pace.hold).await;
                manager.unlock(&lock).await;
                times
            }
        }))
    }
}

async fn held(hold: Duration) -> (i64, i64) {
    let granted = now_ns();
    rest(hold).await;
    (granted, now_ns())
}

/// A timer waits a millisecond even for nothing.
async fn rest(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}
