//! The file that a path leads to.

#[cfg(feature = "sqlite")]
use std::path::Path;

/// The identity of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

#[cfg(feature = "sqlite")]
impl FileId {
    /// Reads the identity by name only: opening and closing a file that SQLite has open would end all locks of this
    /// process on it.
    #[cfg(unix)]
    pub(super) fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self { device: metadata.dev(), inode: metadata.ino() })
    }

    /// Reads the identity. Windows has locks by handle, so this one may be closed.
    #[cfg(windows)]
    pub(super) fn of(path: &Path) -> Option<Self> {
        use std::os::windows::io::AsRawHandle;
        use windows_sys::Win32::Storage::FileSystem::{BY_HANDLE_FILE_INFORMATION, GetFileInformationByHandle};
        let file = std::fs::File::open(path).ok()?;
        let mut told = BY_HANDLE_FILE_INFORMATION::default();
        // SAFETY: the handle is open, and the place that is written to is of the type that is asked for.
        let is_told = unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut told) } != 0;
        let inode = u64::from(told.nFileIndexHigh) << 32 | u64::from(told.nFileIndexLow);
        is_told.then(|| Self { device: told.dwVolumeSerialNumber.into(), inode })
    }
}
