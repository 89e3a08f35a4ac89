//! The world of a test clock: its time, which moves when a test says so, and all that happens by it.
//!
//! One rule orders everything. [`World::settle`] lets happen what is due: first the clients with something to do, by birth, then the
//! tasks that were woken, by birth, and when all of them rest, one callback of a user's; then again. Only a world that rests moves its
//! time, to the next instant at which something is due. So a test with one thread takes the same course each time.
//!
//! Nothing of the world is locked while code of users runs, and a task is taken out while it is polled. So callbacks and tasks may
//! do whatever a test may do, and move the time themselves.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use leasehold_core::Monotonic;

use crate::error::Error;
use crate::host::sync::atomic::{AtomicU64, Ordering};
use crate::host::sync::{Arc, Condvar, Mutex, Weak, thread_local};
use crate::host::time::{Callback, Kept, Ring};

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The time at which a world begins. Clocks of machines do not begin with 0 either.
const BEGIN: Monotonic = Monotonic::from_ns(3_600_000_000_000);
/// The same on the wall clock: 14 November 2023, 22:13:20 UTC.
const BEGIN_UNIX_MS: u64 = 1_700_000_000_000;
/// A wait goes on for so long after the last deadline that it has named. Then it is taken for one that never ends.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// A number that no other task or sleep has, of whatever world, and larger than those before.
fn next_id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// See the module.
pub(crate) struct World {
    now: AtomicU64,
    state: Mutex<State>,
    /// A turn, a task or a callback has come to its end.
    changed: Condvar,
}

struct State {
    random: u64,
    kept: Vec<Arc<dyn Kept>>,
    tasks: BTreeMap<u64, Slot>,
    woken: BTreeSet<u64>,
    sleeps: BTreeMap<(Monotonic, u64), Waker>,
    callbacks: VecDeque<Callback>,
    /// Turns of clients that are being taken, by any thread, and all else that runs.
    turns: usize,
    running: usize,
}

struct Slot {
    /// `None` while it is polled.
    task: Option<Task>,
    is_woken_meanwhile: bool,
    ring: Arc<Mutex<Ring>>,
}

/// The work of this thread for a world.
#[derive(Default)]
struct Here {
    /// The tasks that it polls, each within the one before.
    tasks: Vec<u64>,
    turns: usize,
    running: usize,
    waited_for: Option<Waited>,
}

/// The wait of a future for a world, and the last deadline that it has named.
#[derive(Clone)]
pub(crate) struct Waited {
    pub(crate) world: Arc<World>,
    since: Monotonic,
    until: Monotonic,
}

impl Waited {
    /// Adds what was noted since, by the same future.
    pub(crate) fn add(known: &mut Option<Self>, noted: Option<Self>) {
        let Some(noted) = noted else { return };
        let before = known.take().filter(|before| Arc::ptr_eq(&before.world, &noted.world));
        *known = Some(match before {
            None => noted,
            Some(before) => Self { until: before.until.max(noted.until), ..before },
        });
    }

    /// The time from which on it is taken for one that never ends.
    pub(crate) fn patience(&self) -> Monotonic {
        self.since.max(self.until).plus(PATIENCE)
    }

    /// A step for it, no further than `most`. Answers whether nothing is left to wait for, unless the future was woken meanwhile.
    pub(crate) fn step(&self, most: Monotonic) -> bool {
        self.world.step_for(self.patience(), most)
    }

    /// Says that it never ends.
    pub(crate) fn never_ends(&self) -> Error {
        Error::config(format!(
            "{NEVER_ENDS}: {} s of the test clock have passed, and no timer will end it; set a wait, or \
             release the lock first",
            self.world.monotonic().since(self.since).as_secs()
        ))
    }
}

/// How the message of a wait begins that never ends.
pub(crate) const NEVER_ENDS: &str = "this wait never ends";

thread_local! {
    static HERE: RefCell<Here> = RefCell::default();
}

/// The world for which futures of this thread wait, since it was last asked.
pub(crate) fn waited_for() -> Option<Waited> {
    HERE.with_borrow_mut(|here| here.waited_for.take())
}

