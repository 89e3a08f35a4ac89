//! The fields of `INFO` and `CONFIG`, over a socket or HTTP, as far as the user may read them.

use std::collections::HashMap;

use leasehold_wire::resp::Value;

/// The most characters of a server's text that are repeated.
const MOST_WORDS: usize = 200;

/// The lines `name:value` of `INFO`, or the pairs of `HELLO` and `CONFIG GET`.
#[derive(Debug, Default)]
pub(in crate::transport) struct Fields(HashMap<String, String>);

impl Fields {
    pub(in crate::transport) fn of_text(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        Self(pairs.map(|(name, value)| (name.to_owned(), value.trim_end().to_owned())).collect())
    }

    pub(in crate::transport) fn of_pairs(reply: &Value) -> Self {
        let pairs: Vec<(&Value, &Value)> = if let Value::Map(pairs) = reply {
            pairs.iter().map(|(name, value)| (name, value)).collect()
        } else {
            items(reply).chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect()
        };
        Self(pairs.into_iter().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect())
    }

    pub(in crate::transport) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(in crate::transport) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }
}

/// Reads the reply to `INFO`.
///
/// # Errors
/// The server's words, where the reply has no such fields.
pub(in crate::transport) fn fields(info: &Value) -> Result<Fields, String> {
    match (info.as_error(), text(info)) {
        (None, Some(text)) => Ok(Fields::of_text(&text)),
        (error, _) => Err(printable(error.unwrap_or("the reply to INFO is not text"))),
    }
}

/// Reads the reply to `CONFIG GET`.
///
/// # Errors
/// The server's words, where the setting is missing.
pub(in crate::transport) fn setting(name: &str, reply: &Value) -> Result<String, String> {
    let value = Fields::of_pairs(reply).get(name).map(str::to_owned);
    value.ok_or_else(|| printable(reply.as_error().unwrap_or("CONFIG does not show it")))
}

/// The items of a list; other replies have none.
pub(in crate::transport) fn items(reply: &Value) -> &[Value] {
    if let Value::Array(items) = reply { items } else { &[] }
}

/// The text of a reply, if it has one.
pub(in crate::transport) fn text(reply: &Value) -> Option<String> {
    match reply {
        Value::Simple(text) => Some(text.clone().into_owned()),
        Value::Double(text) | Value::BigNumber(text) => Some(text.clone()),
        Value::Bulk(bytes) | Value::Verbatim(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Nil
        | Value::Error(_)
        | Value::Array(_)
        | Value::Push(_)
        | Value::Set(_)
        | Value::Map(_)
        | Value::Boolean(_) => None,
    }
}

/// A server's text, made safe for terminals and logs.
pub(in crate::transport) fn printable(text: &str) -> String {
    text.chars().take(MOST_WORDS).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
