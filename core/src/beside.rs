//! Records that lie beside a run: completions of their own, which every store keeps and every quorum agrees on.
//!
//! | resource | content |
//! |---|---|
//! | `name@key@attempts` | how often the work was begun: the result of its completion ([`Attempts`](crate::Attempts)) |
//! | `name@key@newest` | the newest request that replaces the runner: the token of its completion |

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use crate::config::ConfigError;
use crate::ids::Resource;

/// Ends the names of counts of attempts. No run has such a resource, since `@` is written another way in names and keys.
const ATTEMPTS: &str = "@attempts";
/// Ends the names of records of the newest request.
const NEWEST: &str = "@newest";

impl Resource {
    /// The resource whose completion has the attempts at the run of this one: `name@key@attempts`.
    ///
    /// # Errors
    /// More than [`Resource::MAX_BYTES`].
    pub fn of_attempts(&self) -> Result<Self, ConfigError> {
        self.beside(ATTEMPTS, "the name with its key, for attempts to be counted,")
    }

    /// The run whose attempts the completion of this resource has; `None` for every other resource.
    pub fn run_of_attempts(&self) -> Option<Self> {
        self.run_beside(ATTEMPTS)
    }

    /// The resource whose completion has the newest request for the run of this one, among those that replace its runner:
    /// `name@key@newest`.
    ///
    /// # Errors
    /// More than [`Resource::MAX_BYTES`].
    pub fn of_newest(&self) -> Result<Self, ConfigError> {
        self.beside(NEWEST, "the name with its key, for a runner to be replaced,")
    }

    /// Returns true for a record that lies beside a run, and is none itself.
    pub fn is_beside_a_run(&self) -> bool {
        [ATTEMPTS, NEWEST].into_iter().any(|suffix| self.run_beside(suffix).is_some())
    }

    fn beside(&self, suffix: &str, what: &'static str) -> Result<Self, ConfigError> {
        let (bytes, max) = (self.as_str().len(), Self::MAX_BYTES - suffix.len());
        if bytes > max {
            return Err(ConfigError::TooLong { what, bytes, max });
        }
        Self::new(&format!("{self}{suffix}"))
    }

    fn run_beside(&self, suffix: &str) -> Option<Self> {
        let run = Self::new(self.as_str().strip_suffix(suffix)?).ok()?;
        run.parts_of_run().map(|_| run)
    }
}

/// Checks that a request with these settings can replace the runner.
///
/// # Errors
/// Settings that say something else about a runner.
pub fn check_replace(counts_attempts: bool, watches_holder: bool, waits: bool) -> Result<(), String> {
    let other = match () {
        () if counts_attempts => "count attempts",
        () if watches_holder => "watch the holder",
        () if waits => return Ok(()),
        () => {
            return Err(
                "a request that replaces the runner waits for it to end: give a wait above zero, or none".to_owned()
            );
        }
    };
    Err(format!("a request that replaces the runner cannot also {other}: leave one of them out"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn records_beside_runs_are_told_from_runs() {
        let run = Resource::of_run("night@ly", Some("mon")).unwrap();
        let (attempts, newest) = (run.of_attempts().unwrap(), run.of_newest().unwrap());
        assert_eq!((attempts.as_str(), newest.as_str()), ("night%40ly@mon@attempts", "night%40ly@mon@newest"));
        assert_eq!((attempts.run_of_attempts(), attempts.parts_of_run()), (Some(run), None));
        assert_eq!((newest.run_of_attempts(), newest.parts_of_run()), (None, None));
        assert!(attempts.is_beside_a_run() && newest.is_beside_a_run());
        let whole = Resource::of_run("nightly", None).unwrap();
        assert_eq!(whole.of_attempts().unwrap().run_of_attempts(), Some(whole));
        for other in ["nightly@attempts", "@attempts", "nightly@newest", "nightly@mon", "a@b@c@newest", "lock"] {
            let other = Resource::new(other).unwrap();
            assert!(other.run_of_attempts().is_none() && !other.is_beside_a_run(), "{other}");
        }
    }

    #[test]
    fn names_leave_room_for_the_record_beside_them() {
        let long = Resource::of_run(&"n".repeat(1_015), None).unwrap();
        let error = long.of_attempts().unwrap_err().to_string();
        assert_eq!(
            error,
            "the name with its key, for attempts to be counted, has 1016 bytes; at most 1015 are allowed"
        );
        let longer = Resource::of_run(&"n".repeat(1_017), None).unwrap();
        let error = longer.of_newest().unwrap_err().to_string();
        assert_eq!(
            error,
            "the name with its key, for a runner to be replaced, has 1018 bytes; at most 1017 are allowed"
        );
        assert!(long.of_newest().is_ok());
    }

    #[test]
    fn what_contradicts_a_replacement_is_refused() {
        assert_eq!(check_replace(false, false, true), Ok(()));
        for (refused, why) in [
            (check_replace(true, false, true), "also count attempts"),
            (check_replace(false, true, true), "also watch the holder"),
            (check_replace(false, false, false), "give a wait above zero, or none"),
        ] {
            assert!(refused.as_ref().is_err_and(|message| message.contains(why)), "{refused:?}");
        }
    }
}
