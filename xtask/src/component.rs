//! `cargo xtask component`: the protocol as a WebAssembly component, from source to one file that imports nothing; and a
//! component over it that takes locks by itself, with the network of its host.

mod c_host;
mod locks;
pub mod toolchain;

use crate::interop::{self, Peers};
use crate::run::{self, Failure, Result};
use crate::steps::Steps;
use crate::test::Suite;
use crate::{servers, setup};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use c_host::Build;
pub use locks::build as build_locks;
pub use toolchain::TARGET;
use toolchain::Toolchain;

const GUESTS: &str = "bindings/component";
pub const WIT: &str = "wit/leasehold.wit";
/// The protocol: it can reach nothing.
const PROTOCOL: Guest = Guest { package: "leasehold-component", component: "leasehold.wasm", imports: &[] };
/// The packages that run the component, and that make it.
const RUNNER: &str = "leasehold-wasmtime";
const MAKER: &str = "leasehold-componentize";
/// Their tests need the component.
pub const PACKAGES: [&str; 2] = [RUNNER, MAKER];
const PYTHON_HOST: &str = "bindings/component/hosts/python/vectors.py";
/// Compiling takes seconds, and every program of a test would.
const PRECOMPILE_FOR_PYTHON: &str = "import sys; from wasmtime import Engine; from wasmtime.component import Component; \
     open(sys.argv[2], 'wb').write(Component.from_file(Engine(), sys.argv[1]).serialize())";
const JAVASCRIPT_HOST: &str = "bindings/component/hosts/javascript";
/// Makes ES modules of components, for `leasehold/edge` and for the programs in JavaScript here.
const TRANSPILER: &str = "node/tools/component";
/// In the folder of what is built here: what npm has.
const TOOLS: &str = "tools";
const VECTORS: &str = "core/vectors";
/// Of binaryen: `npm install --global binaryen`.
const OPTIMIZER: &str = "wasm-opt";
/// Those that the compiler uses as well.
const FEATURES: [&str; 6] =
    ["bulk-memory", "multivalue", "mutable-globals", "nontrapping-float-to-int", "reference-types", "sign-ext"];
const PRECOMPILE: &str = "bindings/wasmtime/precompile.py";

/// A component, and what it is made of.
struct Guest {
    package: &'static str,
    component: &'static str,
    /// The interfaces that it imports: all of them, and no others.
    imports: &'static [&'static str],
}

pub fn component(args: &[String]) -> Result {
    let mut steps = Steps::default();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            build(&mut steps)?;
            locks::build(&mut steps)?;
        }
        ["--test"] => {
            // With the servers on which hosts take locks.
            setup::install(&mut steps)?;
            setup::install_browser(&mut steps)?;
            lint(&mut steps)?;
            let peers = interop::install(&mut steps)?;
            let made = make_all(&mut steps, &peers)?;
            test(&mut steps, &made, &peers, None)?;
        }
        ["--check"] => values(&mut steps, "check-values")?,
        ["--bless"] => values(&mut steps, "values")?,
        _ => {
            return Err(Failure::new(format!(
                "`{}`: only one of `--check`, `--bless` and `--test` may follow `component`",
                args.join(" ")
            )));
        }
    }
    print!("\n{}", steps.table());
    Ok(())
}

/// Builds the component, and shows that it imports nothing.
pub fn build(steps: &mut Steps) -> Result<PathBuf> {
    make(steps, &PROTOCOL)
}

/// Builds the protocol as a core module, for hosts without components.
pub fn module(steps: &mut Steps) -> Result<PathBuf> {
    module_of(steps, &PROTOCOL)
}

fn module_of(steps: &mut Steps, guest: &Guest) -> Result<PathBuf> {
    setup::install_wasm(steps)?;
    compile(steps, guest)?;
    let module = folder()?.join(TARGET).join("release").join(format!("{}.wasm", guest.package.replace('-', "_")));
    optimize(steps, module)
}

fn make(steps: &mut Steps, guest: &Guest) -> Result<PathBuf> {
    let module = module_of(steps, guest)?;
    let component = folder()?.join(guest.component);
    let mut wrap = componentize(steps)?;
    wrap.arg("component").arg(module).arg(&component).args(guest.imports);
    steps.run(&format!("make {}", guest.component), wrap)?;
    Ok(component)
}

