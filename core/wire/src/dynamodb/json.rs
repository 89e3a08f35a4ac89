//! Bodies as JSON: bounded, and attribute values in the form that DynamoDB wants them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json};

use crate::rest::{MAX_BODY, MAX_DEPTH, depth};

/// The object that a body is.
pub(crate) fn object(body: &[u8]) -> Result<Map<String, Json>, &'static str> {
    if body.len() > MAX_BODY {
        return Err("a body longer than allowed");
    }
    if depth(body) > MAX_DEPTH {
        return Err("JSON nested deeper than allowed");
    }
    match serde_json::from_slice(body) {
        Ok(Json::Object(fields)) => Ok(fields),
        Ok(_) | Err(_) => Err("no JSON object"),
    }
}

/// An object of these fields. Unlike `json!`, it moves values that are JSON already, and does not copy them.
pub(crate) fn fields<const N: usize>(fields: [(&str, Json); N]) -> Json {
    Json::Object(fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
}

/// The bytes of a value. It takes less than its `Display`, which writes piece by piece.
pub(crate) fn written(value: &Json) -> Vec<u8> {
    // Every value can be written.
    serde_json::to_vec(value).unwrap_or_default()
}

pub(super) fn text(value: &str) -> Json {
    fields([("S", value.into())])
}

/// As text: a JSON number could lose digits on its way.
pub(super) fn number(value: u64) -> Json {
    fields([("N", value.to_string().into())])
}

pub(super) fn bytes(value: &[u8]) -> Json {
    fields([("B", STANDARD.encode(value).into())])
}

/// Returns the value under a type's name, if the attribute is of that type.
fn of_type<'a>(attribute: &'a Json, name: &str) -> Option<&'a str> {
    let fields = attribute.as_object().filter(|fields| fields.len() == 1)?;
    fields.get(name)?.as_str()
}

pub(super) fn as_text(attribute: &Json) -> Option<&str> {
    of_type(attribute, "S")
}

/// An integer that is not negative, in plain digits as DynamoDB writes it.
pub(super) fn as_number(attribute: &Json) -> Option<u64> {
    digits(of_type(attribute, "N")?)
}

pub(super) fn as_bytes(attribute: &Json) -> Option<Vec<u8>> {
    STANDARD.decode(of_type(attribute, "B")?).ok()
}

/// Digits and nothing else: `parse` alone would take a sign.
pub(crate) fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bodies_are_bounded() {
        assert!(object(b"{\"a\":1}").is_ok());
        for bad in ["", "[]", "1", "null", "<html>", "{", "{\"a\":1}x"] {
            assert!(object(bad.as_bytes()).is_err(), "{bad}");
        }
        let nested = |levels: usize| alloc::format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(object(nested(31).as_bytes()).is_ok());
        assert_eq!(object(nested(32).as_bytes()), Err("JSON nested deeper than allowed"));
        assert!(object(nested(200_000).as_bytes()).is_err());
        let long = |bytes: usize| alloc::format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        assert!(object(long(MAX_BODY).as_bytes()).is_ok());
        assert_eq!(object(long(MAX_BODY + 1).as_bytes()), Err("a body longer than allowed"));
        assert!(object(b"{\"a\":\"\xff\"}").is_err());
    }

    #[test]
    fn attributes_have_one_type_and_exact_digits() {
        assert_eq!(as_text(&text("a")), Some("a"));
        assert_eq!(as_number(&number(u64::MAX)), Some(u64::MAX));
        assert_eq!(as_bytes(&bytes(b"\xfb\xff")), Some(b"\xfb\xff".to_vec()));
        assert_eq!(bytes(b"\xfb\xff"), json!({ "B": "+/8=" }));
        for odd in [json!({ "N": "1", "S": "1" }), json!({ "N": 1 }), json!({}), json!("1"), json!({ "L": [] })] {
            assert_eq!((as_text(&odd), as_number(&odd), as_bytes(&odd)), (None, None, None), "{odd}");
        }
        for odd in ["", "-1", "+1", "1.5", "1E3", " 1", "18446744073709551616"] {
            assert_eq!(as_number(&json!({ "N": odd })), None, "{odd}");
        }
        assert_eq!(as_bytes(&json!({ "B": "+/8" })), None);
    }
}
