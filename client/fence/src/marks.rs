//! Marks that stores keep, compared with tokens.

use leasehold_core::Token;
use leasehold_core::fence::Rejected;

use crate::{Error, ErrorKind};

pub(crate) fn number(token: u64) -> Result<Token, Error> {
    Token::new(token)
        .ok_or_else(|| Error::config(format!("{token} is not a fencing token: the largest is {}", Token::MAX)))
}

/// A mark as a store answers it.
pub(crate) fn token_of(mark: i64) -> Option<Token> {
    u64::try_from(mark).ok().and_then(Token::new)
}

/// Compares a store's mark with `token`. Returns the mark, or an error if it is higher.
pub(crate) fn not_later(token: Token, mark: i64) -> Result<Token, Error> {
    match token_of(mark) {
        Some(high_water) if high_water > token => Err(Rejected::Stale { token, high_water }.into()),
        Some(mark) => Ok(mark),
        None => Err(no_token(&mark)),
    }
}

/// As [`not_later`], of a mark that was to be raised to `token` before it was answered.
pub(crate) fn verdict(token: Token, mark: i64) -> Result<(), Error> {
    let mark = not_later(token, mark)?;
    if mark < token {
        let advice = "use a column or field that holds whole numbers up to 2^53 - 1, and pass the guard's own answer";
        let message = format!("the mark is {mark} and was not raised to {token}: {advice}");
        return Err(Error::new(ErrorKind::StoreRefused, message));
    }
    Ok(())
}

fn no_token(mark: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::StoreRefused, format!("the mark is not a token but {mark}; let only the guard write it"))
}
