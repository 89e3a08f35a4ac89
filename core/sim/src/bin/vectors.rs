//! Checks or renews the golden vectors: `leasehold-vectors --check | --bless FOLDER`.

use std::path::PathBuf;
use std::process::ExitCode;

use leasehold_sim::vectors::{self, Change};

const USAGE: &str = "\
usage: leasehold-vectors --check|--bless FOLDER

The status is 1 when vectors differ, 2 when the arguments make no sense or the folder cannot be read or written.";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [what, folder] = &args[..] else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let folder = PathBuf::from(folder);
    let recorded = vectors::recorded();
    let changes = match what.as_str() {
        "--check" => vectors::stored(&folder).map(|stored| vectors::changes(&stored, &recorded)),
        "--bless" => vectors::bless(&folder, &recorded),
        other => {
            eprintln!("there is no `{other}`\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let changes = match changes {
        Ok(changes) => changes,
        Err(error) => {
            eprintln!("{}: {error}", folder.display());
            return ExitCode::from(2);
        }
    };
    let blessed = what == "--bless";
    for (name, change) in &changes {
        let told = match (change, blessed) {
            (Change::New, true) => "written",
            (Change::Changed, true) => "changed",
            (Change::Stale, true) => "removed, no story tells it any more",
            (Change::New, false) => "missing",
            (Change::Changed, false) => "does not say what the core does",
            (Change::Stale, false) => "no story tells it",
        };
        println!("{name}: {told}");
    }
    println!("{} vectors in {}, {} differ", recorded.len(), folder.display(), changes.len());
    if blessed || changes.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
