//! The imports that each crate may have, held against `cargo tree`.

use super::Finding;
use crate::run::{self, Result};
use std::path::Path;

/// The crates of this workspace that each crate may import. A crate that is not here has no place in the house yet.
const IMPORTS: [(&str, &[&str]); 24] = [
    ("leasehold-core", &[]),
    ("leasehold-wire", &["leasehold-core"]),
    ("leasehold-fence", &["leasehold-core", "leasehold-wire"]),
    ("leasehold", &["leasehold-core", "leasehold-fence", "leasehold-wire"]),
    ("leasehold-cli", &["leasehold"]),
    ("leasehold-component", &["leasehold-core", "leasehold-protocol", "leasehold-wire"]),
    ("leasehold-locks", &["leasehold-core", "leasehold-wire"]),
    ("leasehold-protocol", &["leasehold-core", "leasehold-wire"]),
    ("leasehold-wasmtime", &[]),
    ("leasehold-python", &["leasehold", "leasehold-cli", "leasehold-protocol"]),
    ("leasehold-node", &["leasehold", "leasehold-cli", "leasehold-protocol"]),
    ("leasehold-examples", &["leasehold"]),
    ("leasehold-sim", &["leasehold-core", "leasehold-wire"]),
    ("leasehold-servers", &[]),
    (
        "leasehold-concurrency",
        &["leasehold-concurrency-fence", "leasehold-core", "leasehold-scheduler", "leasehold-wire"],
    ),
    ("leasehold-concurrency-fence", &["leasehold-core", "leasehold-scheduler", "leasehold-wire"]),
    ("leasehold-scheduler", &["leasehold-core"]),
    ("leasehold-fuzz", &["leasehold", "leasehold-core", "leasehold-protocol", "leasehold-wire"]),
    ("leasehold-bench", &["leasehold", "leasehold-core", "leasehold-fence", "leasehold-servers", "leasehold-wire"]),
    ("leasehold-reports", &[]),
    (
        "leasehold-differential",
        &["leasehold", "leasehold-core", "leasehold-servers", "leasehold-sim", "leasehold-wire"],
    ),
    ("leasehold-chaos", &["leasehold", "leasehold-bench", "leasehold-core", "leasehold-servers", "leasehold-wire"]),
    ("leasehold-componentize", &[]),
    ("xtask", &[]),
];
/// Servers and faults, which any crate may have for its tests.
const SERVERS: &str = "leasehold-servers";
/// Crates that import nothing at all but in tests, and the crates that a feature may bring in.
const ALONE: [(&str, &[&str], &str); 2] = [
    (
        "leasehold-core",
        &["arbitrary", "serde"],
        "the protocol decides without help; write it here, or do it in client and pass in the result",
    ),
    ("xtask", &[], "it gates the demo and every check; use std, or make it a program of testing/bench"),
];
const WORKSPACES: [&str; 2] = ["Cargo.toml", "bindings/component/Cargo.toml"];
/// The files that readers of a published package find in it.
const SHIPPED: [&str; 3] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// A crate of a workspace, and the packages that it imports directly.
#[derive(Debug, PartialEq, Eq)]
struct Crate {
    name: String,
    folder: String,
    imports: Vec<String>,
}

/// Which imports are asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Default,
    AnyFeature,
    Tests,
}

/// Looks at all crates.
pub fn check(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut look = |manifest: &str, kind: Kind, flags: &[&str]| -> Result {
        let mut tree = run::cargo("tree");
        tree.args(["--quiet", "--target", "all", "--depth", "1", "--prefix", "depth", "--no-dedupe"]);
        tree.args(flags).arg("--manifest-path").arg(root.join(manifest));
        let told = run::told("cargo tree", tree)?;
        crates(&told, root).iter().for_each(|one| findings.extend(broken(one, kind)));
        Ok(())
    };
    for manifest in WORKSPACES {
        look(manifest, Kind::AnyFeature, &["--workspace", "-e", "normal,build", "--all-features"])?;
        look(manifest, Kind::Tests, &["--workspace", "-e", "dev", "--all-features"])?;
    }
    // Beside the others, these would have the features that others want of them.
    for (alone, _, _) in ALONE {
        look(WORKSPACES[0], Kind::Default, &["-p", alone, "-e", "normal,build"])?;
    }
    findings.dedup();
    Ok(findings)
}

/// Reads a tree of depth 1, where the depth stands before each name.
fn crates(tree: &str, root: &Path) -> Vec<Crate> {
    let mut found: Vec<Crate> = Vec::new();
    for line in tree.lines() {
        let name = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
        if let Some(rest) = line.strip_prefix('0') {
            let folder = rest.split_once('(').and_then(|(_, path)| path.split(')').next()).unwrap_or_default();
            let folder = Path::new(folder).strip_prefix(root).unwrap_or(Path::new(folder));
            let folder = folder.to_string_lossy().replace('\\', "/");
            found.push(Crate { name: name(rest), folder, imports: Vec::new() });
        } else if let (Some(rest), Some(last)) = (line.strip_prefix('1'), found.last_mut()) {
            last.imports.push(name(rest));
        }
    }
    found
}

