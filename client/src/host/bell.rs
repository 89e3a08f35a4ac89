//! What tells a host's event loop which of its futures can go on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// Between whoever wakes futures, on any thread, and the one thread that polls them all: whoever wakes one notes it down,
/// and rings unless something was noted already. So many completions cost one wake-up of the loop.
pub struct Bell<T> {
    noted: Mutex<Vec<T>>,
    ring: Box<dyn Fn() + Send + Sync>,
}

impl<T: Copy + Send + Sync + 'static> Bell<T> {
    /// `ring` has the loop ask for what was [`noted`](Bell::noted), soon and on its own thread. It must not wait, and lives
    /// as long as any waker.
    pub fn new(ring: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { noted: Mutex::default(), ring: Box::new(ring) })
    }

    /// Notes this future whenever it can go on.
    pub fn waker(self: &Arc<Self>, future: T) -> Waker {
        Waker::from(Arc::new(Ringer { bell: Arc::clone(self), future }))
    }

    /// What can go on, and is to be polled now: some perhaps more than once, or ended before. The next one rings again.
    pub fn noted(&self) -> Vec<T> {
        std::mem::take(&mut *self.locked())
    }

    fn locked(&self) -> MutexGuard<'_, Vec<T>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Ringer<T> {
    bell: Arc<Bell<T>>,
    future: T,
}

impl<T: Copy + Send + Sync + 'static> Wake for Ringer<T> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut noted = self.bell.locked();
        let is_first = noted.is_empty();
        noted.push(self.future);
        // The loop may take the note before it hears the bell; then it finds nothing, and no harm is done.
        drop(noted);
        if is_first {
            (self.bell.ring)();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn counted() -> (Arc<Bell<u64>>, Arc<AtomicUsize>) {
        let rings = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&rings);
        let ring = move || {
            count.fetch_add(1, Ordering::SeqCst);
        };
        (Bell::new(ring), rings)
    }

    #[test]
    fn it_rings_for_the_first_until_the_notes_are_taken() {
        let (bell, rings) = counted();
        let [first, second] = [1, 2].map(|future| bell.waker(future));
        assert_eq!((bell.noted(), rings.load(Ordering::SeqCst)), (vec![], 0));
        first.wake_by_ref();
        second.wake_by_ref();
        second.wake();
        assert_eq!((bell.noted(), rings.load(Ordering::SeqCst)), (vec![1, 2, 2], 1));
        assert_eq!(bell.noted(), [0_u64; 0]);
        first.wake();
        assert_eq!((bell.noted(), rings.load(Ordering::SeqCst)), (vec![1], 2));
    }

    #[test]
    fn a_ring_may_take_the_notes_itself() {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let (bell, into) = (Arc::<std::sync::OnceLock<Arc<Bell<u64>>>>::default(), Arc::clone(&taken));
        let rung = Arc::clone(&bell);
        let made = Bell::new(move || into.lock().unwrap().extend(rung.get().unwrap().noted()));
        bell.set(Arc::clone(&made)).unwrap_or_else(|_| unreachable!());
        made.waker(1).wake();
        made.waker(2).wake();
        assert_eq!(*taken.lock().unwrap(), [1, 2]);
    }

    #[test]
    fn nothing_that_any_thread_wakes_is_missed() {
        const THREADS: u64 = 4;
        const WAKES: u64 = 1_000;
        let (tell, told) = std::sync::mpsc::channel();
        let bell = Bell::new(move || tell.send(()).unwrap());
        std::thread::scope(|scope| {
            for of in 0..THREADS {
                let bell = &bell;
                scope.spawn(move || (0..WAKES).for_each(|n| bell.waker(of * WAKES + n).wake()));
            }
            let mut seen = std::collections::BTreeSet::new();
            while seen.len() < usize::try_from(THREADS * WAKES).unwrap() {
                told.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
                seen.extend(bell.noted());
            }
        });
    }
}
