//! The result that a run leaves for those who come later.

use std::fmt;

use leasehold_core as core_;
use leasehold_core::ResultKind;

/// The result of a run, for those who come later: at most 4 KiB.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunResult {
    /// Bytes of any kind.
    Bytes(Vec<u8>),
    /// A value as JSON writes it. What writes it reads it as well: the text is taken as it is.
    Json(String),
    /// The output of a command.
    Output(Vec<u8>),
}

impl RunResult {
    /// The most bytes.
    pub const MAX_BYTES: usize = core_::RunResult::MAX_BYTES;

    /// The bytes, of whatever kind.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) | Self::Output(bytes) => bytes,
            Self::Json(text) => text.as_bytes(),
        }
    }

    /// The name of the kind: `bytes`, `json` or `output`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Bytes(_) => "bytes",
            Self::Json(_) => "json",
            Self::Output(_) => "output",
        }
    }

    pub(crate) fn shown(result: &core_::RunResult) -> Self {
        let bytes = result.as_bytes();
        match result.kind() {
            ResultKind::Json => Self::Json(String::from_utf8_lossy(bytes).into_owned()),
            ResultKind::Bytes => Self::Bytes(bytes.to_vec()),
            ResultKind::Output => Self::Output(bytes.to_vec()),
        }
    }

    /// # Errors
    /// The reason why it cannot be kept.
    pub(crate) fn to_keep(&self) -> Result<core_::RunResult, String> {
        let kept = match self {
            Self::Bytes(bytes) => core_::RunResult::bytes(bytes),
            Self::Json(text) => core_::RunResult::json(text),
            Self::Output(bytes) => core_::RunResult::output(bytes),
        };
        kept.map_err(|error| error.to_string())
    }
}

impl fmt::Debug for RunResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunResult({}, {} bytes)", self.kind(), self.as_bytes().len())
    }
}

/// The result that a run is finished with: none, one, or the reason why there is none that can be kept.
pub(crate) type Given = Option<Result<core_::RunResult, String>>;
