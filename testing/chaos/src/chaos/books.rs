//! What workers write down: a line of JSON for each thing that happens, in the same format from every language.

use std::io;

use serde_json::Value;

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When, in nanoseconds of the machine's monotonic clock.
    pub at: u64,
    /// What.
    pub what: What,
}

/// What a worker can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It is connected.
    Started,
    /// It is about to ask for the lock.
    Asked,
    /// The lock is granted; if no renewal succeeds it will believe so until then.
    Granted {
        /// The fencing token.
        token: u64,
        /// In nanoseconds.
        until: u64,
        /// Whether its end is looked at again and again.
        is_watched: bool,
    },
    /// A look at the end, which a renewal has moved; `at` is before it.
    Valid {
        /// The fencing token.
        token: u64,
        /// In nanoseconds.
        until: u64,
    },
    /// A check of the lease, which has passed; `at` is before it.
    Checked {
        /// The fencing token.
        token: u64,
    },
    /// The guard has seen a later token.
    Refused {
        /// The fencing token.
        token: u64,
        /// The lease was still valid afterwards.
        is_valid: bool,
    },
    /// The client has called back: the lease is lost.
    Told {
        /// The fencing token.
        token: u64,
    },
    /// The worker has looked, and the lease is lost.
    Lost {
        /// The fencing token.
        token: u64,
    },
    /// The worker has waited for the call in vain.
    Untold {
        /// The fencing token.
        token: u64,
    },
    /// It is about to give the lock back.
    Releasing {
        /// The fencing token.
        token: u64,
    },
    /// The store has confirmed that.
    Released {
        /// The fencing token.
        token: u64,
    },
    /// Something failed that may pass.
    Failed {
        /// The kind of the error.
        kind: String,
    },
    /// Its watch was not woken between then and `at`, though it had asked to be.
    Stalled {
        /// In nanoseconds.
        from: u64,
    },
}

/// What one process wrote down: a worker that was killed and started again has several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Book {
    /// Such as `python-1`.
    pub worker: String,
    /// Which way to the stores it goes.
    pub group: usize,
    /// As they were heard.
    pub entries: Vec<Entry>,
    /// When the process was killed, in nanoseconds; 0 while it lives.
    pub ended: u64,
}

impl Entry {
    /// Reads a line.
    ///
    /// # Errors
    /// For a line that no worker writes.
    pub fn parse(line: &str) -> io::Result<Self> {
        let known = serde_json::from_str::<Value>(line).ok().and_then(|value| Self::known(&value));
        known.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("no line of a book: {line:?}")))
    }

    fn known(value: &Value) -> Option<Self> {
        let number = |name: &str| value.get(name).and_then(Value::as_u64);
        let token = || number("token");
        let flag = |name: &str| value.get(name).and_then(Value::as_bool);
        let what = match value.get("what")?.as_str()? {
            "started" => What::Started,
            "asked" => What::Asked,
            "granted" => What::Granted { token: token()?, until: number("until")?, is_watched: flag("watched")? },
            "valid" => What::Valid { token: token()?, until: number("until")? },
            "checked" => What::Checked { token: token()? },
            "refused" => What::Refused { token: token()?, is_valid: flag("valid")? },
            "told" => What::Told { token: token()? },
            "lost" => What::Lost { token: token()? },
            "untold" => What::Untold { token: token()? },
            "releasing" => What::Releasing { token: token()? },
            "released" => What::Released { token: token()? },
            "failed" => What::Failed { kind: value.get("kind")?.as_str()?.to_owned() },
            "stalled" => What::Stalled { from: number("from")? },
            _ => return None,
        };
        Some(Self { at: number("at")?, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_as_every_language_writes_it() {
        let granted = Entry { at: 12, what: What::Granted { token: 7, until: 40, is_watched: true } };
        for line in [
            r#"{"at":12,"what":"granted","token":7,"until":40,"watched":true}"#,
            r#"{"what": "granted", "watched": true, "until": 40, "token": 7, "at": 12}"#,
        ] {
            assert_eq!(Entry::parse(line).unwrap(), granted);
        }
    }

    #[test]
    fn what_is_missing_or_unknown_is_no_line() {
        for line in
            ["", "{}", r#"{"at":1,"what":"granted","token":7,"until":4}"#, r#"{"at":1,"what":"danced"}"#, r#"{"at":1,"#]
        {
            assert!(Entry::parse(line).is_err(), "{line}");
        }
    }
}
