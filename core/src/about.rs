//! The record of a run beside its completion: its result, when it began, and how many attempts it took.
//!
//! All stores keep it as one opaque value. It begins with the nonce of the attempt that wrote it, and counts only beside the
//! completion of that attempt: stores keep both apart, and a client that knows no results replaces the completion alone.
//!
//! | bytes | content |
//! |---|---|
//! | 16 | the nonce |
//! | 1 | the kind of the result: 0 none, 1 bytes, 2 JSON, 3 the output of a command |
//! | 8 | when the run began, in milliseconds since 1970, the highest byte first |
//! | 4 | the number of attempts, the highest byte first; 0 if they were not counted |
//! | 0 to 4,096 | the result |

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::config::ConfigError;
use crate::ids::Nonce;

/// The forms of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum ResultKind {
    /// Bytes of any kind.
    Bytes,
    /// A value as JSON writes it, in UTF-8.
    Json,
    /// The output of a command.
    Output,
}

impl ResultKind {
    const fn number(self) -> u8 {
        match self {
            Self::Bytes => 1,
            Self::Json => 2,
            Self::Output => 3,
        }
    }

    const fn of(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Bytes),
            2 => Some(Self::Json),
            3 => Some(Self::Output),
            _ => None,
        }
    }
}

/// The result of a run, for those who come later: at most 4 KiB.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RunResult {
    kind: ResultKind,
    bytes: Arc<[u8]>,
    /// The completion is worth nothing without it, so that it is never written alone.
    is_required: bool,
}

impl RunResult {
    /// The most bytes.
    pub const MAX_BYTES: usize = 4096;

    /// Bytes of any kind.
    ///
    /// # Errors
    /// More than [`RunResult::MAX_BYTES`].
    pub fn bytes(bytes: &[u8]) -> Result<Self, ConfigError> {
        Self::new(ResultKind::Bytes, bytes)
    }

    /// A value as JSON writes it. The text is taken as it is, and not read.
    ///
    /// # Errors
    /// More than [`RunResult::MAX_BYTES`].
    pub fn json(text: &str) -> Result<Self, ConfigError> {
        Self::new(ResultKind::Json, text.as_bytes())
    }

    /// The output of a command.
    ///
    /// # Errors
    /// More than [`RunResult::MAX_BYTES`].
    pub fn output(bytes: &[u8]) -> Result<Self, ConfigError> {
        Self::new(ResultKind::Output, bytes)
    }

    fn new(kind: ResultKind, bytes: &[u8]) -> Result<Self, ConfigError> {
        if bytes.len() > Self::MAX_BYTES {
            return Err(ConfigError::TooLong { what: "result", bytes: bytes.len(), max: Self::MAX_BYTES });
        }
        Ok(Self { kind, bytes: bytes.into(), is_required: false })
    }

    /// Bytes that are known to be few enough, and without which the completion is worth nothing.
    pub(crate) fn required(bytes: Vec<u8>) -> Self {
        debug_assert!(bytes.len() <= Self::MAX_BYTES);
        Self { kind: ResultKind::Bytes, bytes: bytes.into(), is_required: true }
    }

    /// The same, without which the completion is worth nothing.
    pub(crate) fn that_is_required(self) -> Self {
        Self { is_required: true, ..self }
    }

    /// Tells if the completion is worth nothing without it.
    pub(crate) const fn is_required(&self) -> bool {
        self.is_required
    }

    /// A result that a store or host shows; `None` if it is too long, or JSON that is not UTF-8.
    pub fn read(kind: ResultKind, bytes: &[u8]) -> Option<Self> {
        match kind {
            ResultKind::Json => Self::json(core::str::from_utf8(bytes).ok()?).ok(),
            ResultKind::Bytes | ResultKind::Output => Self::new(kind, bytes).ok(),
        }
    }

    /// The form of the bytes.
    pub const fn kind(&self) -> ResultKind {
        self.kind
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The text of a result that is JSON.
    pub fn as_json(&self) -> Option<&str> {
        core::str::from_utf8(&self.bytes).ok().filter(|_| self.kind == ResultKind::Json)
    }
}

impl fmt::Debug for RunResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunResult({:?}, {} bytes)", self.kind, self.bytes.len())
    }
}

/// The record of a run beside its completion.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct About(Arc<[u8]>);

/// The bytes before the result, and where its parts begin.
const HEAD: usize = 29;
const KIND: usize = 16;
const BEGAN: usize = 17;
const ATTEMPTS: usize = 25;

impl About {
    /// The most bytes.
    pub const MAX_BYTES: usize = HEAD + RunResult::MAX_BYTES;

