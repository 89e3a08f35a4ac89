//! Numbers in prose with their units, and which of them are figures.
//!
//! A figure is an amount that somebody measured or calculated: a time below a second or with a fraction, a size in kilobytes or
//! more, a share, a comparison ("1.8 times as long"), a price, a rate. Whole seconds and longer, bytes and small counts are
//! what people set or what the code counts.

/// The kind of things that a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Time,
    Size,
    Share,
    Times,
    Money,
    /// Operations of a store.
    Count,
    /// Without a unit.
    Bare,
}

use Kind::{Bare, Count, Money, Share, Size, Time, Times};

/// Units with their amounts of seconds, bytes or one.
const UNITS: [(&str, Kind, f64); 37] = [
    ("ns", Time, 1e-9),
    ("us", Time, 1e-6),
    ("µs", Time, 1e-6),
    ("ms", Time, 1e-3),
    ("milliseconds", Time, 1e-3),
    ("s", Time, 1.0),
    ("second", Time, 1.0),
    ("seconds", Time, 1.0),
    ("min", Time, 60.0),
    ("minute", Time, 60.0),
    ("minutes", Time, 60.0),
    ("h", Time, 3_600.0),
    ("hour", Time, 3_600.0),
    ("hours", Time, 3_600.0),
    ("byte", Size, 1.0),
    ("bytes", Size, 1.0),
    ("KB", Size, 1e3),
    ("KiB", Size, 1_024.0),
    ("MB", Size, 1e6),
    ("MiB", Size, 1_048_576.0),
    ("GB", Size, 1e9),
    ("GiB", Size, 1_073_741_824.0),
    ("%", Share, 0.01),
    ("×", Times, 1.0),
    ("times", Times, 1.0),
    ("write", Count, 1.0),
    ("writes", Count, 1.0),
    ("read", Count, 1.0),
    ("reads", Count, 1.0),
    ("request", Count, 1.0),
    ("requests", Count, 1.0),
    ("unit", Count, 1.0),
    ("units", Count, 1.0),
    ("commands", Count, 1.0),
    ("pairs", Count, 1.0),
    ("locks/s", Count, 1.0),
    ("pairs/s", Count, 1.0),
];
/// Before "times".
const WORDS: [(&str, f64); 10] = [
    ("three", 3.0),
    ("four", 4.0),
    ("five", 5.0),
    ("six", 6.0),
    ("seven", 7.0),
    ("eight", 8.0),
    ("nine", 9.0),
    ("ten", 10.0),
    ("twelve", 12.0),
    ("twenty", 20.0),
];
/// After "times" where something is compared; elsewhere it was only repeated.
const COMPARED: [&str; 10] = ["as", "the", "its", "that", "those", "faster", "slower", "longer", "less", "more"];
/// Up to here, counts of operations tell how something works.
const FEW: f64 = 99.0;

/// A number, where it stands, and how exactly it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// Of the text, in bytes.
    pub start: usize,
    pub end: usize,
    pub kind: Kind,
    /// As written, in its unit.
    pub amount: f64,
    /// The weight of its last digit.
    step: f64,
    scale: f64,
    /// Somebody has measured or calculated it.
    pub is_figure: bool,
}

impl Number {
    /// In seconds, bytes or ones.
    pub fn value(&self) -> f64 {
        self.amount * self.scale
    }

    /// Tells if this is `exact`, which is in the unit of this number, rounded to the digits that are written here.
    pub fn rounds(&self, exact: f64) -> bool {
        let is_near = |other: f64| (other - self.amount).abs() <= self.amount * 1e-6;
        let two_digits = 10_f64.powf(exact.abs().log10().floor() - 1.0);
        (exact - self.amount).abs() <= self.step * 0.500_001
            || (self.step >= 1.0 && is_near((exact / two_digits).round() * two_digits))
    }

    /// Tells if this is an amount of that kind, in seconds, bytes or ones, rounded.
    pub fn is_rounded(&self, kind: Kind, exact: f64) -> bool {
        let dimension = |kind| match kind {
            Time | Size => Some(kind),
            _ => None,
        };
        (dimension(self.kind) == dimension(kind) || self.kind == Bare) && self.rounds(exact / self.scale)
    }
}

