//! `cargo xtask bench`: runs benchmarks, and shows what they tell beside the aims; with `--plot` keeps and draws it.

use crate::benchmarks::{ALL, selected};
use crate::machine::{self, Ticks};
use crate::record::{Beside, Figure, Record, Run, read_told};
use crate::{Failure, Result, aims, page, pictures, root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDER: &str = "docs/benchmarks";
const FIGURES: &str = "figures.txt";
const PAGE: &str = "README.md";
/// Draw only.
const DRAW: &str = "--draw";
/// Each host of the component has a process of its own: this is the one that the others are held against.
const ACROSS: (&str, &str) = ("component", "wasmtime, in Rust");

/// Keep the figures, and draw them.
const PLOT: &str = "--plot";

pub fn bench(args: &[String]) -> Result {
    let (plots, args): (Vec<String>, Vec<String>) = args.iter().cloned().partition(|arg| arg == PLOT);
    if plots.is_empty() { measure_all(&args, false) } else { plot(&args) }
}

fn plot(args: &[String]) -> Result {
    if args == [DRAW] {
        return draw(&read()?);
    }
    if args.iter().any(|arg| arg == DRAW) {
        return Err(Failure::new(format!("`{DRAW}` draws what is kept: nothing else may follow or precede it")));
    }
    measure_all(args, true)
}

/// Runs benchmarks one after the other, and prints the aims beside what was measured last.
fn measure_all(args: &[String], is_kept: bool) -> Result {
    let (names, rest) = selected(args)?;
    let mut record = read()?;
    let kept_as = told("LEASEHOLD_TARGET")?.join("figures.txt");
    for name in names {
        let start = Ticks::now();
        // What an earlier run has told is not to be taken for this one's.
        if kept_as.exists() {
            fs::remove_file(&kept_as).map_err(|error| failed("remove", &kept_as, &error))?;
        }
        run_one(name, rest, &kept_as)?;
        let told = fs::read_to_string(&kept_as)
            .map_err(|_| Failure::new(format!("`{name}` has run, but has told no figures")))?;
        let (versions, mut figures) = read_told(&told)?;
        if name == ACROSS.0 {
            relate(&mut figures, ACROSS.1);
        }
        let start_of = if is_kept { "cargo xtask bench --plot" } else { "cargo xtask bench" };
        let words = [start_of, name].into_iter().chain(rest.iter().map(String::as_str));
        let command = machine::cell(&words.collect::<Vec<_>>().join(" "));
        let facts = machine::facts(command, rest.iter().any(|arg| arg == "--quick"), start);
        let versions = machine::versions(name).into_iter().chain(versions).collect();
        record.keep(Run { benchmark: name.to_owned(), facts, versions, figures }, &ALL);
        // After each, so that a failure loses nothing that was measured before.
        if is_kept {
            write(FIGURES, &record.to_string())?;
            // As it reads: what is drawn now and what is drawn again from the file are the same.
            draw(&read()?)?;
        }
    }
    println!("\n{}", aims::table(&record));
    Ok(())
}

/// Builds and runs a benchmark, which tells its figures to a file.
fn run_one(name: &str, rest: &[String], figures: &Path) -> Result {
    let mut xtask = Command::new(told("LEASEHOLD_XTASK")?);
    xtask.args(["bench", "--run", name]).args(rest).env("LEASEHOLD_FIGURES", figures);
    match xtask.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(format!("the benchmark `{name}` failed: {status}"))),
        Err(error) => Err(Failure::new(format!("the benchmark `{name}` cannot be run: {error}"))),
    }
}

/// The path that xtask passes by a variable.
fn told(variable: &str) -> Result<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    path.ok_or_else(|| Failure::new(format!("{variable} is not set: cargo xtask bench starts this program")))
}

