//! Reports of fuzzers about their work.

/// The work of one target.
#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    pub target: String,
    pub seconds: u32,
    pub executions: u64,
    /// Inputs that each reach something of their own.
    pub corpus: u64,
    /// Edges that were taken.
    pub coverage: u64,
    /// The file with the input that something did not hold for; empty where there is none.
    pub finding: Option<String>,
    /// Its last words, where it found something.
    pub said: String,
}

impl Report {
    /// From all that libFuzzer wrote.
    pub fn read(target: &str, seconds: u32, succeeded: bool, log: &str) -> Report {
        let last = |name: &str| log.lines().rev().find_map(|line| after(line, name));
        let executions = last("stat::number_of_executed_units:").or_else(|| {
            log.lines().rev().find_map(|line| line.strip_prefix('#')?.split_whitespace().next()?.parse().ok())
        });
        let finding = (!succeeded).then(|| {
            let file =
                log.lines().rev().find_map(|line| line.split_once("Test unit written to ").map(|(_, path)| path));
            file.unwrap_or_default().trim().to_owned()
        });
        Report {
            target: target.to_owned(),
            seconds,
            executions: executions.unwrap_or(0),
            corpus: last("corp:").unwrap_or(0),
            coverage: last("cov:").unwrap_or(0),
            said: finding.as_ref().map_or_else(String::new, |_| what_went_wrong(log)),
            finding,
        }
    }
}

/// The number that stands behind a name.
fn after(line: &str, name: &str) -> Option<u64> {
    let (_, rest) = line.split_once(name)?;
    let rest = rest.trim_start();
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

/// From the panic, or the fuzzer's own error, on.
fn what_went_wrong(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let is_beginning = |line: &&str| line.contains("panicked at") || line.contains("ERROR: libFuzzer");
    let start = lines.iter().position(is_beginning).unwrap_or_else(|| lines.len().saturating_sub(12));
    lines[start..].iter().take(12).copied().collect::<Vec<_>>().join("\n")
}

/// For a person to read.
pub fn table(reports: &[Report]) -> String {
    let mut rows =
        vec![["target", "seconds", "executions", "exec/s", "corpus", "coverage", "findings"].map(str::to_owned)];
    rows.extend(reports.iter().map(|report| {
        [
            report.target.clone(),
            report.seconds.to_string(),
            report.executions.to_string(),
            (report.executions / u64::from(report.seconds.max(1))).to_string(),
            report.corpus.to_string(),
            report.coverage.to_string(),
            u8::from(report.finding.is_some()).to_string(),
        ]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let line = |row: &[String; 7]| {
        let cells = row.iter().enumerate().map(|(column, cell)| match column {
            0 => format!("  {cell:width$}", width = width(column)),
            _ => format!("  {cell:>width$}", width = width(column)),
        });
        cells.collect::<String>() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINE: &str = "INFO: seed corpus: files: 3\n#3\tINITED cov: 40 ft: 41 corp: 2/9b exec/s: 0 rss: 30Mb\n\
                        #900\tDONE   cov: 51 ft: 70 corp: 7/90b lim: 4 exec/s: 60 rss: 31Mb\nDone 900 runs in 15 second(s)\n\
                        stat::number_of_executed_units: 901\n";
    const FOUND: &str = "#8\tNEW    cov: 12 ft: 13 corp: 5/20b\nthread '<unnamed>' panicked at core/src/x.rs:1:2:\nno!\n\
                         ==1== ERROR: libFuzzer: deadly signal\nartifact_prefix='x-'; Test unit written to /t/x-crash-1\n";

    #[test]
    fn what_a_fuzzer_says_is_read() {
        let fine = Report::read("resp", 15, true, FINE);
        assert_eq!((fine.executions, fine.corpus, fine.coverage, fine.finding), (901, 7, 51, None));
        let found = Report::read("resp", 15, false, FOUND);
        assert_eq!((found.executions, found.corpus, found.coverage), (8, 5, 12));
        assert_eq!(found.finding.as_deref(), Some("/t/x-crash-1"));
        assert!(found.said.starts_with("thread '<unnamed>' panicked") && found.said.contains("no!"), "{}", found.said);
    }

    #[test]
    fn a_fuzzer_that_ends_without_a_word_is_a_finding() {
        let report = Report::read("resp", 15, false, "");
        assert_eq!((report.finding.as_deref(), report.executions), (Some(""), 0));
        assert!(table(&[report]).contains("resp"));
    }

    #[test]
    fn the_table_has_a_line_for_each() {
        let table = table(&[Report::read("resp", 15, true, FINE)]);
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["resp", "15", "901", "60", "7", "51", "0"]);
        assert_eq!(rows.len(), 2);
    }
}
