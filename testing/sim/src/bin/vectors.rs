//! Checks, renews or keeps the golden vectors: `leasehold-vectors --check FOLDER`, `--bless FOLDER`,
//! `--release VERSION FOLDER`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use leasehold_sim::vectors::{self, Change, Files, Release, wire};

const USAGE: &str = "\
usage: leasehold-vectors --check|--bless FOLDER
       leasehold-vectors --release VERSION FOLDER

The vectors with whole requests are in FOLDER/wire, those of releases in FOLDER/released/VERSION. The status is 1 when vectors differ, 2 when the arguments make no
sense or a folder cannot be read or written.";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    Check,
    Bless,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (what, folder) = match &args[..] {
        [what, folder] => (what, folder),
        [what, version, folder] if what == "--release" => return release(version, Path::new(folder)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    let task = match what.as_str() {
        "--check" => Task::Check,
        "--bless" => Task::Bless,
        other => {
            eprintln!("there is no `{other}`\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let folder = PathBuf::from(folder);
    let mut differing = 0;
    for (folder, recorded, check) in [
        (folder.clone(), vectors::recorded(), vectors::check as fn(&str) -> _),
        (folder.join("wire"), wire::recorded(), wire::check),
    ] {
        match compare(task, &folder, &recorded, check) {
            Ok(count) => differing += count,
            Err(error) => {
                eprintln!("{}: {error}", folder.display());
                return ExitCode::from(2);
            }
        }
    }
    if task == Task::Bless || differing == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Keeps what the folder says now as that version's.
fn release(version: &str, folder: &Path) -> ExitCode {
    let to = folder.join("released").join(version);
    let kept = vectors::stored(folder).and_then(|plain| {
        let wire = vectors::stored(&folder.join("wire"))?;
        Release { plain, wire, ..Release::default() }.keep(&to)
    });
    match kept {
        Ok(()) => {
            println!("kept in {}", to.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}: {error}", to.display());
            ExitCode::from(2)
        }
    }
}

/// How many files differ, or did.
fn compare(task: Task, folder: &Path, recorded: &Files, check: fn(&str) -> Result<(), String>) -> io::Result<usize> {
    let changes = match task {
        Task::Check => vectors::changes(&vectors::stored(folder)?, recorded),
        Task::Bless => vectors::bless(folder, recorded, check)?,
    };
    for (name, change) in &changes {
        let told = match (change, task) {
            (Change::New, Task::Bless) => "written",
            (Change::Changed, Task::Bless) => "changed",
            (Change::Stale, Task::Bless) => "removed, no timeline tells it any more",
            (Change::New, Task::Check) => "missing",
            (Change::Changed, Task::Check) => "does not say what the core does",
            (Change::Stale, Task::Check) => "no timeline tells it",
        };
        println!("{name}: {told}");
    }
    println!("{} vectors in {}, {} differ", recorded.len(), folder.display(), changes.len());
    Ok(changes.len())
}