/// Puts back what was taken by [`waited_for`], once other code of this thread has run.
pub(crate) struct Aside(Option<Waited>);

impl Aside {
    pub(crate) fn take() -> Self {
        Self(waited_for())
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        let before = self.0.take();
        HERE.with_borrow_mut(|here| here.waited_for = before);
    }
}

/// Tells if this thread lets things happen in a world, and runs the callbacks of that.
pub(crate) fn is_here() -> bool {
    HERE.with_borrow(|here| here.running > 0)
}

/// Tells if this thread polls the task.
pub(crate) fn is_polled_here(task: u64) -> bool {
    HERE.with_borrow(|here| here.tasks.contains(&task))
}

/// The task that this thread polls.
pub(crate) fn task_here() -> Option<u64> {
    HERE.with_borrow(|here| here.tasks.last().copied())
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("age", &self.age()).finish_non_exhaustive()
    }
}

/// A piece of work that is counted while it runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    Turn,
    Task(u64),
    Settling,
}

/// Counts it until it is dropped.
struct Running<'a>(&'a World, Frame);

impl<'a> Running<'a> {
    fn new(world: &'a World, frame: Frame) -> Self {
        HERE.with_borrow_mut(|here| match frame {
            Frame::Turn => here.turns += 1,
            Frame::Task(task) => {
                here.tasks.push(task);
                here.running += 1;
            }
            Frame::Settling => here.running += 1,
        });
        let mut state = world.state.lock();
        if frame == Frame::Turn {
            state.turns += 1
        } else {
            state.running += 1
        }
        drop(state);
        Self(world, frame)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let Self(world, frame) = self;
        HERE.with_borrow_mut(|here| match frame {
            Frame::Turn => here.turns -= 1,
            Frame::Task(_) => {
                here.tasks.pop();
                here.running -= 1;
            }
            Frame::Settling => here.running -= 1,
        });
        let mut state = world.state.lock();
        if *frame == Frame::Turn {
            state.turns -= 1
        } else {
            state.running -= 1
        }
        drop(state);
        world.changed.notify_all();
    }
}

impl World {
    /// The same seed gives the same random bytes.
    pub(crate) fn new(seed: u64) -> Arc<Self> {
        let state = State {
            random: seed,
            kept: Vec::new(),
            tasks: BTreeMap::new(),
            woken: BTreeSet::new(),
            sleeps: BTreeMap::new(),
            callbacks: VecDeque::new(),
            turns: 0,
            running: 0,
        };
        Arc::new(Self { now: AtomicU64::new(BEGIN.ns()), state: Mutex::new(state), changed: Condvar::default() })
    }

    pub(crate) fn monotonic(&self) -> Monotonic {
        Monotonic::from_ns(self.now.load(Ordering::Acquire))
    }

    /// Since the world began.
    pub(crate) fn age(&self) -> Duration {
        self.monotonic().since(BEGIN)
    }

    pub(crate) fn unix_ms(&self) -> u64 {
        BEGIN_UNIX_MS.saturating_add(u64::try_from(self.age().as_millis()).unwrap_or(u64::MAX))
    }

