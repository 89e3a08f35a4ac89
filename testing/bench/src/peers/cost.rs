//! The cost of some work in processor time, here and in the servers, whatever else the machine does.

use std::time::{Duration, Instant};

use leasehold_servers::redis::Server;
use rustix::time::{ClockId, clock_gettime};

use super::Result;

/// Running totals, or what lies between two of them.
#[derive(Clone, Copy, Default)]
pub struct Cost {
    /// Processor time of this process.
    pub client: Duration,
    /// Processor time of the servers.
    pub server: Duration,
    /// The commands that the servers processed.
    pub commands: u64,
    /// The time by the clock.
    pub wall: Duration,
}

/// Measures from here on.
pub struct Meter<'a> {
    servers: &'a [Server],
    start: Cost,
    since: Instant,
}

impl<'a> Meter<'a> {
    /// Starts measuring this process and the servers.
    ///
    /// # Errors
    /// A server does not report its totals.
    pub fn start(servers: &'a [Server]) -> Result<Self> {
        Ok(Self { servers, start: totals(servers)?, since: Instant::now() })
    }

    /// The cost since the start.
    ///
    /// # Errors
    /// A server does not report its totals, or has less than at the start, since it was started again.
    pub fn stop(self) -> Result<Cost> {
        let (wall, end) = (self.since.elapsed(), totals(self.servers)?);
        let since = |end: Duration, start| end.checked_sub(start).ok_or("a total that fell");
        Ok(Cost {
            client: since(end.client, self.start.client)?,
            server: since(end.server, self.start.server)?,
            commands: end.commands.checked_sub(self.start.commands).ok_or("a total that fell")?,
            wall,
        })
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.client += other.client;
        self.server += other.server;
        self.commands += other.commands;
        self.wall += other.wall;
    }
}

fn totals(servers: &[Server]) -> Result<Cost> {
    let own = clock_gettime(ClockId::ProcessCPUTime);
    let client = Duration::new(own.tv_sec.unsigned_abs(), u32::try_from(own.tv_nsec).unwrap_or(0));
    let mut totals = Cost { client, ..Cost::default() };
    for server in servers {
        let reported = |field| server.info(field).ok_or_else(|| format!("the server does not report its {field}"));
        let seconds: f64 = reported("used_cpu_user")?.parse::<f64>()? + reported("used_cpu_sys")?.parse::<f64>()?;
        totals.server += Duration::from_secs_f64(seconds);
        totals.commands += reported("total_commands_processed")?.parse::<u64>()?;
    }
    Ok(totals)
}

/// Microseconds for each of `count`.
pub fn us_each(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count.max(1) as f64
}
