//! A service: two processes, and the addresses at which they listen.

use std::env;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use leasehold_bench::child::Child;
use leasehold_bench::rng::Rng;
use serde_json::{Value, json};

use super::board::Board;
use super::lock;
use crate::Result;
use crate::chaos::environment::StoreKind;
use crate::chaos::worker::QUORUM;
use crate::chaos::workers::{Language, launch};

/// The processes of a service.
pub const PROCESSES: usize = 2;
/// The ttl of runs, unless a quorum sets a shorter bound.
const TTL: Duration = Duration::from_secs(2);

/// A service, by the frameworks of its processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// FastAPI on uvicorn.
    Fastapi,
    /// Express on Node.
    Express,
    /// One process of each, which read each other's responses.
    Both,
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fastapi, Self::Express, Self::Both];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fastapi => "FastAPI",
            Self::Express => "Express",
            Self::Both => "one of each",
        }
    }

    const fn language(self, slot: usize) -> Language {
        match self {
            Self::Fastapi => Language::Python,
            Self::Express => Language::Node,
            Self::Both if slot == 0 => Language::Python,
            Self::Both => Language::Node,
        }
    }
}

/// The ttl on a store.
pub fn ttl(store: StoreKind) -> Duration {
    store.max_ttl().unwrap_or(TTL).min(TTL)
}

/// The settings of the processes, passed as JSON in their first argument.
pub fn task(store: StoreKind, urls: &[String], is_protected: bool) -> Value {
    json!({
        "stores": urls,
        "max_ttl_ms": store.max_ttl().map(|ttl| ttl.as_millis() as u64),
        "quorum": QUORUM,
        "ttl_ms": ttl(store).as_millis() as u64,
        "is_protected": is_protected,
    })
}

/// Where a process listens, and its number.
type Door = Option<(SocketAddr, usize)>;

/// The doors of the last process in each place. One that was killed is still asked until another one listens.
#[derive(Clone, Default)]
pub struct Doors(Arc<Mutex<[Door; PROCESSES]>>);

impl Doors {
    /// The address of one of the processes, and its number.
    ///
    /// # Panics
    /// Before all of them have listened.
    pub fn any(&self, rng: &mut Rng) -> (SocketAddr, usize) {
        let slot = (rng.draw() % PROCESSES as u64) as usize;
        lock(&self.0)[slot].expect("all have listened")
    }

    /// True if all of them have listened.
    pub fn are_open(&self) -> bool {
        lock(&self.0).iter().all(Option::is_some)
    }

    fn listens(&self, process: &Process) -> bool {
        lock(&self.0)[process.slot].is_some_and(|(_, number)| number == process.number)
    }
}

/// A process of a service.
pub struct Process {
    child: Child,
    number: usize,
    slot: usize,
    stopped_until: Option<Instant>,
}

/// All that is needed to start a process.
pub struct Setup {
    pub service: Service,
    pub task: Value,
    pub doors: Doors,
    pub board: Arc<Mutex<Board>>,
}

impl Setup {
    /// Starts the process in a place.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, slot: usize) -> Result<Process> {
        let number = lock(&self.board).open();
        let mut command = launch(&self.service.language(slot).script("service", self.task.to_string())?)?;
        if env::var_os("PYTHONPYCACHEPREFIX").is_some() {
            // It is started often, and would compile FastAPI each time.
            command.env_remove("PYTHONDONTWRITEBYTECODE");
        }
        let (doors, board) = (self.doors.clone(), Arc::clone(&self.board));
        let child = Child::run(&mut command, move |line| {
            let Some(line) = line else { return };
            match line.strip_prefix("listening ").map(str::parse::<u16>) {
                Some(Ok(port)) => lock(&doors.0)[slot] = Some((([127, 0, 0, 1], port).into(), number)),
                _ => lock(&board).hear(number, line),
            }
        })?;
        Ok(Process { child, number, slot, stopped_until: None })
    }

    /// True if it answers, as far as is known.
    pub fn is_up(&self, process: &Process) -> bool {
        process.stopped_until.is_none() && self.doors.listens(process)
    }

    /// SIGKILL, and another process in its place.
    ///
    /// # Errors
    /// When that one cannot be started.
    pub fn replace(&self, process: &mut Process) -> Result {
        process.child.kill();
        lock(&self.board).kill(process.number);
        *process = self.start(process.slot)?;
        Ok(())
    }

    /// SIGSTOP for a while.
    pub fn stop(&self, process: &mut Process, length: Duration) {
        lock(&self.board).stop(process.number);
        process.child.stop();
        process.stopped_until = Some(Instant::now() + length);
    }

    /// SIGCONT, if it is time.
    pub fn go_on(&self, process: &mut Process) {
        if process.stopped_until.is_some_and(|until| Instant::now() >= until) {
            process.stopped_until = None;
            process.child.go_on();
            lock(&self.board).go_on(process.number);
        }
    }

    /// Ends it when all is over.
    pub fn end(&self, mut process: Process) {
        process.child.kill();
        lock(&self.board).end(process.number);
    }

    /// # Errors
    /// It has ended by itself.
    pub fn lives(&self, process: &mut Process) -> Result {
        match process.child.ended()? {
            Some(status) => Err(format!("a process of {} has ended by itself: {status}", self.service.name()).into()),
            None => Ok(()),
        }
    }
}
