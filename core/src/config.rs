//! Settings that cannot be invalid: what does not fit is refused here, with both numbers.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::ids::{Owner, Payload};
use crate::member::{Durability, QuorumId};
use crate::time;

/// Why a setting was refused. Every message names the value, the bound and the setting.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConfigError {
    /// A resource without a name.
    EmptyResource,
    /// A text or payload above its bound.
    TooLong {
        /// Which setting.
        what: &'static str,
        /// Its size in bytes.
        bytes: usize,
        /// The most bytes it may have.
        max: usize,
    },
    /// A NUL, newline or other control character in a name or label.
    ControlCharacter {
        /// Which setting.
        what: &'static str,
        /// Byte offset of the character.
        at: usize,
        /// Its code point.
        code: u32,
    },
    /// A duration below its bound.
    TooShort {
        /// Which setting.
        what: &'static str,
        /// The value given.
        value: Duration,
        /// The smallest allowed.
        min: Duration,
    },
    /// A duration above its bound.
    TooFar {
        /// Which setting.
        what: &'static str,
        /// The value given.
        value: Duration,
        /// The largest allowed.
        max: Duration,
    },
    /// A drift outside its bounds, in parts per million.
    Drift {
        /// The value given.
        ppm: u32,
        /// The smallest allowed.
        min: u32,
        /// The largest allowed.
        max: u32,
    },
    /// No node at all, or more than can be counted.
    Nodes {
        /// How many were given.
        count: usize,
        /// The most.
        max: usize,
    },
    /// A limit of zero, which would allow nothing.
    ZeroLimit {
        /// Which limit.
        what: &'static str,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyResource => f.write_str("the resource has no name; give it 1 to 1024 bytes"),
            Self::TooLong { what, bytes, max } => write!(f, "{what} has {bytes} bytes, the most is {max}"),
            Self::ControlCharacter { what, at, code } => {
                write!(f, "{what} has the control character U+{code:04X} at byte {at}; names hold printable text only")
            }
            Self::TooShort { what, value, min } => write!(f, "{what} {value:?} is below the smallest, {min:?}"),
            Self::TooFar { what, value, max } => write!(f, "{what} {value:?} is above the largest, {max:?}"),
            Self::Drift { ppm, min, max } => write!(f, "drift of {ppm} ppm is outside {min} to {max} ppm"),
            Self::Nodes { count, max } => write!(f, "{count} nodes configured; there must be 1 to {max}"),
            Self::ZeroLimit { what } => write!(f, "{what} is 0, which would allow nothing; the smallest is 1"),
        }
    }
}

impl core::error::Error for ConfigError {}

/// How long a grant lasts without renewal: 100 ms to 24 h, 30 s by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ttl(Duration);

impl Ttl {
    /// The smallest: margins and one round trip must fit.
    pub const MIN: Duration = Duration::from_millis(100);
    /// The largest: a dead holder blocks the others for this long.
    pub const MAX: Duration = Duration::from_secs(24 * 3600);

    /// Rounds down to whole milliseconds, which is what stores count in.
    ///
    /// # Errors
    /// Outside [`Ttl::MIN`] to [`Ttl::MAX`].
    pub fn new(value: Duration) -> Result<Self, ConfigError> {
        if value < Self::MIN {
            return Err(ConfigError::TooShort { what: "ttl", value, min: Self::MIN });
        }
        at_most("ttl", value, Self::MAX)?;
        Ok(Self(Duration::new(value.as_secs(), value.subsec_millis() * 1_000_000)))
    }

    /// The duration.
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl Default for Ttl {
    fn default() -> Self {
        Self(Duration::from_secs(30))
    }
}

/// The largest `ttl + lock_delay` that a record may carry; one above it was not written by an honest client.
pub const MAX_RECORD_TTL: Duration = Duration::from_secs(48 * 3600);

/// How far the rate of a clock may be off, in parts per million: 100 to 100,000, by default 10,000 (1%).
///
/// It must cover the slewing that time daemons do. Every client of a store should use the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Drift(u32);

impl Drift {
    const MIN: u32 = 100;
    const MAX: u32 = 100_000;

    /// # Errors
    /// Outside 100 to 100,000 ppm.
    pub const fn from_ppm(ppm: u32) -> Result<Self, ConfigError> {
        if ppm < Self::MIN || ppm > Self::MAX {
            return Err(ConfigError::Drift { ppm, min: Self::MIN, max: Self::MAX });
        }
        Ok(Self(ppm))
    }

