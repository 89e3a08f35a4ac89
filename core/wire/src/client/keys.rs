//! The credentials of one node: whether they serve, and when the host is asked for others; and the clock that signatures
//! go by.

use alloc::sync::Arc;
use core::time::Duration;

use super::store::Credentials;
use leasehold_core::time::{Monotonic, Now};

/// So long before they expire, others are asked for.
const EARLY: Duration = Duration::from_secs(5 * 60);

/// So long before they expire, they are no longer used: a request is under way for a while, and clocks differ.
const LATE: Duration = Duration::from_secs(10);

/// Between asking again for credentials that were no good when they came. Also how long those are used that seem to have
/// expired before: more likely the host's clock is wrong, and an answer of the server puts that right.
const PAUSE: Duration = Duration::from_secs(5);

/// The clock of a server, once it has shown that the host's is wrong.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerClock {
    /// The time that it showed, and when that came. The host's may be corrected at any time.
    shown: Option<(u64, Monotonic)>,
}

impl ServerClock {
    /// Milliseconds since 1970, by the host's clock as long as the server's is not known.
    pub(super) fn unix_ms(&self, now: Now) -> u64 {
        self.shown.map_or(now.unix_ms, |(shown, at)| {
            let passed = u64::try_from(now.monotonic.since(at).as_millis()).unwrap_or(u64::MAX);
            shown.saturating_add(passed)
        })
    }

    pub(super) const fn set(&mut self, shown: u64, now: Now) {
        self.shown = Some((shown, now.monotonic));
    }
}

#[derive(Clone, Debug)]
pub(super) struct Keys {
    kept: Option<Kept>,
    /// Counts the credentials that were given, so that a refusal of earlier ones says nothing of these.
    generation: u64,
    /// A request needs others, or soon will.
    wanted: bool,
    /// The host was asked and has not answered.
    asked: bool,
    /// Not before this is the host asked again.
    not_before: Monotonic,
}

#[derive(Clone, Debug)]
struct Kept {
    credentials: Arc<Credentials>,
    /// From then on others are asked for.
    early: Option<Monotonic>,
    /// From then on these are not used.
    late: Option<Monotonic>,
}

/// The credentials that a request carries.
#[derive(Clone, Debug)]
pub(super) struct Carried {
    pub(super) credentials: Arc<Credentials>,
    pub(super) generation: u64,
}

impl Keys {
    pub(super) const fn new() -> Self {
        Self { kept: None, generation: 0, wanted: false, asked: false, not_before: Monotonic::from_ns(0) }
    }

    /// Sets new credentials. `unix_ms` is the time by the server that checks them, as far as that is known.
    pub(super) fn set(&mut self, credentials: Credentials, now: Now, unix_ms: u64) {
        let expires = match &credentials {
            Credentials::Aws(aws) => aws.expires_unix_ms,
            Credentials::Token(bearer) => bearer.expires_unix_ms,
            Credentials::AccessSignature(signature) => signature.expires_unix_ms,
            Credentials::Password(_) | Credentials::AccountKey(_) => None,
        };
        let left = expires.map(|at| Duration::from_millis(at.saturating_sub(unix_ms)));
        let is_short = left.is_some_and(|left| left <= EARLY);
        let early = left.map(|left| now.monotonic.plus(if is_short { PAUSE } else { left.saturating_sub(EARLY) }));
        let late = left.map(|left| now.monotonic.plus(left.saturating_sub(LATE).max(PAUSE)));
        self.kept = Some(Kept { credentials: Arc::new(credentials), early, late });
        self.generation += 1;
        // A request that needs other credentials than these says so again.
        (self.asked, self.wanted) = (false, false);
        self.not_before = if is_short { now.monotonic.plus(PAUSE) } else { now.monotonic };
    }

    /// Returns the credentials for a request that leaves now. Without usable ones it returns `None`, and the host is
    /// asked.
    pub(super) fn serving(&mut self, now: Monotonic) -> Option<Carried> {
        let is_past = |at: Option<Monotonic>| at.is_some_and(|at| now >= at);
        self.wanted |= self.kept.as_ref().is_none_or(|kept| is_past(kept.early));
        let kept = self.kept.as_ref().filter(|kept| !is_past(kept.late))?;
        Some(Carried { credentials: Arc::clone(&kept.credentials), generation: self.generation })
    }

    /// Returns true if newer credentials have come since.
    pub(super) const fn replace(&self, carried: &Carried) -> bool {
        carried.generation != self.generation
    }

    /// The server knows those of this number no more.
    pub(super) fn refuse(&mut self, generation: u64) {
        if generation == self.generation {
            self.kept = None;
            self.wanted = true;
        }
    }

    /// The server does not take those of this number, and may yet: the host is asked for others once, and they are used
    /// until it gives some.
    pub(super) fn doubt(&mut self, generation: u64) {
        self.wanted |= generation == self.generation;
    }

