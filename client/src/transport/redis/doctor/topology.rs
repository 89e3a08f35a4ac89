//! Several servers that are one store: their addresses, their ability to replace one another, and past failovers.

use std::sync::Arc;

use leasehold_core::Monotonic;
use leasehold_wire::redis::SLOTS;
use leasehold_wire::redis::cluster::Map;
use leasehold_wire::resp::Value;

use super::super::access::RedisAccess;
use super::super::cluster::Cluster;
use super::super::failovers::Failover;
use super::super::link::NoConnection;
use super::super::sentinel::{Sentinels, ask};
use super::super::store_link::StoreLink;
use super::{Asker, NodeOfCluster, Part, examine, server_answers, silent, words};
use crate::admin::checks::redis as check;
use crate::admin::doctor::{Finding, Severity};
use crate::host::clock;
use crate::transport::deadline::until as within;
use crate::transport::info::{Fields, printable, setting};
use crate::url::redis::{Address, RedisUrl};

/// The masters in turn. A lock is tried on the first one.
pub(super) async fn cluster(
    link: &StoreLink,
    cluster: &Cluster,
    access: &RedisAccess,
    url: &RedisUrl,
    until: Monotonic,
) -> Vec<Finding> {
    match within(until, cluster.read(access)).await {
        Some(Ok(())) => {}
        Some(Err(why)) => return vec![silent(&words(&why))],
        None => return vec![silent("no node of the cluster answered in time")],
    }
    let map = cluster.map();
    let asker = |node: &Address| {
        let home = NodeOfCluster { map: Arc::clone(&map), node: node.clone() };
        Asker { link: link.to(node), until, home: Some(home) }
    };
    let mut findings = vec![members(&map), failovers(&cluster.failovers.all())];
    for (place, shard) in map.shards().iter().enumerate() {
        let (node, asker) = (&shard.master, asker(&shard.master));
        if place == 0 {
            findings.push(coverage(&asker, &map).await);
            findings.extend(examine(&asker, access, url, Part::Alone).await);
        }
        // Findings that are good were reported for the first one already.
        let mut more = match server_answers(&asker).await {
            Ok(answers) if place == 0 => vec![answers.cut_off()],
            Ok(answers) => [answers.durability.losses(), vec![answers.cut_off()]].concat(),
            Err(why) => vec![silent(&why)],
        };
        if place > 0 {
            more.retain(|finding| finding.severity != Severity::Good);
            more.iter_mut().for_each(|finding| finding.what = format!("{node}: {}", finding.what));
        }
        findings.extend(more);
    }
    findings
}

fn members(map: &Map) -> Finding {
    let masters = map.shards().len();
    let replicas: usize = map.shards().iter().map(|shard| shard.replicas.len()).sum();
    let what = format!("a cluster of {masters} masters with {replicas} replicas");
    let alone: Vec<String> =
        map.shards().iter().filter(|shard| shard.replicas.is_empty()).map(|shard| shard.master.to_string()).collect();
    if alone.is_empty() {
        return check::TOPOLOGY.passes(what);
    }
    check::TOPOLOGY.warns(
        format!("{what}; no replica can take over from {}", printable(&alone.join(", "))),
        "add a replica to each master, or accept that its locks cannot be acquired while it is down",
    )
}

async fn coverage(asker: &Asker, map: &Map) -> Finding {
    let name = "cluster-require-full-coverage";
    let required = asker.one(&["CONFIG", "GET", name]).await.and_then(|reply| setting(name, &reply));
    let then = match required.as_deref() {
        Ok("no") => "; names in other slots can be locked when some are missing",
        Ok(_) => "; when some are missing, no name at all can be locked (cluster-require-full-coverage yes)",
        Err(_) => "",
    };
    let missing = usize::from(SLOTS).saturating_sub(map.covered());
    if missing == 0 {
        return check::COVERAGE.passes(format!("all {SLOTS} slots are served{then}"));
    }
    check::COVERAGE.fails(
        format!("no node serves {missing} of {SLOTS} slots, and names there cannot be locked{then}"),
        "see CLUSTER SLOTS and redis-cli --cluster fix",
    )
}

