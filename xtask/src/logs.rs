//! The output that a run of all tests leaves behind: that of each step, and reports of tests with what those that passed have
//! printed, in `target/logs`. In the end no secret of a test may stand anywhere in it.

use crate::run::{self, Failure, Result};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Every password, key and token of a test has one of these in it. The second is that of the samples in `docs/infra`.
const SECRETS: [&str; 2] = ["hunter2", "change-me"];
/// The prefix of captured log output, see `testing/servers/src/trace_capture.rs`; no nonce may stand there.
const CAPTURED: &str = "captured:";
/// The file for it, in the folder.
const CAPTURE_FILE: &str = "trace.log";
/// Where nextest leaves its reports, below the target folder: each profile in a folder of its own.
const NEXTEST: &str = "nextest";
/// How often the terminal is shown what has been written.
const GLANCE: Duration = Duration::from_millis(50);

pub struct Logs {
    folder: PathBuf,
    nextest: PathBuf,
}

/// A test of a report.
#[derive(Debug, PartialEq, Eq)]
pub struct Reported {
    pub name: String,
    pub has_passed: bool,
}

impl Logs {
    /// The logs of the last run.
    pub fn left() -> Result<Self> {
        let target = run::target()?;
        Ok(Self { folder: target.join("logs"), nextest: target.join(NEXTEST) })
    }

    /// Without what an earlier run has left.
    pub fn new() -> Result<Self> {
        let Self { folder, nextest } = Self::left()?;
        let fail = |error| Failure::new(format!("cannot make an empty folder {}: {error}", folder.display()));
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(fail)?;
        }
        fs::create_dir_all(&folder).map_err(fail)?;
        drop(fs::remove_dir_all(&nextest));
        Ok(Self { folder, nextest })
    }

    /// A report that a step is to write.
    pub fn report(&self, step: &str) -> PathBuf {
        self.folder.join(format!("{}.xml", file_name(step)))
    }

    /// Sends the output of a step to a file. Not to a pipe, which processes that a step leaves running would hold open.
    pub fn keep(&self, step: &str, command: &mut Command) -> io::Result<Output> {
        let path = self.folder.join(format!("{}.log", file_name(step)));
        let mut log = File::options().create(true).append(true).open(&path)?;
        writeln!(log, "=== {step}")?;
        // A step that is run twice has both in one file, and the first is not shown again.
        let begin = log.metadata()?.len();
        command.stdout(log.try_clone()?).stderr(log).env("LEASEHOLD_TRACE_FILE", self.folder.join(CAPTURE_FILE));
        if io::IsTerminal::is_terminal(&io::stderr()) && std::env::var_os("NO_COLOR").is_none() {
            command.env("CARGO_TERM_COLOR", "always");
        }
        let mut shown = File::open(&path)?;
        io::Seek::seek(&mut shown, io::SeekFrom::Start(begin))?;
        Ok(Output { shown })
    }

    /// Takes the report of a nextest run, named for its step.
    pub fn keep_report(&self, step: &str, command: &Command) -> io::Result<()> {
        let profile = command.get_args().skip_while(|arg| *arg != "--profile").nth(1).unwrap_or(OsStr::new("default"));
        let report = self.nextest.join(profile).join("junit.xml");
        if command.get_args().any(|arg| arg == "nextest") && report.is_file() {
            fs::rename(report, self.report(step))?;
        }
        Ok(())
    }

    /// # Errors
    /// Fails if no log output was captured, because then no secret could be found in it.
    pub fn expect_captured(&self) -> Result {
        let path = self.folder.join(CAPTURE_FILE);
        if fs::metadata(&path).is_ok_and(|file| file.len() > 0) {
            return Ok(());
        }
        Err(Failure::new(format!(
            "no test has written to {}, see testing/servers/src/trace_capture.rs",
            path.display()
        )))
    }

    /// # Errors
    /// A secret of a test stands in an output or a report, or there is nothing to look at.
    pub fn expect_no_secrets(&self) -> Result {
        let mut found = Vec::new();
        let mut bytes = 0;
        let files = self.files()?;
        for path in &files {
            let text = read(path)?;
            bytes += text.len();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.extend(secrets(&text).map(|(line, secret)| format!("{name}:{line}: {secret}")));
            found.extend(nonces(&text).map(|line| format!("{name}:{line}: a nonce, or what looks like one")));
        }
        if files.is_empty() {
            return Err(Failure::new("no step has left any output: nothing was looked at"));
        }
        if found.is_empty() {
            println!("{} files, {} KiB, and no secret of a test in them", files.len(), bytes / 1024);
            return Ok(());
        }
        let place = self.folder.display();
        Err(Failure::new(format!("secrets of tests were printed, see {place}:\n  {}", found.join("\n  "))))
    }

    /// The tests of all reports.
    pub fn reported(&self) -> Result<Vec<Reported>> {
        Ok(self.reports()?.iter().flat_map(|xml| reported(xml)).collect())
    }

    /// The reports of tests, as they are.
    pub fn reports(&self) -> Result<Vec<String>> {
        let files = self.files()?;
        files.iter().filter(|path| path.extension() == Some(OsStr::new("xml"))).map(|path| read(path)).collect()
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let listed = fs::read_dir(&self.folder)
            .map_err(|error| Failure::new(format!("cannot list {}: {error}", self.folder.display())))?;
        let mut paths: Vec<_> = listed.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        Ok(paths)
    }
}