    /// When the host is to be asked, if it is.
    pub(super) fn ask_at(&self) -> Option<Monotonic> {
        (self.wanted && !self.asked).then_some(self.not_before)
    }

    /// Returns true if the host is to be asked now; if so, it counts as asked.
    pub(super) fn ask(&mut self, now: Monotonic) -> bool {
        let asks = self.ask_at().is_some_and(|at| at <= now);
        if asks {
            self.asked = true;
            self.wanted = false;
        }
        asks
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::{AwsCredentials, BearerToken};
    use super::*;
    use crate::sigv4;

    const UNIX_MS: u64 = 1_700_000_000_000;

    fn at(seconds: u64) -> Now {
        Now { monotonic: Monotonic::from_ns(seconds * 1_000_000_000), unix_ms: UNIX_MS + seconds * 1_000 }
    }

    fn expiring(seconds: u64) -> Credentials {
        let keys = sigv4::Credentials {
            access_key_id: "AKID".into(),
            secret_access_key: "secret".into(),
            session_token: None,
        };
        Credentials::Aws(AwsCredentials { keys, expires_unix_ms: Some(UNIX_MS + seconds * 1_000) })
    }

    #[test]
    fn the_host_is_asked_once_when_something_is_needed() {
        let mut keys = Keys::new();
        assert!(!keys.ask(at(0).monotonic), "nobody needs any");
        assert!(keys.serving(at(0).monotonic).is_none());
        assert!(keys.ask(at(0).monotonic) && !keys.ask(at(0).monotonic));
        assert!(keys.serving(at(0).monotonic).is_none() && !keys.ask(at(60).monotonic), "it has not answered yet");
        assert!(keys.serving(at(0).monotonic).is_none(), "and another request needs some");
        keys.set(Credentials::Token(BearerToken { token: "t".into(), expires_unix_ms: None }), at(61), at(61).unix_ms);
        assert!(keys.serving(Monotonic::FAR).is_some() && !keys.ask(at(1_000_000).monotonic));
    }

    #[test]
    fn what_expires_is_replaced_early_and_not_used_late() {
        let mut keys = Keys::new();
        keys.set(expiring(1_000), at(0), at(0).unix_ms);
        assert!(keys.serving(at(699).monotonic).is_some() && !keys.ask(at(699).monotonic));
        assert!(keys.serving(at(700).monotonic).is_some(), "they serve meanwhile");
        assert!(keys.ask(at(700).monotonic));
        assert!(keys.serving(at(989).monotonic).is_some() && keys.serving(at(990).monotonic).is_none());
    }

    #[test]
    fn what_seems_to_have_expired_before_it_came_is_tried_and_replaced_in_peace() {
        let mut keys = Keys::new();
        assert!(keys.serving(at(0).monotonic).is_none() && keys.ask(at(0).monotonic));
        keys.set(expiring(0), at(1), at(1).unix_ms);
        assert!(keys.serving(at(5).monotonic).is_some() && keys.ask_at().is_none(), "only the server knows");
        assert!(keys.serving(at(6).monotonic).is_none() && keys.ask(at(6).monotonic));
        keys.set(expiring(0), at(7), at(7).unix_ms);
        let Some(carried) = keys.serving(at(7).monotonic) else { panic!("none") };
        keys.refuse(carried.generation);
        assert!(!keys.ask(at(11).monotonic) && keys.ask(at(12).monotonic), "the server has said so at once");
    }

    #[test]
    fn a_refusal_is_for_the_credentials_that_were_sent() {
        let mut keys = Keys::new();
        keys.set(expiring(100_000), at(0), UNIX_MS);
        let Some(first) = keys.serving(at(0).monotonic) else { panic!("none") };
        keys.set(expiring(200_000), at(1), UNIX_MS);
        keys.refuse(first.generation);
        let Some(second) = keys.serving(at(0).monotonic) else { panic!("the new ones were not refused") };
        assert!(!keys.ask(at(1).monotonic));
        keys.refuse(second.generation);
        assert!(keys.serving(at(0).monotonic).is_none() && keys.ask(at(1).monotonic));
    }
    #[test]
    fn what_is_doubted_is_used_and_asked_for_once() {
        let mut keys = Keys::new();
        for from in [0, 10] {
            keys.set(
                Credentials::Token(BearerToken { token: "t".into(), expires_unix_ms: None }),
                at(from),
                at(from).unix_ms,
            );
            let Some(carried) = keys.serving(at(from).monotonic) else { panic!("none") };
            keys.doubt(carried.generation);
            assert!(keys.serving(at(from).monotonic).is_some() && keys.ask(at(from).monotonic));
            keys.doubt(carried.generation);
            keys.doubt(carried.generation - 1);
            assert!(!keys.ask(at(from + 9).monotonic));
        }
    }
}
