//! Checks if this bucket or container can keep locks.

use leasehold_core::Nonce;
use leasehold_wire::objects::{Harm, Properties, Service, Trial, Verdict};

use super::{Objects, settings};
use crate::clock;
use crate::doctor::Finding;
use crate::entropy::fill;
use crate::error::{Error, ErrorKind};
use crate::transport::Transport;
use crate::url::Reach;

/// A slower answer is told, in milliseconds: a renewal needs one.
const SLOW_MS: u128 = 500;
/// How often a trial begins anew because another came between.
const MOST_TRIALS: usize = 5;

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

/// Refuses a store that writes although a condition is false, as several emulators do. `harms` are those that its answers
/// tell.
///
/// # Errors
/// It does so, or nobody knows.
pub(super) fn try_conditions(store: &Objects, harms: &mut Vec<Harm>) -> Result<(), Error> {
    for _ in 0..MOST_TRIALS {
        let mut random = [0; 16];
        fill(&mut random)?;
        let (mut trial, mut request) = Trial::begin(&store.session, Nonce::from_bytes(random));
        loop {
            let answer = store.ask(request);
            harms.extend(answer.iter().flat_map(|response| store.session.harms_of_write(response)));
            match trial.answer(answer.as_ref().map_err(Clone::clone)) {
                Verdict::Ask(next) => request = next,
                Verdict::Sound => return Ok(()),
                Verdict::Disturbed => break,
                Verdict::Ignored(what) => {
                    let message = format!(
                        "{}: it ignores conditions, so it cannot keep locks ({what}); use a service that honours \
                         If-Match and If-None-Match",
                        store.url
                    );
                    return Err(Error::new(ErrorKind::StoreRefused, message));
                }
                Verdict::Failed(outcome) => return Err(store.judged(outcome)),
            }
        }
    }
    // Others try it at the same time, and with success.
    Ok(())
}

fn conditions(store: &Objects, harms: &mut Vec<Harm>) -> Finding {
    const CHECK: &str = "objects.conditions";
    match try_conditions(store, harms) {
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
