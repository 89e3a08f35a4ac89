//! The protected resource, and what the machines tell of their work.

use leasehold::fence::Guards;

use super::worker::MOST_ATTEMPTS;

/// The resource and the journal of all keys.
pub struct Board {
    keys: Vec<Key>,
    guards: Guards,
    pub(super) kills: u64,
    pub(super) stops: u64,
    /// Lines that no machine may tell.
    faults: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Key {
    begun: u64,
    written: u64,
    refused: u64,
    finished: u64,
    unconfirmed: u64,
    lost: u64,
    given_up: u64,
    missing: u64,
    unavailable: u64,
}

/// The keys by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub keys: u64,
    /// Keys whose finish (of a lock: release) was confirmed once, and more often.
    pub finished_once: u64,
    pub finished_again: u64,
    /// Keys that nobody began.
    pub skipped: u64,
    /// Keys that were begun more than once.
    pub begun_again: u64,
    /// Keys that the resource shows written more than once.
    pub written_again: u64,
    /// Writes that the guard refused.
    pub refused: u64,
    pub unconfirmed: u64,
    pub lost: u64,
    /// Keys that were begun more often than attempts are allowed.
    pub too_often: u64,
    /// Keys that were given up and not finished, and those of them that were begun less often than allowed.
    pub given_up: u64,
    pub given_up_early: u64,
    /// Answers that work is done, without its result.
    pub missing: u64,
    /// Answers that the store cannot be reached.
    pub unavailable: u64,
    /// Keys with a completion in the store.
    pub marked: u64,
    pub kills: u64,
    pub stops: u64,
    /// Answers that nothing explains.
    pub faults: Vec<String>,
}

impl Board {
    /// A board of that many keys.
    pub fn new(keys: u64) -> Self {
        let keys = vec![Key::default(); usize::try_from(keys).unwrap_or_default()];
        Self { guards: Guards::new(keys.len()), keys, kills: 0, stops: 0, faults: Vec::new() }
    }

    /// Takes a line of a machine: what, key, token.
    pub fn hear(&mut self, line: &str) {
        let mut words = line.split(' ');
        let what = words.next().unwrap_or_default();
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        let (Some(name), Some(token)) = (number(), number()) else { return self.faults.push(line.to_owned()) };
        let Some(key) = usize::try_from(name).ok().and_then(|key| self.keys.get_mut(key)) else {
            return self.faults.push(line.to_owned());
        };
        let item = name.to_string();
        match what {
            "begun" => {
                key.begun += 1;
                key.refused += u64::from(self.guards.claim(&item, token).is_err());
            }
            "written" => match self.guards.check(&item, token) {
                Ok(()) => key.written += 1,
                Err(_) => key.refused += 1,
            },
            "finished" => key.finished += 1,
            "unconfirmed" => key.unconfirmed += 1,
            "lost" => key.lost += 1,
            "given_up" => key.given_up += 1,
            "missing" => key.missing += 1,
            "unavailable" => key.unavailable += 1,
            "skipped" | "failing" => {}
            _ => self.faults.push(line.to_owned()),
        }
    }

    /// Counts the keys.
    pub fn counts(&self) -> Counts {
        let many = |is: fn(&Key) -> bool| self.keys.iter().filter(|key| is(key)).count() as u64;
        let sum = |of: fn(&Key) -> u64| self.keys.iter().map(of).sum();
        Counts {
            keys: self.keys.len() as u64,
            finished_once: many(|key| key.finished == 1),
            finished_again: many(|key| key.finished > 1),
            skipped: many(|key| key.begun == 0),
            begun_again: many(|key| key.begun > 1),
            written_again: many(|key| key.written > 1),
            refused: sum(|key| key.refused),
            unconfirmed: sum(|key| key.unconfirmed),
            lost: sum(|key| key.lost),
            too_often: many(|key| key.begun > u64::from(MOST_ATTEMPTS)),
            given_up: many(|key| key.given_up > 0 && key.finished == 0),
            given_up_early: many(|key| key.given_up > 0 && key.begun < u64::from(MOST_ATTEMPTS)),
            missing: sum(|key| key.missing),
            unavailable: sum(|key| key.unavailable),
            marked: 0,
            kills: self.kills,
            stops: self.stops,
            faults: self.faults.clone(),
        }
    }
}

impl Counts {
    /// Tells why these cannot be of runs whose attempts are counted: in addition, one that was begun too often, or given up for less
    /// than each process that died, stood still or lost its lease explains.
    pub fn broken_by_attempts(&self) -> Option<String> {
        if self.too_often > 0 {
            return Some(format!(
                "{} of {} keys were begun more than {MOST_ATTEMPTS} times",
                self.too_often, self.keys
            ));
        }
        if self.given_up_early > self.kills + self.stops + self.lost {
            return Some(format!("{} keys were given up early", self.given_up_early));
        }
        self.broken()
    }

    /// Tells why these cannot be of runs: a key that is not done, or that was finished twice.
    pub fn broken(&self) -> Option<String> {
        let wrong = |what: &str, count: u64| {
            let told = self.faults.first().map(|line| format!("; a machine told: {line}")).unwrap_or_default();
            Some(format!("{count} of {} keys {what}{told}", self.keys))
        };
        match self {
            Self { finished_again: 1.., .. } => wrong("were finished more than once", self.finished_again),
            Self { skipped: 1.., .. } => wrong("were never begun", self.skipped),
            _ if self.marked + self.given_up < self.keys => {
                wrong("are neither done nor given up", self.keys - self.marked - self.given_up)
            }
            _ => self.faults.first().map(|line| format!("a machine told: {line}")),
        }
    }
}