fn file_name(step: &str) -> String {
    step.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

/// The output of a step, as far as it has not been shown.
pub struct Output {
    shown: File,
}

impl Output {
    /// Shows all of it.
    pub fn show(mut self) {
        show(&mut self.shown, &mut io::stdout(), &AtomicBool::new(true));
    }

    /// Shows it as it comes, until the step has ended.
    pub fn show_until<T>(&self, step: impl FnOnce() -> T) -> T {
        self.show_on(&mut io::stdout(), step)
    }

    fn show_on<T>(&self, terminal: &mut (impl Write + Send), step: impl FnOnce() -> T) -> T {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| show(&mut &self.shown, terminal, &is_over));
            let ended = step();
            is_over.store(true, Ordering::Release);
            ended
        })
    }
}

fn show(log: &mut impl Read, terminal: &mut impl Write, is_over: &AtomicBool) {
    let mut chunk = [0; 16 << 10];
    loop {
        // In this order: what was written before the end is read after it is known.
        let was_over = is_over.load(Ordering::Acquire);
        match log.read(&mut chunk) {
            Ok(read @ 1..) => drop(terminal.write_all(&chunk[..read]).and_then(|()| terminal.flush())),
            Ok(0) | Err(_) if was_over => return,
            Ok(0) | Err(_) => thread::sleep(GLANCE),
        }
    }
}

