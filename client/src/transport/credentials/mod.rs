//! Keys and tokens of clouds: how they are kept, when new ones are searched, and how a search asks.
//!
//! A search runs on a thread that lives as long as the search: a caller that waits for it may be cancelled, and a search
//! that hangs delays no caller whose keys are still valid. Only one search runs at a time, and all waiting callers get
//! its result.

pub(super) mod command;
pub(super) mod sender;

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use leasehold_core::Monotonic;
use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Refusal};
use tokio::runtime::Builder;
use tokio::sync::watch;

use self::sender::Sender;
use crate::host::clock;
use crate::host::fork;
use crate::host::sync::Mutex;

/// The longest search: a program that asks its own server may need a while.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// The extra time that a caller waits beyond the time limit of a search.
const GRACE: Duration = Duration::from_secs(2);
/// Keys are replaced this long before they expire, and used meanwhile; AWS gives out new ones from then on.
const EARLY: Duration = Duration::from_secs(5 * 60);
/// Keys are no longer used this long before they expire: requests take a while, and clocks differ.
const LATE: Duration = Duration::from_secs(10);
/// The pause between searches, unless the keys were refused meanwhile. Also the time for which keys are used that seem
/// to have expired on arrival: more likely this machine's clock is wrong.
const PAUSE: Duration = Duration::from_secs(5);

/// The same where a source that is named did not answer.
const PAUSE_OF_LATE: Duration = Duration::from_millis(500);

/// Credentials that may expire.
pub(crate) trait Expiring: Send + Sync + 'static {
    /// In milliseconds since 1970, by the clock of their source; `None` where they do not expire.
    fn expires_unix_ms(&self) -> Option<u64>;
    /// Returns true if a service would judge both alike.
    fn are_the_same_as(&self, other: &Self) -> bool;
    /// The source of the credentials, for messages.
    fn source(&self) -> &str;
}

/// A search for credentials.
pub(crate) trait Source: Send + Sync + 'static {
    type Keys: Expiring;
    /// The cloud, for messages.
    const CLOUD: &'static str;
    /// The longest search.
    fn patience(&self) -> Duration;
    /// The place that is asked now, for messages.
    fn waiting_for(&self) -> String;
    /// Searches once.
    ///
    /// # Errors
    /// No source has credentials.
    fn search(&self) -> impl Future<Output = Result<Self::Keys, NoKeys>>;
}

/// The reason why there are no keys: the sources that were tried, and advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoKeys {
    missing: Missing,
    detail: String,
}

/// Tells a missing source from a late one and from a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// No source has keys so far.
    NotFound,
    /// A source that somebody has named does not answer: as with a store that is late, waiting helps.
    Late,
    /// A source knows the caller, and refuses to give it keys.
    Refused,
}

impl NoKeys {
    pub(super) fn missing(detail: impl Into<String>) -> Self {
        Self { missing: Missing::NotFound, detail: detail.into() }
    }

    /// After a search whose last request was that of a named source.
    pub(super) fn of_named_source(detail: impl Into<String>, advice: &str, sender: &Sender) -> Self {
        let detail = detail.into();
        match (sender.was_refused(), sender.unserved()) {
            (true, _) => Self::refused(detail + advice),
            (false, Some(_)) => Self { missing: Missing::Late, detail },
            (false, None) => Self::missing(detail),
        }
    }

    pub(super) fn refused(detail: impl Into<String>) -> Self {
        Self { missing: Missing::Refused, detail: detail.into() }
    }

    /// The refusal for a request that has no keys.
    pub(crate) fn refusal(&self) -> Refusal {
        match self.missing {
            Missing::NotFound => Refusal::NeedsCredentials(Fault::new(FaultKind::Unreachable, &self.detail)),
            Missing::Late => Refusal::Unavailable(Fault::new(FaultKind::Unreachable, &self.detail)),
            Missing::Refused => Refusal::Denied(Denial::new(DenialKind::Permission, &self.detail)),
        }
    }
}

impl fmt::Display for NoKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

/// The keys of one store.
pub(crate) struct CredentialCache<S: Source> {
    shared: Arc<Shared<S>>,
}

struct Shared<S: Source> {
    source: S,
    state: Mutex<State<S::Keys>>,
    /// The number of searches that have ended.
    ended: watch::Sender<u64>,
}

struct State<K> {
    held: Option<Held<K>>,
    search: Search,
    /// The end of the last search, and its error if it failed.
    last: Option<(Monotonic, Option<NoKeys>)>,
}

