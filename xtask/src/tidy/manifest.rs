//! Who may import whom, read from the `Cargo.toml` files.

use super::Finding;
use std::collections::HashMap;

/// What each folder's crate may import of this workspace. A crate that is not here has no place in the house yet.
const ARROWS: [(&str, &[&str]); 21] = [
    ("core", &[]),
    ("core/wire", &["leasehold-core"]),
    ("testing/sim", &["leasehold-core", "leasehold-wire"]),
    ("client", &["leasehold-core", "leasehold-wire"]),
    ("bindings/component", &["leasehold-protocol"]),
    ("bindings/component/locks", &["leasehold-core", "leasehold-wire"]),
    ("bindings/component/hosts/c", &[]),
    ("bindings/protocol", &["leasehold-core", "leasehold-wire"]),
    ("bindings/wasmtime", &[]),
    ("testing/fuzz", &["leasehold", "leasehold-core", "leasehold-protocol", "leasehold-wire"]),
    ("cli", &["leasehold"]),
    ("testing/servers", &[]),
    ("testing/concurrency", &["leasehold-core", "leasehold-scheduler", "leasehold-wire"]),
    ("testing/concurrency/scheduler", &["leasehold-core"]),
    ("python", &["leasehold", "leasehold-cli", "leasehold-protocol"]),
    ("node", &["leasehold", "leasehold-cli", "leasehold-protocol"]),
    ("examples/rust", &["leasehold"]),
    ("xtask", &[]),
    ("testing/bench", &["leasehold", "leasehold-core"]),
    ("xtask/componentize", &[]),
    ("testing/chaos", &["leasehold", "leasehold-bench", "leasehold-core", "leasehold-servers", "leasehold-wire"]),
];

/// What readers of a package find in it.
const SHIPPED: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Servers and faults, for the tests of whoever wants them.
const RIG: &str = "leasehold-servers";

/// A crate that imports nothing outside `dev-dependencies`.
struct Alone {
    folder: &'static str,
    /// But for these, which a feature may bring in.
    optional: &'static [&'static str],
    why: &'static str,
}

const ALONE: [Alone; 2] = [
    Alone {
        folder: "core",
        optional: &["arbitrary", "serde"],
        why: "the protocol decides without help; write it here, or do it in client and pass in the result",
    },
    Alone {
        folder: "xtask",
        optional: &[],
        why: "it gates the demo and every check; use std, or make it a program of testing/bench",
    },
];

#[derive(Debug, PartialEq, Eq)]
struct Dependency {
    line: usize,
    package: String,
    only_for_tests: bool,
    optional: bool,
}

pub fn check(path: &str, text: &str, renames: &HashMap<String, String>) -> Vec<Finding> {
    let folder = path.strip_suffix("Cargo.toml").unwrap_or(path).trim_end_matches('/');
    if folder.is_empty() {
        return Vec::new();
    }
    let finding = |line, rule, message| Finding { path: path.to_owned(), line, rule, message };
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == folder) else {
        let message = format!("`{folder}` is not in the map; say what it may import in xtask/src/tidy/manifest.rs");
        return vec![finding(1, "who-imports-whom", message)];
    };
    let mut findings = Vec::new();
    for dependency in dependencies(text, renames) {
        let package = dependency.package.as_str();
        let is_rig = package == RIG && dependency.only_for_tests;
        if package.starts_with("leasehold") && !allowed.contains(&package) && !is_rig {
            let instead = match *allowed {
                [] => "it imports no crate of this workspace".to_owned(),
                allowed => format!("it may import only {}", allowed.join(" and ")),
            };
            let message = format!("`{folder}` imports `{package}`; {instead}");
            findings.push(finding(dependency.line, "who-imports-whom", message));
        } else if let Some(alone) = ALONE.iter().find(|alone| alone.folder == folder && !dependency.only_for_tests) {
            let message = match (alone.optional.contains(&package), dependency.optional) {
                (true, true) => continue,
                (true, false) => format!("`{folder}` always depends on `{package}`; say `optional = true`"),
                (false, _) => format!("`{folder}` depends on `{package}`; {}", alone.why),
            };
            findings.push(finding(dependency.line, "no-dependencies", message));
        }
    }
    findings
}

