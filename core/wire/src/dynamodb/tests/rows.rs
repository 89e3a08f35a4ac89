//! Rows of ours, of Java's clients, and of others.

use super::*;
use leasehold_core::SessionLabel;
use leasehold_core::op::Session as LeaseSession;

fn read(row: &Json) -> Outcome {
    answered(Op::Read, reads(row))
}

#[test]
fn a_row_of_ours_is_shown_whole() {
    let mut full = counting(row(RIVAL_RVN), 77);
    full["data"] = json!({ "B": "Zm9v" });
    full["dataNonce"] = json!({ "S": RIVAL_RVN.split_inclusive(':').next() });
    full["grantedAt"] = json!({ "N": "1700000000000" });
    full["ttl"] = json!({ "N": "1700604800" });
    let expected = Holding {
        told: 0,
        holder: Holder::Lease { nonce: RIVAL, seq: Some(Seq::new(7)) },
        version: Version::of(&RIVAL, Seq::new(7)),
        released: false,
        counter: Some(token(77)),
        owner: Some(Owner::new("pod-7").unwrap()),
        record_ttl: Some(Duration::from_secs(20)),
        left: None,
        since_unix_ms: Some(1_700_000_000_000),
        data: Some(Payload::new(b"foo").unwrap()),
        session: None,
    };
    assert_eq!(holding(&read(&full)), &expected);
    for nobody in [json!({ "S": alloc::format!("{HEX}:") }), json!({ "N": "1" }), Json::Null] {
        full["dataNonce"] = nobody;
        assert_eq!(holding(&read(&full)).data, None, "what another has left is not the holder's");
    }
    let mut java = row(JAVA_RVN);
    java["data"] = json!({ "B": "Zm9v" });
    assert!(holding(&read(&java)).data.is_some());
}

#[test]
fn a_row_names_the_session_of_its_own_attempt() {
    let named = LeaseSession { nonce: NONCE, label: SessionLabel::new("worker:7").unwrap() };
    let op = Acquire { nonce: RIVAL, session: Some(named.clone()), ..an_acquire() };
    let sent = body(&begun(Op::Acquire(Box::new(op))).requests()[0]);
    assert_eq!(sent["ExpressionAttributeNames"]["#se"], "leaseSession");
    let attribute = sent["ExpressionAttributeValues"][":se"].clone();
    let ours = with(row(RIVAL_RVN), "leaseSession", attribute.clone());
    assert_eq!(holding(&read(&ours)).session.as_ref(), Some(&named));
    assert!(holding(&read(&released(ours))).session.is_some(), "who breaks a lock tells its session afterwards");
    for other in [row(&alloc::format!("{HEX}:0000000007")), row(JAVA_RVN)] {
        let left = with(other, "leaseSession", attribute.clone());
        assert_eq!(holding(&read(&left)).session, None, "what another has left says nothing");
    }
    let odd = with(row(RIVAL_RVN), "leaseSession", json!({ "N": "7" }));
    assert_eq!(holding(&read(&odd)).session, None, "it may be an attribute of the users'");
    let broken = attribute["S"].as_str().unwrap().replace("worker", "work er");
    let broken = with(row(RIVAL_RVN), "leaseSession", json!({ "S": broken }));
    assert!(refusals(&broken).iter().all(|(kind, _)| *kind == DenialKind::CorruptRecord));
}

#[test]
fn a_row_of_java_is_foreign_and_says_how_long_to_wait() {
    let mut java = counting(row(JAVA_RVN), 77);
    java["grantedAt"] = json!({ "N": "1700000000000" });
    let seen = read(&java);
    let seen = holding(&seen);
    assert_eq!((seen.holder, seen.version.as_bytes()), (Holder::Foreign, JAVA_RVN.as_bytes()));
    assert_eq!((seen.record_ttl, seen.left), (Some(Duration::from_secs(20)), None));
    assert_eq!(seen.owner.as_ref().map(Owner::as_str), Some("pod-7"));
    assert_eq!((seen.since_unix_ms, seen.counter), (None, Some(token(77))), "what another left there");
    assert!(holding(&read(&released(java))).released);
}

