//! `cargo xtask docs`: the documentation site, from the pages in `docs`, with the references of three languages and the
//! playground.
//!
//! Versions and hashes of its tools stand in `site`; the tools and the site stay below the target folder.

use crate::interop::{self, Environment};
use crate::run::{self, Result};
use crate::steps::Steps;
use crate::{component, playground, setup};
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: &str = "site";
const SETTINGS: &str = "site/mkdocs.yml";
const LINKS: &str = "site/links.py";
const TYPEDOC: &str = "node_modules/typedoc/bin/typedoc";

pub fn docs() -> Result {
    let mut steps = Steps::default();
    setup::install_languages(&mut steps)?;
    let page = build(&mut steps)?;
    print!("\n{}", steps.table());
    println!("\nOpen {}", page.display());
    Ok(())
}

/// Builds the site, follows its links, and answers its first page.
pub fn build(steps: &mut Steps) -> Result<PathBuf> {
    let folder = run::target()?.join("site");
    let (python, node) = install_tools(steps, &folder)?;

    let mut rustdoc = run::cargo_ci("doc");
    rustdoc.args(["-p", "leasehold", "--no-deps", "--features", "full,metrics"]).env("RUSTDOCFLAGS", "-D warnings");
    steps.run("reference for Rust", rustdoc)?;

    let typedoc = folder.join("typedoc");
    let mut reference = Command::new("node");
    reference.current_dir(&node).arg(TYPEDOC).arg("--options").arg(run::root().join(SOURCES).join("typedoc.json"));
    steps.run("reference for Node", {
        reference.arg("--out").arg(&typedoc);
        reference
    })?;

    let component = component::build(steps)?;
    let transpiled = component::transpile(steps, &component)?;
    let playground = playground::build(steps, &transpiled)?;

    let site = folder.join("html");
    let mut build = Command::new(&python);
    build
        .args(["-m", "mkdocs", "build", "--strict", "--clean", "--quiet", "--config-file"])
        .arg(run::root().join(SETTINGS));
    build.arg("--site-dir").arg(&site);
    build.env("LEASEHOLD_TYPEDOC", &typedoc).env("LEASEHOLD_PLAYGROUND", playground.join(playground::PAGE));
    build.env("LEASEHOLD_RUSTDOC", run::target()?.join("doc"));
    // The theme tells of its successor with each build.
    build.env("NO_MKDOCS_2_WARNING", "1");
    run::keep_bytecode(&mut build)?;
    steps.run("pages", build)?;

    let mut links = Command::new(&python);
    links.arg(run::root().join(LINKS)).arg(&site);
    steps.run("links", links)?;
    Ok(site.join("index.html"))
}

/// The interpreter with the tools for pages, and the folder with those for Node's reference.
fn install_tools(steps: &mut Steps, folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let sources = run::root().join(SOURCES);
    let pages = Environment {
        folder: folder.join("python"),
        requirements: vec![sources.join("requirements.txt")],
        imports: "mkdocs, material, mkdocstrings_handlers.python",
    };
    let node = folder.join("node");
    steps.timed("tools of the site", || {
        interop::install_npm(&sources, &node, &["typedoc", "typedoc-plugin-markdown", "typescript"])?;
        Ok((pages.install()?, node))
    })
}
