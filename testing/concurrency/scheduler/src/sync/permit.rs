//! A thread's sleep, which ends with a permit.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use shuttle::sync::mpsc::{Receiver, Sender, channel};

/// For one thread. It rests on a channel, since shuttle wakes parked threads without a reason, too: that would hide a wake-up
/// that was forgotten, and there is no end of such schedules.
#[derive(Debug)]
pub(crate) struct Permit {
    given: AtomicBool,
    sender: Sender<()>,
    receiver: Mutex<Receiver<()>>,
}

impl Permit {
    pub(crate) fn new() -> Arc<Self> {
        let (sender, receiver) = channel();
        Arc::new(Self { given: AtomicBool::new(false), sender, receiver: Mutex::new(receiver) })
    }

    pub(crate) fn give(&self) {
        switch();
        if !self.given.swap(true, Ordering::SeqCst) {
            self.sender.send(()).expect("invariant: the receiver is here");
        }
    }

    pub(crate) fn wait(&self) {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
        receiver.recv().expect("invariant: the sender is here");
        self.given.store(false, Ordering::SeqCst);
    }
}

/// Lets the scheduler choose another thread.
pub fn switch() {
    shuttle::thread::sleep(Duration::ZERO);
}
