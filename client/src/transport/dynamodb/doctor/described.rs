//! Judges how a table describes itself, for locks.

use leasehold_core::op::{DenialKind, Refusal};
use leasehold_wire::dynamodb::Settings;
use leasehold_wire::dynamodb::table::{self, Billing, Description, LockScope, Status};

use crate::admin::checks::dynamodb as check;
use crate::admin::doctor::Finding;
use crate::transport::readiness::NoServer;
use crate::url::dynamodb::DynamodbUrl;

/// The name that DynamoDB Local gives every region.
const LOCAL: &str = "ddblocal";

pub(super) fn findings(settings: &Settings, url: &DynamodbUrl, description: &Description) -> Vec<Finding> {
    let mut findings: Vec<Finding> = identity(url, description).into_iter().collect();
    let reach = match table::judge(settings, description) {
        Ok(reach) => reach,
        Err(denial) => {
            let advice = "name another table, or its keys in the url, with key, sort_key and sort_key_value";
            findings.push(check::TABLE.fails(denial.to_string(), advice));
            return findings;
        }
    };
    findings.push(match &description.status {
        Status::Active | Status::Updating => check::TABLE.passes("it exists, with the right keys"),
        Status::Creating | Status::Other(_) => {
            check::TABLE.fails("it cannot be used yet", "wait until DynamoDB has created it")
        }
    });
    findings.push(billing(description));
    findings.push(replicas(&reach, &description.witnesses));
    findings
}

/// The account in the table's ARN; without an ARN, the table is in the account of the keys.
fn identity(url: &DynamodbUrl, description: &Description) -> Option<Finding> {
    let mut parts = description.arn.as_deref()?.split(':').skip(3);
    let (region, account) = (parts.next()?, parts.next()?);
    if region == LOCAL {
        return Some(
            check::IDENTITY.passes(format!("account {account}, of DynamoDB Local, which does not check identities")),
        );
    }
    if region != url.region {
        return Some(check::IDENTITY.fails(
            format!("the table is in the Region {region} by its ARN, and in {} by the url", url.region),
            "let all clients name the same Region and endpoint: tables of one name in two Regions are two tables",
        ));
    }
    Some(check::IDENTITY.passes(format!("account {account}, Region {region}")))
}

fn billing(description: &Description) -> Finding {
    match &description.billing {
        Some(Billing::OnDemand) => check::BILLING.passes("by request"),
        Some(Billing::Provisioned { read_units, write_units }) => check::BILLING.fails(
            format!(
                "{read_units} read units and {write_units} write units per second; requests beyond them are \
                     refused"
            ),
            "a held lock takes about 7 writes in a minute at the default ttl, a waiter about one read in a second; if \
             that may be too much, bill the table by request",
        ),
        None => check::BILLING.passes("not shown"),
    }
}

fn replicas(reach: &LockScope, witnesses: &[String]) -> Finding {
    match reach {
        LockScope::OneRegion => check::REPLICAS
            .passes("none are reported: the table is in one Region, unless it is a global table of version 2017"),
        LockScope::AllRegions if witnesses.is_empty() => {
            check::REPLICAS.passes("they agree: strong consistency across Regions")
        }
        LockScope::AllRegions => check::REPLICAS.passes(format!(
            "they agree: strong consistency across Regions, with a witness in {}",
            witnesses.join(", ")
        )),
        LockScope::EachRegionAlone { regions } => check::REPLICAS.fails(
            format!(
                "those in {} lag behind: clients of different Regions do not exclude each other",
                regions.join(", ")
            ),
            "let all clients use one Region, or create a table with strong consistency across Regions; \
             require_strong=true in the url refuses tables such as this",
        ),
    }
}

/// DynamoDB removes rows by the table's time to live even while they are held.
pub(super) fn expiry(settings: &Settings, described: Result<Option<String>, NoServer>) -> Finding {
    let removed = match described {
        Ok(removed) => removed,
        Err(why) => {
            let not_known = match &why {
                NoServer::Refused(Refusal::Denied(denial)) if denial.kind == DenialKind::Permission => {
                    "the table's time to live is unknown: dynamodb:DescribeTimeToLive is not allowed, but locks do \
                     not need it"
                        .to_owned()
                }
                NoServer::Refused(_) | NoServer::Fault(_) => {
                    format!("the table's time to live is unknown: {why}")
                }
            };
            return check::EXPIRY.passes(not_known);
        }
    };
    match (removed.as_deref(), settings.expires_name()) {
        (None, None) => check::EXPIRY.passes("off: rows stay until somebody deletes them, and tokens with them"),
        (None, Some(ours)) => check::EXPIRY.warns(
            format!("the table's time to live is off, so rows stay although they have {ours:?}"),
            "enable it for that attribute, as `leasehold table create` with this url does, or remove expires from the \
             url",
        ),
        (Some(theirs), Some(ours)) if theirs == ours => check::EXPIRY
            .passes(format!("by {ours:?}: a row is removed 7 days after its last write, and its counter with it")),
        (Some(theirs), _) if settings.clone().expires(theirs).is_err() => check::EXPIRY.fails(
            format!("the table's time to live uses {theirs:?}, an attribute that locks need for something else"),
            "disable it, and enable it for an attribute of its own, named by expires in the url",
        ),
        (Some(theirs), Some(ours)) => check::EXPIRY.fails(
            format!(
                "the table's time to live uses {theirs:?}, and the url says {ours:?}: a row that has \
                 {theirs:?} is removed while its lock is held"
            ),
            format!("write expires={theirs} in the url of every client"),
        ),
        (Some(theirs), None) => check::EXPIRY.warns(
            format!(
                "the table's time to live uses {theirs:?}, which our writes do not update: a row that has it from \
                 another program is removed while its lock is held"
            ),
            format!("add expires={theirs} to the url of every client"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::op::Denial;

    use super::*;
    use crate::admin::doctor::Severity;

    fn settings() -> Settings {
        Settings::new("locks").unwrap()
    }

    fn expiry_of(table: Option<&str>, url: Option<&str>) -> Severity {
        let settings = url.map_or_else(settings, |name| settings().expires(name).unwrap());
        expiry(&settings, Ok(table.map(str::to_owned))).severity
    }

    #[test]
    fn a_time_to_live_has_to_be_the_one_that_is_written() {
        assert_eq!(expiry_of(None, None), Severity::Good);
        assert_eq!(expiry_of(Some("forgotten"), Some("forgotten")), Severity::Good);
        assert_eq!(expiry_of(None, Some("forgotten")), Severity::Warning);
        assert_eq!(expiry_of(Some("ttl"), None), Severity::Warning);
        assert_eq!(expiry_of(Some("ttl"), Some("forgotten")), Severity::Problem);
        for ours in ["leaseDuration", "fencingToken", "grantedAt", "key"] {
            assert_eq!(expiry_of(Some(ours), None), Severity::Problem, "{ours}");
        }
    }

    #[test]
    fn a_permission_that_locks_do_not_need_may_be_missing() {
        let denied = NoServer::Refused(Refusal::Denied(Denial::new(DenialKind::Permission, "no")));
        let found = expiry(&settings(), Err(denied));
        assert!(found.severity == Severity::Good && found.what.contains("DescribeTimeToLive"), "{found:?}");
    }
}
