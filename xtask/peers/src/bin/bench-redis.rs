//! What leasehold costs on Redis, beside the bare commands and beside rslock, in turns.
use leasehold::Client;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use std::error::Error;
use std::time::{Duration, Instant};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

const RELEASE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

#[derive(Clone)]
struct Bare {
    connection: MultiplexedConnection,
    sha: String,
}

impl Bare {
    async fn pair(&mut self, key: &str) -> Result {
        let value = "0123456789abcdef0123456789abcdef";
        let taken: Option<String> = redis::cmd("SET")
            .arg(key)
            .arg(value)
            .arg("NX")
            .arg("PX")
            .arg(30_000)
            .query_async(&mut self.connection)
            .await?;
        assert!(taken.is_some());
        let freed: i64 =
            redis::cmd("EVALSHA").arg(&self.sha).arg(1).arg(key).arg(value).query_async(&mut self.connection).await?;
        assert_eq!(freed, 1);
        Ok(())
    }
}

fn main() -> Result {
    let url = std::env::args().nth(1).unwrap();
    let secs: f64 = std::env::args().nth(2).map_or(0.3, |s| s.parse().unwrap());
    let round = Duration::from_secs_f64(secs);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = Client::connect(&url).await?;
        let blocking = leasehold::blocking::Client::connect(&url);
        drop(blocking);
        let mut connection = redis::Client::open(url.as_str())?.get_multiplexed_async_connection().await?;
        let sha: String = redis::cmd("SCRIPT").arg("LOAD").arg(RELEASE).query_async(&mut connection).await?;
        let mut bare = Bare { connection, sha };
        let rslock = rslock::LockManager::from_clients(vec![redis::Client::open(url.as_str())?]);
        let mut times: [Vec<f64>; 3] = Default::default();
        for _ in 0..9 {
            for who in 0..3 {
                let end = Instant::now() + round;
                while Instant::now() < end {
                    let start = Instant::now();
                    match who {
                        0 => bare.pair("bare").await?,
                        1 => client.lock("ours").await?.release().await?,
                        _ => {
                            let lock =
                                rslock.lock("rslock", Duration::from_secs(30)).await.map_err(|e| format!("{e:?}"))?;
                            rslock.unlock(&lock).await;
                        }
                    }
                    times[who].push(start.elapsed().as_secs_f64() * 1e6);
                }
            }
        }
        let names = ["bare", "leasehold", "rslock"];
        for (name, times) in names.iter().zip(&mut times) {
            times.sort_by(f64::total_cmp);
            println!(
                "{name:10} p50 {:7.1} us p99 {:7.1} us n {}",
                times[times.len() / 2],
                times[times.len() * 99 / 100],
                times.len()
            );
        }
        // 64 tasks
        let mut rates: [Vec<f64>; 3] = Default::default();
        for _ in 0..9 {
            for who in 0..3 {
                let end = Instant::now() + round;
                let start = Instant::now();
                let local = tokio::task::LocalSet::new();
                let n: u64 = local
                    .run_until(async {
                        let tasks: Vec<_> = (0..64)
                            .map(|n| {
                                let (mut bare, client, rslock) = (bare.clone(), client.clone(), rslock.clone());
                                tokio::task::spawn_local(async move {
                                    let key = format!("k{n}");
                                    let mut count = 0;
                                    while Instant::now() < end {
                                        match who {
                                            0 => bare.pair(&key).await.unwrap(),
                                            1 => client.lock(&key).await.unwrap().release().await.unwrap(),
                                            _ => {
                                                let lock =
                                                    rslock.lock(key.as_str(), Duration::from_secs(30)).await.unwrap();
                                                rslock.unlock(&lock).await;
                                            }
                                        }
                                        count += 1;
                                    }
                                    count
                                })
                            })
                            .collect();
                        let mut n = 0;
                        for task in tasks {
                            n += task.await.unwrap();
                        }
                        n
                    })
                    .await;
                rates[who].push(n as f64 / start.elapsed().as_secs_f64());
            }
        }
        for (name, rates) in names.iter().zip(&mut rates) {
            rates.sort_by(f64::total_cmp);
            println!("64 tasks {name:10} {:8.0} pairs/s", rates[rates.len() / 2]);
        }
        let _ = bare.connection.get_db();
        Ok::<(), Box<dyn Error>>(())
    })?;
    let client = leasehold::blocking::Client::connect(&url)?;
    let mut connection = redis::Client::open(url.as_str())?.get_connection()?;
    let sha: String = redis::cmd("SCRIPT").arg("LOAD").arg(RELEASE).query(&mut connection)?;
    let mut times: [Vec<f64>; 2] = Default::default();
    for _ in 0..9 {
        for who in 0..2 {
            let end = Instant::now() + round;
            while Instant::now() < end {
                let start = Instant::now();
                if who == 0 {
                    let value = "0123456789abcdef0123456789abcdef";
                    let _: Option<String> = redis::cmd("SET")
                        .arg("bare")
                        .arg(value)
                        .arg("NX")
                        .arg("PX")
                        .arg(30_000)
                        .query(&mut connection)?;
                    let _: i64 =
                        redis::cmd("EVALSHA").arg(&sha).arg(1).arg("bare").arg(value).query(&mut connection)?;
                } else {
                    client.lock("ours").acquire()?.release()?;
                }
                times[who].push(start.elapsed().as_secs_f64() * 1e6);
            }
        }
    }
    for (name, times) in ["bare sync", "leasehold blocking"].iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        println!(
            "{name:20} p50 {:7.1} us p99 {:7.1} us n {}",
            times[times.len() / 2],
            times[times.len() * 99 / 100],
            times.len()
        );
    }
    Ok(())
}
