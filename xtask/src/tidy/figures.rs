//! Every figure in a page that users read has a source.
//!
//! A number that `numbers.rs` calls a figure is a setting if the page of defaults has it; any other needs a comment before its
//! paragraph, list or table, `<!-- source: ... -->`, in one line or with a line for each source. A source is one of these:
//!
//! - rows of `figures.txt`, as `redis | one client, async | p50`, perhaps with a library, `| leasehold`, or with two of which the
//!   quotient is meant, `| leasehold / rslock`. Figures below must be these values or ratios, rounded;
//! - a calculation, as `3600 / 8.75 + 2`, of which a figure below is the result, rounded;
//! - a file of the repository that has the very number, as `docs/results.md` or `client/src/cas.rs`;
//! - `cargo xtask ...`, a command that measures the other figures below;
//! - `https://...`, where somebody else says so.
//!
//! A figure within a link needs no comment if the page behind the link has it.

use super::Finding;
use super::numbers::{Kind, Number, numbers, unit};

pub const FIGURES: &str = "docs/benchmarks/figures.txt";
pub const DEFAULTS: &str = "docs/defaults.md";
const CHORES: &str = "xtask/src/main.rs";
const BENCHMARKS: &str = "testing/reports/src/benchmarks.rs";
const RULE: &str = "figures-have-sources";
const MARK: &str = "<!-- source:";
const END: &str = "-->";

/// Pages that are sources themselves, or made by chores, or say what was so once, or are for those who change leasehold.
const OTHERS: [&str; 10] = [
    "docs/benchmarks/",
    "docs/decisions/",
    "docs/results.md",
    "docs/conformance.md",
    "docs/deliberate-bugs.md",
    "testing/",
    "core/vectors/",
    "wit/",
    ".github/",
    "CONTRIBUTING.md",
];

/// Tells if this rule reads the page.
pub fn is_page(path: &str) -> bool {
    !OTHERS.iter().any(|other| path.starts_with(other))
}

/// All that is known without a comment.
pub struct Known {
    rows: Vec<Row>,
    /// Numbers of the page of defaults.
    settings: Vec<Number>,
}

/// A line of `figures.txt`.
struct Row {
    /// The benchmark, the case and the measure.
    name: [String; 3],
    who: String,
    kind: Kind,
    /// In seconds, bytes or ones.
    value: f64,
    /// How many times the cost of its base.
    ratio: Option<f64>,
}

impl Known {
    pub fn new(figures: &str, defaults: &str) -> Self {
        let (mut rows, mut benchmark) = (Vec::new(), "");
        for line in figures.lines() {
            let cells: Vec<&str> = line.split(" | ").collect();
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                benchmark = name;
            } else if let ["figure", _, case, measure, of, who, value, ratio, _] = cells[..] {
                let ((kind, scale), value) = (unit(of), value.parse::<f64>().unwrap_or(f64::NAN));
                let name = [benchmark, case, measure].map(str::to_owned);
                rows.push(Row { name, who: who.to_owned(), kind, value: value * scale, ratio: ratio.parse().ok() });
            }
        }
        let settings = blocks(defaults).iter().flat_map(|block| numbers(&block.text)).collect();
        Self { rows, settings }
    }

    fn is_setting(&self, number: &Number) -> bool {
        let is_same = |other: &&Number| (other.value() - number.value()).abs() <= number.value() * 1e-9;
        let of_kind = self.settings.iter().filter(|setting| setting.kind == number.kind);
        matches!(number.kind, Kind::Time | Kind::Size | Kind::Share) && of_kind.clone().any(|other| is_same(&other))
    }

    /// The amounts that a source of rows stands for.
    fn amounts(&self, source: &str) -> Vec<(Kind, f64)> {
        let cells: Vec<&str> = source.split('|').map(str::trim).collect();
        let [benchmark, case, measure, ref who @ ..] = cells[..] else { return Vec::new() };
        let rows = || self.rows.iter().filter(move |row| row.name == [benchmark, case, measure]);
        let of = |name: &str| rows().find(|row| row.who == name);
        match *who {
            [] => rows().flat_map(Row::amounts).collect(),
            [who] => match who.split_once(" / ") {
                None => of(who).map(Row::amounts).unwrap_or_default(),
                Some((ours, theirs)) => of(ours)
                    .zip(of(theirs))
                    .map(|(ours, theirs)| (Kind::Times, ours.over(theirs)))
                    .into_iter()
                    .collect(),
            },
            _ => Vec::new(),
        }
    }
}

