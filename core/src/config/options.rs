//! The options of one acquisition.

use alloc::vec::Vec;
use core::time::Duration;

use super::Wait;
use super::error::{ConfigError, at_most};
use super::ttl::{MAX_KEEP, Ttl};
use crate::ids::{Owner, Payload};
use crate::member::RETENTION;
use crate::time;

/// The options of one acquisition; built by [`LockOptionsBuilder`], so always consistent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(remote = "Self"))]
pub struct LockOptions {
    #[cfg_attr(feature = "serde", serde(rename = "ttl_ns"))]
    pub(crate) ttl: Ttl,
    pub(crate) wait: Wait,
    #[cfg_attr(feature = "serde", serde(rename = "renewal", with = "crate::json::renewal"))]
    pub(crate) renew_every: Option<Duration>,
    #[cfg_attr(
        feature = "serde",
        serde(
            rename = "lock_delay_ns",
            default,
            skip_serializing_if = "Duration::is_zero",
            with = "crate::json::nanos"
        )
    )]
    pub(crate) lock_delay: Duration,
    #[cfg_attr(
        feature = "serde",
        serde(
            rename = "max_hold_ns",
            default,
            skip_serializing_if = "Option::is_none",
            with = "crate::json::nanos::option"
        )
    )]
    pub(crate) max_hold: Option<Duration>,
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "crate::json::is_default"))]
    pub(crate) owner: Owner,
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(crate) data: Option<Payload>,
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub(crate) run: Option<RunOptions>,
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "crate::json::is_default"))]
    pub(crate) tries_first: bool,
}

/// The options of a run: an acquisition that is refused where a completion says that the work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RunOptions {
    /// How long the completion of a finished run stands: at least the ttl, at most [`MAX_KEEP`], 7 days by default. Zero, which goes
    /// with `even_if_done`, removes the completion that stands, in Redis within a few ms.
    #[cfg_attr(feature = "serde", serde(rename = "keep_ns", with = "crate::json::nanos"))]
    pub keep: Duration,
    /// An operator's word that no completion was lost: nodes of a quorum that have lost their data count all the same.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "crate::json::is_default"))]
    pub trust_quorum: bool,
    /// Runs although a completion may say that the work is done.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "crate::json::is_default"))]
    pub even_if_done: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { keep: RETENTION, trust_quorum: false, even_if_done: false }
    }
}

impl LockOptions {
    /// Starts from the defaults: ttl 30 s, wait forever, renewal every ttl/3, no lock delay, no bound on holding.
    pub fn builder() -> LockOptionsBuilder {
        LockOptionsBuilder::default()
    }

    /// How long a grant lasts without renewal.
    pub const fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// How long to try.
    pub const fn wait(&self) -> Wait {
        self.wait
    }

    /// How long the lock stays closed after a holder let its lease run out.
    pub const fn lock_delay(&self) -> Duration {
        self.lock_delay
    }

    /// When automatic renewal stops, counted from the grant; `None` for never.
    pub const fn max_hold(&self) -> Option<Duration> {
        self.max_hold
    }

    /// Time between renewals; `None` for no automatic renewal.
    pub const fn renew_every(&self) -> Option<Duration> {
        self.renew_every
    }

    /// The label shown to others.
    pub const fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Bytes that others can read while the lease stands.
    pub const fn data(&self) -> Option<&Payload> {
        self.data.as_ref()
    }

    /// The options of the run; `None` for a plain lock.
    pub const fn run(&self) -> Option<RunOptions> {
        self.run
    }

    /// True if the acquisition waits in the queue from its first attempt on, where the store keeps one.
    pub const fn fair(&self) -> bool {
        !self.tries_first
    }

    /// Returns true if the acquisition is refused where a completion stands.
    pub(crate) fn is_unless_done(&self) -> bool {
        self.run.is_some_and(|run| !run.even_if_done)
    }

    /// The same options, to try for another time.
    #[must_use]
    pub fn with_wait(self, wait: Wait) -> Self {
        Self { wait: wait.or_once(), ..self }
    }

    /// How long the store keeps the record: `ttl + lock_delay`.
    pub(crate) fn record_ttl(&self) -> Duration {
        self.ttl.get().saturating_add(self.lock_delay)
    }
}

/// Collects the options of one acquisition and checks them together.
#[derive(Clone, Debug, Default)]
pub struct LockOptionsBuilder {
    ttl: Option<Duration>,
    wait: Wait,
    watches: bool,
    lock_delay: Duration,
    max_hold: Option<Duration>,
    renewal: Renewal,
    owner: Option<Result<Owner, ConfigError>>,
    data: Option<Vec<u8>>,
    run: Option<RunOptions>,
    tries_first: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum Renewal {
    #[default]
    Default,
    Off,
    Every(Duration),
}

impl LockOptionsBuilder {
    /// How long a grant lasts without renewal. Default 30 s.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// How long to try. Default forever.
    #[must_use]
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = wait;
        self
    }

