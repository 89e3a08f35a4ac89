//! Checks if this file, on this file system and this machine, can keep locks.

use std::path::Path;
use std::time::Duration;

use leasehold_core::op::{Op, Outcome};
use leasehold_core::store;

use super::connection::Connection;
use super::error::{SqliteError, free_bytes};
use super::file::File;
use super::record;
use super::transaction::Stop;
use crate::admin::checks::sqlite as check;
use crate::admin::doctor::Finding;
use crate::host::clock;
use crate::transport::Pool;

const PATIENCE: Duration = Duration::from_secs(5);
/// The write-ahead log grows to about 4 MiB before it is folded back into the file.
const ENOUGH_BYTES: u64 = 16 << 20;
/// The most unreadable records that are named.
const NAMED: usize = 5;

pub(super) fn diagnose(store: &File) -> Vec<Finding> {
    let mut findings = vec![file_system(store.path()), space(store.path()), time(store)];
    let until = clock::monotonic().plus(PATIENCE);
    let inside = store.with_connection(Pool::Caller, until, |connection| {
        database(store, connection).map_err(|error| Stop::NotApplied(SqliteError::from(error).at(store.path())))
    });
    match inside {
        Ok(more) => findings.extend(more),
        Err(Stop::NotApplied(error) | Stop::Unknown(error)) => findings
            .push(check::FILE.fails(error.to_string(), "locks in this file cannot be acquired until this is fixed")),
    }
    findings
}

fn database(store: &File, connection: &Connection) -> rusqlite::Result<Vec<Finding>> {
    let db = connection.db();
    let text = |pragma| db.pragma_query_value(None, pragma, |row| row.get::<_, String>(0));
    let number = |pragma| db.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    // A write of unchanged data still reaches the disk.
    let format = number("user_version")?;
    db.pragma_update(None, "user_version", format)?;
    let mut findings = vec![
        check::FILE.passes(format!("{} can be written", store.path().display())),
        check::SCHEMA.passes(format!("format {format}")),
    ];
    let journal = text("journal_mode")?;
    findings.push(if journal == "wal" {
        check::JOURNAL.passes("write-ahead log")
    } else {
        check::JOURNAL.fails(
            format!("the journal mode is {journal:?}, not \"wal\""),
            "let no other program change the mode of this file; connecting again restores it",
        )
    });
    let synchronous = number("synchronous")?;
    findings.push(if synchronous >= 2 {
        check::SYNCHRONOUS.passes("every commit reaches the disk")
    } else {
        check::SYNCHRONOUS.fails(
            format!("synchronous is {synchronous}: after a power cut tokens may decrease"),
            "this build of SQLite does not keep the setting; use the one that comes with leasehold",
        )
    });
    let integrity: String = db.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    findings.push(if integrity == "ok" {
        check::INTEGRITY.passes("the file is sound")
    } else {
        check::INTEGRITY.fails(
            format!("the file is damaged: {integrity}"),
            "when no process uses it, move it away together with its -wal and -shm files; tokens keep growing",
        )
    });
    findings.extend(records(store, db)?);
    Ok(findings)
}

fn records(store: &File, db: &rusqlite::Connection) -> rusqlite::Result<Vec<Finding>> {
    let now = clock::store_now(store.boot());
    let (mut all, mut held, mut other_boot, mut bad) = (0_u64, 0_u64, 0_u64, 0_usize);
    let mut findings = Vec::new();
    record::read_all(db, |name, record| {
        all += 1;
        let honest = record.and_then(|record| match store::apply(Some(&record), &Op::Read, &now).outcome {
            Outcome::NotApplied(leasehold_core::op::Refusal::Denied(denial)) => Err(denial),
            Outcome::Applied(_) | Outcome::NotApplied(_) | Outcome::Unknown(_) => Ok(record),
        });
        match honest {
            Ok(record) => {
                if let Some(holding) = store::seen(Some(&record), &now).held() {
                    held += 1;
                    other_boot += u64::from(holding.left.is_none());
                }
            }
            Err(denial) => {
                bad += 1;
                if bad <= NAMED {
                    let what = format!("resource {name:?} cannot be locked: {denial}");
                    findings.push(
                        check::RECORDS
                            .fails(what, "find out who writes this file besides leasehold, then remove the record"),
                    );
                }
            }
        }
    })?;
    if bad > NAMED {
        let what = format!("{} more records cannot be read", bad - NAMED);
        findings.push(check::RECORDS.fails(what, "remove the table's bad rows, or start with a new file"));
    }
    findings.push(check::RECORDS.passes(format!("{all} resources known, {held} held")));
    if other_boot > 0 {
        findings.push(check::RECORDS.warns(
            format!("{other_boot} held records come from another boot, or from a container with another clock"),
            "nothing, if this machine has just started: waiting clients take them over after their ttl. Otherwise the \
             file is shared by machines, which SQLite cannot do safely",
        ));
    }
    Ok(findings)
}

