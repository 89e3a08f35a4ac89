//! Generated from `wit/leasehold.wit` by `cargo xtask component --bless`. Do not edit.

use super::{DynamodbGuard, RedisGuard, Rejected};
use crate::face::*;

/// What there is beside values.
pub(crate) trait Guest {
    /// See [`GuestGuard`].
    #[allow(dead_code)]
    type Guard: GuestGuard;
    /// The texts for DynamoDB.
    fn dynamodb() -> DynamodbGuard;
    /// The texts for Redis.
    fn redis() -> RedisGuard;
}

/// Calls a function of the interface by its name.
///
/// # Errors
/// Whatever the function refuses, and arguments that it does not take.
pub fn call<S: Source, W: Sink>(name: &str, args: &[S], to: &W) -> Result<W::Value, Problem> {
    match name {
        "dynamodb" => {
            let [] = arguments(args)?;
            let made = <crate::Component as Guest>::dynamodb();
            Ok(made.write(to))
        }
        "redis" => {
            let [] = arguments(args)?;
            let made = <crate::Component as Guest>::redis();
            Ok(made.write(to))
        }
        _ => Err(Problem::no_call(name)),
    }
}

/// Its calls.
pub(crate) trait GuestGuard: Sized {
    /// A mark as read from storage; absent if the item was never claimed.
    fn create(high_water: Option<u64>) -> Result<Guard, Rejected>;
    /// The highest token seen, to be written back to storage.
    fn high_water(&self) -> Option<u64>;
    /// From now on only a token and higher ones are accepted. Call it before reading the item.
    fn claim(&self, token: u64) -> Result<(), Rejected>;
    /// Checks that a write with a token is allowed. Equal tokens are accepted: a holder writes more than once.
    fn check(&self, token: u64) -> Result<(), Rejected>;
    /// As `check`, and also rejects delayed writes of the same lease: `write` starts at 1 and grows with each one.
    fn check_in_order(&self, token: u64, write: u64) -> Result<(), Rejected>;
}

/// The high-water mark of one guarded item. One mark belongs to one lock resource: tokens of different resources
/// are not comparable.
pub struct Guard(pub(crate) crate::fence::Guard);

impl Guard {
    pub(crate) fn new(made: crate::fence::Guard) -> Self {
        Self(made)
    }

    /// Makes one by the name of a static function.
    ///
    /// # Errors
    /// Whatever the function refuses, and arguments that it does not take.
    pub fn make<S: Source>(name: &str, args: &[S]) -> Result<Self, Problem> {
        match name {
            "create" => {
                let [high_water] = arguments(args)?;
                let high_water = argument(high_water, "high-water")?;
                Ok(<crate::fence::Guard as GuestGuard>::create(high_water)?)
            }
            _ => Err(Problem::no_call(name)),
        }
    }

    /// Calls a method by its name.
    ///
    /// # Errors
    /// Whatever the method refuses, and arguments that it does not take.
    pub fn call<S: Source, W: Sink>(&self, name: &str, args: &[S], to: &W) -> Result<W::Value, Problem> {
        match name {
            "high-water" => {
                let [] = arguments(args)?;
                let made = self.0.high_water();
                Ok(made.write(to))
            }
            "claim" => {
                let [token] = arguments(args)?;
                let token = argument(token, "token")?;
                self.0.claim(token)?;
                Ok(to.nothing())
            }
            "check" => {
                let [token] = arguments(args)?;
                let token = argument(token, "token")?;
                self.0.check(token)?;
                Ok(to.nothing())
            }
            "check-in-order" => {
                let [token, write] = arguments(args)?;
                let token = argument(token, "token")?;
                let write = argument(write, "write")?;
                self.0.check_in_order(token, write)?;
                Ok(to.nothing())
            }
            _ => Err(Problem::no_call(name)),
        }
    }
}
