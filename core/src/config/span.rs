//! Lengths of time as people write them.

use core::fmt;
use core::time::Duration;

/// A length of time for messages: `0 s`, `50 ms`, `1.5 s`, `90 s`, `3600 s (1 h)`.
///
/// Seconds, in which most settings are given; of a long time also its days, hours and minutes.
#[derive(Clone, Copy, Debug)]
pub struct Span(pub Duration);

const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
/// From here on, seconds alone say little.
const LONG: u64 = 3_600;

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0.as_secs(), self.0.subsec_nanos());
        let parts = [(1_000_000, "ms"), (1_000, "µs"), (1, "ns")];
        if let (0, Some((part, unit))) = (seconds, parts.into_iter().find(|(part, _)| nanos >= *part)) {
            return decimal(f, u64::from(nanos / part), nanos % part, part, unit);
        }
        decimal(f, seconds, nanos, 1_000_000_000, "s")?;
        if seconds < LONG || nanos != 0 {
            return Ok(());
        }
        let mut rest = seconds;
        for (at, (unit, name)) in UNITS.into_iter().filter(|(unit, _)| seconds >= *unit).enumerate() {
            let count = rest / unit;
            rest %= unit;
            if at == 0 {
                write!(f, " ({count} {name}")?;
            } else if count > 0 {
                write!(f, " {count} {name}")?;
            }
        }
        f.write_str(")")
    }
}

/// Writes `whole` and the fraction `part / of`, without zeros at its end.
fn decimal(f: &mut fmt::Formatter<'_>, whole: u64, part: u32, of: u32, unit: &str) -> fmt::Result {
    write!(f, "{whole}")?;
    let (mut rest, mut of) = (part, of);
    if rest > 0 {
        f.write_str(".")?;
    }
    while rest > 0 {
        of /= 10;
        write!(f, "{}", rest / of)?;
        rest %= of;
    }
    write!(f, " {unit}")
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn lengths_of_time_read_as_people_write_them() {
        let cases = [
            (Duration::ZERO, "0 s"),
            (Duration::from_nanos(3), "3 ns"),
            (Duration::from_nanos(1_000), "1 µs"),
            (Duration::from_micros(1_500), "1.5 ms"),
            (Duration::from_millis(100), "100 ms"),
            (Duration::from_millis(1_050), "1.05 s"),
            (Duration::from_secs(90), "90 s"),
            (Duration::from_secs(3_600), "3600 s (1 h)"),
            (Duration::from_millis(3_600_500), "3600.5 s"),
            (Duration::from_secs(90_000), "90000 s (1 d 1 h)"),
            (Duration::from_secs(1_000_000), "1000000 s (11 d 13 h 46 min 40 s)"),
            (Duration::from_secs(u64::MAX), "18446744073709551615 s (213503982334601 d 7 h 15 s)"),
        ];
        for (length, shown) in cases {
            assert_eq!(Span(length).to_string(), shown);
        }
    }
}