fn time(store: &File) -> Finding {
    match clock::boot_id() {
        Ok(boot) if boot == store.boot() => check::CLOCK.passes("the boot and its clock can be identified"),
        Ok(_) => check::CLOCK.fails(
            "the boot id has changed while this process ran",
            "restart this process: it was moved between machines or clock namespaces",
        ),
        Err(error) => check::CLOCK.fails(
            format!("the boot id cannot be read: {error}"),
            "mount /proc, without which the age of leases is unknown",
        ),
    }
}

fn space(path: &Path) -> Finding {
    match free_bytes(path) {
        Some(bytes) if bytes < ENOUGH_BYTES => check::SPACE.fails(
            format!("{} KiB are left on the file system of {}", bytes >> 10, path.display()),
            "free some space: without any, no lock can be acquired or renewed",
        ),
        Some(bytes) => check::SPACE.passes(format!("{} MiB are left", bytes >> 20)),
        None => check::SPACE.fails("the file system does not report its free space", "check it yourself"),
    }
}

fn file_system(path: &Path) -> Finding {
    let elsewhere = "name a file on a local disk; to lock across machines, use a store made for it";
    if let Some(kind) = shared_by_hosts(path) {
        return check::FILESYSTEM.fails(
            format!(
                "{} is on {kind}, where SQLite's locks and shared memory do not work across machines",
                path.display()
            ),
            elsewhere,
        );
    }
    match kind_of(path) {
        Some("tmpfs") => check::FILESYSTEM.warns(
            "the file is in memory (tmpfs) and is lost in a reboot, token counters included",
            "fine if the protected data is lost with it; otherwise name a file on a disk",
        ),
        Some(kind) => check::FILESYSTEM.passes(kind),
        None => check::FILESYSTEM.passes("no network file system that is known"),
    }
}

/// The network file system of the file, if it is a known one.
pub(super) fn shared_by_hosts(path: &Path) -> Option<&'static str> {
    kind_of(path).filter(|kind| is_shared(kind))
}

fn is_shared(kind: &str) -> bool {
    !["tmpfs", "overlayfs"].contains(&kind)
}

/// Network file systems, by their numbers in statfs(2).
#[cfg(any(target_os = "linux", target_os = "android"))]
fn kind_of(path: &Path) -> Option<&'static str> {
    let statfs = rustix::fs::statfs(path.parent()?).ok()?;
    // The type of the field depends on the architecture; the numbers have 32 bits.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "needed on some architectures only")]
    named(statfs.f_type as u32)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const fn named(number: u32) -> Option<&'static str> {
    match number {
        0x0000_6969 => Some("NFS"),
        0x0000_517b | 0xfe53_4d42 => Some("SMB"),
        0xff53_4d42 => Some("CIFS"),
        0x6573_5546 => Some("FUSE"),
        0x0102_1997 => Some("9P"),
        0x00c3_6400 => Some("Ceph"),
        0x5346_414f => Some("AFS"),
        0x7375_7245 => Some("Coda"),
        0x0116_1970 => Some("GFS2"),
        0x7461_636f => Some("OCFS2"),
        0x0bd0_0bd0 => Some("Lustre"),
        0x4750_4653 => Some("GPFS"),
        0x1983_0326 => Some("BeeGFS"),
        0x786f_4256 => Some("a VirtualBox folder"),
        0xbacb_acbc => Some("a VMware folder"),
        0x0102_1994 => Some("tmpfs"),
        0x794c_7630 => Some("overlayfs"),
        _ => None,
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn kind_of(_path: &Path) -> Option<&'static str> {
    None
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_recognised() {
        let numbers = [0x6969, 0x6573_5546, 0x4750_4653, 0x1983_0326, 0x786f_4256, 0xbacb_acbc];
        let names = ["NFS", "FUSE", "GPFS", "BeeGFS", "a VirtualBox folder", "a VMware folder"];
        assert_eq!(numbers.map(|number| named(number).filter(|kind| is_shared(kind))), names.map(Some));
        // ext4, XFS, Btrfs, tmpfs, overlayfs.
        for local in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630] {
            assert!(!named(local).is_some_and(is_shared), "{local:x}");
        }
    }
}
