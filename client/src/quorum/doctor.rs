//! Findings about a quorum as a whole, beside those about each of its nodes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::member::{Durability, Phase};

use super::check::even;
use super::identity::{KnownServers, register};
use super::nodes::{Named, Nodes};
use super::status::{NodeStatus, Standing};
use crate::admin::checks::quorum as check;
use crate::admin::doctor::Finding;
use crate::error::{Error, ErrorKind};
use crate::exec::each;
use crate::host::time::Time;
use crate::transport::{NodeRecord, Transport};

/// Tokens begin at the wall clock, so that clocks which differ by more make them jump when one node answers first.
const LARGE_OFFSET_MS: u64 = 1_000;

/// The answers of one node.
struct Examined {
    findings: Vec<Finding>,
    found: Result<NodeRecord, Error>,
    offset: Option<(i64, u64)>,
}

impl Nodes {
    pub(crate) fn diagnose(&self, transports: &[Arc<dyn Transport>]) -> Vec<Finding> {
        let examined = each(transports, |transport| {
            let found = look(transport);
            // A node that does not answer has no clock to ask for, and would only take its time again.
            let offset = found.as_ref().ok().and_then(|_| transport.clock_offset());
            Examined { findings: transport.diagnose_node(), found, offset }
        });
        let nothing = || Examined {
            findings: Vec::new(),
            found: Err(Error::internal("a thread could not be started, or has panicked")),
            offset: None,
        };
        let examined: Vec<Examined> = examined.into_iter().map(|one| one.unwrap_or_else(nothing)).collect();
        let seen = self.iter().zip(&examined);
        let statuses: Vec<NodeStatus> =
            seen.map(|(node, one)| self.status(node.name, &**node.place, &one.found)).collect();

        let mut findings = Vec::new();
        for (name, one) in self.names.iter().zip(&examined) {
            let of_node = one.findings.iter().cloned();
            findings.extend(of_node.map(|finding| finding.of_node(name)));
        }
        findings.extend(even(self.names.len()).map(|what| {
            check::SIZE.fails(what, "add or take away a node: stop all clients, then mark the nodes again")
        }));
        findings.push(self.votes(&statuses));
        findings.extend(self.runs(&statuses, &examined));
        findings.extend(statuses.iter().filter_map(membership));
        findings.extend(self.independence(&examined));
        findings.extend(self.durability(&examined));
        findings.extend(self.clocks(&examined));
        findings
    }

    fn votes(&self, statuses: &[NodeStatus]) -> Finding {
        let count = |which: fn(Standing) -> bool| statuses.iter().filter(|status| which(status.standing)).count();
        let (all, answer, vote, q) =
            (statuses.len(), count(Standing::answers), count(Standing::votes), self.majority());
        let what = format!("{answer} of {all} nodes answer, {vote} vote, {q} are needed");
        let wait = format!("{:.1} s", self.abstention().as_secs_f64());
        if vote == all {
            check::VOTES.passes(what)
        } else if vote >= q {
            let advice = format!(
                "repair the nodes named here: {} more may fail; nodes that abstain vote again once a client has waited \
                 {wait} for them: run `leasehold quorum join`, unless a program waits for a lock anyway",
                vote - q
            );
            check::VOTES.warns(what, advice)
        } else if answer >= q {
            let advice = format!(
                "no lock can be acquired until enough nodes vote: run `leasehold quorum join`, which waits for them \
                 ({wait}); if the quorum is new, run `leasehold quorum init`, which makes it ready at once"
            );
            check::VOTES.fails(what, advice)
        } else {
            check::VOTES.fails(what, "no lock can be acquired: bring back the nodes that do not answer")
        }
    }

    /// Nodes that may have lost completions of finished work do not count for runs, though they vote on locks. `None` while too few
    /// vote on those.
    fn runs(&self, statuses: &[NodeStatus], examined: &[Examined]) -> Option<Finding> {
        let now = Time::System.unix_ms();
        let doubt_ms = |(status, one): (&NodeStatus, &Examined)| {
            let phase = one.found.as_ref().ok()?.marker.as_ref()?.phase;
            match (status.standing, phase) {
                (Standing::Rejoined, Phase::Rejoined { trusted_from_unix_ms }) => {
                    Some(trusted_from_unix_ms.saturating_sub(now))
                }
                (standing, _) => (standing == Standing::Member).then_some(0),
            }
        };
        let mut doubts: Vec<u64> = statuses.iter().zip(examined).filter_map(doubt_ms).collect();
        doubts.sort_unstable();
        let count = doubts.iter().filter(|left| **left == 0).count();
        let what = format!("{count} of {} nodes count for runs, {} are needed", statuses.len(), self.majority());
        Some(match *doubts.get(self.majority().checked_sub(1)?)? {
            0 => check::RUNS.passes(what),
            left => check::RUNS.fails(
                format!(
                    "{what}: the others may have lost completions of finished work, so runs fail for another {:.1} \
                     days",
                    Duration::from_millis(left).as_secs_f64() / 86_400.0
                ),
                "bring back the nodes that are away; or, if you know that no completion was lost, run `leasehold once \
                 --trust-quorum` meanwhile",
            ),
        })
    }