/// Makes a module a tenth smaller, where binaryen is installed; answers the file to use.
fn optimize(steps: &mut Steps, module: PathBuf) -> Result<PathBuf> {
    if Command::new(OPTIMIZER).arg("--version").stdout(Stdio::null()).status().is_err() {
        return Ok(module);
    }
    let output = module.with_extension("small.wasm");
    let mut command = Command::new(OPTIMIZER);
    command.arg("-Oz").args(FEATURES.map(|feature| format!("--enable-{feature}"))).arg(&module).arg("-o").arg(&output);
    steps.run(OPTIMIZER, command)?;
    Ok(output)
}

/// Compiles both guests, for which nothing else has to be built.
pub fn compile_all(steps: &mut Steps) -> Result {
    compile(steps, &PROTOCOL)?;
    compile(steps, &locks::GUEST)
}

fn compile(steps: &mut Steps, guest: &Guest) -> Result {
    let mut compile = toolchain()?.cargo("build");
    compile.args(["-p", guest.package, "--release", "--target", TARGET]).arg("--target-dir").arg(folder()?);
    steps.run(&format!("compile {}", guest.package), compile)
}

/// Compiles the component to machine code, for a host that has no compiler in it.
pub fn precompile(steps: &mut Steps, component: &Path, peers: &Peers) -> Result<PathBuf> {
    let output = component.with_extension("cwasm");
    let mut command = peers.run_python(PRECOMPILE);
    command.arg(component).arg(&output);
    steps.run("precompile the component", command)?;
    Ok(output)
}

/// Compiles a component for programs in Python, whose engines have settings of their own.
fn precompile_for_python(steps: &mut Steps, python: &Path, component: &Path) -> Result<PathBuf> {
    let output = component.with_extension("python.cwasm");
    let mut command = Command::new(python);
    command.args(["-c", PRECOMPILE_FOR_PYTHON]).args([component, &output]);
    steps.run(&format!("precompile {} for Python", component.file_name().unwrap_or_default().display()), command)?;
    Ok(output)
}

/// Makes an ES module of the component, and answers its folder.
pub fn transpile(steps: &mut Steps, component: &Path) -> Result<PathBuf> {
    make_module(steps, component, "javascript", &[])
}

fn make_module(steps: &mut Steps, component: &Path, output: &str, imports: &[&str]) -> Result<PathBuf> {
    let (transpiler, tools) = (run::root().join(TRANSPILER), install_transpiler(steps)?);
    let output = folder()?.join(output);
    let mut command = Command::new("node");
    command.arg(transpiler.join("transpile.mjs")).arg(component).arg(&output).current_dir(tools);
    // As the tool tells them: without versions.
    command.args(imports.iter().filter_map(|interface| interface.split('@').next()));
    steps.run(&format!("transpile {}", component.file_name().unwrap_or_default().display()), command)?;
    Ok(output)
}

/// Installs what makes modules of the components, and the Python packages that run them.
pub fn install_tools(steps: &mut Steps) -> Result {
    install_transpiler(steps)?;
    locks::install_python(steps).map(drop)
}

fn install_transpiler(steps: &mut Steps) -> Result<PathBuf> {
    let (transpiler, tools) = (run::root().join(TRANSPILER), folder()?.join(TOOLS));
    let packages = ["@bytecodealliance/jco-transpile", "@bytecodealliance/preview2-shim", "terser"];
    steps.timed("npm packages that transpile", || interop::install_npm(&transpiler, &tools, &packages))?;
    Ok(tools)
}

/// Checks that the values of the WIT for other languages are up to date, or writes them.
fn values(steps: &mut Steps, action: &str) -> Result {
    let mut values = componentize(steps)?;
    values.arg(action).args([WIT, "."]).current_dir(run::root());
    steps.run("values of the WIT for other languages", values)
}

/// The guests are a workspace of their own, so nothing else looks at them.
pub fn lint(steps: &mut Steps) -> Result {
    let manifest = run::root().join(GUESTS).join("Cargo.toml");
    let mut fmt = run::plain_cargo("fmt");
    fmt.arg("--manifest-path").arg(&manifest).args(["-p", PROTOCOL.package, "-p", locks::GUEST.package, "--check"]);
    steps.run("format, components", fmt)?;
    let mut clippy = run::cargo("clippy");
    clippy.args(["--release", "--workspace"]).arg("--manifest-path").arg(&manifest);
    clippy.arg("--target-dir").arg(folder()?).args(["--", "-D", "warnings"]);
    steps.run("clippy, components", clippy)
}

/// The component of the protocol, in the forms that its hosts load.
pub struct Made {
    component: PathBuf,
    /// Machine code for wasmtime.
    precompiled: PathBuf,
    /// The folder of its ES module.
    pub transpiled: PathBuf,
}

