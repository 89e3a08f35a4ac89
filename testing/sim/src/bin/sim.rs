//! The simulator's command; see `leasehold_sim::cli`.

use std::io::Write as _;
use std::process::ExitCode;

use leasehold_sim::cli::{self, Args};

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}\n\n{}", cli::HELP);
            return ExitCode::from(2);
        }
    };
    let commit = std::env::var("LEASEHOLD_COMMIT").unwrap_or_else(|_| "unknown".into());
    let mut say = |text: &str| drop(write!(std::io::stdout(), "{text}"));
    match cli::run(&args, &commit, &mut say) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}
