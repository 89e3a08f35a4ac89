//! Memory without bound is a finding, also where it is only set aside and never touched.

use std::alloc::{GlobalAlloc, Layout, System};

/// Far more than any input here could need in one piece.
const MOST_BYTES: usize = 64 << 20;

struct Bounded;

#[global_allocator]
static BOUNDED: Bounded = Bounded;

fn check(size: usize) {
    if size > MOST_BYTES {
        eprintln!("{size} bytes were asked for at once");
        std::process::abort();
    }
}

// SAFETY: everything is left to the system's allocator, after a look at the size.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: the caller keeps the promises that it has made to this one.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        check(size);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}
