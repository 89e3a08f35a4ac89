//! The guard in Cosmos DB: the condition and the operation of a patch. The mark is a property of the item, a number.
//!
//! A patch has the condition as `condition`, which some SDKs call `filterPredicate`.

use alloc::format;
use alloc::string::String;

use leasehold_core::Token;

/// The longest name of the property, in bytes.
pub const MAX_NAME: usize = 255;

/// Returns true if the property can have this name: letters, digits and underscores, with no digit at its beginning.
pub fn is_name(property: &str) -> bool {
    let is_plain = property.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (1..=MAX_NAME).contains(&property.len()) && is_plain && !property.starts_with(|first: char| first.is_ascii_digit())
}

/// The condition of a claim. `AND` may follow.
pub fn claim(property: &str, token: Token) -> String {
    format!("FROM c WHERE (NOT IS_DEFINED(c[\"{property}\"]) OR {})", compared(property, token))
}

/// The condition of a write. `AND` may follow. It does not hold for an item that was never claimed.
pub fn check(property: &str, token: Token) -> String {
    format!("FROM c WHERE {}", compared(property, token))
}

/// The operation that raises the mark, in claims and in writes, as JSON.
pub fn set(property: &str, token: Token) -> String {
    format!("{{\"op\":\"set\",\"path\":\"/{property}\",\"value\":{token}}}")
}

fn compared(property: &str, token: Token) -> String {
    format!("c[\"{property}\"] <= {token}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_place() {
        for name in ["fence", "_mark2", "order"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "2nd", "a.b", "a\"b", "a/b", "a b", "é"] {
            assert!(!is_name(name), "{name}");
        }
        assert!(is_name(&"x".repeat(255)) && !is_name(&"x".repeat(256)));
    }

    #[test]
    fn only_a_claim_accepts_an_item_without_a_mark() {
        let token = Token::new(34).unwrap();
        assert_eq!(claim("fence", token), r#"FROM c WHERE (NOT IS_DEFINED(c["fence"]) OR c["fence"] <= 34)"#);
        assert_eq!(check("fence", token), r#"FROM c WHERE c["fence"] <= 34"#);
        assert_eq!(set("fence", token), r#"{"op":"set","path":"/fence","value":34}"#);
    }
}
