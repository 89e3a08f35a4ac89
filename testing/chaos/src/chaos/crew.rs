//! The processes of a play with one part for all: each is started inside its group's network, stopped, and killed.

use std::path::Path;
use std::time::{Duration, Instant};

use leasehold_bench::child::{self, Child};
use leasehold_bench::rng::Rng;

use super::environment::{Environment, StoreKind};
use super::worker::Assignment;
use super::workers::launch;
use crate::Result;

/// A process.
pub struct Member {
    /// The process itself.
    pub child: Child,
    /// Its number.
    pub process: usize,
    /// Its group, which decides its path to the store.
    pub group: usize,
    /// The time of its next fault.
    pub next: Instant,
    /// True while it is stopped.
    pub is_stopped: bool,
}

/// The settings of a process of a play.
pub fn assignment(name: String, store: StoreKind, stores: Vec<String>, counters: &Path) -> Assignment {
    Assignment {
        name,
        stores,
        max_ttl_ms: store.max_ttl().map(|ttl| ttl.as_millis() as u64),
        ttl_ms: store.ttl().as_millis() as u64,
        counters: counters.into(),
    }
}

impl Member {
    /// Starts a process that plays this part. Its lines are passed on with its number.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(
        part: &str,
        assignment: &Assignment,
        environment: &Environment,
        group: usize,
        process: usize,
        mut hear: impl FnMut(usize, &str) + Send + 'static,
    ) -> Result<Self> {
        let mut words = environment.inside(group);
        let program = std::env::current_exe()?.display().to_string();
        words.extend([program, child::PART.to_owned(), part.to_owned(), assignment.text()]);
        let hear = move |line: Option<&str>| line.into_iter().for_each(|line| hear(process, line));
        let child = Child::run(&mut launch(&words)?, hear)?;
        Ok(Self { child, process, group, next: Instant::now(), is_stopped: false })
    }

    /// Stops it, or lets it go on; answers if it is stopped now.
    pub fn stop_or_go_on(&mut self) -> bool {
        if self.is_stopped {
            self.child.go_on()
        } else {
            self.child.stop()
        }
        self.is_stopped = !self.is_stopped;
        self.is_stopped
    }

    /// Lets it go on if it is stopped; answers if it was.
    pub fn go_on(&mut self) -> bool {
        self.is_stopped && !self.stop_or_go_on()
    }

    /// # Errors
    /// It has ended by itself.
    pub fn lives(&mut self) -> Result {
        match self.child.ended()? {
            Some(status) => Err(format!("a worker has ended by itself: {status}").into()),
            None => Ok(()),
        }
    }
}

/// A random length, in tenths of the store's ttl.
pub fn between(rng: &mut Rng, store: StoreKind, tenths: [u32; 2]) -> Duration {
    let [least, most] = tenths.map(|tenths| store.ttl() * tenths / 10);
    rng.between(least, most)
}
