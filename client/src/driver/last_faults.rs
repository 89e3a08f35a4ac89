//! The last fault of each node, so that an error can name all of them; the core names the worst.

use leasehold_core::op::{Fault, Outcome, Refusal};

use crate::host::sync::Mutex;
use crate::transport::Answer;

/// One for each node.
pub(super) struct LastFaults(Vec<Mutex<Option<Fault>>>);

impl LastFaults {
    pub(super) fn new(nodes: usize) -> Self {
        Self((0..nodes).map(|_| Mutex::default()).collect())
    }

    pub(super) fn note(&self, node: usize, answer: &Answer) {
        let Some(known) = self.0.get(node) else { return };
        let of_all;
        let outcome = match answer {
            Ok(outcomes) => outcomes.first(),
            Err(fault) => {
                of_all = fault.outcome();
                Some(&of_all)
            }
        };
        let fault = match outcome {
            Some(
                Outcome::Unknown(fault)
                | Outcome::NotApplied(
                    Refusal::Unavailable(fault) | Refusal::Throttled(fault) | Refusal::NeedsCredentials(fault),
                ),
            ) => Some(fault.clone()),
            Some(
                Outcome::Applied(_)
                | Outcome::NotApplied(
                    Refusal::Conflict(_) | Refusal::Done(_) | Refusal::Denied(_) | Refusal::Abstains { .. },
                ),
            )
            | None => None,
        };
        *known.lock() = fault;
    }

    /// The nodes that did not answer their last request, and why.
    pub(super) fn all(&self) -> Vec<(usize, Fault)> {
        let known = |node: &Mutex<Option<Fault>>| node.lock().clone();
        self.0.iter().enumerate().filter_map(|(node, fault)| Some((node, known(fault)?))).collect()
    }
}

/// The reason why an operation was not carried out, or may not have been; `None` for an answer about the lock itself.
pub(super) fn why_not(answer: &Answer, at: usize) -> Option<String> {
    match answer.as_ref().map(|outcomes| outcomes.get(at)) {
        Err(fault) => match fault.outcome() {
            Outcome::Unknown(fault) | Outcome::NotApplied(Refusal::Unavailable(fault)) => Some(fault.to_string()),
            Outcome::Applied(_) | Outcome::NotApplied(_) => None,
        },
        Ok(Some(Outcome::Unknown(fault))) => Some(fault.to_string()),
        Ok(Some(Outcome::NotApplied(refusal))) => match refusal {
            Refusal::Unavailable(fault) | Refusal::Throttled(fault) | Refusal::NeedsCredentials(fault) => {
                Some(fault.to_string())
            }
            Refusal::Denied(denial) => Some(format!("the store refuses: {denial}")),
            Refusal::Abstains { .. } => Some("the node does not vote".to_owned()),
            Refusal::Conflict(_) | Refusal::Done(_) => None,
        },
        Ok(Some(Outcome::Applied(_)) | None) => None,
    }
}
