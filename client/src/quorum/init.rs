//! Marking the nodes of a quorum.

use std::sync::Arc;

use leasehold_core::member::{LossId, Marker, Phase};

use super::answers::{Quorum, unavailable};
use super::check::check_identities;
use super::status::Standing;
use crate::error::{Error, ErrorKind};
use crate::exec::each;
use crate::host::time::Time;
use crate::transport::{NodeRecord, Transport};

/// The choice of marking nodes whatever they remember.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Force {
    /// Only nodes without a marker, and only all of them at once.
    #[default]
    No,
    /// All nodes that answer. What they remember of leases that may still be valid no longer keeps them from voting:
    /// only safe while no lock is held.
    Yes,
}

/// The result of [`Quorum::init`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Init {
    /// All nodes, or with [`Force::Yes`] those that answered, are members now.
    Marked {
        /// The number of members.
        nodes: usize,
        /// Names of nodes that did not answer, and were left out.
        left_out: Vec<String>,
    },
    /// The quorum exists, and all nodes are in it. Nothing was done.
    Exists,
    /// The quorum exists, and these nodes have lost their memory. They come back by themselves. Nothing was done.
    Recovering {
        /// Their names.
        nodes: Vec<String>,
    },
    /// No node votes, but clients have begun to wait for the quorum to come up by itself. Nothing was done.
    ComingUp,
}

impl Quorum {
    /// Makes a quorum of nodes that are new.
    ///
    /// # Errors
    /// Without [`Force::Yes`]: [`ErrorKind::Config`] where a node is marked otherwise, [`ErrorKind::StoreUnavailable`]
    /// where one does not answer. With it: where none does. [`ErrorKind::StoreUnavailable`] also where a node
    /// changed, or failed, while it was being marked; what was marked by then is taken back.
    pub fn init(&self, force: Force) -> Result<Init, Error> {
        check_identities(self)?;
        match force {
            Force::No => self.init_new(),
            Force::Yes => self.mark_all(),
        }
    }

    /// For a client that connects: as [`Quorum::init`] without force, except that of a quorum that exists a minority
    /// may be missing.
    pub(crate) fn create(&mut self) -> Result<(), Error> {
        if self.status().iter().any(|status| status.standing.votes()) {
            return Ok(());
        }
        if let Init::Marked { .. } = self.init_new()? {
            for answered in &mut self.answers {
                if let Ok(transport) = &answered.transport {
                    answered.found = transport.look();
                }
            }
        }
        Ok(())
    }

    fn init_new(&self) -> Result<Init, Error> {
        let statuses = self.status();
        for status in &statuses {
            let wrong = |kind| Err(Error::new(kind, format!("{} {}; nothing was marked", status.name, status.meaning)));
            match status.standing {
                Standing::Stranger | Standing::Unreadable => return wrong(ErrorKind::Config),
                Standing::Refused => return wrong(ErrorKind::StoreRefused),
                Standing::Unreachable => {
                    return Err(unavailable(format!(
                        "{} {}; a quorum is made of all its nodes at once, so nothing was marked: start the nodes that \
                         do not answer, then try again",
                        status.name, status.meaning
                    )));
                }
                Standing::Member
                | Standing::Rejoined
                | Standing::Joining
                | Standing::Restarted
                | Standing::Unmarked => {}
            }
        }
        let votes = statuses.iter().filter(|status| status.standing.votes()).count();
        let unmarked = statuses.iter().filter(|status| status.standing == Standing::Unmarked).count();
        if votes == statuses.len() {
            return Ok(Init::Exists);
        }
        if unmarked == statuses.len() {
            return self.mark_all();
        }
        // A node that was a member before it was restarted tells of a quorum that exists.
        if votes == 0 && statuses.iter().all(|status| status.standing != Standing::Restarted) {
            return Ok(Init::ComingUp);
        }
        let lost = statuses.into_iter().filter(|status| !status.standing.votes()).map(|status| status.name);
        Ok(Init::Recovering { nodes: lost.collect() })
    }

    fn mark_all(&self) -> Result<Init, Error> {
        let answering: Vec<_> = self
            .answers()
            .filter_map(|(node, answered)| {
                Some((node.name, answered.transport.as_ref().ok()?, answered.found.as_ref().ok()?))
            })
            .collect();
        if answering.is_empty() {
            let why: Vec<String> = self.status().into_iter().map(|status| status.meaning).collect();
            return Err(unavailable(format!("no node answers, so nothing was marked: {}", why.join("; "))));
        }
        let markers: Vec<_> = answering.iter().map(|(_, _, found)| self.member(found)).collect::<Result<_, _>>()?;
        let nodes: Vec<_> = answering.iter().zip(&markers).collect();
        let marked =
            each(&nodes, |((name, transport, found), marker)| match transport.mark(&found.text, Some(marker)) {
                Ok(true) => Ok(()),
                Ok(false) => Err(unavailable(format!(
                    "{name} was marked by another client meanwhile, so it was not changed; see `leasehold quorum \
                     status`"
                ))),
                Err(error) => Err(error),
            });
        let no_thread = || Err(Error::internal("cannot start a thread"));
        let failed = marked.into_iter().find_map(|marked| marked.unwrap_or_else(no_thread).err());
        if let Some(error) = failed {
            let now = take_back(&nodes);
            return Err(Error::new(error.kind(), format!("the nodes were not marked: {error}; {now}")));
        }
        let left_out = self.answers().filter(|(_, answered)| answered.found.is_err());
        let left_out = left_out.map(|(node, _)| node.name.to_owned()).collect();
        Ok(Init::Marked { nodes: answering.len(), left_out })
    }

    fn member(&self, found: &NodeRecord) -> Result<Marker, Error> {
        let agreed = self.agreed();
        Ok(Marker {
            quorum: agreed.id(),
            max_ttl_ms: u64::try_from(agreed.max_ttl().as_millis()).unwrap_or(u64::MAX),
            stamp: LossId(random()?),
            phase: Phase::Member,
            run: found.run.clone(),
        })
    }
}

/// A node, as it is named, with what it showed before it was marked.
type Answering<'a> = (&'a str, &'a Arc<dyn Transport>, &'a NodeRecord);

/// Makes of nodes what they were before they were given these markers, and says what came of it: a quorum of which only
/// some are marked would vote without the others, which would have to win their trust name by name.
fn take_back(nodes: &[(&Answering<'_>, &Marker)]) -> String {
    // Those that did not answer may have been marked as well.
    let done = each(nodes, |((_, transport, found), marker)| {
        // A marker that this version does not understand cannot be written again.
        let can = found.marker.is_some() || found.text.is_empty();
        can && transport.mark(marker.text().as_bytes(), found.marker.as_ref()).is_ok()
    });
    let names = nodes.iter().map(|((name, ..), _)| *name);
    let left: Vec<_> = names.zip(done).filter(|(_, done)| *done != Some(true)).map(|(name, _)| name).collect();
    match left.as_slice() {
        [] => "no node was changed; try again".to_owned(),
        left => format!("{} may be marked: try again with --force, while nobody holds a lock", left.join(", ")),
    }
}

fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    Time::System.fill(&mut bytes)?;
    Ok(bytes)
}
