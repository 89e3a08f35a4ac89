//! The benchmarks of PostgreSQL, etcd and the daemon run to their end, and tell the figures that the aims name.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::process::Command;

/// The figures of a short run of a benchmark.
fn figures(benchmark: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let figures = folder.path().join("figures");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_bench"));
    let output = bench.args([benchmark, "--trial"]).env("LEASEHOLD_FIGURES", &figures).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read_to_string(figures).unwrap()
}

/// Returns the figures of a short run, which has them for one client.
fn of_one_client(benchmark: &str, base: &str) -> String {
    let told = figures(benchmark);
    for who in [base, "leasehold"] {
        let figure = format!("figure | Rust | one client, async | p50 | us | {who} | ");
        assert!(told.contains(&figure), "{figure} is not in\n{told}");
    }
    told
}

fn tells_its_figures(benchmark: &str, base: &str) {
    let told = of_one_client(benchmark, base);
    assert!(told.contains("| hand-over p50 |") && told.contains(" in a second |"), "{told}");
}

#[test]
fn bench_postgres_tells_its_figures() {
    tells_its_figures("postgres", "two bare statements");
}

#[test]
fn bench_serve_tells_its_figures() {
    of_one_client("serve", "leasehold serve");
}

#[test]
fn bench_objects_tells_its_figures() {
    of_one_client("objects", "two bare writes");
}

#[test]
fn bench_admin_tells_its_figures() {
    let told = figures("admin");
    for case in [
        "a list of 300 locks, Redis | time | ms",
        "a stopped holder is revoked | until the next one has the lock | ttl",
    ] {
        assert!(told.contains(&format!("figure | Rust | {case} | leasehold | ")), "{case} is not in\n{told}");
    }
}

#[test]
fn bench_etcd_tells_its_figures() {
    tells_its_figures("etcd", "two bare txns");
}
