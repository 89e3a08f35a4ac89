//! Settings of the environment and of a file.

use std::fs;

use crate::common::{Place, Ran, block};

fn ttl(ran: Ran) -> String {
    let shown = ran.expect(0).stdout;
    let line = shown.lines().find_map(|line| line.trim().strip_prefix("ttl")).expect("a line of the ttl");
    line.trim().to_owned()
}

/// `exec` of an `inspect` of its own lock.
const SHOW: [&str; 6] = ["exec", "job", "--", env!("CARGO_BIN_EXE_leasehold"), "inspect", "job"];

#[test]
fn an_option_counts_before_a_variable_and_that_before_the_file() {
    let place = Place::new();
    let with = |variable: Option<&str>, option: &[&str]| {
        let mut command = place.leasehold(&[&SHOW[..1], option, &SHOW[1..]].concat());
        Ran::from(command.envs(variable.map(|ttl| ("LEASEHOLD_TTL", ttl))).output().unwrap())
    };
    assert_eq!(ttl(with(None, &[])), "30 s");
    fs::create_dir(place.path("leasehold")).unwrap();
    fs::write(place.path("leasehold/config.toml"), "ttl = '40s'\nowner = 'from a file'\n").unwrap();
    assert_eq!(ttl(with(None, &[])), "40 s");
    assert!(with(None, &[]).stdout.contains("owner      from a file"));
    assert_eq!(ttl(with(Some("50s"), &[])), "50 s");
    assert_eq!(ttl(with(Some(""), &[])), "40 s");
    assert_eq!(ttl(with(Some("50s"), &["--ttl", "60s"])), "60 s");
    with(Some("50"), &[]).expect(64).says("LEASEHOLD_TTL is \"50\": the unit is missing");
}

#[test]
fn the_file_of_the_documentation_is_understood() {
    let place = Place::new();
    let file = block(include_str!("../../../docs/command.md"), "toml", "store = ");
    fs::write(place.path("settings"), file.replace("redis://locks.example.com", "sqlite:named.db")).unwrap();
    let mut command = place.leasehold(&SHOW);
    let shown = Ran::from(command.env("LEASEHOLD_CONFIG", "settings").env_remove("LEASEHOLD_STORE").output().unwrap());
    for part in ["owner      batch-1", "/named.db"] {
        assert!(shown.stdout.contains(part), "no {part:?} in {shown:?}");
    }
    assert_eq!(ttl(shown), "30 s");
}

#[test]
fn a_file_names_the_store() {
    let place = Place::new();
    fs::write(place.path("settings"), "store = 'sqlite:named.db'").unwrap();
    let with = |store: Option<&str>| {
        let mut command = place.leasehold(&["inspect", "job", "--json"]);
        command
            .env("LEASEHOLD_CONFIG", "settings")
            .env_remove("LEASEHOLD_STORE")
            .envs(store.map(|url| ("LEASEHOLD_STORE", url)));
        Ran::from(command.output().unwrap()).expect(1)
    };
    assert!(with(None).says_nothing_of("no store is named").json()["store"].as_str().unwrap().ends_with("/named.db"));
    assert!(with(Some("sqlite:other.db")).json()["store"].as_str().unwrap().ends_with("/other.db"));
}

#[test]
fn waiting_is_a_setting_too() {
    let place = Place::new();
    let _holder = place.start_job(&[], "echo > held; exec sleep 1000");
    place.wait_for_file_exists("held");
    let mut command = place.leasehold(&["exec", "job", "--", "touch", "ran"]);
    Ran::from(command.env("LEASEHOLD_WAIT", "0s").output().unwrap()).expect(75);
    let mut command = place.leasehold(&["exec", "--no-wait", "job", "--", "touch", "ran"]);
    Ran::from(command.env("LEASEHOLD_WAIT", "1h").output().unwrap()).expect(75);
    assert!(!place.path("ran").exists());
}

#[test]
fn wrong_files_are_told() {
    let place = Place::new();
    let with =
        |file: &str| Ran::from(place.leasehold(&["list"]).env("LEASEHOLD_CONFIG", file).output().unwrap()).expect(64);
    with("missing").says("LEASEHOLD_CONFIG names missing, which does not exist");
    fs::write(place.path("wrong"), "# mine\nurl = 'redis://:hunter2@host'\n").unwrap();
    with("wrong").says("wrong, line 2: unknown field `url`").says_nothing_of("hunter2");
}

#[test]
fn verbose_tells_of_the_lock() {
    let place = Place::new();
    let ran =
        place.run(&["exec", "-v", "--owner", "night shift", "job", "--", "printenv", "LEASEHOLD_TOKEN"]).expect(0);
    let token = ran.stdout.trim().to_owned();
    ran.says(&format!("\"job\": acquired as night shift, token {token}, ")).says("\"job\": released");
    let quiet = place.run(&["exec", "job", "--", "true"]).expect(0);
    assert_eq!(quiet.stderr, "");
}
