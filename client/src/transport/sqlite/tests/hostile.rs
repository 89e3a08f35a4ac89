//! Rows that no honest client writes.

use leasehold_core::op::DenialKind;

use super::*;
use crate::admin::doctor::Severity;

/// Puts anything into a row, past the types that the table declares.
fn tamper(place: &Place, change: &str) {
    let raw = place.raw();
    raw.execute_batch(
        "CREATE TABLE IF NOT EXISTS copy (resource, counter, touched_ms, nonce, seq, released, ttl_ns, boot, \
         expires_ns, since_ms, owner, data, done_nonce, done_token, done_owner, done_ms, done_until, PRIMARY KEY (resource)); \
         INSERT INTO copy SELECT * FROM leases; DROP TABLE leases; ALTER TABLE copy RENAME TO leases;",
    )
    .unwrap();
    raw.execute_batch(&format!("UPDATE leases SET {change} WHERE resource = 'a'")).unwrap();
}

#[test]
fn a_bad_record_is_refused_with_advice_and_affects_no_other() {
    let day_ns = 24_i64 * 3600 * 1_000_000_000;
    let boot_expires = |days: i64| {
        let now = i64::try_from(clock::monotonic().ns()).unwrap();
        format!("expires_ns = {}", now + days * day_ns)
    };
    let long_owner = format!("owner = '{}'", "x".repeat(257));
    for (change, says) in [
        ("counter = 9007199254740992", "counter"),
        ("counter = 9223372036854775807", "counter"),
        ("counter = -1", "below 0"),
        ("counter = 1.5", "a fraction"),
        ("counter = 'many'", "text"),
        ("counter = NULL", "nothing"),
        ("nonce = zeroblob(15)", "15 bytes instead of 16"),
        ("nonce = zeroblob(1000000)", "instead of 16"),
        ("nonce = 'sixteen letters!'", "text instead of 16 bytes"),
        ("seq = -1", "seq"),
        ("seq = 4294967296", "above 4294967295"),
        ("done_until = 1, done_nonce = zeroblob(16), done_token = -1, done_ms = 0, done_owner = ''", "below 0"),
        ("done_until = 1", "done_nonce"),
        ("done_until = 1, done_nonce = zeroblob(16), done_token = 1, done_ms = 0, done_owner = 7", "done_owner"),
        (
            "done_until = 9223372036854775807, done_nonce = zeroblob(16), done_token = 1, done_ms = 0, done_owner = ''",
            "completion",
        ),
        ("released = 2", "released"),
        ("released = 'no'", "released"),
        ("ttl_ns = 315360000000000000", "no client writes"),
        ("ttl_ns = 9223372036854775807", "no client writes"),
        ("ttl_ns = 0", "below the shortest lease"),
        ("ttl_ns = 99999999", "below the shortest lease"),
        ("ttl_ns = -5", "below 0"),
        ("boot = x'00'", "1 bytes instead of 16"),
        ("boot = NULL", "nothing"),
        ("expires_ns = -1", "below 0"),
        ("expires_ns = 9223372036854775807", "no client writes"),
        (&boot_expires(3650), "no client writes"),
        ("expires_ns = 'never'", "text"),
        ("since_ms = -1", "since_ms"),
        ("since_ms = x'ff'", "bytes instead of an integer"),
        (&long_owner, "owner"),
        ("owner = 'line' || char(10) || 'break'", "owner"),
        ("owner = 'nul' || char(0)", "owner"),
        ("owner = CAST(x'fffe' AS TEXT)", "owner"),
        ("owner = 5", "owner"),
        ("owner = NULL", "owner"),
        ("data = zeroblob(4097)", "4097 bytes"),
        ("data = 'text'", "text instead of bytes"),
        ("data = 1", "an integer instead of bytes"),
    ] {
        let place = Place::new();
        let store = place.open();
        all(&store, vec![acquire("a", 1), acquire("b", 1)]).unwrap();
        tamper(&place, change);
        let ops = [acquire("a", 2), renew("a", 1, 2), release("a", 1), read("a")];
        for op in ops.clone() {
            let denial = denial(one(&store, op.clone()));
            assert_eq!(denial.kind, DenialKind::CorruptRecord, "{change}: {op:?}");
            assert!(denial.detail.contains(says) && denial.detail.contains("by hand"), "{change}: {denial}");
            // Names of temporary folders are random, and may have a few of its digits.
            assert!(!denial.detail.contains(&"01".repeat(8)), "the nonce is nobody's business: {denial}");
        }
        let mixed = all(&store, vec![renew("a", 1, 2), renew("b", 1, 2)]).unwrap();
        denial(mixed[0].clone());
        assert_eq!(mixed[1], Outcome::Applied(Applied::Renewed), "{change}");

        let findings = store.diagnose();
        let found = findings.iter().find(|finding| finding.severity == Severity::Problem).expect(change);
        assert!(found.check == "sqlite.records" && found.what.contains("\"a\""), "{found:?}");

        // The advice works.
        place.raw().execute("DELETE FROM leases WHERE resource = 'a'", []).unwrap();
        assert_eq!(token(one(&store, acquire_from("a", 2, 77))), 77);
    }
}

