//! Items of compare-and-set ([`crate::cas`]) in PostgreSQL: rows of the table [`schema::ITEMS`], beside that of locks.

use alloc::string::ToString;
use alloc::vec;

use leasehold_core::Resource;
use leasehold_core::op::Outcome;

use super::sql::Sql;
use super::{Answer as Rows, Field, Param, Statement, schema};
use crate::cas::{Answer, Ask, Item, misfit};

/// The statement that asks this of the item `name`, in the table of this schema.
pub fn statement(schema: &str, name: &Resource, ask: Ask<'_>) -> Statement {
    let table = schema::items(schema);
    let name = Param::Text(Some(name.as_str().to_string()));
    let (seen, new) = match ask {
        Ask::Read => {
            let sql = alloc::format!("SELECT version, value, write_ids FROM {table} WHERE name = $1");
            return Statement::new(&Sql::reads(sql), [name]);
        }
        Ask::Write { seen, new } => (seen, new),
    };
    let text = |text: &str| Param::Text(Some(text.to_string()));
    let mut params = vec![name, int(new.version), Param::Bytea(Some(new.value.clone())), text(new.writes())];
    let sql = match seen {
        None => alloc::format!(
            "INSERT INTO {table} (name, version, value, write_ids) SELECT $1::text, $2::bigint, $3::bytea, $4::text FROM c \
             ON CONFLICT (name) DO NOTHING RETURNING write_ids"
        ),
        Some(seen) => {
            params.extend([int(seen.version), text(seen.writes())]);
            alloc::format!(
                "UPDATE {table} SET version = $2, value = $3, write_ids = $4 FROM c WHERE name = $1 AND version = $5 \
                 AND write_ids = $6 RETURNING write_ids"
            )
        }
    };
    Statement::new(&Sql::writes(&sql), params)
}

/// Reads the answer to [`statement`].
pub fn answer(ask: Ask<'_>, rows: Rows) -> Answer {
    let rows = match rows {
        Ok(rows) => rows,
        Err(outcome) => return Answer::Failed(outcome),
    };
    let misfit = || Answer::Failed(Outcome::Unknown(misfit()));
    match (ask, rows.as_slice()) {
        (Ask::Read, []) => Answer::Found(None),
        (Ask::Read, [row]) => match row.as_slice() {
            [Field::Int(version), Field::Bytes(value), Field::Text(writes)] => {
                Answer::of(Item::read(u64::try_from(*version).ok(), Some(value.clone()), Some(writes)).map(Some))
            }
            _ => misfit(),
        },
        (Ask::Write { .. }, []) => Answer::Raced,
        (Ask::Write { new, .. }, [row]) => match row.as_slice() {
            [Field::Text(writes)] if writes == new.writes() => Answer::Written,
            _ => misfit(),
        },
        _ => misfit(),
    }
}

fn int(number: u64) -> Param {
    // Versions end at 2^53 - 1.
    Param::Int8(i64::try_from(number).unwrap_or(i64::MAX))
}
