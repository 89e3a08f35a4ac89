//! The pulse of a store: a client beside all faults that asks it something again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use leasehold::blocking::Client;

use crate::Result;
use crate::chaos::now_ns;
use crate::chaos::pauses::Span;

/// The pause between two questions.
const PAUSE: Duration = Duration::from_millis(100);

/// A thread that writes down each question whose answer took too long.
pub struct Pulse {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Span>>,
}

impl Pulse {
    /// Asks the store at these urls. An answer may take so long.
    ///
    /// # Errors
    /// The client's, at the beginning.
    pub fn feel(urls: Vec<String>, most: Duration) -> Result<Self> {
        let client = Client::connect(urls.as_slice())?;
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        let thread = spawn(move || {
            let mut slow = Vec::new();
            while !until.load(Ordering::Relaxed) {
                let from = now_ns();
                let is_answered = client.inspect("pulse").is_ok();
                let to = now_ns();
                if !is_answered || u128::from(to - from) > most.as_nanos() {
                    slow.push((from, to));
                }
                sleep(PAUSE);
            }
            slow
        });
        Ok(Self { is_over, thread })
    }

    /// The questions whose answers took too long.
    pub fn stop(self) -> Vec<Span> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}
