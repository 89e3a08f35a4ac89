//! Items of compare-and-set in the file, in a table that is made with the first of them.

use leasehold_core::Resource;
use leasehold_core::op::{Fault, FaultKind, Outcome};
use leasehold_wire::cas::{Answer, Ask, Item};
use rusqlite::{Connection, OptionalExtension};
use std::sync::Arc;

use super::error::SqliteError;
use super::file::File;
use super::transaction::{Applied, Stop, write};
use super::{OPEN_PATIENCE, Sqlite};
use crate::host::clock;
use crate::host::time::Time;
use crate::transport::Pool;
use crate::transport::items::{Asking, ItemStore};

const CREATE: &str = "
CREATE TABLE IF NOT EXISTS items (
    name      TEXT    NOT NULL PRIMARY KEY,
    version   INTEGER NOT NULL,
    value     BLOB    NOT NULL,
    write_ids TEXT    NOT NULL
) STRICT";

impl ItemStore for Sqlite {
    /// On a thread of its own, since another writer may have to be waited for.
    fn ask<'a>(&'a self, name: &'a Resource, ask: Ask<'a>) -> Asking<'a> {
        let (file, name) = (Arc::clone(&self.file), name.clone());
        let work: Box<dyn FnOnce() -> Result<Answer, Stop> + Send> = match ask {
            Ask::Read => Box::new(move || look(&file, &name)),
            Ask::Write { seen, new } => {
                let (seen, new) = (seen.cloned(), new.clone());
                Box::new(move || replace(&file, &name, seen.as_ref(), &new))
            }
        };
        Box::pin(async move {
            match Time::System.offload(work).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(Stop::NotApplied(error))) => Answer::Failed(Outcome::NotApplied(error.refusal())),
                Ok(Err(Stop::Unknown(error))) => Answer::Failed(Outcome::Unknown(error.fault())),
                Err(error) => Answer::Failed(Outcome::Unknown(Fault::new(FaultKind::Cancelled, &error.to_string()))),
            }
        })
    }
}

fn look(file: &File, name: &Resource) -> Result<Answer, Stop> {
    let until = clock::monotonic().plus(OPEN_PATIENCE);
    file.with_connection(Pool::Caller, until, |connection| {
        let db = connection.db();
        let found = has_table(db).and_then(|has| if has { read(db, name) } else { Ok(Answer::Found(None)) });
        found.map_err(|error| Stop::NotApplied(SqliteError::from(error).at(file.path())))
    })
}

fn replace(file: &File, name: &Resource, seen: Option<&Item>, new: &Item) -> Result<Answer, Stop> {
    let until = clock::monotonic().plus(OPEN_PATIENCE);
    let answers = file.with_connection(Pool::Caller, until, |connection| {
        write(connection, file.path(), until, || {
            let db = connection.db();
            db.execute_batch(CREATE)?;
            let there = read(db, name)?;
            let is_as_seen = matches!(&there, Answer::Found(item) if item.as_ref() == seen);
            if is_as_seen {
                put(db, name, new)?;
            }
            Ok(Applied { changed: is_as_seen, done: vec![if is_as_seen { Answer::Written } else { there }] })
        })
    })?;
    Ok(answers.into_iter().next().unwrap_or(Answer::Raced))
}

fn has_table(db: &Connection) -> rusqlite::Result<bool> {
    let tables = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'items'";
    Ok(db.prepare_cached(tables)?.query_row([], |row| row.get::<_, i64>(0))? == 1)
}

fn read(db: &Connection, name: &Resource) -> rusqlite::Result<Answer> {
    let mut select = db.prepare_cached("SELECT version, value, write_ids FROM items WHERE name = ?1")?;
    let row = select.query_row([name.as_str()], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, String>(2)?))
    });
    Ok(match row.optional()? {
        None => Answer::Found(None),
        Some((version, value, writes)) => match Item::read(u64::try_from(version).ok(), Some(value), Some(&writes)) {
            Ok(item) => Answer::Found(Some(item)),
            Err(refusal) => Answer::Failed(Outcome::NotApplied(refusal)),
        },
    })
}

fn put(db: &Connection, name: &Resource, new: &Item) -> rusqlite::Result<()> {
    let insert = "INSERT OR REPLACE INTO items (name, version, value, write_ids) VALUES (?1, ?2, ?3, ?4)";
    // Versions end at 2^53 - 1.
    let version = i64::try_from(new.version).unwrap_or(i64::MAX);
    db.prepare_cached(insert)?.execute((name.as_str(), version, &new.value, new.writes())).map(drop)
}
