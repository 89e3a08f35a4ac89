//! What is wrong with a store, and what to do about it.

/// One thing that a check of a store has found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// A stable name of the check, such as `sqlite.filesystem`.
    pub check: &'static str,
    /// What was found.
    pub what: String,
    /// What to do about it; empty where nothing needs doing.
    pub advice: String,
}

/// How bad a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Good,
    /// Works, with a risk that somebody should know of.
    Warning,
    /// Locks cannot be relied on, or do not work at all.
    Problem,
}

impl Severity {
    /// `good`, `warning` or `problem`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

impl Finding {
    pub(crate) fn good(check: &'static str, what: impl Into<String>) -> Self {
        Self { severity: Severity::Good, check, what: what.into(), advice: String::new() }
    }

    pub(crate) fn warning(check: &'static str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, check, what: what.into(), advice: advice.into() }
    }

    pub(crate) fn problem(check: &'static str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { severity: Severity::Problem, check, what: what.into(), advice: advice.into() }
    }
}
