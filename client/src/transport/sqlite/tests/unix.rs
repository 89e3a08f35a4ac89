//! Users, modes and limits of Unix, and files deleted while they are open, which Windows refuses.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use leasehold_core::op::FaultKind;

use super::super::transaction::{self, Stop};
use super::*;
use crate::admin::doctor::Severity;
use crate::host::fork::tests::{alone, in_forked_child};

/// Runs `work` as a user without administrator's rights, and returns its message.
fn as_another_user(place: &Place, work: impl FnOnce() -> String) -> String {
    let says = place.folder.path().join("says");
    fs::write(&says, "").unwrap();
    fs::set_permissions(&says, PermissionsExt::from_mode(0o666)).unwrap();
    let code = in_forked_child(|| {
        // SAFETY: a forked child with one thread gives up its rights; both calls take plain numbers.
        if unsafe { libc::geteuid() == 0 && (libc::setgid(65_534) != 0 || libc::setuid(65_534) != 0) } {
            return 1;
        }
        i32::from(fs::write(&says, work()).is_err())
    });
    assert_eq!(code, 0);
    fs::read_to_string(says).unwrap()
}

fn open_says(path: &Path) -> String {
    match Sqlite::open(path) {
        Ok(store) => match all(&store, vec![acquire("a", 1)]) {
            Ok(outcomes) => format!("{outcomes:?}"),
            Err(fault) => format!("{fault:?}"),
        },
        Err(error) => format!("{}: {error}", error.kind().name()),
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn missing_permissions_are_named_with_user_and_advice() {
    alone(|| {
        let place = Place::new();
        let (folder, file) = (place.folder.path(), place.file());

        mode(folder, 0o555);
        let says = as_another_user(&place, || open_says(&file));
        assert!(says.starts_with("store_refused") && says.contains("the folder"), "new file: {says}");
        assert!(says.contains("not writable for user") && says.contains("permissions"), "{says}");

        mode(folder, 0o755);
        drop(place.open());
        mode(folder, 0o555);
        mode(&file, 0o666);
        let says = as_another_user(&place, || open_says(&file));
        assert!(says.starts_with("store_refused") && says.contains("the folder"), "writable file: {says}");

        mode(folder, 0o777);
        mode(&file, 0o444);
        let says = as_another_user(&place, || open_says(&file));
        assert!(says.starts_with("store_refused") && says.contains("locks.db is not writable"), "{says}");

        mode(&file, 0o666);
        let says = as_another_user(&place, || open_says(&file));
        assert!(says.contains("Acquired"), "with both it works: {says}");

        // A log that somebody else keeps for himself.
        let store = place.open();
        one(&store, acquire("theirs", 1));
        mode(&folder.join("locks.db-wal"), 0o600);
        mode(&folder.join("locks.db-shm"), 0o600);
        let says = as_another_user(&place, || open_says(&file));
        assert!(says.starts_with("store_refused") && says.contains("-wal is not writable"), "{says}");
    });
}

#[test]
fn a_commit_that_the_disk_fails_is_of_unknown_fate() {
    alone(|| {
        let place = Place::new();
        let store = place.open();
        one(&store, acquire("a", 1));
        let limit = |bytes: u64| {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: `limit` is valid for both calls, and ignoring a signal installs no handler.
            unsafe {
                libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
                assert_eq!(libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit), 0);
                limit.rlim_cur = bytes.min(limit.rlim_max);
                assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit), 0);
            }
        };
        // The log cannot hold this, but nothing says that the disk is full.
        limit(64 << 10);
        let data = leasehold_core::Payload::new(&[7; leasehold_core::Payload::MAX_BYTES]).unwrap();
        let large = |n: u8| acquire_with(&format!("job/{n}"), n, |op| op.data = Some(data.clone()));
        for pool in [Pool::Caller, Pool::Background] {
            let failed = store.perform(&request((0..100).map(large).collect(), PATIENCE), pool);
            let Err(TransportFault::Unknown(fault)) = failed else { panic!("{failed:?}") };
            assert_eq!(fault.kind, FaultKind::Server);
        }
        assert!(shown(one(&store, read("a"))).unwrap().is_of(&nonce(1)), "reading goes on");
        limit(u64::MAX);
        assert!(all(&store, (0..100).map(large).collect()).unwrap().into_iter().all(|outcome| token(outcome) == 1));
        assert_eq!(one(&store, renew("a", 1, 2)), Outcome::Applied(Applied::Renewed));
    });
}

