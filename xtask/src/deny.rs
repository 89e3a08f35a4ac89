//! Licences, duplicates and sources of all dependencies, by cargo-deny.

use crate::run::{self, Result};
use crate::setup;
use crate::steps::Steps;

/// Each is a dependency graph of its own.
const WORKSPACES: [(&str, &str); 3] = [
    ("dependencies", "Cargo.toml"),
    ("dependencies of the component", "bindings/component/Cargo.toml"),
    ("dependencies of its host in C", "bindings/component/hosts/c/Cargo.toml"),
];

/// Where cargo-deny is installed; elsewhere nothing is said of it but that.
pub fn deny(steps: &mut Steps) -> Result {
    if !setup::has_subcommand("deny") {
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
