//! A golden vector: the calls of one client's host, and all that must come of them.

use leasehold_core::json::hex;
use leasehold_core::{Config, Entropy, Input, Monotonic, Now, Output, Seed};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{FORMAT, LARGEST, Store, pretty};

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Vector<I = Call, O = Output> {
    /// Always [`FORMAT`].
    pub format: u32,
    /// The name of the file, without `.json`.
    pub name: String,
    /// The reason why the vector exists, for those who see it fail.
    pub why: String,
    /// The settings of the client.
    pub config: Config,
    /// The stores, one for each node; only in vectors with whole requests.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub stores: Vec<Store>,
    /// The seed of the client.
    #[serde(with = "hex")]
    pub seed: Seed,
    /// The clocks when the client is made.
    pub start: Start,
    /// The calls, in order.
    pub steps: Vec<Step<I, O>>,
}

/// The clocks when the client is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Start {
    /// The monotonic clock.
    pub monotonic_ns: u64,
    /// The wall clock.
    pub unix_ms: u64,
}

/// One call, and all outputs until the client is drained.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Step<I = Call, O = Output> {
    /// The monotonic clock.
    pub at_ns: u64,
    /// The wall clock; absent where it shows the same as in the step before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix_ms: Option<u64>,
    /// Fresh bytes, for the calls that take some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entropy: Option<Fresh>,
    /// The call.
    #[serde(rename = "do")]
    pub input: I,
    /// All outputs, in order.
    pub outputs: Vec<O>,
    /// The time at which the client wants to be called again.
    pub wake_at_ns: Monotonic,
    /// The rows of the lease machine's table that were taken, in the order of the table; for information.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<String>,
}

/// Fresh bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Fresh(#[serde(with = "hex")] pub Entropy);

/// One call of a client's host: an input, or none, where only time has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call(pub Option<Input>);

impl Call {
    /// The name of the call, for messages.
    pub fn name(&self) -> String {
        let form = serde_json::to_value(self).unwrap_or_default();
        form.as_object().and_then(|form| form.keys().next().cloned()).unwrap_or_default()
    }
}

impl Serialize for Call {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(input) => input.serialize(serializer),
            None => json!({ "timeout": {} }).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Call {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = Value::deserialize(deserializer)?;
        if form.get("timeout").is_some() {
            return Ok(Self(None));
        }
        Input::deserialize(form).map(|input| Self(Some(input))).map_err(D::Error::custom)
    }
}

/// A call, in either kind of vector.
pub trait TakesEntropy {
    /// True for the calls that take fresh bytes.
    fn takes_entropy(&self) -> bool;
}

impl TakesEntropy for Call {
    fn takes_entropy(&self) -> bool {
        matches!(self.0, None | Some(Input::Acquire { .. }))
    }
}

impl<I, O> Vector<I, O>
where
    I: TakesEntropy + Serialize + DeserializeOwned,
    O: Serialize + DeserializeOwned,
{
    /// Reads a file.
    ///
    /// # Errors
    /// Anything but a vector, and a vector that would be written in another way: with a field that is unknown, or a value
    /// that would be rounded.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let format = &value["format"];
        if *format != FORMAT {
            return Err(format!("format: this is version {format}, and {FORMAT} is understood here"));
        }
        let vector: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let written = vector.checked()?;
        difference(&value, &written).map_or(Ok(vector), Err)
    }

    /// The text of its file.
    ///
    /// # Errors
    /// For a value that a file cannot hold.
    pub fn to_text(&self) -> Result<String, String> {
        self.checked()?;
        serde_json::to_string(self).map(|json| pretty(&json)).map_err(|error| error.to_string())
    }

    fn checked(&self) -> Result<Value, String> {
        for (n, step) in self.steps.iter().enumerate() {
            let takes = if step.input.takes_entropy() { "takes fresh bytes" } else { "takes no fresh bytes" };
            if step.entropy.is_some() != step.input.takes_entropy() {
                return Err(format!("steps[{n}].entropy: this call {takes}"));
            }
        }
        let value = serde_json::to_value(self).map_err(|error| error.to_string())?;
        match too_large(&value) {
            Some(number) => Err(format!("{number} is above the largest, 2^53 - 1")),
            None => Ok(value),
        }
    }
}

impl<I, O> Step<I, O> {
    /// The clocks, given those of the step before.
    pub fn now(&self, before: Now) -> Now {
        Now { monotonic: Monotonic::from_ns(self.at_ns), unix_ms: self.unix_ms.unwrap_or(before.unix_ms) }
    }

    /// The fresh bytes; zeros for a call that takes none.
    pub fn entropy(&self) -> Entropy {
        self.entropy.map_or([0; 16], |fresh| fresh.0)
    }
}

impl Start {
    /// The clocks.
    pub const fn now(self) -> Now {
        Now { monotonic: Monotonic::from_ns(self.monotonic_ns), unix_ms: self.unix_ms }
    }
}

fn too_large(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().filter(|number| *number > LARGEST),
        Value::Array(items) => items.iter().find_map(too_large),
        Value::Object(fields) => fields.values().find_map(too_large),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

/// The first difference of two values, with its path; `None` if they are equal.
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
                (expected, found) => Some(format!("{key}{}", shown(expected, found))),
            })
        }
        (Value::Array(expected), Value::Array(found)) => {
            (0..expected.len().max(found.len())).find_map(|n| match (expected.get(n), found.get(n)) {
                (Some(expected), Some(found)) => {
                    difference(expected, found).map(|inner| placed(&format!("[{n}]"), inner))
                }
                (expected, found) => Some(format!("[{n}]{}", shown(expected, found))),
            })
        }
        _ => (expected != found).then(|| shown(Some(expected), Some(found))),
    }
}

fn shown(expected: Option<&Value>, found: Option<&Value>) -> String {
    let text = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
    format!(": expected {}, found {}", text(expected), text(found))
}
