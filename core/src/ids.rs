//! Names of things: integers and bytes that cannot be mixed up, and strings that cannot be malformed.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::config::error::ConfigError;
use crate::sip;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct $name($inner);

        impl $name {
            /// Wraps the number.
            pub const fn new(value: $inner) -> Self {
                Self(value)
            }

            /// The number itself.
            pub const fn get(self) -> $inner {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// One acquisition of one lock, chosen by the caller and unique among those alive in a client.
    LockId(u64)
}
number! {
    /// One request of a client; never reused.
    RequestId(u64)
}
number! {
    /// One read of a record on all nodes; never reused.
    ReadId(u64)
}
number! {
    /// One configured store, counted from 0 in the order of the configuration.
    NodeId(u16)
}
number! {
    /// The number of a send within an attempt, resends and renewals included; never reused.
    Seq(u32)
}

impl Seq {
    /// The last number there is, which no client sends. A revoke writes it, so that every renewal is older than the record.
    pub const LAST: Self = Self(u32::MAX);
}

impl NodeId {
    /// The place of the node in the configured list.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A fencing token: an integer that strictly grows with every grant of a resource.
///
/// Always below 2^53, so that Lua, JSON and JavaScript hold it exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u64);

impl Token {
    /// The largest token, 2^53 - 1.
    pub const MAX: Self = Self((1 << 53) - 1);
    /// No grant ever has this token; a counter that never minted stands here.
    pub const ZERO: Self = Self(0);

    /// `None` above [`Token::MAX`].
    pub const fn new(value: u64) -> Option<Self> {
        if value <= Self::MAX.0 { Some(Self(value)) } else { None }
    }

    /// The integer.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The next token, `None` when they are used up.
    pub const fn next(self) -> Option<Self> {
        Self::new(self.0 + 1)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// 128 random bits that name one attempt to acquire.
///
/// A client that knows the nonce of a lease can release it, so neither `Debug` nor any error shows more than a short hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce([u8; 16]);

impl Nonce {
    /// Wraps 16 bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes, as stores write them.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// Shows a hash of 24 bits: enough to tell two attempts apart, not enough to use.
impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // FNV-1a over all bytes.
        let hash = self.0.iter().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(*b)).wrapping_mul(0x0100_0193));
        write!(f, "Nonce(#{:06x})", hash >> 8)
    }
}

/// The name being locked: 1 to 1,024 bytes of UTF-8 without control characters.
///
/// Names are compared byte by byte; nothing is normalised, trimmed or folded.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource(Arc<str>);

impl Resource {
    /// The longest name, in bytes.
    pub const MAX_BYTES: usize = 1024;

    /// # Errors
    /// An empty name, one longer than [`Resource::MAX_BYTES`], or one with a NUL or another control character.
    pub fn new(name: &str) -> Result<Self, ConfigError> {
        if name.is_empty() {
            return Err(ConfigError::EmptyResource);
        }
        check_text("resource", name, Self::MAX_BYTES)?;
        Ok(Self(name.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A readable label of the holder of a lease, for people; it proves nothing.
///
/// At most 256 bytes without control characters; may be empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Owner(Arc<str>);

impl Owner {
    /// The longest label, in bytes.
    pub const MAX_BYTES: usize = 256;

    /// # Errors
    /// A label longer than [`Owner::MAX_BYTES`], or one with a control character.
    pub fn new(label: &str) -> Result<Self, ConfigError> {
        check_text("owner", label, Self::MAX_BYTES)?;
        Ok(Self(label.into()))
    }

    /// The label.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A readable name of a session, which groups the leases of one client; it proves nothing.
///
/// 1 to 64 ASCII letters, digits and `-`, `_`, `.`, `:`, `@`, `/`: what every store can keep as part of a name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionLabel(Arc<str>);

impl SessionLabel {
    /// The longest label, in bytes.
    pub const MAX_BYTES: usize = 64;

    /// # Errors
    /// [`ConfigError::SessionLabel`]: an empty label, one longer than [`SessionLabel::MAX_BYTES`], or one with another
    /// character.
    pub fn new(label: &str) -> Result<Self, ConfigError> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:@/".contains(c);
        if label.is_empty() || label.len() > Self::MAX_BYTES || !label.chars().all(fits) {
            let shown = &label[..label.floor_char_boundary(2 * Self::MAX_BYTES)];
            return Err(ConfigError::SessionLabel { given: shown.into() });
        }
        Ok(Self(label.into()))
    }

    /// The label.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SessionLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for SessionLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Bytes that a holder leaves beside its lease for others to read: at most 4 KiB.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Payload(Arc<[u8]>);

impl Payload {
    /// The most bytes.
    pub const MAX_BYTES: usize = 4096;

    /// # Errors
    /// More than [`Payload::MAX_BYTES`].
    pub fn new(bytes: &[u8]) -> Result<Self, ConfigError> {
        if bytes.len() > Self::MAX_BYTES {
            return Err(ConfigError::TooLong { what: "data", bytes: bytes.len(), max: Self::MAX_BYTES });
        }
        Ok(Self(bytes.into()))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}

/// An opaque name of one state of one record: equal versions mean that the record did not change in between.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(Arc<[u8]>);

impl Version {
    /// The most bytes that a record from a store may show.
    pub const MAX_BYTES: usize = 256;

    /// `None` above [`Version::MAX_BYTES`].
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= Self::MAX_BYTES).then(|| Self(bytes.into()))
    }

    /// The version of several records together, which no store shows.
    pub(crate) fn of_several(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// The version of a record that names its attempt and send.
    pub fn of(nonce: &Nonce, seq: Seq) -> Self {
        let mut bytes = [0; 20];
        bytes[..16].copy_from_slice(nonce.as_bytes());
        bytes[16..].copy_from_slice(&seq.get().to_be_bytes());
        Self(bytes.as_slice().into())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A digest that tells it from other versions, and shows no nonce: for what is kept outside of stores and processes.
    pub fn digest(&self) -> [u8; 16] {
        let word = |bytes: &[u8]| {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(eight)
        };
        let words: Vec<u64> = core::iter::once(self.0.len() as u64).chain(self.0.chunks(8).map(word)).collect();
        sip::digest(&words)
    }
}

impl fmt::Debug for Version {
    // A version may contain a nonce.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({} bytes)", self.0.len())
    }
}

pub(crate) fn check_text(what: &'static str, text: &str, max: usize) -> Result<(), ConfigError> {
    if text.len() > max {
        return Err(ConfigError::TooLong { what, bytes: text.len(), max });
    }
    match text.char_indices().find(|(_, c)| c.is_control()) {
        Some((at, c)) => Err(ConfigError::ControlCharacter { what, at, code: u32::from(c) }),
        None => Ok(()),
    }
}
