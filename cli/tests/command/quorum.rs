//! Several stores: `quorum init`, `status` and `join`, and what the other commands make of them.

use std::process::Command;

use crate::common::{Place, Ran, Started};
use leasehold_servers::redis::{Data, Server};
use serde_json::{Value, json};

struct Rig {
    place: Place,
    servers: Vec<Server>,
    max_ttl: &'static str,
}

impl Rig {
    /// With ttls that are over soon.
    fn start() -> Self {
        Self::with_max_ttl("2s")
    }

    fn with_max_ttl(max_ttl: &'static str) -> Self {
        Self { place: Place::new(), servers: (0..3).map(|_| Server::start()).collect(), max_ttl }
    }

    /// A command on all nodes.
    fn command(&self, arguments: &[&str]) -> Command {
        let urls: Vec<String> = self.servers.iter().map(Server::url).collect();
        let mut all = Vec::new();
        for url in &urls {
            all.extend(["--store", url.as_str()]);
        }
        all.extend(["--max-ttl", self.max_ttl]);
        all.extend(arguments);
        self.place.leasehold(&all)
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    fn standings(&self, status: i32) -> Vec<String> {
        let json = self.run(&["quorum", "status", "--json"]).expect(status).json();
        let nodes = json["nodes"].as_array().unwrap();
        nodes.iter().map(|node| node["standing"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn a_quorum_is_made_once_and_shown() {
    let rig = Rig::start();
    let shown = rig.run(&["quorum", "status"]).expect(1).stdout;
    assert!(shown.contains("0 of 3 nodes vote, 2 are needed: no lock can be acquired now"), "{shown}");
    assert!(shown.contains("standing   unmarked") && shown.contains("quorum init"), "{shown}");
    let made = rig.run(&["quorum", "init"]).expect(0).stdout;
    assert!(made.contains("3 nodes are members now, max_ttl 2 s"), "{made}");
    assert!(rig.run(&["quorum", "init"]).expect(0).stdout.contains("all nodes are members already"));
    let shown = rig.run(&["quorum", "status"]).expect(0).stdout;
    assert!(shown.contains("3 of 3 nodes vote") && shown.contains("meaning    votes"), "{shown}");
    let json = rig.run(&["quorum", "status", "--json"]).expect(0).json();
    assert_eq!(
        (json["max_ttl_ms"].as_u64(), json["majority"].as_u64(), json["voting"].as_u64()),
        (Some(2_000), Some(2), Some(3))
    );
    let node = &json["nodes"][0];
    assert_eq!(
        (node["answers"].as_bool(), node["votes"].as_bool(), node["durable"].as_bool()),
        (Some(true), Some(true), Some(false))
    );
    assert!(node["quorum"] == json["quorum"] && node["run"].as_str().unwrap().len() == 40);
    assert!(made.contains(json["quorum"].as_str().unwrap()));
}

#[test]
fn a_node_that_lost_its_memory_comes_back_by_itself() {
    let rig = Rig::start();
    rig.run(&["quorum", "init"]).expect(0);
    rig.servers[1].restart(Data::Lost);
    assert_eq!(rig.standings(0), ["member", "unmarked", "member"]);
    let said = rig.run(&["quorum", "init"]).expect(1).stdout;
    assert!(said.contains(&rig.servers[1].port().to_string()) && said.contains("has waited 3"), "{said}");
    let json = rig.run(&["quorum", "init", "--json"]).expect(1).json();
    assert_eq!((json["result"].as_str(), json["recovering"].as_array().unwrap().len()), (Some("recovering"), 1));
    assert_eq!(rig.standings(0)[1], "unmarked", "nothing was done");
    rig.servers[0].kill();
    assert_eq!(rig.standings(1), ["unreachable", "unmarked", "member"]);
    let shown = rig.run(&["quorum", "status"]).expect(1).stdout;
    assert!(shown.contains("no lock can be acquired now") && shown.contains("does not answer"), "{shown}");
    let forced = rig.run(&["quorum", "init", "--force"]).expect(0);
    let forced = forced.says("two clients may hold it").says("was left out");
    assert!(forced.stdout.contains("2 nodes are members now"), "{}", forced.stdout);
    assert_eq!(rig.standings(0), ["unreachable", "member", "member"]);
}

#[test]
fn another_quorum_is_left_alone() {
    let rig = Rig::start();
    rig.run(&["quorum", "init"]).expect(0);
    let other = rig.run(&["--quorum-id", "another", "quorum", "init"]).expect(64);
    other.says("nothing was marked").says("quorum init --force").says("redis://127.0.0.1:");
    rig.run(&["--quorum-id", "another", "exec", "job", "--", "true"]).expect(64).says("belongs to the quorum");
    let urls: Vec<String> = rig.servers.iter().map(Server::url).collect();
    let stores = urls.join(" ");
    let other = ["quorum", "status", "--max-ttl", "4s", "--store", &stores];
    rig.place.run(&other).expect(1);
    let other = ["exec", "--max-ttl", "4s", "--store", &stores, "job", "--", "true"];
    rig.place.run(&other).expect(64).says("max_ttl of 2 s");
    // Nobody needs to say it again, and a node alone is none of one's own.
    rig.place.run(&["quorum", "status", "--store", &stores]).expect(0);
    rig.place.run(&["exec", "--ttl", "2s", "--store", &stores, "job", "--", "true"]).expect(0);
    let alone = rig.place.run(&["exec", "--store", &urls[0], "job", "--", "true"]).expect(64);
    alone.says("is a node of the quorum").says("Name all nodes");
}

#[test]
fn a_quorum_serves_as_long_as_a_majority_answers() {
    let rig = Rig::start();
    rig.run(&["quorum", "init"]).expect(0);
    let ran = rig.run(&["exec", "--ttl", "2s", "--owner", "night shift", "job", "--", "printenv", "LEASEHOLD_STORE"]);
    let told = ran.expect(0).stdout;
    assert_eq!(told.trim().split(' ').count(), 3, "{told}");
    rig.run(&["exec", "job", "--", "true"]).expect(64).says("30 s").says("2 s").says("max_ttl");
    rig.run(&["inspect", "job"]).expect(1);
    rig.servers[2].kill();
    rig.run(&["inspect", "job"]).expect(1);
    rig.run(&["break", "job", "--yes"]).expect(1);
    rig.run(&["exec", "--ttl", "2s", "job", "--", "true"]).expect(0);
    let json = rig.run(&["doctor", "--json"]).json();
    let findings = json["findings"].as_array().unwrap();
    let votes = findings.iter().find(|one| one["check"] == "quorum.votes").unwrap();
    assert_eq!((votes["severity"].as_str(), json["worst"].as_str()), (Some("warning"), Some("problem")));
    rig.servers[1].kill();
    rig.run(&["inspect", "job"]).expect(69).says("2 of 3 nodes cannot be reached");
}

#[test]
fn a_lock_that_is_held_is_shown_by_all_nodes_and_broken() {
    // Nothing of this may run out by itself while a busy machine gets to it.
    let rig = Rig::with_max_ttl("60s");
    rig.run(&["quorum", "init"]).expect(0);
    // A grant takes a majority; the last of the nodes may hear of it later.
    let script = "until \"$0\" inspect job > text && grep -q '3 of 3 show it' text; do sleep 0.05; done
        \"$0\" inspect job --json > json && echo shown > shown
        while :; do sleep 0.05; done";
    let holder = ["exec", "--ttl", "15s", "--owner", "night shift", "job", "--", "sh", "-c", script];
    let holder = Started::new(&mut rig.command(&[&holder[..], &[env!("CARGO_BIN_EXE_leasehold")]].concat()));
    rig.place.wait_for_file("shown");
    let text = rig.place.read("text");
    // The records of nodes tell no ttl.
    assert!(text.contains("owner      night shift") && !text.contains("  ttl "), "{text}");
    let shown: Value = serde_json::from_str(&rig.place.read("json")).unwrap();
    assert_eq!((&shown["held"], &shown["owner"]), (&json!(true), &json!("night shift")));
    assert_eq!((&shown["votes"], &shown["nodes"]), (&json!(3), &json!(3)));
    let broken = rig.run(&["break", "job", "--yes", "--json"]).expect(0).json();
    assert_eq!((&broken["broken"], &broken["holder"]["token"]), (&json!(true), &shown["token"]));
    assert_eq!((&broken["holder"]["votes"], &broken["holder"]["nodes"]), (&json!(3), &json!(3)));
    for server in &rig.servers {
        assert_eq!(server.command(&["EXISTS", "job"]).integer(), 0, "it was broken on every node");
    }
    holder.wait().expect(76);
    rig.run(&["inspect", "job"]).expect(1);
}

#[test]
fn settings_of_a_quorum_are_given_once_and_to_several_stores() {
    let place = Place::new();
    place.run(&["--max-ttl", "2s", "inspect", "job"]).expect(64).says("max_ttl").says("one store is named");
    place.run(&["--max-ttl", "2s", "inspect", "job", "--max-ttl", "3s"]).expect(64).says("given twice");
    place.run(&["quorum", "status"]).expect(64).says("alone is no quorum");
    let (one, two) = (place.store(), place.store());
    place.run(&["inspect", "job", "--store", &one, "--store", &two]).expect(64).says("named twice");
    place.run(&["quorum", "init", "--store", "memory:a", "--store", "memory:b"]).expect(64).says("locks out nobody");
}

#[test]
fn short_lived_clients_get_a_node_back_by_joining() {
    for data in [Data::Lost, Data::Kept] {
        let rig = Rig::start();
        rig.run(&["quorum", "init"]).expect(0);
        if data == Data::Kept {
            assert!(!rig.servers[1].command(&["SAVE"]).is_error());
        }
        rig.servers[1].restart(data);
        rig.run(&["exec", "--ttl", "2s", "job", "--", "true"]).expect(0);
        assert_eq!(rig.standings(0), ["member", "joining", "member"], "the job was too short");
        let joined = rig.run(&["quorum", "join"]).expect(0);
        assert!(joined.stdout.contains("3 of 3 nodes vote"), "{}", joined.stdout);
        let joined = joined.says("2 of 3 nodes vote, 2 are needed; waiting at most 3").says("Z for:");
        joined.says(&rig.servers[1].port().to_string());
        assert_eq!(rig.standings(0), ["member", "rejoined", "member"]);
    }
}

#[test]
fn once_needs_nodes_that_remember_or_the_word_of_an_operator() {
    let rig = Rig::start();
    rig.run(&["quorum", "init"]).expect(0);
    let once = |options: &[&str], script: &str| {
        let job = ["job", "--", "sh", "-c", script];
        rig.run(&[&["once", "--ttl", "2s", "--key"], options, &job].concat())
    };
    once(&["monday"], "exit 0").expect(0);
    rig.servers[1].restart(Data::Lost);
    once(&["monday"], "touch again").expect(0).says("done already");
    rig.servers[0].restart(Data::Lost);
    rig.run(&["quorum", "join"]).expect(0);
    // One node remembers the completion, which is enough to say so, if it answers before the others have said that they cannot
    // tell; of another key a majority cannot.
    leasehold_servers::wait_until("the node that remembers is heard", || once(&["monday"], "touch again").status == 0);
    assert!(!rig.place.path("again").exists());
    once(&["tuesday"], "touch again")
        .expect(69)
        .says("have lost their data within 7 days")
        .says("leasehold once --trust-quorum");
    rig.run(&["exec", "--ttl", "2s", "job@tuesday", "--", "true"]).expect(0);
    assert!(!rig.place.path("again").exists());
    once(&["tuesday", "--trust-quorum"], "touch again").expect(0);
    assert!(rig.place.path("again").exists());
    once(&["tuesday", "--trust-quorum"], "exit 9").expect(0).says("done already");
    assert!(rig.run(&["inspect", "job", "--key", "tuesday"]).expect(0).stdout.contains("job@tuesday is done"));
    rig.run(&["once", "--forget", "--key", "tuesday", "job"]).expect(0);
    once(&["tuesday", "--trust-quorum"], "exit 9").expect(9);
    once(&["wednesday", "--keep", "8d"], "exit 0").expect(64).says("604800 s");
}

#[test]
fn a_join_that_ends_too_early_says_why() {
    let rig = Rig::start();
    rig.servers[0].kill();
    let port = rig.servers[0].port().to_string();
    let ended = rig.run(&["quorum", "join", "--timeout", "500ms"]).expect(1);
    assert!(ended.stdout.contains(&port) && ended.stdout.contains("all of its nodes answer"), "{}", ended.stdout);
    let json = rig.run(&["quorum", "join", "--timeout", "0s", "--json"]).expect(1).json();
    assert_eq!((json["result"].as_str(), json["voting"].as_u64()), (Some("timed_out"), Some(0)));
    assert_eq!((json["reasons"].as_array().unwrap().len(), json["nodes"].as_array().unwrap().len()), (3, 3));
    rig.servers[0].restart(Data::Lost);
    let json = rig.run(&["quorum", "join", "--json"]).expect(0).json();
    assert_eq!((json["result"].as_str(), json["voting"].as_u64()), (Some("complete"), Some(3)));
    assert_eq!(rig.standings(0), ["member"; 3]);
    rig.servers[0].kill();
    let most = rig.run(&["quorum", "join"]).expect(0).stdout;
    assert!(most.contains("2 of 3 nodes vote") && most.contains(&port) && most.contains("does not answer"), "{most}");
    rig.run(&["--quorum-id", "another", "quorum", "join"]).expect(64).says("belongs to the quorum");
}

#[test]
fn the_environment_has_settings_of_a_quorum_and_hands_them_on() {
    let rig = Rig::start();
    let urls: Vec<String> = rig.servers.iter().map(Server::url).collect();
    let run = |environment: &[(&str, &str)], arguments: &[&str]| {
        let mut command = rig.place.leasehold(arguments);
        command.env("LEASEHOLD_STORE", urls.join(" ")).envs(environment.iter().copied());
        Ran::from(command.output().unwrap())
    };
    let ours = [("LEASEHOLD_MAX_TTL", "2s"), ("LEASEHOLD_QUORUM_ID", "ours")];
    assert!(run(&ours, &["quorum", "init"]).expect(0).stdout.contains("max_ttl 2 s"));
    let status = |environment: &[(&str, &str)], arguments: &[&str], expected| {
        run(environment, &[&["quorum", "status", "--json"], arguments].concat()).expect(expected).json()["voting"]
            .clone()
    };
    assert_eq!(status(&ours, &[], 0), 3);
    assert_eq!(status(&ours[..1], &["--quorum-id", "ours"], 0), 3);
    assert_eq!(status(&ours[..1], &[], 1), 0, "another id");
    assert_eq!(status(&ours, &["--quorum-id", "another"], 1), 0, "what is given counts");
    assert_eq!(status(&ours, &["--max-ttl", "3s"], 1), 0);
    assert_eq!(status(&[ours[0], ("LEASEHOLD_QUORUM_ID", "")], &["--quorum-id", "ours"], 0), 3);

    let inner = ["exec", "--ttl", "2s", "inner", "--", "printenv", "LEASEHOLD_MAX_TTL", "LEASEHOLD_QUORUM_ID"];
    let outer = ["exec", "--max-ttl", "2s", "--quorum-id", "ours", "--ttl", "2s", "outer", "--"];
    let nested = [&outer[..], &[env!("CARGO_BIN_EXE_leasehold")], &inner].concat();
    assert_eq!(run(&[], &nested).expect(0).stdout, "2000ms\nours\n");

    run(&[("LEASEHOLD_MAX_TTL", "2")], &["quorum", "status"]).expect(64).says("LEASEHOLD_MAX_TTL").says("unit");
    let alone = rig.place.store();
    run(&ours, &["exec", "--store", &alone, "job", "--", "true"]).expect(0);
    run(&ours[..0], &["--max-ttl", "2s", "exec", "--store", &alone, "job", "--", "true"]).expect(64);
}
