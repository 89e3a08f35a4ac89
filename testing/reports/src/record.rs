//! The measurements of benchmarks, as lines that people can read and compare.
//!
//! Programs tell their figures in these lines to the file that `LEASEHOLD_FIGURES` names; `docs/benchmarks/figures.txt` keeps
//! them, below what is known of the run.

use crate::{Failure, Result};
use std::collections::BTreeMap;
use std::fmt::{self, Write};

const SEPARATOR: &str = " | ";
const HEAD: &str = "\
# Kept by `cargo xtask bench --plot`; the pictures beside it are drawn from this.
# figure | language | case | measure | unit | who | value | how many times the cost of | whom
";
/// The facts about each run, in this order.
const FACTS: [&str; 9] = ["date", "commit", "command", "length", "processor", "cores", "kernel", "stolen", "others"];
/// Shares of the processors' time, in per cent, above which times tell little.
const CALM: f64 = 5.0;

/// All that is kept: the last run of each benchmark.
#[derive(Debug, Default, PartialEq)]
pub struct Record {
    pub runs: Vec<Run>,
}

/// One run of one benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    pub benchmark: String,
    pub facts: Facts,
    /// Of whatever took part, by name.
    pub versions: BTreeMap<String, String>,
    pub figures: Vec<Figure>,
}

/// When, on what and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    pub date: String,
    pub commit: String,
    pub command: String,
    /// Shorter than it should be.
    pub is_quick: bool,
    pub processor: String,
    pub cores: u32,
    pub kernel: String,
    /// The share of the processors that other virtual machines took meanwhile, in per cent.
    pub stolen: f64,
    /// The share that other programs took, in per cent.
    pub others: f64,
}

/// One number.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub language: String,
    pub case: String,
    pub measure: String,
    pub unit: String,
    pub who: String,
    pub value: f64,
    pub beside: Option<Beside>,
}

/// Measurements of the same case, made in turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Beside {
    /// How many times its cost: more is worse.
    pub ratio: f64,
    pub base: String,
}

impl Figure {
    /// Tells if one may be drawn under the other.
    pub fn goes_with(&self, other: &Figure) -> bool {
        let group = |figure: &Figure| {
            [&figure.language, &figure.case, &figure.measure, &figure.unit].map(|text| text.to_owned())
        };
        group(self) == group(other)
    }

    /// The others of its group are measured by this one.
    pub fn is_base(&self) -> bool {
        self.beside.as_ref().is_some_and(|beside| beside.base == self.who)
    }
}

impl Facts {
    /// Times mean something on this machine, and not only ratios of what ran in turns.
    pub fn are_calm(&self) -> bool {
        self.stolen + self.others <= CALM
    }
}

impl Record {
    pub fn read(text: &str) -> Result<Self> {
        let mut drafts: Vec<Draft<'_>> = Vec::new();
        for (number, line) in numbered(text) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                if drafts.iter().any(|draft| draft.benchmark == name) {
                    return Err(refused(number, &format!("`{name}` stands there twice")));
                }
                drafts.push(Draft { start: number, benchmark: name, ..Draft::default() });
            } else {
                let draft = drafts.last_mut();
                let draft =
                    draft.ok_or_else(|| refused(number, "it belongs to no benchmark: a `[name]` comes first"))?;
                draft.add(number, line)?;
            }
        }
        Ok(Self { runs: drafts.into_iter().map(Draft::finish).collect::<Result<_>>()? })
    }

    /// Puts a run in the place of an earlier one, in the order of `names`.
    pub fn keep(&mut self, run: Run, names: &[&str]) {
        self.runs.retain(|kept| kept.benchmark != run.benchmark);
        self.runs.push(run);
        self.runs.sort_by_key(|run| names.iter().position(|name| *name == run.benchmark));
    }

    pub fn of(&self, benchmark: &str) -> Option<&Run> {
        self.runs.iter().find(|run| run.benchmark == benchmark)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        for run in &self.runs {
            let facts = &run.facts;
            let length = if facts.is_quick { "quick" } else { "full" };
            let (cores, stolen) = (facts.cores.to_string(), format!("{:.1}", facts.stolen));
            let others = format!("{:.1}", facts.others);
            let texts = [
                &facts.date,
                &facts.commit,
                &facts.command,
                length,
                &facts.processor,
                &cores,
                &facts.kernel,
                &stolen,
                &others,
            ];
            writeln!(f, "\n[{}]", run.benchmark)?;
            for (name, text) in FACTS.iter().zip(texts) {
                writeln!(f, "{name}{SEPARATOR}{text}")?;
            }
            for (name, version) in &run.versions {
                writeln!(f, "version{SEPARATOR}{name}{SEPARATOR}{version}")?;
            }
            for figure in &run.figures {
                let (ratio, base) = match &figure.beside {
                    Some(beside) => (significant(beside.ratio, 3), beside.base.as_str()),
                    None => ("-".to_owned(), "-"),
                };
                let Figure { language, case, measure, unit, who, value, .. } = figure;
                let cells = ["figure", language, case, measure, unit, who, &significant(*value, 4), &ratio, base];
                writeln!(f, "{}", cells.join(SEPARATOR))?;
            }
        }
        Ok(())
    }
}