/// What is published is an archive of the crate's own folder, so the texts of its licences have to be in there, and its page.
pub fn check_shipped(path: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut section = String::new();
    let mut is_published = false;
    for line in text.lines().map(str::trim) {
        if let Some(name) = table_name(line) {
            is_published |= name == "package";
            section = name;
        } else if section == "package" && key(line).as_deref() == Some("publish") {
            return Vec::new();
        }
    }
    let folder = path.strip_suffix("Cargo.toml").unwrap_or(path);
    let missing = SHIPPED.iter().map(|name| format!("{folder}{name}")).filter(|name| is_published && !exists(name));
    let finding = |name| {
        let message =
            format!("`{name}` is missing; write it, link to the licence of the root, or say `publish = false`");
        Finding { path: path.to_owned(), line: 1, rule: "licences-are-shipped", message }
    };
    missing.map(finding).collect()
}

/// Shared dependencies that go by another name: name in manifests to package. Renaming must not hide an arrow.
pub fn renames(workspace: &str) -> HashMap<String, String> {
    let mut section = String::new();
    let mut renames = HashMap::new();
    for line in workspace.lines().map(str::trim) {
        if let Some(name) = table_name(line) {
            section = name;
        } else if section == "workspace.dependencies"
            && let (Some(name), Some(package)) = (key(line), quoted_value(line, "package"))
        {
            renames.insert(name, package);
        }
    }
    renames
}

/// Reads as much of TOML as manifests use: one dependency per line, or one table per dependency.
fn dependencies(text: &str, renames: &HashMap<String, String>) -> Vec<Dependency> {
    let mut found: Vec<Dependency> = Vec::new();
    let mut section = String::new();
    let mut own_table = false;
    for (number, line) in text.lines().map(str::trim).enumerate() {
        let mut add = |name: String, table: &str| {
            let package = quoted_value(line, "package").or_else(|| renames.get(&name).cloned()).unwrap_or(name);
            let only_for_tests = table.ends_with("dev-dependencies");
            // A build script runs whatever the features.
            let optional = is_true(line, "optional") && table.rsplit('.').next() == Some("dependencies");
            found.push(Dependency { line: number + 1, package, only_for_tests, optional });
        };
        if let Some(name) = table_name(line) {
            own_table = false;
            if let Some((table, dependency)) = name.rsplit_once('.').filter(|(table, _)| is_dependencies(table)) {
                add(dependency.to_owned(), table);
                own_table = true;
            }
            section = name;
        } else if is_dependencies(&section) {
            if let Some(name) = key(line) {
                add(name, &section);
            }
        } else if own_table && let Some(last) = found.last_mut() {
            if let Some(package) = quoted_value(line, "package") {
                last.package = package;
            }
            last.optional |= is_true(line, "optional") && !section.contains("build-dependencies");
        }
    }
    found
}

fn table_name(line: &str) -> Option<String> {
    let name = line.strip_prefix('[')?.split(']').next()?;
    Some(name.trim_start_matches('[').replace(['"', '\''], ""))
}

/// `dependencies`, `dev-dependencies`, `build-dependencies`, and the same below `target.<condition>`.
fn is_dependencies(table: &str) -> bool {
    let last = table.rsplit('.').next().unwrap_or(table);
    matches!(last, "dependencies" | "dev-dependencies" | "build-dependencies") && !table.starts_with("workspace")
}

/// The first word of `name = ...` and `name.workspace = ...`. Continued values and comments have none.
fn key(line: &str) -> Option<String> {
    let name = line.split_once('=')?.0.split('.').next()?.trim().trim_matches(['"', '\'']);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (!name.is_empty() && name.chars().all(is_name)).then(|| name.to_owned())
}

