//! Child processes: how they are started, waited for, and named where they fail.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

pub type Result<T = ()> = std::result::Result<T, Failure>;

/// An error message that tells the reader what to do.
#[derive(Debug)]
pub struct Failure {
    message: String,
    is_consequence: bool,
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), is_consequence: false }
    }

    /// Ends a track because another one has failed, which has been reported already.
    pub fn consequence() -> Failure {
        Failure { message: "another step has failed".into(), is_consequence: true }
    }

    pub fn is_consequence(&self) -> bool {
        self.is_consequence
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The workspace root. Cargo's variable comes first, since a copied target folder may carry another tree's path.
pub fn root() -> PathBuf {
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    xtask.parent().map_or_else(|| xtask.clone(), Path::to_path_buf)
}

/// `cargo <subcommand> --locked`, in the workspace root.
pub fn cargo(subcommand: &str) -> Command {
    let mut command = plain_cargo(subcommand);
    command.arg("--locked");
    command
}

/// `cargo <subcommand>`, for the subcommands that resolve nothing and so know no `--locked`.
pub fn plain_cargo(subcommand: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).arg(subcommand);
    forget_package(&mut command);
    add_programs(&mut command);
    command
}

/// A folder with subcommands of Cargo that were installed for these chores.
static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();

/// From now on Cargo finds subcommands in this folder too, where the path has none.
pub fn find_programs_in(folder: PathBuf) {
    let _ = PROGRAMS.set(folder);
}

fn add_programs(command: &mut Command) {
    let Some(folder) = PROGRAMS.get() else { return };
    let path = std::env::var_os("PATH").unwrap_or_default();
    if let Ok(path) = std::env::join_paths(std::env::split_paths(&path).chain([folder.clone()])) {
        command.env("PATH", path);
    }
}

/// Has Python keep what it compiles in the target folder: beside the sources nothing is left, and no process compiles
/// libraries that another one has compiled.
pub fn keep_bytecode(command: &mut Command) -> Result {
    command.env("PYTHONPYCACHEPREFIX", target()?.join("pycache"));
    Ok(())
}

/// Hides what Cargo tells of this package from the next Cargo: build scripts that look at it would run again whenever
/// one starts from here and the next one from a shell, and with them compiles whatever depends on them.
pub fn forget_package(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            command.env_remove(name);
        }
    }
}

/// `cargo <subcommand> --locked --profile ci`: the one profile, so that third-party crates compile once.
pub fn cargo_ci(subcommand: &str) -> Command {
    let mut command = cargo(subcommand);
    command.args(["--profile", "ci"]);
    add_lints(&mut command);
    command
}

/// The profile of what users install as machine code.
pub const DIST: &str = "dist";

/// `cargo <subcommand> --locked --profile dist`: small and fast machine code, as users install it.
pub fn cargo_dist(subcommand: &str) -> Command {
    let mut command = cargo(subcommand);
    command.args(["--profile", DIST]);
    command
}

static LINTS: AtomicBool = AtomicBool::new(false);

/// From now on clippy compiles the crates of this workspace, and each of its warnings is an error.
pub fn lint_while_compiling() {
    LINTS.store(true, Ordering::Relaxed);
}

/// Lets clippy compile what this command builds, if that was asked for. Cargo keeps what another compiler has built apart.
pub fn add_lints(command: &mut Command) {
    if LINTS.load(Ordering::Relaxed) && command.get_args().next() != Some("clippy".as_ref()) {
        command.env("RUSTC_WORKSPACE_WRAPPER", tool("clippy-driver"));
        command.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
        if MAKES_WHEEL {
            command.env("PYO3_BUILD_EXTENSION_MODULE", "1");
        }
    }
}

/// The native module that is built for all tests can go into a wheel. Elsewhere maturin links it in a way of its own.
pub const MAKES_WHEEL: bool = cfg!(target_os = "linux");

/// A program of the toolchain that is in use.
pub fn tool(name: &str) -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| name.into(), |cargo| Path::new(&cargo).with_file_name(name))
}

/// Writes a shell script below the target folder.
pub fn script(name: &str, text: &str) -> Result<PathBuf> {
    let folder = target()?.join("scripts");
    let path = folder.join(name);
    let written =
        std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, text)).and_then(|()| executable(&path));
    written.map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))?;
    Ok(path)
}

