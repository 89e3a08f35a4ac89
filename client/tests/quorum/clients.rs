//! Clients of one quorum against each other.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::thread;

use crate::common::on_redis::{HIGH, count_grants_from, digest, request, wait_for_renewals};
use crate::common::quorum::{LONG_TTL, Nodes, TTL, patient, settings};
use crate::common::{PATIENCE, Role, eventually, ms, role_args, say, stay};
use leasehold::Client as AsyncClient;
use leasehold::blocking::Client;
use leasehold_servers::proxy::Request;
use leasehold_servers::redis::Server;
use leasehold_servers::{rest, webdis};

/// One marks the nodes and asks them through proxies, the other directly.
fn patient_pair(nodes: &Nodes) -> [Client; 2] {
    let one = Client::connect_with(patient().create_quorum(), nodes.urls()).unwrap();
    [one, Client::connect_with(patient(), nodes.direct()).unwrap()]
}

fn exclude_each_other(one: &Client, two: &Client) {
    let nodes = u16::try_from(one.stores().len()).unwrap();
    let mut token = 0;
    for (holder, rival) in [(one, two), (two, one), (one, two)] {
        let lease = holder.lock("job").owner("holder").wait(PATIENCE).acquire().unwrap();
        assert!(lease.token() > token);
        token = lease.token();
        assert!(rival.lock("job").try_acquire().unwrap().is_none());
        let shown = || rival.inspect("job").unwrap().unwrap();
        eventually("all nodes show it", || (shown().votes, shown().nodes) == (nodes, nodes));
        assert_eq!((shown().owner.as_deref(), shown().token), (Some("holder"), Some(token)));
        lease.release().unwrap();
        eventually("it is free", || rival.inspect("job").unwrap().is_none());
    }
}

#[test]
fn three_and_five_nodes_let_one_in() {
    for count in [3, 5] {
        let nodes = Nodes::start(count);
        let [one, two] = patient_pair(&nodes);
        exclude_each_other(&one, &two);
        nodes.wait_for_nothing_left("job");
    }
}

#[test]
fn nodes_of_all_kinds_let_one_in() {
    let folder = tempfile::tempdir().unwrap();
    let servers = [Server::start(), Server::start(), Server::start()];
    let (webdis, rest) = (webdis::Server::start(&servers[1]), rest::Server::start(&servers[2]));
    let file = format!("sqlite:{}", folder.path().join("locks.db").display());
    let (webdis, upstash) =
        (format!("webdis+http://{}", webdis.address()), format!("upstash+http://:{}@{}", rest.token(), rest.address()));
    for (id, urls) in [("one", [&file, &servers[0].url(), &webdis]), ("two", [&servers[0].url(), &webdis, &upstash])] {
        let settings = || patient().quorum_id(id);
        // One has the other's marks on it.
        for server in &servers {
            server.command(&["FLUSHALL"]);
        }
        let one = Client::connect_with(settings().create_quorum(), urls).unwrap();
        exclude_each_other(&one, &Client::connect_with(settings(), urls).unwrap());
    }
}

#[test]
fn urls_in_one_text_are_a_quorum() {
    let text = "memory:t1 memory:t2 memory:t3";
    let one = Client::connect_with(patient().create_quorum(), text).unwrap();
    let two = Client::connect_with(patient(), text.split(' ').collect::<Vec<_>>()).unwrap();
    exclude_each_other(&one, &two);
}

/// A runtime that goes on while nobody waits for it; its thread ends with the process.
fn driven() -> tokio::runtime::Handle {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    handle
}

