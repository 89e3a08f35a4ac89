//! Wrong arguments say what would be right, and help says the rest.

use crate::common::Place;

#[test]
fn errors_of_durations_show_the_right_form() {
    let place = Place::new();
    for option in ["--ttl", "--wait", "--max-hold"] {
        for (value, wrong) in [
            ("30", "the unit is missing"),
            ("-5s", "cannot be negative"),
            ("NaN", "not a duration"),
            ("", "not a duration"),
            ("5parsecs", "\"parsecs\" is not a unit"),
            ("99999999999999999999s", "too long; the longest is 876000h"),
        ] {
            let ran =
                place.run(&["exec", option, value, "job", "--", "touch", "ran"]).expect(64).says(wrong).says(option);
            assert!(ran.stderr.contains("30s") || wrong.contains("876000h"), "{}", ran.stderr);
        }
    }
    assert!(!place.path("ran").exists());
}

#[test]
fn settings_out_of_bounds_name_the_bound() {
    let place = Place::new();
    for (options, bound) in [
        (["--ttl", "50ms"], "100 ms"),
        (["--ttl", "0s"], "100 ms"),
        (["--ttl", "87600h"], "86400 s"),
        (["--max-hold", "10s"], "30 s"),
    ] {
        place.run(&[&["exec"], &options[..], &["job", "--", "touch", "ran"]].concat()).expect(64).says(bound);
    }
    let long = "x".repeat(257);
    place.run(&["exec", "--owner", &long, "job", "--", "touch", "ran"]).expect(64).says("256");
    assert!(!place.path("ran").exists());
}

#[test]
fn bad_names_are_refused_by_every_command() {
    let place = Place::new();
    let long = "x".repeat(1_025);
    for (name, wrong) in
        [("", "no name"), (long.as_str(), "1024"), ("a\nb", "control character"), ("\u{7f}", "control")]
    {
        place.run(&["exec", name, "--", "touch", "ran"]).expect(64).says(wrong);
        place.run(&["inspect", name]).expect(64).says(wrong);
        place.run(&["break", name, "--yes"]).expect(64).says(wrong);
    }
    assert!(!place.path("ran").exists());
}

#[test]
fn bad_urls_say_which_part_is_wrong() {
    let place = Place::new();
    for (url, wrong) in [
        ("locks.db", "no scheme"),
        ("sqlite:", "no path"),
        ("consul://host", "unknown scheme \"consul\""),
        ("", "--store is empty"),
        (" ", "--store is empty"),
    ] {
        place.run(&["exec", "--store", url, "job", "--", "touch", "ran"]).expect(64).says(wrong);
        place.run(&["--store", url, "inspect", "job"]).expect(64).says(wrong);
    }
    let ran = crate::common::Ran::from(
        place.leasehold(&["inspect", "job"]).env("LEASEHOLD_STORE", "consul://host").output().unwrap(),
    );
    ran.expect(64).says("unknown scheme");
    assert!(!place.path("ran").exists());
}

#[test]
fn several_stores_are_taken_wherever_they_stand() {
    let place = Place::new();
    let (a, b) = ("sqlite:a.db", "sqlite:b.db");
    for arguments in [
        ["--store", a, "--store", b, "inspect", "job"],
        ["--store", a, "inspect", "--store", b, "job"],
        ["inspect", "--store", a, "--store", b, "job"],
    ] {
        place.run(&arguments).expect(1);
        assert!(place.path("a.db").exists() && place.path("b.db").exists());
        std::fs::remove_file(place.path("a.db")).unwrap();
        std::fs::remove_file(place.path("b.db")).unwrap();
    }
    place.run(&["inspect", "--store", a, "job", "--store", a]).expect(64).says("named twice");
}

