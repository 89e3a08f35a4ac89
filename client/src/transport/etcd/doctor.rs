//! Checks if this etcd can keep locks.

use leasehold_core::op::Outcome;
use leasehold_wire::HttpResponse;
use leasehold_wire::etcd::Request;
use leasehold_wire::etcd::admin::{self, Status};
use leasehold_wire::sigv4::http_date;

use super::Etcd;
use crate::admin::checks::etcd as check;
use crate::admin::doctor::Finding;
use crate::host::clock;
use crate::transport::Transport;
use crate::transport::web_checks::{latency, way};
use crate::url::Exposure;

/// A larger offset of a member's clock is reported, in milliseconds: completions of finished work go by the clocks of clients, and
/// those of the members are set by the same means.
const OFFSET_MS: u64 = 30_000;
/// The space that etcd has unless told otherwise.
const QUOTA: u64 = 2 << 30;

pub(super) fn diagnose(store: &Etcd) -> Vec<Finding> {
    let harm = "break locks with what they see";
    let mut findings = vec![way(check::WAY, store.url.reach, harm, "write etcds://")];
    let begin = clock::monotonic();
    if let Err(error) = store.look() {
        findings.push(check::SERVER.fails(
            error.to_string(),
            "check that a majority of the members runs, and what the user may do; then run this check again",
        ));
        findings.extend(reached(store).1);
        return findings;
    }
    let took = clock::monotonic().since(begin).as_millis();
    findings.push(check::SERVER.passes(format!("{} has a leader and answers", store.url)));
    let advice = "look at the disks of the members and the network between them, and choose a ttl of several seconds";
    findings.push(latency(check::LATENCY, took, advice));
    findings.push(login(store));
    let (statuses, unreached) = reached(store);
    findings.extend(unreached);
    findings.extend(about(store, &statuses));
    findings
}

fn login(store: &Etcd) -> Finding {
    match (&store.url.login, &store.url.shown, store.url.reach) {
        (Some(_), _, _) => check::AUTH.passes("the login is accepted, and may read the keys"),
        (None, Some(_), _) => check::AUTH.passes("a client certificate is shown, and etcd has no users"),
        (None, None, Exposure::Loopback) => check::AUTH.passes("etcd has no users, and is on this machine"),
        (None, None, Exposure::Tls | Exposure::Plaintext) => check::AUTH.fails(
            "etcd has no users: everybody who reaches it can break locks, and read and write all of its keys",
            "make a user with rights on the prefix of the locks, and switch users on: docs/etcd.md",
        ),
    }
}

/// The members that answer, by their own word, and a finding about the others.
fn reached(store: &Etcd) -> (Vec<(Status, Option<u64>)>, Option<Finding>) {
    let mut statuses = Vec::new();
    let mut silent = Vec::new();
    for (at, host) in store.url.hosts.iter().enumerate() {
        let answer = ask_member(store, at, Status::ask());
        match answer.and_then(|(response, offset)| Ok((Status::read(&response)?, offset))) {
            Ok(status) => statuses.push(status),
            Err(_) => silent.push(host.as_str()),
        }
    }
    let finding = (!silent.is_empty()).then(|| {
        check::REACH.fails(
            format!("no status from {}", silent.join(", ")),
            "start them, or correct the url: until then, one more failure may leave no majority",
        )
    });
    (statuses, finding)
}

/// The answer of one member, and the offset of its clock in milliseconds, where it shows it.
fn ask_member(store: &Etcd, at: usize, request: Request) -> Result<(HttpResponse, Option<u64>), Outcome> {
    let asked = store.connections.block_on_background(move |link| async move { link.member(at, &request).await });
    let response = asked.unwrap_or_else(|fault| Err(Outcome::Unknown(fault)))?;
    let offset = response.header("date").and_then(http_date).map(|theirs| theirs.abs_diff(clock::unix_ms()));
    Ok((response, offset))
}

