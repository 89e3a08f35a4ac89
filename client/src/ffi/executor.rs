//! An executor that lives on the event loop of another language.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Wake, Waker};

#[cfg(feature = "testing")]
use leasehold_core::Monotonic;
use rustix::fd::RawFd;

use crate::error::Error;
use crate::event_loop::{Background, Entered, EventLoop, Poller};
#[cfg(feature = "testing")]
use crate::host::sync::atomic::{AtomicBool, Ordering};
use crate::host::sync::{Arc, Mutex};
#[cfg(feature = "testing")]
use crate::host::world::{self, Waited};

/// A future that an [`Executor`] can run.
pub type Task<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;
/// The waiter of a task, and the task's result.
pub type Ended<W, T, E> = (W, Result<T, E>);
/// Tasks that have ended, by their ids.
pub type AllEnded<W, T, E> = Vec<(u64, Ended<W, T, E>)>;

/// The rounds of one [`Executor::run`]: in each, tasks are polled that were woken in the one before.
const ROUNDS: usize = 8;

/// Runs tasks on one event loop: the loop's thread polls them, and any thread can wake them. The first wake-up since the
/// last [`Executor::run`] notifies the loop; many wake-ups cost one notification. A panic in a task becomes an error of kind
/// [`ErrorKind::Internal`](crate::ErrorKind::Internal).
///
/// With a [`Poller`] the requests of tasks leave by sockets that the loop watches, where a store has such sockets.
pub struct Executor<W, T, E> {
    ready: Arc<ReadyQueue>,
    tasks: Mutex<Tasks<W, T, E>>,
    event_loop: Option<Arc<EventLoop>>,
    /// A task has waited for a test clock.
    #[cfg(feature = "testing")]
    has_clock: AtomicBool,
}

impl<W, T, E: From<Error>> Executor<W, T, E> {
    /// `notify` makes the loop call [`Executor::run`] soon, on its own thread. It must not block.
    pub fn new(notify: impl Fn() + Send + Sync + 'static) -> Self {
        let ready = Arc::new(ReadyQueue { woken: Mutex::default(), notify: Box::new(notify) });
        Self {
            ready,
            tasks: Mutex::new(Tasks { slots: Vec::new(), free: Vec::new(), awaited: 0 }),
            event_loop: None,
            #[cfg(feature = "testing")]
            has_clock: AtomicBool::new(false),
        }
    }

    /// Has the loop watch sockets as well.
    #[must_use]
    pub fn with_poller(mut self, poller: impl Poller + 'static) -> Self {
        let ready = Arc::clone(&self.ready);
        self.event_loop = Some(Arc::new(EventLoop::new(Box::new(poller), move || ready.push(NO_SLOT))));
        self
    }

    /// Polls a new task for the first time. Returns its id, and its result with its waiter if it has ended.
    pub fn start(&self, waiter: W, task: Task<T, E>) -> (u64, Option<Ended<W, T, E>>) {
        let (slot, id, waker) = self.tasks.lock().reserve(&self.ready);
        if self.event_loop.is_none() {
            return (id, self.poll(slot, (waiter, task, Noted::default()), &waker));
        }
        // Tasks that this one wakes are polled at the end of the turn.
        self.ready.hold();
        let entered = Entered::new(self.event_loop.clone());
        let ended = self.poll(slot, (waiter, task, Noted::default()), &waker);
        drop(entered);
        let others_are_ready = self.ready.hold_if_ready();
        self.arrange(others_are_ready);
        (id, ended)
    }

    /// Polls all tasks that were woken since the last call. Returns the ids and results of those that have ended.
    pub fn run(&self) -> AllEnded<W, T, E> {
        self.ready.hold();
        let entered = Entered::new(self.event_loop.clone());
        let mut ended = Vec::new();
        for _ in 0..ROUNDS {
            if !self.run_round(&mut ended) {
                break;
            }
        }
        drop(entered);
        self.ready.let_go();
        self.arrange(false);
        ended
    }

