//! The guard in DynamoDB: pieces of conditions and updates for your own items, and the reason of a refusal.
//!
//! The mark is an attribute of the item, a number. Everything here is plain text, for any client library that sends the
//! request: names go through `ExpressionAttributeNames`, values through `ExpressionAttributeValues`. The pieces stand
//! beside others in one request:
//!
//! | | `UpdateExpression` | `ConditionExpression` |
//! |---|---|---|
//! | claim | `SET` [`SET`] | [`CLAIM`] |
//! | write | `SET` yours`,` [`SET`] | [`CHECK`] ` AND (`yours`)` |
//! | the guarded item decides about others, in a transaction | | [`CHECK`] |

use alloc::string::String;
use core::fmt;

use leasehold_core::Token;
use leasehold_core::fence::Rejected;

/// The placeholder of the mark's attribute; belongs into `ExpressionAttributeNames`.
pub const NAME: &str = "#leasehold_fence";

/// The placeholder of the token, a number; belongs into `ExpressionAttributeValues`.
pub const VALUE: &str = ":leasehold_token";

/// The condition of a claim. In parentheses, so that `AND` can follow.
pub const CLAIM: &str = "(attribute_not_exists(#leasehold_fence) OR #leasehold_fence <= :leasehold_token)";

/// The condition of a write. It does not hold for a missing item, so that a late write does not bring back an item that a
/// later holder has deleted.
pub const CHECK: &str = "#leasehold_fence <= :leasehold_token";

/// The assignment that raises the mark, to stand after `SET` or a comma, in claims and in writes.
pub const SET: &str = "#leasehold_fence = :leasehold_token";

/// The longest name of the attribute, in bytes.
pub const MAX_NAME: usize = 255;

/// Returns true if an attribute can have this name: 1 to [`MAX_NAME`] bytes without control characters. Dots and reserved
/// words are allowed, since the name does not stand in expressions.
pub fn is_name(attribute: &str) -> bool {
    (1..=MAX_NAME).contains(&attribute.len()) && !attribute.chars().any(char::is_control)
}

/// The step that a condition was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// With [`CLAIM`].
    Claim,
    /// With [`CHECK`].
    Check,
}

/// The item that a `ConditionalCheckFailedException` shows with `ReturnValuesOnConditionCheckFailure = ALL_OLD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shown<'a> {
    /// No item.
    Nothing,
    /// An item without the attribute of the mark.
    Unmarked,
    /// The attribute's number as DynamoDB writes it; of an attribute of another type, whatever it holds.
    Mark(&'a str),
}

/// The reason why a condition with a piece of the guard did not hold. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Refused {
    /// By the rule of [`Guard`](leasehold_core::fence::Guard).
    Rejected(Rejected),
    /// There is no such item: a later holder may have deleted it.
    Gone,
    /// The mark is no token but this.
    NoToken(String),
    /// Not by the guard, which would have let it through: another part of the condition did not hold.
    Otherwise,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejected) => rejected.fmt(f),
            Self::Gone => f.write_str("the item is gone; a later holder may have deleted it"),
            Self::NoToken(mark) => {
                write!(f, "the mark is no token but {mark:?}; let nothing but the guard write it")
            }
            Self::Otherwise => f.write_str("the guard let it through; another part of the condition did not hold"),
        }
    }
}

/// The reason why a condition did not hold.
pub fn refused(step: Step, token: Token, shown: Shown<'_>) -> Refused {
    match (step, shown) {
        (Step::Check, Shown::Nothing) => Refused::Gone,
        (Step::Check, Shown::Unmarked) => Refused::Rejected(Rejected::Unclaimed),
        (Step::Claim, Shown::Nothing | Shown::Unmarked) => Refused::Otherwise,
        (Step::Claim | Step::Check, Shown::Mark(mark)) => match token_of(mark) {
            Some(high_water) if high_water > token => Refused::Rejected(Rejected::Stale { token, high_water }),
            Some(_) => Refused::Otherwise,
            None => Refused::NoToken(mark[..mark.floor_char_boundary(80)].into()),
        },
    }
}

/// Digits and nothing else: `parse` alone would take a sign.
fn token_of(mark: &str) -> Option<Token> {
    mark.bytes().all(|byte| byte.is_ascii_digit()).then(|| mark.parse().ok().and_then(Token::new))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn token(value: u64) -> Token {
        Token::new(value).unwrap()
    }

    #[test]
    fn expressions_use_only_their_own_placeholders() {
        for piece in [CLAIM, CHECK, SET] {
            let plain = piece.replace(NAME, "").replace(VALUE, "");
            assert!(piece.contains(NAME) && piece.contains(VALUE) && !plain.contains(['#', ':']), "{piece}");
        }
        assert!(CLAIM.starts_with('(') && CLAIM.ends_with(')'), "OR binds weaker than the AND that follows");
        assert!(!CHECK.contains("not_exists") && !CHECK.contains(" OR "));
    }

    #[test]
    fn refusal_names_both_tokens_or_the_invalid_mark() {
        for step in [Step::Claim, Step::Check] {
            let stale = refused(step, token(33), Shown::Mark("34"));
            assert_eq!(stale, Refused::Rejected(Rejected::Stale { token: token(33), high_water: token(34) }));
            assert!(stale.to_string().contains("33") && stale.to_string().contains("34"), "{stale}");
            for mark in ["33", "32", "0"] {
                assert_eq!(refused(step, token(33), Shown::Mark(mark)), Refused::Otherwise);
            }
            for mark in
                ["", "-1", "+34", "34.5", "3.4E1", " 34", "9007199254740992", "99999999999999999999", "tomorrow"]
            {
                assert_eq!(refused(step, token(33), Shown::Mark(mark)), Refused::NoToken(mark.into()));
            }
        }
        assert_eq!(refused(Step::Check, token(33), Shown::Nothing), Refused::Gone);
        assert_eq!(refused(Step::Check, token(33), Shown::Unmarked), Refused::Rejected(Rejected::Unclaimed));
        assert_eq!(refused(Step::Claim, token(33), Shown::Nothing), Refused::Otherwise);
        assert_eq!(refused(Step::Claim, token(33), Shown::Unmarked), Refused::Otherwise);
        let long = refused(Step::Check, token(33), Shown::Mark(&"é".repeat(1_000)));
        assert!(matches!(long, Refused::NoToken(mark) if mark.len() == 80));
    }

    #[test]
    fn names_are_bounded() {
        assert!(is_name("fence") && is_name("a.b") && is_name("size") && is_name(&"x".repeat(255)));
        assert!(!is_name("") && !is_name("a\nb") && !is_name(&"x".repeat(256)));
    }
}