#[test]
fn versions_are_never_taken_for_each_other() {
    let twenty = "twenty-letters-long!";
    let seen = read(&row(twenty));
    assert_eq!(holding(&seen).version.as_bytes(), alloc::format!("\0{twenty}").as_bytes());
    let rvn = |text: &str| holding(&read(&row(text))).holder;
    for foreign in [
        &alloc::format!("{}:0000000007", HEX.to_uppercase()),
        &alloc::format!("{HEX}:+000000007"),
        &alloc::format!("{HEX}:7"),
        &alloc::format!("{HEX}:4294967296"),
        &alloc::format!("{HEX}:00000000007"),
        &alloc::format!("{HEX}0:0000000007"),
        &alloc::format!("+{}:0000000007", &HEX[1..]),
        HEX,
        "x",
    ] {
        assert_eq!(rvn(foreign), Holder::Foreign, "{foreign}");
    }
    let last = Holder::Lease { nonce: NONCE, seq: Some(Seq::new(u32::MAX)) };
    assert_eq!(rvn(&alloc::format!("{HEX}:4294967295")), last);
}

#[test]
fn what_matters_to_nobody_may_be_odd() {
    let mut odd = row(RIVAL_RVN);
    for (name, value) in [
        ("ownerName", json!({ "S": "a\nb" })),
        ("data", json!({ "S": "text" })),
        ("grantedAt", json!({ "S": "now" })),
        ("quorumTrust", json!({ "BOOL": true })),
        ("other", json!({ "M": {} })),
    ] {
        odd[name] = value;
    }
    let seen = read(&odd);
    let seen = holding(&seen);
    assert_eq!((&seen.owner, &seen.data, seen.since_unix_ms), (&None, &None, None));
    let long = with(row(JAVA_RVN), "data", json!({ "B": "A".repeat(8000) }));
    assert_eq!(holding(&read(&long)).data, None);
    assert_eq!(holding(&read(&without(row(JAVA_RVN), "ownerName"))).owner, None);
}

/// All operations that meet the row are refused alike: it is never free.
fn refusals(row: &Json) -> Vec<(DenialKind, String)> {
    let mut all = vec![denial(read(row))];
    for op in [acquire(), renew(), release(), raise(9, None)] {
        all.push(denial(answered(op, refuses(Some(row)))));
    }
    all
}

#[test]
fn rows_of_other_libraries_are_named_and_never_free() {
    let key = json!({ "key": { "S": "invoice/42" } });
    let go = with(row("1700000000000000000:MFRGGZDFMY"), "leaseDuration", json!({ "S": "20s" }));
    let rust = with(row(JAVA_RVN), "leaseDuration", json!({ "N": "1700000000" }));
    let python = with(key.clone(), "record_version_number", json!({ "S": JAVA_RVN }));
    let python = with(with(python, "lease_duration", json!({ "N": "30" })), "owner_name", json!({ "S": "x" }));
    let terraform = with(with(key.clone(), "LockID", json!({ "S": "x" })), "Info", json!({ "S": "{}" }));
    let kcl = with(with(key, "leaseKey", json!({ "S": "x" })), "leaseCounter", json!({ "N": "3" }));
    for (row, who, what) in [
        (&go, "dynamolock (Go)", "leaseDuration is the text \"20s\""),
        (&rust, "dynamodb_lock (Rust)", "leaseDuration is the number \"1700000000\""),
        (&python, "python_dynamodb_lock", "recordVersionNumber is missing"),
        (&terraform, "Terraform", "recordVersionNumber is missing"),
        (&kcl, "Kinesis Client Library", "recordVersionNumber is missing"),
    ] {
        for row in [row.clone(), released(row.clone())] {
            for (kind, detail) in refusals(&row) {
                assert_eq!(kind, DenialKind::Schema, "{who}");
                assert!(detail.contains(who) && detail.contains(what), "{detail}");
                assert!(detail.contains("a table of its own") && detail.ends_with("\"locks\""), "{detail}");
            }
        }
    }
}

