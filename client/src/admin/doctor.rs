//! Findings of the checks of a store, with advice.

/// One thing that a check of a store has found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The node of a quorum that it is about; `None` for a single store, and for the quorum as a whole.
    pub node: Option<String>,
    /// A stable name of the check, such as `sqlite.filesystem`.
    pub check: &'static str,
    /// A description of what was found.
    pub what: String,
    /// Advice; empty where nothing needs doing.
    pub advice: String,
}

/// How bad a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Severity {
    /// As it should be.
    Good,
    /// Works, with a risk that operators should know of.
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

/// One question about a store, as the table in `checks` declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    name: &'static str,
    worst: Severity,
}

impl Check {
    pub(crate) const fn new(name: &'static str, worst: Severity) -> Self {
        Self { name, worst }
    }

    /// All is as it should be.
    pub(crate) fn passes(self, what: impl Into<String>) -> Finding {
        self.found(Severity::Good, what.into(), String::new())
    }

    /// Less than the worst that this check can find.
    pub(crate) fn warns(self, what: impl Into<String>, advice: impl Into<String>) -> Finding {
        self.found(Severity::Warning, what.into(), advice.into())
    }

    /// The worst that this check can find: a problem, or a warning where nothing worse is declared.
    pub(crate) fn fails(self, what: impl Into<String>, advice: impl Into<String>) -> Finding {
        self.found(self.worst, what.into(), advice.into())
    }

    const fn found(self, severity: Severity, what: String, advice: String) -> Finding {
        Finding { severity, node: None, check: self.name, what, advice }
    }

    #[cfg(test)]
    pub(crate) const fn name(self) -> &'static str {
        self.name
    }

    #[cfg(test)]
    pub(crate) const fn worst(self) -> Severity {
        self.worst
    }
}

impl Finding {
    pub(crate) fn of_node(self, name: &str) -> Self {
        Self { node: Some(name.to_owned()), ..self }
    }
}
