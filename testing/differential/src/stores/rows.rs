//! The rows of real stores, past all clients: changed by hand and by other libraries, and read as they are kept.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use leasehold_core::Token;
use leasehold_servers::{dynamodb, postgres, redis};
use serde_json::{Value as Json, json};

use crate::compare::{Fields, Value};
use crate::script::Edit;

/// The rows of a store.
pub trait Rows {
    /// Changes a row; `false` where that cannot be done.
    fn edit(&self, _name: &str, _edit: &Edit) -> bool {
        false
    }
    /// All that is kept of a resource.
    fn raw(&self, _name: &str) -> Fields {
        Fields::new()
    }
}

/// A store whose rows are out of reach.
pub struct OutOfReach;

impl Rows for OutOfReach {}

/// Redis, as redis-py uses it too.
pub struct Redis<'a>(pub &'a redis::Server);

impl Rows for Redis<'_> {
    fn edit(&self, name: &str, edit: &Edit) -> bool {
        let fence = format!("{{{name}}}\u{1f}fence of name");
        let reply = match edit {
            // A key that has run out is gone.
            Edit::Expire => self.0.command(&["DEL", name]),
            Edit::Delete => {
                let beside = |what: &str| format!("{{{name}}}\u{1f}{what} of name");
                self.0.command(&["DEL", name, &fence, &beside("done"), &beside("trust")])
            }
            Edit::Free => return false,
            Edit::Foreign(ttl) => {
                self.0.command(&["SET", name, "0c4a7f2e5b", "NX", "PX", &ttl.as_millis().to_string()])
            }
        };
        !reply.is_error()
    }

    fn raw(&self, name: &str) -> Fields {
        let fence = format!("{{{name}}}\u{1f}fence of name");
        let mut fields = Fields::new();
        if self.0.command(&["EXISTS", &fence]).integer() == 1 {
            let counter =
                self.0.command(&["EVAL", "return tonumber(redis.call('GET', KEYS[1]))", "1", &fence]).integer();
            // Transactions that found the lock taken may have counted above the top, which is the top to all scripts.
            let counter = u64::try_from(counter).unwrap_or_default().min(Token::MAX.get());
            fields.insert("token", Value::Number(counter));
            // The counter or, longer than that, the completion. -1: for good; -2: there is none.
            let done = format!("{{{name}}}\u{1f}done of name");
            let left_of_counter = self.0.command(&["PTTL", &fence]).integer();
            let left = [&*fence, &done].map(|key| self.0.command(&["PTTL", key]).integer());
            if let Some(left) = left.into_iter().max().and_then(|left| u64::try_from(left).ok())
                && left_of_counter != -1
            {
                fields.insert("kept until", Value::At(unix_ms() + left));
            }
        }
        fields
    }
}

fn unix_ms() -> u64 {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970");
    u64::try_from(unix.as_millis()).expect("it is not that late")
}

/// A file of SQLite.
pub struct Sqlite(pub PathBuf);

impl Sqlite {
    fn open(&self) -> rusqlite::Connection {
        let file = rusqlite::Connection::open(&self.0).expect("the file opens");
        file.busy_timeout(std::time::Duration::from_secs(30)).expect("it can be set");
        file
    }

    fn run(&self, sql: &str, name: &str) -> bool {
        self.open().execute(sql, [name]).expect("a good statement") == 1
    }
}

impl Rows for Sqlite {
    fn edit(&self, name: &str, edit: &Edit) -> bool {
        match edit {
            Edit::Expire => self.run("UPDATE leases SET expires_ns = 1 WHERE resource = ?1", name),
            Edit::Delete => {
                // The trust in the row's counter goes with it. The table comes with the first node of a quorum.
                let _ = self.open().execute("DELETE FROM quorum_trust WHERE resource = ?1", [name]);
                self.run("DELETE FROM leases WHERE resource = ?1", name)
            }
            Edit::Free => self.run("UPDATE leases SET released = 1 WHERE resource = ?1", name),
            Edit::Foreign(_) => false,
        }
    }

