//! See the library: arguments in, exit status out.

fn main() -> std::process::ExitCode {
    leasehold_cli::run(std::env::args_os())
}
