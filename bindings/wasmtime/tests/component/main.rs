//! The component itself, as `cargo xtask component` has built it.
//!
//! `LEASEHOLD_COMPONENT` names it: a `.cwasm`, or with the feature `cranelift` also a `.wasm`.

#![allow(clippy::print_stdout, clippy::wildcard_enum_match_arm, reason = "these are tests, and their helpers are too")]

mod border;
mod dice;
mod face;
mod limits;
mod runs;
mod vectors;
mod wired;

use std::path::PathBuf;
use std::sync::LazyLock;

use leasehold_wasmtime::Component;
use leasehold_wasmtime::types::{Config, Limits, LockOptions, NodeConfig, Now, Poll, Renewal, Wait};

const SEED: [u8; 32] = [7; 32];
const FRESH: [u8; 16] = [9; 16];

fn component() -> &'static Component {
    static COMPONENT: LazyLock<Component> = LazyLock::new(|| {
        let path = std::env::var_os("LEASEHOLD_COMPONENT").map(PathBuf::from);
        let path =
            path.expect("LEASEHOLD_COMPONENT names a component; `cargo xtask component` builds one and says where");
        load(&std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    });
    &COMPONENT
}

fn load(bytes: &[u8]) -> Component {
    #[cfg(feature = "cranelift")]
    if bytes.starts_with(b"\0asm") {
        return Component::compile(bytes).expect("the component can be compiled");
    }
    // SAFETY: the file is what the build has just made.
    unsafe { Component::deserialize(bytes) }.expect("the component can be loaded")
}

fn at(monotonic_ns: u64) -> Now {
    Now { monotonic_ns, unix_ms: 1_700_000_000_000 }
}

fn config() -> Config {
    let node = NodeConfig { poll: Poll::Acquire, watch: false, batch: None, durability: None };
    let limits = Limits { locks: None, orphans: None, observations: None };
    Config { nodes: vec![node], drift_ppm: None, request_timeout_ms: None, limits, quorum: None }
}

fn options() -> LockOptions {
    LockOptions {
        ttl_ms: None,
        wait: Wait::Forever,
        lock_delay_ms: 0,
        max_hold_ms: None,
        renewal: Renewal::Automatic,
        owner: String::new(),
        data: None,
        run: None,
    }
}