/// `x` of `key = "x"`, at the start of the line or inside `{ ... }`.
fn quoted_value(line: &str, key: &str) -> Option<String> {
    let (before, rest) = line.split_once(key)?;
    let value = rest.trim_start().strip_prefix('=')?.trim_start().strip_prefix('"')?;
    (before.is_empty() || before.ends_with([' ', '{', ','])).then(|| value.split('"').next().map(str::to_owned))?
}

/// `key = true`, at the start of the line or inside `{ ... }`; not within a comment.
fn is_true(line: &str, key: &str) -> bool {
    let line = line.split('#').next().unwrap_or(line);
    line.split(['{', '}', ',']).any(|part| match part.split_once('=') {
        Some((name, value)) => name.trim() == key && value.trim() == "true",
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flagged(path: &str, text: &str) -> Vec<String> {
        check(path, text, &HashMap::new()).iter().map(|f| format!("{}:{}", f.rule, f.line)).collect()
    }

    #[test]
    fn published_crates_have_their_licences_and_page_beside_them() {
        let messages = |text: &str, there: &[&str]| {
            let found = check_shipped("core/Cargo.toml", text, |path| there.contains(&path));
            found.into_iter().map(|finding| finding.message).collect::<Vec<_>>()
        };
        let package = "[package]\nname = \"leasehold-core\"\n[lib]\npublish = false\n";
        let all = ["core/LICENSE-APACHE", "core/README.md", "core/LICENSE-MIT"];
        assert_eq!(messages(package, &[]).len(), 3);
        assert!(messages(package, &all[..2])[0].starts_with("`core/LICENSE-MIT` is missing"));
        assert!(messages(package, &all).is_empty());
        assert!(messages("[package]\npublish = false\n", &[]).is_empty());
        assert!(messages("[workspace]\nmembers = []\n", &[]).is_empty());
    }

    #[test]
    fn the_core_depends_on_nothing_but_in_tests() {
        let good = "[package]\nname = \"leasehold-core\"\n[dev-dependencies]\nproptest = \"1\"\n";
        assert_eq!(flagged("core/Cargo.toml", good), [""; 0]);
        assert_eq!(flagged("core/Cargo.toml", "[dependencies]\nserde = \"1\"\n"), ["no-dependencies:2"]);
        let others = "[build-dependencies]\ncc = \"1\"\n[target.'cfg(unix)'.dependencies]\nlibc.workspace = true\n";
        assert_eq!(flagged("core/Cargo.toml", others), ["no-dependencies:2", "no-dependencies:4"]);
    }

    #[test]
    fn features_of_the_core_may_bring_in_a_few_crates() {
        let good = "[dependencies]\nserde = { workspace = true, optional = true }\n[dependencies.arbitrary]\nversion = \"1\"\noptional = true\n";
        assert_eq!(flagged("core/Cargo.toml", good), [""; 0]);
        for bad in [
            "serde.workspace = true",
            "serde = { workspace = true, optional = false }",
            "serde = { workspace = true } # optional = true",
            "tokio = { version = \"1\", optional = true }",
            "serde = { package = \"tokio\", version = \"1\", optional = true }",
        ] {
            let text = format!("[dependencies]\n{bad}\n");
            assert_eq!(flagged("core/Cargo.toml", &text), ["no-dependencies:2"], "{bad}");
        }
        let build = "[build-dependencies]\nserde = { workspace = true, optional = true }\n";
        assert_eq!(flagged("core/Cargo.toml", build), ["no-dependencies:2"]);
        let table = "[build-dependencies.serde]\nworkspace = true\noptional = true\n";
        assert_eq!(flagged("core/Cargo.toml", table), ["no-dependencies:1"]);
        let xtask = "[dependencies]\nserde = { workspace = true, optional = true }\n";
        assert_eq!(flagged("xtask/Cargo.toml", xtask), ["no-dependencies:2"]);
    }

    #[test]
    fn the_core_imports_no_crate_of_the_workspace_even_in_tests() {
        let bad = "[dev-dependencies]\nleasehold = { path = \"../client\" }\n";
        assert_eq!(flagged("core/Cargo.toml", bad), ["who-imports-whom:2"]);
    }

    #[test]
    fn languages_and_the_command_line_know_only_the_client() {
        for folder in ["cli", "python", "node"] {
            let path = format!("{folder}/Cargo.toml");
            assert_eq!(flagged(&path, "[dependencies]\nleasehold.workspace = true\nclap = \"4\"\n"), [""; 0]);
            assert_eq!(flagged(&path, "[dependencies]\nleasehold-core.workspace = true\n"), ["who-imports-whom:2"]);
        }
    }

    #[test]
    fn the_core_has_its_own_followers() {
        for folder in ["client", "bindings/protocol", "testing/sim"] {
            let path = format!("{folder}/Cargo.toml");
            assert_eq!(flagged(&path, "[dependencies]\nleasehold-core.workspace = true\n"), [""; 0]);
            assert_eq!(flagged(&path, "[dependencies]\nleasehold-cli.workspace = true\n"), ["who-imports-whom:2"]);
        }
        let host = "[dependencies]\nwasmtime = \"48\"\nleasehold = \"0.1\"\nleasehold-core = \"0.1\"\n";
        assert_eq!(flagged("bindings/wasmtime/Cargo.toml", host), ["who-imports-whom:3", "who-imports-whom:4"]);
    }

    #[test]
    fn xtask_stays_alone_and_its_benchmarks_do_not() {
        let text = "[dependencies]\nleasehold.workspace = true\n";
        assert_eq!(flagged("xtask/Cargo.toml", text), ["who-imports-whom:2"]);
        assert_eq!(flagged("xtask/Cargo.toml", "[dependencies]\nserde = \"1\"\n"), ["no-dependencies:2"]);
        assert_eq!(flagged("testing/bench/Cargo.toml", text), [""; 0]);
    }

    #[test]
    fn a_dependency_with_a_table_of_its_own_is_seen() {
        let bad = "[dependencies.inner]\nversion = \"0.1\"\npackage = \"leasehold-core\"\n[dependencies.clap]\nversion = \"4\"\n";
        assert_eq!(flagged("cli/Cargo.toml", bad), ["who-imports-whom:1"]);
    }

    #[test]
    fn a_renamed_dependency_is_seen() {
        let bad = "[dependencies]\nprotocol = { version = \"0.1\", package = \"leasehold-core\" }\n";
        assert_eq!(flagged("cli/Cargo.toml", bad), ["who-imports-whom:2"]);

        let workspace =
            "[workspace.dependencies]\nprotocol = { package = \"leasehold-core\", path = \"core\" }\nlibc = \"0.2\"\n";
        let renames = renames(workspace);
        assert_eq!(renames.len(), 1);
        let findings = check("cli/Cargo.toml", "[dependencies]\nprotocol.workspace = true\n", &renames);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].message.contains("`leasehold-core`"), "{}", findings[0]);
    }

    #[test]
    fn comments_and_values_over_several_lines_are_no_dependencies() {
        let good =
            "[dev-dependencies]\n# leasehold = \"0.1\"\nproptest = { version = \"1\", features = [\n  \"std\",\n] }\n";
        assert_eq!(flagged("core/Cargo.toml", good), [""; 0]);
    }

    #[test]
    fn a_crate_that_is_not_in_the_map_must_be_placed() {
        assert_eq!(flagged("bindings/ruby/Cargo.toml", "[package]\n"), ["who-imports-whom:1"]);
        assert_eq!(flagged("Cargo.toml", "[workspace]\n"), [""; 0]);
    }
}