fn broken(one: &Crate, kind: Kind) -> Vec<Finding> {
    let Crate { name, folder, imports } = one;
    let finding = |rule, message| Finding { path: format!("{folder}/Cargo.toml"), line: 1, rule, message };
    let Some((_, allowed)) = IMPORTS.iter().find(|(known, _)| known == name) else {
        let message = format!("`{name}` is not in the map; say what it may import in xtask/src/tidy/imports.rs");
        return vec![finding("who-imports-whom", message)];
    };
    let mut findings = Vec::new();
    for import in imports {
        // Itself, with the features that its tests want.
        let is_for_tests = kind == Kind::Tests && (import == SERVERS || import == name);
        if import.starts_with("leasehold") && !allowed.contains(&import.as_str()) && !is_for_tests {
            let instead = match *allowed {
                [] => "it imports no crate of this workspace".to_owned(),
                allowed => format!("it may import only {}", allowed.join(" and ")),
            };
            findings.push(finding("who-imports-whom", format!("`{name}` imports `{import}`; {instead}")));
        } else if let Some((_, optional, why)) =
            ALONE.iter().find(|(alone, _, _)| alone == name).filter(|_| kind != Kind::Tests)
            && (kind == Kind::Default || !optional.contains(&import.as_str()))
        {
            findings.push(finding("no-dependencies", format!("`{name}` depends on `{import}`; {why}")));
        }
    }
    findings
}

/// A published package is an archive of the crate's own folder, so that its licences and its page have to be in there.
pub fn check_shipped(path: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let is_published =
        text.lines().any(|line| line == "[package]") && !text.lines().any(|line| line == "publish = false");
    let folder = path.strip_suffix("Cargo.toml").unwrap_or(path);
    let missing = SHIPPED.iter().map(|name| format!("{folder}{name}")).filter(|name| is_published && !exists(name));
    let finding = |name| {
        let message =
            format!("`{name}` is missing; write it, link to the licence of the root, or say `publish = false`");
        Finding { path: path.to_owned(), line: 1, rule: "licences-are-shipped", message }
    };
    missing.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "0leasehold v0.1.0 (/house/client)\n1leasehold-core v0.1.0 (/house/core)\n1bytes v1.12.0\n\n0xtask v0.1.0 (/house/xtask)\n";

    fn flagged(name: &str, imports: &[&str], kind: Kind) -> Vec<&'static str> {
        let imports = imports.iter().map(|&import| import.to_owned()).collect();
        let one = Crate { name: name.into(), folder: "x".into(), imports };
        broken(&one, kind).iter().map(|finding| finding.rule).collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn a_tree_tells_each_crate_and_its_direct_imports() {
        let found = crates(TREE, Path::new("/house"));
        let seen: Vec<_> =
            found.iter().map(|one| (one.name.as_str(), one.folder.as_str(), one.imports.len())).collect();
        assert_eq!(seen, [("leasehold", "client", 2), ("xtask", "xtask", 0)]);
        assert_eq!(found[0].imports, ["leasehold-core", "bytes"]);
    }

    #[test]
    fn the_core_is_alone_and_features_may_bring_in_a_few_crates() {
        assert_eq!(flagged("leasehold-core", &["serde"], Kind::AnyFeature), NONE);
        assert_eq!(flagged("leasehold-core", &["serde"], Kind::Default), ["no-dependencies"]);
        assert_eq!(flagged("leasehold-core", &["tokio"], Kind::AnyFeature), ["no-dependencies"]);
        assert_eq!(flagged("leasehold-core", &["proptest"], Kind::Tests), NONE);
        assert_eq!(flagged("leasehold-core", &["leasehold"], Kind::Tests), ["who-imports-whom"]);
        assert_eq!(flagged("xtask", &["serde"], Kind::AnyFeature), ["no-dependencies"]);
    }

    #[test]
    fn languages_and_the_command_line_know_only_the_client() {
        for name in ["leasehold-cli", "leasehold-python", "leasehold-node"] {
            assert_eq!(flagged(name, &["leasehold", "clap"], Kind::Default), NONE);
            assert_eq!(flagged(name, &["leasehold-core"], Kind::Default), ["who-imports-whom"]);
        }
        assert_eq!(flagged("leasehold-wasmtime", &["wasmtime", "leasehold"], Kind::Default), ["who-imports-whom"]);
    }

    #[test]
    fn servers_are_for_tests() {
        assert_eq!(flagged("leasehold", &[SERVERS], Kind::Tests), NONE);
        assert_eq!(flagged("leasehold", &[SERVERS], Kind::Default), ["who-imports-whom"]);
    }

    #[test]
    fn a_crate_that_is_not_in_the_map_must_be_placed() {
        assert_eq!(flagged("leasehold-ruby", &[], Kind::Default), ["who-imports-whom"]);
    }

    #[test]
    fn published_crates_have_their_licences_and_page_beside_them() {
        let messages =
            |text: &str, there: &[&str]| check_shipped("core/Cargo.toml", text, |path| there.contains(&path)).len();
        let package = "[package]\nname = \"leasehold-core\"\n";
        let all = ["core/LICENSE-APACHE", "core/README.md", "core/LICENSE-MIT"];
        assert_eq!((messages(package, &[]), messages(package, &all[..2]), messages(package, &all)), (3, 1, 0));
        assert_eq!(messages("[package]\npublish = false\n", &[]), 0);
        assert_eq!(messages("[workspace]\nmembers = []\n", &[]), 0);
    }
}
