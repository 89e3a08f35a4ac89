//! Checks if this table, used from this machine, can keep locks.
//!
//! [`described`] judges how the table describes itself; permissions are tried. A question that is not permitted costs
//! its own answer and no other.

mod described;

use std::time::Duration;

use leasehold_core::op::{Denial, DenialKind, FaultKind, Outcome, Refusal};
use leasehold_wire::HttpResponse;
use leasehold_wire::dynamodb::Request;
use leasehold_wire::dynamodb::table::{self, Writers};

use super::credentials::Keys;
use super::{Dynamodb, ahead};
use crate::admin::checks::dynamodb as check;
use crate::admin::doctor::{Check, Finding};
use crate::aws::region;
use crate::host::clock;
use crate::transport::readiness::NoServer;
use crate::url::Exposure;
use crate::url::dynamodb::DynamodbUrl;

/// DynamoDB refuses signatures of clocks that are further off.
const SIGNED_WITHIN_MS: u64 = 5 * 60_000;
/// Tokens start at the wall clock: only clocks that agree can exceed a forgotten token.
const LARGE_OFFSET_MS: u64 = 60_000;

const ASK_AGAIN: &str = "ask again";
const KEYS_MATCH: &str = "name the table's keys in the url, with key, sort_key and sort_key_value";

pub(super) fn diagnose(store: &Dynamodb) -> Vec<Finding> {
    let mut findings = vec![way(&store.url)];
    match store.keys() {
        Ok(of) => findings.push(keys(&of, clock::unix_ms())),
        Err(why) => {
            findings.push(unusable(check::KEYS, &why));
            return findings;
        }
    }
    let mut asking = Asking::of(store);
    let settings = store.codec.settings();
    let mut arn = None;
    match asking.ask(table::describe(settings), |response| table::described(settings, response)) {
        Ok(description) => {
            findings.extend(described::findings(settings, &store.url, &description));
            arn = description.arn;
        }
        Err(NoServer::Refused(Refusal::Denied(denial))) if denial.kind == DenialKind::Permission => {
            findings.push(check::TABLE.warns(
                "this identity may not describe the table, so its keys, replicas and billing are unknown",
                "allow dynamodb:DescribeTable on it",
            ));
        }
        Err(why) => {
            findings.push(unusable(check::TABLE, &why));
            if is_away(&why) {
                return findings;
            }
        }
    }
    let expiry = asking.ask(table::describe_expiry(settings), |response| table::expires(settings, response));
    findings.push(described::expiry(settings, expiry));
    findings.extend(rights(&mut asking, arn.as_deref()));
    let writers = asking.ask(table::sample(settings), |response| table::writers(settings, response));
    findings.push(completions(writers));
    findings.extend(asking.throttling());
    findings.push(asking.clock());
    findings
}

/// Sends requests that are no operations on locks, and notes the server's clock.
struct Asking<'a> {
    store: &'a Dynamodb,
    asked: u32,
    throttled: Option<(u32, String)>,
    /// The offset of the server's clock, and its error, in milliseconds.
    ahead: Option<(i64, u64)>,
}

impl<'a> Asking<'a> {
    fn of(store: &'a Dynamodb) -> Self {
        Self { store, asked: 0, throttled: None, ahead: None }
    }

    fn ask<T>(
        &mut self,
        request: Request,
        read: impl FnOnce(&HttpResponse) -> Result<T, Outcome>,
    ) -> Result<T, NoServer> {
        let sent = clock::unix_ms();
        let answer = self.store.ask(request);
        let got = clock::unix_ms();
        self.asked += 1;
        if let Ok(response) = &answer {
            let closest =
                [self.ahead, ahead(sent, got, response)].into_iter().flatten().min_by_key(|(_, doubt)| *doubt);
            self.ahead = closest;
        }
        let result = answer.and_then(|response| read(&response).map_err(NoServer::from));
        if let Err(why @ NoServer::Refused(Refusal::Throttled(_))) = &result {
            let count = self.throttled.as_ref().map_or(0, |(count, _)| *count);
            self.throttled = Some((count + 1, why.to_string()));
        }
        result
    }

    fn throttling(&self) -> Option<Finding> {
        let (count, words) = self.throttled.as_ref()?;
        Some(check::THROTTLING.fails(
            format!("{count} of the {} requests of this check were throttled: {words}", self.asked),
            "bill the table by request, or give it more units; a lock whose renewals are refused for its whole ttl is \
             lost",
        ))
    }