fn about(store: &Etcd, statuses: &[(Status, Option<u64>)]) -> Vec<Finding> {
    let Some((status, _)) = statuses.first() else { return Vec::new() };
    let mut findings = Vec::new();
    let mut versions: Vec<&str> = statuses.iter().map(|(status, _)| status.version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    findings.push(version(&versions));
    if statuses.iter().any(|(other, _)| other.cluster != status.cluster) {
        findings.push(check::CLUSTER.fails(
            "the hosts of the url belong to different clusters, which do not share their locks",
            "name the members of one etcd; several etcds are several urls, which form a quorum",
        ));
    }
    let leaderless = statuses.iter().filter(|(status, _)| !status.has_leader).count();
    findings.push(match leaderless {
        0 => check::LEADER.passes("all members that answer know the leader"),
        some => check::LEADER.fails(
            format!("{some} of {} members know no leader", statuses.len()),
            "look at the network between the members",
        ),
    });
    findings.extend(statuses.iter().filter_map(|(_, offset)| *offset).max().map(clocks));
    findings.push(members(store));
    findings.extend(alarms(store));
    findings.push(space(store, statuses.iter().map(|(status, _)| status.size).max().unwrap_or_default()));
    findings
}

fn version(versions: &[&str]) -> Finding {
    let what = format!("etcd {}", versions.join(", "));
    if versions.iter().any(|version| matches!(*version, "3.5.0" | "3.5.1" | "3.5.2")) {
        let what = format!("{what}: members of 3.5.0 to 3.5.2 can come to differ after a crash, unseen");
        return check::VERSION.fails(what, "use a newer 3.5, or 3.4");
    }
    let number = |version: &str| {
        let mut parts = version.split('.').map_while(|part| part.parse::<u32>().ok());
        parts.next().zip(parts.next())
    };
    if versions.iter().any(|version| number(version).is_none_or(|number| number < (3, 4))) {
        return check::VERSION.fails(what, "use etcd 3.4 or newer");
    }
    check::VERSION.passes(what)
}

fn clocks(offset: u64) -> Finding {
    if offset <= OFFSET_MS {
        return check::CLOCK.passes("the clocks of the members and of this machine agree");
    }
    check::CLOCK.fails(
        format!("the clock of a member and that of this machine differ by {} s", offset / 1000),
        "synchronise the clocks: leases do not depend on them, but completions end, and tokens of new locks begin, by \
         the clock of the client that asks",
    )
}

fn members(store: &Etcd) -> Finding {
    let named = store.url.hosts.len();
    let known = store.ask(admin::ask_members()).and_then(|response| admin::members(&response));
    match known {
        Ok(1) => check::MEMBERS.fails(
            "etcd has one member: locks fail while it is away, and are lost with its disk",
            "run three members, each on a machine of its own",
        ),
        Ok(members) if members % 2 == 0 => check::MEMBERS.fails(
            format!("etcd has {members} members, of which no more may fail than of {}", members - 1),
            "run three or five",
        ),
        Ok(members) if named == 1 => check::MEMBERS.fails(
            format!("the url names one of {members} members: when that one fails, this client finds no other"),
            "name all members in the url, unless its host is a load balancer",
        ),
        Ok(members) => check::MEMBERS.passes(format!("the url names {named} of {members} members")),
        Err(_) => check::MEMBERS.passes(format!("the url names {named} hosts; the user may not see the members")),
    }
}

fn alarms(store: &Etcd) -> Option<Finding> {
    let alarms = store.ask(admin::ask_alarms()).and_then(|response| admin::alarms(&response)).ok()?;
    Some(match alarms.as_slice() {
        [] => check::ALARMS.passes("no alarm is on"),
        some if some.iter().any(|alarm| alarm == "NOSPACE") => check::ALARMS.fails(
            "NOSPACE: etcd is full, and takes no locks",
            "compact it (`etcdctl compact REVISION`), defragment it (`etcdctl defrag`), then `etcdctl alarm disarm`; \
             keep --auto-compaction-retention on",
        ),
        some => check::ALARMS.fails(
            format!("{}: a member's data differs from that of the others", some.join(", ")),
            "replace that member, as etcd's documentation describes",
        ),
    })
}

fn space(store: &Etcd, size: u64) -> Finding {
    let quota = store.connections.block_on_background(|link| async move { link.quota().await });
    let quota = quota.ok().flatten().filter(|quota| *quota > 0).unwrap_or(QUOTA);
    let percent = size.saturating_mul(100) / quota;
    let what = format!("{percent} % of {} MiB are used", quota >> 20);
    if percent < 80 {
        return check::SPACE.passes(what);
    }
    check::SPACE.fails(
        what,
        "every write adds a revision: set --auto-compaction-retention, defragment, or raise --quota-backend-bytes",
    )
}