/// The kind of a unit and its amount of seconds, bytes or ones; numbers in other units count as bare.
pub fn unit(name: &str) -> (Kind, f64) {
    UNITS.iter().find(|(unit, ..)| *unit == name).map_or((Bare, 1.0), |(_, kind, scale)| (*kind, *scale))
}

/// Every number of a text that is no part of a word, a version or a date.
pub fn numbers(text: &str) -> Vec<Number> {
    let mut found: Vec<Number> = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let word: usize = rest.chars().take_while(|c| is_of_word(*c)).map(char::len_utf8).sum();
        if word == 0 {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        }
        let (before, after) = (&text[..at], &rest[word..]);
        found.extend(number(before, &rest[..word], after));
        at += word;
    }
    share_units(text, &mut found);
    found
}

/// Tells if a character may be part of a number or a version.
const fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | ',' | '_' | '-' | '/' | '^' | '#' | 'µ' | '×' | '%' | '$')
}

/// Reads a word with what stands before and after it.
fn number(before: &str, whole: &str, after: &str) -> Option<Number> {
    let word = whole.trim_end_matches(['.', ',', '-', '/']);
    let (is_money, word) = word.strip_prefix('$').map_or((false, word), |rest| (true, rest));
    let start = before.len();
    let digits = word.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(word.len());
    let (digits, suffix) = word.split_at(digits);
    let named = WORDS.iter().find(|(name, _)| *name == word).map(|(_, amount)| *amount);
    let (amount, step) = match named {
        Some(amount) if first_word(after) == "times" => (amount, 1.0),
        _ => read(digits)?,
    };
    let mut end = start + usize::from(is_money) + word.len();
    // A unit stands at the number, or after one space.
    let next = if suffix.is_empty() || named.is_some() { first_word(after) } else { suffix };
    let (mut kind, scale) = unit(next);
    let is_rate = next.ends_with("/s");
    if !suffix.is_empty() && named.is_none() && kind == Bare && !is_rate {
        return None;
    }
    if word.len() < whole.len() {
        // What follows belongs to the next part of the sentence.
        kind = if suffix.is_empty() { Bare } else { kind };
    } else if (suffix.is_empty() || named.is_some()) && kind != Bare {
        end += after.find(next).unwrap_or(0) + next.len();
    }
    let scale = if kind == Bare { 1.0 } else { scale };
    let has_fraction = step < 1.0;
    let then = first_word(after.trim_start().strip_prefix(next).unwrap_or_default());
    let is_cell = before.trim_end_matches(' ').ends_with('|') && after.trim_start_matches(' ').starts_with(['|', '(']);
    if is_money {
        kind = Money;
    } else if is_rate {
        kind = Count;
    }
    let is_figure = match kind {
        Time => scale < 1.0 || has_fraction || after.trim_start().starts_with("s of CPU"),
        Size => scale > 1.0,
        Share | Money => true,
        Times => has_fraction || next == "×" || COMPARED.contains(&then),
        Count => amount > FEW || is_rate,
        Bare => has_fraction && is_cell,
    };
    Some(Number { start, end, kind, amount, step, scale, is_figure })
}

/// A number, and the weight of its last digit.
fn read(digits: &str) -> Option<(f64, f64)> {
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(whole, rest)| (whole, Some(rest)));
    let groups: Vec<&str> = whole.split(',').collect();
    let is_grouped = groups.iter().skip(1).all(|group| group.len() == 3);
    let is_plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_grouped || !groups.iter().all(|group| is_plain(group)) || !fraction.is_none_or(is_plain) {
        return None;
    }
    let places = fraction.map_or(0, |fraction| i32::try_from(fraction.len()).unwrap_or(0));
    Some((digits.replace(',', "").parse().ok()?, 0.1_f64.powi(places)))
}

