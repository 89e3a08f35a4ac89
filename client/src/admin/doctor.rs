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

impl Finding {
    pub(crate) fn good(check: &'static str, what: impl Into<String>) -> Self {
        Self { severity: Severity::Good, node: None, check, what: what.into(), advice: String::new() }
    }

    pub(crate) fn warning(check: &'static str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, node: None, check, what: what.into(), advice: advice.into() }
    }

    pub(crate) fn problem(check: &'static str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { severity: Severity::Problem, node: None, check, what: what.into(), advice: advice.into() }
    }

    pub(crate) fn of_node(self, name: &str) -> Self {
        Self { node: Some(name.to_owned()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    const STORES: [&str; 11] = [
        "memory.",
        "sqlite.",
        "redis.",
        "http.",
        "dynamodb.",
        "etcd.",
        "objects.",
        "postgres.",
        "quorum.",
        "store.",
        "host.",
    ];

    /// Literals that look like the name of a check, in a file that makes findings.
    fn checks(folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                checks(&path, found);
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            if !source.contains("Finding::") {
                continue;
            }
            let literals = source.split('"').skip(1).step_by(2);
            found.extend(literals.filter(|text| is_check(text)).map(str::to_owned));
        }
    }

    fn is_check(text: &str) -> bool {
        let name = STORES.iter().find_map(|store| text.strip_prefix(store));
        name.is_some_and(|name| !name.is_empty() && name.bytes().all(|c| c.is_ascii_lowercase() || c == b'_'))
    }

    #[test]
    fn every_check_is_in_the_guide() {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = Vec::new();
        checks(&package.join("src"), &mut found);
        assert!(found.len() > 40, "{found:?}");
        let guide = ["doctor", "redis", "dynamodb", "etcd", "objects", "postgres"]
            .map(|page| std::fs::read_to_string(package.join(format!("../docs/{page}.md"))).unwrap())
            .concat();
        found.retain(|check| !guide.contains(&format!("`{check}`")));
        assert!(found.is_empty(), "docs/doctor.md and the pages of stores do not tell of {found:?}");
    }
}
