//! A store in memory, for tests of programs that bring their own loop: the reference of the core, with the time as an argument.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use leasehold_core::Resource;
use leasehold_core::member::{LossId, Marker};
use leasehold_core::node::{NodeMemory, serve};
use leasehold_core::op::{LockOp, Outcome};
use leasehold_core::store::{BootId, Record, StoreNow};
use leasehold_core::time::Now;

/// All records of one such store are of one boot.
const BOOT: BootId = BootId([0; 16]);

/// The records of one store. They end with it, and none is forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    records: BTreeMap<Resource, Record>,
    /// The quorum membership that it remembers.
    marker: Option<Marker>,
    trust: BTreeMap<Resource, LossId>,
}

impl Records {
    /// Performs the operations of a request, in order, as a server does that has these clocks.
    pub fn perform(&mut self, ops: &[LockOp], now: Now) -> Vec<Outcome> {
        let now = StoreNow { boot: BOOT, uptime: now.monotonic, unix_ms: now.unix_ms };
        ops.iter().map(|op| self.perform_one(op, &now)).collect()
    }

    fn perform_one(&mut self, LockOp { resource, op, .. }: &LockOp, now: &StoreNow) -> Outcome {
        let memory = NodeMemory { marker: self.marker.as_ref(), trusted: self.trust.get(resource), run: None };
        let served = serve(self.records.get(resource), memory, op, now);
        if let Some(marker) = served.marker {
            self.trust.retain(|_, stamp| *stamp == marker.stamp);
            self.marker = Some(marker);
        }
        if let Some(stamp) = served.trusted {
            self.trust.insert(resource.clone(), stamp);
        }
        if let Some(record) = served.record {
            self.records.insert(resource.clone(), record);
        }
        served.outcome
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use leasehold_core::config::{Config, LockOptions, NodeConfig};
    use leasehold_core::{Client, Event, LockId, Monotonic, Output};

    use super::*;

    /// Runs a client of these records until it sleeps, and returns what its locks were told.
    fn drive(client: &mut Client, records: &mut Records, now: Now) -> Vec<Event> {
        let mut told = Vec::new();
        loop {
            match client.poll_output(now) {
                Output::Transmit(request) => {
                    let outcomes = records.perform(&request.ops, now);
                    client.handle_response(request.id, Ok(outcomes), now);
                }
                Output::Event(event) => told.push(event),
                Output::WakeAt(_) => return told,
                Output::Subscribe { .. }
                | Output::Unsubscribe { .. }
                | Output::NeedCredentials { .. }
                | Output::Rejected { .. } => {}
            }
        }
    }

    #[test]
    fn a_record_lasts_for_its_ttl() {
        let at =
            |s: u64| Now { monotonic: Monotonic::from_ns(s * 1_000_000_000), unix_ms: 1_700_000_000_000 + s * 1000 };
        let mut records = Records::default();
        let client = |seed: u8| {
            let config = Config::new(alloc::vec![NodeConfig::default()]).unwrap();
            Client::new(config, [seed; 32], at(1))
        };
        let (mut first, mut second) = (client(1), client(2));
        let options = || LockOptions::builder().ttl(Duration::from_secs(30)).no_renewal().build().unwrap();
        first.acquire(LockId::new(1), Resource::new("a").unwrap(), options(), &[1; 16], at(1)).unwrap();
        let told = drive(&mut first, &mut records, at(1));
        let [Event::Acquired { token, .. }] = told[..] else { panic!("{told:?}") };
        second.acquire(LockId::new(1), Resource::new("a").unwrap(), options(), &[2; 16], at(2)).unwrap();
        let told = drive(&mut second, &mut records, at(2));
        assert!(matches!(told[..], [Event::Contended { .. }]), "{told:?}");
        second.handle_timeout(&[3; 16], at(33));
        let told = drive(&mut second, &mut records, at(33));
        let [Event::Acquired { token: later, .. }] = told[..] else { panic!("{told:?}") };
        assert!(later > token);
    }
}