#[test]
fn broken_rows_say_what_is_broken() {
    for (name, value, what) in [
        ("leaseDuration", json!({ "S": "abc" }), "leaseDuration is the text \"abc\", not a text of"),
        ("leaseDuration", json!({ "S": "" }), "leaseDuration is the text \"\""),
        ("leaseDuration", json!({ "S": "-1" }), "leaseDuration is the text \"-1\""),
        ("leaseDuration", json!({ "S": "99999999999999999999" }), "leaseDuration is the text"),
        ("leaseDuration", json!({ "B": "QUJD" }), "leaseDuration is of type \"B\""),
        ("leaseDuration", json!({ "NULL": true }), "leaseDuration is of type \"NULL\""),
        ("leaseDuration", json!("30000"), "leaseDuration is of no type"),
        ("recordVersionNumber", json!({ "N": "5" }), "recordVersionNumber is the number \"5\""),
        ("recordVersionNumber", json!({ "S": "" }), "recordVersionNumber is the text"),
        ("recordVersionNumber", json!({ "S": "x".repeat(257) }), "recordVersionNumber is the text"),
        ("isReleased", json!({ "BOOL": true }), "isReleased is the boolean true, not the text \"1\" or nothing"),
        ("isReleased", json!({ "S": "true" }), "isReleased is the text \"true\""),
        ("fencingToken", json!({ "N": "-1" }), "fencingToken is the number \"-1\""),
        ("fencingToken", json!({ "N": "1.5" }), "fencingToken is the number \"1.5\""),
        ("fencingToken", json!({ "N": "9007199254740992" }), "fencingToken is the number \"9007199254740992\""),
        ("fencingToken", json!({ "S": "5" }), "fencingToken is the text \"5\""),
    ] {
        let broken = with(row(JAVA_RVN), name, value);
        // Where locks are kept under the name that Terraform's have.
        let in_our_table = with(broken.clone(), "LockID", json!({ "S": "invoice/42" }));
        for (kind, detail) in [broken, in_our_table].iter().flat_map(refusals) {
            assert_eq!(kind, DenialKind::CorruptRecord, "{detail}");
            assert!(detail.contains(what) && detail.contains("by hand") && detail.len() < 512, "{detail}");
        }
    }
    for name in ["leaseDuration", "recordVersionNumber"] {
        assert!(refusals(&without(row(JAVA_RVN), name))[0].1.contains(&alloc::format!("{name} is missing")));
    }
}

#[test]
fn nothing_waits_for_years() {
    let years = with(row(JAVA_RVN), "leaseDuration", json!({ "S": "315360000000" }));
    let (kind, detail) = denial(read(&years));
    assert_eq!(kind, DenialKind::CorruptRecord);
    assert!(detail.contains("by hand"), "{detail}");
    assert_eq!(denial(answered(acquire(), refuses(Some(&years)))).0, DenialKind::CorruptRecord);
    assert!(holding(&read(&released(years))).released, "nobody waits for what is free");
}

#[test]
fn values_of_others_are_shortened_and_shown_without_nonces() {
    let long = with(row(JAVA_RVN), "leaseDuration", json!({ "S": "é\n".repeat(300) }));
    let (_, detail) = denial(read(&long));
    assert!(detail.contains("...") && detail.len() < 512 && !detail.contains('\n'), "{detail}");
    let nonce = with(row(JAVA_RVN), "leaseDuration", json!({ "S": alloc::format!("{HEX}:0000000001") }));
    let (_, detail) = denial(read(&nonce));
    assert!(!detail.contains("5a5a5a5a"), "{detail}");
}
