//! The program's output: answers to stdout, for people or for machines, and everything else to stderr.

use std::fmt::Display;
use std::io::{ErrorKind as IoKind, Write};
use std::time::Duration;

use leasehold::{Attempts, Completion, Error, LockInfo, RunResult, Waiters, ffi};
use serde_json::{Value, json};

use crate::paint::{PROBLEM, STRONG, fitting, painted};
use crate::status;

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub status: u8,
    kind: &'static str,
    message: String,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { status: status::USAGE, kind: "config", message: message.into() }
    }

    /// Somebody else has it.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self { status: status::BUSY, kind: "busy", message: message.into() }
    }

    /// A failure of the operating system to do `what`.
    pub(crate) fn system(what: &str, error: &std::io::Error) -> Self {
        Self { status: status::SYSTEM, kind: "system", message: format!("{what}: {error}") }
    }

    pub(crate) fn with_status(self, status: u8) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Reports the failure to people on stderr, and to machines on stdout as well.
    pub(crate) fn tell(&self, json: bool) {
        write_line(painted(PROBLEM, "leasehold:"), &self.message);
        if json {
            // The status is that of the failure, even if this cannot be written.
            let _ = answer_json(&json!({ "error": { "kind": self.kind, "message": self.message } }));
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { status: status::of(error.kind()), kind: error.kind().name(), message: error.to_string() }
    }
}

/// Writes a line to stderr. A stderr that is not read must not stop anything.
pub(crate) fn say(message: impl Display) {
    write_line("leasehold:", message);
}

fn write_line(prefix: impl Display, message: impl Display) {
    // One write, so that lines of several processes are not mixed.
    let line = format!("{prefix} {}\n", printable(&message.to_string()));
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(fitting(&out, &line).as_bytes());
}

/// Escapes characters that control a terminal, reorder text or are not seen: names and labels may come from anybody.
pub(crate) fn printable(text: &str) -> String {
    let steers = |c: char| {
        let reorders =
            matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}');
        let is_unseen = matches!(c, '\u{ad}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
        (c.is_control() && c != '\n') || reorders || is_unseen
    };
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if steers(c) {
            shown.extend(c.escape_unicode())
        } else {
            shown.push(c)
        }
        shown
    })
}

/// Writes a question to stderr; the answer follows on the same line.
pub(crate) fn ask(question: impl Display) {
    let _ = write!(std::io::stderr().lock(), "leasehold: {question} ");
}

/// Writes a text to stdout. A reader that has gone is no failure.
pub(crate) fn answer(text: &str) -> Result<(), Failure> {
    let text = fitting(&std::io::stdout().lock(), text);
    answer_bytes(text.as_bytes())
}

/// Writes bytes to stdout, as they are.
pub(crate) fn answer_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != IoKind::BrokenPipe => Err(Failure {
            status: status::OUTPUT,
            kind: "output",
            message: format!("cannot write the answer: {error}"),
        }),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes a line to stdout, at once. `false` if nobody reads it any more.
pub(crate) fn answer_line(line: &str) -> Result<bool, Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == IoKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure {
            status: status::OUTPUT,
            kind: "output",
            message: format!("cannot write the answer: {error}"),
        }),
    }
}

pub(crate) fn answer_json(value: &Value) -> Result<(), Failure> {
    answer(&format!("{value:#}\n"))
}

/// A held lock for machines. A value that the store does not show is `null`.
pub(crate) fn lock_json(info: &LockInfo) -> Value {
    json!({
        "resource": info.resource,
        "held": true,
        "owner": info.owner,
        "token": info.token,
        "since": info.since_unix_ms.and_then(utc),
        "since_unix_ms": info.since_unix_ms,
        "ttl_ms": info.ttl.map(ms),
        "left_ms": info.left.map(ms),
        "session": info.session,
        "data_bytes": info.data.as_ref().map_or(0, Vec::len),
        "foreign": info.foreign,
        "revoked": info.revoked,
        "votes": info.votes,
        "nodes": info.nodes,
    })
}

/// A held lock for people, one line for each known value.
pub(crate) fn lock_text(info: &LockInfo) -> String {
    let unknown = || "unknown".to_owned();
    let owner = match &info.owner {
        Some(owner) => printable(owner),
        None if info.foreign => "a client of another library".to_owned(),
        None => "a client without a label".to_owned(),
    };
    let since = info.since_unix_ms.map_or_else(unknown, ago);
    let unless = if info.revoked { "at most: the lease is revoked" } else { "unless renewed" };
    let left = info.left.map_or_else(unknown, |left| format!("{} {unless}", seconds(left)));
    let left = if info.left.is_none() && info.revoked { format!("{left}: the lease is revoked") } else { left };
    let nodes = match (info.is_shown_by_a_majority(), info.nodes) {
        (_, 1) => String::new(),
        (true, nodes) => format!("  nodes      {} of {nodes} show it\n", info.votes),
        (false, of) => format!(
            "  nodes      only {} of {of} show it, which is not a majority: an attempt that is in progress, is being \
             cleaned up, or expires by itself\n",
            info.votes
        ),
    };
    let data = match info.data.as_ref().map_or(0, Vec::len) {
        0 => String::new(),
        bytes => format!("  data       {bytes} bytes\n"),
    };
    let session = info.session.as_ref().map(|session| format!("  session    {session}\n")).unwrap_or_default();
    let ttl = info.ttl.map(|ttl| format!("  ttl        {}\n", seconds(ttl))).unwrap_or_default();
    format!(
        "{}\n  owner      {owner}\n{session}  token      {}\n  since      {since}\n{ttl}  time left  {left}\n{data}{nodes}",
        painted(STRONG, format_args!("{} is held", printable(&info.resource))),
        info.token.map_or_else(unknown, |token| token.to_string()),
    )
}

