//! `leasehold doctor`: checks a store, with advice.

use leasehold::{Error, ErrorKind, Finding, Severity, Stores};
use serde_json::json;

use crate::args::DoctorArgs;
use crate::output::{Failure, answer, answer_json};
use crate::paint::{GOOD, PROBLEM, Style, WARNING, painted};
use crate::status;
use crate::store::{Target, shown};

/// A finding of the client, or of this command where no client could be made.
struct Line {
    severity: Severity,
    /// The node of a quorum that it is about.
    node: Option<String>,
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
                    "node": line.node,
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
        Severity::Problem | _ => status::NOT_DONE,
    })
}

/// The stores' urls, as far as they can be read, and their findings.
fn examine(target: &Target) -> (Option<String>, Vec<Line>) {
    match target.open().and_then(|client| Ok((shown(client.stores()), client.doctor()?))) {
        Ok((store, findings)) => (Some(store), findings.into_iter().map(Line::from).collect()),
        Err(error) => (target.urls().ok().map(|urls| shown(&urls)), vec![Line::from(&error)]),
    }
}

/// A group of lines for each node, one for the quorum as a whole or a single store, and a summary.
fn text(store: Option<&str>, lines: &[Line]) -> String {
    let mut nodes: Vec<&str> = Vec::new();
    for node in lines.iter().filter_map(|line| line.node.as_deref()) {
        if !nodes.contains(&node) {
            nodes.push(node);
        }
    }
    let of = |node: Option<&str>| -> Vec<&Line> { lines.iter().filter(|line| line.node.as_deref() == node).collect() };
    let groups = nodes.iter().map(|node| (format!("node {node}\n"), of(Some(node))));
    let title = match store {
        Some(_) if !nodes.is_empty() => format!("the quorum of {}\n", nodes.len()),
        Some(store) => format!("store {store}\n"),
        None => String::new(),
    };
    let mut text = String::new();
    for (title, lines) in groups.chain([(title, of(None))]) {
        text.push_str(&title);
        for line in lines {
            let severity = painted(look(line.severity), format_args!("{:<8}", line.severity.name()));
            text.push_str(&format!("{severity} {}: {}\n", line.check, line.what));
            if !line.advice.is_empty() {
                text.push_str(&format!("         -> {}\n", line.advice));
            }
        }
    }
    text.push_str(&summary(lines));
    text
}

/// The number of findings of each kind, the worst first.
fn summary(lines: &[Line]) -> String {
    let count = |severity| lines.iter().filter(|line| line.severity == severity).count();
    let kinds = [(Severity::Problem, "problem", "problems"), (Severity::Warning, "warning", "warnings")];
    let kinds = kinds.into_iter().filter_map(|(severity, one, several)| match count(severity) {
        0 => None,
        1 => Some(painted(look(severity), format_args!("1 {one}"))),
        count => Some(painted(look(severity), format_args!("{count} {several}"))),
    });
    let good = match count(Severity::Good) {
        good if good == lines.len() => painted(look(Severity::Good), format_args!("all {good} checks are good")),
        good => format!("{good} good"),
    };
    let all: Vec<String> = kinds.chain([good]).collect();
    format!("{}\n", all.join(", "))
}

const fn look(severity: Severity) -> Style {
    match severity {
        Severity::Good => GOOD,
        Severity::Warning => WARNING,
        Severity::Problem | _ => PROBLEM,
    }
}

impl From<Finding> for Line {
    fn from(finding: Finding) -> Self {
        let Finding { severity, node, check, what, advice, .. } = finding;
        Self { severity, node, check, what, advice }
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
        let (severity, check) = (Severity::Problem, "store.open");
        Self { severity, node: None, check, what: error.to_string(), advice: advice.to_owned() }
    }
}