    fn clock(&self) -> Finding {
        let Some((offset, doubt)) = self.ahead else {
            return check::CLOCK.passes("the server does not report its time");
        };
        let seconds = offset as f64 / 1e3;
        let off = offset.unsigned_abs();
        if off > SIGNED_WITHIN_MS.saturating_add(doubt) {
            check::CLOCK.fails(
                format!(
                    "the server's clock is {seconds:+.0} s off this machine's: AWS refuses signatures by a clock that \
                     is more than 5 minutes off"
                ),
                "correct this machine's clock, and keep it right with NTP. After one refusal, requests for locks are \
                 signed by the server's clock, but those for roles and SSO sessions are not",
            )
        } else if off > LARGE_OFFSET_MS.saturating_add(doubt) {
            check::CLOCK.warns(
                format!("the server's clock is {seconds:+.0} s off this machine's"),
                "keep this machine's clock right with NTP: leases do not depend on it, but beyond 5 minutes signatures \
                 are refused, and if a counter is lost, tokens keep growing only if the clocks agree",
            )
        } else {
            check::CLOCK.passes(format!("within {:.1} s of this machine's", seconds.abs().max(0.1)))
        }
    }
}

fn way(url: &DynamodbUrl) -> Finding {
    let base = &url.endpoint.base;
    if let Some(host) = url.host().filter(|host| region::is_of_aws(host))
        && !host.split('.').any(|part| part.eq_ignore_ascii_case(&url.region))
    {
        return check::WAY.fails(
            format!("by its name, {base} is not in the Region {} for which requests are signed", url.region),
            "name the Region of the endpoint, or omit the endpoint",
        );
    }
    match url.endpoint.reach {
        Exposure::Tls => check::WAY.passes(format!("TLS, to {base}")),
        Exposure::Loopback => check::WAY.passes(format!("{base} is on this machine")),
        Exposure::Plaintext => check::WAY.fails(
            "nothing is encrypted: everybody on the network path can read requests and change answers",
            "use https, or keep to a network that you trust",
        ),
    }
}

/// The source of the keys, without the keys.
fn keys(keys: &Keys, unix_ms: u64) -> Finding {
    let source = &keys.source;
    match keys.expires_unix_ms {
        Some(at) if at <= unix_ms => check::KEYS.warns(
            format!("of {source}; by this machine's clock they expired {} ago", lasting(unix_ms - at)),
            "check that this machine's clock is right, and that the source of the credentials renews them",
        ),
        Some(at) => check::KEYS
            .passes(format!("of {source}; they last another {}, and are renewed before", lasting(at - unix_ms))),
        None if keys.session_token.is_some() => check::KEYS.warns(
            format!("temporary ones of {source}, which does not say when they expire"),
            "locks are lost when these expire, unless the environment replaces them: name a profile, role or process \
             that renews them",
        ),
        None => check::KEYS.passes(format!("of {source}; they do not expire")),
    }
}

fn lasting(ms: u64) -> String {
    match Duration::from_millis(ms).as_secs() {
        s @ 0..120 => format!("{s} s"),
        s @ 120..7_200 => format!("{} min", s / 60),
        s => format!("{} h", s / 3_600),
    }
}

/// Tries the permissions that a lock needs: a read, and a write whose condition never holds.
fn rights(asking: &mut Asking<'_>, arn: Option<&str>) -> Vec<Finding> {
    let codec = &asking.store.codec;
    let table = arn.unwrap_or_else(|| codec.settings().table());
    let read = asking.ask(codec.look(), |response| codec.found(response).map(|_| ()));
    let write = asking.ask(codec.trial(), |response| codec.tried(response));
    let tried = [("read", "dynamodb:GetItem", read), ("written", "dynamodb:UpdateItem", write)];
    let lacks: Vec<Finding> =
        tried.into_iter().filter_map(|(done, right, tried)| Some(lack(done, right, table, &tried.err()?))).collect();
    if lacks.is_empty() {
        return vec![check::RIGHTS.passes("rows can be read and written: GetItem and UpdateItem are allowed")];
    }
    lacks
}

fn lack(done: &str, right: &str, table: &str, why: &NoServer) -> Finding {
    match why {
        NoServer::Refused(Refusal::Denied(Denial { kind: DenialKind::Permission, .. })) => check::RIGHTS.fails(
            format!("rows cannot be {done}: {why}"),
            format!(
                "allow {right} on {table} in the policy of this identity. If it is allowed already: check which \
                 identity this is (`aws sts get-caller-identity`; the trust policy if it is a role), and that the \
                 policy's ARN has this Region, account and table; a policy of the organisation, the endpoint or the \
                 table may forbid it; and one that is limited by dynamodb:LeadingKeys has to allow the row `leasehold` \
                 0x1F `quorum` for this check, and nothing more for locks alone"
            ),
        ),
        NoServer::Refused(Refusal::Throttled(_) | Refusal::Unavailable(_) | Refusal::Abstains { .. })
            if !is_away(why) =>
        {
            check::RIGHTS.warns(format!("whether rows can be {done} is not known: {why}"), ASK_AGAIN)
        }
        NoServer::Fault(_) | NoServer::Refused(_) => {
            let found = unusable(check::RIGHTS, why);
            Finding { what: format!("rows cannot be {done}: {}", found.what), ..found }
        }
    }
}

