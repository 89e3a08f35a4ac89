//! The resource `guard`.

use core::cell::RefCell;

use leasehold_core::Token;
use leasehold_core::fence;
use leasehold_wire::fence::{dynamodb, redis};

use crate::Component;
use crate::wit::fence as wit;

impl wit::Guest for Component {
    type Guard = Guard;

    fn dynamodb() -> wit::DynamodbGuard {
        wit::DynamodbGuard {
            name: dynamodb::NAME.into(),
            value: dynamodb::VALUE.into(),
            claim: dynamodb::CLAIM.into(),
            check: dynamodb::CHECK.into(),
            assign: dynamodb::SET.into(),
        }
    }

    fn redis() -> wit::RedisGuard {
        wit::RedisGuard {
            claim: redis::CLAIM.into(),
            check: redis::CHECK.into(),
            check_and_set: redis::CHECK_AND_SET.into(),
            function: redis::FUNCTION.into(),
        }
    }
}

pub(crate) struct Guard(RefCell<fence::Guard>);

impl wit::GuestGuard for Guard {
    fn create(high_water: Option<u64>) -> Result<wit::Guard, wit::Rejected> {
        let guard = fence::Guard::with_high_water(high_water.map(token).transpose()?);
        Ok(wit::Guard::new(Self(RefCell::new(guard))))
    }

    fn high_water(&self) -> Option<u64> {
        self.0.borrow().high_water().map(Token::get)
    }

    fn claim(&self, presented: u64) -> Result<(), wit::Rejected> {
        let token = token(presented)?;
        self.0.borrow_mut().claim(token).map_err(rejected)
    }

    fn check(&self, presented: u64) -> Result<(), wit::Rejected> {
        let token = token(presented)?;
        self.0.borrow_mut().check(token).map_err(rejected)
    }

    fn check_in_order(&self, presented: u64, write: u64) -> Result<(), wit::Rejected> {
        let token = token(presented)?;
        self.0.borrow_mut().check_in_order(token, write).map_err(rejected)
    }
}

fn token(number: u64) -> Result<Token, wit::Rejected> {
    let invalid = || wit::Rejected::InvalidToken(wit::InvalidToken { token: number, max: Token::MAX.get() });
    Token::new(number).ok_or_else(invalid)
}

fn rejected(rejected: fence::Rejected) -> wit::Rejected {
    match rejected {
        fence::Rejected::Stale { token, high_water } => {
            wit::Rejected::Stale(wit::Stale { token: token.get(), high_water: high_water.get() })
        }
        fence::Rejected::OutOfOrder { write, last } => wit::Rejected::OutOfOrder(wit::OutOfOrder { write, last }),
        fence::Rejected::Unclaimed => wit::Rejected::Unclaimed,
    }
}