/// Counts requests of a script that reach a node, without touching them.
fn count(nodes: &Nodes, node: usize, script: &'static str) -> Arc<AtomicUsize> {
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let (short, digest) = (digest(script).as_bytes(), digest(script).len());
    nodes.proxies[node].reset_before_forwarding(Request::matching(move |bytes| {
        if bytes.windows(digest).any(|window| window == short) {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        false
    }));
    seen
}

#[test]
fn a_late_grant_of_a_slow_node_is_counted() {
    let nodes = Nodes::start(3);
    Client::connect_with(patient().create_quorum(), nodes.urls()).unwrap();
    let runtime = driven();
    let client = runtime.block_on(patient().connect(nodes.urls())).unwrap();
    // Connections are there, so that only the answer is slow.
    runtime.block_on(async { client.lock("other").ttl(TTL).await.unwrap().release().await }).unwrap();
    nodes.wait_for_nothing_left("other");
    nodes.proxies[2].delay(ms(100));
    let (votes, keeps) = (count(&nodes, 2, "vote"), count(&nodes, 2, "keep"));
    let lease = runtime.block_on(async { client.lock("job").ttl(LONG_TTL).renew_every(ms(300)).await }).unwrap();
    eventually("it is renewed there", || keeps.load(Ordering::SeqCst) > 1);
    assert_eq!(votes.load(Ordering::SeqCst), 1, "a grant that nobody knew of would be asked for again");
    runtime.block_on(lease.release()).unwrap();
    nodes.wait_for_nothing_left("job");
}

#[test]
fn a_blocking_caller_asks_all_nodes_at_once() {
    let nodes = Nodes::start(3);
    let client = Client::connect_with(patient().create_quorum(), nodes.urls()).unwrap();
    client.lock("other").ttl(LONG_TTL).acquire().unwrap().release().unwrap();
    let (asked, all) = (Arc::new((Mutex::new(0), Condvar::new())), Arc::new(AtomicUsize::new(0)));
    for proxy in &nodes.proxies {
        let (asked, all) = (Arc::clone(&asked), Arc::clone(&all));
        proxy.reset_before_forwarding(Request::matching(move |bytes| {
            let tells = |word: &[u8]| bytes.windows(word.len()).any(|window| window == word);
            // The last vote for the other lock may come as late as this.
            if tells(digest("vote").as_bytes()) && tells(b"\r\njob\r\n") {
                // No node answers before all are asked; a client that asks one after the other gives up on the first.
                let (count, another) = &*asked;
                let mut count = count.lock().unwrap();
                *count += 1;
                another.notify_all();
                let (count, _) = another.wait_timeout_while(count, ms(5_000), |count| *count < 3).unwrap();
                all.fetch_add(usize::from(*count == 3), Ordering::SeqCst);
            }
            false
        }));
    }
    let lease = client.lock("job").ttl(LONG_TTL).wait(PATIENCE).acquire().unwrap();
    lease.release().unwrap();
    // The third may still be about to say so.
    eventually("each saw all asked", || all.load(Ordering::SeqCst) == 3);
}

#[test]
fn a_caller_that_goes_away_leaves_nothing_behind() {
    let nodes = Nodes::start(3);
    Client::connect_with(patient().create_quorum(), nodes.urls()).unwrap();
    let runtime = driven();
    let client = runtime.block_on(patient().connect(nodes.urls())).unwrap();
    runtime.block_on(async { client.lock("other").ttl(TTL).await.unwrap().release().await }).unwrap();
    nodes.proxies.iter().for_each(|proxy| proxy.delay(ms(100)));
    runtime.block_on(async {
        // Nothing runs out while the test looks.
        let request = client.lock("job").ttl(LONG_TTL).no_renewal();
        assert!(tokio::time::timeout(ms(20), request.into_future()).await.is_err());
    });
    nodes.wait_for_nothing_left("job");
}

#[test]
fn two_at_the_same_moment_never_both_get_in() {
    const ROUNDS: usize = 50;
    let nodes = Nodes::start(3);
    let clients = patient_pair(&nodes);
    let (barrier, inside, tokens) = (Barrier::new(2), AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for client in &clients {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    barrier.wait();
                    let lease = client.lock("job").wait(PATIENCE).acquire().unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two are inside");
                    tokens.lock().unwrap().push(lease.token());
                    inside.fetch_sub(1, Ordering::SeqCst);
                    lease.release().unwrap();
                }
            });
        }
    });
    let tokens = tokens.into_inner().unwrap();
    assert!(tokens.len() == 2 * ROUNDS && tokens.is_sorted_by(|one, two| one < two), "{tokens:?}");
    nodes.wait_for_nothing_left("job");
}

#[test]
fn two_that_try_once_are_both_answered() {
    let nodes = Nodes::start(3);
    let clients = patient_pair(&nodes);
    let barrier = Barrier::new(2);
    for _ in 0..50 {
        let leases: Vec<_> = thread::scope(|scope| {
            let tries = clients.each_ref().map(|client| {
                scope.spawn(|| {
                    barrier.wait();
                    client.lock("job").try_acquire().unwrap()
                })
            });
            tries.map(|one| one.join().unwrap()).into_iter().flatten().collect()
        });
        assert!(leases.len() < 2);
        leases.iter().for_each(|lease| lease.release().unwrap());
        nodes.wait_for_nothing_left("job");
    }
}

/// Takes `job` and tells its token.
#[test]
#[ignore = "a role of other tests"]
fn role_holder() {
    let Some(stores) = role_args() else { return };
    let client = Client::connect_with(settings(), stores).unwrap();
    let lease = client.lock("job").ttl(TTL).acquire().unwrap();
    say(lease.token());
    stay();
}

#[test]
fn a_killed_holder_is_succeeded() {
    let nodes = Nodes::start(3);
    let client = nodes.create();
    let mut holder = Role::start("clients::role_holder", &nodes.urls().join(" "));
    let token: u64 = holder.says().parse().unwrap();
    wait_for_renewals(&nodes.servers[0], 2);
    holder.kill();
    holder.wait();
    assert!(client.lock("job").ttl(TTL).wait(PATIENCE).acquire().unwrap().token() > token);
}

#[test]
fn a_client_killed_between_grant_and_raise_is_succeeded() {
    let nodes = Nodes::start(3);
    let client = nodes.create();
    // No two counters agree, so that any majority has a node to raise, and the answer to that never comes.
    count_grants_from(HIGH + 10, &nodes.servers[0], "job");
    count_grants_from(HIGH, &nodes.servers[1], "job");
    let stuck = [1, 2].map(|node: usize| nodes.proxies[node].lose_replies(request("raise")));
    let mut holder = Role::start("clients::role_holder", &nodes.urls().join(" "));
    eventually("a raise is under way", || stuck.iter().any(|fault| fault.hits() > 0));
    holder.kill();
    holder.wait();
    let lease = client.lock("job").ttl(TTL).wait(PATIENCE).acquire().unwrap();
    // Node 0 or node 1 had given more than this, whichever the holder had heard of.
    assert!(lease.token() > HIGH + 1);
    lease.release().unwrap();
    nodes.wait_for_nothing_left("job");
}

#[test]
fn an_async_client_reads_a_list_as_well() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let urls = ["memory:l1", "memory:l2", "memory:l3"];
    let client = runtime.block_on(AsyncClient::builder().create_quorum().connect(urls)).unwrap();
    assert_eq!(client.stores().len(), 3);
    let lease = runtime.block_on(async { client.lock("job").await }).unwrap();
    assert!(lease.token() > 0);
}
