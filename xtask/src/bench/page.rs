//! `docs/benchmarks/README.md`: the pictures, with all figures and what they depend on.

use super::pictures::{OVERVIEW_TITLE, about};
use super::record::{Figure, Record, Run, significant};
use super::svg::{Picture, times};
use std::fmt::Write;

const HEAD: &str = "\
<!-- Made by `cargo xtask bench --plot`; do not edit. -->
# Benchmarks

`cargo xtask bench --plot` measures all of this anew, on your machine, and draws it; `cargo xtask bench --plot redis python`
only those two. The figures are kept in [figures.txt](figures.txt), from which `cargo xtask bench --plot --draw` draws again.

What is compared runs on one machine, in turns, so that whatever else the machine does hits all alike; only the hosts of the
component, and node redlock on a quorum, run after each other. A ratio says how many times the cost of its peer something
has: **less is better, and 1 is as good as the peer**. In Rust it is the median of the ratios of all turns, and so
need not be what the two values make, each of which is a median by itself. \"Time per pair, overall\" is a second
divided by the pairs of that second, where many are under way at once.

Each run says how much of the processors' time others had. Where that is much, times mean nothing elsewhere and little
there: look at the ratios, and do not take small differences for real. Servers run on the same machine, without persistence:
a network or a disk would hide most of what is seen here.
";

pub fn write(record: &Record, pictures: &[(String, Picture)]) -> String {
    let mut page = HEAD.to_owned();
    for (file, picture) in pictures {
        let run = file.strip_suffix(".svg").and_then(|name| record.of(name));
        let title = run.map_or(OVERVIEW_TITLE, |run| about(&run.benchmark).title);
        let _ = write!(page, "\n## {title}\n\n![{}]({file})\n", picture.in_words().replace(['[', ']'], ""));
        if let Some(run) = run {
            details(run, &mut page);
        }
    }
    page
}

fn details(run: &Run, page: &mut String) {
    let facts = &run.facts;
    let length = if facts.is_quick { ", a short run" } else { "" };
    let versions =
        run.versions.iter().map(|(name, version)| format!("{name} {version}")).collect::<Vec<_>>().join(", ");
    let trust = if facts.are_calm() { "" } else { ": only ratios count" };
    let _ = write!(
        page,
        "\n- `{}` on {}, at {}{length}\n- {} cores of {}, {}\n- {versions}\n- stolen from the machine meanwhile: {:.1} % of its \
         time; had by other programs: {:.1} %{trust}\n\n",
        facts.command, facts.date, facts.commit, facts.cores, facts.processor, facts.kernel, facts.stolen, facts.others
    );
    page.push_str("| | | who | | times the cost | of |\n|---|---|---|---:|---:|---|\n");
    for figure in &run.figures {
        let Figure { language, case, measure, unit, who, value, beside } = figure;
        let (ratio, base) = match beside {
            Some(beside) => (times(beside.ratio), beside.base.as_str()),
            None => Default::default(),
        };
        let unit = if unit == "1" { String::new() } else { format!(" {unit}") };
        let value = significant(*value, 4);
        let _ = writeln!(page, "| {language}, {case} | {measure} | {who} | {value}{unit} | {ratio} | {base} |");
    }
}

#[cfg(test)]
mod tests {
    use super::super::pictures;
    use super::super::record::tests::SAMPLE;
    use super::*;

    #[test]
    fn every_figure_has_a_row_and_every_picture_is_shown_with_words() {
        let record = Record::read(SAMPLE).expect("the sample is fine");
        let page = write(&record, &pictures::all(&record));
        assert!(page.contains("| Rust, one client | p50 | leasehold | 97.5 us | 1.2× | bare commands |\n"), "{page}");
        assert!(page.contains("| Rust, 1000 leases | memory | leasehold | 1034 bytes |  |  |\n"), "{page}");
        assert!(page.contains("leasehold 1.2×, rslock 2×. 1000 leases: memory 1034 bytes.](redis.svg)\n"), "{page}");
        assert!(page.contains("](overview.svg)"), "{page}");
        assert!(!page.contains("only ratios count"), "{page}");
        assert!(page.contains("- `cargo xtask bench --plot redis` on 2026-01-02, at abc1234\n"), "{page}");
    }
}