/// Holds all figures of a case against those of `base`, which were measured one after the other.
fn relate(figures: &mut [Figure], base: &str) {
    let bases: Vec<Figure> = figures.iter().filter(|figure| figure.who == base).cloned().collect();
    for figure in figures {
        if let Some(known) = bases.iter().find(|base| base.goes_with(figure) && base.value > 0.0) {
            figure.beside = Some(Beside { ratio: figure.value / known.value, base: base.to_owned() });
        }
    }
}

fn read() -> Result<Record> {
    let path = folder().join(FIGURES);
    if !path.exists() {
        return Ok(Record::default());
    }
    Record::read(&fs::read_to_string(&path).map_err(|error| failed("read", &path, &error))?)
}

fn draw(record: &Record) -> Result {
    drawn(record).iter().try_for_each(|(name, text)| write(name, text))?;
    println!("\nDrawn in {}", folder().display());
    Ok(())
}

/// All files that follow from the figures.
fn drawn(record: &Record) -> Vec<(String, String)> {
    let pictures = pictures::all(record);
    let page = (PAGE.to_owned(), page::write(record, &pictures));
    pictures.iter().map(|(name, picture)| (name.clone(), picture.draw())).chain([page]).collect()
}

fn folder() -> PathBuf {
    root().join(FOLDER)
}

fn write(name: &str, text: &str) -> Result {
    let path = folder().join(name);
    let written = fs::create_dir_all(folder()).and_then(|()| fs::write(&path, text));
    written.map_err(|error| failed("write", &path, &error))
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_in_the_tree_are_what_the_figures_draw() {
        let text = fs::read_to_string(folder().join(FIGURES)).expect("figures are kept");
        let record = Record::read(&text).expect("they are in order");
        assert_eq!(record.to_string(), text, "{FIGURES} is not as it would be written");
        let drawn = drawn(&record);
        for (name, text) in &drawn {
            let found = fs::read_to_string(folder().join(name)).unwrap_or_default();
            assert!(found == *text, "{name} is not what the figures draw: cargo xtask bench --plot {DRAW}");
        }
        let listed = fs::read_dir(folder()).expect("the folder is there").flatten();
        let known = |name: &str| name == FIGURES || drawn.iter().any(|(drawn, _)| drawn == name);
        let strangers: Vec<_> =
            listed.map(|entry| entry.file_name()).filter(|name| !known(&name.to_string_lossy())).collect();
        assert!(strangers.is_empty(), "nothing draws {strangers:?}");
    }

    #[test]
    fn the_overview_shows_a_case_of_every_benchmark_that_it_names() {
        let record = read().expect("they are in order");
        let (_, overview) = &pictures::all(&record)[0];
        let wanted = pictures::OVERVIEW.iter().filter(|[_, benchmark, ..]| record.of(benchmark).is_some());
        let wanted: Vec<&str> = wanted.map(|[title, ..]| *title).collect();
        let drawn: Vec<&str> = overview.groups.iter().map(|group| group.title.as_str()).collect();
        assert_eq!(drawn, wanted, "a case has another name now");
        assert!(overview.groups.iter().all(|group| group.rows.iter().any(|row| row.is_ours)), "{overview:?}");
    }

    #[test]
    fn hosts_are_held_against_the_one_in_rust() {
        let told = "figure | WebAssembly | pair | time | us | wasmtime, in Rust | 30 | - | -\n\
                    figure | WebAssembly | pair | time | us | wasmtime, in Python | 300 | - | -\n\
                    figure | WebAssembly | file | size | bytes | Node | 5 | - | -\n";
        let (_, mut figures) = read_told(told).expect("plain figures");
        relate(&mut figures, "wasmtime, in Rust");
        let ratios: Vec<_> = figures.iter().map(|figure| figure.beside.as_ref().map(|beside| beside.ratio)).collect();
        assert_eq!(ratios, [Some(1.0), Some(10.0), None]);
    }

    #[test]
    fn drawing_alone_takes_nothing_else() {
        let words = ["redis", DRAW].map(str::to_owned);
        assert!(plot(&words).expect_err("it would not measure").to_string().contains(DRAW));
    }
}
