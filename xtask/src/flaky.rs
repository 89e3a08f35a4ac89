//! Tests that have passed when they were run again: where a failure may be two holders, a lost update or a falling token, it
//! is only excused if it says that something took too long.

use crate::logs::Logs;
use crate::run::{Failure, Result};

/// Parts of messages of panics for want of time.
const SIGNS: &str = include_str!("../../testing/servers/src/slow.txt");
/// Panics that only pass on those of other threads.
const ECHOES: &str = include_str!("../../testing/servers/src/echoes.txt");
/// Programs of tests, all of which are about who holds a lock.
const PROGRAMS: [&str; 4] =
    ["leasehold::conformance", "leasehold::quorum", "leasehold-chaos::interop", "leasehold-wasmtime::hosts"];
/// Parts of the names of such tests elsewhere.
const NAMES: &[&str] = &[
    "never",
    "nobody",
    "no_update",
    "no_token",
    "one_holder",
    "one_of_64",
    "one_grant",
    "no_grant",
    "let_one_in",
    "held_once",
    "tokens_",
    "promises",
    "comes_back",
    "at_once",
    "busy_threads",
    "both_go_on",
    "in_order",
    "any_order",
    "the_highest",
    "the_higher",
    "outlast",
    "successor",
    "next_holder",
    "succeeded",
    "lock_delay",
    "through_a_crash",
    "keeps_it",
    "locks_along",
    "forked",
    "turns",
    "inherits",
    "arrive_late",
    "take_the_lock",
    "stale",
];

/// A try that has failed of a test that has passed.
#[derive(Debug, PartialEq, Eq)]
struct Try {
    program: String,
    test: String,
    said: String,
}

/// # Errors
/// A test has passed at a second try whose first one may have seen a promise broken.
pub fn expect_excused(logs: &Logs) -> Result {
    let tries: Vec<Try> = logs.reports()?.iter().flat_map(|xml| tries(xml)).collect();
    let refused: Vec<&Try> = tries.iter().filter(|one| may_be_a_violation(one) && !is_excused(&one.said)).collect();
    if refused.is_empty() {
        println!("{} tries of tests failed before another one passed, none of them with a broken promise", tries.len());
        return Ok(());
    }
    let shown: Vec<String> =
        refused.iter().map(|one| format!("{} {}\n{}", one.program, one.test, one.said.trim())).collect();
    Err(Failure::new(format!(
        "these tests have passed, but only when they were run again; what the first try saw is not for want of time \
         (testing/servers/src/slow.txt):\n\n{}",
        shown.join("\n\n")
    )))
}

fn may_be_a_violation(one: &Try) -> bool {
    PROGRAMS.contains(&one.program.as_str()) || NAMES.iter().any(|name| one.test.contains(name))
}

/// Tells if each panic has a sign of that, echoes aside.
fn is_excused(said: &str) -> bool {
    let panics: Vec<&str> = said.split(" panicked at ").skip(1).map(message).collect();
    let own: Vec<&&str> = panics.iter().filter(|panic| !ECHOES.lines().any(|echo| panic.contains(echo))).collect();
    !own.is_empty() && own.iter().all(|panic| SIGNS.lines().any(|sign| panic.contains(sign)))
}

/// Up to the stack, or to the next thread.
fn message(panic: &str) -> &str {
    let ends = ["stack backtrace:", "note: run with", "\nthread '"].iter().filter_map(|end| panic.find(end)).min();
    &panic[..ends.unwrap_or(panic.len())]
}

/// Reads nextest's report.
fn tries(xml: &str) -> Vec<Try> {
    let mut found = Vec::new();
    for case in xml.split("<testcase ").skip(1) {
        let case = case.split("</testcase>").next().unwrap_or(case);
        let attribute = |name: &str| {
            let head = format!(" {}", case.split('>').next().unwrap_or_default());
            let value = head.split_once(&format!(" {name}=\"")).and_then(|(_, rest)| rest.split_once('"'));
            value.map(|(value, _)| crate::logs::unescaped(value)).unwrap_or_default()
        };
        for failure in case.split("<flakyFailure ").skip(1) {
            let said = failure.split("</flakyFailure>").next().unwrap_or(failure);
            // Its attributes have the beginning of the first panic once more.
            let said = said.split_once('>').map_or(said, |(_, said)| said);
            let said = crate::logs::unescaped(said);
            found.push(Try { program: attribute("classname"), test: attribute("name"), said });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(program: &str, test: &str, panics: &str) -> String {
        format!(
            "<testsuite><testcase name=\"{test}\" classname=\"{program}\" time=\"1\"><flakyFailure \
             message=\"thread &apos;a&apos; (1) panicked at a.rs:1:1\" type=\"test failure\">{panics}<system-err>{panics}</system-err></flakyFailure></testcase>\
             <testcase name=\"other\" classname=\"{program}\" time=\"1\"></testcase></testsuite>"
        )
    }

    fn excused(program: &str, test: &str, panics: &str) -> bool {
        let tries = tries(&report(program, test, panics));
        assert_eq!(tries.len(), 1);
        assert_eq!((tries[0].program.as_str(), tries[0].test.as_str()), (program, test));
        !may_be_a_violation(&tries[0]) || is_excused(&tries[0].said)
    }

    const SLOW: &str = "thread 'a' (1) panicked at a.rs:1:1:\ncalled `Result::unwrap()` on an `Err` value: Error { kind: Lost, \
                        message: &quot;no renewal was confirmed in time (no reply in time)&quot; }\nstack backtrace:\n";
    const TWO: &str = "thread 'b' (2) panicked at b.rs:2:2:\nassertion failed: two.is_none()\nstack backtrace:\n";

    #[test]
    fn a_broken_promise_is_not_excused_by_a_second_try() {
        assert!(excused("leasehold::conformance", "redis::renewals_outlast_the_ttl", SLOW));
        assert!(!excused("leasehold::conformance", "redis::renewals_outlast_the_ttl", TWO));
        assert!(!excused("leasehold::conformance", "redis::x", &format!("{SLOW}{TWO}")), "one of two is enough");
        assert!(!excused("leasehold::conformance", "redis::x", ""), "who says nothing has no excuse");
        assert!(!excused("leasehold", "transport::sqlite::tests::eight_at_once_may_make_the_file", TWO));
        assert!(excused("leasehold-cli::terminal", "the_command_gets_the_terminal", TWO), "nobody holds two of those");
    }

    #[test]
    fn what_passes_on_a_panic_is_no_reason_of_its_own() {
        let echo = "thread 'main' (3) panicked at lib.rs:3:3:\na scoped thread panicked\nnote: run with\n";
        assert!(excused("leasehold::conformance", "x", &format!("{SLOW}{echo}")));
        assert!(!excused("leasehold::conformance", "x", echo));
        let list = "thread 'on_tables::s3' (3) panicked at t.rs:3:3:\non s3 these fail, see above why: [\"a\"]\nstack backtrace:\n";
        assert!(excused("leasehold::conformance", "on_tables::s3", &format!("{SLOW}{list}")));
        assert!(!excused("leasehold::conformance", "on_tables::s3", &format!("{SLOW}{TWO}{list}")));
    }
}