/// The next word of the same paragraph.
fn first_word(text: &str) -> &str {
    let text = text.strip_prefix([' ', '\n']).unwrap_or(text).trim_start_matches(' ');
    let end =
        text.find(|c: char| !c.is_ascii_alphabetic() && !matches!(c, '%' | '×' | '/' | 'µ')).unwrap_or(text.len());
    &text[..end]
}

/// In "10 to 50 ms", both are milliseconds.
fn share_units(text: &str, found: &mut [Number]) {
    for at in (1..found.len()).rev() {
        let (first, last) = (found[at - 1].clone(), found[at].clone());
        let is_range = matches!(text[first.end..last.start].trim(), "to" | "or");
        if is_range && first.kind == Bare && last.kind != Money {
            let is_figure = last.is_figure || (last.kind == Time && first.step < 1.0);
            found[at - 1] = Number { kind: last.kind, scale: last.scale, is_figure, ..first };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, which: impl Fn(&Number) -> bool) -> Vec<String> {
        numbers(text).into_iter().filter(which).map(|found| text[found.start..found.end].to_owned()).collect()
    }

    fn figures(text: &str) -> Vec<String> {
        shown(text, |number| number.is_figure)
    }

    #[test]
    fn what_is_measured_is_a_figure() {
        let text = "It takes 0.16 ms, or 1.8 times as long; 335 KB of 1.2 MB, 5% of 2.6 s, 3× that, for $0.0003 and 411 writes.";
        let found = ["0.16 ms", "1.8 times", "335 KB", "1.2 MB", "5%", "2.6 s", "3×", "$0.0003", "411 writes"];
        assert_eq!(figures(text), found);
        assert_eq!(figures("About 45 s of CPU, and 33,000 pairs/s."), ["45 s", "33,000 pairs/s"]);
        assert_eq!(figures("It is six times as fast, and three times the size."), ["six times", "three times"]);
        assert_eq!(figures("| a | 1.72 | 4.50 (much) |"), ["1.72", "4.50"]);
        assert_eq!(figures("It takes 335\nKB."), ["335\nKB"]);
    }

    #[test]
    fn what_is_set_or_counted_is_none() {
        let text =
            "A ttl of 30 s, 24 h, 2 requests, 16 bytes; tries 10 times, or three times. Wait for 5. A ttl of 1,000 s.";
        assert_eq!(figures(text), [""; 0]);
    }

    #[test]
    fn versions_dates_and_parts_of_words_are_no_numbers() {
        let text = "x86-64, 2026-11-23, v1.8, 0.17.9, 2^53, p50, sha256, 1_000, 64-bit, #44, 5xx, HTTP/1.1";
        assert_eq!(shown(text, |_| true), [""; 0]);
        assert_eq!(figures("Rust 1.95 or Node 20.20, in two tables: | 1.95 or newer |"), [""; 0]);
    }

    #[test]
    fn a_range_has_one_unit() {
        assert_eq!(figures("every 10 to 50 ms, every 7.5 to 10 s, every 0 to 2 s"), ["10", "50 ms", "7.5"]);
        assert!((numbers("10 to 50 ms")[0].value() - 0.01).abs() < 1e-9);
    }

    #[test]
    fn a_number_stands_for_all_that_round_to_it() {
        let rounds = |text: &str, exact: f64| numbers(text)[0].rounds(exact);
        assert!(rounds("1.8 times", 1.819) && !rounds("1.8 times", 1.851) && !rounds("1.8 times", 1.749));
        assert!(
            rounds("117 us", 117.4) && rounds("120 us", 117.4) && !rounds("100 us", 117.4) && !rounds("118 us", 117.4)
        );
        assert!(rounds("9,600 pairs", 9_587.0) && !rounds("9,600 pairs", 9_400.0));
    }

    #[test]
    fn units_are_converted() {
        let is = |text: &str, kind, exact| numbers(text)[0].is_rounded(kind, exact);
        assert!(is("0.16 ms", Time, 158e-6) && !is("0.16 ms", Time, 158e-3));
        assert!(is("41 %", Bare, 0.408) && is("41 %", Share, 0.408) && is("1.7", Bare, 1.72));
        assert!(!is("8 MB", Time, 8e6) && !is("1.7 s", Bare, 1.7));
    }
}