/// The output of programs: figures and versions, nothing else.
pub fn read_told(text: &str) -> Result<(BTreeMap<String, String>, Vec<Figure>)> {
    let mut draft = Draft::default();
    numbered(text).try_for_each(|(number, line)| draft.add(number, line))?;
    if let Some((name, (number, _))) = draft.facts.first_key_value() {
        return Err(refused(*number, &format!("`{name}` is not for programs to tell")));
    }
    check_bases(&draft.figures)?;
    Ok((draft.versions, draft.figures))
}

/// A run of which not all lines were read.
#[derive(Default)]
struct Draft<'a> {
    start: usize,
    benchmark: &'a str,
    /// With the line that each stands in.
    facts: BTreeMap<&'a str, (usize, &'a str)>,
    versions: BTreeMap<String, String>,
    figures: Vec<Figure>,
}

impl<'a> Draft<'a> {
    fn add(&mut self, number: usize, line: &'a str) -> Result {
        match read_line(line).map_err(|why| refused(number, &why))? {
            Line::Figure(figure) => self.figures.push(figure),
            Line::Version(name, version) => _ = self.versions.insert(name, version),
            Line::Fact(name, text) => {
                if self.facts.insert(name, (number, text)).is_some() {
                    return Err(refused(number, &format!("`{name}` stands there twice")));
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Run> {
        check_bases(&self.figures).map_err(|failure| refused(self.start, &failure.to_string()))?;
        let (number, length) = self.fact("length")?;
        let is_quick = match length {
            "quick" => true,
            "full" => false,
            other => return Err(refused(number, &format!("`{other}` is neither `quick` nor `full`"))),
        };
        let (number, cores) = self.fact("cores")?;
        let cores = cores.parse().map_err(|_| refused(number, &format!("`{cores}` is no number of cores")))?;
        let facts = Facts {
            date: self.text("date")?,
            commit: self.text("commit")?,
            command: self.text("command")?,
            is_quick,
            processor: self.text("processor")?,
            cores,
            kernel: self.text("kernel")?,
            stolen: self.share("stolen")?,
            others: self.share("others")?,
        };
        Ok(Run { benchmark: self.benchmark.to_owned(), facts, versions: self.versions, figures: self.figures })
    }

    fn fact(&self, name: &str) -> Result<(usize, &'a str)> {
        let known = self.facts.get(name).copied();
        known.ok_or_else(|| refused(self.start, &format!("`{}` does not say its `{name}`", self.benchmark)))
    }

    fn text(&self, name: &str) -> Result<String> {
        self.fact(name).map(|(_, text)| text.to_owned())
    }

    /// In per cent.
    fn share(&self, name: &str) -> Result<f64> {
        let (number, text) = self.fact(name)?;
        let share = number_of(text).map_err(|why| refused(number, &why))?;
        if share <= 100.0 { Ok(share) } else { Err(refused(number, &format!("{share} is more than 100 per cent"))) }
    }
}

enum Line<'a> {
    Fact(&'a str, &'a str),
    Version(String, String),
    Figure(Figure),
}

fn read_line(line: &str) -> std::result::Result<Line<'_>, String> {
    let cells: Vec<&str> = line.split(SEPARATOR).collect();
    if cells.iter().any(|cell| cell.trim() != *cell || cell.is_empty() || cell.contains('|')) {
        return Err(format!("`{line}` has an empty cell, or one with spaces around it"));
    }
    match cells[..] {
        ["figure", language, case, measure, unit, who, value, ratio, base] => {
            let beside = match (ratio, base) {
                ("-", "-") => None,
                ("-", _) | (_, "-") => return Err("a ratio and its base come together".to_owned()),
                (ratio, base) => Some(Beside { ratio: number_of(ratio)?, base: base.to_owned() }),
            };
            let [language, case, measure, unit, who] = [language, case, measure, unit, who].map(str::to_owned);
            Ok(Line::Figure(Figure { language, case, measure, unit, who, value: number_of(value)?, beside }))
        }
        ["version", name, version] => Ok(Line::Version(name.to_owned(), version.to_owned())),
        [name, text] if FACTS.contains(&name) => Ok(Line::Fact(name, text)),
        _ => Err(format!("`{line}` is no line of figures")),
    }
}

fn number_of(text: &str) -> std::result::Result<f64, String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = text.parse::<f64>().ok().filter(|number| is_plain && number.is_finite());
    number.ok_or_else(|| format!("`{text}` is no number"))
}

/// A ratio is to something that was measured as well, and is 1 for that.
fn check_bases(figures: &[Figure]) -> Result {
    for figure in figures {
        let Some(Beside { base, .. }) = &figure.beside else { continue };
        let is_base = |other: &Figure| {
            figure.goes_with(other) && other.who == *base && other.beside.as_ref().is_some_and(|its| its.ratio == 1.0)
        };
        if !figures.iter().any(is_base) {
            let Figure { who, case, measure, .. } = figure;
            return Err(Failure::new(format!(
                "{who} ({case}, {measure}) is held against {base}, which has no 1 there"
            )));
        }
    }
    Ok(())
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn refused(number: usize, why: &str) -> Failure {
    Failure::new(format!("line {number} of the figures: {why}"))
}

/// So many digits that mean something, and no more of them after the point.
pub fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let before = value.abs().log10().floor() as i32 + 1;
    let after = usize::try_from(digits - before).unwrap_or(0);
    let mut text = String::new();
    let _ = write!(text, "{value:.after$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub const SAMPLE: &str = "\
# Kept by `cargo xtask bench --plot`; the pictures beside it are drawn from this.
# figure | language | case | measure | unit | who | value | how many times the cost of | whom

[redis]
date | 2026-01-02
commit | abc1234
command | cargo xtask bench --plot redis
length | full
processor | Some Processor @ 2 GHz
cores | 2
kernel | Linux 6.1
stolen | 1.5
others | 0.0
version | redis-server | 7.0.15
version | rustc | 1.95.0
figure | Rust | one client | p50 | us | bare commands | 81.25 | 1 | bare commands
figure | Rust | one client | p50 | us | leasehold | 97.5 | 1.2 | bare commands
figure | Rust | one client | p50 | us | rslock | 162.5 | 2 | bare commands
figure | Rust | 1000 leases | memory | bytes | leasehold | 1034 | - | -
";

    fn sample() -> Record {
        Record::read(SAMPLE).expect("the sample is fine")
    }

    fn told(text: &str) -> String {
        Record::read(text).expect_err("nonsense").to_string()
    }

    #[test]
    fn what_is_written_reads_again() {
        let record = sample();
        assert_eq!(record.to_string(), SAMPLE);
        assert_eq!(record.runs[0].figures[1].beside, Some(Beside { ratio: 1.2, base: "bare commands".to_owned() }));
        assert!(record.runs[0].facts.are_calm());
    }

    #[test]
    fn a_figure_without_a_peer_has_no_ratio() {
        let run = &sample().runs[0];
        assert_eq!(run.figures[3].beside, None);
        assert!(run.figures[0].is_base() && !run.figures[1].is_base() && !run.figures[3].is_base());
        assert!(run.figures[0].goes_with(&run.figures[2]) && !run.figures[0].goes_with(&run.figures[3]));
    }

    #[test]
    fn nonsense_is_refused_with_its_line() {
        let with = |from: &str, to: &str| told(&SAMPLE.replacen(from, to, 1));
        assert_eq!(with("97.5", "quick"), "line 17 of the figures: `quick` is no number");
        assert_eq!(with("97.5", "inf"), "line 17 of the figures: `inf` is no number");
        assert_eq!(with("97.5", "-1"), "line 17 of the figures: `-1` is no number");
        assert_eq!(with("| 1.2 |", "| - |"), "line 17 of the figures: a ratio and its base come together");
        assert!(with("| us | leasehold", "|  | leasehold").starts_with("line 17 of the figures: `figure"));
        assert!(with(" | 1.2 | bare commands", "").ends_with("is no line of figures"));
        assert_eq!(with("cores | 2", "cores | two"), "line 10 of the figures: `two` is no number of cores");
        assert_eq!(with("full", "long"), "line 8 of the figures: `long` is neither `quick` nor `full`");
        assert_eq!(with("1.5", "101"), "line 12 of the figures: 101 is more than 100 per cent");
        assert_eq!(with("kernel | Linux 6.1\n", ""), "line 4 of the figures: `redis` does not say its `kernel`");
        assert_eq!(with("cores | 2", "date | 2"), "line 10 of the figures: `date` stands there twice");
        assert!(with("[redis]\n", "").starts_with("line 4 of the figures: it belongs to no benchmark"));
        let (_, section) = SAMPLE.split_once("\n\n").expect("a head and a section");
        assert_eq!(told(&format!("{SAMPLE}\n{section}")), "line 21 of the figures: `redis` stands there twice");
    }

    #[test]
    fn a_ratio_needs_what_it_is_held_against() {
        let failure = told(&SAMPLE.replacen("| 81.25 | 1 |", "| 81.25 | 1.1 |", 1));
        assert!(
            failure.starts_with("line 4 of the figures: ") && failure.ends_with("which has no 1 there"),
            "{failure}"
        );
    }

    #[test]
    fn programs_tell_figures_and_versions_only() {
        let (versions, figures) =
            read_told("version | a | 1\nfigure | C | x | p50 | us | c | 3 | - | -\n").expect("both are fine");
        assert_eq!((versions["a"].as_str(), figures[0].value), ("1", 3.0));
        let failure = read_told("version | a | 1\ndate | 2026-01-02\n").expect_err("a date").to_string();
        assert_eq!(failure, "line 2 of the figures: `date` is not for programs to tell");
    }

    #[test]
    fn a_run_replaces_its_own_figures_only() {
        let mut record = sample();
        let redis = record.runs[0].clone();
        record.keep(Run { benchmark: "core".to_owned(), ..redis.clone() }, &["core", "redis"]);
        record.keep(Run { figures: Vec::new(), ..redis.clone() }, &["core", "redis"]);
        let names: Vec<_> = record.runs.iter().map(|run| (run.benchmark.as_str(), run.figures.len())).collect();
        assert_eq!(names, [("core", 4), ("redis", 0)]);
    }

    #[test]
    fn digits_that_mean_something() {
        let three = [0.0, 1.0, 1.2345, 0.012_345, 12.0, 123.45, 123_456.0].map(|value| significant(value, 3));
        assert_eq!(three, ["0", "1", "1.23", "0.0123", "12", "123", "123456"]);
        assert_eq!(significant(9.9996, 4), "10");
    }
}
