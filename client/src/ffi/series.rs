//! Answers that a host asks for one after the other: the pages of a list, and the changes of a lock.

use std::time::Duration;

use super::wait;
use crate::admin::list::{PageStart, Paged};
use crate::admin::watch::{Change, Watch};
use crate::client::Client;
use crate::error::{Error, LockInfo};
use crate::host::sync::{Arc, Mutex};
use crate::runs::once::RunInfo;

/// A value that one caller at a time borrows, across awaits. It comes back when that one ends or gives up.
#[derive(Debug)]
struct Shelf<T>(Arc<Mutex<Option<T>>>);

struct Lent<T> {
    shelf: Arc<Mutex<Option<T>>>,
    value: Option<T>,
}

impl<T> Shelf<T> {
    fn new(value: T) -> Self {
        Self(Arc::new(Mutex::new(Some(value))))
    }

    /// # Errors
    /// Another caller has it.
    fn take(&self) -> Result<Lent<T>, Error> {
        let value = self.0.lock().take();
        let message = "another caller already waits for the next answer of this object: only one can wait at a time";
        let value = value.ok_or_else(|| Error::config(message))?;
        Ok(Lent { shelf: Arc::clone(&self.0), value: Some(value) })
    }
}

impl<T> Clone for Shelf<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Lent<T> {
    const fn get(&mut self) -> &mut T {
        self.value.as_mut().expect("invariant: it is given back by the drop alone")
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        *self.shelf.lock() = self.value.take();
    }
}

/// The pages of a list.
#[derive(Debug)]
pub struct Pages<T>(Shelf<Paged<T>>);

impl<T> Clone for Pages<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl Pages<LockInfo> {
    /// See [`Client::list`].
    pub fn of(client: &Client, prefix: &str) -> Self {
        Self(Shelf::new(client.list(prefix).0))
    }
}

impl Pages<RunInfo> {
    /// See [`Client::runs`].
    pub fn of_runs(client: &Client, prefix: &str) -> Self {
        Self(Shelf::new(client.runs(prefix).0))
    }
}

impl<T: Send + 'static> Pages<T> {
    /// See [`Listing::page`](crate::Listing::page). Gives up once `interrupted` returns `true`; the next call asks for the same page again.
    ///
    /// # Errors
    /// As there; [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) when it was interrupted.
    pub fn next(&self, interrupted: impl FnMut() -> bool) -> Result<Option<Vec<T>>, Error> {
        wait(self.next_async(), interrupted)
    }

    /// See [`Listing::page`](crate::Listing::page).
    ///
    /// # Errors
    /// As there.
    pub fn next_async(&self) -> impl Future<Output = Result<Option<Vec<T>>, Error>> + Send + 'static {
        let shelf = self.0.clone();
        async move { shelf.take()?.get().page().await }
    }
}

/// The rest of a listing: all from a place on. It does not know which locks were given before.
pub fn list_from(client: &Client, prefix: &str, place: PageStart) -> Paged<LockInfo> {
    client.list(prefix).0.at(place)
}

/// The rest of a list of runs: all from a place on. It does not know which runs were given before.
pub fn runs_from(client: &Client, prefix: &str, place: PageStart) -> Paged<RunInfo> {
    client.runs(prefix).0.at(place)
}

/// The changes of a lock: see [`Client::watch`].
#[derive(Clone, Debug)]
pub struct Changes(Shelf<Watch>);

impl Changes {
    /// Those of the lock with this name. `None` is the default time between two readings.
    pub fn of(client: &Client, name: &str, every: Option<Duration>) -> Self {
        let watch = client.watch(name);
        Self(Shelf::new(match every {
            Some(every) => watch.every(every),
            None => watch,
        }))
    }

    /// See [`Watch::next`]. Gives up once `interrupted` returns `true`.
    ///
    /// # Errors
    /// As there; [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) when it was interrupted.
    pub fn next(&self, interrupted: impl FnMut() -> bool) -> Result<Change, Error> {
        wait(self.next_async(), interrupted)
    }

    /// See [`Watch::next`].
    ///
    /// # Errors
    /// As there.
    pub fn next_async(&self) -> impl Future<Output = Result<Change, Error>> + Send + 'static {
        let shelf = self.0.clone();
        async move { shelf.take()?.get().next().await }
    }
}
