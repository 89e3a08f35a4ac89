//! The licences of what is compiled into programs: their texts have to come along with them.

use crate::run::{self, Failure, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The packages with code of others in them.
const PROGRAMS: [&str; 3] = ["leasehold-cli", "leasehold-node", "leasehold-python"];
/// The workspaces, and what of each has code of others in it.
const WORKSPACES: [(&str, &[&str]); 2] =
    [("Cargo.toml", &PROGRAMS), ("bindings/component/Cargo.toml", &["leasehold-component", "leasehold-locks"])];
/// How files with licences begin, in capitals.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

/// The texts, each once, with the packages that it came with; as this platform compiles them.
pub fn notices() -> Result<String> {
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (manifest, programs) in WORKSPACES {
        let mut metadata = run::plain_cargo("metadata");
        // Packages for other platforms need not have been downloaded.
        metadata.args([
            "--locked",
            "--format-version",
            "1",
            "--filter-platform",
            &host()?,
            "--manifest-path",
            manifest,
        ]);
        let folders = folders(&said(&mut metadata)?);
        let mut tree = run::plain_cargo("tree");
        tree.args(["--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}|{l}"]);
        tree.args(["--manifest-path", manifest]);
        programs.iter().for_each(|name| _ = tree.args(["-p", name]));
        for (package, license) in packages(&said(&mut tree)?) {
            let folder =
                folders.get(&package).ok_or_else(|| Failure::new(format!("nobody knows where {package} is")))?;
            let found = texts_in(folder)?;
            let found =
                if found.is_empty() { vec![format!("{license}; the package has no text of it.")] } else { found };
            for text in found {
                texts.entry(text).or_default().insert(package.clone());
            }
        }
    }
    Ok(written(&texts))
}

/// The platform that is compiled for.
fn host() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let told = said(std::process::Command::new(rustc).arg("-vV"))?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Failure::new("rustc names no platform of its own"))
}

fn written(texts: &BTreeMap<String, BTreeSet<String>>) -> String {
    let mut page = "Code of others that is compiled into leasehold, and its licences.\n".to_owned();
    for (text, packages) in texts {
        let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
        _ = write!(page, "\n{}\n{}\n\n{}\n", "-".repeat(80), packages.join("\n"), text.trim_end());
    }
    page
}

/// Names with versions, and licences, of what is not ours.
fn packages(tree: &str) -> BTreeSet<(String, String)> {
    let lines = tree.lines().filter_map(|line| {
        let (package, license) = line.split_once('|')?;
        let mut words = package.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        let license = license.trim_end_matches("(*)").trim();
        (!name.starts_with("leasehold")).then(|| (format!("{name} {version}"), license.to_owned()))
    });
    lines.collect()
}

/// Where packages are, by name and version. Cargo keeps each in a folder of that name.
fn folders(metadata: &str) -> BTreeMap<String, PathBuf> {
    let manifests = metadata.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let folders = manifests.filter_map(|manifest| {
        let folder = Path::new(manifest).parent()?;
        let (name, version) = versioned(folder.file_name()?.to_str()?)?;
        Some((format!("{name} {version}"), folder.to_owned()))
    });
    folders.collect()
}

/// Reads `serde_json-1.0.145`: a version begins with a digit behind a dash, and has dashes of its own at most later.
fn versioned(folder: &str) -> Option<(&str, &str)> {
    let mut dashes = folder.match_indices('-');
    dashes.find_map(|(at, _)| {
        let (name, version) = (&folder[..at], &folder[at + 1..]);
        let numbers = version.split('-').next().unwrap_or_default();
        (numbers.starts_with(|c: char| c.is_ascii_digit()) && numbers.contains('.')).then_some((name, version))
    })
}

fn texts_in(folder: &Path) -> Result<Vec<String>> {
    let fail = |path: &Path, error| Failure::new(format!("cannot read {}: {error}", path.display()));
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| fail(folder, error))?.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().to_uppercase();
        if path.is_file() && NAMES.iter().any(|start| name.starts_with(start)) {
            let bytes = fs::read(&path).map_err(|error| fail(&path, error))?;
            texts.push(String::from_utf8_lossy(&bytes).replace("\r\n", "\n").trim().to_owned());
        }
    }
    Ok(texts)
}

fn said(command: &mut std::process::Command) -> Result<String> {
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.map_err(|error| Failure::new(format!("{command:?}: {error}")))?;
    if !output.status.success() {
        return Err(Failure::new(format!("{command:?} ended with {}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_tells_its_package() {
        assert_eq!(versioned("serde_json-1.0.145"), Some(("serde_json", "1.0.145")));
        assert_eq!(versioned("wit-bindgen-0.63.0"), Some(("wit-bindgen", "0.63.0")));
        assert_eq!(versioned("linux-raw-sys-0.11.0-rc.1"), Some(("linux-raw-sys", "0.11.0-rc.1")));
        assert_eq!(versioned("md-5-0.11.0"), Some(("md-5", "0.11.0")));
        assert_eq!(versioned("base64-simd"), None);
        assert_eq!(versioned("leasehold"), None);
    }

    #[test]
    fn ours_are_not_those_of_others() {
        let tree = "leasehold-cli v0.1.0 (/somewhere)|MIT OR Apache-2.0\nring v0.17.14|Apache-2.0 AND ISC\n\
                    ring v0.17.14|Apache-2.0 AND ISC (*)\nuntrusted v0.9.0 (proc-macro)|ISC\n\n";
        let found = packages(tree);
        let names: Vec<_> = found.iter().map(|(package, license)| (package.as_str(), license.as_str())).collect();
        assert_eq!(names, [("ring 0.17.14", "Apache-2.0 AND ISC"), ("untrusted 0.9.0", "ISC")]);
    }

    #[test]
    fn what_is_compiled_in_brings_its_texts() {
        let page = notices().expect("cargo has all of it");
        for said in ["ring 0.", "rustls 0.", "wit-bindgen 0.63", "Permission is hereby granted", "Apache License"] {
            assert!(page.contains(said), "{said}");
        }
        assert!(!page.contains("\nleasehold"), "ours are not those of others");
    }
}
