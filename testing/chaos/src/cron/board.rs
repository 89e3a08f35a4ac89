//! The protected resource, and what the machines tell of their work.

use leasehold::fence::Guards;

/// The resource and the journal of all slots.
pub struct Board {
    slots: Vec<Slot>,
    guards: Guards,
    pub(super) kills: u64,
    pub(super) stops: u64,
    /// Lines that no machine may tell.
    faults: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    begun: u64,
    written: u64,
    refused: u64,
    finished: u64,
    unconfirmed: u64,
    lost: u64,
}

/// The slots by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub slots: u64,
    /// Slots whose finish (of a lock: release) was confirmed once, and more often.
    pub finished_once: u64,
    pub finished_again: u64,
    /// Slots that nobody began.
    pub skipped: u64,
    /// Slots that were begun more than once.
    pub begun_again: u64,
    /// Slots that the resource shows written more than once.
    pub written_again: u64,
    /// Writes that the guard refused.
    pub refused: u64,
    pub unconfirmed: u64,
    pub lost: u64,
    /// Slots with a mark in the store.
    pub marked: u64,
    pub kills: u64,
    pub stops: u64,
    /// Answers that nothing explains.
    pub faults: Vec<String>,
}

impl Board {
    /// A board of that many slots.
    pub fn new(slots: u64) -> Self {
        let slots = vec![Slot::default(); usize::try_from(slots).unwrap_or_default()];
        Self { guards: Guards::new(slots.len()), slots, kills: 0, stops: 0, faults: Vec::new() }
    }

    /// Takes a line of a machine: what, slot, token.
    pub fn hear(&mut self, line: &str) {
        let mut words = line.split(' ');
        let what = words.next().unwrap_or_default();
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        let (Some(name), Some(token)) = (number(), number()) else { return self.faults.push(line.to_owned()) };
        let Some(slot) = usize::try_from(name).ok().and_then(|slot| self.slots.get_mut(slot)) else {
            return self.faults.push(line.to_owned());
        };
        let item = name.to_string();
        match what {
            "begun" => {
                slot.begun += 1;
                slot.refused += u64::from(self.guards.claim(&item, token).is_err());
            }
            "written" => match self.guards.check(&item, token) {
                Ok(()) => slot.written += 1,
                Err(_) => slot.refused += 1,
            },
            "finished" => slot.finished += 1,
            "unconfirmed" => slot.unconfirmed += 1,
            "lost" => slot.lost += 1,
            "skipped" => {}
            _ => self.faults.push(line.to_owned()),
        }
    }

    /// Counts the slots.
    pub fn counts(&self) -> Counts {
        let many = |is: fn(&Slot) -> bool| self.slots.iter().filter(|slot| is(slot)).count() as u64;
        let sum = |of: fn(&Slot) -> u64| self.slots.iter().map(of).sum();
        Counts {
            slots: self.slots.len() as u64,
            finished_once: many(|slot| slot.finished == 1),
            finished_again: many(|slot| slot.finished > 1),
            skipped: many(|slot| slot.begun == 0),
            begun_again: many(|slot| slot.begun > 1),
            written_again: many(|slot| slot.written > 1),
            refused: sum(|slot| slot.refused),
            unconfirmed: sum(|slot| slot.unconfirmed),
            lost: sum(|slot| slot.lost),
            marked: 0,
            kills: self.kills,
            stops: self.stops,
            faults: self.faults.clone(),
        }
    }
}

impl Counts {
    /// Tells why these cannot be of runs: a slot that is not done, or that was finished twice.
    pub fn broken(&self) -> Option<String> {
        let wrong = |what: &str, count: u64| Some(format!("{count} of {} slots {what}", self.slots));
        match self {
            Self { finished_again: 1.., .. } => wrong("were finished more than once", self.finished_again),
            Self { skipped: 1.., .. } => wrong("were never begun", self.skipped),
            _ if self.marked < self.slots => wrong("have no mark", self.slots - self.marked),
            _ => self.faults.first().map(|line| format!("a machine told: {line}")),
        }
    }
}
