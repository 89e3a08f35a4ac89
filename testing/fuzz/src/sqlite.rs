//! Rows of a SQLite file, with any content.

use std::time::Duration;

use arbitrary::{Result, Unstructured};
use leasehold::fuzzing::{Cell, read_back, written};
use leasehold_core::op::DenialKind;
use leasehold_core::store::{BootId, LeaseRecord, Record, StoreNow};
use leasehold_core::{Monotonic, Resource};

use crate::{invariants, values};

/// A row of anything, and one that an honest client has written.
pub fn run(bytes: &[u8]) {
    let u = &mut Unstructured::new(bytes);
    // The run ends where the bytes end.
    let _ = anything(u);
    let _ = honest(u);
}

fn cell(u: &mut Unstructured<'_>, usual: Cell) -> Result<Cell> {
    Ok(match u.arbitrary::<u8>()? {
        0..190 => usual,
        190..200 => Cell::Null,
        200..220 => Cell::Integer(i64::try_from(values::number(u)?).unwrap_or(-1)),
        220..225 => Cell::Real(u.arbitrary()?),
        225..240 => Cell::Text(values::bytes(u, 20)?),
        240.. => Cell::Blob(values::bytes(u, 20)?),
    })
}

fn anything(u: &mut Unstructured<'_>) -> Result<()> {
    let integer = |u: &mut Unstructured<'_>| Ok(Cell::Integer(i64::try_from(values::number(u)?).unwrap_or(i64::MIN)));
    let usual = [
        integer(u)?,
        Cell::Integer(0),
        Cell::Blob(values::nonce(u)?.as_bytes().to_vec()),
        Cell::Integer(values::seq(u)?.get().into()),
        Cell::Integer(u.int_in_range(0..=2)?),
        Cell::Integer(30_000_000_000),
        Cell::Blob(vec![1; 16]),
        integer(u)?,
        integer(u)?,
        Cell::Text(values::text(u, 10)?.into_bytes()),
        Cell::Null,
    ];
    let mut cells = Vec::new();
    for usual in usual {
        cells.push(cell(u, usual)?);
    }
    let Ok(cells) = <[Cell; 11]>::try_from(cells) else { return Ok(()) };
    match read_back(&values::resource(u)?, &cells) {
        Ok(record) => {
            let record = record.expect("a row is there");
            let lease = record.lease.expect("a row has a lease");
            let number =
                |at: usize| if let Cell::Integer(number) = cells[at] { u64::try_from(number).ok() } else { None };
            assert_eq!(number(0), Some(record.counter.get()));
            assert_eq!(cells[2], Cell::Blob(lease.nonce.as_bytes().to_vec()));
            assert_eq!((number(3), number(4)), (Some(lease.seq.get().into()), Some(lease.released.into())));
            assert_eq!(number(5).map(Duration::from_nanos), Some(lease.record_ttl));
            assert_eq!((&cells[6], number(7)), (&Cell::Blob(lease.boot.0.to_vec()), Some(lease.expires.ns())));
            assert_eq!(number(8), Some(lease.since_unix_ms));
            assert_eq!(cells[9], Cell::Text(lease.owner.as_str().as_bytes().to_vec()));
        }
        Err(denial) => {
            assert_eq!(denial.kind, DenialKind::CorruptRecord);
            invariants::short(&denial.detail);
        }
    }
    Ok(())
}

/// Checks that a row is read as it was written, within a signed number of nanoseconds.
fn honest(u: &mut Unstructured<'_>) -> Result<()> {
    let most = |number: u64| number.min(i64::MAX.unsigned_abs());
    let lease = LeaseRecord {
        nonce: values::nonce(u)?,
        seq: values::seq(u)?,
        released: u.arbitrary()?,
        record_ttl: values::length(u)?.clamp(Duration::from_millis(100), Duration::from_secs(172_800)),
        boot: BootId([3; 16]),
        expires: Monotonic::from_ns(most(values::number(u)?)),
        since_unix_ms: most(values::number(u)?),
        owner: values::owner(u)?,
        data: values::maybe(u, values::payload)?,
        session: None,
        told: 0,
    };
    let record = Record { counter: values::token(u)?, lease: Some(lease), completion: None };
    let now = StoreNow { boot: BootId([3; 16]), uptime: Monotonic::from_ns(1), unix_ms: values::number(u)? };
    let resource: Resource = values::resource(u)?;
    assert_eq!(written(&resource, &record, &now), Ok(Some(record)));
    Ok(())
}