    fn independence(&self, examined: &[Examined]) -> Vec<Finding> {
        let known = KnownServers::default();
        let mut findings = Vec::new();
        for (Named { name, .. }, one) in self.iter().zip(examined) {
            if let Ok(found) = &one.found
                && let Err(other) = register(&known, name, found)
            {
                let what = format!("{other} and {name} are the same server: its failure takes two votes at once");
                findings.push(check::INDEPENDENCE.fails(what, "name each server once"));
            }
        }
        let mut hosts: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for Named { name, place } in self.iter() {
            if let Some(machine) = place.machine() {
                hosts.entry(machine).or_default().push(name);
            }
        }
        for (host, names) in hosts.iter().filter(|(_, names)| names.len() > 1) {
            let what = format!("{} are all on {host}: when it fails, their votes are gone together", names.join(", "));
            findings.push(check::INDEPENDENCE.warns(what, "keep each node on a machine of its own"));
        }
        if findings.is_empty() {
            findings.push(check::INDEPENDENCE.passes("no two nodes are seen to share a server or a machine"));
        }
        findings
    }

    fn durability(&self, examined: &[Examined]) -> Vec<Finding> {
        self.iter()
            .zip(examined)
            .filter(|(node, _)| node.place.config().durability == Durability::NotDeclared)
            .map(|(Named { name, .. }, one)| match &one.found {
                Ok(NodeRecord { run: None, run_refused, .. }) => check::DURABILITY
                    .fails(
                        format!(
                            "not declared durable, and it does not tell whether it was restarted{}: if it is restarted \
                             with old data, it votes on leases that it has forgotten",
                            run_refused.as_ref().map(|why| format!(" ({why})")).unwrap_or_default()
                        ),
                        "let the user run INFO (+info), or make the server durable and write durable=yes into its url",
                    )
                    .of_node(name),
                Ok(_) | Err(_) => check::DURABILITY
                    .passes(format!(
                        "not declared durable, so that after each restart it does not vote for {:.1} s",
                        self.abstention().as_secs_f64()
                    ))
                    .of_node(name),
            })
            .collect()
    }

    fn clocks(&self, examined: &[Examined]) -> Vec<Finding> {
        let offsets = self.names.iter().zip(examined).filter_map(|(name, one)| Some((name, one.offset?)));
        offsets
            .map(|(name, (offset, doubt))| {
                let seconds = offset as f64 / 1e3;
                let finding = if offset.unsigned_abs() > LARGE_OFFSET_MS.saturating_add(doubt) {
                    check::CLOCK.fails(
                        format!("its clock is {seconds:+.1} s off this machine's"),
                        "synchronize all clocks with NTP: leases do not depend on them, but after a node has lost its \
                         counters, tokens grow only if the clocks agree",
                    )
                } else {
                    check::CLOCK.passes(format!("within {:.1} s of this machine's", seconds.abs().max(0.1)))
                };
                finding.of_node(name)
            })
            .collect()
    }
}

/// Looks at a node, and once more if that fails at once: an idle connection may have been closed by a restart.
pub(super) fn look(transport: &Arc<dyn Transport>) -> Result<NodeRecord, Error> {
    const AT_ONCE: Duration = Duration::from_millis(500);
    let began = Time::System.monotonic();
    match transport.look() {
        Err(error)
            if error.kind() == ErrorKind::StoreUnavailable && Time::System.monotonic().since(began) < AT_ONCE =>
        {
            transport.look()
        }
        found => found,
    }
}

/// A finding about a node that is not simply a member.
fn membership(status: &NodeStatus) -> Option<Finding> {
    let what = status.meaning.clone();
    let finding = match status.standing {
        // The node's own findings say it.
        Standing::Member | Standing::Unreachable => None,
        Standing::Rejoined => Some(check::NODE.passes(what)),
        Standing::Joining | Standing::Restarted | Standing::Unmarked => {
            Some(check::NODE.warns(what, "find out why it lost its data, unless it is new"))
        }
        Standing::Stranger | Standing::Unreadable | Standing::Refused => {
            Some(check::NODE.fails(what, "correct the problem that is named here; the node does not vote until then"))
        }
    };
    finding.map(|finding| finding.of_node(&status.name))
}
