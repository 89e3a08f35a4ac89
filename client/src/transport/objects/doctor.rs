//! Checks if this bucket or container can keep locks.

use leasehold_core::op::Outcome;
use leasehold_wire::listing::Which;
use leasehold_wire::objects::{Harm, Properties, Service};

use super::{Objects, settings};
use crate::admin::checks::objects as check;
use crate::admin::doctor::Finding;
use crate::host::clock;
use crate::transport::Transport;
use crate::transport::web_checks::{latency, way};

/// How often several write at once: a service that is in between for a moment only is found by most of these.
const RACES: usize = 4;

pub(super) fn diagnose(store: &Objects) -> Vec<Finding> {
    let mut findings = vec![way(check::WAY, store.url.reach, "repeat them", "name an endpoint with https")];
    let begin = clock::monotonic();
    if let Err(error) = store.look() {
        findings.push(
            check::SERVER.fails(error.to_string(), "check the url and the credentials; then run this check again"),
        );
        return findings;
    }
    let took = clock::monotonic().since(begin).as_millis();
    findings.push(check::SERVER.passes(format!("{} answers, and its objects may be read", store.url)));
    findings.push(latency(check::LATENCY, took, "choose a ttl of at least 10 seconds"));
    findings.extend(store.properties.as_ref().map(account));
    let mut harms = Vec::new();
    findings.push(conditions(store, &mut harms));
    findings.extend(settings::examine(store, harms));
    findings.push(listing(store));
    findings
}

fn conditions(store: &Objects, harms: &mut Vec<Harm>) -> Finding {
    let mut most_made = 0;
    let tried = store.connections.block_on_background(|link| async move {
        let mut harms = Vec::new();
        (link.try_conditions(&mut harms).await, harms)
    });
    let tried = match tried {
        Ok((tried, told)) => {
            harms.extend(told);
            tried.map_err(|outcome| store.judged(outcome))
        }
        Err(fault) => Err(store.judged(Outcome::Unknown(fault))),
    };
    for _ in 0..RACES {
        let race = store.connections.block_on_background(|link| async move { link.race().await });
        most_made = race.map_or(0, |made| made.unwrap_or(0)).max(most_made);
    }
    if most_made > 1 {
        return check::CONDITIONS.fails(
            format!(
                "{}: {most_made} simultaneous writes succeeded under a condition that only one can meet",
                store.url
            ),
            "name another service: this one, or a proxy in front of it, checks the condition before it writes, not in \
             one step, so several clients can get the same lock",
        );
    }
    match tried {
        Ok(()) => check::CONDITIONS.passes("a write is refused once its condition is false; objects may be written"),
        Err(error) => {
            check::CONDITIONS.fails(error.to_string(), "name another bucket or service, or correct the rights")
        }
    }
}

fn listing(store: &Objects) -> Finding {
    match store.list("", b"", Which::Held) {
        Ok(_) => check::LIST.passes("the names of locks may be listed"),
        Err(error) => check::LIST.fails(
            format!("`list` does not work: {error}"),
            match store.url.service {
                Service::S3 => "give the identity s3:ListBucket on the bucket",
                Service::AzureBlob => "give the identity the right to list blobs of the container",
                Service::Gcs => "give the identity storage.objects.list on the bucket",
                Service::CosmosDb => "give the identity the right to run queries on the container",
            },
        ),
    }
}

fn account(properties: &Properties) -> Finding {
    let consistency = &properties.consistency;
    let what = format!("one write region, consistency {consistency}");
    match properties.reads_may_be_stale() {
        false => check::ACCOUNT.passes(what),
        true => check::ACCOUNT.passes(format!(
            "{what}: a read may be stale for a moment, so waiters notice a release later; as a node of a quorum the \
             store would be refused"
        )),
    }
}
