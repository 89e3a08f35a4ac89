//! What a stretch of work costs in processor time, here and in the server, however busy the machine is.

use std::time::{Duration, Instant};

use leasehold_rig::redis::Server;
use rustix::time::{ClockId, clock_gettime};

/// Running totals, or what lies between two of them.
#[derive(Clone, Copy, Default)]
pub struct Cost {
    pub client: Duration,
    pub server: Duration,
    pub commands: u64,
    pub wall: Duration,
}

/// Measures from here on.
pub struct Meter<'a> {
    server: &'a Server,
    start: Cost,
    since: Instant,
}

impl<'a> Meter<'a> {
    pub fn start(server: &'a Server) -> Self {
        Self { server, start: totals(server), since: Instant::now() }
    }

    pub fn stop(self) -> Cost {
        let end = totals(self.server);
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

fn totals(server: &Server) -> Cost {
    let seconds = |field| server.info(field).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    let own = clock_gettime(ClockId::ProcessCPUTime);
    let client = Duration::new(own.tv_sec.unsigned_abs(), u32::try_from(own.tv_nsec).unwrap_or(0));
    let server_time = Duration::from_secs_f64(seconds("used_cpu_user") + seconds("used_cpu_sys"));
    let commands = server.info("total_commands_processed").and_then(|text| text.parse().ok()).unwrap_or(0);
    Cost { client, server: server_time, commands, wall: Duration::ZERO }
}

/// Microseconds for each of `count`.
pub fn us_each(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count.max(1) as f64
}
