//! Figures for `cargo xtask bench --plot`, beside those that are printed: a line for each, in the file that it names.

use std::fs::OpenOptions;
use std::io::Write;

/// The owner of these figures, unless a peer is named.
const US: &str = "leasehold";
const FILE: &str = "LEASEHOLD_FIGURES";

/// A measurement: the circumstances, the measure, and the unit (`1` for a mere number). Where figures are compared,
/// more is worse, so a rate is recorded as the time for each of many.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a>(pub &'a str, pub &'a str, pub &'a str);

impl Case<'_> {
    /// Ours, which has no peer.
    pub fn alone(self, value: f64) {
        self.of(US, value);
    }

    /// Records a figure of a peer, without a ratio, where none would make sense.
    pub fn of(self, who: &str, value: f64) {
        write(&self.line(who, value, "-", "-"));
    }

    /// Records a figure that was measured by other means: with its ratio to the cost of `base`.
    pub fn beside(self, who: &str, value: f64, ratio: f64, base: &str) {
        write(&self.line(who, value, &ratio.to_string(), base));
    }

    /// All that were measured in turns: who, the value, and how many times the cost of the first one.
    pub fn in_turns(self, all: &[(&str, f64, f64)]) {
        let Some((base, ..)) = all.first() else { return };
        all.iter().for_each(|(who, value, ratio)| self.beside(who, *value, *ratio, base));
    }

    /// Records as [`Case::in_turns`], with ratios that follow from the values.
    pub fn side_by_side(self, all: &[(&str, f64)]) {
        let Some((_, base)) = all.first() else { return };
        self.in_turns(&all.iter().map(|(who, value)| (*who, *value, value / base)).collect::<Vec<_>>());
    }

    fn line(self, who: &str, value: f64, ratio: &str, base: &str) -> String {
        let Self(name, measure, unit) = self;
        format!("figure | Rust | {name} | {measure} | {unit} | {who} | {value} | {ratio} | {base}\n")
    }
}

/// Records the version of a participant.
pub fn version(name: &str, version: &str) {
    write(&format!("version | {name} | {version}\n"));
}

fn write(line: &str) {
    if let Some(path) = std::env::var_os(FILE) {
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let told = file.and_then(|mut file| file.write_all(line.as_bytes()));
        told.unwrap_or_else(|error| panic!("cannot tell figures to {}: {error}", path.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_line_has_nine_cells() {
        let case = Case("one client", "p50", "us");
        assert_eq!(
            case.line("rslock", 162.5, "2", "bare commands"),
            "figure | Rust | one client | p50 | us | rslock | 162.5 | 2 | bare commands\n"
        );
        assert_eq!(
            case.line(US, 1e-7, "-", "-"),
            "figure | Rust | one client | p50 | us | leasehold | 0.0000001 | - | -\n"
        );
    }
}