    fn raw(&self, name: &str) -> Fields {
        let file = rusqlite::Connection::open(&self.0).expect("the file opens");
        let row = file.query_row("SELECT counter FROM leases WHERE resource = ?1", [name], |row| row.get::<_, i64>(0));
        let counter = row.ok().and_then(|counter| u64::try_from(counter).ok());
        counter.map(|counter| ("token", Value::Number(counter))).into_iter().collect()
    }
}

/// A table of DynamoDB with an attribute for its time to live, as Java's lock client uses it too.
pub struct Dynamodb<'a> {
    /// The server.
    pub server: &'a dynamodb::Server,
    /// The table.
    pub table: String,
    /// The attribute.
    pub expires: &'static str,
}

impl Dynamodb<'_> {
    fn key(&self, name: &str) -> Json {
        json!({ "TableName": self.table, "Key": { "key": { "S": name } } })
    }

    fn update(&self, name: &str, expression: &str, values: &Json) {
        let mut body = self.key(name);
        body["UpdateExpression"] = expression.into();
        body["ExpressionAttributeValues"] = values.clone();
        self.server.command("UpdateItem", &body);
    }

    fn row(&self, name: &str) -> Json {
        let mut body = self.key(name);
        body["ConsistentRead"] = true.into();
        self.server.command("GetItem", &body)["Item"].clone()
    }
}

impl Rows for Dynamodb<'_> {
    fn edit(&self, name: &str, edit: &Edit) -> bool {
        match edit {
            Edit::Expire => return false,
            Edit::Delete => drop(self.server.command("DeleteItem", &self.key(name))),
            Edit::Free => self.update(name, "SET isReleased = :one", &json!({ ":one": { "S": "1" } })),
            Edit::Foreign(ttl) => {
                // It keeps attributes that it does not know.
                let expression = "SET ownerName = :owner, leaseDuration = :length, recordVersionNumber = :rvn REMOVE \
                                  isReleased, #data";
                let mut body = self.key(name);
                body["UpdateExpression"] = expression.into();
                body["ExpressionAttributeNames"] = json!({ "#data": "data" });
                body["ExpressionAttributeValues"] = json!({
                    ":owner": { "S": "java" },
                    ":length": { "S": ttl.as_millis().to_string() },
                    ":rvn": { "S": "0b1f0e9c-9f4a-4a36-8f0e-3a1a6c1d2e3f" },
                });
                self.server.command("UpdateItem", &body);
            }
        }
        true
    }

    fn raw(&self, name: &str) -> Fields {
        let row = self.row(name);
        let number = |attribute: &str| row[attribute]["N"].as_str().and_then(|text| text.parse::<u64>().ok());
        let mut fields = Fields::new();
        if let Some(token) = number("fencingToken") {
            fields.insert("token", Value::Number(token));
        }
        if let Some(seconds) = number(self.expires) {
            fields.insert("kept until", Value::At(seconds * 1_000));
        }
        fields
    }
}

/// A table of PostgreSQL.
pub struct Postgres {
    /// One connection for all.
    pub client: RefCell<postgres::Client>,
    /// The table with its schema.
    pub table: String,
}

impl Rows for Postgres {
    fn edit(&self, name: &str, edit: &Edit) -> bool {
        let table = &self.table;
        let change = match edit {
            Edit::Expire => format!("UPDATE {table} SET expires_at = clock_timestamp() - interval '1 s'"),
            Edit::Delete => format!("DELETE FROM {table}"),
            Edit::Free => format!("UPDATE {table} SET released = true"),
            Edit::Foreign(_) => return false,
        };
        let change = format!("{change} WHERE resource = '{name}'");
        self.client.borrow_mut().batch_execute(&change).expect("the row can be changed");
        true
    }

    fn raw(&self, name: &str) -> Fields {
        let table = &self.table;
        let sql = format!("SELECT counter FROM {table} WHERE resource = $1");
        let row = self.client.borrow_mut().query_opt(&sql, &[&name]).expect("the row can be read");
        let counter = row.and_then(|row| u64::try_from(row.get::<_, i64>(0)).ok());
        counter.map(|counter| ("token", Value::Number(counter))).into_iter().collect()
    }
}
