//! Licences, duplicates and sources of all dependencies, by cargo-deny.

use crate::run::{self, Result, Steps};

/// Each is a dependency graph of its own.
const WORKSPACES: [(&str, &str); 3] = [
    ("dependencies", "Cargo.toml"),
    ("dependencies of the component", "bindings/component/Cargo.toml"),
    ("dependencies of its host in C", "bindings/component/hosts/c/Cargo.toml"),
];

/// Where cargo-deny is installed; elsewhere nothing is said of it but that.
pub fn deny(steps: &mut Steps) -> Result {
    if !is_installed() {
        println!("\ncargo-deny is not installed: licences and sources of dependencies were not checked");
        return Ok(());
    }
    for (name, manifest) in WORKSPACES {
        let mut deny = run::plain_cargo("deny");
        deny.args(["--locked", "--manifest-path", manifest, "--config"]).arg(run::root().join("deny.toml"));
        // What is skipped in one workspace need not be in another one.
        deny.args([
            "check",
            "--allow",
            "unmatched-skip",
            "--allow",
            "unnecessary-skip",
            "--allow",
            "license-exception-not-encountered",
        ]);
        deny.args(["bans", "licenses", "sources"]);
        steps.run(name, deny)?;
    }
    Ok(())
}

/// Takes minutes, once.
pub fn install(steps: &mut Steps) -> Result {
    if is_installed() {
        return Ok(());
    }
    let mut install = run::plain_cargo("install");
    install.args(["--locked", "--quiet", "cargo-deny"]);
    steps.run("install cargo-deny", install)
}

fn is_installed() -> bool {
    let mut version = run::plain_cargo("deny");
    version.arg("--version");
    run::succeeds(version)
}
