//! Converts SQLite's errors, with advice.

use std::fmt;
use std::path::Path;

use leasehold_core::op::{Denial, DenialKind, Fault, FaultKind, Refusal};
use leasehold_wire::errors::{Means, Verdict};
use rusqlite::ErrorCode;

use crate::error::{Error, ErrorKind};

/// The reason why an operation failed, with advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SqliteError {
    kind: Kind,
    detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Another connection is writing.
    Busy,
    /// A temporary failure of the machine.
    Io,
    /// As [`Kind::Io`], or missing permissions: the file system decides.
    CannotOpen,
    Full,
    Permission,
    /// The file does not contain our tables.
    Schema,
}

impl Kind {
    /// Its place in the tables of errors.
    const fn means(self) -> Means {
        match self {
            Self::Busy => Means::Passes(FaultKind::Busy),
            Self::Io | Self::CannotOpen => Means::Passes(FaultKind::Server),
            Self::Full => Means::Mended(FaultKind::Server),
            Self::Permission => Means::Final(DenialKind::Permission),
            Self::Schema => Means::Final(DenialKind::Schema),
        }
    }
}

/// The errors, for people: their kinds, and what to do.
#[cfg(test)]
pub(in crate::transport) const KNOWN_ERRORS: [(&str, Means, &str); 6] = [
    ("busy, locked, locking protocol", Kind::Busy.means(), "others write the file"),
    ("disk full", Kind::Full.means(), "free some space on the file system"),
    (
        "cannot open",
        Kind::CannotOpen.means(),
        "a limit such as the one on open files; or see *read only*, where a right is missing",
    ),
    ("read only, permission denied", Kind::Permission.means(), "the message names the file or folder, and the user"),
    (
        "not a database, corrupt, other tables",
        Kind::Schema.means(),
        "name another file, or move this one out of the way",
    ),
    ("any other", Kind::Io.means(), "the machine's file system fails; look at the system's log"),
];

impl SqliteError {
    pub(super) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// Adds details from the file system.
    pub(super) fn at(self, path: &Path) -> Self {
        let Self { kind, detail } = self;
        let file = path.display();
        match kind {
            Kind::Busy => Self { kind, detail: format!("{file} is being written by others ({detail})") },
            Kind::Schema => Self { kind, detail: format!("{file}: {detail}") },
            Kind::Full => Self::full(path),
            // A full disk appears as a failed system call where SQLite has no better error.
            Kind::Io if free_bytes(path) == Some(0) => Self::full(path),
            Kind::Io => Self { kind, detail: format!("{file}: {detail}") },
            Kind::CannotOpen | Kind::Permission => match obstacle(path) {
                Some(obstacle) => Self { kind: Kind::Permission, detail: obstacle },
                // No permission is missing, so it may be a limit, such as the one on open files.
                None if kind == Kind::CannotOpen => {
                    Self { kind: Kind::Io, detail: format!("{file} cannot be opened now ({detail})") }
                }
                None => Self { kind, detail: format!("{file} cannot be written ({detail})") },
            },
        }
    }

    fn full(path: &Path) -> Self {
        let detail = format!("no space is left to write {}; free some on its file system", path.display());
        Self { kind: Kind::Full, detail }
    }

    /// The refusal for an operation that was certainly not applied.
    pub(super) fn refusal(&self) -> Refusal {
        match self.kind.means() {
            Means::Final(kind) => Refusal::Denied(Denial::new(kind, &self.detail)),
            Means::Passes(kind) | Means::Mended(kind) => Refusal::Unavailable(Fault::new(kind, &self.detail)),
            Means::Elsewhere | Means::TooMany | Means::Expired | Means::Unfinished | Means::Login => {
                Refusal::Unavailable(self.fault())
            }
        }
    }

    /// The fault for an operation whose fate is unknown.
    pub(super) fn fault(&self) -> Fault {
        Fault::new(FaultKind::Server, &self.detail)
    }
}

