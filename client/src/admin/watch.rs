//! Watching one lock: each change of its holder.

use std::time::Duration;

use leasehold_core::Resource;
use leasehold_core::config::Span;

use crate::client::Client;
use crate::error::{Error, ErrorKind, LockInfo};
use crate::host::sync::atomic::Ordering;

/// The time between two readings, unless another is set.
const EVERY: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(100);

/// The changes of a lock's holder, without end: see [`Client::watch`].
#[derive(Debug)]
#[must_use = "nothing is read before the first change is asked for"]
pub struct Watch {
    client: Client,
    resource: String,
    every: Duration,
    told: Option<Change>,
}

/// A change of a lock's holder.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Change {
    /// Somebody holds it, who did not at the last reading.
    Held(LockInfo),
    /// Nobody holds it any more.
    Free,
    /// The store cannot be reached, or refuses. When it answers again, the state is reported again.
    Unreadable(Error),
}

impl Client {
    /// Watches a lock by reading it again and again.
    ///
    /// The first change is the state now. A holder that comes and goes between two readings is not seen, and what is told is
    /// old when it arrives: use it to look, never to decide. On stores where only observation tells that a holder is dead,
    /// such as DynamoDB, it is shown until somebody else takes the lock.
    ///
    /// ```no_run
    /// # async fn example(client: leasehold::Client) -> Result<(), leasehold::Error> {
    /// use leasehold::Change;
    ///
    /// let mut changes = client.watch("invoice/42");
    /// loop {
    ///     match changes.next().await? {
    ///         Change::Held(holder) => println!("{holder}"),
    ///         Change::Free => println!("free"),
    ///         other => println!("{other:?}"),
    ///     }
    /// }
    /// # }
    /// ```
    pub fn watch(&self, resource: impl Into<String>) -> Watch {
        Watch { client: self.clone(), resource: resource.into(), every: EVERY, told: None }
    }
}

impl Watch {
    /// The time between two readings: 1 s unless set, at least 100 ms.
    pub fn every(self, every: Duration) -> Self {
        Self { every, ..self }
    }

    /// Waits for the next change.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for a name or a time that cannot be; [`ErrorKind::Closed`] once the client is closed; what a client cannot recover from, such as a fork. Trouble
    /// of the store is a [`Change`].
    pub async fn next(&mut self) -> Result<Change, Error> {
        if self.every < SHORTEST {
            let what =
                format!("{} between two readings is too short; the shortest is {}", Span(self.every), Span(SHORTEST));
            return Err(Error::config(what).on(&self.resource));
        }
        Resource::new(&self.resource).map_err(|error| Error::config(error.to_string()))?;
        loop {
            if self.told.is_some() {
                self.client.time().sleep_between_looks(self.every).await?;
            }
            if self.client.shared.closed.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Closed, "the client was closed").on(&self.resource));
            }
            let now = match self.client.inspect(&self.resource).await {
                Ok(Some(holder)) => Change::Held(holder),
                Ok(None) => Change::Free,
                Err(error) if matches!(error.kind(), ErrorKind::StoreUnavailable | ErrorKind::StoreRefused) => {
                    Change::Unreadable(error)
                }
                Err(error) => return Err(error),
            };
            if !self.told.as_ref().is_some_and(|told| told.is_same(&now)) {
                self.told = Some(now.clone());
                return Ok(now);
            }
        }
    }
}

impl Change {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Held(one), Self::Held(two)) => one.is_same_lease(two),
            (Self::Free, Self::Free) => true,
            (Self::Unreadable(one), Self::Unreadable(two)) => one.kind() == two.kind(),
            (Self::Held(_) | Self::Free | Self::Unreadable(_), _) => false,
        }
    }
}

impl LockInfo {
    /// Tells if both are shown as the same holding, renewed or not, and both revoked or neither.
    fn is_same_lease(&self, other: &Self) -> bool {
        let key = |info: &Self| (info.nonce, info.foreign, info.revoked, info.is_shown_by_a_majority());
        // Another library's record has no nonce.
        key(self) == key(other) && (!self.foreign || self.owner == other.owner)
    }
}
