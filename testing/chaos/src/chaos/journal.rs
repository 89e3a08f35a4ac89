//! The journals of the workers: a line of JSON for each event, in the same format from every language.

use std::io;

use serde_json::Value;

/// A line of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The time, in nanoseconds of the machine's monotonic clock.
    pub at: u64,
    /// The event.
    pub event: Event,
}

/// An event in a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The worker is connected.
    Started,
    /// The worker is about to ask for the lock.
    Asked,
    /// The lock is granted. Without a renewal the lease ends at `until`.
    Granted {
        /// The fencing token.
        token: u64,
        /// In nanoseconds.
        until: u64,
        /// True if the worker's watch thread follows its renewals.
        is_watched: bool,
    },
    /// A renewal has moved the end of the lease; `at` is before it was read.
    Valid {
        /// The fencing token.
        token: u64,
        /// In nanoseconds.
        until: u64,
    },
    /// A check of the lease has passed; `at` is before it.
    Checked {
        /// The fencing token.
        token: u64,
    },
    /// The guard has rejected the token, because it has seen a later one.
    Refused {
        /// The fencing token.
        token: u64,
        /// True if the lease was still valid afterwards.
        is_valid: bool,
    },
    /// The client has called `on_lost`.
    Notified {
        /// The fencing token.
        token: u64,
    },
    /// The worker has seen that the lease is lost.
    Lost {
        /// The fencing token.
        token: u64,
    },
    /// The client did not call `on_lost` in time.
    NotNotified {
        /// The fencing token.
        token: u64,
    },
    /// The worker is about to release the lock.
    Releasing {
        /// The fencing token.
        token: u64,
    },
    /// The store has confirmed the release.
    Released {
        /// The fencing token.
        token: u64,
    },
    /// A call failed with a temporary error.
    Failed {
        /// The kind of the error.
        kind: String,
    },
    /// The watch thread was not woken between `from` and `at`, though it had asked for it.
    Stalled {
        /// In nanoseconds.
        from: u64,
    },
}

/// The events of one process. A worker that was killed and started again has several journals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    /// The worker's name, such as `python-1`.
    pub worker: String,
    /// The group, which decides its path to the stores.
    pub group: usize,
    /// The lines, in the order of arrival.
    pub entries: Vec<Entry>,
    /// The time when the process was killed, in nanoseconds; 0 while it runs.
    pub ended: u64,
}

impl Entry {
    /// Reads a line.
    ///
    /// # Errors
    /// For anything but a line that workers write.
    pub fn parse(line: &str) -> io::Result<Self> {
        let known = serde_json::from_str::<Value>(line).ok().and_then(|value| Self::known(&value));
        known.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("not a line of a journal: {line:?}")))
    }

    fn known(value: &Value) -> Option<Self> {
        let number = |name: &str| value.get(name).and_then(Value::as_u64);
        let token = || number("token");
        let flag = |name: &str| value.get(name).and_then(Value::as_bool);
        let event = match value.get("what")?.as_str()? {
            "started" => Event::Started,
            "asked" => Event::Asked,
            "granted" => Event::Granted { token: token()?, until: number("until")?, is_watched: flag("watched")? },
            "valid" => Event::Valid { token: token()?, until: number("until")? },
            "checked" => Event::Checked { token: token()? },
            "refused" => Event::Refused { token: token()?, is_valid: flag("valid")? },
            "notified" => Event::Notified { token: token()? },
            "lost" => Event::Lost { token: token()? },
            "not_notified" => Event::NotNotified { token: token()? },
            "releasing" => Event::Releasing { token: token()? },
            "released" => Event::Released { token: token()? },
            "failed" => Event::Failed { kind: value.get("kind")?.as_str()?.to_owned() },
            "stalled" => Event::Stalled { from: number("from")? },
            _ => return None,
        };
        Some(Self { at: number("at")?, event })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_language_are_read() {
        let granted = Entry { at: 12, event: Event::Granted { token: 7, until: 40, is_watched: true } };
        for line in [
            r#"{"at":12,"what":"granted","token":7,"until":40,"watched":true}"#,
            r#"{"what": "granted", "watched": true, "until": 40, "token": 7, "at": 12}"#,
        ] {
            assert_eq!(Entry::parse(line).unwrap(), granted);
        }
    }

    #[test]
    fn incomplete_and_unknown_lines_are_rejected() {
        for line in
            ["", "{}", r#"{"at":1,"what":"granted","token":7,"until":4}"#, r#"{"at":1,"what":"danced"}"#, r#"{"at":1,"#]
        {
            assert!(Entry::parse(line).is_err(), "{line}");
        }
    }
}
