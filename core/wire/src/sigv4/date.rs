//! Instants as AWS writes them, and as HTTP does.

use alloc::string::String;

const MS_PER_DAY: u64 = 86_400_000;

/// The last millisecond of the year 9999.
const LAST_MS: u64 = 253_402_300_799_999;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// `20150830T123600Z`. Years above 9999 become the last instant of that one.
pub(super) fn amz_date(unix_ms: u64) -> String {
    let unix_ms = unix_ms.min(LAST_MS);
    let (year, month, day) = civil(unix_ms / MS_PER_DAY);
    let seconds = unix_ms % MS_PER_DAY / 1000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    alloc::format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Writes an instant as HTTP does: `Sun, 06 Nov 1994 08:49:37 GMT`. Years above 9999 become the last instant of that one.
pub fn write_http_date(unix_ms: u64) -> String {
    let unix_ms = unix_ms.min(LAST_MS);
    let days = unix_ms / MS_PER_DAY;
    let (year, month, day) = civil(days);
    let seconds = unix_ms % MS_PER_DAY / 1000;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let weekday = DAYS.get((days % 7) as usize).copied().unwrap_or_default();
    let month = MONTHS.get((month as usize).saturating_sub(1)).copied().unwrap_or_default();
    alloc::format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

/// Reads the header `Date`, in milliseconds since 1970; `None` for anything but the form that all servers have to send
/// (RFC 9110, IMF-fixdate): `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn http_date(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let has_form = bytes.len() == 29
        && text.is_ascii()
        && text.get(3..5)? == ", "
        && [7, 11, 16].iter().all(|at| bytes.get(*at) == Some(&b' '))
        && [19, 22].iter().all(|at| bytes.get(*at) == Some(&b':'))
        && text.get(25..)? == " GMT";
    let number = |from: usize, to: usize| {
        let digits = text.get(from..to)?;
        if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse::<u64>().ok() } else { None }
    };
    if !has_form {
        return None;
    }
    let month = MONTHS.iter().position(|name| Some(*name) == text.get(8..11))? + 1;
    let (day, year) = (number(5, 7)?, number(12, 16)?);
    let (hour, minute, second) = (number(17, 19)?, number(20, 22)?, number(23, 25)?);
    // A leap second is counted as the one that follows.
    if year < 1970 || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let days = days(year, month as u64, day)?;
    let is_that_day = DAYS.get((days % 7) as usize).copied() == text.get(..3);
    is_that_day.then_some(days * MS_PER_DAY + (hour * 3600 + minute * 60 + second) * 1000)
}

/// Days since 1970 of a date from then on; `None` where there is no such date. The inverse of [`civil`].
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    // Years that begin in March have their leap day at the end.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day;
    let since = days.checked_sub(DAYS_BEFORE_1970 + 1)?;
    (civil(since) == (year, month, day)).then_some(since)
}

/// From the first of March of the year 0 on.
const DAYS_BEFORE_1970: u64 = 719_468;

/// Year, month and day of a day since 1970 (Howard Hinnant's algorithm).
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + DAYS_BEFORE_1970;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * of_year + 2) / 153;
    let day = of_year - (153 * m + 2) / 5 + 1;
    let month = if m < 10 { m + 3 } else { m - 9 };
    (400 * era + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn instants_have_these_forms() {
        for (unix_ms, amz) in [
            (0, "19700101T000000Z"),
            (1_440_938_160_999, "20150830T123600Z"),
            (951_782_400_000, "20000229T000000Z"),
            (4_107_542_399_000, "21000228T235959Z"),
            (4_107_542_400_000, "21000301T000000Z"),
            (LAST_MS, "99991231T235959Z"),
            (u64::MAX, "99991231T235959Z"),
        ] {
            assert_eq!(amz_date(unix_ms), amz);
        }
        for (text, unix_ms) in [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777_000),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400_000),
            ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800_000),
            ("Fri, 31 Dec 9999 23:59:59 GMT", LAST_MS - 999),
        ] {
            assert_eq!(http_date(text), Some(unix_ms), "{text}");
        }
    }

    #[test]
    fn other_forms_and_days_that_never_were_are_refused() {
        for text in [
            "",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:37 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, +6 Nov 1994 08:49:37 GMT",
            "Wed, 31 Dec 1969 23:59:59 GMT",
            "Thu, 00 Jan 1970 00:00:00 GMT",
            "Wed, 30 Feb 2000 00:00:00 GMT",
            "Thu, 29 Feb 1900 00:00:00 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT ",
            "Sun, 06 Nov 1994 08:49:3\u{e9}GMT",
        ] {
            assert_eq!(http_date(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_day_has_one_date(since in 0..LAST_MS / MS_PER_DAY) {
            let (year, month, day) = civil(since);
            prop_assert_eq!(days(year, month, day), Some(since));
        }

        #[test]
        fn no_text_is_too_odd(text in "\\PC{0,40}") {
            let _ = http_date(&text);
        }
    }
}
