//! Durations as people type them: a number and a unit.

use std::time::Duration;

/// As long as the longest completion, more than any other use needs, and far from an overflow.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
const RIGHT: &str = "write a number and a unit, such as 500ms, 30s, 1.5s, 2m, 1h or 7d";

/// Reads `500ms`, `30s`, `1.5s`, `2m`, `1h`, `7d`. Exact to the nanosecond; further digits are cut off.
///
/// # Errors
/// The text is not a duration; the message says how to write one.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
        return Err(format!("a duration cannot be negative; {RIGHT}"));
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        "h" => Duration::from_secs(3600),
        "d" => Duration::from_secs(24 * 3600),
        _ if number.is_empty() => return Err(format!("this is not a duration; {RIGHT}")),
        "" => return Err(format!("the unit is missing; {RIGHT}")),
        unit => return Err(format!("{unit:?} is not a unit; {RIGHT}")),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return Err(format!("{number:?} is not a number; {RIGHT}"));
    }
    let too_long = || format!("the duration is too long; the longest is {}h", LONGEST.as_secs() / 3600);
    // Only digits are left, so only the size can be wrong.
    let whole: u32 = whole.parse().map_err(|_| too_long())?;
    let billionths = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    let billionths = billionths.fold(0_u128, |sum, digit| sum * 10 + u128::from(digit - b'0'));
    let part = u64::try_from(unit.as_nanos() * billionths / 1_000_000_000).unwrap_or(u64::MAX);
    let sum = unit.checked_mul(whole).and_then(|whole| whole.checked_add(Duration::from_nanos(part)));
    sum.filter(|sum| *sum <= LONGEST).ok_or_else(too_long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_a_unit_are_read_exactly() {
        for (text, ms) in [
            ("30s", 30_000),
            ("500ms", 500),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("1.5s", 1_500),
            ("0.25h", 900_000),
            ("0s", 0),
            (" 7s ", 7_000),
            ("7d", 604_800_000),
            ("876000h", 3_153_600_000_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(parse("1.5ms"), Ok(Duration::from_micros(1_500)));
        assert_eq!(parse("0.000000001s"), Ok(Duration::from_nanos(1)));
        assert_eq!(parse("0.0000000019s"), Ok(Duration::from_nanos(1)));
        assert_eq!(parse("0.1m"), Ok(Duration::from_secs(6)));
    }

    #[test]
    fn errors_name_the_mistake_and_the_right_form() {
        for (text, wrong) in [
            ("30", "unit is missing"),
            ("1.5", "unit is missing"),
            ("-5s", "negative"),
            ("-1", "negative"),
            ("", "not a duration"),
            ("s", "not a number"),
            ("NaN", "not a duration"),
            ("inf", "not a duration"),
            ("abc", "not a duration"),
            ("--wait", "not a duration"),
            ("1e3s", "\"e3s\" is not a unit"),
            ("5w", "\"w\" is not a unit"),
            ("5 s", "\" s\" is not a unit"),
            ("1m30s", "\"m30s\" is not a unit"),
            ("30S", "\"S\" is not a unit"),
            (".5s", "not a number"),
            ("5.s", "not a number"),
            ("1.2.3s", "not a number"),
            ("٣s", "not a duration"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(wrong) && error.contains("500ms, 30s"), "{text:?}: {error}");
        }
    }

    #[test]
    fn values_that_are_too_long_name_the_limit() {
        for text in ["99999999999999999999s", "4294967295h", "4294967296s", "876000.1h", "36501d", "3153600001s"] {
            let error = parse(text).unwrap_err();
            assert!(error.contains("too long") && error.contains("876000h"), "{text:?}: {error}");
        }
    }
}