    /// Parts per million.
    pub const fn ppm(self) -> u32 {
        self.0
    }
}

impl Default for Drift {
    fn default() -> Self {
        Self(10_000)
    }
}

/// How long to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Wait {
    /// One attempt, answered as soon as it is decided.
    Once,
    /// New attempts until this much time has passed. An attempt in flight at the end is still awaited, which takes at
    /// most one request timeout. Zero means [`Wait::Once`].
    For(Duration),
    /// Until granted, cancelled or refused.
    #[default]
    Forever,
}

/// Who decides that a record has run out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Poll {
    /// A refused acquire is as cheap as a read (Redis, memory).
    Acquire,
    /// Reads are cheaper than refused writes (DynamoDB, SQLite): look first, write once it is free.
    Read,
}

/// What one store can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeConfig {
    /// How to look whether a held lock became free.
    pub poll: Poll,
    /// Whether the store can tell waiters of a release.
    pub watch: bool,
    /// Most renewals in one request, at least 1.
    pub batch: usize,
    /// In a quorum: whether the store keeps every acknowledged write through a crash.
    pub durability: Durability,
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self { poll: Poll::Acquire, watch: false, batch: 100, durability: Durability::NotDeclared }
    }
}

/// What several nodes agree on that form a quorum; all its clients must have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quorum {
    id: QuorumId,
    max_ttl: Duration,
}

impl Quorum {
    /// The longest record unless set otherwise.
    pub const MAX_TTL: Duration = Duration::from_secs(60);

    /// `max_ttl` bounds `ttl + lock_delay` of every lock: 100 ms to 48 h, rounded down to whole milliseconds. A node
    /// that has lost its data abstains for a little longer than this.
    ///
    /// # Errors
    /// A `max_ttl` outside its bounds.
    pub fn new(id: QuorumId, max_ttl: Duration) -> Result<Self, ConfigError> {
        if max_ttl < Ttl::MIN {
            return Err(ConfigError::TooShort { what: "max_ttl", value: max_ttl, min: Ttl::MIN });
        }
        at_most("max_ttl", max_ttl, MAX_RECORD_TTL)?;
        Ok(Self { id, max_ttl: Duration::new(max_ttl.as_secs(), max_ttl.subsec_millis() * 1_000_000) })
    }

    /// Which quorum.
    pub const fn id(&self) -> QuorumId {
        self.id
    }

    /// The longest `ttl + lock_delay`.
    pub const fn max_ttl(&self) -> Duration {
        self.max_ttl
    }
}

/// Bounds on what one client keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Acquisitions alive at once, held, waiting or queued. Default 1,000,000.
    pub locks: usize,
    /// Background releases alive at once; above it a record is left to run out. Default 100,000.
    pub orphans: usize,
    /// Resources whose foreign versions are remembered. Default 1,024.
    pub observations: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { locks: 1_000_000, orphans: 100_000, observations: 1_024 }
    }
}

/// Settings of one client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    nodes: Vec<NodeConfig>,
    quorum: Option<Quorum>,
    drift: Drift,
    request_timeout: Duration,
    limits: Limits,
}

impl Config {
    /// The most nodes of a quorum.
    pub const MAX_NODES: usize = 31;
    /// The longest that one reply is awaited, unless set otherwise.
    pub const REQUEST_TIMEOUT: Duration = Duration::from_millis(500);

    /// One entry for each store; several form a quorum.
    ///
    /// # Errors
    /// No node, more than [`Config::MAX_NODES`], or a node with a batch of 0.
    pub fn new(nodes: Vec<NodeConfig>) -> Result<Self, ConfigError> {
        if nodes.is_empty() || nodes.len() > Self::MAX_NODES {
            return Err(ConfigError::Nodes { count: nodes.len(), max: Self::MAX_NODES });
        }
        if nodes.iter().any(|node| node.batch == 0) {
            return Err(ConfigError::ZeroLimit { what: "batch" });
        }
        Ok(Self {
            nodes,
            quorum: None,
            drift: Drift::default(),
            request_timeout: Self::REQUEST_TIMEOUT,
            limits: Limits::default(),
        })
    }

    /// Has nodes remember which quorum they belong to, so that one that has lost its data does not vote as if it had
    /// not. Without it, that must never happen. A single node has no use for it.
    #[must_use]
    pub fn with_quorum(self, quorum: Quorum) -> Self {
        Self { quorum: Some(quorum).filter(|_| self.nodes.len() > 1), ..self }
    }