    /// Reads what a watched socket has to read, writes what it takes, and runs the tasks that can go on.
    pub fn on_ready(&self, socket: RawFd) -> AllEnded<W, T, E> {
        self.run_after(|event_loop| event_loop.on_ready(socket))
    }

    /// Writes the requests that were made in this turn of the loop, and runs the tasks that can go on.
    pub fn end_turn(&self) -> AllEnded<W, T, E> {
        self.run_after(EventLoop::end_turn)
    }

    /// Ends requests that have waited too long, and runs the tasks that can go on.
    pub fn on_timer(&self) -> AllEnded<W, T, E> {
        self.run_after(EventLoop::on_timer)
    }

    /// Expects requests in this turn, which [`Executor::end_turn`] is going to write.
    pub fn expect_requests(&self) {
        self.arrange(true);
    }

    /// Drops a task, and so gives up what it has begun. Returns `false` if the task has ended.
    pub fn cancel(&self, id: u64) -> bool {
        let task = self.tasks.lock().cancel(id);
        task.is_some()
    }

    /// Tells if [`Executor::step`] would do something.
    #[cfg(feature = "testing")]
    pub fn waits_for_clock(&self, moves: impl Fn(&W) -> bool) -> bool {
        self.has_clock.load(Ordering::Relaxed) && !self.tasks.lock().waits(moves).is_empty()
    }

    /// Lets something happen by the test clocks for which tasks wait, or moves each to the next time at which something is due: for a
    /// loop that has been idle for some turns. Only tasks with a waiter that `moves` names count: one that waits for the loss of a
    /// lease, for example, would move its clock forever. Runs the tasks that can go on, as [`Executor::run`], and ends those whose
    /// waits never end. `None` if no task waits for a test clock.
    #[cfg(feature = "testing")]
    pub fn step(&self, moves: impl Fn(&W) -> bool) -> Option<AllEnded<W, T, E>> {
        let mut waits = self.tasks.lock().waits(moves);
        if waits.is_empty() {
            return None;
        }
        self.ready.hold();
        let mut endless = Vec::new();
        while let Some((_, Waited { world, .. })) = waits.first() {
            let world = Arc::clone(world);
            let (of_one, others) = waits.into_iter().partition(|(_, wait)| Arc::ptr_eq(&wait.world, &world));
            waits = others;
            let longest: Option<&(u64, Waited)> = of_one.iter().max_by_key(|(_, wait)| wait.patience());
            if longest.is_some_and(|(_, wait)| wait.step(Monotonic::FAR)) {
                endless.extend(of_one);
            }
        }
        let mut ended = self.run();
        for (id, wait) in endless {
            let given_up = self.tasks.lock().cancel(id);
            if let Some(Work::Awaited(waiter, ..)) = given_up {
                ended.push((id, (waiter, Err(wait.never_ends().into()))));
            }
        }
        Some(ended)
    }

    /// The number of tasks that have not ended.
    pub fn running(&self) -> usize {
        self.tasks.lock().awaited
    }

    fn run_after(&self, work: impl FnOnce(&EventLoop)) -> AllEnded<W, T, E> {
        if let Some(event_loop) = &self.event_loop {
            self.ready.hold();
            work(event_loop);
        }
        self.run()
    }

    fn arrange(&self, needs_turn: bool) {
        if let Some(event_loop) = &self.event_loop {
            event_loop.arrange(needs_turn);
        }
    }

    /// Returns whether there were any tasks to poll.
    fn run_round(&self, ended: &mut AllEnded<W, T, E>) -> bool {
        let slots = self.ready.take();
        let spawned = self.event_loop.as_ref().map_or_else(Vec::new, |event_loop| event_loop.take_spawned());
        if slots.is_empty() && spawned.is_empty() {
            return false;
        }
        for slot in slots {
            // A task may be in the list twice, or have ended before.
            let Some((id, work, waker)) = self.tasks.lock().take(slot) else { continue };
            match work {
                Work::Awaited(waiter, task, noted) => {
                    ended.extend(self.poll(slot, (waiter, task, noted), &waker).map(|result| (id, result)));
                }
                Work::Spawned(future) => self.poll_spawned(slot, future, &waker),
            }
        }
        for future in spawned {
            let (slot, _, waker) = self.tasks.lock().reserve(&self.ready);
            self.poll_spawned(slot, future, &waker);
        }
        true
    }

