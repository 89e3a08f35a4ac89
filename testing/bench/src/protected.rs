//! The protected resource: one number, which processes read, change and write back.
//!
//! It lives in a database of its own, apart from the lock store.

use std::path::Path;

use leasehold::ErrorKind;
use leasehold::fence::SqliteGuard;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::database;

/// The result of SQLite or of the guard.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A handle of one process.
pub struct Protected {
    db: Connection,
    guard: Option<SqliteGuard>,
    /// The name of the number, which is that of the lock.
    name: String,
}

/// The result of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// The number is what was written.
    Done,
    /// The guard has seen a later token; nothing is changed.
    Refused,
}

impl Protected {
    /// Makes a new one that holds `value`; `name` is that of the lock that protects it.
    ///
    /// # Errors
    /// SQLite's.
    pub fn create(path: &Path, name: &str, guarded: bool, value: i64) -> Result<Self> {
        let new = Self::open(path, name, guarded)?;
        if let Some(guard) = &new.guard {
            guard.create(&new.db)?;
        }
        new.db.execute_batch("CREATE TABLE item (value INTEGER NOT NULL);")?;
        new.db.execute("INSERT INTO item (value) VALUES (?1)", [value])?;
        Ok(new)
    }

    /// Opens one that exists.
    ///
    /// # Errors
    /// SQLite's.
    pub fn open(path: &Path, name: &str, guarded: bool) -> Result<Self> {
        Ok(Self { db: database::open(path)?, guard: guarded.then(SqliteGuard::new), name: name.to_owned() })
    }

    /// True if tokens are compared.
    pub fn is_guarded(&self) -> bool {
        self.guard.is_some()
    }

    /// Reads the number as a holder does, after a claim if there is a guard; `None` when the claim is refused.
    ///
    /// # Errors
    /// SQLite's; the guard's, if it is given no token.
    pub fn read(&self, token: Option<u64>) -> Result<Option<i64>> {
        let Some(guard) = &self.guard else { return self.value().map(Some) };
        let token = token.ok_or("a guard needs a token")?;
        match guard.claim(&self.db, &self.name, token) {
            Ok(()) => self.value().map(Some),
            Err(error) if error.kind() == ErrorKind::StaleToken => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes the number, unless the guard rejects the token.
    ///
    /// # Errors
    /// As [`Protected::read`].
    pub fn write(&self, value: i64, token: Option<u64>) -> Result<Write> {
        let change = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate)?;
        if let Some(guard) = &self.guard {
            match guard.check(&change, &self.name, token.ok_or("a guard needs a token")?) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StaleToken => return Ok(Write::Refused),
                Err(error) => return Err(error.into()),
            }
        }
        change.prepare_cached("UPDATE item SET value = ?1")?.execute([value])?;
        change.commit()?;
        Ok(Write::Done)
    }

    /// The number, without any claim.
    ///
    /// # Errors
    /// SQLite's.
    pub fn value(&self) -> Result<i64> {
        Ok(self.db.prepare_cached("SELECT value FROM item")?.query_row([], |row| row.get(0))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first holder reads, the second one reads and writes, and then the first one writes.
    fn late_write(guarded: bool) -> (Write, i64) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("protected.db");
        let first = Protected::create(&path, "account", guarded, 100).unwrap();
        let second = Protected::open(&path, "account", guarded).unwrap();
        assert_eq!(first.read(Some(7)).unwrap(), Some(100));
        assert_eq!(second.read(Some(8)).unwrap(), Some(100));
        assert_eq!(second.write(150, Some(8)).unwrap(), Write::Done);
        let late = first.write(130, Some(7)).unwrap();
        (late, second.value().unwrap())
    }

    #[test]
    fn late_write_succeeds_without_a_guard() {
        assert_eq!(late_write(false), (Write::Done, 130));
        assert_eq!(late_write(true), (Write::Refused, 150));
    }

    #[test]
    fn late_claim_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let counter = Protected::create(&dir.path().join("protected.db"), "account", true, 0).unwrap();
        assert_eq!(counter.read(Some(8)).unwrap(), Some(0));
        assert_eq!(counter.read(Some(7)).unwrap(), None);
    }
}
