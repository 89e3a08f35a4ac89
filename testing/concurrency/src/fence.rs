//! The client's guards for data in its process, which lock as the rest of it does.

use leasehold_core::Token;
use leasehold_core::fence::{Guard, Rejected};

use crate::error::{Error, ErrorKind};

#[allow(dead_code, reason = "only a part of it is at work here")]
#[path = "../../../client/src/fence/guards.rs"]
mod guards;

pub use guards::{Guards, Writing};

impl From<Rejected> for Error {
    fn from(rejected: Rejected) -> Self {
        Self::new(ErrorKind::StaleToken, rejected.to_string())
    }
}

fn number(token: u64) -> Result<Token, Error> {
    Token::new(token).ok_or_else(|| Error::config("no token"))
}
