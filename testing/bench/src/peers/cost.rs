//! The cost of some work in processor time, here and in the servers, whatever else the machine does.

use std::time::{Duration, Instant};

use leasehold_servers::redis::Server;
use rustix::time::{ClockId, clock_gettime};

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
    pub fn start(servers: &'a [Server]) -> Self {
        Self { servers, start: totals(servers), since: Instant::now() }
    }

    /// The cost since the start.
    pub fn stop(self) -> Cost {
        let end = totals(self.servers);
        Cost {
            client: end.client.saturating_sub(self.start.client),
            server: end.server.saturating_sub(self.start.server),
            commands: end.commands.saturating_sub(self.start.commands),
            wall: self.since.elapsed(),
        }
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

fn totals(servers: &[Server]) -> Cost {
    let own = clock_gettime(ClockId::ProcessCPUTime);
    let client = Duration::new(own.tv_sec.unsigned_abs(), u32::try_from(own.tv_nsec).unwrap_or(0));
    let mut totals = Cost { client, ..Cost::default() };
    for server in servers {
        let seconds = |field| server.info(field).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        totals.server += Duration::from_secs_f64(seconds("used_cpu_user") + seconds("used_cpu_sys"));
        totals.commands += server.info("total_commands_processed").and_then(|text| text.parse().ok()).unwrap_or(0);
    }
    totals
}

/// Microseconds for each of `count`.
pub fn us_each(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count.max(1) as f64
}
