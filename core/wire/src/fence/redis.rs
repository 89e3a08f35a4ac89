//! The guard in Redis: scripts that compare and write in one step.
//!
//! The mark is a key of its own in the slot of the data, decimal digits without an expiry. The scripts are for Redis 5 and
//! newer; `KEYS[1]` is the mark and `ARGV[1]` the token in decimal digits. Each answers one integer:
//!
//! | integer | |
//! |---|---|
//! | the token | let through |
//! | a higher one | a later holder has claimed with it |
//! | [`UNCLAIMED`] | nobody has claimed |
//! | [`NO_MARK`] | the key of the mark holds something else |
//! | [`NO_TOKEN`] | the argument is no token |
//!
//! If it was not let through, nothing was written.

/// Nobody has claimed the item.
pub const UNCLAIMED: i64 = -1;

/// The key of the mark holds something else.
pub const NO_MARK: i64 = -2;

/// The argument is no token.
pub const NO_TOKEN: i64 = -3;

/// The check as a Lua function, to put in front of a script of one's own: `leasehold_check(mark, token)` answers whether
/// the token was let through, and what the script has to return at once if not.
pub const FUNCTION: &str = include_str!("redis/check.lua");

/// Makes the token the only one that is accepted from now on, apart from higher ones.
pub const CLAIM: &str = concat!(include_str!("redis/check.lua"), include_str!("redis/claim.lua"));

/// Checks a write without performing one; protects nothing by itself.
pub const CHECK: &str = concat!(include_str!("redis/check.lua"), include_str!("redis/check_only.lua"));

/// Checks, and sets `KEYS[2]` to `ARGV[2]`.
pub const CHECK_AND_SET: &str = concat!(include_str!("redis/check.lua"), include_str!("redis/check_and_set.lua"));

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn the_scripts_answer_with_these_integers() {
        for (answer, places) in [(UNCLAIMED, 1), (NO_MARK, 2), (NO_TOKEN, 1)] {
            assert_eq!(FUNCTION.matches(&format!("return false, {answer} ")).count(), places, "{answer}");
        }
    }
}