/// Looks for clients that would wipe the completions of runs: Java's replaces or deletes the row.
fn completions(writers: Result<Writers, NoServer>) -> Finding {
    let found = match writers {
        Ok(found) => found,
        Err(NoServer::Refused(Refusal::Denied(denial))) if denial.kind == DenialKind::Permission => {
            return check::COMPLETIONS.passes(
                "whether other lock clients write rows of runs is unknown: dynamodb:Scan is not allowed, but locks and \
                 runs do not need it",
            );
        }
        Err(why) => {
            return check::COMPLETIONS
                .passes(format!("whether other lock clients write rows of runs is unknown: {why}"));
        }
    };
    let Writers { locks, foreign, foreign_runs } = found;
    match foreign_runs.first() {
        Some(name) => check::COMPLETIONS.fails(format!(
                "of {locks} rows, {} with a name of a run were last written by another lock client, such as {name:?}; that \
                 of AWS for Java removes the completion of finished work, which is then done again",
                foreign_runs.len()
            ),
            "let other clients lock other names than NAME@KEY, or keep runs in a table of their own",
        ),
        None => check::COMPLETIONS.passes(match foreign {
                0 => format!("of {locks} rows, none was written by another lock client"),
                some => format!(
                    "of {locks} rows, {some} were last written by another lock client, none with a name of a run"
                ),
            },
        ),
    }
}

/// The store's own words, which are exact, and advice.
fn unusable(check: Check, why: &NoServer) -> Finding {
    let what = why.to_string();
    if is_away(why) {
        let advice = "check that the network reaches the endpoint, and that Region and endpoint are right";
        return check.fails(what, advice);
    }
    match why {
        NoServer::Refused(Refusal::Denied(Denial { kind: DenialKind::Schema, .. })) => check.fails(what, KEYS_MATCH),
        NoServer::Refused(Refusal::Denied(_)) => {
            check.fails(what, "fix the cause named here, then run this check again; waiting does not help")
        }
        NoServer::Refused(Refusal::NeedsCredentials(_)) => {
            check.fails(what, "give this process valid keys, by a role, a profile or the environment")
        }
        NoServer::Fault(_)
        | NoServer::Refused(
            Refusal::Throttled(_)
            | Refusal::Unavailable(_)
            | Refusal::Abstains { .. }
            | Refusal::Conflict(_)
            | Refusal::Done(_),
        ) => check.warns(what, ASK_AGAIN),
    }
}

/// Tells if there was no answer, or none of DynamoDB.
fn is_away(why: &NoServer) -> bool {
    match why {
        NoServer::Fault(_) => true,
        // All other failures are answers.
        NoServer::Refused(Refusal::Unavailable(fault)) => fault.kind != FaultKind::Busy,
        NoServer::Refused(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use leasehold_wire::sigv4;

    use super::*;
    use crate::admin::doctor::Severity;
    use crate::aws::EnvVars;

    const NOW: u64 = 1_700_000_000_000;

    fn some_keys(expires_unix_ms: Option<u64>, token: Option<&str>) -> Keys {
        Keys {
            signing: sigv4::Credentials {
                access_key_id: "AKIDSECRET".to_owned(),
                secret_access_key: "swordfish".to_owned(),
                session_token: token.map(str::to_owned),
            },
            expires_unix_ms,
            source: "the profile \"ops\"".to_owned(),
        }
    }

    #[test]
    fn keys_are_described_by_source_and_lifetime() {
        let hour = Some(NOW + 3_599_000);
        for (given, severity, part) in [
            (some_keys(None, None), Severity::Good, "do not expire"),
            (some_keys(hour, Some("opensesame")), Severity::Good, "another 59 min"),
            (some_keys(Some(NOW + 90_000), Some("opensesame")), Severity::Good, "another 90 s"),
            (some_keys(Some(NOW - 3 * 3_600_000), Some("opensesame")), Severity::Warning, "expired 3 h ago"),
            (some_keys(None, Some("opensesame")), Severity::Warning, "does not say when they expire"),
        ] {
            let found = keys(&given, NOW);
            assert!(found.severity == severity && found.what.contains(part), "{found:?}");
            assert!(found.what.contains("the profile \"ops\""), "{found:?}");
            let shown = format!("{found:?}");
            assert!(["AKID", "swordfish", "opensesame"].iter().all(|secret| !shown.contains(secret)), "{shown}");
        }
    }

    #[test]
    fn an_endpoint_of_another_region_is_noticed() {
        let nothing = EnvVars::new(|_| None);
        let way_of = |parameters: &str| {
            way(&DynamodbUrl::parse(&format!("dynamodb://locks?region=eu-west-1{parameters}"), &nothing).unwrap())
        };
        for good in [
            "",
            "&fips=true",
            "&dualstack=true",
            "&endpoint=https://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com",
            "&endpoint=https://dynamodb.example.com",
            "&endpoint=http://127.0.0.1:8000",
        ] {
            assert_eq!(way_of(good).severity, Severity::Good, "{good}");
        }
        let other = way_of("&endpoint=https://dynamodb.us-east-1.amazonaws.com");
        assert!(other.severity == Severity::Warning && other.what.contains("eu-west-1"), "{other:?}");
        assert_eq!(way_of("&endpoint=http://dynamodb.example.com&plaintext=allow").severity, Severity::Warning);
    }
}