/// The queue of waiters for people.
pub(crate) fn waiters_text(waiters: Waiters) -> String {
    format!("  waiting    {}, the first came {}\n", waiters.count, ago(waiters.since_unix_ms))
}

/// The completion of a run for machines.
pub(crate) fn completion_json(completion: &Completion) -> Value {
    let mut shown = json!({
        "token": completion.token,
        "owner": completion.owner,
        "at": utc(completion.at_unix_ms),
        "at_unix_ms": completion.at_unix_ms,
        "left_ms": ms(completion.left),
    });
    if let Some(result) = &completion.result {
        shown["result"] = result_json(result);
    }
    if completion.result_unsettled {
        shown["result_unsettled"] = true.into();
    }
    shown
}

/// The attempts at a run for machines.
pub(crate) fn attempts_json(attempts: &Attempts) -> Value {
    json!({
        "count": attempts.count,
        "max": attempts.max,
        "given_up": attempts.are_used_up(),
        "since_unix_ms": attempts.since_unix_ms,
        "retry_unix_ms": attempts.retry_unix_ms,
        "reason": attempts.reason,
    })
}

/// The attempts at a run that is not done.
pub(crate) fn attempts_text(attempts: &Attempts) -> String {
    let state = if attempts.are_used_up() { "given up" } else { "failed" };
    let reason = attempts.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let (count, max, since) = (attempts.count, attempts.max, ago(attempts.since_unix_ms));
    format!("{state}, attempt {count} of {max}, the first {since}{reason}")
}

/// The result of a run: the value of one that is JSON, the text of another where it is text.
fn result_json(result: &RunResult) -> Value {
    let value = if let RunResult::Json(text) = result {
        serde_json::from_str(text).unwrap_or_default()
    } else {
        std::str::from_utf8(result.as_bytes()).map_or(Value::Null, Value::from)
    };
    json!({ "kind": result.kind(), "bytes": result.as_bytes().len(), "value": value })
}

/// The completion of a run for people, one line for each value.
pub(crate) fn completion_text(completion: &Completion) -> String {
    let result = match &completion.result {
        Some(result) => format!("  result     {} bytes ({})\n", result.as_bytes().len(), result.kind()),
        None if completion.result_unsettled => "  result     not settled: too few nodes have shown it\n".to_owned(),
        None => String::new(),
    };
    format!(
        "  done by    {}\n  done with  token {}\n  done       {}\n  not again  for {}\n{result}",
        completion.owner.as_deref().map_or_else(|| "a client without a label".to_owned(), printable),
        completion.token,
        ago(completion.at_unix_ms),
        days(completion.left),
    )
}

/// A time in the past as people see it: `12 min ago (2026-11-26T05:20:00Z)`. The age is left out where the two clocks do not
/// agree on which was first.
pub(crate) fn ago(unix_ms: u64) -> String {
    let (_, now_unix_ms) = ffi::clocks();
    match now_unix_ms.checked_sub(unix_ms) {
        Some(age) => format!("{} ago ({})", span(Duration::from_millis(age)), instant(unix_ms)),
        None => instant(unix_ms),
    }
}

/// A length of time in at most six columns: `5 s`, `12 min`, `3 h`, `40 d`.
pub(crate) fn span(length: Duration) -> String {
    match length.as_secs() {
        seconds @ 0..=99 => format!("{seconds} s"),
        seconds @ 100..=5_999 => format!("{} min", seconds / 60),
        seconds @ 6_000..=172_799 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", (seconds / 86_400).min(9_999)),
    }
}

pub(crate) fn instant(unix_ms: u64) -> String {
    utc(unix_ms).unwrap_or_else(|| format!("{unix_ms} ms after 1970"))
}

/// Days for people, or seconds where it is less than one.
pub(crate) fn days(duration: Duration) -> String {
    let days = duration.as_secs_f64() / 86_400.0;
    if days < 1.0 { seconds(duration) } else { format!("{days:.1} days") }
}

/// Seconds for people: `0.25 s`, `29.6 s`, `86400 s`.
pub(crate) fn seconds(duration: Duration) -> String {
    let exact = duration.as_secs_f64();
    if exact < 1.0 {
        format!("{exact:.2} s")
    } else if exact < 100.0 && duration.subsec_millis() >= 50 {
        format!("{exact:.1} s")
    } else {
        format!("{exact:.0} s")
    }
}

pub(crate) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A time in RFC 3339; `None` beyond the year 9999, which no correct clock shows.
pub(crate) fn utc(unix_ms: u64) -> Option<String> {
    let (days, ms) = (unix_ms / 86_400_000, unix_ms % 86_400_000);
    // In years that begin in March the leap day comes last, so the position of a month does not depend on the year:
    // https://howardhinnant.github.io/date_algorithms.html#civil_from_days
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months + 2) / 5 + 1;
    let month = if months < 10 { months + 3 } else { months - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (s, ms) = (ms / 1_000, ms % 1_000);
    let (hour, minute, second) = (s / 3_600, s / 60 % 60, s % 60);
    (year <= 9_999).then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_as_dates() {
        for (unix_ms, date) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_709_210_096_007, "2024-02-29T12:34:56.007Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(utc(unix_ms).as_deref(), Some(date));
        }
    }

    #[test]
    fn impossible_times_do_no_harm() {
        assert_eq!(utc(253_402_300_800_000), None);
        assert_eq!(utc(u64::MAX), None);
    }

    #[test]
    fn seconds_are_as_exact_as_people_need() {
        for (ms, text) in [(0, "0.00 s"), (250, "0.25 s"), (1_000, "1 s"), (29_640, "29.6 s"), (86_400_000, "86400 s")]
        {
            assert_eq!(seconds(Duration::from_millis(ms)), text);
        }
    }
}