impl<K> Default for State<K> {
    fn default() -> Self {
        Self { held: None, search: Search::Idle, last: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    Idle,
    /// Only in this process: threads do not survive a fork.
    UnderWay {
        generation: u64,
    },
}

struct Held<K> {
    keys: Arc<K>,
    /// The time from which new keys are searched.
    early: Option<Monotonic>,
    /// The time from which these keys are not used.
    late: Option<Monotonic>,
    refused: bool,
}

impl<K: Expiring> Held<K> {
    fn new(keys: K, now: Monotonic, unix_ms: u64) -> Self {
        let left = keys.expires_unix_ms().map(|at| Duration::from_millis(at.saturating_sub(unix_ms)));
        let early = left.map(|left| now.plus(left.saturating_sub(EARLY).max(left / 2).max(PAUSE)));
        let late = left.map(|left| now.plus(left.saturating_sub(LATE).max(PAUSE)));
        Self { keys: Arc::new(keys), early, late, refused: false }
    }
}

/// The use of the current keys.
enum Verdict<K> {
    Use(Arc<K>),
    /// They are valid, and are to be replaced.
    UseAndSearch(Arc<K>),
    Search,
    Fail(NoKeys),
}

impl<S: Source> CredentialCache<S> {
    /// Makes an empty cache; searches nothing yet.
    pub(crate) fn new(source: S) -> Self {
        let shared = Shared { source, state: Mutex::default(), ended: watch::Sender::new(0) };
        Self { shared: Arc::new(shared) }
    }

    /// The current keys. Waits only where there are none.
    ///
    /// # Errors
    /// No source has keys.
    pub(crate) async fn keys(&self) -> Result<Arc<S::Keys>, NoKeys> {
        self.keys_at(clock::monotonic()).await
    }

    pub(super) async fn keys_at(&self, now: Monotonic) -> Result<Arc<S::Keys>, NoKeys> {
        self.decide(|state| state.verdict(now), now).await
    }

    /// Other keys than these, which the store has refused as unknown or expired: those that another request has got
    /// meanwhile, or new ones, which are searched once.
    ///
    /// # Errors
    /// There are no others.
    pub(crate) async fn other_than(&self, refused: &Arc<S::Keys>) -> Result<Arc<S::Keys>, NoKeys> {
        self.other_than_at(refused, clock::monotonic()).await
    }

    pub(super) async fn other_than_at(&self, refused: &Arc<S::Keys>, now: Monotonic) -> Result<Arc<S::Keys>, NoKeys> {
        let found = self.decide(|state| state.verdict_on_refused(refused, now), now).await?;
        if found.are_the_same_as(refused) {
            return Err(same_again(refused.source()));
        }
        Ok(found)
    }

    async fn decide(
        &self,
        decide: impl FnOnce(&mut State<S::Keys>) -> Verdict<S::Keys>,
        now: Monotonic,
    ) -> Result<Arc<S::Keys>, NoKeys> {
        let (verdict, mut ended) = {
            let mut state = self.shared.state.lock();
            let verdict = decide(&mut state);
            // A search ends with the state locked, so this receiver sees the end of one that is under way.
            let ended = self.shared.ended.subscribe();
            if matches!(verdict, Verdict::UseAndSearch(_) | Verdict::Search) {
                self.begin(&mut state, now);
            }
            (verdict, ended)
        };
        match verdict {
            Verdict::Use(keys) | Verdict::UseAndSearch(keys) => return Ok(keys),
            Verdict::Fail(why) => return Err(why),
            Verdict::Search => {}
        }
        let patience = self.shared.source.patience() + GRACE;
        if tokio::time::timeout(patience, ended.changed()).await.is_err() {
            return Err(none::<S>(&format!("the search for them did not end within {patience:?}")));
        }
        self.shared.state.lock().outcome::<S>()
    }

    #[cfg(test)]
    pub(super) fn is_searching(&self) -> bool {
        self.shared.state.lock().search != Search::Idle
    }

    /// Starts a search, unless one is under way.
    fn begin(&self, state: &mut State<S::Keys>, now: Monotonic) {
        let generation = fork::generation();
        if state.search == (Search::UnderWay { generation }) {
            return;
        }
        state.search = Search::UnderWay { generation };
        let shared = Arc::clone(&self.shared);
        let spawned = thread::Builder::new().name("leasehold-keys".to_owned()).spawn(move || {
            // A panic must not look like a search under way.
            let searching = std::panic::AssertUnwindSafe(|| search(&shared.source));
            let broken = |_| Err(none::<S>("the search for them failed"));
            let found = std::panic::catch_unwind(searching).unwrap_or_else(broken);
            shared.end(found, clock::monotonic().max(now), clock::unix_ms());
        });
        if let Err(error) = spawned {
            let why = none::<S>(&format!("cannot start a thread to look for them: {error}"));
            state.end(Err(why), now, clock::unix_ms());
            self.shared.ended.send_modify(|count| *count += 1);
        }
    }
}

impl<S: Source> Clone for CredentialCache<S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<S: Source> fmt::Debug for CredentialCache<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialCache")
    }
}

