//! The sessions of a store: the leases of one client, listed and revoked together.

use std::collections::BTreeMap;

use leasehold_core::SessionLabel;
use leasehold_core::session::{label_of_record, resource_of};

use crate::admin::release_if::{HolderMatch, fits};
use crate::admin::revoke::RevokeOutcome;
use crate::client::Client;
use crate::error::{Error, LockInfo};

/// A session and its locks: see [`Client::sessions`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its name, as [`ClientBuilder::session`](crate::ClientBuilder::session) gave it. Where the session is a record of its
    /// own, a second one of the same name is `NAME/2`, and so on; elsewhere several have one name.
    pub label: String,
    /// When it began, in milliseconds since 1970 by the store's wall clock: the grant of its record or, where it is only a
    /// name, of its oldest lock.
    pub since_unix_ms: Option<u64>,
    /// [Revoked](Client::revoke_session) as a whole: its holder is told by its next renewal.
    pub revoked: bool,
    /// Its locks, by their names. A session that is a record may have none.
    pub locks: Vec<LockInfo>,
    record: Option<LockInfo>,
}

impl Client {
    /// The sessions of the clients that have locks, by their names: one for each client with a
    /// [name](crate::ClientBuilder::session).
    ///
    /// ```
    /// # async fn example(client: leasehold::Client) -> Result<(), leasehold::Error> {
    /// for session in client.sessions().await? {
    ///     println!("{}: {} locks", session.label, session.locks.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It is for looking, never for deciding, and costs as much as a [`Client::list`] of all locks, since any lock may belong to
    /// a session. Where a session is a record of its own, it is shown until its client is closed or, if that has died, until
    /// somebody takes one of its locks.
    ///
    /// # Errors
    /// As [`Listing::next`](crate::Listing::next).
    pub async fn sessions(&self) -> Result<Vec<SessionInfo>, Error> {
        let mut sessions: BTreeMap<_, SessionInfo> = BTreeMap::new();
        let mut listing = self.list("").with_sessions();
        let records = self.driver().observed_nodes();
        while let Some(lock) = listing.next().await? {
            let (label, nonce, is_record) = match (&lock.session, self.record_of(&lock)) {
                // Nodes of both kinds may show the locks of one session.
                (Some(label), _) => (label.clone(), lock.session_nonce.filter(|_| records.is_empty()), false),
                (None, Some(label)) => (label.to_owned(), None, true),
                (None, None) => continue,
            };
            let key = (label.clone(), nonce.map(|nonce| *nonce.as_bytes()));
            let session = sessions.entry(key).or_insert_with(|| SessionInfo::of(label));
            if is_record { session.record = Some(lock) } else { session.locks.push(lock) }
        }
        if self.shared.quorum().is_some() && !records.is_empty() {
            // A node that was not listed may be the only one that has it.
            let unlisted = sessions.values().filter(|session| session.record.is_none());
            let names = unlisted.filter_map(|session| resource_of(&SessionLabel::new(&session.label).ok()?)).collect();
            for record in self.held_of(names).await? {
                let label = self.record_of(&record).map(str::to_owned);
                if let Some(session) = label.and_then(|label| sessions.get_mut(&(label, None))) {
                    session.record = Some(record);
                }
            }
        }
        Ok(sessions.into_values().map(SessionInfo::finished).collect())
    }

    /// Asks the holders of all sessions of this name to let go of all of their locks, as [`Client::revoke`] does for one: those
    /// that are shown as `NAME/2` and so on, too. `*` in the name stands for any characters. Answers the sessions that were revoked; those whose client takes locks again begin
    /// again.
    ///
    /// Where the session is a record of its own, that record is revoked, in one write; otherwise, and in a quorum, each
    /// lock is. If it fails halfway, some locks are revoked: ask again.
    ///
    /// # Errors
    /// As [`Client::sessions`] and [`Client::revoke`]; [`ErrorKind::Config`](crate::ErrorKind::Config) for an empty name.
    pub async fn revoke_session(&self, label: impl AsRef<str>) -> Result<Vec<SessionInfo>, Error> {
        let pattern = label.as_ref();
        if pattern.is_empty() {
            return Err(Error::config(
                "the name of the session is empty; write the name, or a pattern such as worker-*",
            ));
        }
        let mut revoked = Vec::new();
        for session in self.sessions().await? {
            if session.is_called(pattern) {
                revoked.extend(self.revoke_all(session).await?);
            }
        }
        Ok(revoked)
    }

    /// The session, if any of it was still there.
    async fn revoke_all(&self, session: SessionInfo) -> Result<Option<SessionInfo>, Error> {
        // In a quorum, each node has a record of its own.
        if let (Some(record), None) = (&session.record, self.shared.quorum()) {
            return Ok(self.revoke_shown(record).await?.map(|_| SessionInfo { revoked: true, ..session }));
        }
        let mut locks = Vec::with_capacity(session.locks.len());
        for lock in &session.locks {
            locks.extend(self.revoke_shown(lock).await?);
        }
        Ok((!locks.is_empty()).then_some(SessionInfo { revoked: true, locks, ..session }))
    }

    async fn revoke_shown(&self, lock: &LockInfo) -> Result<Option<LockInfo>, Error> {
        let holder = HolderMatch::default().lease(lock);
        match self.revoke(&lock.resource, holder).await? {
            RevokeOutcome::Revoked(lock) => Ok(Some(lock)),
            RevokeOutcome::NotMatched(_) | RevokeOutcome::Free => Ok(None),
        }
    }

    /// The label of the session whose record this is.
    pub(crate) fn record_of<'a>(&self, lock: &'a LockInfo) -> Option<&'a str> {
        let owner = lock.owner.as_deref().filter(|_| !self.driver().observed_nodes().is_empty())?;
        label_of_record(&lock.resource, owner)
    }
}

impl SessionInfo {
    const fn of(label: String) -> Self {
        Self { label, since_unix_ms: None, revoked: false, locks: Vec::new(), record: None }
    }

    /// Returns true if [`Client::revoke_session`] would revoke it: by its own label, or by the name that its client was given.
    /// `*` stands for any characters.
    pub fn is_called(&self, pattern: &str) -> bool {
        let name = self.record.as_ref().and_then(|record| record.owner.as_deref());
        fits(pattern, &self.label) || name.is_some_and(|name| fits(pattern, name))
    }

    fn finished(mut self) -> Self {
        self.locks.sort_by(|one, other| one.resource.cmp(&other.resource));
        let (record, locks) = (self.record.as_ref(), &self.locks);
        self.since_unix_ms = record
            .map_or_else(|| locks.iter().filter_map(|lock| lock.since_unix_ms).min(), |record| record.since_unix_ms);
        self.revoked = record.map_or_else(|| locks.iter().all(|lock| lock.revoked), |record| record.revoked);
        self
    }
}
