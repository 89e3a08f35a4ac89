//! The journals of processes that use several locks at once.

use serde_json::Value;

use super::journal::{Entry, Event, Journal};

/// The lines of the workers so far, by process and lock: the tokens of one lock say nothing of another one's.
#[derive(Default)]
pub struct Journals {
    /// The name, the group and the journals of each process.
    processes: Vec<(String, usize, Vec<Journal>)>,
    /// The errors of all processes.
    pub errors: u64,
    /// A line that no worker writes.
    pub strange: Option<String>,
}

impl Journals {
    /// A new process; the answer is its number.
    pub fn open(&mut self, worker: String, group: usize) -> usize {
        self.processes.push((worker, group, Vec::new()));
        self.processes.len() - 1
    }

    /// The number of processes so far.
    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// Takes a line of a process. The number of its lock is in `permit`.
    pub fn hear(&mut self, process: usize, line: &str) {
        let value: Value = serde_json::from_str(line).unwrap_or_default();
        let lock = value["permit"].as_u64().and_then(|lock| usize::try_from(lock).ok());
        match (Entry::parse(line), lock) {
            (Ok(Entry { event: Event::Failed { .. }, .. }), None) => self.errors += 1,
            (Ok(entry), Some(lock)) => {
                let (worker, group, own) = &mut self.processes[process];
                while own.len() <= lock {
                    own.push(Journal { worker: worker.clone(), group: *group, ..Journal::default() });
                }
                own[lock].entries.push(entry);
            }
            (Ok(_) | Err(_), _) => self.strange = Some(line.to_owned()),
        }
    }

    /// Notes that a process was killed.
    pub fn end(&mut self, process: usize, at: u64) {
        self.processes[process].2.iter_mut().for_each(|journal| journal.ended = at);
    }

    /// The journals of one process, by lock.
    pub fn of(&self, process: usize) -> &[Journal] {
        &self.processes[process].2
    }

    /// The times and the tokens of all grants of a lock.
    pub fn granted(&self, lock: usize) -> impl Iterator<Item = (u64, u64)> {
        let journals = self.processes.iter().filter_map(move |(_, _, own)| own.get(lock));
        journals.flat_map(|journal| &journal.entries).filter_map(|entry| match entry.event {
            Event::Granted { token, .. } => Some((entry.at, token)),
            _ => None,
        })
    }

    /// The process that was granted this token of a lock.
    pub fn holder(&self, lock: usize, token: u64) -> Option<usize> {
        let is_it = |entry: &Entry| matches!(entry.event, Event::Granted { token: other, .. } if other == token);
        let has_it = |own: &Vec<Journal>| own.get(lock).is_some_and(|journal| journal.entries.iter().any(is_it));
        self.processes.iter().position(|(_, _, own)| has_it(own))
    }

    /// The journals of all processes, for each lock.
    pub fn by_lock(&self) -> Vec<Vec<Journal>> {
        let locks = self.processes.iter().map(|(_, _, own)| own.len()).max().unwrap_or_default();
        (0..locks)
            .map(|lock| self.processes.iter().filter_map(|(_, _, own)| own.get(lock).cloned()).collect())
            .collect()
    }
}
