//! The long measure of every store against the reference: `cargo xtask prove differential`.

use std::fs;

use crate::run::{self, Failure, Result};
use crate::steps::Steps;

/// As many times the sequences of the short run.
const SEQUENCES: &str = "25";
/// The differences that are allowed.
const TABLE: &str = "testing/differential/src/allowed.txt";

/// One test after the other, so that their figures can be read. No row of the table may be there for nothing.
pub fn run_long(steps: &mut Steps) -> Result {
    let needed = run::built()?.join("allowed.txt");
    let failed = |path: &std::path::Path, error| Failure::new(format!("{}: {error}", path.display()));
    fs::write(&needed, "").map_err(|error| failed(&needed, error))?;
    let mut differential = run::cargo_ci("test");
    differential.args(["-p", "leasehold-differential", "--test", "differential"]);
    differential.args(["--", "--nocapture", "--test-threads", "1"]);
    differential.env("LEASEHOLD_DIFFERENTIAL", SEQUENCES).env("LEASEHOLD_ALLOWED", &needed);
    steps.run("every store against the reference, long", differential)?;
    let table = run::root().join(TABLE);
    let read = |path: &std::path::Path| fs::read_to_string(path).map_err(|error| failed(path, error));
    let idle = idle(&read(&table)?, &read(&needed)?);
    if idle.is_empty() {
        return Ok(());
    }
    let idle = idle.join("\n  ");
    Err(Failure::new(format!("{TABLE} allows what no store does; take it out of these rows:\n  {idle}")))
}

/// The stores of rows that none of their sequences has needed.
fn idle(table: &str, needed: &str) -> Vec<String> {
    let needed: std::collections::BTreeSet<_> = needed.lines().collect();
    let rows = table.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let each = rows.flat_map(|row| {
        let stores = row.split('|').next().unwrap_or_default();
        stores.split_whitespace().map(move |store| (store, row))
    });
    let is_idle = |(store, row): &(&str, &str)| !needed.contains(&*format!("{store} {row}"));
    each.filter(is_idle).map(|(store, row)| format!("{store}: {row}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_that_a_store_does_not_need_is_named_with_it() {
        let table = "# stores | ...\nredis upstash | acquire | seq | hidden | why\netcd | * | ttl | shorter | why\n";
        let needed = "redis redis upstash | acquire | seq | hidden | why\netcd etcd | * | ttl | shorter | why\n";
        assert_eq!(idle(table, needed), ["upstash: redis upstash | acquire | seq | hidden | why"]);
        assert_eq!(idle(table, "").len(), 3);
    }
}
