//! Whether this table, asked by this machine, can keep locks.

use leasehold_core::wire::dynamodb::table::{self, Billing, Description, Reach as TableReach, Status};

use super::Dynamodb;
use super::table as whole;
use crate::doctor::Finding;
use crate::error::{Error, ErrorKind};
use crate::transport::Transport;
use crate::url::Reach;

pub(super) fn diagnose(store: &Dynamodb) -> Vec<Finding> {
    let mut findings = vec![way(store)];
    match whole::description(store) {
        Err(error) => findings.push(unreachable(&error)),
        Ok(None) => {
            findings.push(Finding::warning(
                "dynamodb.table",
                "not allowed to look at the table, so its key, its replicas and its billing are not known",
                "allow dynamodb:DescribeTable on it",
            ));
            findings.push(reads(store));
        }
        Ok(Some(description)) => {
            findings.extend(described(store, &description));
            findings.push(reads(store));
        }
    }
    findings
}

fn way(store: &Dynamodb) -> Finding {
    const CHECK: &str = "dynamodb.way";
    match store.url.endpoint.reach {
        Reach::Tls => Finding::good(CHECK, "TLS"),
        Reach::Loopback => Finding::good(CHECK, "the server is on this machine"),
        Reach::Plaintext => Finding::warning(
            CHECK,
            "nothing is encrypted: everybody on the way can read what is sent, and change what comes back",
            "use https, or keep to a network that you trust",
        ),
    }
}

fn unreachable(error: &Error) -> Finding {
    let advice = if error.kind() == ErrorKind::StoreUnavailable {
        "see that the network reaches the endpoint, and that region and endpoint are right"
    } else {
        "look at the identity's policy, the role's trust policy, the table's name and the region"
    };
    Finding::problem("dynamodb.table", error.to_string(), advice)
}

fn reads(store: &Dynamodb) -> Finding {
    const CHECK: &str = "dynamodb.rights";
    match store.look() {
        Ok(_) => Finding::good(CHECK, "rows can be read"),
        Err(error) => Finding::problem(
            CHECK,
            format!("rows cannot be read: {error}"),
            "allow dynamodb:GetItem and dynamodb:UpdateItem",
        ),
    }
}

fn described(store: &Dynamodb, description: &Description) -> Vec<Finding> {
    let reach = match table::judge(store.session.settings(), description) {
        Ok(reach) => reach,
        Err(denial) => {
            return vec![Finding::problem("dynamodb.table", denial.to_string(), "name another table, or its keys")];
        }
    };
    let state = match &description.status {
        Status::Active | Status::Updating => Finding::good("dynamodb.table", "it is there, and its key is ours"),
        Status::Creating | Status::Other(_) => {
            Finding::problem("dynamodb.table", "it cannot be used yet", "wait until DynamoDB has made it")
        }
    };
    vec![state, billing(description), replicas(&reach)]
}

fn billing(description: &Description) -> Finding {
    const CHECK: &str = "dynamodb.billing";
    match &description.billing {
        Some(Billing::OnDemand) => Finding::good(CHECK, "by request"),
        Some(Billing::Provisioned { read_units, write_units }) => Finding::warning(
            CHECK,
            format!("{read_units} read units and {write_units} write units in a second; what is above them is refused"),
            "a held lock takes 6 writes in a minute at the default ttl, a waiter a read in every 2 s; if that may be too much, \
             bill the table by request",
        ),
        None => Finding::good(CHECK, "not told"),
    }
}

fn replicas(reach: &TableReach) -> Finding {
    const CHECK: &str = "dynamodb.replicas";
    match reach {
        TableReach::OneRegion => Finding::good(CHECK, "none: the table is in one Region"),
        TableReach::AllRegions => Finding::good(CHECK, "they agree: strong consistency across Regions"),
        TableReach::EachRegionAlone { regions } => Finding::problem(
            CHECK,
            format!(
                "those in {} lag behind: clients of different Regions do not exclude each other",
                regions.join(", ")
            ),
            "let all clients use one Region, or make a table with strong consistency across Regions",
        ),
    }
}