impl Row {
    fn amounts(&self) -> Vec<(Kind, f64)> {
        let ratio = self.ratio.filter(|ratio| *ratio != 1.0).map(|ratio| (Kind::Times, ratio));
        [Some((self.kind, self.value)), ratio].into_iter().flatten().collect()
    }

    /// Through the base that both were held against in turns, if there is one.
    fn over(&self, other: &Self) -> f64 {
        self.ratio.zip(other.ratio).map_or(self.value / other.value, |(ours, theirs)| ours / theirs)
    }
}

/// A paragraph, a list or a table, without code and the targets of links.
#[derive(Default)]
struct Block<'a> {
    /// Where its text begins, from 1.
    line: usize,
    text: String,
    /// Texts of links as parts of `text`, with what they lead to.
    links: Vec<(usize, usize, String)>,
    /// The sources before it, with their lines.
    sources: Vec<(usize, &'a str)>,
}

/// A line of a comment.
enum Source {
    /// Any of these.
    Amounts(Vec<(Kind, f64)>),
    /// A result, in the unit of the figure.
    Result(f64),
    File(String),
    /// For all figures that no other source has.
    Rest,
}

impl Source {
    fn has(&self, number: &Number) -> bool {
        match self {
            Self::Amounts(amounts) => amounts.iter().any(|(kind, exact)| number.is_rounded(*kind, *exact)),
            Self::Result(exact) => number.rounds(*exact),
            // Rules of alerts have shares as parts of one.
            Self::File(text) => {
                has_amount(text, number.amount) || (number.kind == Kind::Share && has_amount(text, number.value()))
            }
            Self::Rest => false,
        }
    }
}

pub fn check(page: &str, text: &str, known: &Known, read: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |line, message| findings.push(Finding { path: page.to_owned(), line, rule: RULE, message });
    for block in blocks(text) {
        let mut sources = Vec::new();
        for (line, name) in &block.sources {
            match source(name, known, &read) {
                Ok(source) => sources.push((*line, *name, source, false)),
                Err(message) => add(*line, message),
            }
        }
        for number in numbers(&block.text) {
            let mut is_known =
                !number.is_figure || known.is_setting(&number) || is_linked(page, &block, &number, &read);
            for (.., source, is_used) in &mut sources {
                let has = source.has(&number);
                // Small numbers that are no figures are everywhere.
                let is_used_here = has && (number.is_figure || number.amount >= 10.0);
                (is_known, *is_used) = (is_known || has, *is_used || is_used_here);
            }
            if !is_known {
                for (.., is_used) in sources.iter_mut().filter(|(.., source, _)| matches!(source, Source::Rest)) {
                    (is_known, *is_used) = (true, true);
                }
            }
            if !is_known {
                let line = block.line + block.text[..number.start].matches('\n').count();
                let shown = block.text[number.start..number.end].split_whitespace().collect::<Vec<_>>().join(" ");
                let message =
                    format!("`{shown}` has no source; delete it, or name one before the paragraph: `{MARK} ... {END}`");
                add(line, message);
            }
        }
        for (line, name, source, _) in sources.iter().filter(|(.., is_used)| !is_used) {
            let shown = |(_, value): &(Kind, f64)| format!("{value:.4}");
            let is = match source {
                Source::Amounts(amounts) => {
                    format!("is {}", amounts.iter().map(shown).collect::<Vec<_>>().join(" or "))
                }
                Source::Result(value) => format!("is {value:.4}"),
                Source::File(_) | Source::Rest => "is a source".to_owned(),
            };
            add(*line, format!("`{name}` {is}, and no figure below is that"));
        }
    }
    findings
}

