//! Many leases held for a while: what their renewals cost.

use std::slice;
use std::sync::mpsc::channel;
use std::time::Duration;

use leasehold_bench::child::{Child, say};
use leasehold_bench::figures::table;
use leasehold_bench::peers::Result;
use leasehold_bench::peers::cost::Meter;
use leasehold_bench::records::Case;
use leasehold_servers::redis::Server;
use rustix::time::{ClockId, clock_gettime};

use super::{Plan, runtime};

const TTL: Duration = Duration::from_secs(30);
/// Acquisitions under way at once.
const CROWD: usize = 64;
const PATIENCE: Duration = Duration::from_secs(300);

pub fn measure(server: &Server, plan: &Plan) -> Result {
    println!("Leases of 30 s held for {:?}, in a process of their own\n", plan.hold);
    let heads = ["leases", "commands", "CPU here", "CPU in Redis", "memory", "lost"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for leases in plan.leases {
        server.command(&["FLUSHALL"]);
        let (sender, receiver) = channel();
        let hear = move |line: Option<&str>| {
            let _ = sender.send(line.map(str::to_owned));
        };
        let (count, millis) = (leases.to_string(), plan.hold.as_millis().to_string());
        let child = Child::start(&["hold", &server.url(), "leasehold", &count, &millis], hear)?;
        let next = || receiver.recv_timeout(PATIENCE)?.ok_or_else(|| "the holder has ended".into());
        let ready: Result<String> = next();
        ready?;
        let meter = Meter::start(slice::from_ref(server))?;
        let done: Result<String> = next();
        let cost = meter.stop()?;
        drop(child);
        let done = done?;
        let figures: Vec<&str> = done.split_whitespace().collect();
        let [cpu_us, bytes, lost] = figures[..] else { return Err(format!("odd answer: {done}").into()) };
        let (cpu_s, bytes_each) = (cpu_us.parse::<f64>()? / 1e6, bytes.parse::<f64>()? / *leases as f64);
        let case = format!("{leases} leases of 30 s held for {} s", plan.hold.as_secs());
        Case(&case, "CPU", "ms").alone(cpu_s * 1e3);
        Case(&case, "CPU in Redis", "ms").alone(cost.server.as_secs_f64() * 1e3);
        Case(&case, "memory of each", "bytes").alone(bytes_each);
        rows.push(vec![
            leases.to_string(),
            cost.commands.to_string(),
            format!("{cpu_s:.3} s"),
            format!("{:.3} s", cost.server.as_secs_f64()),
            format!("{bytes_each:.0} bytes each"),
            lost.to_owned(),
        ]);
    }
    println!("{}", table(&rows));
    println!(
        "commands: as Redis counts them, with those inside scripts; requests are about a hundredth of the leases each.\n"
    );
    Ok(())
}

pub fn work(url: &str, _library: &str, leases: usize, time: Duration) -> Result {
    runtime()?.block_on(async {
        let client = leasehold::Client::connect(url).await?;
        let before = resident();
        let mut held = Vec::with_capacity(leases);
        let names: Vec<String> = (0..leases).map(|n| format!("held/{n}")).collect();
        for names in names.chunks(CROWD) {
            let tasks: Vec<_> = names
                .iter()
                .map(|name| {
                    let request = client.lock(name).ttl(TTL);
                    tokio::spawn(async move { request.await })
                })
                .collect();
            for task in tasks {
                held.push(task.await??);
            }
        }
        let bytes = resident().saturating_sub(before);
        let start = clock_gettime(ClockId::ProcessCPUTime);
        say("ready");
        tokio::time::sleep(time).await;
        let end = clock_gettime(ClockId::ProcessCPUTime);
        let us = (end.tv_sec - start.tv_sec) * 1_000_000 + (end.tv_nsec - start.tv_nsec) / 1_000;
        let lost = held.iter().filter(|lease| lease.is_lost()).count();
        say(&format!("{us} {bytes} {lost}"));
        // The records run out by themselves; giving back this many would only take time.
        std::process::exit(0);
    })
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().split(' ').next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}
