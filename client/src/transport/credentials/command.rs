//! A program of the user that prints keys, such as `credential_process` of AWS or Azure's command line.

use std::fmt;
use std::io::{self, Read};
#[cfg(unix)]
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use reqsign_core::{CommandExecute, CommandOutput, Error};

use super::sender::printable;
use crate::host::clock;

/// The most output of a program.
const MOST_OUTPUT: u64 = 64 << 10;
/// The interval of checks for the end of a program that has closed its output.
const GLANCE: Duration = Duration::from_millis(5);

/// A command line, split here because the library would split it in another way.
#[derive(Clone)]
pub(in crate::transport) struct Program {
    words: Vec<String>,
    /// The folders to look for it in, if not those of this process.
    path: Option<String>,
    patience: Duration,
}

impl Program {
    /// # Errors
    /// The command line cannot be parsed.
    pub(in crate::transport) fn parse(line: &str, patience: Duration) -> Result<Self, String> {
        let words = words(line)?;
        if words.is_empty() { Err("it is empty".to_owned()) } else { Ok(Self { words, path: None, patience }) }
    }

    #[cfg(feature = "fuzzing")]
    pub(in crate::transport) fn into_words(self) -> Vec<String> {
        self.words
    }

    /// The program of a cloud, with its arguments.
    #[cfg(feature = "objects")]
    pub(in crate::transport) fn of_words(words: Vec<String>, path: Option<String>, patience: Duration) -> Self {
        Self { words, path, patience }
    }

    /// Runs it without a shell, and kills it when it takes too long.
    pub(in crate::transport) fn run(&self) -> Result<CommandOutput, String> {
        let (name, args) = self.words.split_first().ok_or("it is empty")?;
        let mut command = Command::new(name);
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The processes that it starts are killed with it.
        #[cfg(unix)]
        command.process_group(0);
        let deadline = clock::monotonic().plus(self.patience);
        let mut running = Running(command.spawn().map_err(|error| format!("{name:?} cannot be started: {error}"))?);
        let (stdout, stderr) = (reading(running.0.stdout.take()), reading(running.0.stderr.take()));
        let late = || format!("{name:?} did not end within {:?}", self.patience);
        let read = |pipe: &Receiver<io::Result<Vec<u8>>>| {
            let left = deadline.since(clock::monotonic());
            match pipe.recv_timeout(left) {
                Ok(Ok(bytes)) => Ok(bytes),
                Ok(Err(error)) => Err(format!("the output of {name:?} cannot be read: {error}")),
                Err(RecvTimeoutError::Timeout) => Err(late()),
                Err(RecvTimeoutError::Disconnected) => Err(format!("the output of {name:?} ended too early")),
            }
        };
        let (stdout, stderr) = (read(&stdout)?, read(&stderr)?);
        loop {
            match running.0.try_wait() {
                Ok(Some(status)) => {
                    let status = status.code().unwrap_or(-1);
                    return Ok(CommandOutput {
                        status,
                        stdout,
                        stderr: printable(&String::from_utf8_lossy(&stderr)).into(),
                    });
                }
                Ok(None) if clock::monotonic() < deadline => thread::sleep(GLANCE),
                Ok(None) => return Err(late()),
                Err(error) => return Err(format!("{name:?} cannot be waited for: {error}")),
            }
        }
    }
}

impl CommandExecute for Program {
    async fn command_execute<'a>(&'a self, _: &'a str, _: &'a [&'a str]) -> reqsign_core::Result<CommandOutput> {
        // This thread has no other work.
        self.run().map_err(Error::unexpected)
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Program")
    }
}

/// A process that is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            #[cfg(unix)]
            let _ = rustix::process::kill_process_group(
                rustix::process::Pid::from_child(&self.0),
                rustix::process::Signal::KILL,
            );
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// Reads a pipe on a thread. Both pipes are read at once: a program that has filled one waits until it is read.
fn reading(pipe: Option<impl Read + Send + 'static>) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = channel();
    if let Some(pipe) = pipe {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let mut bounded = pipe.take(MOST_OUTPUT);
            let read = bounded.read_to_end(&mut bytes).map(|_| bytes);
            // Discards the rest.
            let _ = io::copy(&mut bounded.into_inner(), &mut io::sink());
            let _ = sender.send(read);
        });
    }
    receiver
}

/// Splits a command line into words, as a shell does, and expands nothing.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut signs = line.chars();
    while let Some(sign) = signs.next() {
        match sign {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match signs.next() {
                        Some(inner) if inner == sign => break,
                        Some('\\') if sign == '"' => match signs.next() {
                            Some(escaped @ ('"' | '\\')) => word.push(escaped),
                            Some(other) => word.extend(['\\', other]),
                            None => return Err("a \" is missing at its end".to_owned()),
                        },
                        Some(inner) => word.push(inner),
                        None => return Err(format!("a {sign} is missing at its end")),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(signs.next()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_has_the_words_that_a_shell_would_find() {
        for (line, expected) in [
            ("/bin/tool --a b", &["/bin/tool", "--a", "b"][..]),
            (r#""/my tool" 'it is' a\ b "" c"d"'e'"#, &["/my tool", "it is", "a b", "", "cde"]),
            (r#""a\"b\\c\d" '\'"#, &[r#"a"b\c\d"#, r"\"]),
            ("  $HOME;ls  ", &["$HOME;ls"]),
            ("", &[]),
        ] {
            assert_eq!(words(line).unwrap(), expected, "{line}");
        }
        assert!(words("a 'b").is_err() && words("\"b").is_err());
        assert!(Program::parse(" ", GLANCE).unwrap_err().contains("empty"));
    }

    fn run(script: &str, patience: Duration) -> Result<CommandOutput, String> {
        let words = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        Program { words, path: None, patience }.run()
    }

    #[test]
    fn a_programs_output_is_read_and_a_slow_one_is_killed() {
        let long = Duration::from_secs(60);
        let output = run("echo out; echo err >&2; exit 3", long).unwrap();
        assert_eq!((output.status, &output.stdout[..], &output.stderr[..]), (3, &b"out\n"[..], &b"err"[..]));
        // More than a pipe holds, on both pipes.
        let output = run("head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; echo end", long).unwrap();
        assert_eq!((output.status, output.stdout.len()), (0, 64 << 10));
        let said = run("sleep 600 & sleep 600; echo never", Duration::from_millis(50)).unwrap_err();
        assert!(said.contains("did not end within 50ms"), "{said}");
        let said = Program::parse("/nowhere/at-all", long).unwrap().run().unwrap_err();
        assert!(said.contains("cannot be started"), "{said}");
    }

    #[test]
    fn children_of_a_program_are_killed_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let script = format!("sleep 600 & echo $! > {}; wait", pid.display());
        assert!(run(&script, Duration::from_secs(1)).is_err());
        let pid: i32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        let is_gone = || {
            // A zombie counts as gone.
            let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
            rustix::process::test_kill_process(pid).is_err() || state.contains(") Z ")
        };
        leasehold_servers::wait_until("the grandchild has ended", is_gone);
    }
}