#[test]
fn the_store_is_taken_from_the_option_then_the_environment_then_the_state_folder() {
    let place = Place::new();
    let exists = |name: &str| place.path(name).exists();
    let run = |arguments: &[&str], environment: Option<&str>| {
        let mut command = place.leasehold(arguments);
        command.env_remove("LEASEHOLD_STORE").envs(environment.map(|url| ("LEASEHOLD_STORE", url)));
        crate::common::Ran::from(command.output().unwrap()).expect(0);
    };
    run(&["exec", "job", "--store", "sqlite:given.db", "--", "true"], Some("sqlite:environment.db"));
    assert!(exists("given.db") && !exists("environment.db"));
    run(&["exec", "job", "--", "true"], Some("sqlite:environment.db"));
    assert!(exists("environment.db") && !exists("leasehold/locks.db"));
    run(&["exec", "job", "--", "true"], None);
    assert!(exists("leasehold/locks.db"));
}

#[test]
fn a_store_that_is_given_but_empty_is_not_the_default() {
    let place = Place::new();
    let mut command = place.leasehold(&["exec", "job", "--", "touch", "ran"]);
    let ran =
        crate::common::Ran::from(command.env("LEASEHOLD_STORE", "").current_dir(place.path(".")).output().unwrap());
    ran.expect(64).says("LEASEHOLD_STORE is set, but empty");
    place.run(&["exec", "--store", "", "job", "--", "touch", "ran"]).expect(64).says("--store is empty");
    assert!(!place.path("leasehold/locks.db").exists() && !place.path("ran").exists());
}

#[test]
fn locks_in_the_state_folder_are_warned_of_and_can_be_forbidden() {
    let place = Place::new();
    let run = |arguments: &[&str], demand: &str| {
        let mut command = place.leasehold(arguments);
        crate::common::Ran::from(
            command.env_remove("LEASEHOLD_STORE").env("LEASEHOLD_REQUIRE_STORE", demand).output().unwrap(),
        )
    };
    let file = place.path("leasehold/locks.db");
    for command in [&["exec", "job", "--", "touch", "ran"][..], &["inspect", "job"], &["break", "job", "--yes"]] {
        run(command, "1").expect(64).says("no store is named").says("LEASEHOLD_REQUIRE_STORE");
    }
    run(&["doctor"], "1").expect(2);
    run(&["inspect", "job"], "yes").expect(64).says("may be 1");
    assert!(!place.path("ran").exists() && !file.exists());
    for demand in ["", "0"] {
        let ran = run(&["exec", "job", "--", "touch", "ran"], demand).expect(0);
        assert_eq!(ran.stderr.matches("no store is named").count(), 1, "{}", ran.stderr);
        ran.says(&file.display().to_string()).says("on this machine");
    }
    let ran = run(&["inspect", "job", "--json"], "").expect(1).says("no store is named");
    assert_eq!(ran.json()["held"], false);
    // The command of `exec` is told the store by name.
    let inner = ["exec", "job", "--", env!("CARGO_BIN_EXE_leasehold"), "inspect", "job"];
    assert_eq!(run(&inner, "1").expect(64).stdout, "");
    assert_eq!(run(&inner, "").expect(0).stderr.matches("no store is named").count(), 1);
}

#[test]
fn warnings_while_connecting_are_printed_and_answers_stay_complete() {
    let place = Place::new();
    let two = ["--store", "sqlite:a.db", "--store", "sqlite:b.db"];
    for (command, status) in [(&["inspect", "job", "--json"][..], 1), (&["exec", "--no-wait", "job", "--", "true"], 69)]
    {
        let ran = place.run(&[&two, command].concat()).expect(status);
        assert_eq!(ran.stderr.matches("a quorum of 2 nodes survives no failure").count(), 1, "{}", ran.stderr);
        assert!(ran.stderr.lines().all(|line| line.starts_with("leasehold: ")), "{}", ran.stderr);
        assert!(command[0] == "exec" || ran.json()["held"] == false);
    }
}

