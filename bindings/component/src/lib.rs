//! The component that imports nothing: `leasehold_protocol` exports all of it, and here is what a program without `std` adds.

#![cfg_attr(target_family = "wasm", no_std)]

extern crate leasehold_protocol as _;

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
