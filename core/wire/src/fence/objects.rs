//! The guard of an object: the mark stands in front of the data, as `34 data`.
//!
//! Each write is made on the condition that nobody has written since the read. The marks are compared in between, and
//! again after every write that was refused.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

use leasehold_core::Token;
use leasehold_core::fence::Rejected;

/// The reason why nothing may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refused {
    /// By the rule of [`Guard`](leasehold_core::fence::Guard).
    Rejected(Rejected),
    /// There is no such object: a later holder may have deleted it.
    Gone,
    /// The object does not begin with a token and a space.
    NoToken,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejected) => rejected.fmt(f),
            Self::Gone => f.write_str("the object is gone; a later holder may have deleted it"),
            Self::NoToken => {
                f.write_str("the object does not begin with a token and a space; let nothing but the guard write it")
            }
        }
    }
}

/// The mark and the data of an object; `None` for one that no guard has written.
pub fn split(body: &[u8]) -> Option<(Token, &[u8])> {
    let at = body.iter().position(|byte| *byte == b' ')?;
    let (digits, rest) = body.split_at(at);
    let digits = core::str::from_utf8(digits).ok()?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !(digits.len() > 1 && digits.starts_with('0'));
    let mark = digits.parse().ok().and_then(Token::new).filter(|_| is_plain)?;
    Some((mark, rest.get(1..)?))
}

/// The object after a claim, with its data unchanged. `seen` is what was read: `None` where there is no object.
///
/// # Errors
/// It may not be claimed.
pub fn claimed(token: Token, seen: Option<&[u8]>) -> Result<Vec<u8>, Refused> {
    match seen {
        Some(body) => mark_below(token, body).map(|data| joined(token, data)),
        None => Ok(joined(token, b"")),
    }
}

/// The object after a write of this data. `seen` is what was read: `None` where there is no object.
///
/// # Errors
/// It may not be written.
pub fn written(token: Token, seen: Option<&[u8]>, data: &[u8]) -> Result<Vec<u8>, Refused> {
    mark_below(token, seen.ok_or(Refused::Gone)?)?;
    Ok(joined(token, data))
}

fn mark_below(token: Token, body: &[u8]) -> Result<&[u8], Refused> {
    let (high_water, data) = split(body).ok_or(Refused::NoToken)?;
    match high_water > token {
        true => Err(Refused::Rejected(Rejected::Stale { token, high_water })),
        false => Ok(data),
    }
}

fn joined(token: Token, data: &[u8]) -> Vec<u8> {
    [token.get().to_string().as_bytes(), b" ", data].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(value: u64) -> Token {
        Token::new(value).unwrap()
    }

    #[test]
    fn a_claim_keeps_the_data_and_a_write_keeps_the_mark() {
        assert_eq!(claimed(token(34), None).unwrap(), b"34 ");
        assert_eq!(claimed(token(34), Some(b"33 a b")).unwrap(), b"34 a b");
        assert_eq!(written(token(34), Some(b"34 a b"), b"\xff c").unwrap(), b"34 \xff c");
        assert_eq!(written(token(35), Some(b"34 "), b"").unwrap(), b"35 ");
    }

    #[test]
    fn late_writers_are_refused() {
        let stale = Err(Refused::Rejected(Rejected::Stale { token: token(33), high_water: token(34) }));
        assert_eq!(claimed(token(33), Some(b"34 a")), stale);
        assert_eq!(written(token(33), Some(b"34 a"), b"late"), stale);
        assert_eq!(written(token(33), None, b"late"), Err(Refused::Gone));
    }

    #[test]
    fn an_object_of_others_is_never_written_over() {
        for body in ["", " ", "34", "-1 a", "+34 a", "034 a", "9007199254740992 a", "{\"fence\": 34}", "34\u{a0}a"] {
            assert_eq!(split(body.as_bytes()), None, "{body}");
            assert_eq!(claimed(token(35), Some(body.as_bytes())), Err(Refused::NoToken), "{body}");
            assert_eq!(written(token(35), Some(body.as_bytes()), b"x"), Err(Refused::NoToken), "{body}");
        }
        assert_eq!(split(b"0 a"), Some((token(0), &b"a"[..])));
    }
}