/// Reads a line of a comment, or says what is wrong with it.
fn source(name: &str, known: &Known, read: impl Fn(&str) -> Option<String>) -> Result<Source, String> {
    if name.contains('|') {
        let amounts = known.amounts(name);
        let missing = || format!("`{name}` is no row of {FIGURES}: benchmark | case | measure [| who [/ whom]]");
        return if amounts.is_empty() { Err(missing()) } else { Ok(Source::Amounts(amounts)) };
    }
    if let Some(chore) = name.strip_prefix("cargo xtask ") {
        let words: Vec<&str> = chore.split_whitespace().take_while(|word| !word.starts_with('-')).collect();
        let (chores, benchmarks) = (read(CHORES).unwrap_or_default(), read(BENCHMARKS).unwrap_or_default());
        let is_chore = words.first().is_some_and(|word| chores.contains(&format!("Some(\"{word}\")")));
        let is_measured = words.first() != Some(&"bench")
            || words.iter().skip(1).all(|word| benchmarks.contains(&format!("\"{word}\"")));
        return if is_chore && is_measured { Ok(Source::Rest) } else { Err(format!("there is no `{name}`")) };
    }
    if name.starts_with("https://") {
        return Ok(Source::Rest);
    }
    if let Some(result) = result(name) {
        return Ok(Source::Result(result));
    }
    let path = name.split('#').next().unwrap_or(name);
    read(path)
        .map(Source::File)
        .ok_or_else(|| format!("`{path}` does not exist; paths begin at the root of the repository"))
}

/// The result of a sum of products.
fn result(text: &str) -> Option<f64> {
    let product = |text: &str| {
        let mut factors = text.split('*').map(|factor| {
            let mut parts = factor.split('/').map(|part| part.trim().parse::<f64>().ok());
            let first = parts.next()??;
            parts.try_fold(first, |result, part| Some(result / part?))
        });
        factors.try_fold(1.0, |result, factor| Some(result * factor?))
    };
    let is_sum = text.contains(' ') && text.chars().all(|c| c.is_ascii_digit() || " .+-*/".contains(c));
    let mut terms = text.split(" + ").map(|term| {
        let mut parts = term.split(" - ").map(product);
        let first = parts.next()??;
        parts.try_fold(first, |result, part| Some(result - part?))
    });
    if is_sum { terms.try_fold(0.0, |result, term| Some(result + term?)) } else { None }
}

/// Tells if a text has a number as it is written on a page, but for the way in which thousands are grouped.
fn has_amount(text: &str, amount: f64) -> bool {
    let words = text.split(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ',' | '_'));
    let mut found = words.map(|word| word.trim_matches(['.', ',', '_']).replace([',', '_'], ""));
    found.any(|word| word.parse().is_ok_and(|number: f64| (number - amount).abs() <= amount * 1e-9))
}

fn is_linked(page: &str, block: &Block<'_>, number: &Number, read: impl Fn(&str) -> Option<String>) -> bool {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut links = block.links.iter().filter(|(start, end, _)| *start <= number.start && number.end <= *end);
    links.any(|(.., target)| {
        let path = target.split('#').next().unwrap_or(target);
        let path = if folder.is_empty() { path.to_owned() } else { format!("{folder}/{path}") };
        read(&path).is_some_and(|text| has_amount(&text, number.amount))
    })
}

