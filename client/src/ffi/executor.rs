//! An executor that lives on the event loop of another language.

use std::collections::HashMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Wake, Waker};

use crate::error::Error;
use crate::sync::{Arc, Mutex};

/// A future that an [`Executor`] can run.
pub type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Makes a task of a future. A panic in it becomes an error of kind [`ErrorKind::Internal`](crate::ErrorKind::Internal).
pub fn task<T, E: From<Error>>(future: impl Future<Output = Result<T, E>> + Send + 'static) -> Task<Result<T, E>> {
    let mut future = Box::pin(future);
    Box::pin(std::future::poll_fn(move |context| {
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        polled
            .unwrap_or_else(|_| Poll::Ready(Err(Error::internal("leasehold has panicked; please report this").into())))
    }))
}

/// Runs tasks on one event loop: the loop's thread polls them, and any thread can wake them. The first wake-up since the
/// last [`Executor::run`] notifies the loop; many wake-ups cost one notification.
pub struct Executor<T> {
    ready: Arc<ReadyQueue>,
    tasks: Mutex<Tasks<T>>,
}

struct Tasks<T> {
    last_id: u64,
    running: HashMap<u64, (Task<T>, Waker)>,
}

impl<T> Executor<T> {
    /// `notify` makes the loop call [`Executor::run`] soon, on its own thread. It must not block.
    pub fn new(notify: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            ready: Arc::new(ReadyQueue { ids: Mutex::default(), notify: Box::new(notify) }),
            tasks: Mutex::new(Tasks { last_id: 0, running: HashMap::new() }),
        }
    }

    /// Polls a new task for the first time. Returns its id, and its output if it has ended.
    pub fn start(&self, task: Task<T>) -> (u64, Option<T>) {
        let mut tasks = self.tasks.lock();
        tasks.last_id += 1;
        let id = tasks.last_id;
        drop(tasks);
        let waker = Waker::from(Arc::new(TaskWaker { ready: Arc::clone(&self.ready), id }));
        (id, self.poll(id, task, waker))
    }

    /// Polls all tasks that were woken since the last call. Returns the ids and outputs of those that have ended.
    pub fn run(&self) -> Vec<(u64, T)> {
        let ids = self.ready.take();
        let mut tasks = self.tasks.lock();
        // A task may be in the list twice, or have ended before.
        let woken: Vec<_> = ids.into_iter().filter_map(|id| Some((id, tasks.running.remove(&id)?))).collect();
        drop(tasks);
        woken.into_iter().filter_map(|(id, (task, waker))| Some((id, self.poll(id, task, waker)?))).collect()
    }

    /// Drops a task, and so gives up what it has begun. Does nothing if the task has ended.
    pub fn cancel(&self, id: u64) {
        let task = self.tasks.lock().running.remove(&id);
        drop(task);
    }

    /// The number of tasks that have not ended.
    pub fn running(&self) -> usize {
        self.tasks.lock().running.len()
    }

    fn poll(&self, id: u64, mut task: Task<T>, waker: Waker) -> Option<T> {
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => {
                self.tasks.lock().running.insert(id, (task, waker));
                None
            }
        }
    }
}

impl<T> std::fmt::Debug for Executor<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor").field("running", &self.running()).finish_non_exhaustive()
    }
}

/// The tasks that can go on.
struct ReadyQueue {
    ids: Mutex<Vec<u64>>,
    notify: Box<dyn Fn() + Send + Sync>,
}

impl ReadyQueue {
    fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.ids.lock())
    }
}

struct TaskWaker {
    ready: Arc<ReadyQueue>,
    id: u64,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut ids = self.ready.ids.lock();
        let is_first = ids.is_empty();
        ids.push(self.id);
        // The loop may take the id before it is notified. Then it finds nothing, which does no harm.
        drop(ids);
        if is_first {
            (self.ready.notify)();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::error::ErrorKind;

    fn counting() -> (Executor<u32>, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let notifications = Arc::clone(&count);
        let notify = move || {
            count.fetch_add(1, Ordering::SeqCst);
        };
        (Executor::new(notify), notifications)
    }

    /// A task that gives its waker away, and ends when it is polled again.
    fn waiting(output: u32) -> (Task<u32>, Arc<OnceLock<Waker>>) {
        let waker = Arc::new(OnceLock::new());
        let given = Arc::clone(&waker);
        let task = std::future::poll_fn(move |context| match given.set(context.waker().clone()) {
            Ok(()) => Poll::Pending,
            Err(_) => Poll::Ready(output),
        });
        (Box::pin(task), waker)
    }

    #[test]
    fn many_wake_ups_notify_the_loop_once() {
        let (executor, notifications) = counting();
        let [(first, wake_first), (second, wake_second)] = [waiting(10), waiting(20)];
        let ids = [executor.start(first), executor.start(second)].map(|(id, output)| {
            assert_eq!(output, None);
            id
        });
        assert_eq!((executor.run(), notifications.load(Ordering::SeqCst)), (vec![], 0));
        wake_first.get().unwrap().wake_by_ref();
        wake_second.get().unwrap().wake_by_ref();
        wake_second.get().unwrap().wake_by_ref();
        assert_eq!(executor.run(), [(ids[0], 10), (ids[1], 20)]);
        assert_eq!((executor.running(), notifications.load(Ordering::SeqCst)), (0, 1));
        wake_first.get().unwrap().wake_by_ref();
        assert_eq!((executor.run(), notifications.load(Ordering::SeqCst)), (vec![], 2));
    }

    #[test]
    fn a_task_that_ends_at_once_needs_no_notification() {
        let (executor, notifications) = counting();
        assert_eq!(executor.start(Box::pin(std::future::ready(1))).1, Some(1));
        assert_eq!((executor.running(), notifications.load(Ordering::SeqCst)), (0, 0));
    }

    #[test]
    fn a_cancelled_task_is_dropped_and_not_polled_again() {
        let (executor, _) = counting();
        let (task, waker) = waiting(1);
        let (id, _) = executor.start(task);
        executor.cancel(id);
        executor.cancel(id);
        waker.get().unwrap().wake_by_ref();
        assert_eq!((executor.running(), executor.run()), (0, vec![]));
    }

    #[test]
    fn a_panic_becomes_an_internal_error() {
        let executor = Executor::new(|| {});
        let panicking = task(async { if true { panic!("a bug") } else { Ok::<(), Error>(()) } });
        let (_, output) = executor.start(panicking);
        assert_eq!(output.unwrap().unwrap_err().kind(), ErrorKind::Internal);
    }

    #[test]
    fn the_notification_may_run_the_tasks_itself() {
        let (executor, outputs) = (Arc::<OnceLock<Executor<u32>>>::default(), Arc::new(Mutex::new(Vec::new())));
        let (inner, into) = (Arc::clone(&executor), Arc::clone(&outputs));
        let notify = move || into.lock().extend(inner.get().unwrap().run().into_iter().map(|(_, output)| output));
        executor.set(Executor::new(notify)).unwrap();
        for output in [1, 2] {
            let (task, waker) = waiting(output);
            executor.get().unwrap().start(task);
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
                executor.start(task);
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
