//! Decisions for stores that only read and write on a condition: a lock and a marker as they were read make, with an
//! operation, an outcome and what is to be written.

use alloc::string::String;
use core::time::Duration;

use leasehold_core::Monotonic;
use leasehold_core::config::MAX_KEEP;
use leasehold_core::member::{Marker, RunId};
use leasehold_core::node::{NodeMemory, serve, wrong_quorum};
use leasehold_core::op::{Denial, Fault, FaultKind, Op, Outcome, Refusal};
use leasehold_core::store::StoreNow;

use crate::etcd::record::{NOW, Row};

/// The time that a completion is kept longer than asked, since the clock of a later client may be ahead of that of the writer.
const CLOCK_MARGIN: Duration = Duration::from_secs(60);
/// How often an operation is written, while others write the same at the same time.
const MOST_TRIES: u32 = 8;

/// The operation as such a store carries it out.
pub(crate) fn carried_out(op: &Op) -> Op {
    let mut op = op.clone();
    if let Op::Finish(finish) = &mut op
        && !finish.keep.is_zero()
    {
        finish.keep = finish.keep.saturating_add(CLOCK_MARGIN).min(MAX_KEEP);
    }
    op
}

/// A marker as it was read, and what is known of the store that showed it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown<'a> {
    /// Its text; empty where there is none, or where the operation asks for none.
    pub(crate) marker: &'a [u8],
    /// The run of the store's data, where it tells it.
    pub(crate) run: Option<&'a RunId>,
    /// The store has lost data since the marker was written, or another's data was put in its place.
    pub(crate) has_lost: bool,
}

/// The outcome of an operation once everything that it writes is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    pub(crate) outcome: Outcome,
    /// The new value of the lock.
    pub(crate) lock: Option<String>,
    /// The new marker. Only then does the node know whether it votes.
    pub(crate) marker: Option<Marker>,
    /// The lock that was read bears a completion of finished work.
    pub(crate) has_completion: bool,
}

/// Decides an operation by the core's own reference. `lock` is the value that was read, and `name` what the value shall name.
///
/// # Errors
/// The lock or the marker is none that this version understands.
pub(crate) fn decide(
    op: &Op,
    lock: Option<&[u8]>,
    shown: &Shown<'_>,
    name: Option<(&str, &str)>,
    unix_ms: u64,
) -> Result<Decided, Denial> {
    let marker = Marker::parse(shown.marker);
    if let (Op::Acquire(acquire), false, None) = (op, shown.marker.is_empty(), &marker)
        && let Some(asked) = &acquire.member
    {
        return Err(wrong_quorum((asked.quorum, asked.max_ttl_ms), None));
    }
    let mut row = lock.map(Row::parse).transpose()?.unwrap_or_default();
    if let Some((field, name)) = name {
        row.keep(field, name);
    }
    if let Op::Release(_) = op {
        row.freed_at(unix_ms);
    }
    // Other data than the marker was written beside: as if the marker had been lost with it, however durable it is.
    let is_of_other_data = |marker: &Marker| marker.run.is_some() && marker.is_of_another_run(shown.run);
    let marker = marker.filter(|marker| !shown.has_lost && !is_of_other_data(marker));
    let before = NodeMemory { marker: marker.as_ref(), trusted: row.trusted.as_ref(), run: shown.run };
    let now = StoreNow { boot: NOW, uptime: Monotonic::from_ns(0), unix_ms };
    let served = serve(row.record.as_ref(), before, op, &now);
    Ok(Decided {
        outcome: served.outcome,
        lock: served.record.map(|record| row.with(&record, served.trusted)),
        marker: served.marker,
        has_completion: row.record.is_some_and(|record| record.completion.is_some()),
    })
}

/// The writes of one operation that came second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Tries(u32);

impl Tries {
    /// Counts one.
    ///
    /// # Errors
    /// There were too many, which `detail` explains.
    pub(crate) fn lost(&mut self, detail: &str) -> Result<(), Outcome> {
        self.0 += 1;
        if self.0 < MOST_TRIES {
            return Ok(());
        }
        Err(Outcome::NotApplied(Refusal::Unavailable(Fault::new(FaultKind::Busy, detail))))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use leasehold_core::op::Finish;
    use leasehold_core::{Nonce, Owner, Token};

    use super::*;

    #[test]
    fn an_operation_comes_second_seven_times() {
        let mut tries = Tries::default();
        assert!((0..7).all(|_| tries.lost("others").is_ok()));
        let Err(Outcome::NotApplied(Refusal::Unavailable(fault))) = tries.lost("others") else { panic!("once more") };
        assert_eq!((fault.kind, fault.detail.as_deref()), (FaultKind::Busy, Some("others")));
    }

    #[test]
    fn a_completion_is_kept_for_a_minute_more_than_asked() {
        let second = Duration::from_secs(1);
        for (asked, kept) in [(Duration::ZERO, Duration::ZERO), (second, second * 61), (MAX_KEEP, MAX_KEEP)] {
            let finish = |keep| {
                let (nonce, counter) = (Nonce::from_bytes([1; 16]), Token::new(1).unwrap());
                Op::Finish(
                    Finish { nonce, token: counter, counter, keep, owner: Owner::default(), about: None, quorum: None }
                        .into(),
                )
            };
            assert_eq!(carried_out(&finish(asked)), finish(kept));
        }
    }

    #[test]
    fn what_no_client_writes_is_refused() {
        let nothing = Shown { marker: b"", run: None, has_lost: false };
        let denial = decide(&Op::Read, Some(b"nonsense"), &nothing, None, 0).unwrap_err();
        assert!(denial.to_string().contains("no client writes"), "{denial}");
        let read = decide(&Op::Read, None, &nothing, Some(("name", "a")), 0).unwrap();
        assert_eq!((read.lock, read.marker, read.has_completion), (None, None, false));
    }
}