    /// The record of the run of an attempt.
    pub fn new(nonce: &Nonce, began_unix_ms: u64, attempts: u32, result: Option<&RunResult>) -> Self {
        let mut bytes = Vec::with_capacity(HEAD + result.map_or(0, |result| result.bytes.len()));
        bytes.extend_from_slice(nonce.as_bytes());
        bytes.push(result.map_or(0, |result| result.kind.number()));
        bytes.extend_from_slice(&began_unix_ms.to_be_bytes());
        bytes.extend_from_slice(&attempts.to_be_bytes());
        bytes.extend_from_slice(result.map_or(&[], RunResult::as_bytes));
        Self(bytes.into())
    }

    /// Reads what a store shows; `None` for everything that this version does not write, which counts as no record.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (kind, result) = (*bytes.get(KIND)?, bytes.get(HEAD..)?);
        match ResultKind::of(kind) {
            Some(kind) => drop(RunResult::read(kind, result)?),
            None if kind == 0 && result.is_empty() => {}
            None => return None,
        }
        Some(Self(bytes.into()))
    }

    /// Reads what a store shows beside the completion of an attempt. What another attempt left there does not count.
    pub fn beside(bytes: &[u8], nonce: &Nonce) -> Option<Self> {
        Self::read(bytes).filter(|about| about.nonce() == *nonce)
    }

    /// The attempt that wrote it.
    pub fn nonce(&self) -> Nonce {
        Nonce::from_bytes(self.part(0))
    }

    /// The bytes that stores keep.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// When the run began, by the clock of the one that did it, in milliseconds since 1970.
    pub fn began_unix_ms(&self) -> u64 {
        u64::from_be_bytes(self.part(BEGAN))
    }

    /// The number of attempts with this one; 0 if they were not counted.
    pub fn attempts(&self) -> u32 {
        u32::from_be_bytes(self.part(ATTEMPTS))
    }

    /// The result, if one was kept.
    pub fn result(&self) -> Option<RunResult> {
        let kind = ResultKind::of(*self.0.get(KIND)?)?;
        Some(RunResult { kind, bytes: self.0.get(HEAD..)?.into(), is_required: false })
    }

    fn part<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
    }
}

impl fmt::Debug for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "About({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const NONCE: Nonce = Nonce::from_bytes([7; 16]);

    #[test]
    fn a_record_is_these_bytes_and_reads_back() {
        let result = RunResult::json("[1]").unwrap();
        let about = About::new(&NONCE, 0x0102_0304_0506, 3, Some(&result));
        let bytes = [&[7; 16][..], &[2, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0, 3], b"[1]"].concat();
        assert_eq!(about.as_bytes(), bytes);
        let read = About::beside(&bytes, &NONCE).unwrap();
        assert_eq!((read.began_unix_ms(), read.attempts(), read.result()), (0x0102_0304_0506, 3, Some(result.clone())));
        assert_eq!((result.as_json(), result.as_bytes()), (Some("[1]"), &b"[1]"[..]));
        let bare = About::new(&NONCE, 1, 0, None);
        assert_eq!((bare.as_bytes().len(), bare.result()), (29, None));
        assert_eq!(About::read(bare.as_bytes()), Some(bare));
    }

    #[test]
    fn a_record_of_another_attempt_does_not_count() {
        let about = About::new(&NONCE, 1, 0, None);
        assert_eq!(About::beside(about.as_bytes(), &NONCE), Some(about.clone()));
        assert_eq!(About::beside(about.as_bytes(), &Nonce::from_bytes([8; 16])), None);
    }

    #[test]
    fn what_no_client_writes_is_no_record() {
        let of = |kind: u8, result: &[u8]| [&[7; 16][..], &[kind], &[0; 12], result].concat();
        for good in [of(0, b""), of(1, b"\xff"), of(2, b"1"), of(3, &[b'x'; 4096])] {
            assert!(About::read(&good).is_some());
        }
        for bad in [vec![], vec![7; 16], vec![0; 28], of(0, b"x"), of(4, b""), of(2, b"\xff"), of(1, &[0; 4097])] {
            assert_eq!(About::read(&bad), None);
        }
    }

    #[test]
    fn a_result_has_its_bounds() {
        assert!(RunResult::output(&[0xff; 4096]).is_ok());
        for long in [RunResult::bytes(&[0; 4097]), RunResult::json(&"x".repeat(4097)), RunResult::output(&[0; 4097])] {
            assert_eq!(alloc::format!("{}", long.unwrap_err()), "result has 4097 bytes; at most 4096 are allowed");
        }
        assert_eq!(RunResult::output(b"[1]").unwrap().as_json(), None);
    }
}
