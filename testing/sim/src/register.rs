//! The protected resources: registers that compare tokens, and that notice lost updates.

use std::collections::BTreeMap;

use leasehold_core::Token;
use leasehold_core::fence::{Guard, Rejected};

/// One guarded register.
#[derive(Clone, Debug, Default)]
pub struct Register {
    guard: Guard,
    /// The count of accepted writes, which names a state for readers.
    version: u64,
    writer: Option<Token>,
    /// The last write of each lease that was accepted.
    accepted: BTreeMap<Token, u64>,
    /// The highest token that ever claimed.
    newest: Option<Token>,
    /// Deleted with all that the guard knew, which real users must not do.
    deleted: bool,
}

/// A request to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// Makes the token the only one accepted, and reads.
    Claim,
    /// Write number `n` of a lease, by a worker that has read `version`.
    Write {
        /// The number of the write, from 1 on.
        n: u64,
        /// The version that the claim has read.
        version: u64,
    },
    /// A write that deletes the item, and with it the guard's state.
    Delete {
        /// The number of the write, from 1 on.
        n: u64,
        /// The version that the claim has read.
        version: u64,
    },
}

/// The answer of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// The claim stands; this is the version.
    Read(u64),
    /// The write was done.
    Written,
    /// It was refused.
    Refused,
}

impl Register {
    /// Handles one request atomically. The second part describes an update that was lost, or a refusal without need.
    pub fn ask(&mut self, token: Token, ask: Ask) -> (Reply, Option<String>) {
        let is_newest = self.newest.is_none_or(|newest| token >= newest);
        match ask {
            Ask::Claim => {
                self.newest = self.newest.max(Some(token));
                match self.guard.claim(token) {
                    Ok(()) => (Reply::Read(self.version), None),
                    Err(why) => (Reply::Refused, needless(why, is_newest, token)),
                }
            }
            Ask::Write { n, version } | Ask::Delete { n, version } => match self.guard.check_in_order(token, n) {
                Ok(()) => {
                    if matches!(ask, Ask::Delete { .. }) {
                        self.guard = Guard::default();
                        self.deleted = true;
                    }
                    (Reply::Written, self.write(token, n, version))
                }
                Err(why) => {
                    let is_next = self.accepted.get(&token).is_none_or(|last| *last < n);
                    (Reply::Refused, needless(why, is_newest && is_next && !self.deleted, token))
                }
            },
        }
    }

    fn write(&mut self, token: Token, n: u64, version: u64) -> Option<String> {
        let last = self.accepted.insert(token, n);
        let lost = self.writer != Some(token) && version != self.version;
        let writer = self.writer.replace(token);
        let current = self.version;
        self.version += 1;
        if lost {
            let writer = writer.map_or("nobody".into(), |token| format!("token {token}"));
            return Some(format!(
                "a write with token {token}, which had read version {version}, replaced version {current} of {writer}"
            ));
        }
        let last = last.filter(|last| *last >= n)?;
        Some(format!("write {n} of token {token} was accepted after write {last} of the same lease"))
    }
}

/// A guard that refuses everybody loses no update, and is of no use.
fn needless(why: Rejected, was_due: bool, token: Token) -> Option<String> {
    was_due.then(|| format!("token {token}, the newest there is, was refused: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(n: u64) -> Token {
        Token::new(n).unwrap()
    }

    #[test]
    fn lost_update_is_noticed() {
        let mut register = Register::default();
        assert_eq!(register.write(token(1), 1, 0), None);
        assert_eq!(register.write(token(1), 2, 0), None, "a lease may build on its own writes");
        assert!(register.write(token(2), 1, 1).unwrap().contains("had read version 1"));
    }

    #[test]
    fn reordered_write_of_a_lease_is_noticed() {
        let mut register = Register::default();
        assert_eq!(register.write(token(1), 2, 0), None);
        assert!(register.write(token(1), 1, 0).unwrap().contains("after write 2"));
    }

    #[test]
    fn needless_refusal_is_noticed() {
        // A token that was never claimed: neither a claim nor a newer token stands against it.
        let (reply, wrong) = Register::default().ask(token(1), Ask::Write { n: 1, version: 0 });
        assert_eq!(reply, Reply::Refused);
        assert!(wrong.unwrap().contains("never claimed"));
    }

    #[test]
    fn guard_rejects_stale_tokens() {
        let mut register = Register::default();
        assert_eq!(register.ask(token(1), Ask::Claim), (Reply::Read(0), None));
        assert_eq!(register.ask(token(2), Ask::Claim), (Reply::Read(0), None));
        assert_eq!(register.ask(token(1), Ask::Write { n: 1, version: 0 }), (Reply::Refused, None));
        assert_eq!(register.ask(token(2), Ask::Write { n: 1, version: 0 }), (Reply::Written, None));
        assert_eq!(register.ask(token(2), Ask::Write { n: 1, version: 0 }), (Reply::Refused, None));
    }
}
