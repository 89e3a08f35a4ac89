//! The credentials of one node: whether they serve, and when the host is asked for others.

use core::time::Duration;

use super::store::Credentials;
use crate::time::{Monotonic, Now};

/// So long before they expire, others are asked for.
const EARLY_MS: u64 = 5 * 60 * 1000;

/// So long before they expire, they are no longer used: a request is under way for a while, and clocks differ.
const LATE_MS: u64 = 10_000;

/// Between asking again for credentials that were no good when they came: more likely a clock is wrong.
const PAUSE: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub(super) struct Keys {
    kept: Option<Credentials>,
    /// Counts the credentials that were given, so that a refusal of earlier ones says nothing of these.
    generation: u64,
    /// A request needs others, or soon will.
    wanted: bool,
    /// The host was asked and has not answered.
    asked: bool,
    /// Not before this is the host asked again.
    not_before: Monotonic,
}

impl Keys {
    pub(super) const fn new() -> Self {
        Self { kept: None, generation: 0, wanted: false, asked: false, not_before: Monotonic::from_ns(0) }
    }

    /// By the clock that shows `unix_ms`, which is that of whoever judges them.
    pub(super) fn set(&mut self, credentials: Credentials, now: Now, unix_ms: u64) {
        self.kept = Some(credentials);
        self.generation += 1;
        // Whoever needs others than these says so again.
        (self.asked, self.wanted) = (false, false);
        self.not_before =
            if self.have_more_than(EARLY_MS, unix_ms) { now.monotonic } else { now.monotonic.plus(PAUSE) };
    }

    /// What a request is to carry now, with its number. `None`, and the host will be asked, where there is nothing that
    /// serves.
    pub(super) fn serving(&mut self, unix_ms: u64) -> Option<(&Credentials, u64)> {
        self.wanted |= !self.have_more_than(EARLY_MS, unix_ms);
        if !self.have_more_than(LATE_MS, unix_ms) {
            return None;
        }
        self.kept.as_ref().map(|credentials| (credentials, self.generation))
    }

    /// The one part of them that is a secret and sent as it is; a session token opens nothing by itself.
    pub(super) fn secret(&self) -> Option<&str> {
        match self.kept.as_ref()? {
            Credentials::Token(bearer) => Some(&bearer.token),
            Credentials::Password(login) => Some(&login.password),
            Credentials::Aws(_) => None,
        }
    }

    /// The server knows those of this number no more.
    pub(super) fn refuse(&mut self, generation: u64) {
        if generation == self.generation {
            self.kept = None;
            self.wanted = true;
        }
    }

    /// When the host is to be asked, if it is.
    pub(super) fn ask_at(&self) -> Option<Monotonic> {
        (self.wanted && !self.asked).then_some(self.not_before)
    }

    /// Whether the host is to be asked now; if so, it counts as asked.
    pub(super) fn ask(&mut self, now: Monotonic) -> bool {
        let asks = self.ask_at().is_some_and(|at| at <= now);
        if asks {
            self.asked = true;
            self.wanted = false;
        }
        asks
    }

    fn have_more_than(&self, left_ms: u64, unix_ms: u64) -> bool {
        match &self.kept {
            Some(Credentials::Aws(aws)) => {
                aws.expires_unix_ms.is_none_or(|expires| expires > unix_ms.saturating_add(left_ms))
            }
            Some(Credentials::Token(_) | Credentials::Password(_)) => true,
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::{AwsCredentials, BearerToken};
    use super::*;
    use crate::wire::sigv4;

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
        assert!(keys.serving(UNIX_MS).is_none());
        assert!(keys.ask(at(0).monotonic) && !keys.ask(at(0).monotonic));
        assert!(keys.serving(UNIX_MS).is_none() && !keys.ask(at(60).monotonic), "it has not answered yet");
        assert!(keys.serving(UNIX_MS).is_none(), "and another request needs some");
        keys.set(Credentials::Token(BearerToken { token: "t".into() }), at(61), at(61).unix_ms);
        assert!(keys.serving(u64::MAX).is_some() && !keys.ask(at(1_000_000).monotonic));
    }

    #[test]
    fn what_expires_is_replaced_early_and_not_used_late() {
        let mut keys = Keys::new();
        keys.set(expiring(1_000), at(0), at(0).unix_ms);
        assert!(keys.serving(at(699).unix_ms).is_some() && !keys.ask(at(699).monotonic));
        assert!(keys.serving(at(700).unix_ms).is_some(), "they serve meanwhile");
        assert!(keys.ask(at(700).monotonic));
        assert!(keys.serving(at(989).unix_ms).is_some() && keys.serving(at(990).unix_ms).is_none());
    }

    #[test]
    fn what_had_expired_before_it_came_is_asked_for_in_peace() {
        let mut keys = Keys::new();
        assert!(keys.serving(UNIX_MS).is_none() && keys.ask(at(0).monotonic));
        keys.set(expiring(5), at(1), at(1).unix_ms);
        assert!(keys.serving(at(1).unix_ms).is_none());
        assert_eq!(keys.ask_at(), Some(at(6).monotonic));
        assert!(!keys.ask(at(5).monotonic) && keys.ask(at(6).monotonic));
    }

    #[test]
    fn a_refusal_is_for_the_credentials_that_were_sent() {
        let mut keys = Keys::new();
        keys.set(expiring(100_000), at(0), UNIX_MS);
        let Some((_, first)) = keys.serving(UNIX_MS) else { panic!("none") };
        keys.set(expiring(200_000), at(1), UNIX_MS);
        keys.refuse(first);
        let Some((_, second)) = keys.serving(UNIX_MS) else { panic!("the new ones were not refused") };
        assert!(!keys.ask(at(1).monotonic));
        keys.refuse(second);
        assert!(keys.serving(UNIX_MS).is_none() && keys.ask(at(1).monotonic));
    }
}