/// The parts of a page between blank lines, comments and blocks of code.
fn blocks(page: &str) -> Vec<Block<'_>> {
    let (mut found, mut block, mut raw) = (Vec::new(), Block::default(), String::new());
    let (mut in_code, mut comment) = (false, None);
    for (line, number) in page.lines().zip(1..).chain([("", 0)]) {
        let trimmed = line.trim();
        let is_fence = trimmed.starts_with("```");
        if let Some(rest) = trimmed.strip_prefix(MARK).filter(|_| !in_code) {
            comment = Some((true, rest));
        } else if trimmed.starts_with("<!--") && !in_code {
            comment = Some((false, trimmed));
        } else if let Some((_, rest)) = &mut comment {
            *rest = trimmed;
        }
        if (comment.is_some() || is_fence || in_code || trimmed.is_empty()) && !raw.is_empty() {
            finish(&mut block, &raw);
            raw.clear();
            found.push(std::mem::take(&mut block));
        }
        if let Some((is_source, rest)) = comment {
            let name = rest.strip_suffix(END).unwrap_or(rest).trim();
            if is_source && !name.is_empty() {
                block.sources.push((number, name));
            }
            if rest.ends_with(END) {
                comment = None;
            }
        } else if is_fence {
            in_code = !in_code;
        } else if !in_code && !trimmed.is_empty() {
            if raw.is_empty() {
                block.line = number;
            }
            raw += line;
            raw.push('\n');
        }
    }
    if !block.sources.is_empty() {
        found.push(block);
    }
    found
}

