//! Requests for one lock of several, where any of them will do.

use std::future::{IntoFuture, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use crate::client::Client;
use crate::driver::Caller;
use crate::error::{Error, ErrorKind};
use crate::forward::{settings, settings_of_locks};
use crate::host::time::Time;
use crate::locks::lease::Lease;
use crate::locks::request::{LockRequest, Until, none_if_busy};

/// The most locks of which one is asked for. Each of them costs requests while it is waited for.
const MAX_NAMES: usize = 64;

/// A request for the first of several locks that is free, such as one GPU of a pool; awaiting it acquires that one, and
/// [`Lease::resource`] says which it is.
///
/// The locks are tried one by one, from a random one on. Where all are held, all of them are waited for at the same time. The
/// first grant is kept, and the other acquisitions are given up. Dropping the future at any await gives all of them up.
#[must_use = "nothing is acquired until the request is awaited"]
#[derive(Clone)]
pub struct LockAnyRequest {
    resources: Vec<String>,
    /// The name of the resource is set when the request is made.
    request: LockRequest,
}

impl Client {
    /// Asks for one lock of several, at most 64: the first that is free. See [`LockAnyRequest`].
    pub fn lock_any(&self, resources: impl IntoIterator<Item = impl Into<String>>) -> LockAnyRequest {
        LockAnyRequest::new(self.lock(""), resources.into_iter().map(Into::into).collect())
    }
}

settings_of_locks! { LockAnyRequest:
    ttl(ttl: Duration);
    owner(owner: impl AsRef<str>);
    data(data: impl AsRef<[u8]>);
    max_hold(max_hold: Duration);
}

settings! { LockAnyRequest:
    /// How long to try for any of them. Default: without limit. Zero tries each once.
    pub fn wait(self, wait: Duration) -> Self {
        self.map(|request| request.wait(wait))
    }
}

impl LockAnyRequest {
    pub(crate) const fn new(request: LockRequest, resources: Vec<String>) -> Self {
        Self { resources, request }
    }

    /// Tries each once, whatever [`LockAnyRequest::wait`] says: `None` when other holders have all of them.
    ///
    /// # Errors
    /// As for awaiting the request, without [`ErrorKind::Busy`] and [`ErrorKind::TimedOut`].
    pub async fn try_acquire(self) -> Result<Option<Lease>, Error> {
        none_if_busy(self.wait(Duration::ZERO).acquire().await)
    }

    pub(crate) async fn acquire(self) -> Result<Lease, Error> {
        if self.resources.is_empty() || self.resources.len() > MAX_NAMES {
            let message = format!(
                "one of {} locks cannot be acquired: name at least one, and at most {MAX_NAMES}",
                self.resources.len()
            );
            return Err(Error::config(message));
        }
        let until = Until::of(&self.request)?;
        let (_, lease) = acquire(&self.resources, &self.request, until).await?;
        Ok(lease)
    }

    pub(crate) fn map(self, change: impl FnOnce(LockRequest) -> LockRequest) -> Self {
        Self { request: change(self.request), ..self }
    }
}

impl IntoFuture for LockAnyRequest {
    type Output = Result<Lease, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquire())
    }
}

/// One of the locks, and its position among them.
///
/// # Errors
/// As a [`LockRequest`]; [`ErrorKind::StoreUnavailable`] comes before [`ErrorKind::Busy`] and [`ErrorKind::TimedOut`], since a lock
/// that could not be asked for may be free.
pub(crate) async fn acquire(
    resources: &[String],
    request: &LockRequest,
    until: Until,
) -> Result<(usize, Lease), Error> {
    let mut trouble = Trouble::default();
    for position in from_a_random_one(resources.len(), request.time())? {
        match request.clone().named(&resources[position]).only_once().acquire().await {
            Ok(lease) => return Ok((position, lease)),
            Err(error) => trouble.note(error)?,
        }
    }
    if let Until::Once = until {
        return Err(trouble.into_error());
    }
    acquire_first(resources, request, until).await
}

/// Waits for all of them at the same time.
async fn acquire_first(resources: &[String], request: &LockRequest, until: Until) -> Result<(usize, Lease), Error> {
    let mut acquisitions: Vec<_> = resources
        .iter()
        // A blocking caller would send the requests of one after those of another.
        .enumerate()
        .map(|(position, resource)| {
            let request = until.wait(request.clone().named(resource));
            // The wait for the first one stands for that for all of them.
            let request = if position == 0 { request } else { request.untold() };
            Some(Box::pin(request.by(Caller::Async).acquire()))
        })
        .collect();
    let mut trouble = Trouble::default();
    poll_fn(|context| {
        for (position, slot) in acquisitions.iter_mut().enumerate() {
            let Some(acquisition) = slot else { continue };
            let Poll::Ready(result) = acquisition.as_mut().poll(context) else { continue };
            *slot = None;
            match result {
                Ok(lease) => return Poll::Ready(Ok((position, lease))),
                Err(error) => trouble.note(error)?,
            }
        }
        if acquisitions.iter().all(Option::is_none) {
            return Poll::Ready(Err(std::mem::take(&mut trouble).into_error()));
        }
        Poll::Pending
    })
    .await
}

/// The positions of all, from a random one on, so that clients do not all try the same one first.
fn from_a_random_one(count: usize, time: &Time) -> Result<impl Iterator<Item = usize>, Error> {
    let mut bytes = [0; 8];
    time.fill(&mut bytes)?;
    let first = usize::from_le_bytes(bytes) % count.max(1);
    Ok((first..count).chain(0..first))
}

/// The failure to report of several acquisitions.
#[derive(Default)]
struct Trouble {
    unavailable: Option<Error>,
    held: Option<Error>,
}

impl Trouble {
    /// # Errors
    /// The same error, if it ends the whole request.
    fn note(&mut self, error: Error) -> Result<(), Error> {
        let kept = match error.kind() {
            ErrorKind::Busy | ErrorKind::TimedOut => &mut self.held,
            ErrorKind::StoreUnavailable => &mut self.unavailable,
            ErrorKind::Lost
            | ErrorKind::NotOwned
            | ErrorKind::Cancelled
            | ErrorKind::StoreRefused
            | ErrorKind::Config
            | ErrorKind::Closed
            | ErrorKind::StaleToken
            | ErrorKind::Done
            | ErrorKind::FinishUnconfirmed
            | ErrorKind::ResultNotKept
            | ErrorKind::Callback
            | ErrorKind::Internal
            | _ => return Err(error),
        };
        kept.get_or_insert(error);
        Ok(())
    }

    fn into_error(self) -> Error {
        self.unavailable.or(self.held).unwrap_or_else(|| Error::internal("no lock was asked for"))
    }
}