/// The answers of each Sentinel, then of the master itself.
pub(super) async fn sentinels(
    link: &StoreLink,
    sentinels: &Sentinels,
    access: &RedisAccess,
    url: &RedisUrl,
    until: Monotonic,
) -> Vec<Finding> {
    let (mut problems, mut seen, mut answered) = (Vec::new(), None, 0);
    for sentinel in sentinels.all() {
        let quorum = ask(sentinel, &["SENTINEL", "CKQUORUM", sentinels.name()]).await;
        match &quorum {
            Ok(_) => answered += 1,
            Err(NoConnection::Fault(fault)) if fault.to_string().contains("NOQUORUM") => {
                answered += 1;
                problems.push((Severity::Problem, fault.to_string()));
            }
            Err(why) => problems.push((Severity::Warning, words(why))),
        }
        if seen.is_none()
            && let Ok(reply @ (Value::Array(_) | Value::Map(_))) =
                ask(sentinel, &["SENTINEL", "MASTER", sentinels.name()]).await
        {
            seen = Some(Fields::of_pairs(&reply));
        }
    }
    let master = sentinels.master().await.map_err(|why| words(&why));
    let all = sentinels.all().len();
    let mut findings =
        vec![watched(&master, seen.as_ref()), votes(all, answered, &problems), failovers(&sentinels.failovers.all())];
    if let (Ok(named), Some(known)) = (&master, sentinels.known())
        && *named != known
    {
        findings.push(check::FAILOVER.fails(
            format!("the Sentinels name {named} as the master, but this client is connected to {known}"),
            "nothing, if this is temporary: connections move when the old master closes or refuses them",
        ));
    }
    let StoreLink::Single(link) = link else { return findings };
    let asker = Asker { link: Arc::clone(link), until, home: None };
    findings.extend(examine(&asker, access, url, Part::Alone).await);
    if let Ok(answers) = server_answers(&asker).await {
        findings.push(answers.cut_off());
    }
    findings
}

fn watched(master: &Result<Address, String>, seen: Option<&Fields>) -> Finding {
    let number = |name| seen.and_then(|seen| seen.number(name));
    let known = |number: Option<u64>| number.map_or("an unknown number of".to_owned(), |number| number.to_string());
    match master {
        Err(why) => check::TOPOLOGY.fails(printable(why), "check that the Sentinels run and watch that name"),
        Ok(master) => {
            let replicas = number("num-slaves");
            let sentinels = number("num-other-sentinels").map(|others| others.saturating_add(1));
            let what =
                format!("{master} is the master, with {} replicas and {} Sentinels", known(replicas), known(sentinels));
            if replicas == Some(0) {
                return check::TOPOLOGY.warns(what, "add a replica: none can take over");
            }
            if sentinels.is_some_and(|count| count < 3) {
                return check::TOPOLOGY
                    .warns(what, "run at least three Sentinels: fewer cannot agree when one is down");
            }
            check::TOPOLOGY.passes(what)
        }
    }
}

fn votes(all: usize, answered: usize, problems: &[(Severity, String)]) -> Finding {
    let said = || printable(&problems.iter().map(|(_, said)| said.as_str()).collect::<Vec<_>>().join("; "));
    match problems.iter().map(|(severity, _)| *severity).max() {
        None => check::SENTINELS.passes(format!("all {all} in the url answer, and can agree on a failover")),
        Some(Severity::Problem) => check::SENTINELS.fails(
            format!("they cannot agree on a failover: {}", said()),
            "check that enough Sentinels run and reach each other for their quorum and for a majority",
        ),
        Some(Severity::Warning | Severity::Good) => check::SENTINELS.warns(
            format!("{answered} of {all} in the url answer: {}", said()),
            "start the others, or name only running ones in the store url",
        ),
    }
}

fn failovers(all: &[Failover]) -> Finding {
    if all.is_empty() {
        return check::FAILOVER.passes("none since this client connected");
    }
    let now = clock::unix_ms();
    let shown = |failover: &Failover| {
        let ago = now.saturating_sub(failover.unix_ms) / 1_000;
        format!("{} took over from {} {ago} s ago", failover.to, failover.from)
    };
    check::FAILOVER.fails(
        format!(
            "failover since this client connected: {}; a lock that the old master had acknowledged may be lost, \
             because replication is asynchronous",
            printable(&all.iter().rev().map(shown).collect::<Vec<_>>().join(", "))
        ),
        "put wait_replicas into the store url, or use a quorum of servers that do not replicate; and check fencing \
         tokens where a lock must not be granted twice",
    )
}