    #[cfg_attr(not(feature = "testing"), allow(unused_mut, reason = "without test clocks there is nothing to note"))]
    fn poll(
        &self,
        slot: u32,
        (waiter, mut task, mut noted): (W, Task<T, E>, Noted),
        waker: &Waker,
    ) -> Option<Ended<W, T, E>> {
        #[cfg(feature = "testing")]
        let aside = world::Aside::take();
        let polled = catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(&mut Context::from_waker(waker))));
        #[cfg(feature = "testing")]
        {
            Waited::add(&mut noted, world::waited_for());
            drop(aside);
            if noted.is_some() {
                self.has_clock.store(true, Ordering::Relaxed);
            }
        }
        let panicked = || Error::internal("leasehold has panicked; please report this");
        match polled.unwrap_or_else(|_| Poll::Ready(Err(panicked().into()))) {
            Poll::Ready(result) => {
                drop(task);
                self.tasks.lock().leave(slot);
                Some((waiter, result))
            }
            Poll::Pending => {
                self.tasks.lock().put(slot, Work::Awaited(waiter, task, noted));
                None
            }
        }
    }

    fn poll_spawned(&self, slot: u32, mut future: Background, waker: &Waker) {
        if future.as_mut().poll(&mut Context::from_waker(waker)).is_pending() {
            self.tasks.lock().put(slot, Work::Spawned(future));
        } else {
            drop(future);
            self.tasks.lock().leave(slot);
        }
    }
}

impl<W, T, E> Drop for Executor<W, T, E> {
    fn drop(&mut self) {
        if let Some(event_loop) = &self.event_loop {
            event_loop.close();
        }
    }
}

impl<W, T, E> std::fmt::Debug for Executor<W, T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor").field("running", &self.tasks.lock().awaited).finish_non_exhaustive()
    }
}

/// A wake-up for no task: a run looks for spawned futures in any case.
const NO_SLOT: u32 = u32::MAX;
/// Ids are a slot and a generation, and fit into the integers of JavaScript.
const GENERATIONS: u32 = 1 << 20;

struct Tasks<W, T, E> {
    slots: Vec<Slot<W, T, E>>,
    free: Vec<u32>,
    /// The number of tasks with a waiter.
    awaited: usize,
}

/// A place for one task after the other. They share a waker, since a future may be polled without need.
struct Slot<W, T, E> {
    generation: u32,
    waker: Waker,
    /// `None` while it is free, or its task is polled.
    work: Option<Work<W, T, E>>,
}

/// The wait of a task for a test clock.
#[cfg(feature = "testing")]
type Noted = Option<Waited>;
#[cfg(not(feature = "testing"))]
type Noted = ();

enum Work<W, T, E> {
    Awaited(W, Task<T, E>, Noted),
    /// A future that nobody waits for.
    Spawned(Background),
}

impl<W, T, E> Tasks<W, T, E> {
    /// A slot whose task is going to be polled, and the task's id and waker.
    fn reserve(&mut self, ready: &Arc<ReadyQueue>) -> (u32, u64, Waker) {
        let slot = self.free.pop().unwrap_or_else(|| {
            let slot = u32::try_from(self.slots.len()).expect("invariant: memory is full before 2^32 tasks wait");
            let waker = Waker::from(Arc::new(SlotWaker { ready: Arc::clone(ready), slot }));
            self.slots.push(Slot { generation: 0, waker, work: None });
            slot
        });
        let reserved = &mut self.slots[slot as usize];
        reserved.generation = reserved.generation % GENERATIONS + 1;
        (slot, id(slot, reserved.generation), reserved.waker.clone())
    }

    /// Takes the task of a slot, to be polled.
    fn take(&mut self, slot: u32) -> Option<(u64, Work<W, T, E>, Waker)> {
        let found = self.slots.get_mut(slot as usize)?;
        let work = found.work.take()?;
        self.awaited -= usize::from(matches!(work, Work::Awaited(..)));
        Some((id(slot, found.generation), work, found.waker.clone()))
    }

