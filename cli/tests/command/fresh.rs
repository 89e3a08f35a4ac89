//! Fresh processes that meet the lock of a dead holder, where only those who watch its record can tell that it is dead.

use std::any::Any;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::PathBuf;
use std::process::Command;

use crate::common::{Place, Ran, Started, wait_for};
use leasehold_servers as servers;
use rustix::process::{Signal, geteuid};
use serde_json::{Value, json};

struct Rig {
    place: Place,
    url: String,
    _server: Box<dyn Any>,
}

impl Rig {
    fn on(url: String, server: impl Any) -> Self {
        Self { place: Place::new(), url, _server: Box::new(server) }
    }

    fn dynamodb() -> Self {
        let (server, table) = (servers::dynamodb::Server::shared(), servers::dynamodb::table_name());
        let url = format!("dynamodb://{table}?region={}&endpoint={}", servers::dynamodb::REGION, server.endpoint());
        let rig = Self::on(url, server);
        rig.run(&["table", "create"]).expect(0);
        rig
    }

    fn etcd() -> Self {
        let server = servers::etcd::Server::start();
        Self::on(server.url(), server)
    }

    fn objects() -> Self {
        let server = servers::objects::Server::start(servers::objects::Api::AzureBlob);
        Self::on(server.url("p"), server)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.leasehold(arguments);
        command.env("LEASEHOLD_STORE", &self.url).env("AZURE_STORAGE_KEY", servers::objects::AZURE_KEY);
        command.env("AWS_ACCESS_KEY_ID", servers::dynamodb::ACCESS_KEY_ID).env("AWS_SECRET_ACCESS_KEY", "hunter2-fish");
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// A job that holds the lock until it is killed.
    fn hold(&self, words: &[&str], name: &str) -> Started {
        let script = format!("echo > held-{name}; exec sleep 1000");
        let holder = Started::new(&mut self.command(&[words, &[name, "--", "sh", "-c", &script]].concat()));
        self.place.wait_for_file_exists(&format!("held-{name}"));
        holder
    }

    /// The lock of a holder that was killed.
    fn abandon(&self, words: &[&str], name: &str) {
        let holder = self.hold(words, name);
        holder.signal(Signal::KILL);
        assert_eq!(holder.wait().status, 1_000 + Signal::KILL.as_raw());
    }

    fn exec(&self, options: &[&str], name: &str) -> Ran {
        self.run(&[&["exec"], options, &[name, "--", "true"]].concat())
    }

    fn once(&self, options: &[&str], name: &str) -> Ran {
        self.run(&[&["once", "--key", "monday"], options, &[name, "--", "sh", "-c", "echo >> ran"]].concat())
    }

    /// The file that was kept of the lock.
    fn kept(&self) -> Option<PathBuf> {
        let mut files = fs::read_dir(self.place.path("seen")).ok()?.map(|entry| entry.unwrap().path());
        files.find(|path| path.extension().is_some_and(|end| end == "json"))
    }

    fn observation(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.kept().unwrap()).unwrap()).unwrap()
    }
}

/// Gives up at once, and keeps what it has seen.
const QUICK: [&str; 4] = ["--no-watch", "--no-wait", "--observations", "seen"];

fn one_process_takes_over_from_a_killed_one(rig: &Rig) {
    for (name, wait) in [("a", &["--no-wait"][..]), ("b", &["--wait", "0.1s"])] {
        rig.abandon(&["exec", "--ttl", "2s"], name);
        let quick = rig.exec(&[wait, &["--no-watch"]].concat(), name).expect(75);
        quick.says("unchanged for 0.").says(" s of its ttl of 2.0 s");
        rig.exec(wait, name).expect(0);
    }
    rig.abandon(&["exec", "--ttl", "2s", "--permits", "1"], "c");
    rig.exec(&["--no-wait", "--no-watch", "--permits", "1"], "c").expect(75);
    rig.exec(&["--no-wait", "--permits", "1"], "c").expect(0);
}

fn a_job_whose_runner_was_killed_is_done_by_the_next(rig: &Rig) {
    rig.abandon(&["once", "--key", "monday", "--ttl", "2s"], "job");
    rig.once(&["--no-watch"], "job").expect(75).says("seen unchanged for 0.");
    assert_eq!(rig.place.read("ran"), "");
    rig.once(&[], "job").expect(0);
    rig.once(&[], "job").expect(0).says("done already");
    assert_eq!(rig.place.read("ran"), "\n");
}

fn a_living_holder_is_seen_to_live(rig: &Rig) {
    let mut holder = rig.hold(&["exec", "--ttl", "3s"], "job");
    let mut runner = rig.hold(&["once", "--key", "monday", "--ttl", "3s"], "run");
    rig.exec(&["--no-wait"], "job").expect(75).says("seen to change, and since then unchanged for 0.");
    rig.exec(&["--wait", "0.1s"], "job").expect(75).says("not free within the wait").says("seen to change");
    rig.once(&[], "run").expect(75).says("somebody else runs it").says("seen to change");
    rig.exec(&["--no-wait", "--no-watch"], "job").expect(75).says("seen unchanged for 0.");
    assert!(holder.runs() && runner.runs());
}