/// Leaves out code and the targets of links, and keeps all ends of lines.
fn finish(block: &mut Block<'_>, raw: &str) {
    let (mut in_code, mut open, mut rest) = (false, Vec::new(), raw);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '`' => in_code = !in_code,
            _ if in_code && c != '\n' => continue,
            '[' => open.push(block.text.len()),
            ']' => {
                let target = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
                if let (Some(start), Some((target, after))) = (open.pop(), target) {
                    block.links.push((start, block.text.len(), target.to_owned()));
                    rest = after;
                }
            }
            _ => {}
        }
        block.text.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "\
[node]
date | 2026-01-02
figure | Node | one at a time | p50 | us | by hand | 60 | 1 | by hand
figure | Node | one at a time | p50 | us | redlock | 78.62 | 1.3 | by hand
figure | Node | one at a time | p50 | us | leasehold | 143 | 2.37 | by hand
figure | Node | installed | size | MB | leasehold | 8.835 | 7.65 | redlock
";

    fn flagged(text: &str) -> Vec<String> {
        let known = Known::new(RECORD, "| `ttl` | 30 s | 100 ms to 24 h |\n");
        let read = |path: &str| match path {
            CHORES => Some("Some(\"bench\") => Some(\"chaos\") =>".to_owned()),
            BENCHMARKS => Some("\"node\",".to_owned()),
            "client/src/cas.rs" => Some("MAX: usize = 380 << 10; PAGE: u32 = 1_250".to_owned()),
            "docs/cost.md" => Some("about 411 writes".to_owned()),
            "docs/alerts.yml" => Some("expr: failures > 0.05".to_owned()),
            _ => None,
        };
        let findings = check("docs/page.md", text, &known, read);
        let start = |message: &str| message.split(';').next().unwrap_or_default().to_owned();
        findings.into_iter().map(|found| format!("{}: {}", found.line, start(&found.message))).collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn a_figure_without_a_source_is_flagged_with_its_line() {
        assert_eq!(flagged("# A\n\nIt is fast:\nit takes 143 us.\n"), ["4: `143 us` has no source"]);
        assert_eq!(flagged("It takes `143 us`.\n\n```text\n143 us\n```\n\n<!-- 143 us -->\n"), NONE);
        assert_eq!(flagged("A ttl of 30 s, 0.1 s or 100 ms, and a wait of 7 s.\n"), NONE);
    }

    #[test]
    fn rows_of_the_benchmarks_are_a_source_while_they_say_the_same() {
        let ratio = "<!-- source: node | one at a time | p50 | leasehold / redlock -->\n";
        assert_eq!(flagged(&format!("{ratio}It takes 1.8 times as long.\n")), NONE);
        let stale = [
            "2: `1.9 times` has no source",
            "1: `node | one at a time | p50 | leasehold / redlock` is 1.8231, and no figure below is that",
        ];
        assert_eq!(flagged(&format!("{ratio}It takes 1.9 times as long.\n")), stale);
        let several = "<!-- source:\nnode | one at a time | p50\nnode | installed | size | leasehold\n-->\n";
        assert_eq!(flagged(&format!("{several}| 2.4 | 1.3 | 0.143 ms | 8.8 MB |\n")), NONE);
        assert_eq!(flagged(&format!("{several}| 2.5 | 8.8 MB |\n")).len(), 2);
    }

    #[test]
    fn a_row_that_is_not_there_is_flagged() {
        for row in [
            "node | two at a time | p50",
            "node | one at a time | p50 | rslock",
            "node | p50",
            "node | one at a time | p50 | leasehold / rslock",
        ] {
            let found = flagged(&format!("<!-- source: {row} -->\nFine.\n"));
            assert!(found.len() == 1 && found[0].contains("is no row of"), "{found:?}");
        }
    }

    #[test]
    fn a_calculation_has_to_come_out() {
        assert_eq!(flagged("<!-- source: 3600 / 8.75 + 2 -->\nThat is 413 writes.\n"), NONE);
        assert_eq!(flagged("<!-- source: 3600 / 8.75 * 2 - 1 -->\nThat is 822 writes.\n"), NONE);
        assert_eq!(flagged("<!-- source: 3600 / 8.75 + 2 -->\nThat is 470 writes.\n").len(), 2);
    }

    #[test]
    fn a_file_has_to_have_the_number() {
        assert_eq!(flagged("<!-- source: client/src/cas.rs -->\nAt most 380 KiB, in 1,250 reads.\n"), NONE);
        assert_eq!(flagged("<!-- source: client/src/cas.rs -->\nAt most 38 KiB.\n").len(), 2);
        assert_eq!(
            flagged("<!-- source: client/src/gone.rs -->\nAt most 30 s.\n"),
            ["1: `client/src/gone.rs` does not exist"]
        );
        assert_eq!(flagged("<!-- source: docs/alerts.yml -->\nWarns at 5 %.\n"), NONE);
        assert_eq!(flagged("It takes [411 writes](cost.md#a) and 30 s.\n"), NONE);
        assert_eq!(flagged("It takes [413 writes](cost.md#a), [411 writes](gone.md), 411 writes.\n").len(), 3);
    }

    #[test]
    fn a_command_has_to_exist_and_to_be_needed() {
        for command in ["cargo xtask bench node --quick", "cargo xtask chaos", "https://example.com/prices"] {
            assert_eq!(flagged(&format!("<!-- source: {command} -->\nIt takes 7 ms.\n")), NONE, "{command}");
            assert_eq!(flagged(&format!("<!-- source: {command} -->\nIt takes 7 s.\n")).len(), 1, "{command}");
        }
        for command in ["cargo xtask bench gone", "cargo xtask gone"] {
            assert_eq!(
                flagged(&format!("<!-- source: {command} -->\nFine.\n")),
                [format!("1: there is no `{command}`")]
            );
        }
    }

    #[test]
    fn a_source_is_for_what_follows_it() {
        let source = "<!-- source: cargo xtask bench node -->";
        assert_eq!(flagged(&format!("{source}\n\nIt takes 7 ms.\n")), NONE);
        assert_eq!(flagged(&format!("{source}\nIt takes 7 ms.\n\nIt takes 7 ms.\n")), ["4: `7 ms` has no source"]);
        assert_eq!(flagged(&format!("It takes 7 ms.\n{source}\n")).len(), 2);
    }
}