    /// Puts a task into its slot, to wait there.
    fn put(&mut self, slot: u32, work: Work<W, T, E>) {
        self.awaited += usize::from(matches!(work, Work::Awaited(..)));
        self.slots[slot as usize].work = Some(work);
    }

    /// The task of a slot has ended.
    fn leave(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// The tasks that wait for test clocks, with a waiter that `moves` names.
    #[cfg(feature = "testing")]
    fn waits(&self, moves: impl Fn(&W) -> bool) -> Vec<(u64, Waited)> {
        let slots = self.slots.iter().zip(0..).filter_map(|(slot, at)| match &slot.work {
            Some(Work::Awaited(waiter, _, Some(wait))) if moves(waiter) => {
                Some((id(at, slot.generation), wait.clone()))
            }
            _ => None,
        });
        slots.collect()
    }

    fn cancel(&mut self, cancelled: u64) -> Option<Work<W, T, E>> {
        let slot = u32::try_from(cancelled & u64::from(u32::MAX)).ok()?;
        let generation = self.slots.get(slot as usize)?.generation;
        let (_, work, _) = (id(slot, generation) == cancelled).then(|| self.take(slot))??;
        self.leave(slot);
        Some(work)
    }
}

fn id(slot: u32, generation: u32) -> u64 {
    u64::from(generation) << u32::BITS | u64::from(slot)
}

/// The tasks that can go on.
struct ReadyQueue {
    woken: Mutex<Woken>,
    notify: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct Woken {
    slots: Vec<u32>,
    /// The loop is going to look by itself, and need not be notified.
    is_held: bool,
}

impl ReadyQueue {
    fn hold(&self) {
        self.woken.lock().is_held = true;
    }

    /// Answers whether there is something to run, and holds on in that case.
    fn hold_if_ready(&self) -> bool {
        let mut woken = self.woken.lock();
        woken.is_held = !woken.slots.is_empty();
        woken.is_held
    }

    /// Notifies the loop if something is left to run.
    fn let_go(&self) {
        let mut woken = self.woken.lock();
        woken.is_held = false;
        let is_empty = woken.slots.is_empty();
        drop(woken);
        if !is_empty {
            (self.notify)();
        }
    }

    fn take(&self) -> Vec<u32> {
        std::mem::take(&mut self.woken.lock().slots)
    }

