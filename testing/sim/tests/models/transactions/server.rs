//! A Redis with one name: its lock and its counter. Scripts are known by their digests and do what they say they do.

use leasehold_wire::redis::{Command, SCRIPTS};
use leasehold_wire::resp::Value;

/// Left out on purpose, so that the search has something to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Bug {
    /// The script answers the counter of its own lock, however low.
    OwnLockIgnoresFloor,
    /// The script does not pass a lost counter by the server's clock.
    NoClock,
    /// The script keeps its own lock although the counter is no number.
    KeepsLockWithoutToken,
    /// The memory of a connection is kept when a new one is made.
    MemoryOutlivesConnection,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Counter {
    None,
    Number(u64),
    /// A value of another kind.
    Wrong,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    /// The value under the lock.
    pub(crate) lock: Option<String>,
    pub(crate) counter: Counter,
    /// The user may use `MULTI`.
    pub(crate) allows_multi: bool,
}

/// Tokens have 16 digits; a counter with fewer was lost.
const YOUNGEST: u64 = 1_000_000_000_000_000;

fn ok() -> Value {
    Value::Simple("OK".into())
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.into())
}

/// The number of the request, which ends each answer, and is all of that to a release that frees the lock.
fn number_of(command: &Command) -> Value {
    Value::Bulk(command.words().last().expect("the number of the request").to_vec())
}

impl Server {
    pub(crate) fn new() -> Self {
        Self { lock: None, counter: Counter::None, allows_multi: true }
    }

    /// Runs commands of one client that nobody else's come between.
    pub(crate) fn run(&mut self, commands: &[Command], now_us: u64, bug: Option<Bug>) -> Vec<Value> {
        let mut replies = Vec::new();
        let mut queue: Option<Vec<&Command>> = None;
        for command in commands {
            let name = text(command, 0);
            replies.push(match (name, &mut queue) {
                ("MULTI", None) if self.allows_multi => {
                    queue = Some(Vec::new());
                    ok()
                }
                ("MULTI", _) => Value::Error("NOPERM no permissions to run the 'multi' command".into()),
                ("EXEC", Some(queued)) => {
                    let queued = std::mem::take(queued);
                    queue = None;
                    Value::Array(queued.into_iter().map(|command| self.one(command, now_us, bug)).collect())
                }
                ("EXEC", None) => Value::Error("ERR EXEC without MULTI".into()),
                (_, Some(queued)) => {
                    queued.push(command);
                    Value::Simple("QUEUED".into())
                }
                (_, None) => self.one(command, now_us, bug),
            });
        }
        replies
    }

    fn one(&mut self, command: &Command, now_us: u64, bug: Option<Bug>) -> Value {
        match text(command, 0) {
            "SET" if self.lock.is_none() => {
                self.lock = Some(text(command, 2).to_owned());
                ok()
            }
            "SET" => Value::Nil,
            "INCR" => match self.counter {
                Counter::Wrong => Value::Error("WRONGTYPE Operation against a key holding the wrong kind".into()),
                Counter::None => self.count(1),
                Counter::Number(number) => self.count(number + 1),
            },
            "PEXPIRE" => Value::Integer(i64::from(self.counter != Counter::None)),
            "EVALSHA" => {
                let script = SCRIPTS.iter().find(|script| script.sha1 == text(command, 1)).expect("a script");
                let parts = match script.name {
                    "acquire" => self.acquire(command, now_us, bug),
                    "release" if self.frees(text(command, 5)) => return number_of(command),
                    "release" => vec![bulk("free")],
                    other => panic!("{other} is not asked for here"),
                };
                Value::Array(parts.into_iter().chain([number_of(command)]).collect())
            }
            other => panic!("{other} is not asked for here"),
        }
    }

    fn count(&mut self, number: u64) -> Value {
        self.counter = Counter::Number(number);
        Value::Integer(i64::try_from(number).expect("a counter"))
    }

    fn acquire(&mut self, command: &Command, now_us: u64, bug: Option<Bug>) -> Vec<Value> {
        let (value, floor) = (text(command, 5), text(command, 8).parse::<u64>().expect("a floor"));
        let taken = self.lock.is_none();
        if let Some(other) = self.lock.as_ref().filter(|other| other[..32] != value[..32]) {
            let number = match self.counter {
                Counter::Number(number) => number.to_string(),
                Counter::None | Counter::Wrong => String::new(),
            };
            return vec![bulk("held"), bulk(other), Value::Integer(1_000), bulk(&number)];
        }
        self.lock = Some(value.to_owned());
        let old = match self.counter {
            Counter::None => 0,
            Counter::Number(number) => number,
            Counter::Wrong => {
                if taken || bug != Some(Bug::KeepsLockWithoutToken) {
                    self.lock = None;
                }
                return vec![bulk("corrupt")];
            }
        };
        let next = old + u64::from(taken);
        let ignores_floor = !taken && old > 0 && bug == Some(Bug::OwnLockIgnoresFloor);
        let mut token = if ignores_floor { next } else { next.max(floor) };
        if old < YOUNGEST && bug != Some(Bug::NoClock) && !ignores_floor {
            token = token.max(now_us);
        }
        self.counter = Counter::Number(token);
        vec![bulk("granted"), bulk(&token.to_string())]
    }

    fn frees(&mut self, nonce: &str) -> bool {
        self.lock.take_if(|value| value.starts_with(nonce)).is_some()
    }
}

fn text(command: &Command, at: usize) -> &str {
    std::str::from_utf8(command.words().nth(at).expect("a word")).expect("text")
}