    /// Sets the drift that all margins assume.
    #[must_use]
    pub fn with_drift(self, drift: Drift) -> Self {
        Self { drift, ..self }
    }

    /// Sets the bounds on what the client keeps.
    ///
    /// # Errors
    /// A limit of 0.
    pub fn with_limits(self, limits: Limits) -> Result<Self, ConfigError> {
        for (what, limit) in
            [("locks", limits.locks), ("orphans", limits.orphans), ("observations", limits.observations)]
        {
            if limit == 0 {
                return Err(ConfigError::ZeroLimit { what });
            }
        }
        Ok(Self { limits, ..self })
    }

    /// Sets the longest that one reply is awaited: 10 ms to 60 s. A sixth of a lock's ttl binds as well.
    ///
    /// # Errors
    /// Outside these bounds.
    pub fn with_request_timeout(self, value: Duration) -> Result<Self, ConfigError> {
        let min = Duration::from_millis(10);
        if value < min {
            return Err(ConfigError::TooShort { what: "request timeout", value, min });
        }
        at_most("request timeout", value, Duration::from_secs(60))?;
        Ok(Self { request_timeout: value, ..self })
    }

    /// The nodes, in order.
    pub fn nodes(&self) -> &[NodeConfig] {
        &self.nodes
    }

    /// The nodes, in order, to be changed one by one.
    pub fn nodes_mut(&mut self) -> &mut [NodeConfig] {
        &mut self.nodes
    }

    /// What the nodes remember of their quorum.
    pub const fn quorum(&self) -> Option<&Quorum> {
        self.quorum.as_ref()
    }

    /// The drift that all margins assume.
    pub const fn drift(&self) -> Drift {
        self.drift
    }

    /// The longest that one reply is awaited.
    pub const fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// The bounds on what the client keeps.
    pub const fn limits(&self) -> Limits {
        self.limits
    }
}

/// What one acquisition asks for; built by [`LockOptionsBuilder`], so always consistent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LockOptions {
    pub(crate) ttl: Ttl,
    pub(crate) wait: Wait,
    pub(crate) lock_delay: Duration,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) renew_every: Option<Duration>,
    pub(crate) owner: Owner,
    pub(crate) data: Option<Payload>,
}

impl LockOptions {
    /// Starts from the defaults: ttl 30 s, wait for ever, renewal every ttl/3, no lock delay, no bound on holding.
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

    /// How long the store keeps the record: `ttl + lock_delay`.
    pub(crate) fn record_ttl(&self) -> Duration {
        self.ttl.get().saturating_add(self.lock_delay)
    }
}

/// Collects the wishes of one acquisition and checks them together.
#[derive(Clone, Debug, Default)]
pub struct LockOptionsBuilder {
    ttl: Option<Duration>,
    wait: Wait,
    lock_delay: Duration,
    max_hold: Option<Duration>,
    renewal: Renewal,
    owner: alloc::string::String,
    data: Option<Vec<u8>>,
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

    /// How long to try. Default for ever.
    #[must_use]
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = wait;
        self
    }

    /// How long the lock stays closed after a holder let its lease run out, for work that outlives its check by a
    /// little. Default 0, at most 24 h; a released lock is free at once.
    #[must_use]
    pub fn lock_delay(mut self, lock_delay: Duration) -> Self {
        self.lock_delay = lock_delay;
        self
    }

    /// Stops automatic renewal this long after the grant, so that a wedged worker cannot hold for ever. Off by default.
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
        self.owner = owner.into();
        self
    }

    /// Bytes that others can read while the lease stands. None by default.
    #[must_use]
    pub fn data(mut self, data: &[u8]) -> Self {
        self.data = Some(data.into());
        self
    }

    /// # Errors
    /// A ttl outside its bounds, a renewal interval of 0 or above half the ttl, a lock delay above 24 h, a `max_hold`
    /// below the ttl, an owner or data above its bound.
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
        Ok(LockOptions {
            ttl,
            wait: if self.wait == Wait::For(Duration::ZERO) { Wait::Once } else { self.wait },
            lock_delay: Duration::new(self.lock_delay.as_secs(), self.lock_delay.subsec_millis() * 1_000_000),
            max_hold: self.max_hold,
            renew_every,
            owner: Owner::new(&self.owner)?,
            data: self.data.as_deref().map(Payload::new).transpose()?,
        })
    }
}

fn at_most(what: &'static str, value: Duration, max: Duration) -> Result<(), ConfigError> {
    if value > max { Err(ConfigError::TooFar { what, value, max }) } else { Ok(()) }
}
