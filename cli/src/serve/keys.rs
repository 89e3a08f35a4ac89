//! Acquisitions that are asked for again: a client that got no answer repeats its request with the same key, and gets the lease
//! that the first one got.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

use axum::http::HeaderMap;
use tokio::sync::{Mutex, OwnedMutexGuard, OwnedSemaphorePermit};

use super::reply::Reply;
use super::state::{Service, Share};

/// The header of a key.
pub(super) const KEY: &str = "idempotency-key";
/// The longest key.
const LONGEST_KEY: usize = 255;

/// A key that a client has sent.
pub(super) struct Key {
    /// Of the request that it belongs to, whose body may be long.
    print: u64,
    /// Taken by the request that is under way.
    turn: Arc<Mutex<()>>,
    /// The id of the lease that was granted.
    lease: Option<String>,
}

impl Key {
    /// Nobody waits with it, and it has no lease: a request that was refused leaves its key to the one that is right.
    fn is_free(&self) -> bool {
        self.lease.is_none() && Arc::strong_count(&self.turn) == 1
    }

    /// Nobody waits with it, and its lease is no longer held.
    pub(super) fn is_idle(&self, is_held: impl Fn(&str) -> bool) -> bool {
        Arc::strong_count(&self.turn) == 1 && !self.lease.as_deref().is_some_and(is_held)
    }
}

/// A key as it was sent, and the fingerprint of its request.
pub(super) struct Sent {
    key: String,
    print: u64,
}

/// Makes fingerprints that nobody can foresee.
pub(super) struct Prints(RandomState);

impl Prints {
    pub(super) fn new() -> Self {
        Self(RandomState::new())
    }
}

/// The key of a request, if it has one.
///
/// # Errors
/// Several keys, or one that is empty, too long or no plain text.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<String>, Reply> {
    let mut keys = headers.get_all(KEY).iter();
    let Some(key) = keys.next() else { return Ok(None) };
    let is_key = |key: &&str| {
        (1..=LONGEST_KEY).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
    };
    let key = key.to_str().ok().filter(is_key);
    match (key, keys.next()) {
        (Some(key), None) => Ok(Some(key.to_owned())),
        (_, _) => Err(Reply::bad(format!(
            "the header Idempotency-Key must be one text of 1 to {LONGEST_KEY} visible ASCII characters without a \
             comma, such as a UUID"
        ))),
    }
}

/// The first answer to a request for a lease.
pub(super) enum Claim {
    /// It has this lease already.
    Again(String),
    /// It has to be granted one.
    New(Attempt),
}

/// An acquisition that is under way.
pub(super) struct Attempt {
    pub(super) share: Share,
    pub(super) key: Option<String>,
    /// Others with the same key wait for it.
    _turn: Option<OwnedMutexGuard<()>>,
    _occupied: Option<OwnedSemaphorePermit>,
}

impl Service {
    /// A key with what it was sent for. The same key may be used on other routes and by other clients.
    pub(super) fn sent(&self, key: Option<String>, route: &str, asked: &impl Hash) -> Option<Sent> {
        key.map(|key| Sent { key: format!("{route} {key}"), print: self.prints.0.hash_one(asked) })
    }

    /// Begins an acquisition, once no other one with the same key is under way.
    ///
    /// # Errors
    /// The key belongs to another request, or its lease is over; the client or the daemon has too many leases and waits.
    pub(super) async fn claim(self: &Arc<Self>, client: &str, sent: Option<Sent>, waits: bool) -> Result<Claim, Reply> {
        // Before the share is looked at: a client without room for another lease may ask for this one again.
        if let Some(sent) = &sent
            && let (_, Some(lease)) = self.key(client, sent)?
        {
            return Ok(Claim::Again(lease));
        }
        let share = self.share(client)?;
        let mut occupied = waits.then(|| self.occupy()).transpose()?;
        let Some(sent) = sent else {
            return Ok(Claim::New(Attempt { share, key: None, _turn: None, _occupied: occupied }));
        };
        let (turn, _) = self.key(client, &sent)?;
        let turn = match Arc::clone(&turn).try_lock_owned() {
            Ok(turn) => turn,
            Err(_) => {
                if occupied.is_none() {
                    occupied = Some(self.occupy()?);
                }
                turn.lock_owned().await
            }
        };
        match self.key(client, &sent)? {
            (_, Some(lease)) => Ok(Claim::Again(lease)),
            (_, None) => Ok(Claim::New(Attempt { share, key: Some(sent.key), _turn: Some(turn), _occupied: occupied })),
        }
    }

    /// The turn of a key, and its lease if that was granted.
    fn key(&self, client: &str, sent: &Sent) -> Result<(Arc<Mutex<()>>, Option<String>), Reply> {
        let mut table = self.table();
        let table = &mut *table;
        let known = table.keys.get(client, &sent.key);
        let Some(known) = known.filter(|known| known.print == sent.print || !known.is_free()) else {
            let turn = Arc::new(Mutex::new(()));
            let key = Key { print: sent.print, turn: Arc::clone(&turn), lease: None };
            let held = &table.held;
            table.keys.put(client, sent.key.clone(), key, |key| key.is_idle(|lease| held.contains_key(lease)));
            return Ok((turn, None));
        };
        if known.print != sent.print {
            return Err(Reply::key_used("this Idempotency-Key was sent with another request: use a new key for each"));
        }
        match &known.lease {
            Some(lease) if !table.held.contains_key(lease) => Err(Reply::key_used(
                "the lease of this Idempotency-Key is over: it was released, finished or lost, or its ttl has passed; use a \
                 new key for each acquisition",
            )),
            lease => Ok((Arc::clone(&known.turn), lease.clone())),
        }
    }

    /// Remembers which lease a key was granted.
    pub(super) fn grant(&self, client: &str, key: &str, lease: &str) {
        if let Some(known) = self.table().keys.get_mut(client, key) {
            known.lease = Some(lease.to_owned());
        }
    }
}
