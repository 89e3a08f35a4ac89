//! An allocator for native modules of other languages: each thread keeps blocks that were freed, for its next allocations.
//!
//! A lock that is taken and released needs dozens of small blocks, most of them until the reply is there. The allocator of
//! the C library keeps seven blocks of each size per thread. With more locks in flight it joins the others and splits them
//! again, which took a seventh of all time. A module cannot choose another allocator for the process, but for itself.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;

/// The steps of sizes that are kept, up to [`LARGEST`].
const STEP: usize = 32;
const LARGEST: usize = 3_072;
const CLASSES: usize = LARGEST / STEP;
/// The most bytes that a thread keeps of one size.
const MOST_BYTES: usize = 64 << 10;
/// Every block is aligned at least so.
const ALIGNMENT: usize = 16;

/// The allocator of the system, with blocks kept per thread. It is made for `#[global_allocator]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeptMemory;

/// A block that is free. It lies in the block itself.
struct Free {
    next: *mut Free,
}

/// The free blocks of one size.
#[derive(Clone, Copy)]
struct List {
    first: *mut Free,
    bytes: usize,
}

struct Lists(UnsafeCell<[List; CLASSES]>);

std::thread_local! {
    static LISTS: Lists = const { Lists(UnsafeCell::new([List { first: ptr::null_mut(), bytes: 0 }; CLASSES])) };
}

/// The position of a block's list, and the layout of all blocks there; `None` for blocks that are not kept.
fn class(layout: Layout) -> Option<(usize, Layout)> {
    if layout.size() == 0 || layout.size() > LARGEST || layout.align() > ALIGNMENT {
        return None;
    }
    let at = (layout.size() - 1) / STEP;
    Layout::from_size_align((at + 1) * STEP, ALIGNMENT).ok().map(|whole| (at, whole))
}

// SAFETY: a block of a class is always one of the system with the layout of its class. A thread's lists
// are used by that thread alone, and nothing is called while one is borrowed.
unsafe impl GlobalAlloc for KeptMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some((at, whole)) = class(layout) else {
            // SAFETY: as the caller promises.
            return unsafe { System.alloc(layout) };
        };
        let kept = LISTS.try_with(|lists| {
            // SAFETY: as above; blocks in a list are free, and begin with the next one.
            unsafe {
                let list = &mut (*lists.0.get())[at];
                let block = list.first;
                if !block.is_null() {
                    list.first = (*block).next;
                    list.bytes -= whole.size();
                }
                block.cast::<u8>()
            }
        });
        match kept {
            Ok(block) if !block.is_null() => block,
            // SAFETY: the size is not zero.
            Ok(_) | Err(_) => unsafe { System.alloc(whole) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some((at, whole)) = class(layout) else {
            // SAFETY: as the caller promises.
            return unsafe { System.dealloc(block, layout) };
        };
        let is_kept = LISTS.try_with(|lists| {
            // SAFETY: as above; the block has room for this, and nobody uses it any more.
            unsafe {
                let list = &mut (*lists.0.get())[at];
                let has_room = list.bytes + whole.size() <= MOST_BYTES;
                if has_room {
                    #[expect(clippy::cast_ptr_alignment, reason = "every block is aligned for it")]
                    let free = block.cast::<Free>();
                    free.write(Free { next: list.first });
                    *list = List { first: free, bytes: list.bytes + whole.size() };
                }
                has_room
            }
        });
        if is_kept != Ok(true) {
            // SAFETY: it was allocated with this layout.
            unsafe { System.dealloc(block, whole) };
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if class(layout).is_none() {
            // SAFETY: as the caller promises.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: as the caller promises; the block has as many bytes.
        unsafe {
            let block = self.alloc(layout);
            if !block.is_null() {
                block.write_bytes(0, layout.size());
            }
            block
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (class(layout), class(wanted)) {
            // SAFETY: as the caller promises.
            (None, None) => unsafe { System.realloc(block, layout, size) },
            (Some((before, _)), Some((after, _))) if before == after => block,
            // SAFETY: both blocks have as many bytes as are copied.
            (Some(_), _) | (_, Some(_)) => unsafe {
                let moved = self.alloc(wanted);
                if !moved.is_null() {
                    ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                    self.dealloc(block, layout);
                }
                moved
            },
        }
    }
}

impl Drop for Lists {
    /// Gives all of them back, at the end of the thread.
    fn drop(&mut self) {
        for (at, list) in self.0.get_mut().iter_mut().enumerate() {
            let Ok(whole) = Layout::from_size_align((at + 1) * STEP, ALIGNMENT) else { return };
            while !list.first.is_null() {
                let block = list.first;
                // SAFETY: a free block of this class, which begins with the next one.
                unsafe {
                    list.first = (*block).next;
                    System.dealloc(block.cast(), whole);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 8).unwrap()
    }

    #[test]
    fn a_freed_block_serves_the_next_allocation_of_about_its_size() {
        // SAFETY: each block is freed once, with its layout.
        unsafe {
            let first = KeptMemory.alloc(layout(1_000));
            KeptMemory.dealloc(first, layout(1_000));
            let [second, third] = [KeptMemory.alloc(layout(993)), KeptMemory.alloc(layout(993))];
            assert!(second == first && third != first);
            KeptMemory.dealloc(second, layout(993));
            KeptMemory.dealloc(third, layout(993));
        }
    }

    #[test]
    fn a_block_that_grows_or_shrinks_keeps_its_bytes() {
        let sizes = [1, 32, 33, LARGEST, LARGEST + 1, 100_000, LARGEST + 1, LARGEST, 100, 1];
        // SAFETY: as above; the bytes that are read were written.
        unsafe {
            let mut block = KeptMemory.alloc(layout(sizes[0]));
            block.write(7);
            for pair in sizes.windows(2) {
                block = KeptMemory.realloc(block, layout(pair[0]), pair[1]);
                let common = pair[0].min(pair[1]);
                assert_eq!((block.read(), block.add(common - 1).read()), (7, 7), "{pair:?}");
                block.write_bytes(7, pair[1]);
            }
            KeptMemory.dealloc(block, layout(1));
        }
    }

    #[test]
    fn blocks_of_other_alignments_are_those_of_the_system() {
        for (size, align) in [(64, 64), (100, 4_096), (LARGEST + 1, 8)] {
            let layout = Layout::from_size_align(size, align).unwrap();
            assert!(class(layout).is_none());
            // SAFETY: as above.
            unsafe {
                let block = KeptMemory.alloc(layout);
                assert_eq!(block.addr() % align, 0);
                KeptMemory.dealloc(block, layout);
            }
        }
    }

    #[test]
    fn a_thread_keeps_a_bounded_number_of_blocks() {
        let (at, whole) = class(layout(2_000)).unwrap();
        // SAFETY: as above; the list is that of this thread.
        unsafe {
            let blocks: Vec<_> = (0..100).map(|_| KeptMemory.alloc(layout(2_000))).collect();
            blocks.into_iter().for_each(|block| KeptMemory.dealloc(block, layout(2_000)));
            let kept = LISTS.with(|lists| (*lists.0.get())[at].bytes);
            assert!((MOST_BYTES - whole.size()..=MOST_BYTES).contains(&kept), "{kept}");
        }
    }
}
