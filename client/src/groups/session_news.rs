//! News for holders whose lock others have changed, where the lock itself is not renewed, but the session that it belongs to.

use leasehold_core::Resource;
use leasehold_core::op::{Applied, Outcome, Refusal, Seen, Session};
use leasehold_core::session::{resource_of, tell};

use crate::admin::inspect::{error_of, unavailable};
use crate::client::Client;
use crate::error::{Error, ErrorKind};

/// The sessions that the record of a lock has named, each with its node.
pub(crate) type Named = Vec<(usize, Session)>;

impl Client {
    /// The sessions that the records of a lock name, as far as nodes answer. Ask before the records are changed, since a
    /// rival may have them afterwards.
    pub(crate) async fn named_sessions(&self, resource: &str) -> Result<Named, Error> {
        let nodes = self.driver().observed_nodes();
        if nodes.is_empty() {
            return Ok(Named::new());
        }
        let (mut named, name) = (Named::new(), Resource::new(resource)?);
        for &node in nodes {
            let read = self.driver().read_records(node..node + 1, std::slice::from_ref(&name)).await?;
            for outcome in read.into_iter().flatten() {
                let Outcome::Applied(Applied::Read(Seen { holding: Some(holding), .. })) = outcome else { continue };
                named.extend(holding.session.filter(Session::is_record).map(|session| (node, session)));
            }
        }
        Ok(named)
    }

    /// Tells the holders of these sessions to look at their locks, and those that the record names by now.
    ///
    /// # Errors
    /// A session could not be told, so that its holder may believe in the lock for longer.
    pub(crate) async fn tell_sessions(&self, resource: &str, mut named: Named) -> Result<(), Error> {
        for now in self.named_sessions(resource).await? {
            if !named.contains(&now) {
                named.push(now);
            }
        }
        for (node, session) in named {
            self.tell_session(node, &session).await.map_err(|error| {
                let message = format!(
                    "the lock was changed, but its session {} could not be notified, so its holder may not know: \
                     {error}; try again",
                    session.label
                );
                Error::new(error.kind(), message).on(resource)
            })?;
        }
        Ok(())
    }

    async fn tell_session(&self, node: usize, session: &Session) -> Result<(), Error> {
        let Some(name) = resource_of(&session.label) else { return Ok(()) };
        match self.driver().request_all(&name, vec![(node, tell(session))]).await?.pop() {
            // A refusal shows that the session is over: nobody believes in its locks.
            Some(Outcome::Applied(_) | Outcome::NotApplied(Refusal::Conflict(_))) => Ok(()),
            Some(Outcome::NotApplied(refusal)) => Err(error_of(&refusal)),
            Some(Outcome::Unknown(fault)) => Err(unavailable(&fault)),
            None => Err(Error::new(ErrorKind::StoreUnavailable, "its answer fits another question")),
        }
    }
}
