//! The rest of a process group: processes that have ended stay in it until somebody reaps them, and the first process of a
//! container may reap nothing.

use std::path::{Path, PathBuf};
use std::{fs, iter};

use rustix::process::Pid;

/// Looks for processes of a group that have not ended.
pub(super) struct Remains {
    group: Pid,
    /// The folder in `/proc` of the one that was found last.
    last: Option<PathBuf>,
}

impl Remains {
    pub(super) const fn of(group: Pid) -> Self {
        Self { group, last: None }
    }

    /// Tells if there is one, of a group that has members. Where the system does not say, each of them counts.
    pub(super) fn are_at_work(&mut self) -> bool {
        if self.last.as_deref().is_some_and(|last| is_at_work(last, self.group)) {
            return true;
        }
        let Some(mut all) = processes() else { return true };
        self.last = all.find(|process| is_at_work(process, self.group));
        self.last.is_some()
    }
}

/// The folders of all processes.
fn processes() -> Option<impl Iterator<Item = PathBuf>> {
    // Nothing else in `/proc` is of use: a system without the state of this process has no state of others either.
    fs::metadata("/proc/self/stat").ok()?;
    let mut folders = fs::read_dir("/proc").ok()?;
    Some(iter::from_fn(move || Some(folders.next()?.ok()?.path())))
}

fn is_at_work(process: &Path, group: Pid) -> bool {
    let Ok(stat) = fs::read(process.join("stat")) else { return false };
    let stat = String::from_utf8_lossy(&stat);
    // The name in parentheses may contain anything.
    let Some((_, fields)) = stat.rsplit_once(')') else { return false };
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<i32>().ok());
    // A process whose first thread has ended goes on with the others.
    let has_ended = matches!(fields.first(), Some(&("Z" | "X"))) && number(17) <= Some(1);
    number(2) == Some(group.as_raw_pid()) && !has_ended
}
