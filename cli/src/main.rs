//! The program; all of it is in the library.

fn main() -> std::process::ExitCode {
    leasehold_cli::run(std::env::args_os())
}
