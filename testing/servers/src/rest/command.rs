//! Commands from JSON to Redis, and their replies back.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::redis::{self, Credentials};
use crate::resp::{Connection, Reply};

/// Commands that change the connection they run on, or wait on it: nothing for requests that share one.
const UNAVAILABLE: [&str; 24] = [
    "AUTH",
    "BLMOVE",
    "BLMPOP",
    "BLPOP",
    "BRPOP",
    "BRPOPLPUSH",
    "BZMPOP",
    "BZPOPMAX",
    "BZPOPMIN",
    "CLIENT",
    "DISCARD",
    "EXEC",
    "HELLO",
    "MONITOR",
    "MULTI",
    "PSUBSCRIBE",
    "PSYNC",
    "QUIT",
    "RESET",
    "SELECT",
    "SSUBSCRIBE",
    "SUBSCRIBE",
    "UNWATCH",
    "WATCH",
];

/// The encoding of strings in answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// Plain text. Bytes that are not UTF-8 are replaced.
    Text,
    /// Base64, except for the status `OK`.
    Base64,
}

/// The reason why there is no result.
#[derive(Debug)]
pub(super) enum Failure {
    /// The request makes no sense, or Redis refuses the command.
    Refused(String),
    /// Redis did not answer.
    NoRedis(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::NoRedis(format!("ERR no answer from the database: {error}"))
    }
}

/// A connection to Redis, opened when it is needed.
pub(super) struct Gateway {
    port: u16,
    credentials: Credentials,
    connection: Option<Connection>,
}

impl Gateway {
    pub(super) fn new(port: u16, credentials: Credentials) -> Self {
        Self { port, credentials, connection: None }
    }

    /// `["SET", "key", "value"]`.
    pub(super) fn single(&mut self, body: &[u8], encoding: Encoding) -> Result<Value, Failure> {
        let words = words(&parse(body, "command")?)?;
        match self.run(&words)? {
            Reply::Error(message) => Err(Failure::Refused(message)),
            reply @ (Reply::Status(_) | Reply::Integer(_) | Reply::Bulk(_) | Reply::Nil | Reply::Array(_)) => {
                Ok(json!({ "result": result(&reply, encoding) }))
            }
        }
    }

    /// `[["SET", "key", "value"], ["GET", "key"]]`, each by itself.
    pub(super) fn pipeline(&mut self, body: &[u8], encoding: Encoding) -> Result<Value, Failure> {
        let mut results = Vec::new();
        for command in commands(body, "pipeline")? {
            // A command that makes no sense has its own error; the others run.
            let reply = match words(&command) {
                Ok(words) => self.run(&words)?,
                Err(Failure::Refused(message)) => Reply::Error(message),
                Err(failure @ Failure::NoRedis(_)) => return Err(failure),
            };
            results.push(outcome(&reply, encoding));
        }
        Ok(Value::Array(results))
    }

    /// The same in `MULTI` and `EXEC`: all of them, or one error.
    pub(super) fn transaction(&mut self, body: &[u8], encoding: Encoding) -> Result<Value, Failure> {
        let commands: Vec<_> = commands(body, "multi-exec")?.iter().map(words).collect::<Result<_, Failure>>()?;
        self.run(&["MULTI"])?;
        for words in &commands {
            // A command that cannot be queued makes EXEC fail.
            self.run(words)?;
        }
        match self.run(&["EXEC"])? {
            Reply::Array(replies) => Ok(replies.iter().map(|reply| outcome(reply, encoding)).collect()),
            Reply::Error(message) => Err(Failure::Refused(message)),
            Reply::Status(_) | Reply::Integer(_) | Reply::Bulk(_) | Reply::Nil => {
                Err(Failure::Refused("ERR the transaction was discarded".to_owned()))
            }
        }
    }

    fn run<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Reply, Failure> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => redis::connect(self.port, &self.credentials)?,
        };
        // A connection that failed is not put back.
        let reply = connection.command(words)?;
        self.connection = Some(connection);
        Ok(reply)
    }
}

fn parse(body: &[u8], what: &str) -> Result<Value, Failure> {
    serde_json::from_slice(body).map_err(|error| Failure::Refused(format!("ERR failed to parse {what}: {error}")))
}

fn commands(body: &[u8], what: &str) -> Result<Vec<Value>, Failure> {
    if let Value::Array(commands) = parse(body, what)?
        && !commands.is_empty()
    {
        return Ok(commands);
    }
    Err(Failure::Refused(format!("ERR failed to parse {what}: not an array of commands")))
}

/// The words of a command that may be run.
fn words(command: &Value) -> Result<Vec<String>, Failure> {
    let refused = |message: String| Err(Failure::Refused(message));
    let Value::Array(items) = command else {
        return refused("ERR failed to parse command: not an array".to_owned());
    };
    let mut words = Vec::new();
    for item in items {
        match item {
            Value::String(text) => words.push(text.clone()),
            Value::Number(_) | Value::Bool(_) => words.push(item.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                return refused(format!("ERR failed to parse command: {item} is no string and no number"));
            }
        }
    }
    match words.first() {
        None => refused("ERR empty command".to_owned()),
        Some(name) if UNAVAILABLE.contains(&name.to_ascii_uppercase().as_str()) => {
            refused(format!("ERR Command is not available: '{name}'"))
        }
        Some(_) => Ok(words),
    }
}

/// One command's part in the answer for several.
fn outcome(reply: &Reply, encoding: Encoding) -> Value {
    match reply {
        Reply::Error(message) => json!({ "error": message }),
        Reply::Status(_) | Reply::Integer(_) | Reply::Bulk(_) | Reply::Nil | Reply::Array(_) => {
            json!({ "result": result(reply, encoding) })
        }
    }
}

/// A reply as JSON. Clients know the status `OK` as it is, but within arrays they decode every string.
fn result(reply: &Reply, encoding: Encoding) -> Value {
    match reply {
        Reply::Status(text) if text == "OK" => Value::from("OK"),
        Reply::Status(_) | Reply::Error(_) | Reply::Integer(_) | Reply::Bulk(_) | Reply::Nil | Reply::Array(_) => {
            encoded(reply, encoding)
        }
    }
}

fn encoded(reply: &Reply, encoding: Encoding) -> Value {
    let string = |bytes: &[u8]| match encoding {
        Encoding::Text => Value::from(String::from_utf8_lossy(bytes)),
        Encoding::Base64 => Value::from(STANDARD.encode(bytes)),
    };
    match reply {
        // An error comes here when a script put it into a table.
        Reply::Status(text) | Reply::Error(text) => string(text.as_bytes()),
        Reply::Bulk(bytes) => string(bytes),
        Reply::Integer(number) => Value::from(*number),
        Reply::Nil => Value::Null,
        Reply::Array(items) => items.iter().map(|item| encoded(item, encoding)).collect(),
    }
}
