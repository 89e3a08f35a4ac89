use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::task::{Poll, Waker};
use std::thread;

use super::*;
use crate::error::Error;
use crate::ffi::{Ended, Executor};
use crate::host::fork;

type Log = Arc<Mutex<Vec<String>>>;

/// Records what it is asked, without the numbers of sockets.
struct FakePoller {
    log: Log,
    refuses: bool,
}

impl Poller for FakePoller {
    fn watch(&self, _: RawFd, interest: Interest) -> io::Result<()> {
        self.log.lock().push(format!("watch {interest:?}"));
        if self.refuses { Err(io::Error::other("refused")) } else { Ok(()) }
    }

    fn unwatch(&self, _: RawFd) {
        self.log.lock().push("unwatch".into());
    }

    fn call_soon(&self) {
        self.log.lock().push("call soon".into());
    }

    fn call_later(&self, delay: Duration) {
        self.log.lock().push(format!("call after {} ms", delay.as_millis().next_multiple_of(100)));
    }
}

/// Asks for one byte at a time: each byte that is read answers the oldest request.
struct Asker {
    socket: UnixStream,
    log: Log,
    state: Mutex<Asked>,
}

#[derive(Default)]
struct Asked {
    unsent: Vec<u8>,
    waiting: Vec<Waker>,
    answered: usize,
    deadline: Option<Monotonic>,
    is_closed: bool,
}

impl SocketHandler for Asker {
    fn on_ready(&self) -> Option<Interest> {
        let mut answers = [0; 64];
        let count = (&self.socket).read(&mut answers).unwrap_or(0);
        if count == 0 {
            return None;
        }
        let mut state = self.state.lock();
        state.answered += count;
        state.waiting.drain(..count).for_each(Waker::wake);
        Some(Interest::Read)
    }

    fn flush(&self) -> Option<Interest> {
        let unsent = std::mem::take(&mut self.state.lock().unsent);
        self.log.lock().push(format!("write {}", unsent.len()));
        (&self.socket).write_all(&unsent).unwrap();
        Some(if unsent.contains(&b'!') { Interest::ReadWrite } else { Interest::Read })
    }

    fn deadline(&self) -> Option<Monotonic> {
        self.state.lock().deadline
    }

    fn on_deadline(&self, now: Monotonic) -> Option<Interest> {
        self.state.lock().deadline.is_none_or(|deadline| deadline > now).then_some(Interest::Read)
    }

    fn close(&self) {
        self.state.lock().is_closed = true;
        self.log.lock().push("close".into());
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        self.log.lock().push("drop".into());
    }
}

/// An executor, and a connection that its first task gives to its loop.
struct Setup {
    executor: Executor<(), usize, Error>,
    asker: Arc<Asker>,
    peer: UnixStream,
    log: Log,
}

impl Setup {
    fn new() -> Self {
        Self::with(false)
    }

    fn with(refuses: bool) -> Self {
        let log = Log::default();
        let notified = Arc::clone(&log);
        let executor = Executor::new(move || notified.lock().push("notify".into()))
            .with_poller(FakePoller { log: Arc::clone(&log), refuses });
        let (socket, peer) = UnixStream::pair().unwrap();
        let asker = Arc::new(Asker { socket, log: Arc::clone(&log), state: Mutex::default() });
        Self { executor, asker, peer, log }
    }

    /// A task that adds the connection to its loop.
    fn add(&self) {
        let asker = Arc::clone(&self.asker);
        let add = async move {
            current().unwrap().add(asker.socket.as_raw_fd(), asker);
            Ok(0)
        };
        self.executor.start((), Box::pin(add));
    }