    /// Random bytes that follow from the seed, by `SplitMix64`.
    pub(crate) fn fill(&self, bytes: &mut [u8]) {
        let mut state = self.state.lock();
        for part in bytes.chunks_mut(8) {
            state.random = state.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state.random;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            part.copy_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes()[..part.len()]);
        }
    }

    /// Notes that a future of this thread waits for the world, at most until then, so that whatever waits for the future moves the time.
    pub(crate) fn note_wait(self: &Arc<Self>, until: Option<Monotonic>) {
        HERE.with_borrow_mut(|here| {
            let noted = Waited { world: Arc::clone(self), since: self.monotonic(), until: until.unwrap_or(BEGIN) };
            Waited::add(&mut here.waited_for, Some(noted));
        });
    }

    /// Gives one its turns from now on, until it has had its last.
    pub(crate) fn keep(&self, kept: Arc<dyn Kept>) {
        self.state.lock().kept.push(kept);
    }

    /// Calls it once the world is about to rest.
    pub(crate) fn call(&self, callback: Callback) {
        self.state.lock().callbacks.push_back(callback);
    }

    /// Polls a task to its end, also at the times that it sets its alarm to. Answers its number.
    pub(crate) fn spawn(&self, task: Task, ring: Arc<Mutex<Ring>>) -> u64 {
        let (id, mut state) = (next_id(), self.state.lock());
        state.tasks.insert(id, Slot { task: Some(task), is_woken_meanwhile: false, ring });
        state.woken.insert(id);
        id
    }

    /// Lets happen everything that is due now. Answers whether there was anything.
    pub(crate) fn settle(self: &Arc<Self>) -> bool {
        let mut has_acted = false;
        // Another thread that waits must not take the world for one at rest in between.
        let _running = Running::new(self, Frame::Settling);
        while self.take_turns() || self.poll_tasks() || self.call_back() {
            has_acted = true;
        }
        has_acted
    }

    fn take_turns(&self) -> bool {
        let (kept, now) = (self.state.lock().kept.clone(), self.monotonic());
        let mut has_acted = false;
        for one in kept.into_iter().filter(|one| one.due() <= now) {
            has_acted = true;
            let turn = Running::new(self, Frame::Turn);
            if Arc::clone(&one).turn() {
                self.state.lock().kept.retain(|kept| !Arc::ptr_eq(kept, &one));
            }
            drop(turn);
        }
        has_acted
    }

    fn poll_tasks(self: &Arc<Self>) -> bool {
        let woken = std::mem::take(&mut self.state.lock().woken);
        let mut has_acted = false;
        for id in woken {
            has_acted |= self.poll_task(id);
        }
        has_acted
    }

    fn poll_task(self: &Arc<Self>, id: u64) -> bool {
        let mut state = self.state.lock();
        let Some(slot) = state.tasks.get_mut(&id) else { return false };
        let Some(mut task) = slot.task.take() else {
            slot.is_woken_meanwhile = true;
            return false;
        };
        slot.ring.lock().at = None;
        drop(state);
        let waker = Waker::from(Arc::new(TaskWaker { world: Arc::downgrade(self), id }));
        let polled = {
            let (_aside, _running) = (Aside::take(), Running::new(self, Frame::Task(id)));
            catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(&mut Context::from_waker(&waker))))
        };
        let mut state = self.state.lock();
        match (polled, state.tasks.get_mut(&id)) {
            (Ok(Poll::Pending), Some(slot)) => {
                slot.task = Some(task);
                slot.ring.lock().is_cut_short = false;
                if std::mem::take(&mut slot.is_woken_meanwhile) {
                    state.woken.insert(id);
                }
            }
            (polled, _) => {
                state.tasks.remove(&id);
                drop(state);
                drop(task);
                if let Err(panic) = polled {
                    std::panic::resume_unwind(panic);
                }
            }
        }
        true
    }

    fn wake(&self, id: u64) {
        let mut state = self.state.lock();
        match state.tasks.get_mut(&id) {
            Some(slot) if slot.task.is_none() => slot.is_woken_meanwhile = true,
            Some(_) => drop(state.woken.insert(id)),
            None => {}
        }
    }

    fn call_back(&self) -> bool {
        let Some(callback) = self.state.lock().callbacks.pop_front() else { return false };
        // Its panic has been told, as on the threads for callbacks.
        let _ = catch_unwind(AssertUnwindSafe(callback));
        true
    }

    /// Lets this much time pass, with everything that happens meanwhile.
    pub(crate) fn advance(self: &Arc<Self>, time: Duration) {
        let end = self.monotonic().plus(time);
        loop {
            self.settle();
            match self.next_due() {
                due if due <= end => self.move_to(due),
                _ if self.monotonic() < end => self.move_to(end),
                _ => return,
            }
        }
    }

    /// Lets happen what is due, or else what is due next, if that is no later than `most`. Answers whether anything has happened.
    pub(crate) fn step(self: &Arc<Self>, most: Monotonic) -> bool {
        if self.settle() {
            return true;
        }
        let due = self.next_due();
        let is_due = due <= most && due < Monotonic::FAR;
        if is_due {
            self.move_to(due);
            self.settle();
        }
        is_due
    }

    /// Steps until something holds, for so long at most. Answers whether it holds.
    pub(crate) fn step_until(self: &Arc<Self>, most: Duration, holds: impl Fn() -> bool) -> bool {
        let end = self.monotonic().plus(most);
        while !holds() {
            if !self.step(end) {
                self.move_to(end);
                self.settle();
                return holds();
            }
        }
        true
    }

    fn step_for(self: &Arc<Self>, patience: Monotonic, most: Monotonic) -> bool {
        if self.settle() || self.monotonic() >= most {
            return false;
        }
        let to = self.next_due().min(most);
        if to == Monotonic::FAR || most == Monotonic::FAR && to > patience {
            return !self.waits_for_others();
        }
        self.move_to(to);
        self.settle();
        false
    }

    /// Waits until another thread has done something for the world; `false` if none is about to.
    fn waits_for_others(&self) -> bool {
        let own = HERE.with_borrow(|here| here.turns + here.running);
        let state = self.state.lock();
        if state.turns + state.running <= own {
            return false;
        }
        drop(self.changed.wait(state));
        true
    }

    fn next_due(&self) -> Monotonic {
        let state = self.state.lock();
        let waiting = state.tasks.values().filter(|slot| slot.task.is_some());
        let alarms = waiting.filter_map(|slot| slot.ring.lock().at);
        let sleeps = state.sleeps.keys().next().map(|(until, _)| *until);
        let first = alarms.chain(sleeps).fold(Monotonic::FAR, Monotonic::min);
        let kept = state.kept.clone();
        // They lock what asks the world for the time.
        drop(state);
        kept.iter().map(|one| one.due()).fold(first, Monotonic::min)
    }

    /// Cuts short what tasks sleep through.
    pub(crate) fn end_pauses(&self) {
        let mut state = self.state.lock();
        let mut woken = BTreeSet::new();
        for (id, slot) in state.tasks.iter().filter(|(_, slot)| slot.task.is_some()) {
            let mut ring = slot.ring.lock();
            if ring.at.take().is_some() {
                ring.is_cut_short = true;
                woken.insert(*id);
            }
        }
        state.woken.append(&mut woken);
    }

    /// Moves the time, once no other thread is in the middle of a turn.
    fn move_to(&self, to: Monotonic) {
        let own = HERE.with_borrow(|here| here.turns);
        let mut state = self.state.lock();
        while state.turns > own {
            state = self.changed.wait(state);
        }
        self.now.fetch_max(to.ns(), Ordering::AcqRel);
        let mut ringing = BTreeSet::new();
        for (id, slot) in state.tasks.iter().filter(|(_, slot)| slot.task.is_some()) {
            if slot.ring.lock().at.take_if(|at| *at <= to).is_some() {
                ringing.insert(*id);
            }
        }
        state.woken.append(&mut ringing);
        let later = state.sleeps.split_off(&(to, u64::MAX));
        let over = std::mem::replace(&mut state.sleeps, later);
        drop(state);
        over.into_values().for_each(Waker::wake);
    }
}

/// Wakes a task of a world.
struct TaskWaker {
    world: Weak<World>,
    id: u64,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(world) = self.world.upgrade() {
            world.wake(self.id);
        }
    }
}

/// Ready at that time of the world.
pub(crate) struct Sleep {
    world: Arc<World>,
    until: Monotonic,
    /// A wait may go on for so long, however long that is.
    names_end: bool,
    id: Option<u64>,
}

impl Sleep {
    pub(crate) fn new(world: &Arc<World>, time: Duration, names_end: bool) -> Self {
        Self { world: Arc::clone(world), until: world.monotonic().plus(time), names_end, id: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.world.monotonic() >= self.until {
            return Poll::Ready(());
        }
        self.world.note_wait(Some(self.until).filter(|_| self.names_end));
        let world = Arc::clone(&self.world);
        let mut state = world.state.lock();
        let id = *self.id.get_or_insert_with(next_id);
        let replaced = state.sleeps.insert((self.until, id), context.waker().clone());
        drop(state);
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            let removed = self.world.state.lock().sleeps.remove(&(self.until, id));
            drop(removed);
        }
    }
}
