//! A golden vector: what a host does to one client, and all that must come of it.

use leasehold_core::{Entropy, Now, Seed};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bytes::array;
use super::{At, Config, Error, FORMAT, Input, Output, Within, integer, pretty};

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vector {
    /// Always [`FORMAT`].
    pub format: u32,
    /// As the file, without `.json`.
    pub name: String,
    /// What it shows, for whoever sees it fail.
    pub why: String,
    /// Of the client.
    pub config: Config,
    /// Of the client: 32 bytes.
    pub seed: String,
    /// What the clocks show when the client is made.
    pub start: Start,
    /// In order.
    pub steps: Vec<Step>,
}

/// What the clocks show when the client is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// The monotonic clock.
    pub monotonic_ns: u64,
    /// The wall clock.
    pub unix_ms: u64,
}

/// One call, and all outputs until the client is drained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What the monotonic clock shows.
    pub at_ns: u64,
    /// What the wall clock shows; absent where it shows the same as in the step before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix_ms: Option<u64>,
    /// 16 fresh bytes, for the calls that take some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy: Option<String>,
    /// The call.
    #[serde(rename = "do")]
    pub input: Input,
    /// All that comes out, in order.
    pub outputs: Vec<Output>,
    /// When the client wants to be called again.
    pub wake_at_ns: At,
    /// Rows of the lease machine's table that were taken, in the order of the table; for information.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<String>,
}

/// Just enough to tell a file of another version before anything else is wrong with it.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

impl Vector {
    /// Reads a file and checks all that can be checked without a client.
    ///
    /// # Errors
    /// No JSON, fields that are missing, unknown or of the wrong kind (with the line), values that nothing can have
    /// (with the field).
    pub fn parse(text: &str) -> Result<Self, Error> {
        let Head { format } = serde_json::from_str(text).map_err(Error::new)?;
        if format != FORMAT {
            return Err(Error::new(format!("this is version {format}, and {FORMAT} is understood here")))
                .within("format");
        }
        let vector: Self = serde_json::from_str(text).map_err(Error::new)?;
        vector.check()?;
        Ok(vector)
    }

    /// The text of its file.
    ///
    /// # Errors
    /// A value that a file cannot hold.
    pub fn to_text(&self) -> Result<String, Error> {
        self.check()?;
        Ok(pretty(&serde_json::to_string(self).map_err(Error::new)?))
    }

    fn check(&self) -> Result<(), Error> {
        self.config.to_core().within("config")?;
        self.seed()?;
        integer(self.start.monotonic_ns).within("start.monotonic_ns")?;
        integer(self.start.unix_ms).within("start.unix_ms")?;
        for (n, step) in self.steps.iter().enumerate() {
            step.check().within(&format!("steps[{n}]"))?;
        }
        Ok(())
    }

    /// The seed itself.
    ///
    /// # Errors
    /// Other than 32 bytes.
    pub fn seed(&self) -> Result<Seed, Error> {
        array(&self.seed).within("seed")
    }
}

impl Start {
    /// The clocks.
    pub const fn now(self) -> Now {
        Now { monotonic: leasehold_core::Monotonic::from_ns(self.monotonic_ns), unix_ms: self.unix_ms }
    }
}

impl Step {
    fn check(&self) -> Result<(), Error> {
        integer(self.at_ns).within("at_ns")?;
        integer(self.unix_ms.unwrap_or(0)).within("unix_ms")?;
        self.input.to_core().within("do")?;
        self.entropy()?;
        for (n, output) in self.outputs.iter().enumerate() {
            output.to_core().within(&format!("outputs[{n}]"))?;
            if matches!(output, Output::WakeAt { .. }) {
                return Err(Error::new("stands in wake_at_ns")).within(&format!("outputs[{n}].wake_at"));
            }
        }
        self.wake_at_ns.to_core().within("wake_at_ns")?;
        Ok(())
    }

    /// The fresh bytes; zeros for a call that takes none.
    ///
    /// # Errors
    /// Other than 16 bytes, or bytes for a call that takes none.
    pub fn entropy(&self) -> Result<Entropy, Error> {
        match (&self.entropy, self.input.takes_entropy()) {
            (Some(hex), true) => array(hex).within("entropy"),
            (None, false) => Ok([0; 16]),
            (None, true) => Err(Error::new(format!("{} takes fresh bytes", self.input.name()))).within("entropy"),
            (Some(_), false) => {
                Err(Error::new(format!("{} takes no fresh bytes", self.input.name()))).within("entropy")
            }
        }
    }
}

/// Where two values first differ, and how; `None` where they do not.
pub fn difference(expected: &Value, found: &Value) -> Option<String> {
    let placed = |path: &str, inner: String| {
        let dot = if inner.starts_with(['[', ':']) { "" } else { "." };
        format!("{path}{dot}{inner}")
    };
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let keys: std::collections::BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
            keys.into_iter().find_map(|key| match (expected.get(key), found.get(key)) {
                (Some(expected), Some(found)) => difference(expected, found).map(|inner| placed(key, inner)),
                (expected, found) => Some(format!("{key}{}", told(expected, found))),
            })
        }
        (Value::Array(expected), Value::Array(found)) => {
            (0..expected.len().max(found.len())).find_map(|n| match (expected.get(n), found.get(n)) {
                (Some(expected), Some(found)) => {
                    difference(expected, found).map(|inner| placed(&format!("[{n}]"), inner))
                }
                (expected, found) => Some(format!("[{n}]{}", told(expected, found))),
            })
        }
        _ => (expected != found).then(|| told(Some(expected), Some(found))),
    }
}

fn told(expected: Option<&Value>, found: Option<&Value>) -> String {
    let text = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
    format!(": expected {}, found {}", text(expected), text(found))
}
