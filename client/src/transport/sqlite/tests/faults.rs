//! Files, folders and disks that are not as they should be.

use std::fs;

use leasehold_core::op::DenialKind;

use super::super::transaction::Stop;
use super::*;
use crate::admin::doctor::Severity;
use crate::error::ErrorKind;
use crate::host::fork::tests::alone;

#[test]
fn a_file_of_something_else_is_refused_and_left_as_it_is() {
    let place = Place::new();
    for content in ["# notes\n", &"word ".repeat(2_000)] {
        fs::write(place.file(), content).unwrap();
        assert!(place.refused().contains("not a SQLite database"), "{}", place.refused());
        assert_eq!(fs::read_to_string(place.file()).unwrap(), content);
        fs::remove_file(place.file()).unwrap();
    }
    for sql in [
        "CREATE TABLE invoices (id)",
        "PRAGMA application_id = 7",
        "PRAGMA user_version = 3",
        "CREATE TABLE leases (resource)",
    ] {
        place.raw().execute_batch(sql).unwrap();
        let before = fs::read(place.file()).unwrap();
        assert!(place.refused().contains("another application"), "{sql}: {}", place.refused());
        assert_eq!(fs::read(place.file()).unwrap(), before, "{sql}");
        assert_eq!(Sqlite::open(&place.file()).err().unwrap().kind(), ErrorKind::StoreRefused);
        fs::remove_file(place.file()).unwrap();
    }
    fs::write(place.file(), "").unwrap();
    assert_eq!(token(one(&place.open(), acquire("a", 1))), 1, "an empty file is as good as none");
}

#[test]
fn a_file_of_a_newer_version_says_so() {
    let place = Place::new();
    drop(place.open());
    place.raw().pragma_update(None, "user_version", 3).unwrap();
    let refused = place.refused();
    assert!(
        refused.contains("newer version") && refused.contains("format 3") && refused.contains("update"),
        "{refused}"
    );
    place.raw().pragma_update(None, "user_version", 0).unwrap();
    assert!(place.refused().contains("format 0"));
    place.raw().pragma_update(None, "user_version", 1).unwrap();
    assert!(place.refused().contains("before version 0.1.0"));
}

#[test]
fn a_damaged_file_is_refused() {
    let place = Place::new();
    let store = place.open();
    for n in 0..200 {
        one(&store, acquire(&format!("job/{n}"), 1));
    }
    drop(store);
    let mut bytes = fs::read(place.file()).unwrap();
    assert!(bytes.len() > 3 * 4096);
    bytes[4096..3 * 4096].fill(0xa5);
    fs::write(place.file(), bytes).unwrap();
    let store = place.open();
    let denial = denial(one(&store, acquire("job/7", 2)));
    assert_eq!(denial.kind, DenialKind::Schema);
    assert!(denial.detail.contains("damaged") && denial.detail.contains("-wal"), "{denial}");
    assert!(store.diagnose().iter().any(|finding| finding.severity == Severity::Problem));
}

#[test]
fn a_missing_folder_and_a_folder_in_place_of_the_file_are_named() {
    let place = Place::new();
    let missing = place.folder.path().join("no").join("such");
    let advice = format!("{} does not exist; create it", missing.display());
    let missing = Sqlite::open(&missing.join("locks.db")).err().unwrap();
    assert_eq!(missing.kind(), ErrorKind::StoreRefused);
    assert!(missing.to_string().contains(&advice), "{missing}");
    assert!(!place.folder.path().join("no").exists());
    let folder = Sqlite::open(place.folder.path()).err().unwrap();
    assert!(folder.to_string().contains("is a folder"), "{folder}");
    let file_as_folder = place.folder.path().join("file/locks.db");
    fs::write(place.folder.path().join("file"), "").unwrap();
    assert!(Sqlite::open(&file_as_folder).is_err());
}

#[test]
fn only_the_folder_of_the_default_store_is_made() {
    alone(|| {
        let place = Place::new();
        // SAFETY: this process runs this one test, on one thread.
        unsafe { std::env::set_var("XDG_STATE_HOME", place.folder.path().join("state")) };
        let path = crate::url::sqlite::SqliteUrl::of_user().unwrap().path;
        token(one(&Sqlite::open(&path).unwrap(), acquire("a", 1)));
        assert!(path.starts_with(place.folder.path()) && path.exists());
    });
}

#[test]
fn a_full_disk_is_reported_and_passes() {
    let place = Place::new();
    let store = place.open();
    one(&store, acquire("mine", 1));
    let limit = |pages: u32| {
        store
            .file
            .with_connection(Pool::Caller, soon(), |connection| {
                connection
                    .db()
                    .pragma_update(None, "max_page_count", pages)
                    .map_err(|error| Stop::NotApplied(error.into()))
            })
            .unwrap();
    };
    limit(2);
    let many: Vec<_> = (0..100).map(|n| acquire(&format!("job/{n}"), 1)).collect();
    let outcomes = all(&store, many.clone()).unwrap();
    assert_eq!(outcomes.len(), 100);
    for outcome in outcomes {
        let fault = unavailable(outcome);
        assert!(fault.to_string().contains("free some on its file system"), "{fault}");
    }
    assert_eq!(shown(one(&store, read("job/0"))), None, "none of it happened");
    assert_eq!(one(&store, renew("mine", 1, 2)), Outcome::Applied(Applied::Renewed));
    limit(1_000_000);
    assert!(all(&store, many).unwrap().into_iter().all(|outcome| token(outcome) == 1));
}

#[test]
fn a_turn_that_comes_after_the_deadline_writes_nothing() {
    let place = Place::new();
    let store = place.open();
    let late = Transmit { deadline: clock::monotonic(), ..request(vec![acquire("a", 1)], PATIENCE) };
    for pool in [Pool::Caller, Pool::Background] {
        unavailable(store.perform(&late, pool).unwrap().remove(0));
    }
    assert_eq!(shown(one(&store, read("a"))), None);
}

#[test]
fn a_sound_store_has_no_problems() {
    let place = Place::new();
    let store = place.open();
    all(&store, vec![acquire("a", 1), acquire("b", 1), acquire("c", 1), release("c", 1)]).unwrap();
    let findings = store.diagnose();
    assert!(findings.iter().all(|finding| finding.severity != Severity::Problem), "{findings:?}");
    for check in ["filesystem", "space", "clock", "file", "schema", "journal", "synchronous", "integrity", "records"] {
        let name = format!("sqlite.{check}");
        assert!(findings.iter().any(|finding| finding.check == name), "{name} is missing");
    }
    assert!(findings.iter().any(|finding| finding.what == "3 resources known, 2 held"), "{findings:?}");

    place.raw().execute("UPDATE leases SET boot = zeroblob(16) WHERE resource = 'a'", []).unwrap();
    let warned = store.diagnose();
    assert!(warned.iter().any(|finding| finding.what.contains("1 held records come from another boot")));
}
