//! Markers of a quorum: a node is no store of its own, its quorum's `max_ttl` is known, and all nodes are marked or none.

use std::time::Duration;

use crate::common::PATIENCE;
use crate::common::quorum::{MAX_TTL, Nodes, settings};
use leasehold::blocking::Client;
use leasehold::quorum::{Force, Init, Quorum, Standing};
use leasehold::{Client as AsyncClient, ErrorKind};
use leasehold_servers::proxy::Request;
use leasehold_servers::{redis, rest, webdis};

#[test]
fn a_node_of_a_quorum_is_no_store_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let servers = [(); 3].map(|()| redis::Server::start());
    let (upstash, webdis) = (rest::Server::start(&servers[1]), webdis::Server::start(&servers[2]));
    let urls = [
        servers[0].url(),
        format!("upstash+http://:{}@{}", upstash.token(), upstash.address()),
        format!("webdis+http://{}", webdis.address()),
        format!("sqlite:{}", folder.path().join("node.db").display()),
        "memory:a-node-of-a-quorum".to_owned(),
    ];
    for url in &urls {
        Client::connect(url).unwrap_or_else(|error| panic!("before the quorum is made: {error}"));
    }
    let quorum = Quorum::connect(&settings(), &urls).unwrap();
    assert_eq!(quorum.init(Force::No).unwrap(), Init::Marked { nodes: 5, left_out: vec![] });
    for url in &urls {
        let error = Client::connect(url).expect_err("the lock would not exclude the quorum's");
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        for word in ["is a node of the quorum", &quorum.id(), "Name all nodes"] {
            assert!(error.to_string().contains(word), "no {word:?} in {error}");
        }
    }
    servers[0].command(&["SET", "leasehold\u{1f}quorum", "leasehold/9 whatever"]);
    assert_eq!(Client::connect(&urls[0]).unwrap_err().kind(), ErrorKind::Config, "also for its maker");
    servers[0].command(&["DEL", "leasehold\u{1f}quorum"]);
    Client::connect(&urls[0]).unwrap().lock("job").acquire().unwrap().release().unwrap();
}

#[test]
fn a_user_without_rights_to_the_marker_can_use_a_store_alone() {
    let rules = "user worker on >hunter2 ~jobs/* ~{jobs/* &* +@all -info -get";
    let server = redis::Server::builder().acl_file(rules).start();
    let client = Client::connect(format!("redis://worker:hunter2@127.0.0.1:{}/", server.port())).unwrap();
    client.lock("jobs/a").acquire().unwrap().release().unwrap();
}

#[test]
fn a_client_takes_the_max_ttl_that_most_nodes_remember() {
    let nodes = Nodes::start(3);
    nodes.create();
    let silent = || AsyncClient::builder().quorum_id("of these tests");
    nodes.servers[0].kill();
    let client = Client::connect_with(silent(), nodes.direct()).unwrap();
    let lease = client.lock("job").ttl(MAX_TTL).wait(PATIENCE).acquire().unwrap();
    let error = client.lock("other").ttl(MAX_TTL * 2).acquire().unwrap_err();
    assert!(error.kind() == ErrorKind::Config && error.to_string().contains("max_ttl"), "{error}");
    lease.release().unwrap();
    let quorum = Quorum::connect(&silent(), nodes.direct()).unwrap();
    assert_eq!((quorum.max_ttl(), quorum.init(Force::Yes).is_ok()), (MAX_TTL, true));
    assert_eq!(nodes.standings()[1..], [Standing::Member; 2], "marked again with what they had");

    // One of three is no majority, whatever it says.
    nodes.servers[1].command(&["FLUSHALL"]);
    let error = Client::connect_with(silent(), nodes.direct()).unwrap_err();
    assert!(error.to_string().contains("max_ttl of 2 s, but this client has one of 60 s"), "{error}");
    // Nor does another quorum's count.
    let other = Quorum::connect(&AsyncClient::builder().quorum_id("another"), nodes.direct()).unwrap();
    assert_eq!(other.max_ttl().as_secs(), 60);
}

#[test]
fn marks_are_taken_back_where_one_fails() {
    let nodes = Nodes::start(3);
    let init = |force| Quorum::connect(&settings(), nodes.urls()).unwrap().init(force);
    let marking = || Request::containing("return {'marked'");
    // The first never arrives; of the second only the reply is lost.
    let lost = nodes.proxies[2].reset_before_forwarding(marking());
    let error = init(Force::No).unwrap_err();
    assert!(error.to_string().contains("no node was changed"), "{error}");
    assert_eq!((lost.hits(), error.kind()), (1, ErrorKind::StoreUnavailable));
    assert_eq!(nodes.standings(), [Standing::Unmarked; 3]);
    let lost = nodes.proxies[1].reset_after_forwarding(marking());
    assert!(init(Force::No).unwrap_err().to_string().contains("no node was changed"));
    assert_eq!((lost.hits(), nodes.standings()), (1, vec![Standing::Unmarked; 3]));

    // Of marks by force, what was there before comes back.
    let other = Quorum::connect(&settings().quorum_id("another"), nodes.direct()).unwrap();
    assert_eq!(other.init(Force::No).unwrap(), Init::Marked { nodes: 3, left_out: vec![] });
    let before = markers(&nodes);
    nodes.proxies[0].reset_before_forwarding(marking());
    init(Force::Yes).unwrap_err();
    assert_eq!(markers(&nodes), before);
    assert_eq!(init(Force::Yes).unwrap(), Init::Marked { nodes: 3, left_out: vec![] });

    // What cannot be taken back is named.
    nodes.servers.iter().for_each(|server| drop(server.command(&["FLUSHALL"])));
    nodes.proxies[2].reset_before_forwarding(marking());
    nodes.servers[0].command(&["SET", "leasehold\u{1f}quorum", "leasehold/9 whatever"]);
    let error = init(Force::Yes).unwrap_err();
    let port = nodes.proxies[0].port().to_string();
    assert!(error.to_string().contains(&format!("{port}/0 may be marked")), "{error}");
}

fn markers(nodes: &Nodes) -> Vec<String> {
    nodes.servers.iter().map(|server| server.command(&["GET", "leasehold\u{1f}quorum"]).text().to_owned()).collect()
}

#[test]
fn a_first_lock_on_a_new_quorum_says_how_it_goes_at_once() {
    let client = Client::connect_with(settings(), ["memory:", "memory:", "memory:"]).unwrap();
    let error = client.lock("job").ttl(MAX_TTL).wait(Duration::ZERO).acquire().unwrap_err();
    for word in ["are new", "cannot grant locks for another", "leasehold quorum init", "create_quorum"] {
        assert!(error.to_string().contains(word), "no {word:?} in {error}");
    }
}
