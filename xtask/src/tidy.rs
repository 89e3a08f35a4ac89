//! `cargo xtask tidy`: the house rules of docs/architecture.md, enforced.
//!
//! Each rule looks at text alone, so that its tests are small snippets. There is no way to exempt a line: a rule that
//! needs exceptions is changed here, where everyone sees it.

mod ci;
mod ffi;
mod figures;
mod front;
mod imports;
mod index;
mod map;
mod numbers;
mod quoted;
mod rights;
mod rules;
mod samples;
mod threats;
mod troubles;
mod words;

use crate::named::Named;
use crate::run::{self, Failure, Result};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A broken rule, where it is broken, and what to do instead.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    path: String,
    line: usize,
    rule: &'static str,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.message)
    }
}

pub fn tidy() -> Result {
    let root = run::root();
    let mut paths = Vec::new();
    walk(&root, &mut paths)?;
    paths.push(root.join(ci::PATH));

    let (mut findings, mut words) = (Vec::new(), words::Count::default());
    let mut sent = rights::Sent::default();
    // Rules compare with `/`, on every system.
    let name = |path: &PathBuf| path.strip_prefix(&root).unwrap_or(path).to_string_lossy().replace('\\', "/");
    let files: Vec<String> = paths.iter().map(name).collect();
    let known = figures::Known::new(&read(&root.join(figures::FIGURES))?, &read(&root.join(figures::DEFAULTS))?);
    for (name, path) in files.iter().zip(&paths).filter(|(name, _)| is_read(name)) {
        let text = read(path)?;
        words.add(name, &text);
        if name.ends_with(".rs") {
            findings.extend(rules::check(name, &text));
            sent.add(name, &text);
            if name.starts_with(ffi::FOLDER) {
                findings.extend(ffi::check(name, &text));
            }
        } else if name.ends_with("Cargo.toml") {
            findings.extend(imports::check_shipped(name, &text, |path| root.join(path).exists()));
        } else if name.ends_with(".md") || name == index::FOR_MODELS {
            findings.extend(index::check_links(name, &text, |path| root.join(path).exists()));
            findings.extend(index::check_headings(name, &text, |path| read(&root.join(path)).ok()));
            if figures::is_page(name) {
                findings.extend(figures::check(name, &text, &known, |path| read(&root.join(path)).ok()));
            }
            if samples::is_page(name) {
                findings.extend(samples::check(name, &text, |path| read(&root.join(path)).ok()));
            }
        } else if name == ci::PATH {
            findings.extend(ci::check(&text, is_executable(path)));
        }
    }
    findings.extend(words.findings());
    findings.extend(sent.check(|path| read(&root.join(path)).unwrap_or_default()));
    findings.extend(imports::check(&root)?);
    let core = |name: &str| read(&root.join("core").join(name));
    findings.extend(rules::check_core_root(&core("src/lib.rs")?, &core("Cargo.toml")?));

    findings.extend(front::check(|path| read(&root.join(path)))?);
    findings.extend(map::check(&read(&root.join(map::PATH))?, |path| root.join(path).exists()));
    for page in quoted::PATHS {
        findings.extend(quoted::check(page, &read(&root.join(page))?, |path| read(&root.join(path)).ok()));
    }
    for folder in index::PAGES {
        let index = format!("{folder}/README.md");
        findings.extend(index::check_pages(&index, &read(&root.join(&index))?, &below(folder, &files)));
    }
    let index = format!("{}/README.md", index::EXAMPLES);
    let examples = below(index::EXAMPLES, &files);
    findings.extend(index::check_examples(&index, &read(&root.join(&index))?, &examples));
    findings.extend(troubles::check(&read(&root.join(troubles::PATH))?, |path| read(&root.join(path)).ok()));
    findings.extend(threats::check(&read(&root.join(threats::PATH))?, &root));

    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("{} files, every house rule holds", files.iter().filter(|name| is_read(name)).count());
            Ok(())
        }
        n => Err(Failure::new(format!(
            "step `tidy` failed (broken house rules: {n}, listed above)\n  to repeat it: cargo xtask tidy"
        ))),
    }
}

/// The tests that the threat model names.
pub fn threats() -> Result<Vec<Named>> {
    let root = run::root();
    Ok(threats::tests(&read(&root.join(threats::PATH))?, &root))
}

/// Tells if rules look into a file of this name.
fn is_read(name: &str) -> bool {
    const ENDINGS: [&str; 10] = [".rs", ".md", ".py", ".mjs", ".cjs", ".ts", ".mts", ".go", ".wit", "Cargo.toml"];
    let is_ours = !name.starts_with(crate::go::GENERATED);
    name == ci::PATH || name == index::FOR_MODELS || is_ours && ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// The files below a folder, relative to it.
fn below(folder: &str, files: &[String]) -> Vec<String> {
    let relative = |file: &String| file.strip_prefix(folder)?.strip_prefix('/').map(str::to_owned);
    files.iter().filter_map(relative).collect()
}

/// Every file below `folder`, in a stable order; not what is hidden, built or downloaded.
fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result {
    let unreadable = |error| Failure::new(format!("cannot list {}: {error}", folder.display()));
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| entry.map(|e| e.path())).collect())
        .map_err(unreadable)?;
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" && name != "node_modules" {
                walk(&path, found)?;
            }
        } else {
            found.push(path);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    true
}
