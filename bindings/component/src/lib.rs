//! `wit/leasehold.wit` over `leasehold_core`: conversions, and no decision.
//!
//! Whoever calls is not trusted. What the core's types cannot hold is refused here as an error value, or counts as the
//! unknown outcome that it may be; nothing that a host can pass traps, as long as it fits into the memory that the host
//! gives.

#![cfg_attr(target_family = "wasm", no_std)]

extern crate alloc;

mod client;
mod commands;
mod fence;
mod ops;
mod outcomes;
mod outputs;
mod redis;
mod settings;
mod stores;

/// The WIT as Rust.
#[allow(unreachable_pub)]
mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/leasehold.wit",
        // Only C's libraries have constructors.
        disable_run_ctors_once_workaround: true,
    });
}

use bindings::exports::leasehold::protocol as wit;

struct Component;

bindings::export!(Component with_types_in bindings);

#[cfg(target_family = "wasm")]
mod bare {
    #[global_allocator]
    static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

    /// There is nobody to tell: the component imports nothing. The host sees the trap.
    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        core::arch::wasm32::unreachable()
    }
}
