//! The component that takes locks by itself, over WASI 0.3: an experiment that is built, and run by nobody.

use super::{TARGET, build_maker, folder, locks, maker, toolchain};
use crate::run::{self, Failure, Result, Steps};
use crate::setup;
use std::fs;
use std::path::{Path, PathBuf};

const MANIFEST: &str = "bindings/component/locks/wasi3/Cargo.toml";
/// The crate that has the interfaces of WASI, for the version that follows.
const INTERFACES: &str = "wasip3-";
const IMPORTS: [&str; 6] = [
    "wasi:clocks/monotonic-clock@0.3.2",
    "wasi:clocks/system-clock@0.3.2",
    "wasi:clocks/types@0.3.2",
    "wasi:http/client@0.3.2",
    "wasi:http/types@0.3.2",
    "wasi:random/random@0.3.2",
];
/// Methods that wait.
const WAITING: [&str; 4] = ["acquire: func", "tend: func", "close: func", "release: func"];
const WORLD: &str = "world locks {
    import wasi:clocks/monotonic-clock@0.3.2;
    import wasi:clocks/system-clock@0.3.2;
    import wasi:http/client@0.3.2;
    import wasi:http/types@0.3.2;
    import wasi:random/random@0.3.2;

    export client;
}
";

pub fn build(steps: &mut Steps) -> Result {
    setup::install_wasm(steps)?;
    let folder = folder()?.join("wasi3");
    let (wit, bindings) = (folder.join("wit"), folder.join("bindings.rs"));
    steps.timed("the WIT over WASI 0.3", || write_wit(&wit))?;
    build_maker(steps)?;
    let mut generate = maker()?;
    generate.arg("bindings").args([&wit, &bindings]);
    steps.run("the guest's side of it", generate)?;
    let mut compile = toolchain()?.cargo("build");
    compile.arg("--manifest-path").arg(run::root().join(MANIFEST)).args(["--release", "--target", TARGET]);
    compile.arg("--target-dir").arg(&folder).env("LEASEHOLD_BINDINGS", bindings);
    steps.run("compile leasehold-locks-wasi3", compile)?;
    let mut wrap = maker()?;
    wrap.arg("component").arg(folder.join(TARGET).join("release/leasehold_locks_wasi3.wasm"));
    wrap.arg(folder.join("leasehold-locks-wasi3.wasm")).args(IMPORTS);
    steps.run("make leasehold-locks-wasi3.wasm", wrap)
}

/// The checked-in world with other imports, and calls that are asynchronous where they wait.
fn write_wit(folder: &Path) -> Result {
    let fail = |path: &Path, error| Failure::new(format!("{}: {error}", path.display()));
    let source = run::root().join(locks::GUEST.wit).join("locks.wit");
    let text = fs::read_to_string(&source).map_err(|error| fail(&source, error))?;
    let mut text = text.split("world locks {").next().unwrap_or_default().to_owned();
    for method in WAITING {
        text = text.replace(method, &method.replace("func", "async func"));
    }
    let deps = folder.join("deps");
    fs::create_dir_all(&deps).map_err(|error| fail(&deps, error))?;
    let file = folder.join("locks.wit");
    fs::write(&file, text + WORLD).map_err(|error| fail(&file, error))?;
    let interfaces = interfaces()?;
    for entry in fs::read_dir(&interfaces).map_err(|error| fail(&interfaces, error))?.flatten() {
        fs::copy(entry.path(), deps.join(entry.file_name())).map_err(|error| fail(&entry.path(), error))?;
    }
    Ok(())
}

/// Cargo downloads the crate and checks it, and says where it is.
fn interfaces() -> Result<PathBuf> {
    let mut metadata = run::cargo("metadata");
    metadata.args(["--format-version", "1", "--all-features", "--manifest-path"]).arg(run::root().join(MANIFEST));
    let output = metadata.stderr(std::process::Stdio::inherit()).output();
    let said = output.map_err(|error| Failure::new(format!("{metadata:?} failed ({error})")))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let manifests = said.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    let manifest = manifests.map(Path::new).find(|path| path.to_string_lossy().contains(INTERFACES));
    let folder = manifest.and_then(Path::parent).map(|folder| folder.join("wit/deps"));
    folder.ok_or_else(|| Failure::new(format!("{MANIFEST} names no {INTERFACES}*")))
}