#[test]
fn a_command_needs_its_dashes() {
    let place = Place::new();
    place.run(&["exec", "job", "touch", "ran"]).expect(64).says("write `--` before the command").says("-- <COMMAND>");
    place.run(&["exec", "job"]).expect(64).says("<COMMAND>");
    place.run(&["exec", "job", "--tll"]).expect(64).says_nothing_of("before the command");
    place.run(&["exec", "--no-wait", "--wait", "5s", "job", "--", "touch", "ran"]).expect(64).says("--no-wait");
    place.run(&["exec", "--busy-status", "256", "job", "--", "touch", "ran"]).expect(64).says("256");
    place
        .run(&["exec", "--on-lost", "cry", "job", "--", "touch", "ran"])
        .expect(64)
        .says("[possible values: term, ignore]");
    place.run(&[]).expect(64);
    assert!(!place.path("ran").exists());
    place.run(&["exec", "job", "--", "sh", "-c", "test \"$1\" = --store", "sh", "--store"]).expect(0);
}

#[test]
fn help_teaches() {
    let place = Place::new();
    let help = |command: &str| place.run(&[command, "--help"]).expect(0).stdout;
    let main = place.run(&["--help"]).expect(0).stdout;
    for part in [
        "fencing token",
        "LEASEHOLD_STORE",
        "LEASEHOLD_MAX_TTL",
        "LEASEHOLD_QUORUM_ID",
        "500ms, 30s",
        "Examples:",
        "Exit status",
        "69",
        "77",
        "completions",
    ] {
        assert!(main.contains(part), "no {part:?} in {main}");
    }
    for (command, parts) in [
        (
            "exec",
            &["Examples:", "75", "76", "126", "127", "128 + N", "Not guaranteed:", "LEASEHOLD_TOKEN", "Ctrl-Z"][..],
        ),
        (
            "once",
            &[
                "Examples:",
                "0  the job was done before",
                "73",
                "75",
                "76",
                "128+N",
                "Not guaranteed:",
                "--every 1d",
                "--forget",
            ],
        ),
        ("inspect", &["0  the lock is held", "1  the lock is free", "left_ms"]),
        ("break", &["last resort", "0  ", "1  ", "2  ", "--yes"]),
        ("doctor", &["0  all checks are good", "1  warnings", "2  a problem"]),
        ("completions", &["bash-completion"]),
    ] {
        let shown = help(command);
        for part in parts {
            assert!(shown.contains(part), "no {part:?} in {shown}");
        }
    }
    assert!(place.run(&["--version"]).expect(0).stdout.starts_with("leasehold "));
}

#[test]
fn completions_are_scripts_for_each_shell() {
    let place = Place::new();
    for (shell, part) in [("bash", "complete -F"), ("zsh", "#compdef leasehold"), ("fish", "complete -c leasehold")] {
        let script = place.run(&["completions", shell]).expect(0).stdout;
        assert!(script.contains(part) && script.contains("on-lost"), "{shell}");
    }
    place.run(&["completions", "abacus"]).expect(64).says("possible values");
}

#[test]
fn a_word_that_is_no_command_names_the_one_that_is_meant() {
    let place = Place::new();
    for (word, meant) in [("lock", "`exec`"), ("run", "`exec` or `once`"), ("unlock", "`break`"), ("ls", "`list`")] {
        place.run(&[word, "job", "true"]).expect(64).says(&format!("did you mean {meant}?")).says("leasehold --help");
    }
    place.run(&["inspekt", "job"]).expect(64).says("inspect");
    let other = place.run(&["nonsense", "job"]).expect(64);
    assert!(!other.stderr.contains("did you mean"), "{}", other.stderr);
}

#[test]
fn a_store_without_a_table_says_so_under_both_names() {
    let place = Place::new();
    for command in [["store", "create"], ["table", "create"], ["store", "show"], ["table", "describe"]] {
        place.run(&command).expect(64).says("sqlite needs no table: only dynamodb and postgres have one");
    }
    let url = "postgres://app@db/prod";
    let sql = place.run(&["table", "show", "--store", url]).expect(0).stdout;
    assert!(sql.contains("CREATE TABLE"), "{sql}");
    let json = place.run(&["store", "show", "--json", "--store", url]).expect(0).json();
    assert_eq!(json["sql"], sql);
    place.run(&["store", "create", "--tag", "a=b", "--store", url]).expect(64).says("are for tables of DynamoDB");
}
