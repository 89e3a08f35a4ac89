//! `docs/benchmarks/README.md`: the pictures, with all figures, machines and versions.

use crate::aims;
use crate::pictures::{OVERVIEW_TITLE, about, with_unit};
use crate::record::{Figure, Record, Run, significant};
use crate::svg::{Picture, times};
use std::fmt::Write;

const HEAD: &str = "\
<!-- Made by `cargo xtask bench --plot`; do not edit. -->
# Benchmarks

`cargo xtask bench --plot` repeats these measurements on your machine, and draws them; `cargo xtask bench --plot redis python`
only those two. [figures.txt](figures.txt) has the figures, and `cargo xtask bench --plot --draw` draws them again.

Competitors run on one machine, in turns, so that other load affects all alike; only the hosts of the component
run after each other. A ratio is the cost divided by that of the base:
**less is better, and 1 is as good as the base**. In Rust it is the median of the ratios of all turns. So it may
differ from the ratio of the two values, which are medians themselves. \"Time per pair, overall\" is a second
divided by the pairs in that second, with many pairs at once.

Each run states how much processor time other programs used. If that is much, compare only ratios, and ignore
small differences. Servers run on the same machine, without persistence: a network or a disk would hide most of
the differences.
";

const AIMS: &str = "\
What acquire and release shall cost, and what they cost now: as multiples of the peer's, times in µs, sizes in MB.
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
    let _ = write!(page, "\n## Aims\n\n{AIMS}\n{}", aims::table(record));
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
         time; used by other programs: {:.1} %{trust}\n\n",
        facts.command, facts.date, facts.commit, facts.cores, facts.processor, facts.kernel, facts.stolen, facts.others
    );
    page.push_str("| | | library | | times the cost | of |\n|---|---|---|---:|---:|---|\n");
    for figure in &run.figures {
        let Figure { language, case, measure, unit, who, value, beside } = figure;
        let (ratio, base) = match beside {
            Some(beside) => (times(beside.ratio), beside.base.as_str()),
            None => Default::default(),
        };
        let value = with_unit(&significant(*value, 4), unit);
        let _ = writeln!(page, "| {language}, {case} | {measure} | {who} | {value} | {ratio} | {base} |");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pictures;
    use crate::record::tests::SAMPLE;

    #[test]
    fn every_figure_has_a_row_and_every_picture_is_shown_with_words() {
        let record = Record::read(SAMPLE).expect("the sample is fine");
        let page = write(&record, &pictures::all(&record));
        assert!(page.contains("| Rust, one client | p50 | leasehold | 97.5 µs | 1.2× | bare commands |\n"), "{page}");
        assert!(page.contains("| Rust, 1000 leases | memory | leasehold | 1034 bytes |  |  |\n"), "{page}");
        assert!(
            page.contains("leasehold 1.2×, 97.5 µs, rslock 2×, 162 µs. 1000 leases: memory 1034 bytes.](redis.svg)\n"),
            "{page}"
        );
        assert!(page.contains("](overview.svg)"), "{page}");
        assert!(!page.contains("only ratios count"), "{page}");
        assert!(page.contains("- `cargo xtask bench --plot redis` on 2026-01-02, at abc1234\n"), "{page}");
    }
}
