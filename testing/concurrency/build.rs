//! Compiles the client on the scheduler's locks, threads, clock and random bytes.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(leasehold_concurrency)");
    println!("cargo::rustc-cfg=leasehold_concurrency");
    println!("cargo::rerun-if-changed=build.rs");
}
