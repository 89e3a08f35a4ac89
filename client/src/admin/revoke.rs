//! Revoked leases: their holders are asked to let go, and are safe from others meanwhile.

use leasehold_core::op::{Op, Outcome, Refusal, Revoke};
use leasehold_core::{Nonce, Resource};

use crate::admin::inspect::{error_of, listed, of_another_library, unavailable};
use crate::admin::release_if::HolderMatch;
use crate::client::Client;
use crate::error::{Error, ErrorKind, LockInfo};

/// The result of [`Client::revoke`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RevokeOutcome {
    /// The lease of this holder is revoked, perhaps since an earlier call.
    Revoked(LockInfo),
    /// This holder has the lock and is another one than was asked for, or took it in between. Nothing was changed.
    NotMatched(LockInfo),
    /// The lock is free.
    Free,
}

impl Client {
    /// Asks the holder of a lock to let go: its next renewal, at most a third of its ttl away, is refused. The holder is
    /// told at once that its lease is lost, with the reason `revoked`, and its client releases the lock as soon as the work has
    /// ended. A holder that is dead, or does not listen, keeps the lock until its record runs out by itself.
    ///
    /// Nobody else gets the lock before that, which is the difference to [`Client::break_lock`]. A token names one lease and
    /// no later one. Revoking twice is the same as once.
    ///
    /// ```
    /// # async fn example(client: leasehold::Client) -> Result<(), leasehold::Error> {
    /// use leasehold::RevokeOutcome;
    ///
    /// if let RevokeOutcome::Revoked(holder) = client.revoke("invoice/42", 1_731_000_000_000_000).await? {
    ///     println!("{holder}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Client::release_if`]. Of a quorum, [`ErrorKind::StoreUnavailable`] also if the lease was revoked on so few nodes
    /// that its holder may keep it: the message says on how many. Ask again then.
    pub async fn revoke(
        &self,
        resource: impl AsRef<str>,
        holder: impl Into<HolderMatch>,
    ) -> Result<RevokeOutcome, Error> {
        let (resource, holder) = (resource.as_ref(), holder.into());
        holder.check().map_err(|error| error.on(resource))?;
        let (shown, silent) = self.inspect_closely(resource).await?;
        let Some(shown) = shown else { return Ok(RevokeOutcome::Free) };
        if !holder.judge(&shown, silent)? {
            return Ok(RevokeOutcome::NotMatched(shown));
        }
        let Some(nonce) = shown.nonce else { return Err(of_another_library(resource)) };
        // The lease that was compared, and no other: should the lock have changed hands since, no store finds it.
        let sessions = self.named_sessions(resource).await?;
        let revoked = self.revoke_nonce(resource, nonce).await;
        self.tell_sessions(resource, sessions).await?;
        if revoked? {
            return Ok(RevokeOutcome::Revoked(LockInfo { revoked: true, ..shown }));
        }
        let now = self.inspect(resource).await?;
        Ok(now.map_or(RevokeOutcome::Free, RevokeOutcome::NotMatched))
    }

    /// Marks the record of this attempt; answers if there was one. Afterwards fewer nodes than a majority renew it.
    async fn revoke_nonce(&self, resource: &str, nonce: Nonce) -> Result<bool, Error> {
        let revoke = Op::Revoke(Revoke { nonce });
        let Some(quorum) = self.shared.quorum() else {
            let outcome = self.request(resource, revoke).await?;
            return revoked(outcome).map_err(|error| error.on(resource));
        };
        // Nodes that did not show it, or did not answer, may have it by now.
        let nodes = quorum.urls().len();
        let revokes = (0..nodes).map(|node| (node, revoke.clone())).collect();
        let outcomes = self.driver().request_all(&Resource::new(resource)?, revokes).await?;
        let is_revoked = leasehold_core::quorum::revoked(&outcomes);
        let (mut marked, mut errors) = (0, Vec::new());
        for (node, outcome) in outcomes.into_iter().enumerate() {
            match revoked(outcome) {
                Ok(revoked) => marked += usize::from(revoked),
                Err(error) => errors.push((quorum.name(node), error)),
            }
        }
        is_revoked.ok_or_else(|| Error::new(ErrorKind::StoreUnavailable, too_few(marked, nodes, &errors)).on(resource))
    }
}

fn too_few(marked: usize, nodes: usize, errors: &[(&str, Error)]) -> String {
    let trouble = if errors.is_empty() { String::new() } else { format!(": {}", listed(errors)) };
    format!("the lease is revoked on {marked} of {nodes} nodes only, so its holder may keep it{trouble}; try again")
}

/// Tells if there was something to revoke.
fn revoked(outcome: Outcome) -> Result<bool, Error> {
    match outcome {
        Outcome::Applied(_) => Ok(true),
        Outcome::NotApplied(Refusal::Conflict(_)) => Ok(false),
        Outcome::NotApplied(refusal) => Err(error_of(&refusal)),
        Outcome::Unknown(fault) => Err(unavailable(&fault)),
    }
}