fn none<S: Source>(why: &str) -> NoKeys {
    NoKeys::missing(format!("no {} credentials: {why}", S::CLOUD))
}

fn search<S: Source>(source: &S) -> Result<S::Keys, NoKeys> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(|error| none::<S>(&format!("cannot create a runtime to look for them: {error}")))?;
    let patience = source.patience();
    runtime.block_on(async {
        let found = tokio::time::timeout(patience, source.search()).await;
        found.unwrap_or_else(|_| {
            let at = source.waiting_for();
            Err(none::<S>(&format!("{at} gave none within {patience:?}")))
        })
    })
}

fn same_again(source: &str) -> NoKeys {
    NoKeys::missing(format!(
        "the store refuses the keys of {source}, which has no others; renew them there, or check that they belong to the \
         right account and are not revoked"
    ))
}

impl<S: Source> Shared<S> {
    fn end(&self, found: Result<S::Keys, NoKeys>, now: Monotonic, unix_ms: u64) {
        let mut state = self.state.lock();
        state.end(found, now, unix_ms);
        self.ended.send_modify(|count| *count += 1);
    }
}

impl<K: Expiring> State<K> {
    fn end(&mut self, found: Result<K, NoKeys>, now: Monotonic, unix_ms: u64) {
        self.search = Search::Idle;
        match found {
            Ok(keys) => {
                let refused = self.held.as_ref().is_some_and(|held| held.refused && held.keys.are_the_same_as(&keys));
                self.held = Some(Held { refused, ..Held::new(keys, now, unix_ms) });
                self.last = Some((now, None));
            }
            Err(why) => self.last = Some((now, Some(why))),
        }
    }

    fn verdict(&self, now: Monotonic) -> Verdict<K> {
        let is_past = |at: Option<Monotonic>| at.is_some_and(|at| now >= at);
        match &self.held {
            Some(held) if !is_past(held.early) => Verdict::Use(Arc::clone(&held.keys)),
            Some(held) if !is_past(held.late) => match self.paused(now) {
                true => Verdict::Use(Arc::clone(&held.keys)),
                false => Verdict::UseAndSearch(Arc::clone(&held.keys)),
            },
            Some(_) | None => match &self.last {
                Some((_, Some(why))) if self.paused(now) => Verdict::Fail(why.clone()),
                Some(_) | None => Verdict::Search,
            },
        }
    }

    fn verdict_on_refused(&mut self, refused: &K, now: Monotonic) -> Verdict<K> {
        let paused = self.paused(now);
        match &mut self.held {
            Some(held) if !held.keys.are_the_same_as(refused) => Verdict::Use(Arc::clone(&held.keys)),
            // All requests that were under way with these keys come here; one search is enough for them.
            Some(held) if held.refused && paused => {
                let why = self.last.as_ref().and_then(|(_, why)| why.clone());
                Verdict::Fail(why.unwrap_or_else(|| same_again(held.keys.source())))
            }
            Some(held) => {
                held.refused = true;
                Verdict::Search
            }
            None => Verdict::Search,
        }
    }

    /// Tells if the last search ended less than [`PAUSE`] ago, or a moment ago where its source may answer soon.
    fn paused(&self, now: Monotonic) -> bool {
        let is_late = |why: &Option<NoKeys>| why.as_ref().is_some_and(|why| why.missing == Missing::Late);
        let pause = |why| if is_late(why) { PAUSE_OF_LATE } else { PAUSE };
        self.last.as_ref().is_some_and(|(ended, why)| now < ended.plus(pause(why)))
    }

    /// The result of the search that has just ended.
    fn outcome<S: Source<Keys = K>>(&self) -> Result<Arc<K>, NoKeys> {
        match (&self.last, &self.held) {
            (Some((_, Some(why))), _) => Err(why.clone()),
            (_, Some(held)) => Ok(Arc::clone(&held.keys)),
            (_, None) => Err(none::<S>("nobody has any")),
        }
    }
}
