//! Looks at the store again and again, on a thread of its own: a store that hangs does not hold up the keys.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use leasehold::blocking::Client;
use leasehold::{Error, LockInfo, ffi};

use crate::args::TopArgs;
use crate::output::Failure;

/// The most locks that a look reads. Nobody scrolls through more.
const MOST: usize = 2_000;

/// The locks that are held, as one look at the store has found them.
#[derive(Debug)]
pub(super) struct Look {
    pub locks: Result<Vec<LockInfo>, Error>,
    /// False if there are more locks.
    pub is_complete: bool,
    /// The clients in the queues of the locks on the screen.
    pub waiting: HashMap<String, u64>,
    /// When it was taken, by the clock that does not jump, and by that of people.
    pub at_ns: u64,
    pub unix_ms: u64,
}

pub(super) struct Looks {
    looks: Receiver<Look>,
    visible: Arc<Mutex<Vec<String>>>,
}

impl Looks {
    /// Takes the first look, and then one after each interval for as long as the answer lives.
    ///
    /// # Errors
    /// The first look fails, or the system refuses a thread.
    pub(super) fn start(client: Client, args: &TopArgs) -> Result<(Look, Self), Failure> {
        let visible = Arc::default();
        let looker = Looker { client, prefix: args.prefix.clone(), every: args.every, visible: Arc::clone(&visible) };
        let first = looker.look();
        if let Err(error) = first.locks {
            return Err(error.into());
        }
        let (sender, looks) = sync_channel(0);
        thread::Builder::new()
            .name("leasehold-top".to_owned())
            .spawn(move || looker.run(&sender))
            .map_err(|error| Failure::system("cannot start a thread", &error))?;
        Ok((first, Self { looks, visible }))
    }

    /// The newest look, if there is one since the last call.
    ///
    /// # Errors
    /// The thread has died.
    pub(super) fn next(&self) -> io::Result<Option<Look>> {
        match self.looks.try_recv() {
            Ok(look) => Ok(Some(look)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(io::Error::other("the thread that reads the store has died")),
        }
    }

    /// The locks of which the next looks shall count the waiters.
    pub(super) fn count_waiters_of(&self, names: Vec<String>) {
        *self.visible.lock().unwrap_or_else(PoisonError::into_inner) = names;
    }
}

struct Looker {
    client: Client,
    prefix: String,
    every: Duration,
    visible: Arc<Mutex<Vec<String>>>,
}

impl Looker {
    fn run(&self, looks: &SyncSender<Look>) {
        loop {
            thread::sleep(self.every);
            // Nobody receives it once the table is closed.
            if looks.send(self.look()).is_err() {
                return;
            }
        }
    }

    fn look(&self) -> Look {
        let locks: Result<Vec<LockInfo>, Error> = self.client.list(&*self.prefix).take(MOST).collect();
        let is_complete = locks.as_ref().is_ok_and(|locks| locks.len() < MOST);
        let waiting = if locks.is_ok() { self.waiting() } else { HashMap::new() };
        let (at_ns, unix_ms) = ffi::clocks();
        Look { locks, is_complete, waiting, at_ns, unix_ms }
    }

    /// One request for each name, where the store keeps a queue.
    fn waiting(&self) -> HashMap<String, u64> {
        let visible = self.visible.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let count = |name: String| {
            let line = self.client.waiters(&name).ok().flatten()?;
            Some((name, line.count))
        };
        visible.into_iter().filter_map(count).collect()
    }
}
