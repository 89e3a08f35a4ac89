//! `cargo xtask node`: builds the Node package, and runs its tests. `cargo xtask node pack`: the packages, to install elsewhere.
//!
//! Everything stays below the target folder: the tools, the package as npm would install it, and the tests beside it.

use crate::interop::{self, Peers};
use crate::release::Native;
use crate::run::{self, Failure, Result};
use crate::steps::Steps;
use crate::{component, python, servers, setup};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "node";
/// The parts of the package, as its `package.json` says.
const SHIPPED: [&str; 5] = ["package.json", "README.md", "edge", "lib", "bin"];
pub const LICENSES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
/// Modules that users import, with their types.
const MODULES: [&str; 11] = [
    "index",
    "cas",
    "fence",
    "protocol",
    "testing",
    "node-cron",
    "nestjs",
    "express",
    "fastify",
    "prometheus",
    "compat/redlock",
];
const EXTENSIONS: [&str; 4] = ["cjs", "mjs", "d.ts", "d.mts"];
const TESTS: [&str; 3] = ["test", "types", "bench"];
/// The guide whose code the tests run.
const RECIPES: &str = "docs/recipes-node.md";
const EXAMPLES: &str = "examples/node";
/// Native code, in the package of the platform.
const ADDON: &str = "leasehold.node";
/// Adds the component to `leasehold/edge`, and what this shares with the rest of the package.
const EDGE: &str = "tools/edge.mjs";

pub fn node(args: &[String]) -> Result {
    let mut steps = Steps::default();
    match args {
        [] => test(&mut steps)?,
        [only] if only == "pack" => pack(&mut steps)?,
        [..] => return Err(Failure::new(format!("`node` takes nothing, or `pack`, but got `{}`", args.join(" ")))),
    }
    println!("{}", steps.table());
    Ok(())
}

fn test(steps: &mut Steps) -> Result {
    setup::install(steps)?;
    let component = component::build(steps)?;
    let transpiled = component::transpile(steps, &component)?;
    let peers = interop::install(steps)?;
    run_all(steps, &transpiled, &peers, None)?;
    println!("\nThe Node package passed.");
    Ok(())
}

/// The packages for this machine, as users of a checkout install them.
fn pack(steps: &mut Steps) -> Result {
    setup::install_compilers(steps)?;
    // By the profile of `cargo install` and `pip install`, which have compiled the same crates.
    let (built, transpiled) = build(steps, "release")?;
    let target = run::target()?.join(PACKAGE);
    steps.timed("node, package", || assemble_both(&built, &transpiled, &target))?;
    let packed = target.join("packed");
    clear(&packed)?;
    fs::create_dir_all(&packed).map_err(|error| fail("make", &packed, &error))?;
    npm_pack(&target, &packed)?;
    println!(
        "\nThe packages are built. In the folder of a program of yours:\n  npm install {}/*.tgz",
        packed.display()
    );
    Ok(())
}

/// The addon, in the folder of a profile, and the component as an ES module.
fn build(steps: &mut Steps, profile: &str) -> Result<(PathBuf, PathBuf)> {
    let mut build = run::cargo("build");
    build.args(["--profile", profile, "-p", "leasehold-node"]);
    steps.run("node, addon", build)?;
    let component = component::build(steps)?;
    Ok((run::target()?.join(profile), component::transpile(steps, &component)?))
}

/// All that the package has to pass, with the component as an ES module.
pub fn run_all(steps: &mut Steps, transpiled: &Path, peers: &Peers, dynamodb: Option<&servers::Dynamodb>) -> Result {
    let workerd = install_workerd(steps)?;
    let others = install_others(steps)?;
    let mut build = run::cargo_ci("build");
    build.args(["-p", "leasehold-node"]);
    steps.build("node, addon", build)?;
    let target = install(steps, &run::built()?, transpiled)?;

    for project in ["types", "types/edge", "types/nestjs", "types/fastify", "types/lib", "types/edge-lib"] {
        let mut types = Command::new("node");
        types.current_dir(&target).args(["node_modules/typescript/bin/tsc", "--project", project]);
        steps.run(&format!("node, {project}"), types)?;
    }
    let mut tests = Command::new("node");
    peers.tell(&mut tests);
    servers::tell(steps, &mut tests)?;
    if let Some(server) = dynamodb {
        server.tell(&mut tests);
    }
    tests
        .env("LEASEHOLD_BROWSER", setup::browser()?)
        .env("LEASEHOLD_WORKERD", &workerd)
        .env("LEASEHOLD_OTHERS", &others)
        .current_dir(&target)
        // For what lies beside the package: golden vectors, and the guide.
        .env("LEASEHOLD_SOURCE", run::root())
        .args([
            "--test",
            "--test-concurrency=4",
            "--test-timeout=600000",
            "--test-reporter=spec",
            "--test-reporter-destination=stdout",
        ]);
    if let Some(logs) = steps.logs() {
        let destination = format!("--test-reporter-destination={}", logs.report("node, tests").display());
        tests.args(["--test-reporter=junit", &destination]);
    }
    tests.args(test_files(&target.join("test"))?);
    steps.run("node, tests", tests)
}

