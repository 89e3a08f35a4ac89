//! Tables of a real DynamoDB Local: making, showing and checking them.

use std::process::Command;

use crate::common::{Place, Ran, Started, block};
use leasehold_servers::answers::{Reply, Server as Answers};
use leasehold_servers::dynamodb::{ACCESS_KEY_ID, REGION, Server, table_name};
use rustix::process::Signal;
use serde_json::json;

struct Rig {
    place: Place,
    server: Server,
    table: String,
}

impl Rig {
    fn start() -> Self {
        Self { place: Place::new(), server: Server::shared(), table: table_name() }
    }

    fn url(&self) -> String {
        format!("dynamodb://{}?region={REGION}&endpoint={}", self.table, self.server.endpoint())
    }

    /// A command on the table, which the environment names.
    fn run(&self, parameters: &str, arguments: &[&str]) -> Ran {
        Ran::from(self.command(parameters, arguments).output().unwrap())
    }

    fn command(&self, parameters: &str, arguments: &[&str]) -> Command {
        let mut command = self.place.leasehold(arguments);
        command.env("LEASEHOLD_STORE", self.url() + parameters);
        command.env("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID).env("AWS_SECRET_ACCESS_KEY", "hunter2-fish");
        command
    }
}

#[test]
fn a_table_is_made_shown_and_used() {
    let rig = Rig::start();
    rig.run("", &["table", "describe"]).expect(77).says("leasehold table create");
    let made = rig.run("", &["store", "create"]).expect(0).stdout;
    for part in ["the table was created", "key (S)", "by request", "active", "within one Region"] {
        assert!(made.contains(part), "no {part:?} in {made}");
    }
    let again = rig.run("", &["table", "create", "--tag", "team=billing"]).expect(0).stdout;
    assert!(again.contains("exists already"), "{again}");
    let json = rig.run("", &["store", "show", "--json"]).expect(0).json();
    assert_eq!((&json["name"], &json["status"]), (&json!(rig.table), &json!("active")));
    assert_eq!(
        (&json["keys"], &json["billing"]),
        (&json!([{ "name": "key", "type": "S" }]), &json!({ "mode": "on_demand" }))
    );
    assert_eq!((&json["replicas"], &json["consistency"], &json["expires"]), (&json!([]), &json!(null), &json!(null)));
    assert!(json["arn"].as_str().unwrap().ends_with(&rig.table), "{json}");
    rig.run("", &["exec", "job", "--", "true"]).expect(0);
    rig.run("&key=LockID", &["table", "create"]).expect(77).says("primary key");
}

#[test]
fn the_first_use_of_the_documentation_works() {
    let rig = Rig::start();
    let page = include_str!("../../../docs/dynamodb.md");
    let lines = block(page, "console", "$ export AWS_PROFILE").replace("dynamodb://locks?region=eu-west-1", &rig.url());
    // In the place of a profile.
    let keys = format!("AWS_ACCESS_KEY_ID={ACCESS_KEY_ID} AWS_SECRET_ACCESS_KEY=hunter2-fish");
    let ran = rig.place.run_lines(&format!("set -e\n{}", lines.replace("AWS_PROFILE=ops", &keys))).expect(0);
    assert!(ran.stdout.ends_with("report written\n"), "{ran:?}");
}

#[test]
fn breaking_the_session_of_a_killed_process_frees_its_lock() {
    let rig = Rig::start();
    rig.run("", &["table", "create"]).expect(0);
    let script = "echo > held; exec sleep 1000";
    let hold = ["exec", "--session", "ci-42", "--ttl", "1h", "one", "--", "sh", "-c", script];
    let job = Started::new(&mut rig.command("", &hold));
    rig.place.wait_for_file_exists("held");
    job.signal(Signal::KILL);
    assert_eq!(job.wait().status, 1_000 + Signal::KILL.as_raw());
    let listed = rig.run("", &["list"]).expect(0).stdout;
    assert!(listed.contains("session ci-42") && !listed.contains("session:ci-42"), "{listed}");
    assert!(rig.run("", &["sessions"]).expect(0).stdout.starts_with("ci-42: 1 lock, since "));
    rig.run("", &["exec", "--no-wait", "--no-watch", "one", "--", "true"]).expect(75);
    rig.run("", &["break", "--yes", "session:ci-42"]).expect(0);
    rig.run("", &["exec", "--wait", "0s", "one", "--", "true"]).expect(0);
    rig.run("", &["sessions"]).expect(1).says("no client has a session");
}

#[test]
fn a_fresh_process_without_a_wait_takes_over_from_a_killed_one() {
    let rig = Rig::start();
    rig.run("", &["table", "create"]).expect(0);
    let (lock, run) = (["exec", "--ttl", "3s"], ["once", "--ttl", "3s", "--key", "monday"]);
    let start = |options: &[&str], script: &str| {
        Started::new(&mut rig.command("", &[options, &["job", "--", "sh", "-c", script]].concat()))
    };
    let holder = start(&lock, "echo > held; exec sleep 1000");
    let runner = start(&run, "echo > runs; exec sleep 1000");
    rig.place.wait_for_file_exists("held");
    rig.place.wait_for_file_exists("runs");
    let fresh = |options: &[&str], more: &[&str]| rig.run("", &[options, more, &["job", "--", "true"]].concat());
    // While they live nobody takes over.
    fresh(&lock, &["--no-wait"]).expect(75);
    fresh(&run, &[]).expect(75);
    for killed in [holder, runner] {
        killed.signal(Signal::KILL);
        assert_eq!(killed.wait().status, 1_000 + Signal::KILL.as_raw());
    }
    fresh(&lock, &["--no-wait", "--no-watch"]).expect(75);
    fresh(&run, &["--no-watch"]).expect(75);
    fresh(&lock, &["--no-wait"]).expect(0);
    fresh(&run, &[]).expect(0);
}

#[test]
fn a_new_table_is_as_it_was_asked_for() {
    let rig = Rig::start();
    let parameters = "&key=LockID&sort_key=kind&expires=forgotten";
    let options = ["table", "create", "--json", "--read-units", "7", "--write-units", "3"];
    let json = rig.run(parameters, &options).expect(0).json();
    assert_eq!((&json["result"], &json["expires"]), (&json!("made"), &json!("forgotten")));
    assert_eq!(json["billing"], json!({ "mode": "provisioned", "read_units": 7, "write_units": 3 }));
    assert_eq!(json["keys"], json!([{ "name": "LockID", "type": "S" }, { "name": "kind", "type": "S" }]));
    let json = rig.run(parameters, &["table", "create", "--json"]).expect(0).json();
    assert_eq!((&json["result"], &json["billing"]["read_units"]), (&json!("exists"), &json!(7)));
    let text = rig.run(parameters, &["table", "describe"]).expect(0).stdout;
    assert!(text.contains("7 read units and 3 write units") && text.contains("expires      forgotten"), "{text}");
}

/// DynamoDB Local knows no tags.
#[test]
fn tags_are_asked_for_as_they_were_given() {
    let place = Place::new();
    let server = Answers::start(|_| {
        let keys = json!([{ "AttributeName": "key", "KeyType": "HASH" }]);
        let types = json!([{ "AttributeName": "key", "AttributeType": "S" }]);
        let table = json!({
            "TableName": "locks", "TableStatus": "ACTIVE", "KeySchema": keys, "AttributeDefinitions": types,
        });
        Reply::new(200, json!({ "Table": table }).to_string())
    });
    let url = format!("dynamodb://locks?region={REGION}&endpoint={}", server.url());
    let mut command = place.leasehold(&["table", "create", "--store", &url, "--tag", "a=b=c", "--tag", "d="]);
    command.env("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID).env("AWS_SECRET_ACCESS_KEY", "hunter2-fish");
    Ran::from(command.output().unwrap()).expect(0);
    let asked = server.asked();
    let is_creation = |target: &str| target.ends_with("CreateTable");
    let creation = asked.iter().find(|asked| asked.header("x-amz-target").is_some_and(is_creation)).unwrap();
    let body: serde_json::Value = serde_json::from_slice(&creation.body).unwrap();
    assert_eq!(body["Tags"], json!([{ "Key": "a", "Value": "b=c" }, { "Key": "d", "Value": "" }]));
}

#[test]
fn a_command_finds_the_table_by_its_own_keys() {
    let rig = Rig::start();
    let parameters = "&key=LockID&sort_key=kind";
    rig.run(parameters, &["table", "create"]).expect(0);
    let inner = ["exec", "outer", "--", env!("CARGO_BIN_EXE_leasehold"), "exec", "inner", "--", "echo", "done"];
    assert_eq!(rig.run(parameters, &inner).expect(0).stdout, "done\n");
}

#[test]
fn errors_of_arguments_show_the_right_form() {
    let place = Place::new();
    let url = "dynamodb://locks?region=eu-west-1&endpoint=http://127.0.0.1:1";
    for (options, wrong) in [
        (&["--read-units", "5"][..], "--write-units"),
        (&["--write-units", "5"], "--read-units"),
        (&["--read-units", "0", "--write-units", "5"], "1.."),
        (&["--tag", "team"], "NAME=VALUE"),
        (&["--tag", "=x"], "NAME=VALUE"),
        (&["--tag", "a=1", "--tag", "a=2"], "given twice"),
        (&["--store", "sqlite:a.db"], "2 stores"),
    ] {
        place.run(&[&["table", "create", "--store", url], options].concat()).expect(64).says(wrong);
    }
    for action in ["create", "describe"] {
        place
            .run(&["table", action, "--store", "sqlite:a.db"])
            .expect(64)
            .says("sqlite needs no table: only dynamodb and postgres have one");
        let failed = place.run(&["table", action, "--store", "redis://127.0.0.1:1", "--json"]).expect(64);
        assert_eq!(failed.json()["error"]["kind"], "config");
    }
    assert!(!place.path("a.db").exists());
}

#[test]
fn doctor_shows_the_identity_and_no_key() {
    let rig = Rig::start();
    rig.run("", &["doctor"]).expect(2).says_nothing_of("hunter2-fish");
    rig.run("", &["table", "create"]).expect(0);
    let ran = rig.run("", &["doctor"]).expect(0).says_nothing_of("hunter2-fish").says_nothing_of(ACCESS_KEY_ID);
    for part in ["good     dynamodb.keys: of the environment", "good     dynamodb.rights: rows can be read and written"]
    {
        assert!(ran.stdout.contains(part), "no {part:?} in {}", ran.stdout);
    }
    let json = rig.run("&expires=forgotten", &["doctor", "--json"]).expect(1).json();
    let findings = json["findings"].as_array().unwrap();
    assert!(findings.iter().any(|one| one["check"] == "dynamodb.expiry" && one["severity"] == "warning"), "{json}");
}
