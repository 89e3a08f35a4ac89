//! Checks if this bucket or container can keep locks.

use leasehold_core::op::Outcome;
use leasehold_wire::objects::{Harm, Properties, Service};

use super::{Objects, settings};
use crate::admin::doctor::Finding;
use crate::host::clock;
use crate::transport::Transport;
use crate::url::Reach;

/// How often several write at once: a service that is in between for a moment only is found by most of these.
const RACES: usize = 4;
/// A slower answer is told, in milliseconds: a renewal needs one.
const SLOW_MS: u128 = 500;

pub(super) fn diagnose(store: &Objects) -> Vec<Finding> {
    let mut findings = vec![way(store.url.reach)];
    let begin = clock::monotonic();
    if let Err(error) = store.look() {
        findings.push(Finding::problem(
            "objects.server",
            error.to_string(),
            "check the url and the credentials; then run this check again",
        ));
        return findings;
    }
    let took = clock::monotonic().since(begin).as_millis();
    findings.push(Finding::good("objects.server", format!("{} answers, and its objects may be read", store.url)));
    findings.push(latency(took));
    findings.extend(store.properties.as_ref().map(account));
    let mut harms = Vec::new();
    findings.push(conditions(store, &mut harms));
    findings.extend(settings::examine(store, harms));
    findings.push(listing(store));
    findings
}

fn conditions(store: &Objects, harms: &mut Vec<Harm>) -> Finding {
    const CHECK: &str = "objects.conditions";
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
        return Finding::problem(
            CHECK,
            format!("{}: {most_made} writes at once were made under a condition that holds for one", store.url),
            "name another service: this one, or a proxy before it, looks and then writes, so that several holders get one lock",
        );
    }
    match tried {
        Ok(()) => Finding::good(CHECK, "a write is refused once its condition is false; objects may be written"),
        Err(error) => Finding::problem(CHECK, error.to_string(), "name another bucket or service, or mend the rights"),
    }
}

fn listing(store: &Objects) -> Finding {
    const CHECK: &str = "objects.list";
    match store.list("", b"") {
        Ok(_) => Finding::good(CHECK, "the names of locks may be listed"),
        Err(error) => Finding::warning(
            CHECK,
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

fn way(reach: Reach) -> Finding {
    const CHECK: &str = "objects.way";
    match reach {
        Reach::Tls => Finding::good(CHECK, "TLS"),
        Reach::Loopback => Finding::good(CHECK, "the server is on this machine"),
        Reach::Plaintext => Finding::warning(
            CHECK,
            "nothing is encrypted: everybody on the network path can read requests, and repeat them",
            "name an endpoint with https, or keep to a network that you trust",
        ),
    }
}

fn account(properties: &Properties) -> Finding {
    let consistency = &properties.consistency;
    let what = format!("one write region, consistency {consistency}");
    match properties.reads_may_be_stale() {
        false => Finding::good("objects.account", what),
        true => Finding::good(
            "objects.account",
            format!(
                "{what}: a read may be a moment behind, so that waiters learn of a release later; as a node of a quorum \
                 it would be refused"
            ),
        ),
    }
}

fn latency(took: u128) -> Finding {
    const CHECK: &str = "objects.latency";
    let what = format!("a read took {took} ms");
    if took <= SLOW_MS {
        return Finding::good(CHECK, what);
    }
    Finding::warning(CHECK, what, "each operation takes at least as long: choose a ttl of at least 10 seconds")
}