    /// A task that sends a byte, and ends with the number of answers once the next one is there.
    fn ask(&self, byte: u8) -> u64 {
        let asker = Arc::clone(&self.asker);
        let mut is_sent = false;
        let asking = std::future::poll_fn(move |context| {
            let mut state = asker.state.lock();
            if std::mem::replace(&mut is_sent, true) {
                return Poll::Ready(Ok(state.answered));
            }
            state.unsent.push(byte);
            state.waiting.push(context.waker().clone());
            current().unwrap().flush_soon(asker.socket.as_raw_fd());
            Poll::Pending
        });
        let (id, ended) = self.executor.start((), Box::pin(asking));
        assert!(ended.is_none());
        id
    }

    fn socket(&self) -> RawFd {
        self.asker.socket.as_raw_fd()
    }

    fn log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock())
    }
}

fn outputs(ended: Vec<(u64, Ended<(), usize, Error>)>) -> Vec<(u64, usize)> {
    ended.into_iter().map(|(id, ((), result))| (id, result.unwrap())).collect()
}

#[test]
fn a_turn_costs_one_write_and_one_readable_event() {
    let mut setup = Setup::new();
    setup.add();
    let ids = [setup.ask(b'a'), setup.ask(b'b')];
    assert_eq!(setup.log(), ["watch Read", "call soon"]);
    assert!(setup.executor.end_turn().is_empty());
    assert_eq!(setup.log(), ["write 2"]);
    setup.peer.write_all(b"AB").unwrap();
    assert_eq!(outputs(setup.executor.on_ready(setup.socket())), ids.map(|id| (id, 2)));
    assert_eq!(setup.log(), [""; 0], "nobody is notified, since the same call runs the tasks");
}

#[test]
fn the_loop_is_current_only_while_it_polls_tasks() {
    let setup = Setup::new();
    let id = || Box::pin(async { Ok::<_, Error>(current().map_or(0, |event_loop| event_loop.id() as usize)) });
    let (other, plain) = (Setup::new(), Executor::new(|| {}));
    assert!(current().is_none());
    let [one, another, none] =
        [&setup.executor, &other.executor, &plain].map(|executor| executor.start((), id()).1.unwrap().1.unwrap());
    assert!(one != another && one > 0 && none == 0 && current().is_none());
}

#[test]
fn a_socket_that_is_full_is_watched_for_writing_too() {
    let setup = Setup::new();
    setup.add();
    setup.ask(b'!');
    setup.executor.end_turn();
    setup.ask(b'a');
    setup.executor.end_turn();
    let expected = ["watch Read", "call soon", "write 1", "watch ReadWrite", "call soon", "write 1", "watch Read"];
    assert_eq!(setup.log(), expected);
}

#[test]
fn a_socket_is_closed_after_the_loop_has_forgotten_it() {
    let mut setup = Setup::new();
    setup.add();
    let socket = setup.socket();
    let (unused, _) = UnixStream::pair().unwrap();
    setup.asker = Arc::new(Asker { socket: unused, log: Log::default(), state: Mutex::default() });
    drop(setup.peer);
    setup.executor.on_ready(socket);
    assert_eq!(setup.log.lock().split_off(0), ["watch Read", "unwatch", "drop"]);
    setup.executor.on_ready(socket);
}

#[test]
fn a_socket_that_the_loop_cannot_watch_is_closed() {
    let setup = Setup::with(true);
    setup.add();
    assert_eq!(setup.log(), ["watch Read", "unwatch", "close"]);
    assert!(setup.asker.state.lock().is_closed);
}

#[test]
fn the_end_of_a_loop_closes_its_sockets() {
    let Setup { executor, asker, log, .. } = Setup::new();
    let event_loop = Arc::new(Mutex::new(None));
    let (adding, found) = (Arc::clone(&asker), Arc::clone(&event_loop));
    executor.start(
        (),
        Box::pin(async move {
            let event_loop = current().unwrap();
            event_loop.add(adding.socket.as_raw_fd(), adding);
            *found.lock() = Some(event_loop);
            Ok(0)
        }),
    );
    drop(executor);
    let event_loop = event_loop.lock().take().unwrap();
    event_loop.add(asker.socket.as_raw_fd(), Arc::clone(&asker) as Arc<dyn SocketHandler>);
    event_loop.spawn(async {});
    assert_eq!(*log.lock(), ["watch Read", "unwatch", "close", "close"]);
}

