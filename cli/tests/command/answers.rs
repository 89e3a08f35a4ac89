//! `inspect`, `break` and `doctor`: for people and for machines.

use std::fs;

use crate::common::{Place, Started};

fn hold(place: &Place) -> Started {
    let job =
        place.start_job(&["--owner", "night shift", "--ttl", "1h"], "echo $LEASEHOLD_TOKEN > token; exec sleep 1000");
    place.wait_for_file("token");
    job
}

#[test]
fn inspect_shows_who_holds_a_lock() {
    let place = Place::new();
    let _holder = hold(&place);
    let token = place.read("token");
    let shown = place.run(&["inspect", "job"]).expect(0).stdout;
    for part in ["job is held", "night shift", token.trim(), "ttl        3600 s", "unless renewed"] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    assert!(!shown.contains("bytes"), "there is no data: {shown}");
    let since = shown.lines().find_map(|line| line.trim().strip_prefix("since")).unwrap().trim();
    let (age, date) = since.split_once(" ago (").unwrap();
    assert!(age.ends_with(" s") && date.starts_with("20") && date.ends_with("Z)"), "{since:?}");
}

#[test]
fn inspect_tells_machines_the_same() {
    let place = Place::new();
    let _holder = hold(&place);
    let json = place.run(&["inspect", "job", "--json"]).expect(0).json();
    assert_eq!((json["resource"].as_str(), json["held"].as_bool()), (Some("job"), Some(true)));
    assert_eq!((json["owner"].as_str(), json["ttl_ms"].as_u64()), (Some("night shift"), Some(3_600_000)));
    assert_eq!(json["token"].as_u64().unwrap().to_string(), place.read("token").trim());
    assert_eq!((json["data_bytes"].as_u64(), json["foreign"].as_bool()), (Some(0), Some(false)));
    let left = json["left_ms"].as_u64().unwrap();
    assert!(0 < left && left <= 3_600_000, "{left}");
    assert!(json["since_unix_ms"].as_u64().unwrap() > 1_700_000_000_000);
    assert!(json["since"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn a_free_lock_is_told_apart_by_status() {
    let place = Place::new();
    let text = place.run(&["inspect", "job"]).expect(1).stdout;
    let as_job = "  as a job   `leasehold runs job@` shows what ran; add the --every or --key of its `once` to see if it is done\n";
    assert_eq!(text, format!("job is free\n{as_job}  store      {}\n", place.store()));
    let json = place.run(&["inspect", "job", "--json"]).expect(1).json();
    assert_eq!(json, serde_json::json!({ "resource": "job", "held": false, "store": place.store() }));
}

#[test]
fn the_name_of_a_job_alone_tells_how_to_ask_and_what_is_known() {
    let place = Place::new();
    place.run(&["once", "nightly", "--every", "365d", "--", "true"]).expect(0);
    let asked = |more: &[&str]| place.run(&[&["inspect", "nightly"], more].concat());
    let text = asked(&[]).expect(1).stdout;
    assert!(text.starts_with("nightly is free\n") && text.contains("leasehold runs nightly@"), "{text}");
    let text = asked(&["--every", "365d"]).expect(0).stdout;
    assert!(text.contains(" is done\n"), "{text}");
    place.run(&["once", "hourly", "--cooldown", "1h", "--", "true"]).expect(0);
    let text = place.run(&["inspect", "hourly"]).expect(0).stdout;
    assert!(text.starts_with("hourly@ is done\n"), "{text}");
    let long = "n".repeat(1024);
    place.run(&["inspect", &long]).expect(1);
}

#[test]
fn a_relative_file_is_shown_by_its_whole_path() {
    let place = Place::new();
    let whole = format!("sqlite:{}", place.path("other.db").canonicalize().unwrap_or(place.path("other.db")).display());
    let _holder =
        place.start(&["exec", "--store", "sqlite:other.db", "job", "--", "sh", "-c", "echo > held; exec sleep 1000"]);
    place.wait_for_file_exists("held");
    let given = ["--store", "sqlite:other.db"];
    let run = |arguments: &[&str]| place.run(&[arguments, &given].concat());
    assert!(run(&["inspect", "job"]).expect(0).stdout.ends_with(&format!("  store      {whole}\n")));
    let file = whole.strip_prefix("sqlite:").unwrap();
    let ran = run(&["inspect", "job"]).says(&format!("the path of the store is relative, so it is {file}, "));
    assert_eq!(ran.stderr.matches("is relative").count(), 1, "{}", ran.stderr);
    let named = ["inspect", "job", "--store", whole.as_str()];
    assert_eq!(place.run(&named).expect(0).stderr, "");
    assert_eq!(run(&["inspect", "job", "--json"]).expect(0).json()["store"], whole.as_str());
    assert!(run(&["doctor"]).stdout.starts_with(&format!("store {whole}\n")));
    assert_eq!(run(&["doctor", "--json"]).json()["store"], whole.as_str());
}

#[test]
fn break_frees_a_lock_and_keeps_its_token() {
    let place = Place::new();
    let _holder = hold(&place);
    let before: u64 = place.read("token").trim().parse().unwrap();
    place.run(&["break", "job"]).expect(64).says("no terminal").says("--yes").says("night shift");
    assert!(place.is_held());
    let told = place.run(&["break", "job", "--yes"]).expect(0).stdout;
    assert!(told.contains("job is free now") && told.contains("night shift") && told.contains(&before.to_string()));
    let next = place.run(&["exec", "--no-wait", "job", "--", "printenv", "LEASEHOLD_TOKEN"]).expect(0).stdout;
    assert!(next.trim().parse::<u64>().unwrap() > before);
    assert_eq!(place.run(&["break", "job", "--yes"]).expect(1).stdout, "job is free already\n");
}

#[test]
fn break_tells_machines_whose_lock_it_was() {
    let place = Place::new();
    let _holder = hold(&place);
    let json = place.run(&["break", "job", "--yes", "--json"]).expect(0).json();
    assert_eq!((json["broken"].as_bool(), json["holder"]["owner"].as_str()), (Some(true), Some("night shift")));
    let json = place.run(&["break", "job", "--yes", "--json"]).expect(1).json();
    assert_eq!(json, serde_json::json!({ "resource": "job", "broken": false, "holder": null }));
}

#[test]
fn break_takes_the_lock_only_from_the_holder_that_is_named() {
    let place = Place::new();
    let _holder = hold(&place);
    let token = place.read("token").trim().to_owned();
    let other = (token.parse::<u64>().unwrap() + 1).to_string();
    for wrong in [
        &["--token", &other][..],
        &["--owner", "day shift"],
        &["--owner", "night"],
        &["--token", &other, "--owner", "night shift"],
        &["--token", &token, "--owner", "day*"],
    ] {
        // Without a terminal there is nothing to ask either.
        for yes in [&[][..], &["--yes"]] {
            let ran = place.run(&[&["break", "job", "--json"], wrong, yes].concat()).expect(2);
            assert_eq!((&ran.json()["broken"], &ran.json()["holder"]["owner"]), (&false.into(), &"night shift".into()));
            ran.says("not the holder that was named").says("night shift");
        }
        assert!(place.is_held(), "{wrong:?}");
    }
    place.run(&["break", "job", "--token", &token]).expect(64).says("--yes");
    place.run(&["break", "job", "--owner", ""]).expect(64).says("label is empty");
    place.run(&["break", "job", "--token", &token, "--owner", "night*", "--yes"]).expect(0);
    assert!(!place.is_held());
}

#[test]
fn doctor_finds_a_good_store_good() {
    let place = Place::new();
    let ran = place.run(&["doctor", "--json"]);
    let json = ran.json();
    let findings = json["findings"].as_array().unwrap();
    let worst = findings.iter().map(|finding| finding["severity"].as_str().unwrap()).collect::<Vec<_>>();
    // The machine may have a risk that this test does not know of, but the store works.
    let expected = if worst.contains(&"warning") { (1, "warning") } else { (0, "good") };
    assert!(!findings.is_empty() && !worst.contains(&"problem"), "{json:#}");
    assert_eq!((ran.status, json["worst"].as_str()), (expected.0, Some(expected.1)));
    assert_eq!(json["store"].as_str(), Some(place.store().as_str()));
    let text = place.run(&["doctor"]).expect(expected.0).stdout;
    for finding in findings {
        let (check, what) = (finding["check"].as_str().unwrap(), finding["what"].as_str().unwrap());
        assert!(text.contains(&format!("{check}: ")), "no {check} ({what}) in {text}");
    }
}

#[test]
fn doctor_reports_a_store_that_cannot_be_opened_with_advice() {
    let place = Place::new();
    fs::write(
        place.path("letter.txt"),
        "Dear reader, this is no database, and it is long enough to tell.\n".repeat(99),
    )
    .unwrap();
    for (url, what) in [
        ("sqlite:letter.txt", "not a SQLite database; name another file"),
        ("sqlite:/proc/nothing/locks.db", "does not exist; create it"),
        ("consul://host", "unknown scheme"),
        ("locks.db", "no scheme"),
    ] {
        let ran = place.run(&["doctor", "--store", url, "--json"]).expect(2);
        let json = ran.json();
        assert_eq!((json["worst"].as_str(), &json["findings"][0]["severity"]), (Some("problem"), &"problem".into()));
        assert_eq!(json["findings"][0]["check"], "store.open");
        assert!(json["findings"][0]["what"].as_str().unwrap().contains(what), "{json:#}");
        assert!(!json["findings"][0]["advice"].as_str().unwrap().is_empty(), "{json:#}");
        let shown = url.strip_prefix("sqlite:").map(|path| format!("sqlite:{}", place.path(path).display()));
        assert_eq!(json["store"].as_str(), shown.as_deref());
        let text = place.run(&["doctor", "--store", url]).expect(2).stdout;
        assert!(text.contains("problem  store.open: ") && text.contains(what) && text.contains("-> "), "{text}");
    }
    assert!(place.read("letter.txt").starts_with("Dear reader"));
}

#[test]
fn failures_are_reported_to_machines_too() {
    let place = Place::new();
    for command in ["inspect", "break"] {
        let ran = place.run(&[command, "", "--json"]).expect(64).says("no name");
        assert_eq!(ran.json()["error"]["kind"], "config");
        let ran = place.run(&[command, "job", "--store", "sqlite:/proc/nothing/locks.db", "--json"]);
        let kind = ran.json()["error"]["kind"].as_str().unwrap().to_owned();
        assert!(matches!((kind.as_str(), ran.status), ("store_refused", 77) | ("store_unavailable", 69)), "{ran:?}");
        assert!(ran.stderr.contains(ran.json()["error"]["message"].as_str().unwrap()));
    }
}

#[test]
fn a_missing_reader_is_no_failure() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = place.leasehold(&["doctor"]);
    let status = command.stdout(writer).status().unwrap();
    assert!(matches!(status.code(), Some(0 | 1)), "{status}");
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let ran = crate::common::Ran::from(
        place
            .leasehold(&["inspect", "job"])
            .stdout(full)
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
            .wait_with_output()
            .unwrap(),
    );
    ran.expect(74).says("cannot write the answer");
}