#[cfg(unix)]
fn executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn executable(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Tells if the command can be started and succeeds. Its output is dropped.
pub fn succeeds(mut command: Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a command whose output is shown only when it fails.
pub fn quietly(name: &str, mut command: Command) -> Result {
    match output(command.stderr(Stdio::piped())) {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            eprintln!("\n=== {name}\n{}", said.concat());
            Err(failed(name, &command, &output.status.to_string()))
        }
        Err(error) => Err(failed(name, &command, &error.to_string())),
    }
}

/// The standard output of a command; its errors are shown.
pub fn told(name: &str, mut command: Command) -> Result<String> {
    match output(command.stderr(Stdio::inherit())) {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => Err(failed(name, &command, &output.status.to_string())),
        Err(error) => Err(failed(name, &command, &error.to_string())),
    }
}

fn output(command: &mut Command) -> io::Result<Output> {
    let mut child = spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()))?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = thread::scope(|scope| {
        let err = scope.spawn(|| all_of(err));
        (all_of(out), err.join().unwrap_or_default())
    });
    Ok(Output { status: wait(&mut child)?, stdout, stderr })
}

fn all_of(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        let _ = pipe.read_to_end(&mut bytes);
    }
    bytes
}

thread_local! {
    static COMPUTED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static CHILDREN: RefCell<Children> = RefCell::default();
}

/// Process ids of the children that run now.
#[derive(Clone, Default)]
pub struct Children(Arc<Mutex<Vec<u32>>>);

impl Children {
    /// From now on the children of this thread are among these.
    pub fn adopt(&self) {
        CHILDREN.set(self.clone());
    }

    pub fn running(&self) -> Vec<u32> {
        self.list().clone()
    }

    fn list(&self) -> MutexGuard<'_, Vec<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a child, which is to be [waited for](wait).
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    let child = command.spawn()?;
    CHILDREN.with_borrow(|children| children.list().push(child.id()));
    Ok(child)
}

/// How often a child is asked for its end.
const GLANCE: Duration = Duration::from_millis(20);

/// Waits for a child, and counts its processor time for this thread.
pub fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    // On Linux a child that has ended tells its processor time until it is waited for.
    let path = format!("/proc/{}/stat", child.id());
    let has_ended = |stat: &str| stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with('Z'));
    while let Ok(stat) = std::fs::read_to_string(&path) {
        if has_ended(&stat) {
            let computed = processor_time(&stat, 4).unwrap_or_default();
            COMPUTED.set(COMPUTED.get() + computed);
            break;
        }
        thread::sleep(GLANCE);
    }
    CHILDREN.with_borrow(|children| children.list().retain(|id| *id != child.id()));
    child.wait()
}

/// The processor time of this thread and of all children that it has waited for; known on Linux only.
pub fn computed() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").ok()?;
    Some(processor_time(&stat, 2)? + COMPUTED.get())
}

/// The processor time of this process and of all children that have ended; known on Linux only.
pub fn computed_in_all() -> Option<Duration> {
    processor_time(&std::fs::read_to_string("/proc/self/stat").ok()?, 4)
}

/// The sum of a process's user and system time, and with four fields also of the children that it has waited for.
fn processor_time(stat: &str, fields: usize) -> Option<Duration> {
    // The name of the program is in parentheses, and may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let ticks = rest.split_ascii_whitespace().skip(11).take(fields).map(|field| field.parse::<u64>().ok());
    // Linux counts hundredths of a second here, whatever its own clock does.
    Some(Duration::from_millis(ticks.sum::<Option<u64>>()? * 10))
}

/// The folder with what the `ci` profile built.
pub fn built() -> Result<PathBuf> {
    Ok(target()?.join("ci"))
}

/// The folder with what the `dist` profile built.
pub fn distributed() -> Result<PathBuf> {
    Ok(target()?.join(DIST))
}

/// The target folder. Asked of cargo, because variables and configuration may move it.
pub fn target() -> Result<PathBuf> {
    static TARGET: OnceLock<PathBuf> = OnceLock::new();
    if let Some(target) = TARGET.get() {
        return Ok(target.clone());
    }
    let mut command = cargo("metadata");
    command.args(["--no-deps", "--format-version", "1"]);
    let json = told("find the target folder", command)?;
    match json.split_once("\"target_directory\":\"").and_then(|(_, rest)| rest.split_once('"')) {
        Some((folder, _)) => Ok(TARGET.get_or_init(|| PathBuf::from(folder.replace("\\\\", "\\"))).clone()),
        None => Err(Failure::new("`cargo metadata` names no target_directory")),
    }
}

pub fn failed(step: &str, command: &Command, why: &str) -> Failure {
    Failure::new(format!("step `{step}` failed ({why})\n  to repeat it: {}", shell(command)))
}

/// The command as a person would type it.
fn shell(command: &Command) -> String {
    let cargo = std::env::var_os("CARGO");
    let program = command.get_program();
    let program = if cargo.as_deref() == Some(program) { "cargo".into() } else { program.to_string_lossy() };
    let variables = command.get_envs().filter_map(|(name, value)| {
        value.map(|value| format!("{}={}", name.to_string_lossy(), quoted(&value.to_string_lossy())))
    });
    let arguments = command.get_args().map(|argument| quoted(&argument.to_string_lossy()));
    variables.chain([quoted(&program)]).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./,:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