/// Makes the component, and what its hosts load.
pub fn make_all(steps: &mut Steps, peers: &Peers) -> Result<Made> {
    values(steps, "check-values")?;
    let component = build(steps)?;
    let precompiled = precompile(steps, &component, peers)?;
    let transpiled = transpile(steps, &component)?;
    Ok(Made { component, precompiled, transpiled })
}

/// Runs the components in every host that there is.
pub fn test(steps: &mut Steps, made: &Made, peers: &Peers, dynamodb: Option<&servers::Dynamodb>) -> Result {
    let mut tests = Suite::COMPONENT.command();
    tests.env("LEASEHOLD_COMPONENT", &made.precompiled);
    let for_python = precompile_for_python(steps, peers.python(), &made.component)?;
    tests.env("LEASEHOLD_PYTHON_COMPONENT", for_python);
    locks::prepare(steps, &mut tests)?;
    peers.tell(&mut tests);
    if let Some(server) = dynamodb {
        server.tell(&mut tests);
    }
    // What the programs know of clocks and of sleep, they know of Linux.
    if cfg!(target_os = "linux") {
        for build in [Build::Plain, Build::Checked] {
            c_host::build(steps, peers, build)?;
        }
        tests.env("LEASEHOLD_C_HOST", c_host::folder()?);
    }
    steps.run("tests of the component, in Rust, and on servers", tests)?;
    let mut tests = peers.run_python(PYTHON_HOST);
    tests.arg(&made.component).arg(run::root().join(VECTORS));
    steps.run("tests of the component, in Python", tests)?;
    for (name, host) in [("Node", "in-node.mjs"), ("a browser", "in-browser.mjs")] {
        let mut tests = Command::new("node");
        tests.arg(run::root().join(JAVASCRIPT_HOST).join(host)).arg(&made.transpiled);
        tests.args([WIT, VECTORS].map(|path| run::root().join(path))).env("LEASEHOLD_BROWSER", setup::browser()?);
        steps.run(&format!("tests of the component, in {name}"), tests)?;
    }
    Ok(())
}

/// How long calls take in each host, without a network.
pub fn bench(steps: &mut Steps) -> Result {
    setup::install_languages(steps)?;
    let peers = interop::install(steps)?;
    let component = build(steps)?;
    let precompiled = precompile(steps, &component, &peers)?;
    let mut rust = run::cargo("run");
    rust.args(["--release", "-p", RUNNER, "--example", "calls", "--"]).arg(&precompiled);
    steps.run("calls, in Rust", rust)?;
    if cfg!(target_os = "linux") {
        let mut c = Command::new(c_host::build(steps, &peers, Build::Plain)?.join("bench"));
        c.arg(&precompiled);
        steps.run("calls, in C", c)?;
    }
    let transpiled = transpile(steps, &component)?;
    let mut calls = Command::new("node");
    calls.arg(run::root().join(JAVASCRIPT_HOST).join("calls.mjs")).arg(transpiled).arg(component);
    steps.run("calls, in Node", calls)
}

/// The program that makes components, and packages of Go.
pub fn componentize(steps: &mut Steps) -> Result<Command> {
    let mut build = run::cargo_ci("build");
    build.args(["-p", MAKER]);
    steps.build(&format!("build {MAKER}"), build)?;
    Ok(Command::new(run::built()?.join(MAKER)))
}

fn folder() -> Result<PathBuf> {
    let folder = run::target()?.join("component");
    match fs::create_dir_all(&folder) {
        Ok(()) => Ok(folder),
        Err(error) => Err(Failure::new(format!("cannot make {}: {error}", folder.display()))),
    }
}

/// The toolchain that is there, or what to install.
fn toolchain() -> Result<Toolchain> {
    Toolchain::find().ok_or_else(|| {
        Failure::new(format!(
            "no toolchain here can compile for {TARGET}\n  install one of:\n    rustup target add {TARGET}\n    rustup \
             component add rust-src\n    sudo apt-get install {} (Debian, beside a toolchain of rustup)",
            setup::WASM_PACKAGES.join(" ")
        ))
    })
}

/// Tells if the usual toolchain has the library for WebAssembly, so that nobody has to compile it.
pub fn has_library() -> bool {
    Toolchain::find() == Some(Toolchain::Installed)
}

/// Tells if the component can be built here.
pub fn has_toolchain() -> bool {
    Toolchain::find().is_some()
}
