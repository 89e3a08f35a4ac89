//! `leasehold doctor`: checks a store, with advice.

use leasehold::{Error, ErrorKind, Finding, Severity, Stores};
use serde_json::json;

use crate::args::DoctorArgs;
use crate::output::{Failure, answer, answer_json};
use crate::status;
use crate::store::{Target, shown};

/// A finding of the client, or of this command where no client could be made.
struct Line {
    severity: Severity,
    check: &'static str,
    what: String,
    advice: String,
}

pub(crate) fn run(args: &DoctorArgs, target: &Target) -> Result<u8, Failure> {
    let (store, lines) = examine(target);
    let worst = lines.iter().map(|line| line.severity).max().unwrap_or(Severity::Good);
    if args.json {
        let findings: Vec<_> = lines
            .iter()
            .map(|line| {
                json!({
                    "severity": line.severity.name(),
                    "check": line.check,
                    "what": line.what,
                    "advice": line.advice,
                })
            })
            .collect();
        answer_json(&json!({ "store": store, "worst": worst.name(), "findings": findings }))?;
    } else {
        answer(&text(store.as_deref(), &lines))?;
    }
    Ok(match worst {
        Severity::Good => status::DONE,
        Severity::Warning => status::NOTHING,
        Severity::Problem => status::NOT_DONE,
    })
}

/// The stores' urls, as far as they can be read, and their findings.
fn examine(target: &Target) -> (Option<String>, Vec<Line>) {
    match target.open().and_then(|client| Ok((shown(client.stores()), client.doctor()?))) {
        Ok((store, findings)) => (Some(store), findings.into_iter().map(Line::from).collect()),
        Err(error) => (target.urls().ok().map(|urls| shown(&urls)), vec![Line::from(&error)]),
    }
}

fn text(store: Option<&str>, lines: &[Line]) -> String {
    let mut text = store.map_or_else(String::new, |store| format!("store {store}\n"));
    for line in lines {
        text.push_str(&format!("{:<8} {}: {}\n", line.severity.name(), line.check, line.what));
        if !line.advice.is_empty() {
            text.push_str(&format!("         -> {}\n", line.advice));
        }
    }
    text
}

impl From<Finding> for Line {
    fn from(finding: Finding) -> Self {
        Self { severity: finding.severity, check: finding.check, what: finding.what, advice: finding.advice }
    }
}

impl From<&Error> for Line {
    fn from(error: &Error) -> Self {
        // The store's own words, which come first, are the exact ones.
        let advice = match error.kind() {
            ErrorKind::Config => "correct the store's url, in --store or LEASEHOLD_STORE",
            ErrorKind::StoreUnavailable => "check that the store runs and answers, then run this check again",
            ErrorKind::StoreRefused => "fix the cause named above, then run this check again; waiting does not help",
            ErrorKind::Busy
            | ErrorKind::TimedOut
            | ErrorKind::Lost
            | ErrorKind::NotOwned
            | ErrorKind::Cancelled
            | ErrorKind::Closed
            | ErrorKind::StaleToken
            | ErrorKind::Internal
            | _ => "",
        };
        Self { severity: Severity::Problem, check: "store.open", what: error.to_string(), advice: advice.to_owned() }
    }
}