    /// Watches a record that only observers can declare dead beyond the end of the wait: [`Wait::Watch`] in the place of
    /// [`Wait::Once`] and [`Wait::For`]. Off by default.
    #[must_use]
    pub fn watch_holder(mut self, watches: bool) -> Self {
        self.watches = watches;
        self
    }

    /// How long the lock stays closed after a holder let its lease run out, for work that outlives its check by a
    /// little. Default 0, at most 24 h; a released lock is free at once.
    #[must_use]
    pub fn lock_delay(mut self, lock_delay: Duration) -> Self {
        self.lock_delay = lock_delay;
        self
    }

    /// Stops automatic renewal this long after the grant, so that a wedged worker cannot hold forever. Off by default.
    #[must_use]
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.max_hold = Some(max_hold);
        self
    }

    /// Time between renewals: at most half the ttl. Default ttl/3.
    #[must_use]
    pub fn renew_every(mut self, every: Duration) -> Self {
        self.renewal = Renewal::Every(every);
        self
    }

    /// No automatic renewal: the lease ends at its first deadline.
    #[must_use]
    pub fn no_renewal(mut self) -> Self {
        self.renewal = Renewal::Off;
        self
    }

    /// A label for people. Default empty.
    #[must_use]
    pub fn owner(mut self, owner: &str) -> Self {
        self.owner = Some(Owner::new(owner));
        self
    }

    /// The same, with a label that was checked before.
    #[must_use]
    pub fn labelled(mut self, owner: Owner) -> Self {
        self.owner = Some(Ok(owner));
        self
    }

    /// Bytes that others can read while the lease stands. None by default.
    #[must_use]
    pub fn data(mut self, data: &[u8]) -> Self {
        self.data = Some(data.into());
        self
    }

    /// Makes it a run: refused where a completion says that the work is done. A plain lock by default.
    #[must_use]
    pub fn run(mut self, run: RunOptions) -> Self {
        self.run = Some(run);
        self
    }

    /// Waits in the queue from the first attempt on, where the store keeps one. The default; without it, the acquisition tries
    /// once, takes no place at that, and waits in the queue only then.
    #[must_use]
    pub fn fair(mut self, fair: bool) -> Self {
        self.tries_first = !fair;
        self
    }

    /// # Errors
    /// A ttl outside its bounds, a renewal interval of 0 or above half the ttl, a lock delay above 24 h, a `max_hold`
    /// below the ttl, an owner or data above its bound, completions kept for less than the ttl or more than 100 years.
    pub fn build(self) -> Result<LockOptions, ConfigError> {
        let ttl = self.ttl.map_or(Ok(Ttl::default()), Ttl::new)?;
        at_most("lock_delay", self.lock_delay, Ttl::MAX)?;
        let renew_every = match self.renewal {
            Renewal::Default => Some(time::default_renew_every(ttl)),
            Renewal::Off => None,
            Renewal::Every(value) => {
                let min = Duration::from_millis(10);
                if value < min {
                    return Err(ConfigError::TooShort { what: "renewal interval", value, min });
                }
                at_most("renewal interval (it must leave room for a second try within the ttl)", value, ttl.get() / 2)?;
                Some(value)
            }
        };
        if let Some(value) = self.max_hold.filter(|max_hold| *max_hold < ttl.get()) {
            return Err(ConfigError::TooShort { what: "max_hold", value, min: ttl.get() });
        }
        if let Some(run) = self.run {
            let removes = run.even_if_done && run.keep.is_zero();
            if run.keep < ttl.get() && !removes {
                return Err(ConfigError::KeepBelowTtl { keep: run.keep, ttl: ttl.get() });
            }
            at_most("keep", run.keep, MAX_KEEP)?;
        }
        Ok(LockOptions {
            ttl,
            wait: match self.wait.or_once() {
                Wait::Once if self.watches => Wait::Watch(Duration::ZERO),
                Wait::For(wait) if self.watches => Wait::Watch(wait),
                wait @ (Wait::Once | Wait::For(_) | Wait::Watch(_) | Wait::Forever) => wait,
            },
            lock_delay: Duration::new(self.lock_delay.as_secs(), self.lock_delay.subsec_millis() * 1_000_000),
            max_hold: self.max_hold,
            renew_every,
            owner: self.owner.transpose()?.unwrap_or_default(),
            data: self.data.as_deref().map(Payload::new).transpose()?,
            run: self.run,
            tries_first: self.tries_first,
        })
    }
}
