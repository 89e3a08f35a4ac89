//! The check of a script for sense.

use super::{Data, Script, What};
use crate::store::Kind;

impl Script {
    /// Checks that everything that is named by number exists.
    pub(crate) fn check(&self) -> Result<(), String> {
        let host = |n: usize| if n < self.hosts.len() { Ok(()) } else { Err(format!("there is no host {n}")) };
        let nodes = self.world.specs().len();
        let node = |n: usize| if n < nodes { Ok(()) } else { Err(format!("there is no node {n}")) };
        let resource = |n: usize| {
            if n < self.world.resources { Ok(()) } else { Err(format!("there is no resource {n}")) }
        };
        if self.hosts.is_empty() || self.world.resources == 0 {
            return Err("a world needs a host and a resource".to_owned());
        }
        self.within_bounds()?;
        self.check_nodes()?;
        if self.world.sessions && self.world.specs().iter().all(|spec| spec.kind != Kind::Dynamodb) {
            return Err(
                "sessions need a store or node whose records only observers can declare dead: dynamodb".to_owned()
            );
        }
        self.world.config().map_err(|error| format!("world: {error}"))?;
        for (n, spec) in self.hosts.iter().enumerate() {
            for job in spec.workers.iter().flatten() {
                resource(job.resource)?;
                job.options(n).map_err(|error| format!("a job of host {n}: {error}"))?;
            }
        }
        for named in self.messages.iter().map(|message| message.host).chain(self.stalls.iter().map(|stall| stall.host))
        {
            host(named)?;
        }
        for message in &self.messages {
            node(message.node)?;
        }
        for client in &self.foreign_clients {
            resource(client.resource)?;
        }
        for fault in &self.faults {
            match &fault.what {
                What::Fork { host: parent, child } => {
                    host(*parent)?;
                    host(*child)?;
                }
                What::Crash { host: n, .. }
                | What::Reboot { host: n, .. }
                | What::Stop { host: n, .. }
                | What::Suspend { host: n, .. }
                | What::WallJump { host: n, .. }
                | What::Rate { host: n, .. } => host(*n)?,
                What::Partition { host: n, nodes, .. } => {
                    host(*n)?;
                    nodes.iter().try_for_each(|n| node(*n))?;
                }
                What::Evicted { node: at, resource: n } => {
                    node(*at)?;
                    resource(*n)?;
                }
                What::StoreDown { node: n, .. }
                | What::StoreSilent { node: n, .. }
                | What::StoreErrors { node: n, .. }
                | What::Throttle { node: n, .. }
                | What::Credentials { node: n, .. }
                | What::Denied { node: n, .. }
                | What::StoreRate { node: n, .. }
                | What::StoreJump { node: n, .. }
                | What::NodeWiped { node: n } => node(*n)?,
                What::NodeRestart { node: n, data, .. } => {
                    node(*n)?;
                    if matches!(data, Data::Lags { by_ns } if *by_ns > fault.at_ns.0) {
                        return Err(format!("node {n} cannot come back with what it had before the world began"));
                    }
                }
                What::Revoked { resource: n } => resource(*n)?,
                What::StoreWiped => {}
            }
            let of_quorum = matches!(fault.what, What::NodeWiped { .. } | What::NodeRestart { .. });
            if of_quorum != self.world.is_quorum() && (of_quorum || fault.what == What::StoreWiped) {
                return Err("node_wiped and node_restart are for quorums, store_wiped for a single store".to_owned());
            }
        }
        Ok(())
    }

    /// One store, or three to seven nodes that can remember their membership.
    fn check_nodes(&self) -> Result<(), String> {
        let world = &self.world;
        if !world.is_quorum() {
            let single = world.nodes.is_empty() && world.max_ttl_ns == 0 && !world.unmarked;
            let memory = world.specs().iter().any(|spec| spec.kind == Kind::Memory || spec.durable);
            return match (single, memory) {
                (true, false) => Ok(()),
                (false, _) => Err("`nodes`, `max_ttl_ns` and `unmarked` go without `store`".to_owned()),
                (true, true) => Err("a store in memory, or one declared durable, is a node of a quorum".to_owned()),
            };
        }
        if !(3..=7).contains(&world.nodes.len()) {
            return Err(format!("a quorum has 3 to 7 nodes here, not {}", world.nodes.len()));
        }
        if world.nodes.iter().any(|spec| spec.kind == Kind::Sqlite) {
            return Err("a quorum's nodes are redis, dynamodb or memory".to_owned());
        }
        // The newcomer at the end asks for a second.
        let longest_ns = self.longest_record_ns().max(1_000_000_000);
        if world.max_ttl_ns < longest_ns {
            return Err(format!("max_ttl_ns {} is below the longest record, {longest_ns} ns", world.max_ttl_ns));
        }
        if self.foreign_clients.is_empty() {
            Ok(())
        } else {
            Err("clients of other libraries know nothing of quorums".to_owned())
        }
    }

    /// Numbers that no run means, and that would only overflow.
    fn within_bounds(&self) -> Result<(), String> {
        const HOUR_NS: u64 = 3_600_000_000_000;
        let at_most = |what: &str, value: u64, most: u64| {
            if value <= most { Ok(()) } else { Err(format!("{what} {value} is above the largest, {most}")) }
        };
        let rate = |what: &str, ppm: i32| at_most(what, ppm.unsigned_abs().into(), 500_000);
        at_most("hosts", self.hosts.len() as u64, 1_000)?;
        at_most("resources", self.world.resources as u64, 1_000)?;
        at_most("heals_ns", self.world.heals_ns.0, 24 * HOUR_NS)?;
        at_most("latency_ns", self.world.latency_ns, HOUR_NS)?;
        for spec in self.world.specs() {
            rate("rate_ppm of a store", spec.rate_ppm)?;
            at_most("unix_offset_ms of a store", spec.unix_offset_ms.unsigned_abs(), HOUR_NS)?;
        }
        for host in &self.hosts {
            rate("rate_ppm of a host", host.rate_ppm)?;
            at_most("unix_offset_ms of a host", host.unix_offset_ms.unsigned_abs(), HOUR_NS)?;
            for job in host.workers.iter().flatten() {
                at_most("writes", job.writes.into(), 10_000)?;
                let limits = [job.wait_ns, job.cancel_ns, job.keep_ns].map(Option::unwrap_or_default);
                for ns in [job.after_ns, job.hold_ns].into_iter().chain(limits) {
                    at_most("a time of a job", ns, 1_000 * HOUR_NS)?;
                }
            }
        }
        for client in &self.foreign_clients {
            rate("rate_ppm of a foreign client", client.rate_ppm)?;
            at_most("hold_ns of a foreign client", client.hold_ns, HOUR_NS)?;
            if !(1_000_000..=HOUR_NS).contains(&client.ttl_ns) {
                return Err(format!("ttl_ns {} of a foreign client is not between 1 ms and 1 h", client.ttl_ns));
            }
        }
        for message in &self.messages {
            for way in [message.request, message.reply] {
                at_most("delay_ns", way.delay_ns, 24 * HOUR_NS)?;
                at_most("copy_ns", way.copy_ns.unwrap_or(0), 24 * HOUR_NS)?;
            }
        }
        for fault in &self.faults {
            if let What::StoreJump { by_ms, .. } | What::WallJump { by_ms, .. } = fault.what {
                at_most("by_ms", by_ms.unsigned_abs(), HOUR_NS / 1_000_000)?;
            }
        }
        Ok(())
    }
}
