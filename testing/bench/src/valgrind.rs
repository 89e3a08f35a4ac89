//! Counts of what a process does, by Valgrind. A count is the same on a machine that has other work to do.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

/// A tool of Valgrind.
#[derive(Clone, Copy, Debug)]
pub enum Tool {
    /// Instructions of all threads.
    Instructions,
    /// Blocks of memory that were allocated.
    Allocations,
}

impl Tool {
    /// The arguments, and what stands before and behind the number in its log.
    fn of(self) -> (&'static [&'static str], &'static str, &'static str) {
        match self {
            Self::Instructions => (&["--tool=callgrind", "--callgrind-out-file=/dev/null"], "Collected : ", ""),
            Self::Allocations => (&["--tool=dhat", "--dhat-out-file=/dev/null"], " bytes in ", " blocks"),
        }
    }

    /// A command that runs `program`, and writes the count to `log` at its end.
    pub fn command(self, log: &Path, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("valgrind");
        command.args(self.of().0).arg(format!("--log-file={}", log.display())).arg(program);
        command
    }

    /// Reads the count.
    ///
    /// # Errors
    /// The log cannot be read, or has no count.
    pub fn counted(self, log: &Path) -> io::Result<u64> {
        let (_, before, behind) = self.of();
        let text = fs::read_to_string(log)?;
        let found = text.lines().find_map(|line| {
            let (_, rest) = line.split_once(before)?;
            let number = if behind.is_empty() { rest } else { rest.split_once(behind)?.0 };
            number.trim().replace(',', "").parse().ok()
        });
        found.ok_or_else(|| io::Error::other(format!("Valgrind counted nothing:\n{text}")))
    }
}