#[test]
fn a_counter_at_its_end_mints_no_more() {
    let place = Place::new();
    let store = place.open();
    one(&store, acquire("a", 1));
    one(&store, release("a", 1));
    place.raw().execute("UPDATE leases SET counter = ?1", [i64::try_from(Token::MAX.get()).unwrap()]).unwrap();
    assert_eq!(denial(one(&store, acquire("a", 2))).kind, DenialKind::TokensExhausted);
}

#[test]
fn names_and_data_of_any_shape_are_stored_unchanged() {
    let place = Place::new();
    let store = place.open();
    let long = "ß".repeat(Resource::MAX_BYTES / 2);
    for name in ["'; DROP TABLE leases; --", "%", "a\u{a0}b", "\u{202e}", "?1", &long] {
        token(one(&store, acquire(name, 1)));
        assert!(shown(one(&store, read(name))).unwrap().is_of(&nonce(1)), "{name}");
    }
    assert_eq!(shown(one(&store, read("A"))), None);
    let data = leasehold_core::Payload::new(&[0xff; leasehold_core::Payload::MAX_BYTES]).unwrap();
    let owner = Owner::new(&"ü".repeat(128)).unwrap();
    let op = acquire_with("d", 1, |op| (op.owner, op.data) = (owner.clone(), Some(data.clone())));
    token(one(&store, op));
    let held = shown(one(&store, read("d"))).unwrap();
    assert_eq!((held.owner, held.data), (Some(owner), Some(data)));
}

#[test]
fn a_schema_that_was_changed_is_refused() {
    for (change, says) in [
        ("DROP TABLE leases", "leases"),
        ("ALTER TABLE leases RENAME TO others", "leases"),
        ("ALTER TABLE leases DROP COLUMN seq", "seq"),
        ("ALTER TABLE leases RENAME TO l; CREATE VIEW leases AS SELECT * FROM l", "leases"),
        ("CREATE TRIGGER t AFTER INSERT ON leases BEGIN DELETE FROM leases; END", "trigger"),
    ] {
        let place = Place::new();
        let store = place.open();
        one(&store, acquire("a", 1));
        place.raw().execute_batch(change).unwrap();
        if !change.contains("TRIGGER") {
            assert_eq!(denial(one(&store, acquire("b", 2))).kind, DenialKind::Schema, "{change}");
        }
        drop(store);
        match Sqlite::open(&place.file()) {
            // The columns are looked at when they are needed.
            Ok(store) => assert!(denial(one(&store, acquire("b", 2))).detail.contains(says), "{change}"),
            Err(error) => assert!(error.to_string().contains(says), "{change}: {error}"),
        }
    }
}

#[test]
fn a_list_leaves_bad_records_out() {
    let place = Place::new();
    let store = place.open();
    for name in ["a", "b", "c"] {
        assert!(matches!(one(&store, acquire(name, 1)), Outcome::Applied(_)));
    }
    for change in ["counter = -1", "nonce = zeroblob(15)", "ttl_ns = 9223372036854775807", "owner = 7"] {
        tamper(&place, change);
        let page = store.list("", b"", leasehold_wire::listing::Which::Held).unwrap();
        let names: Vec<&str> = page.records.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names, page.next), (vec!["b", "c"], None), "{change}");
    }
    tamper(&place, "resource = CAST(x'61ff' AS TEXT)");
    assert_eq!(store.list("", b"", leasehold_wire::listing::Which::Held).unwrap().records.len(), 2);
}