impl fmt::Display for SqliteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.detail.fmt(f)
    }
}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> Self {
        let detail = error.to_string();
        let Some(code) = error.sqlite_error_code() else { return Self::new(Kind::Schema, detail) };
        #[expect(clippy::wildcard_enum_match_arm, reason = "the list is not exhaustive, and the rest is one case")]
        match code {
            // "Locking protocol" is SQLite's error when others came first too many times in a row.
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
                Self::new(Kind::Busy, detail)
            }
            ErrorCode::DiskFull => Self::new(Kind::Full, detail),
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied => {
                Self::new(Kind::Permission, detail)
            }
            ErrorCode::CannotOpen => Self::new(Kind::CannotOpen, detail),
            ErrorCode::NotADatabase => Self::new(
                Kind::Schema,
                "this is not a SQLite database; name another file, or move this one out of the way",
            ),
            ErrorCode::DatabaseCorrupt => Self::new(
                Kind::Schema,
                format!(
                    "the database is damaged ({detail}); when no process uses it, move it away together with its -wal \
                     and -shm files: a new one is created, and tokens keep growing"
                ),
            ),
            // No such table or column, a violated constraint: the schema was changed.
            ErrorCode::Unknown
            | ErrorCode::SchemaChanged
            | ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch => Self::new(
                Kind::Schema,
                format!("the tables are not those that leasehold made ({detail}); name another file"),
            ),
            _ => Self::new(Kind::Io, detail),
        }
    }
}

impl From<SqliteError> for Error {
    fn from(error: SqliteError) -> Self {
        let kind = match error.kind.means().verdict() {
            Verdict::Passing => ErrorKind::StoreUnavailable,
            Verdict::Final | Verdict::FinalAtFirst => ErrorKind::StoreRefused,
        };
        Self::new(kind, error.detail)
    }
}

/// Tells if a failed COMMIT has certainly left nothing behind.
///
/// Busy and locked mean that it did not start. When the disk is full, the last frame of the log, which carries the mark
/// of the commit, was not written completely. After any other failure, above all of fsync, the frames may lie complete
/// in the log, and a recovery would find them.
pub(super) fn commit_left_nothing(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::DiskFull))
}

/// The bytes that this process may still write beside the file, where the system reports them.
#[cfg(unix)]
pub(super) fn free_bytes(path: &Path) -> Option<u64> {
    let vfs = rustix::fs::statvfs(path.parent()?).ok()?;
    Some(vfs.f_bavail.saturating_mul(vfs.f_frsize))
}

/// The bytes that this user may still write beside the file, where the system reports them.
#[cfg(windows)]
pub(super) fn free_bytes(path: &Path) -> Option<u64> {
    use std::os::windows::ffi::OsStrExt;
    use windows_sys::Win32::Storage::FileSystem::GetDiskFreeSpaceExW;
    let folder: Vec<u16> = path.parent()?.as_os_str().encode_wide().chain([0]).collect();
    let mut free = 0;
    // SAFETY: the text ends with 0, and one number is written, to a place that is valid for it.
    let is_told =
        unsafe { GetDiskFreeSpaceExW(folder.as_ptr(), &raw mut free, std::ptr::null_mut(), std::ptr::null_mut()) != 0 };
    is_told.then_some(free)
}

/// The obstacle in the file system that keeps this process from writing the file, with advice.
fn obstacle(path: &Path) -> Option<String> {
    let file = path.display();
    if let Some(folder) = path.parent() {
        let shown = folder.display();
        if !folder.exists() {
            return Some(format!("the folder {shown} does not exist; create it, or name another file"));
        }
    }
    if path.is_dir() {
        return Some(format!("{file} is a folder; name a file in it"));
    }
    missing_permission(path)
}

/// Windows does not tell in advance.
#[cfg(windows)]
fn missing_permission(_path: &Path) -> Option<String> {
    None
}

#[cfg(unix)]
fn missing_permission(path: &Path) -> Option<String> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    let file = path.display();
    let uid = rustix::process::geteuid().as_raw();
    let may = |path: &Path, access| accessat(CWD, path, access, AtFlags::EACCESS).is_ok();
    if let Some(folder) = path.parent()
        && !may(folder, Access::WRITE_OK | Access::EXEC_OK)
    {
        return Some(format!(
            "the folder {} is not writable for user {uid}, and SQLite keeps files beside {file}; change its \
             permissions (or those of its mount), or name a file elsewhere",
            folder.display()
        ));
    }
    if path.exists() && !may(path, Access::READ_OK | Access::WRITE_OK) {
        return Some(format!(
            "{file} is not writable for user {uid}; every process that takes locks in it must be able to write it, so \
             change its owner, group or mode"
        ));
    }
    // The files beside it have permissions of their own, if another user created them.
    for suffix in ["-wal", "-shm"] {
        let mut beside = path.as_os_str().to_owned();
        beside.push(suffix);
        let beside = Path::new(&beside);
        if beside.exists() && !may(beside, Access::READ_OK | Access::WRITE_OK) {
            return Some(format!("{} is not writable for user {uid}; give it the mode of {file}", beside.display()));
        }
    }
    None
}
