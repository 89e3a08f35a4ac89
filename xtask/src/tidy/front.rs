//! The front door: the README is short, and every package and the site say of themselves what its first sentence says.
//!
//! The first page of the site is made of the README, so there is no second text to agree with.

use super::Finding;
use crate::run::Result;

pub const README: &str = "README.md";
/// So that a visitor reads to the end.
const MOST_WORDS: usize = 800;
/// With the key before the sentence.
const DESCRIPTIONS: [(&str, &str); 4] = [
    ("client/Cargo.toml", "description = "),
    ("python/pyproject.toml", "description = "),
    ("node/package.json", "\"description\": "),
    ("site/mkdocs.yml", "site_description: "),
];
const MANIFEST: &str = "Cargo.toml";
const NPM: &str = "node/package.json";
const GO: &str = "go/go.mod";

pub fn check(read: impl Fn(&str) -> Result<String>) -> Result<Vec<Finding>> {
    let mut findings: Vec<Finding> = check_length(&read(README)?).into_iter().collect();
    let sentence = first_sentence(&read(README)?);
    for (path, key) in DESCRIPTIONS {
        findings.extend(check_description(path, &read(path)?, key, &sentence));
    }
    findings.extend(check_addresses(&read(MANIFEST)?, &read(NPM)?));
    findings.extend(check_module(&read(MANIFEST)?, &read(GO)?));
    Ok(findings)
}

fn check_length(readme: &str) -> Option<Finding> {
    let words = readme.split_whitespace().count();
    let message = format!("{words} words, and {MOST_WORDS} at most: move what can wait to a page, and link to it");
    (words > MOST_WORDS).then(|| Finding { path: README.to_owned(), line: 1, rule: "short-readme", message })
}

/// The first words in bold, in one line.
fn first_sentence(readme: &str) -> String {
    let bold = readme.split("**").nth(1).unwrap_or_default();
    bold.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn check_description(path: &str, text: &str, key: &str, sentence: &str) -> Option<Finding> {
    let found = text.lines().zip(1..).find_map(|(line, number)| Some((line.trim().strip_prefix(key)?, number)));
    let said = found.map_or("", |(said, _)| said.trim_end_matches(',').trim_matches('"'));
    let message = format!("the description is `{said}`, and the first sentence of {README} `{sentence}`: say the same");
    let line = found.map_or(1, |(_, number)| number);
    (said != sentence).then(|| Finding { path: path.to_owned(), line, rule: "one-description", message })
}

/// Python's package takes the addresses from Cargo's manifest; npm's has no such way.
fn check_addresses(manifest: &str, package: &str) -> Vec<Finding> {
    let of = |key: &str| {
        let value = manifest.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'));
        value.unwrap_or("an address that is not there")
    };
    let wanted = [format!("\"git+{}.git\"", of("repository")), format!("\"homepage\": \"{}\"", of("homepage"))];
    let missing = wanted.into_iter().filter(|text| !package.contains(text));
    let finding = |text| Finding {
        path: NPM.to_owned(),
        line: 1,
        rule: "one-address",
        message: format!("lacks `{text}`, as {MANIFEST} has it"),
    };
    missing.map(finding).collect()
}

/// Go's module is called by the address of the repository.
fn check_module(manifest: &str, module: &str) -> Option<Finding> {
    let repository = manifest.lines().find_map(|line| line.strip_prefix("repository = \"https://")?.strip_suffix('"'));
    let wanted = format!("module {}/go", repository.unwrap_or("an address that is not there"));
    let message = format!("lacks `{wanted}`, as {MANIFEST} has it; imports in go/ and docs/start-go.md say the same");
    let is_there = module.lines().any(|line| line == wanted);
    (!is_there).then(|| Finding { path: GO.to_owned(), line: 1, rule: "one-address", message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_readme_is_flagged() {
        assert_eq!(check_length(&"word ".repeat(MOST_WORDS)), None);
        assert!(check_length(&"word ".repeat(MOST_WORDS + 1)).is_some_and(|found| found.rule == "short-readme"));
    }

    #[test]
    fn another_description_is_flagged_with_its_line() {
        let sentence = first_sentence("# name\n\n**Locks for\neverybody**: and more **text**\n");
        let flagged =
            |text: &str| check_description("a.toml", text, "description = ", &sentence).map(|found| found.line);
        assert_eq!(flagged("[package]\ndescription = \"Locks for everybody\"\n"), None);
        assert_eq!(flagged("[package]\ndescription = \"Locks\"\n"), Some(2));
        assert_eq!(flagged("[package]\n"), Some(1));
        let json = "  \"description\": \"Locks for everybody\",\n";
        assert_eq!(check_description("a.json", json, "\"description\": ", &sentence), None);
    }

    #[test]
    fn an_address_that_differs_is_flagged() {
        let manifest = "repository = \"https://a/b\"\nhomepage = \"https://c/\"\n";
        let package = |home: &str| format!("\"url\": \"git+https://a/b.git\"\n\"homepage\": \"{home}\"\n");
        assert_eq!(check_addresses(manifest, &package("https://c/")), []);
        assert_eq!(check_addresses(manifest, &package("https://d/")).len(), 1);
        assert_eq!(check_addresses("", &package("https://c/")).len(), 2);
        assert_eq!(check_module(manifest, "module a/b/go\n\ngo 1.25\n"), None);
        assert!(check_module(manifest, "module a/c/go\n").is_some_and(|found| found.rule == "one-address"));
        assert!(check_module("", "module a/b/go\n").is_some());
    }
}