fn short_processes_take_over_together(rig: &Rig) {
    rig.abandon(&["exec", "--ttl", "2s"], "job");
    rig.exec(&QUICK, "job").expect(75);
    wait_for("a takeover", || match rig.exec(&QUICK, "job").status {
        0 => true,
        75 => false,
        other => panic!("ended with {other}"),
    });
    rig.abandon(&["once", "--key", "monday", "--ttl", "2s"], "run");
    let quick = ["--no-watch", "--observations", "seen"];
    wait_for("a takeover", || rig.once(&quick, "run").status == 0);
    assert_eq!(rig.place.read("ran"), "\n");
}

fn short_processes_never_take_over_from_a_living_holder(rig: &Rig) {
    let mut holder = rig.hold(&["exec", "--ttl", "1s"], "job");
    let mut versions = Vec::new();
    // After many renewals, the first sights have been for much longer than the ttl.
    wait_for("renewals", || {
        rig.exec(&QUICK, "job").expect(75);
        versions.push(rig.observation()["version"].clone());
        versions.dedup();
        versions.len() > 6
    });
    assert!(holder.runs());
}

fn what_is_wrong_with_a_file_makes_it_absent(rig: &Rig) {
    rig.abandon(&["exec", "--ttl", "10s"], "job");
    rig.exec(&QUICK, "job").expect(75);
    let (file, good) = (rig.kept().unwrap(), rig.observation());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(rig.place.path("seen")).unwrap().permissions().mode() & 0o777, 0o700);
    rig.exec(&QUICK, "job").expect(75);
    assert_eq!(rig.observation(), good, "the first sight is kept");
    let long_ago = |by_boot: i64, by_wall: i64| {
        let mut seen = good.clone();
        seen["since_boot_ns"] = json!(good["since_boot_ns"].as_i64().unwrap() - by_boot * 1_000_000_000);
        seen["since_unix_ms"] = json!(good["since_unix_ms"].as_i64().unwrap() - by_wall * 1_000);
        seen
    };
    let with = |name: &str, value: &str| {
        let mut seen = long_ago(20, 20);
        seen[name] = json!(value);
        seen.to_string()
    };
    let other = "0123456789abcdef0123456789abcdef";
    let texts = [
        long_ago(20, 0).to_string(),
        long_ago(0, 20).to_string(),
        long_ago(20, -1_000).to_string(),
        long_ago(-1_000, 20).to_string(),
        with("boot", other),
        with("version", other),
        with("version", "short"),
        with("store", "etcd://elsewhere"),
        with("resource", "another"),
        "garbage".to_owned(),
        String::new(),
    ];
    for text in &texts {
        fs::write(&file, text).unwrap();
        rig.exec(&QUICK, "job").expect(75);
        assert_eq!(rig.observation()["version"], good["version"], "{text} is replaced");
    }
    let trusted = || fs::write(&file, long_ago(20, 20).to_string()).unwrap();
    let set_mode = |path: &PathBuf, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    trusted();
    set_mode(&file, 0o622);
    rig.exec(&QUICK, "job").expect(75);
    let target = rig.place.path("elsewhere.json");
    fs::write(&target, long_ago(20, 20).to_string()).unwrap();
    fs::remove_file(&file).unwrap();
    symlink(&target, &file).unwrap();
    rig.exec(&QUICK, "job").expect(75);
    assert!(fs::symlink_metadata(&file).unwrap().is_file(), "the link is replaced");
    let folder = rig.place.path("seen");
    trusted();
    set_mode(&folder, 0o777);
    rig.exec(&QUICK, "job").expect(75).says("others may write to it");
    set_mode(&folder, 0o700);
    if geteuid().is_root() {
        for path in [&file, &folder] {
            chown(path, Some(65_534), None).unwrap();
            rig.exec(&QUICK, "job").expect(75);
            chown(path, Some(0), None).unwrap();
            trusted();
        }
    } else {
        #[allow(clippy::print_stderr, reason = "a skipped test is told on the terminal")]
        {
            eprintln!("not tested: only root can give a file to another user");
        }
    }
    // Nothing is wrong with it.
    trusted();
    rig.exec(&QUICK, "job").expect(0);
}

macro_rules! on {
    ($($store:ident: $($test:ident)*;)*) => {
        $(mod $store {
            $(#[test]
            fn $test() {
                super::$test(&super::Rig::$store());
            })*
        })*
    };
}

on! {
    dynamodb: one_process_takes_over_from_a_killed_one a_job_whose_runner_was_killed_is_done_by_the_next
        a_living_holder_is_seen_to_live short_processes_take_over_together
        short_processes_never_take_over_from_a_living_holder;
    etcd: one_process_takes_over_from_a_killed_one a_job_whose_runner_was_killed_is_done_by_the_next
        a_living_holder_is_seen_to_live short_processes_take_over_together
        short_processes_never_take_over_from_a_living_holder what_is_wrong_with_a_file_makes_it_absent;
    objects: one_process_takes_over_from_a_killed_one a_job_whose_runner_was_killed_is_done_by_the_next
        a_living_holder_is_seen_to_live short_processes_take_over_together
        short_processes_never_take_over_from_a_living_holder;
}