#[test]
fn one_timer_serves_all_requests_and_is_moved_for_an_earlier_one() {
    let setup = Setup::new();
    setup.add();
    setup.log();
    let turn_with = |ms| {
        setup.asker.state.lock().deadline = Some(Time::System.monotonic().plus(Duration::from_millis(ms)));
        setup.ask(b'a');
        setup.executor.end_turn();
        setup.log().into_iter().filter(|call| call.starts_with("call after")).collect::<Vec<_>>()
    };
    assert_eq!(turn_with(60_000), ["call after 1000 ms"], "the clock is looked at again after a suspension");
    assert_eq!(turn_with(60_000), [""; 0]);
    assert_eq!(turn_with(300), ["call after 300 ms"]);
    setup.asker.state.lock().deadline = Some(Time::System.monotonic().plus(Duration::from_millis(600)));
    setup.executor.on_timer();
    assert_eq!(setup.log(), ["call after 600 ms"]);
    setup.asker.state.lock().deadline = Some(Monotonic::default());
    setup.executor.on_timer();
    assert_eq!(setup.log(), ["unwatch"]);
}

#[test]
fn another_thread_spawns_a_future_and_the_loop_runs_it() {
    let setup = Setup::new();
    let event_loop = Arc::new(Mutex::new(None));
    let found = Arc::clone(&event_loop);
    setup.executor.start(
        (),
        Box::pin(async move {
            *found.lock() = current();
            Ok(0)
        }),
    );
    let event_loop = event_loop.lock().take().unwrap();
    let (ran, is_done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (running, done) = (Arc::clone(&ran), Arc::clone(&is_done));
    let future = async move {
        running.store(current().map_or(0, |event_loop| event_loop.id()), Ordering::SeqCst);
        let mut is_first = true;
        std::future::poll_fn(move |context| {
            context.waker().wake_by_ref();
            if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
        done.store(1, Ordering::SeqCst);
    };
    let id = event_loop.id();
    thread::spawn(move || event_loop.spawn(future)).join().unwrap();
    assert_eq!(setup.log(), ["notify"]);
    assert!(setup.executor.run().is_empty());
    assert_eq!((ran.load(Ordering::SeqCst), is_done.load(Ordering::SeqCst)), (id, 1));
    assert_eq!((setup.log(), setup.executor.running()), (vec![], 0));
}

#[test]
fn a_task_that_another_one_wakes_is_polled_at_the_end_of_the_turn() {
    let setup = Setup::new();
    setup.add();
    let id = setup.ask(b'a');
    setup.executor.end_turn();
    setup.log();
    let asker = Arc::clone(&setup.asker);
    setup.executor.start(
        (),
        Box::pin(async move {
            asker.state.lock().waiting.drain(..).for_each(Waker::wake);
            Ok(0)
        }),
    );
    assert_eq!(setup.log(), ["call soon"]);
    assert_eq!(outputs(setup.executor.end_turn()), [(id, 0)]);
}

#[test]
fn a_forked_child_leaves_the_loop_of_its_parent_alone() {
    crate::host::fork::tests::alone(|| {
        fork::install().unwrap();
        let setup = Setup::new();
        setup.add();
        setup.ask(b'a');
        setup.log();
        let code = crate::host::fork::tests::in_forked_child(|| {
            let socket = setup.socket();
            setup.executor.end_turn();
            setup.executor.on_ready(socket);
            setup.executor.on_timer();
            setup.add();
            let Setup { executor, log, .. } = setup;
            drop(executor);
            i32::from(*log.lock() != ["close"])
        });
        assert_eq!(code, 0);
    });
}