fn read(path: &Path) -> Result<String> {
    let bytes = fs::read(path).map_err(|error| Failure::new(format!("cannot read {}: {error}", path.display())))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Secrets in a text, each with its line: as they are, in hexadecimal, and in base64 at each of the three places that they
/// may have in a longer text.
fn secrets(text: &str) -> impl Iterator<Item = (usize, &'static str)> {
    let sought = SECRETS.map(|secret| {
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        (secret, [vec![secret.to_owned(), hex], (0..3).map(|before| base64_within(secret, before)).collect()].concat())
    });
    let lines = text.lines().enumerate();
    let found: Vec<_> = lines
        .flat_map(|(number, line)| {
            let is_in_it = |forms: &[String]| forms.iter().any(|form| line.contains(form.as_str()));
            sought.iter().filter(move |(_, forms)| is_in_it(forms)).map(move |(secret, _)| (number + 1, *secret))
        })
        .collect();
    found.into_iter()
}

/// Lines of libraries with 32 hexadecimal digits in a row, as nonces are written in stores.
fn nonces(text: &str) -> impl Iterator<Item = usize> {
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    let has_one = move |line: &str| line.split(|c| !is_digit(c)).any(|digits| digits.len() == 32);
    let lines = text.lines().enumerate().filter_map(|(number, line)| Some((number + 1, line.split_once(CAPTURED)?.1)));
    lines.filter(move |(_, line)| has_one(line)).map(|(number, _)| number)
}

/// The characters of base64 that `text` alone decides on, when so many bytes stand before it.
fn base64_within(text: &str, before: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits = |at: usize| (0..6).map(move |bit| at * 6 + bit);
    let bit = |place: usize| {
        let byte = text.as_bytes().get((place / 8).checked_sub(before)?)?;
        Some(usize::from(byte >> (7 - place % 8) & 1))
    };
    let digits = (0..(before + text.len()) * 8 / 6).filter_map(|at| {
        let value = bits(at).try_fold(0, |value, place| Some(value * 2 + bit(place)?))?;
        Some(char::from(ALPHABET[value]))
    });
    digits.collect()
}

/// The tests of a report in JUnit's format.
fn reported(xml: &str) -> Vec<Reported> {
    let cases = xml.split("<testcase ").skip(1);
    let of_case = |case: &str| {
        let case = format!(" {case}");
        let name = unescaped(case.split_once(" name=\"")?.1.split_once('"')?.0);
        let has_passed = !["<failure", "<error", "<skipped"].iter().any(|bad| case.contains(bad));
        Some(Reported { name, has_passed })
    };
    cases.filter_map(of_case).collect()
}

pub fn unescaped(text: &str) -> String {
    let marks = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"), ("&amp;", "&")];
    marks.iter().fold(text.to_owned(), |text, (mark, character)| text.replace(mark, character))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, &'static str)> {
        secrets(text).collect()
    }

    #[test]
    fn secrets_are_seen_in_every_dress() {
        assert_eq!(found("fine\nredis://:p%40hunter2@host\n"), [(2, "hunter2")]);
        assert_eq!(found("AUTH change-me"), [(1, "change-me")]);
        assert_eq!(found("68756e74657232"), [(1, "hunter2")]);
        // echo -n 'user:hunter2' | base64, and with one and two characters less before it.
        for encoded in ["dXNlcjpodW50ZXIy", "c2VyOmh1bnRlcjI=", "ZXI6aHVudGVyMg=="] {
            assert_eq!(found(encoded), [(1, "hunter2")], "{encoded}");
        }
        assert_eq!(found("hunter1 changeme 68756e746572"), []);
    }

    #[test]
    fn nonces_are_seen_in_what_libraries_tell() {
        let nonce = "0123456789abcdef".repeat(2);
        let text = format!(
            "{nonce}\nout>captured: DEBUG x value={nonce}@me\ncaptured: sha1={nonce}01234567 short=0123456789abcdef\n"
        );
        assert_eq!(nonces(&text).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn reports_name_tests_and_what_became_of_them() {
        let xml = r#"<testsuite name="s"><testcase name="redis::held" classname="c" time="1"><system-out>x &lt;failure</system-out></testcase>
            <testcase classname="c" name="a &quot;b&quot;"><failure message="m"/></testcase><testcase name="s"><skipped/></testcase></testsuite>"#;
        let told: Vec<_> = reported(xml).into_iter().map(|told| (told.name, told.has_passed)).collect();
        assert_eq!(told, [("redis::held".into(), true), ("a \"b\"".into(), false), ("s".into(), false)]);
    }

    #[test]
    fn the_output_of_a_step_is_kept() {
        let folder = std::env::temp_dir().join(format!("leasehold-logs-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let logs = Logs { nextest: folder.join("none"), folder };
        assert!(logs.expect_no_secrets().is_err(), "nothing is no success");
        assert!(logs.expect_captured().is_err(), "nothing is no success");
        let mut terminal = Vec::new();
        let mut say = |words: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("echo {words}; echo too >&2")]);
            let output = logs.keep("A step", &mut command).expect("a file");
            assert!(output.show_on(&mut terminal, || command.status()).expect("a shell").success());
        };
        say("well");
        assert_eq!(read(&logs.folder.join("a-step.log")).expect("a log"), "=== A step\nwell\ntoo\n");
        logs.expect_no_secrets().expect("there is none");
        say("hunter2");
        let failure = logs.expect_no_secrets().expect_err("there is one").to_string();
        assert!(failure.contains("a-step.log:5: hunter2"), "{failure}");
        assert_eq!(terminal, b"well\ntoo\nhunter2\ntoo\n");
        let mut command = Command::new("sh");
        command.args(["-c", r#"echo "captured: fine" >> "$LEASEHOLD_TRACE_FILE""#]);
        logs.keep("Another", &mut command).expect("a file");
        assert!(command.status().expect("a shell").success());
        logs.expect_captured().expect("a line");
        fs::remove_dir_all(&logs.folder).expect("it is there");
    }
}