/// `cargo xtask bench node`: beside other lock libraries, as users build it.
pub fn bench(steps: &mut Steps, args: &[String]) -> Result {
    setup::install(steps)?;
    let (built, transpiled) = build(steps, run::DIST)?;
    let target = install(steps, &built, &transpiled)?;
    let mut bench = Command::new("node");
    bench.current_dir(&target).arg("bench/bench.mjs").args(args);
    servers::tell(steps, &mut bench)?;
    steps.run("node, benchmark", bench)
}

/// The packages as they are published, which work alone, with the licences of what is compiled in.
pub fn release(steps: &mut Steps, native: &Native, folder: &Path, transpiled: &Path, notices: &Path) -> Result {
    steps.run("node, addon", native.build("leasehold-node")?)?;
    let target = install(steps, &native.built()?, transpiled)?;
    native.check(&target.join(ADDON))?;
    for package in ["package", "platform"] {
        copy(notices, &target.join(package).join(notices.file_name().unwrap_or_default()))?;
    }
    steps.timed("node, packages", || {
        npm_pack(&target, folder)?;
        // Not below the target folder, whose packages would be found from there.
        let empty = std::env::temp_dir().join(format!("leasehold-node-{}", std::process::id()));
        works_alone(folder, &empty)?;
        clear(&empty)
    })
}

/// Packs what lies assembled in `target`.
fn npm_pack(target: &Path, folder: &Path) -> Result {
    ["package", "platform"].into_iter().try_for_each(|package| {
        let mut pack = Command::new("npm");
        pack.current_dir(target).args(["pack", "--silent", "--pack-destination"]).arg(folder);
        pack.arg(format!("./{package}"));
        run::quietly("npm pack", pack)
    })
}

/// Installs the packages where nothing else is, without a network, and uses them.
fn works_alone(folder: &Path, empty: &Path) -> Result {
    clear(empty)?;
    fs::create_dir_all(empty).map_err(|error| fail("make", empty, &error))?;
    let listed = fs::read_dir(folder).map_err(|error| fail("list", folder, &error))?;
    let packed =
        listed.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "tgz"));
    let mut init = Command::new("npm");
    init.current_dir(empty).args(["init", "-y"]);
    run::quietly("npm init", init)?;
    let mut install = Command::new("npm");
    install
        .current_dir(empty)
        .args(["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"])
        .args(packed);
    run::quietly("npm install", install)?;
    let program = "exports.mjs";
    copy(&run::root().join(PACKAGE).join("test/programs").join(program), &empty.join(program))?;
    let mut uses = Command::new("node");
    uses.current_dir(empty).arg(program);
    run::quietly("packages alone", uses)?;
    python::WHOLE.iter().try_for_each(|part| {
        let mut command = Command::new("npx");
        command.current_dir(empty).args(["--no", "--", "leasehold", part, "--help"]);
        run::quietly(&format!("leasehold {part}"), command)
    })
}

/// Installs what builds and tests the package.
pub fn install_tools(steps: &mut Steps) -> Result {
    install_workerd(steps)?;
    install_others(steps)?;
    install_compiler(steps).map(drop)
}

fn install_workerd(steps: &mut Steps) -> Result<PathBuf> {
    let folder = run::target()?.join("workerd");
    let sources = run::root().join(PACKAGE).join("tools/workerd");
    steps.timed("workerd", || interop::install_npm(&sources, &folder, &[]))?;
    Ok(folder)
}

/// Bundlers, other runtimes, and earlier versions of libraries.
fn install_others(steps: &mut Steps) -> Result<PathBuf> {
    let folder = run::target()?.join("others");
    let sources = run::root().join(PACKAGE).join("tools/others");
    steps.timed("bundlers and runtimes", || interop::install_npm(&sources, &folder, &["bun", "deno", "webpack"]))?;
    Ok(folder)
}

/// `cargo xtask prove next`: applications of Next.js, which takes a minute to install and another to build each.
pub fn next(steps: &mut Steps) -> Result {
    let target = install_built(steps)?;
    let (others, next) = (install_others(steps)?, run::target()?.join("next"));
    let sources = run::root().join(PACKAGE).join("tools/next");
    steps.timed("Next.js", || interop::install_npm(&sources, &next, &["next"]))?;
    let mut tests = Command::new("node");
    tests.env("LEASEHOLD_OTHERS", &others).env("LEASEHOLD_NEXT", &next).current_dir(&target);
    tests.args(["--test", "--test-timeout=600000", "test/next/next.test.mjs"]);
    steps.run("node, Next.js", tests)
}

