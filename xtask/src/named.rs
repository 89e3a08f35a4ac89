//! Tests and places in the code that documents name, as `path::name`: whether they are there, and whether they ran.
//!
//! Of Node's tests the name is the title, as it stands in the source. In Rust and Python it is that of the function; for
//! code that is no test it may be any item.

use std::path::Path;

/// Such as `core/tests/behaviour/takeover.rs::observations_are_bounded`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    pub path: String,
    pub name: String,
}

/// Words before the name of an item.
const ITEMS: [&str; 13] = [
    "fn",
    "struct",
    "enum",
    "const",
    "static",
    "trait",
    "mod",
    "type",
    "macro_rules!",
    "def",
    "class",
    "function",
    "let",
];

impl Named {
    /// `None` where `text` is nothing of the kind.
    pub fn parse(text: &str) -> Option<Self> {
        let (path, name) = text.trim().split_once("::")?;
        let is_path = path.contains(['/', '.']) && !path.contains(char::is_whitespace);
        (is_path && !name.is_empty()).then(|| Self { path: path.to_owned(), name: name.to_owned() })
    }

    /// # Errors
    /// There is no such file, or no such test in it.
    pub fn expect_test(&self, root: &Path) -> Result<(), String> {
        let text = self.read(root)?;
        if is_test(&self.path, &text, &self.name) {
            Ok(())
        } else {
            Err(format!("{} has no test `{}`", self.path, self.name))
        }
    }

    /// # Errors
    /// There is no such file, or nothing of that name in it.
    pub fn expect_item(&self, root: &Path) -> Result<(), String> {
        let text = self.read(root)?;
        if is_test(&self.path, &text, &self.name) || is_item(&text, &self.name) {
            Ok(())
        } else {
            Err(format!("{} has no `{}`", self.path, self.name))
        }
    }

    fn read(&self, root: &Path) -> Result<String, String> {
        std::fs::read_to_string(root.join(&self.path)).map_err(|error| format!("{}: {error}", self.path))
    }

    /// Tells if a report is about this test. Rust's tests are told by their last name alone, whatever module and program
    /// they are in; Node's titles may have been completed.
    pub fn is_told_by(&self, reported: &str) -> bool {
        if self.path.ends_with(".mjs") {
            return fits(&self.name, reported);
        }
        if self.path.ends_with(".py") {
            return reported.split('[').next() == Some(self.name.as_str());
        }
        reported.rsplit("::").next() == Some(self.name.as_str())
    }
}

fn is_test(path: &str, text: &str, name: &str) -> bool {
    match path.rsplit('.').next() {
        Some("rs") => is_rust_test(text, name),
        Some("py") => name.starts_with("test_") && text.contains(&format!("def {name}(")),
        Some("mjs") => ['"', '`'].iter().any(|quote| text.contains(&format!("({quote}{name}{quote}, "))),
        Some(_) | None => false,
    }
}

/// A function with an attribute that ends in `test]` above it, other attributes and comments between them or not; or a
/// behaviour, which gets one from a macro.
fn is_rust_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.iter().enumerate().any(|(number, line)| {
        if !line
            .split_once("fn ")
            .is_some_and(|(_, rest)| rest.strip_prefix(name).is_some_and(|r| r.starts_with(['(', '<'])))
        {
            return false;
        }
        let above = lines[..number].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        let is_behaviour = line.starts_with("pub(crate) fn ") && line.contains("(store: &Store)");
        is_behaviour || above.into_iter().any(|line| line.starts_with("#[") && line.ends_with("test]"))
    })
}

fn is_item(text: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        if before.ends_with(is_word) || after.starts_with(is_word) {
            return false;
        }
        let word = before.split_whitespace().next_back().unwrap_or_default();
        // C has no word for it, and methods of JavaScript have none.
        let is_function =
            after.starts_with('(') && before.rsplit('\n').next().is_some_and(|line| !line.contains(['(', '=']));
        let is_constant = before.ends_with('\n') && after.starts_with(" = ");
        before.ends_with(' ') && ITEMS.contains(&word) || is_function || is_constant
    })
}

/// Compares a title of a source with that of a report, in which `${...}` has become something, and something may follow.
fn fits(title: &str, reported: &str) -> bool {
    let mut rest = reported;
    for (number, piece) in title.split("${").enumerate() {
        let piece = if number == 0 { piece } else { piece.split_once('}').map_or("", |(_, piece)| piece) };
        match rest.find(piece) {
            Some(at) if number > 0 || at == 0 => rest = &rest[at + piece.len()..],
            Some(_) | None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_follows_a_path() {
        let named = Named::parse("node/test/a.test.mjs::who: waits::gets").expect("it is one");
        assert_eq!((named.path.as_str(), named.name.as_str()), ("node/test/a.test.mjs", "who: waits::gets"));
        for other in ["core/src/time.rs", "leasehold::host", "a b.rs::c", "a.rs::"] {
            assert_eq!(Named::parse(other), None, "{other}");
        }
    }

    #[test]
    fn tests_are_told_from_other_functions() {
        let text = "#[test]\n#[cfg(unix)]\n// Why.\nfn one() {}\n\nfn two() {}\n    #[tokio::test]\n    async fn three() {}\n\
                    pub(crate) fn four(store: &Store) {}\n#[test]\nfn onerous() {}\n";
        let found = ["one", "two", "three", "four", "five", "oner"].map(|name| is_test("a/b.rs", text, name));
        assert_eq!(found, [true, false, true, true, false, false]);
        assert!(is_test("a.py", "    async def test_it(x):\n", "test_it"));
        assert!(!is_test("a.py", "def helper(x):\n", "helper"));
        assert!(is_test("a.mjs", "testEach(\"a b\", async () => {});", "a b"));
        assert!(is_test("a.mjs", "test(`${n}: b`, async () => {});", "${n}: b"));
        assert!(!is_test("a.mjs", "// (\"a b\") test", "a b"));
    }

    #[test]
    fn items_are_told_from_uses() {
        let text = "const MOST: usize = 1;\nLEAST = 2\nfn of(most: usize) { other(MOST) }\nint strict_c(void)\n  async release() {\n";
        let found =
            ["MOST", "LEAST", "of", "strict_c", "release", "other", "OST", "most"].map(|name| is_item(text, name));
        assert_eq!(found, [true, true, true, true, true, false, false, false]);
    }

    #[test]
    fn reports_are_matched_with_what_is_written() {
        let named = |path: &str, name: &str| Named { path: path.into(), name: name.into() };
        assert!(named("a.rs", "held").is_told_by("redis::held") && named("a.rs", "held").is_told_by("held"));
        assert!(!named("a.rs", "held").is_told_by("redis::not_held"));
        assert!(named("a.py", "test_a").is_told_by("test_a[redis]") && !named("a.py", "test_a").is_told_by("test_ab"));
        assert!(named("a.mjs", "a lock").is_told_by("a lock: redis"));
        assert!(named("a.mjs", "lost: ${store}, ${n}").is_told_by("lost: sqlite, 3"));
        assert!(!named("a.mjs", "lost: ${store}").is_told_by("is lost: sqlite"));
    }
}