    fn push(&self, slot: u32) {
        let mut woken = self.woken.lock();
        let notifies = woken.slots.is_empty() && !woken.is_held;
        woken.slots.push(slot);
        // The loop may take the slot before it is notified. Then it finds nothing, which does no harm.
        drop(woken);
        if notifies {
            (self.notify)();
        }
    }
}

struct SlotWaker {
    ready: Arc<ReadyQueue>,
    slot: u32,
}

impl Wake for SlotWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.push(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::error::ErrorKind;

    fn counting() -> (Executor<(), u32, Error>, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let notifications = Arc::clone(&count);
        let notify = move || {
            count.fetch_add(1, Ordering::SeqCst);
        };
        (Executor::new(notify), notifications)
    }

    /// A task that gives its waker away, and ends when it is polled again.
    fn waiting(output: u32) -> (Task<u32, Error>, Arc<OnceLock<Waker>>) {
        let waker = Arc::new(OnceLock::new());
        let given = Arc::clone(&waker);
        let task = std::future::poll_fn(move |context| match given.set(context.waker().clone()) {
            Ok(()) => Poll::Pending,
            Err(_) => Poll::Ready(Ok(output)),
        });
        (Box::pin(task), waker)
    }

    fn results(ended: AllEnded<(), u32, Error>) -> Vec<(u64, u32)> {
        ended.into_iter().map(|(id, ((), result))| (id, result.unwrap())).collect()
    }

    #[test]
    fn many_wake_ups_notify_the_loop_once() {
        let (executor, notifications) = counting();
        let [(first, wake_first), (second, wake_second)] = [waiting(10), waiting(20)];
        let ids = [executor.start((), first), executor.start((), second)].map(|(id, ended)| {
            assert!(ended.is_none());
            id
        });
        assert_eq!((executor.run().len(), notifications.load(Ordering::SeqCst)), (0, 0));
        wake_first.get().unwrap().wake_by_ref();
        wake_second.get().unwrap().wake_by_ref();
        wake_second.get().unwrap().wake_by_ref();
        assert_eq!(results(executor.run()), [(ids[0], 10), (ids[1], 20)]);
        assert_eq!((executor.running(), notifications.load(Ordering::SeqCst)), (0, 1));
        wake_first.get().unwrap().wake_by_ref();
        assert_eq!((executor.run().len(), notifications.load(Ordering::SeqCst)), (0, 2));
    }

    #[test]
    fn a_task_that_ends_at_once_needs_no_notification() {
        let (executor, notifications) = counting();
        assert_eq!(executor.start((), Box::pin(std::future::ready(Ok(1)))).1.unwrap().1.unwrap(), 1);
        assert_eq!((executor.running(), notifications.load(Ordering::SeqCst)), (0, 0));
    }

    #[test]
    fn a_cancelled_task_is_dropped_and_not_polled_again() {
        let (executor, _) = counting();
        let (task, waker) = waiting(1);
        let (id, _) = executor.start((), task);
        assert_eq!([executor.cancel(id), executor.cancel(id)], [true, false]);
        waker.get().unwrap().wake_by_ref();
        assert_eq!((executor.running(), executor.run().len()), (0, 0));
    }

    #[test]
    fn an_id_stands_for_one_task_though_its_slot_is_used_again() {
        let (executor, _) = counting();
        let [first, second] = [(), ()].map(|()| {
            let (id, _) = executor.start((), waiting(1).0);
            assert!(executor.cancel(id));
            id
        });
        let (task, waker) = waiting(3);
        let (third, _) = executor.start((), task);
        assert!(first != second && second != third);
        assert_eq!([executor.cancel(first), executor.cancel(second)], [false, false]);
        waker.get().unwrap().wake_by_ref();
        assert_eq!(results(executor.run()), [(third, 3)]);
    }

    #[test]
    fn a_panic_becomes_an_internal_error() {
        let executor = Executor::new(|| {});
        let panicking = async { if true { panic!("a bug") } else { Ok::<(), Error>(()) } };
        let (_, ended) = executor.start("its waiter", Box::pin(panicking));
        let (waiter, result) = ended.unwrap();
        assert_eq!((waiter, result.unwrap_err().kind()), ("its waiter", ErrorKind::Internal));
    }

    #[test]
    fn the_notification_may_run_the_tasks_itself() {
        let (executor, outputs) =
            (Arc::<OnceLock<Executor<(), u32, Error>>>::default(), Arc::new(Mutex::new(Vec::new())));
        let (inner, into) = (Arc::clone(&executor), Arc::clone(&outputs));
        let notify =
            move || into.lock().extend(results(inner.get().unwrap().run()).into_iter().map(|(_, output)| output));
        executor.set(Executor::new(notify)).unwrap();
        for output in [1, 2] {
            let (task, waker) = waiting(output);
            executor.get().unwrap().start((), task);
            waker.get().unwrap().wake_by_ref();
        }
        assert_eq!(*outputs.lock(), [1, 2]);
    }

    #[test]
    fn no_wake_up_of_any_thread_is_missed() {
        const THREADS: usize = 4;
        const TASKS: usize = 1_000;
        let (notify, notified) = std::sync::mpsc::channel();
        let executor = Executor::new(move || notify.send(()).unwrap());
        let wakers: Vec<_> = (0..THREADS * TASKS)
            .map(|_| {
                let (task, waker) = waiting(0);
                executor.start((), task);
                waker
            })
            .collect();
        std::thread::scope(|scope| {
            for part in wakers.chunks(TASKS) {
                scope.spawn(move || part.iter().for_each(|waker| waker.get().unwrap().wake_by_ref()));
            }
            while executor.running() > 0 {
                notified.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
                executor.run();
            }
        });
    }
}