/// Installs the compiler of TypeScript and other people's packages where the tests will lie.
pub fn install_compiler(steps: &mut Steps) -> Result<PathBuf> {
    let target = run::target()?.join(PACKAGE);
    let packages =
        ["typescript", "@types/node", "@nestjs/core", "bullmq", "ioredis", "node-cron", "prom-client", "redlock"];
    let sources = run::root().join(PACKAGE).join("tools");
    steps.timed("node, tools", || interop::install_npm(&sources, &target, &packages))?;
    Ok(target)
}

/// Builds the package, and answers the folder that has it.
pub fn install_built(steps: &mut Steps) -> Result<PathBuf> {
    let (built, transpiled) = build(steps, "ci")?;
    install(steps, &built, &transpiled)
}

/// Takes the addon from `built`, and leaves in the folder that it answers: the packages as they are published,
/// both of them in one below `node_modules`, and the tests beside it.
fn install(steps: &mut Steps, built: &Path, transpiled: &Path) -> Result<PathBuf> {
    let source = run::root().join(PACKAGE);
    let target = install_compiler(steps)?;
    steps.timed("node, package", || {
        assemble_both(built, transpiled, &target)?;
        let together = target.join("node_modules/leasehold");
        clear(&together)?;
        copy(&target.join("package"), &together)?;
        copy(&target.join(ADDON), &together.join(ADDON))?;
        copy(&run::root().join(RECIPES), &target.join("recipes-node.md"))?;
        clear(&target.join("examples"))?;
        copy(&run::root().join(EXAMPLES), &target.join("examples"))?;
        TESTS.iter().try_for_each(|name| {
            clear(&target.join(name))?;
            copy(&source.join(name), &target.join(name))
        })
    })?;
    Ok(target)
}

/// Makes the folders of both packages, `package` and `platform`.
fn assemble_both(built: &Path, transpiled: &Path, target: &Path) -> Result {
    let source = run::root().join(PACKAGE);
    let (package, platform, addon) = (target.join("package"), target.join("platform"), target.join(ADDON));
    assemble(&source, &package)?;
    strip(built, &addon)?;
    let mut edge = Command::new("node");
    edge.arg(source.join(EDGE)).arg(transpiled).arg(&package);
    run::quietly("edge", edge)?;
    clear(&platform)?;
    let mut make = Command::new("node");
    make.arg(source.join("tools/platform.mjs")).arg(&addon).arg(&platform);
    run::quietly("package of the platform", make)
}

/// The package in the folder's `node_modules`, without what `leasehold/edge` needs and tests of all need.
pub fn install_core(steps: &mut Steps, folder: &Path) -> Result {
    let mut build = run::cargo_ci("build");
    build.args(["-p", "leasehold-node"]);
    steps.build("node, addon", build)?;
    let package = folder.join("node_modules/leasehold");
    assemble(&run::root().join(PACKAGE), &package)?;
    strip(&run::built()?, &package.join(ADDON))
}

/// The package with this addon in the folder's `node_modules`, and its tests.
pub fn install_tests(folder: &Path, addon: &Path) -> Result {
    let source = run::root().join(PACKAGE);
    let package = folder.join("node_modules/leasehold");
    assemble(&source, &package)?;
    copy(addon, &package.join("leasehold.node"))?;
    clear(&folder.join("test"))?;
    copy(&source.join("test"), &folder.join("test"))
}

/// The addon without its symbols.
fn strip(built: &Path, addon: &Path) -> Result {
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let mut strip = Command::new("strip");
    strip.args(["-S", "-x", "-o"]).arg(addon).arg(built.join(format!("{prefix}leasehold_node{suffix}")));
    run::quietly("addon without its symbols", strip)
}

/// Copies what is shipped, and nothing else: a file that is missing in the list is missing in the tests.
fn assemble(source: &Path, package: &Path) -> Result {
    clear(package)?;
    LICENSES.iter().try_for_each(|name| copy(&run::root().join(name), &package.join(name)))?;
    let modules = MODULES.iter().flat_map(|name| EXTENSIONS.map(|extension| format!("{name}.{extension}")));
    SHIPPED
        .map(str::to_owned)
        .into_iter()
        .chain(modules)
        .try_for_each(|name| copy(&source.join(&name), &package.join(&name)))
}

/// The files of a folder for Node's own test runner.
pub fn test_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(folder).map_err(|error| fail("list", folder, &error))?;
    let paths = listed.flatten().map(|entry| entry.path());
    let mut files: Vec<_> = paths.filter(|path| path.to_string_lossy().ends_with(".test.mjs")).collect();
    files.sort();
    Ok(files)
}

fn clear(folder: &Path) -> Result {
    if folder.exists() { fs::remove_dir_all(folder).map_err(|error| fail("empty", folder, &error)) } else { Ok(()) }
}

/// A file, or a folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result {
    if !from.is_dir() {
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(|error| fail("make", folder, &error))?;
        }
        return fs::copy(from, to).map(|_| ()).map_err(|error| fail("copy", from, &error));
    }
    let entries = fs::read_dir(from).map_err(|error| fail("list", from, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| fail("list", from, &error))?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn fail(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}", path.display()))
}
