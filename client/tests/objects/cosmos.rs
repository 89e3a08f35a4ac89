//! Accounts and containers of Cosmos DB.

use leasehold::ErrorKind;
use leasehold::blocking::Client;
use leasehold::cas::Items;
use leasehold_servers::objects::{Account, Api, COSMOS_KEY};
use leasehold_servers::proxy::{Proxy, Request};

use crate::common::items::{count, one_more};
use crate::common::{PATIENCE, eventually, ms};
use crate::{client, lease, server};

#[test]
fn an_account_that_several_regions_write_is_refused() {
    let server = server(Api::Cosmos(Account::SeveralRegions));
    let error = Client::connect(server.url("p")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
    assert!(error.to_string().contains("several regions"), "{error}");
}

#[test]
fn a_container_that_cannot_keep_locks_is_refused() {
    let server = server(Api::Cosmos(Account::Strong));
    for (name, properties, words) in [
        ("by-pk", r#""partitionKey":{"paths":["/pk"]}"#, "not /id"),
        ("short", r#""partitionKey":{"paths":["/id"]},"defaultTtl":60"#, "time to live"),
    ] {
        server.make_cosmos_container(name, properties);
        let url = server.url("p").replace("/locks/p", &format!("/{name}/p"));
        let error = Client::connect(&url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    let url = server.url("p").replace("/locks/p", "/absent/p");
    assert_ne!(Client::connect(&url).unwrap_err().kind(), ErrorKind::Config);
}

#[test]
fn a_node_of_a_quorum_and_a_session_need_reads_that_show_all_that_was_written() {
    let stale = server(Api::Cosmos(Account::Session));
    let strong = [server(Api::Cosmos(Account::Strong)), server(Api::Gcs)];
    let nodes = |first: &str| format!("{first} {} {}", strong[0].url("p"), strong[1].url("p"));
    let build = || leasehold::Client::builder().create_quorum().request_timeout(PATIENCE);
    let error = Client::connect_with(build(), nodes(&stale.url("p"))).unwrap_err();
    assert!(error.to_string().contains("Bounded staleness"), "{error}");
    let in_session = || leasehold::Client::builder().session("worker-7");
    let error = Client::connect_with(in_session(), stale.url("p")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("leave the session out"), "{error}");
    Client::connect_with(in_session(), strong[0].url("s")).unwrap();
    let first = server(Api::Gcs);
    let quorum = Client::connect_with(build(), nodes(&first.url("q"))).unwrap();
    let held = quorum.lock("a").try_acquire().unwrap();
    assert!(held.is_some());
}

/// Decisions are made by writes.
#[test]
fn nothing_is_decided_by_a_read_that_is_behind() {
    let server = server(Api::Cosmos(Account::Behind));
    let url = server.url("p");
    let (one, two) = (client(&url), client(&url));
    one.semaphore("db", 5).wait(PATIENCE).acquire().unwrap().release().unwrap();
    one.set_permits("db", 3).unwrap();
    // A read that is behind shows the permits as held still, so it may have to wait.
    let error = two.semaphore("db", 5).wait(PATIENCE).acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "the number is 3: {error}");
    two.semaphore("db", 3).wait(PATIENCE).acquire().unwrap().release().unwrap();
    // A client that remembers nothing, as after an answer that was lost.
    lease(&one, "a").release().unwrap();
    let proxy = Proxy::to(server.address());
    let behind = client(&server.url_at(proxy.address(), "p"));
    let writes = || Request::matching(|bytes| bytes.starts_with(b"PUT ") || bytes.starts_with(b"POST /dbs/"));
    let held = lease(&behind, "a");
    let fault = proxy.reset_after_forwarding(writes());
    fault.wait_for_hits(1);
    let before = proxy.requests();
    eventually("it is renewed again", || proxy.requests() > before + 3);
    held.check(ms(1)).unwrap();
    let fault = proxy.reset_after_forwarding(writes());
    held.release().unwrap();
    assert!(fault.hits() <= 1);
    proxy.pass();
    let items = Items::connect(&url).unwrap();
    for _ in 0..3 {
        items.update("counter", one_more).unwrap();
    }
    eventually("the item is seen", || count(&items, "counter") == 3);
}

#[test]
fn a_key_is_never_shown() {
    let server = server(Api::Cosmos(Account::Strong));
    let first = lease(&client(&server.url("p")), "a");
    assert!(first.token() > 0);
    // SAFETY: this process runs one test, which has nothing else under way.
    unsafe { std::env::set_var("AZURE_COSMOS_KEY", "b3RoZXI=") };
    let error = Client::connect(server.url("q")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreRefused, "{error}");
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("b3RoZXI=") && !shown.contains(COSMOS_KEY), "{shown}");
}
