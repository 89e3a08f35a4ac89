//! The world `locks` of `wit/locks` over `leasehold_wire::client`: a loop, and conversions.
//!
//! The core decides, and writes every request. What is here reads the clocks of WASI, sends the requests through its HTTP,
//! and waits for whatever comes first, an answer or an instant.

#![cfg_attr(target_family = "wasm", no_std)]

extern crate alloc;

mod client;
mod clock;
mod exchange;
mod host;
mod http;
mod machine;
mod problem;
mod settings;

/// The WIT as Rust.
#[allow(unreachable_pub)]
mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit/locks",
        generate_all,
        // Only C's libraries have constructors.
        disable_run_ctors_once_workaround: true,
    });
}

use bindings::exports::leasehold::locks::client as wit;
use bindings::wasi;

struct Component;

bindings::export!(Component with_types_in bindings);

/// Random bytes, drawn from the host for whatever they are used for first.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    for piece in bytes.chunks_mut(8) {
        piece.copy_from_slice(&host::random_word().to_le_bytes()[..piece.len()]);
    }
    bytes
}

#[cfg(target_family = "wasm")]
mod bare {
    #[global_allocator]
    static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

    /// There is nobody to tell. The host sees the trap.
    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        core::arch::wasm32::unreachable()
    }
}
