//! Makes components of the compiled guests, and writes the values of the WIT for other languages. `cargo xtask component` runs
//! it.

mod component;
mod go;
mod values;

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: leasehold-componentize values WIT ROOT               write its values for other languages, below ROOT
       leasehold-componentize check-values WIT ROOT         fail where a file is not what would be written
       leasehold-componentize go WIT MODULE PACKAGE FOLDER  write the package of Go that drives the module
       leasehold-componentize component MODULE COMPONENT [INTERFACE...]
                                                            wrap a module, and prove that it imports these and no others
";

/// An error message.
type Result<T = ()> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["values", wit, root] => values::generate(Path::new(wit), Path::new(root)),
        ["check-values", wit, root] => values::check(Path::new(wit), Path::new(root)),
        ["go", wit, module, package, folder] => {
            go::generate(Path::new(wit), Path::new(module), package, Path::new(folder))
        }
        ["component", module, component, ref interfaces @ ..] => {
            componentize(Path::new(module), Path::new(component), interfaces)
        }
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn componentize(module: &Path, component: &Path, interfaces: &[&str]) -> Result {
    let made = component::make(&read(module)?, interfaces)?;
    write(component, &made.bytes)?;
    tell(&format!("{}: {}", component.display(), made.sizes()));
    tell(&format!("imports: {}", if interfaces.is_empty() { "none".to_owned() } else { interfaces.join(", ") }));
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| on(path, error))
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result {
    std::fs::write(path, bytes).map_err(|error| on(path, error))
}

fn on(path: &Path, error: impl Display) -> String {
    format!("{}: {error}", path.display())
}

#[allow(clippy::print_stdout)]
fn tell(line: &str) {
    println!("{line}");
}

#[allow(clippy::print_stderr)]
fn report(line: &str) {
    eprintln!("{line}");
}
