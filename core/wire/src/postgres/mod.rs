//! Operations as statements on one table of PostgreSQL, and what the answers mean.
//!
//! One lock is one row of one table ([`schema::create`]), with its counter and its completion of finished work. Every operation
//! is one statement, atomic by itself, so a pooler in transaction mode (PgBouncer) may give each another connection. The
//! server's clock frees a lock. In a quorum one more row holds the [`Marker`](leasehold_core::member::Marker), and the
//! server's timeline stands for its run: a promoted replica has another one, and may lack the last writes.
//!
//! ```
//! use leasehold_core::op::{LockOp, Op, Outcome};
//! use leasehold_core::{LockId, Resource};
//! use leasehold_wire::Progress;
//! use leasehold_wire::postgres::{Field, Codec, Settings, Statement};
//! use std::time::Duration;
//!
//! // A real host sends the statement, unnamed and with these parameters, and returns the rows or `ServerError::outcome`.
//! fn query(statement: &Statement) -> Result<Vec<Vec<Field>>, Outcome> {
//!     assert!(statement.sql.starts_with("SELECT"));
//!     let mut row = vec![Field::Null, Field::Null, Field::Int(1_700_000_000_000)];
//!     row.resize(20, Field::Null);
//!     Ok(vec![row])
//! }
//!
//! let codec = Codec::new(&Settings::default());
//! let ops = [LockOp { lock: LockId::new(1), resource: Resource::new("invoice/42")?, op: Op::Read }];
//! let mut exchange = codec.begin(&ops, Duration::from_millis(500));
//! let outcomes = loop {
//!     let answer = query(exchange.statement());
//!     match exchange.answer(answer) {
//!         Progress::Done(outcomes) => break outcomes,
//!         Progress::Again => {}
//!     }
//! };
//! assert!(matches!(outcomes[..], [Outcome::Applied(_)]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Those who wait stand in a queue, which is a column of the lock's row. An acquire that is refused joins it.
//!
//! An operation that was refused is followed by a read, which shows what stands in its way. The read may be newer than the
//! refusal: if it shows nothing, the operation is sent again.

pub mod cas;
mod errors;
mod exchange;
mod listing;
mod membership;
mod queue;
mod rows;
pub mod schema;
mod sql;
mod statements;
#[cfg(test)]
mod tests;

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use leasehold_core::Resource;
use leasehold_core::member::Durability;
use leasehold_core::op::{Finish, LockOp, Outcome};

pub(crate) use errors::KNOWN;
pub use errors::{RefusalTime, ServerError, refused};
pub use exchange::Exchange;
pub use membership::FoundMarker;
pub use queue::{Asker, Sight, Told};
pub use statements::{CHANNEL, Notify};

/// Rows, or the outcome that their absence means.
pub type Answer = Result<Vec<Vec<Field>>, Outcome>;

/// A table of locks, and how it is used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// The schema of the table `leasehold`.
    pub schema: String,
    /// The audience of releases.
    pub notify: Notify,
    /// In quorums: a failover may lose acknowledged writes, unless declared otherwise.
    pub durability: Durability,
    /// Those who wait stand in the queue; the tables [can have](FoundMarker::has_queues) one.
    pub queues: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { schema: "public".to_string(), notify: Notify::Off, durability: Durability::NotDeclared, queues: false }
    }
}

/// How to speak to one table. It knows nothing of connections; copies share their texts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Codec {
    texts: Arc<statements::Texts>,
}

impl Codec {
    /// A codec for this table.
    pub fn new(settings: &Settings) -> Self {
        let Settings { schema, notify, durability, queues } = settings;
        Self { texts: Arc::new(statements::Texts::new(schema, *notify, *durability, *queues)) }
    }

    /// Begins an exchange. `left` is the time until its deadline: no statement waits longer for a row that is locked.
    pub fn begin(&self, ops: &[LockOp], left: Duration) -> Exchange {
        Exchange::new(Arc::clone(&self.texts), ops, left, None)
    }

    /// The same for one who may stand in the queue, if the codec has queues.
    pub fn begin_in_queue(&self, ops: &[LockOp], left: Duration, asker: Asker) -> Exchange {
        let asker = self.texts.queues.as_ref().map(|_| asker);
        Exchange::new(Arc::clone(&self.texts), ops, left, asker)
    }

    /// A statement for a transaction of the user's, in which the work of a run is done: it marks the work as finished, and
    /// fails if the lease is over. Its one parameter, an array of texts, serves the drivers of all languages.
    pub fn completion_in(&self, resource: &Resource, finish: &Finish) -> (String, Vec<String>) {
        let nonce = finish.nonce.as_bytes().iter().map(|byte| alloc::format!("{byte:02x}")).collect();
        let mut run = vec![
            resource.as_str().to_string(),
            nonce,
            finish.token.to_string(),
            finish.owner.as_str().to_string(),
            exchange::micros(finish.keep).to_string(),
            finish.counter.to_string(),
        ];
        let texts = &*self.texts;
        let sql = if finish.about.is_some() { &texts.completion_in_with_about } else { &texts.completion_in };
        run.extend(finish.about.as_ref().map(rows::about_text));
        (sql.text().to_string(), run)
    }
}

/// A statement with its parameters, in the order of `$1`, `$2`... `Debug` does not show them: they name attempts.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Statement {
    /// The text.
    pub sql: String,
    /// The parameters.
    pub params: Vec<Param>,
}

impl Statement {
    fn new(sql: &sql::Sql, params: impl Into<Vec<Param>>) -> Self {
        Self { sql: sql.text().to_string(), params: params.into() }
    }

    /// An empty one where there is nothing to send.
    fn maybe(sql: Option<&sql::Sql>, params: impl Into<Vec<Param>>) -> Self {
        sql.map_or_else(Self::default, |sql| Self::new(sql, params))
    }
}

impl fmt::Debug for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} parameters", self.sql, self.params.len())
    }
}

/// A parameter of a statement, by its type in PostgreSQL.
#[derive(Clone, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "PostgreSQL's own names")]
pub enum Param {
    Text(Option<String>),
    Bytea(Option<Vec<u8>>),
    Int8(i64),
    Bool(bool),
    TextArray(Vec<String>),
    ByteaArray(Vec<Vec<u8>>),
    Int8Array(Vec<i64>),
}

impl Param {
    /// An array in PostgreSQL's own notation, for drivers that have no other; `None` for what is no array.
    pub fn array(&self) -> Option<String> {
        let quoted = |text: &str| alloc::format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let items: Vec<String> = match self {
            Self::TextArray(texts) => texts.iter().map(|text| quoted(text)).collect(),
            Self::ByteaArray(all) => {
                let hex = |bytes: &[u8]| bytes.iter().map(|byte| alloc::format!("{byte:02x}")).collect::<String>();
                all.iter().map(|bytes| quoted(&alloc::format!("\\x{}", hex(bytes)))).collect()
            }
            Self::Int8Array(numbers) => numbers.iter().map(ToString::to_string).collect(),
            Self::Text(_) | Self::Bytea(_) | Self::Int8(_) | Self::Bool(_) => return None,
        };
        Some(alloc::format!("{{{}}}", items.join(",")))
    }
}

/// A column of a row, by its type. The statements return no other types; a host returns what it cannot read as `Null`.
#[derive(Clone, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "PostgreSQL's own names")]
pub enum Field {
    Null,
    Text(String),
    Bytes(Vec<u8>),
    Int(i64),
    Bool(bool),
}

impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytea",
            Self::Int(_) => "int8",
            Self::Bool(_) => "bool",
        })
    }
}
