//! Sessions of a blocking client.

use super::Client;
use crate::driver::Caller;
use crate::error::Error;
use crate::exec::block_on;
use crate::groups::sessions::SessionInfo;

impl Client {
    /// See [`leasehold::Client::sessions`](crate::Client::sessions).
    ///
    /// # Errors
    /// As there.
    pub fn sessions(&self) -> Result<Vec<SessionInfo>, Error> {
        block_on(self.0.sessions())
    }

    /// See [`leasehold::Client::revoke_session`](crate::Client::revoke_session).
    ///
    /// # Errors
    /// As there.
    pub fn revoke_session(&self, label: impl AsRef<str>) -> Result<Vec<SessionInfo>, Error> {
        block_on(self.0.revoke_session_by(label.as_ref(), Caller::Blocking))
    }
}
