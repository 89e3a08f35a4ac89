//! A future that sends its requests is dropped, or moves to another thread.

use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

use std::sync::Arc;

use leasehold_concurrency::internals::{Backing, Store, block_on};
use leasehold_scheduler::clock::{self, Standstill};
use leasehold_scheduler::sync::thread;
use leasehold_scheduler::world::{Time, explore, seen, settle};

use super::{Count, LONG, PASSES};

/// A client that loses one of four answers may have to ask often. Still shorter than its record lasts, so that waiting for
/// the end of the record counts as a failure.
const ASKS_OFTEN: Time = Time::Passes(LONG);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.up();
    }
}

#[test]
fn a_future_dropped_after_any_poll_leaves_no_record() {
    for turns in 0..4 {
        explore(ASKS_OFTEN, &[], move || {
            let store = Store::new(Backing::Network).losing_one_of(4);
            let client = store.client();
            {
                let waker = Waker::from(Arc::new(Count::default()));
                let mut context = Context::from_waker(&waker);
                let mut acquiring = pin!(client.lock("a").ttl(LONG).into_future());
                for _ in 0..turns {
                    if acquiring.as_mut().poll(&mut context).is_ready() {
                        break;
                    }
                    thread::yield_now();
                }
            }
            drop(client);
            settle();
            assert!(!store.is_held("a"));
        });
    }
}

#[test]
fn a_future_that_moves_is_woken_on_its_new_thread() {
    for reach in [Backing::Disk, Backing::Network] {
        explore(Time::Stands, &["pending"], move || {
            let store = Store::new(reach);
            let client = store.client();
            let mut acquiring = client.lock("a").ttl(LONG).into_future();
            let waker = Waker::from(Arc::new(Count::default()));
            if let Poll::Ready(lease) = acquiring.as_mut().poll(&mut Context::from_waker(&waker)) {
                assert!(lease.is_ok());
                return;
            }
            seen("pending");
            let elsewhere = thread::spawn(move || block_on(acquiring).map(drop));
            elsewhere.join().unwrap().unwrap();
        });
    }
}

#[test]
fn a_release_dropped_after_its_first_poll_is_sent() {
    for reach in [Backing::Disk, Backing::Network] {
        explore(PASSES, &[], move || {
            let store = Store::new(reach);
            let client = store.client();
            let lease = block_on(client.lock("a").ttl(LONG).into_future()).unwrap();
            {
                let mut release = pin!(lease.release());
                let _ = release.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }
            assert!(lease.remaining().is_zero());
            drop((lease, client));
            settle();
            assert!(!store.is_held("a"));
        });
    }
}

#[test]
fn the_core_hears_at_once_of_a_release_that_was_never_sent() {
    explore(PASSES, &["never left"], || {
        let store = Store::new(Backing::Network);
        let client = store.client();
        // Nothing of the acquisition is still to be settled then.
        let still = Standstill::new();
        let lease = block_on(client.lock("a").ttl(LONG).into_future()).unwrap();
        {
            let mut release = pin!(lease.release());
            let _ = release.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        if let Some(deadline) = store.unsent_deadline() {
            seen("never left");
            // A core that waits for the answer gives up at that moment.
            clock::stop_before(deadline);
        }
        drop((still, lease, client));
        settle();
        assert!(!store.is_held("a"));
    });
}