#[test]
fn a_file_deleted_under_a_holder_takes_the_lease_but_not_the_order_of_tokens() {
    let place = Place::new();
    let store = place.open();
    let granted = token(one(&store, acquire_from("a", 1, 1_000)));
    for pool in [Pool::Caller, Pool::Background] {
        store.perform(&request(vec![renew("a", 1, 2)], PATIENCE), pool).unwrap();
    }
    for suffix in ["", "-wal", "-shm"] {
        fs::remove_file(format!("{}{suffix}", place.file().display())).unwrap();
    }
    for pool in [Pool::Background, Pool::Caller] {
        let outcome = store.perform(&request(vec![renew("a", 1, 5)], PATIENCE), pool).unwrap().remove(0);
        assert_eq!(shown(outcome), None);
    }
    let next = token(one(&store, acquire_from("a", 2, granted + 1)));
    assert!(next > granted);
    // Everybody sees the new file, and what closes the old one leaves it alone.
    let other = place.open();
    assert!(shown(one(&other, read("a"))).unwrap().is_of(&nonce(2)));
    drop(store);
    assert!(shown(one(&other, acquire("a", 3))).unwrap().is_of(&nonce(2)));
    drop(other);
    assert!(shown(one(&place.open(), acquire("a", 3))).unwrap().is_of(&nonce(2)));
}

#[test]
fn a_file_put_in_place_of_ours_is_used_from_then_on() {
    let (place, other) = (Place::new(), Place::new());
    let store = place.open();
    one(&store, acquire("a", 1));
    one(&other.open(), acquire("b", 2));
    fs::rename(other.file(), place.file()).unwrap();
    // A log of the old file beside the new one would be taken for its own, by SQLite itself.
    fs::remove_file(format!("{}-wal", place.file().display())).unwrap();
    fs::remove_file(format!("{}-shm", place.file().display())).unwrap();
    assert_eq!(shown(one(&store, read("a"))), None);
    assert!(shown(one(&store, read("b"))).unwrap().is_of(&nonce(2)));

    fs::remove_file(place.file()).unwrap();
    fs::write(place.file(), "a shopping list").unwrap();
    assert!(denial(one(&store, acquire("a", 1))).detail.contains("not a SQLite database"));
}

#[test]
fn a_write_into_a_file_that_was_deleted_meanwhile_is_of_unknown_fate() {
    let place = Place::new();
    let store = place.open();
    for op in [acquire("a", 1), renew("a", 1, 2), release("a", 1)] {
        let done = store.file.with_connection(Pool::Caller, soon(), |connection| {
            fs::remove_file(place.file()).unwrap();
            transaction::run(connection, &place.file(), store.file.client(), &[acquire("a", 1), op.clone()], soon())
        });
        let Err(Stop::Unknown(error)) = done else { panic!("{op:?}: {done:?}") };
        assert!(error.to_string().contains("deleted or replaced"), "{error}");
        assert_eq!(error.fault().kind, FaultKind::Server);
        assert_eq!(shown(one(&store, read("a"))), None);
    }
}

#[test]
fn a_file_that_was_deleted_is_a_problem() {
    let place = Place::new();
    let store = place.open();
    one(&store, acquire("a", 1));
    fs::remove_dir_all(place.folder.path()).unwrap();
    let broken = store.diagnose();
    assert!(broken.iter().any(|finding| {
        finding.severity == Severity::Problem
            && finding.check == "sqlite.file"
            && finding.what.contains("does not exist")
    }));
}
