//! Connection pools, one for each kind of caller.
//!
//! A connection belongs to the runtime in which it was made, so each kind of caller has links of its own. The
//! **background** link runs on a thread of ours, where a blocked runtime, event loop or interpreter of the user delays
//! no renewal. **Async** callers use their own runtime. **Blocking** callers use a small one that runs on their thread
//! for as long as the request lasts. No caller hops to another thread for an answer, with one exception: while a link
//! has no connection yet, the background's link carries its requests, if it has one. So the first request of a caller
//! needs no time for connecting, and a runtime that runs only for the length of a request gets its connection in the
//! end.

use std::sync::{Arc, Weak, mpsc};

use leasehold_core::Transmit;
use leasehold_core::op::{Fault, FaultKind, Outcome, TransportFault};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;

use super::background::{Background, new_runtime};
use super::callers::{AsyncCaller, Callers, has_sockets};
use super::{Answer, Answering, Done, Network};
use crate::event_loop::EventLoop;
use crate::exec;
use crate::host::fork;
use crate::host::sync::Mutex;
use crate::host::sync::atomic::{AtomicBool, Ordering};

/// Links of blocking callers that are kept for the next one. Each is a connection and three file descriptors.
const MOST_IDLE: usize = 32;
/// Runtimes of async callers that are remembered; an application has one, or one for each core.
const MOST_RUNTIMES: usize = 256;

/// A link to the store, made of connections that live in one runtime.
pub(super) trait Link: Send + Sync + 'static {
    /// Performs a request, and gives up at its deadline.
    fn ask(self: Arc<Self>, request: Transmit) -> Answering;

    /// Tells if a request could leave at once.
    fn is_ready(&self) -> bool;

    /// Begins to make a connection, unless there is one or it is being made.
    fn prepare(self: Arc<Self>);

    /// Runs a future to its end on the calling thread, which drives the connections of links with [`Home::Thread`].
    fn drive<R>(work: impl Future<Output = R>) -> R {
        exec::block_on(work)
    }
}

/// The thread or task that waits for the sockets of a link.
#[derive(Clone)]
#[cfg_attr(
    not(feature = "redis"),
    expect(dead_code, reason = "the links of other stores are driven by runtimes alone")
)]
pub(super) enum Home {
    /// Tasks of the runtime that uses the link.
    Runtime,
    /// The thread that uses it. Connections are made in this runtime.
    Thread(Handle),
    /// An event loop of another language. Connections are made in this runtime.
    Loop(Handle, Weak<EventLoop>),
}

/// The homes that links to a store can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Homes {
    /// Every blocking caller has a runtime of its own, and callers of other event loops use the background.
    Runtimes,
    /// All of them.
    Any,
}

/// All links to one store.
pub(super) struct Connections<L> {
    homes: Homes,
    make: Box<dyn Fn(Home) -> L + Send + Sync>,
    background: Mutex<Option<Background<L>>>,
    /// `None` for a runtime without sockets.
    here: Mutex<Vec<(AsyncCaller, Option<Arc<L>>)>>,
    idle: Mutex<Vec<Private<L>>>,
    callers: Mutex<Callers>,
    is_closed: AtomicBool,
    generation: u64,
}

/// A link that one blocking caller uses at a time.
struct Private<L> {
    /// It runs on the caller's thread; `None` where that thread drives the connections itself.
    runtime: Option<Runtime>,
    link: Arc<L>,
}

impl<L: Link> Connections<L> {
    pub(super) fn new(homes: Homes, make: impl Fn(Home) -> L + Send + Sync + 'static) -> Self {
        Self {
            homes,
            make: Box::new(make),
            background: Mutex::default(),
            here: Mutex::default(),
            idle: Mutex::default(),
            callers: Mutex::default(),
            is_closed: AtomicBool::new(false),
            generation: fork::generation(),
        }
    }

    /// Drops all links, and ends the background.
    pub(super) fn close(&self) {
        if self.is_inherited() {
            return;
        }
        self.is_closed.store(true, Ordering::SeqCst);
        drop(self.background.lock().take());
        let (here, idle) = (std::mem::take(&mut *self.here.lock()), std::mem::take(&mut *self.idle.lock()));
        drop((here, idle));
    }

    /// Performs a request on the calling thread.
    pub(super) fn perform(&self, request: &Transmit) -> Answer {
        let request = request.clone();
        self.callers.lock().note_others();
        let answer = match self.homes {
            Homes::Runtimes => self.block_on(|link| self.ask(link, request)),
            Homes::Any => self.drive(|link| self.ask(link, request)),
        };
        answer.map_err(|fault| match fault.kind {
            FaultKind::Cancelled => TransportFault::Unknown(fault),
            FaultKind::Timeout
            | FaultKind::Reset
            | FaultKind::Unreachable
            | FaultKind::Server
            | FaultKind::Busy
            | FaultKind::Protocol => TransportFault::NotSent(fault),
        })?
    }

    /// Performs a request over a link. One that has no connection yet begins to make one, and leaves the request to the
    /// background, if that is ready.
    fn ask(&self, link: Arc<L>, request: Transmit) -> Answering {
        let behind = if link.is_ready() { None } else { self.ready_background() };
        let Some((runtime, behind)) = behind else { return link.ask(request) };
        Box::pin(async move {
            link.prepare();
            let (sender, receiver) = oneshot::channel();
            runtime.spawn(async move { sender.send(behind.ask(request).await) });
            let gone = |_| Err(TransportFault::Unknown(Fault::of(FaultKind::Cancelled)));
            receiver.await.unwrap_or_else(gone)
        })
    }

    /// The background runtime, started when it is first needed, and the link that lives in it.
    ///
    /// # Errors
    /// No thread or no file descriptor is available.
    pub(super) fn background(&self) -> Result<(Handle, Arc<L>), Fault> {
        self.check_process()?;
        let mut background = self.background.lock();
        self.check_open()?;
        if background.is_none() {
            *background = Some(Background::start((self.make)(Home::Runtime))?);
        }
        let started = background.as_ref().map(|started| (started.runtime.clone(), Arc::clone(&started.link)));
        started.ok_or_else(|| Fault::new(FaultKind::Unreachable, "no background thread"))
    }

    /// The runtime of all callers so far, if they have one in common that has sockets.
    #[cfg_attr(not(feature = "redis"), allow(dead_code, reason = "only Redis tells callers of their turn"))]
    pub(super) fn only_runtime(&self) -> Option<Handle> {
        self.callers.lock().only_runtime()
    }

    /// The background runtime and its link, if a request could leave there at once.
    fn ready_background(&self) -> Option<(Handle, Arc<L>)> {
        let background = self.background.lock();
        let ready = background.as_ref().filter(|background| !self.is_inherited() && background.link.is_ready());
        ready.map(|background| (background.runtime.clone(), Arc::clone(&background.link)))
    }

    /// Runs a future to its end on the calling thread, with a link that is in use nowhere else.
    ///
    /// # Errors
    /// No file descriptor is available, or the store was inherited through a fork.
    pub(super) fn block_on<R, F>(&self, work: impl FnOnce(Arc<L>) -> F) -> Result<R, Fault>
    where
        R: Send + 'static,
        F: Future<Output = R> + Send + 'static,
    {
        if Handle::try_current().is_ok() {
            return self.block_on_background(work);
        }
        self.check_process()?;
        let idle = self.idle.lock().pop();
        let private = match idle {
            Some(private) => private,
            None => Private { runtime: Some(new_runtime()?), link: Arc::new((self.make)(Home::Runtime)) },
        };
        let Some(runtime) = &private.runtime else { return Err(Fault::new(FaultKind::Unreachable, "no runtime")) };
        let result = runtime.block_on(work(Arc::clone(&private.link)));
        self.keep(private);
        Ok(result)
    }

    /// Runs a future to its end on the calling thread, which drives the connections of a link that is in use nowhere else.
    ///
    /// # Errors
    /// No thread or no file descriptor is available, or the store was inherited through a fork.
    fn drive<F: Future>(&self, work: impl FnOnce(Arc<L>) -> F) -> Result<F::Output, Fault> {
        self.check_process()?;
        let idle = self.idle.lock().pop();
        let private = match idle {
            Some(private) => private,
            None => Private { runtime: None, link: Arc::new((self.make)(Home::Thread(self.background()?.0))) },
        };
        let result = L::drive(work(Arc::clone(&private.link)));
        self.keep(private);
        Ok(result)
    }

    fn keep(&self, private: Private<L>) {
        let mut idle = self.idle.lock();
        if idle.len() < MOST_IDLE && self.check_open().is_ok() {
            idle.push(private);
        }
    }

    /// Runs a future to its end in the background. Blocking calls from inside a runtime need this too: its thread
    /// cannot enter a second one.
    ///
    /// # Errors
    /// No thread or no file descriptor is available, or the store was inherited through a fork.
    pub(super) fn block_on_background<R, F>(&self, work: impl FnOnce(Arc<L>) -> F) -> Result<R, Fault>
    where
        R: Send + 'static,
        F: Future<Output = R> + Send + 'static,
    {
        let (runtime, link) = self.background()?;
        let (sender, receiver) = mpsc::channel();
        let work = work(link);
        runtime.spawn(async move { sender.send(work.await) });
        receiver.recv().map_err(|_| Fault::new(FaultKind::Cancelled, "the background thread has ended"))
    }

    /// Runs a future to its end in the background. Any executor can await it; dropping the wait does not end it.
    ///
    /// # Errors
    /// It did not begin, or its runtime has ended.
    pub(super) async fn in_background<R, F>(&self, work: impl FnOnce(Arc<L>) -> F) -> Result<R, Outcome>
    where
        R: Send + 'static,
        F: Future<Output = R> + Send + 'static,
    {
        let begun = self.background().map(|(runtime, link)| runtime.spawn(work(link)));
        let begun = begun.map_err(|fault| TransportFault::NotSent(fault).outcome())?;
        begun.await.map_err(|_| TransportFault::Unknown(Fault::of(FaultKind::Cancelled)).outcome())
    }

    fn check_open(&self) -> Result<(), Fault> {
        match self.is_closed.load(Ordering::SeqCst) {
            true => Err(Fault::new(FaultKind::Unreachable, "the client is closed")),
            false => Ok(()),
        }
    }

    fn check_process(&self) -> Result<(), Fault> {
        if self.is_inherited() {
            let detail = "this store belongs to the parent process; connect again after the fork";
            return Err(Fault::new(FaultKind::Unreachable, detail));
        }
        self.check_open()
    }

    pub(super) fn is_inherited(&self) -> bool {
        self.generation != fork::generation()
    }
}

impl<L: Link> Network for Connections<L> {
    fn call_on_caller(&self, request: Transmit) -> Result<Answering, Transmit> {
        let is_usable = !self.is_inherited() && self.check_open().is_ok();
        let Some(place) = AsyncCaller::current(self.homes).filter(|_| is_usable) else {
            return Err(request);
        };
        let mut here = self.here.lock();
        let known = here.iter().find(|(other, _)| *other == place).map(|(_, link)| link.clone());
        let link = match known {
            Some(link) => link,
            None => {
                here.retain(|(place, _)| !place.is_over());
                if here.len() == MOST_RUNTIMES {
                    here.remove(0);
                }
                let home = match &place {
                    AsyncCaller::Runtime(_) => has_sockets().then_some(Home::Runtime),
                    AsyncCaller::Loop(event_loop) => {
                        let background = self.background().ok();
                        background.map(|(runtime, _)| Home::Loop(runtime, Weak::clone(event_loop)))
                    }
                };
                let link = home.map(|home| Arc::new((self.make)(home)));
                match place {
                    AsyncCaller::Runtime(_) if link.is_some() => self.callers.lock().note_task(),
                    AsyncCaller::Runtime(_) | AsyncCaller::Loop(_) => self.callers.lock().note_others(),
                }
                here.push((place, link.clone()));
                link
            }
        };
        drop(here);
        let Some(link) = link else { return Err(request) };
        Ok(self.ask(link, request))
    }

    fn call_here(&self, request: Transmit, done: Done) {
        let place = AsyncCaller::current(self.homes).filter(|place| matches!(place, AsyncCaller::Runtime(_)));
        let link = place.filter(|_| !self.is_inherited()).and_then(|place| {
            let here = self.here.lock();
            here.iter().find(|(other, _)| *other == place).and_then(|(_, link)| link.clone())
        });
        match link.filter(|link| link.is_ready()) {
            Some(link) => {
                tokio::spawn(async move { done(link.ask(request).await) });
            }
            None => self.call_in_background(request, done),
        }
    }

    fn call_in_background(&self, request: Transmit, done: Done) {
        match self.background() {
            Ok((runtime, link)) => {
                runtime.spawn(async move { done(link.ask(request).await) });
            }
            Err(fault) => done(Err(TransportFault::NotSent(fault))),
        }
    }
}

impl<L> Drop for Private<L> {
    fn drop(&mut self) {
        // A plain drop would panic inside another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use leasehold_core::{Monotonic, NodeId, RequestId};
    use tokio::runtime::Builder;
    use tokio::sync::Barrier;

    use super::super::deadline::until;
    use super::*;
    use crate::host::clock;

    /// Answers once enough callers wait at the same time, unless the deadline passes first, and records the threads on
    /// which it ran. It is ready after the second `prepare`.
    struct EchoLink {
        readiness: Arc<Barrier>,
        threads: Arc<Mutex<HashSet<Option<String>>>>,
        prepared: AtomicUsize,
    }

    impl Link for EchoLink {
        fn ask(self: Arc<Self>, request: Transmit) -> Answering {
            Box::pin(async move {
                self.threads.lock().insert(thread::current().name().map(str::to_owned));
                let answer = async {
                    if request.deadline <= clock::monotonic() {
                        std::future::pending::<()>().await;
                    }
                    self.readiness.wait().await;
                    tokio::task::yield_now().await;
                };
                let answered = until(request.deadline, answer).await;
                let fault = Fault::of(if answered.is_some() { FaultKind::Server } else { FaultKind::Timeout });
                Ok(vec![Outcome::Unknown(fault)])
            })
        }

        fn is_ready(&self) -> bool {
            self.prepared.load(Ordering::Relaxed) >= 2
        }

        fn prepare(self: Arc<Self>) {
            self.prepared.fetch_add(1, Ordering::Relaxed);
        }
    }

    struct Setup {
        connections: Arc<Connections<EchoLink>>,
        made: Arc<AtomicUsize>,
        threads: Arc<Mutex<HashSet<Option<String>>>>,
    }

    impl Setup {
        fn new() -> Self {
            Self::for_meeting(1)
        }

        /// Answers only when this many callers wait.
        fn for_meeting(callers: usize) -> Self {
            let (made, threads) = (Arc::new(AtomicUsize::new(0)), Arc::default());
            let (count, seen, readiness) = (Arc::clone(&made), Arc::clone(&threads), Arc::new(Barrier::new(callers)));
            let connections = Connections::new(Homes::Runtimes, move |_| {
                count.fetch_add(1, Ordering::Relaxed);
                let (readiness, threads) = (Arc::clone(&readiness), Arc::clone(&seen));
                EchoLink { readiness, threads, prepared: AtomicUsize::new(0) }
            });
            Self { connections: Arc::new(connections), made, threads }
        }

        fn made(&self) -> usize {
            self.made.load(Ordering::Relaxed)
        }
    }

    fn request(left: Duration) -> Transmit {
        let deadline = clock::monotonic().plus(left);
        Transmit { id: RequestId::new(1), node: NodeId::new(0), deadline, ops: [].into_iter().collect() }
    }

    fn soon() -> Transmit {
        request(Duration::from_secs(60))
    }

    fn fault(kind: FaultKind) -> Answer {
        Ok(vec![Outcome::Unknown(Fault::of(kind))])
    }

    #[test]
    fn a_blocking_caller_waits_on_its_own_thread_and_leaves_its_link_to_the_next() {
        let setup = Setup::new();
        let caller = thread::Builder::new().name("a caller".into());
        let connections = Arc::clone(&setup.connections);
        caller
            .spawn(move || assert_eq!(connections.perform(&soon()), fault(FaultKind::Server)))
            .unwrap()
            .join()
            .unwrap();
        for _ in 0..5 {
            assert_eq!(setup.connections.perform(&soon()), fault(FaultKind::Server));
        }
        assert_eq!(setup.made(), 1, "one link for all");
        let threads = setup.threads.lock();
        assert!(threads.contains(&Some("a caller".into())) && !threads.contains(&Some("leasehold-network".into())));
    }

    #[test]
    fn callers_at_once_have_links_of_their_own_and_few_are_kept() {
        let callers = MOST_IDLE + 8;
        let setup = Setup::for_meeting(callers);
        thread::scope(|scope| {
            for _ in 0..callers {
                scope.spawn(|| assert_eq!(setup.connections.perform(&soon()), fault(FaultKind::Server)));
            }
        });
        assert_eq!(setup.connections.idle.lock().len(), MOST_IDLE);
        assert!(setup.made() >= callers, "{} links for {callers} callers", setup.made());
    }

    #[test]
    fn each_runtime_has_one_link() {
        let setup = Setup::new();
        for runtimes in 1..=2 {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                for _ in 0..3 {
                    assert_eq!(setup.connections.call_on_caller(soon()).ok().unwrap().await, fault(FaultKind::Server));
                }
            });
            assert_eq!(setup.made(), runtimes);
        }
        assert!(setup.connections.call_on_caller(soon()).is_err(), "there is no runtime here");
    }

    #[test]
    fn runtimes_that_come_and_go_are_not_remembered_for_ever() {
        let setup = Setup::new();
        for _ in 0..MOST_RUNTIMES * 2 {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async { setup.connections.call_on_caller(soon()).ok().unwrap().await }).unwrap();
        }
        assert_eq!(setup.connections.here.lock().len(), MOST_RUNTIMES);
    }

    #[test]
    fn the_background_answers_many_at_once_on_its_own_thread() {
        let setup = Setup::new();
        let (sender, receiver) = mpsc::channel();
        for _ in 0..10 {
            let sender = sender.clone();
            setup.connections.call_in_background(soon(), Box::new(move |answer| sender.send(answer).unwrap()));
        }
        for _ in 0..10 {
            assert_eq!(receiver.recv().unwrap(), fault(FaultKind::Server));
        }
        assert_eq!(setup.made(), 1);
        assert_eq!(*setup.threads.lock(), HashSet::from([Some("leasehold-network".into())]));
    }

    #[test]
    fn a_link_without_connection_lets_the_background_ask_until_it_has_one() {
        let setup = Setup::new();
        let behind = setup.connections.background().unwrap().1;
        behind.prepared.store(2, Ordering::Relaxed);
        let on_caller = || setup.threads.lock().drain().any(|name| name.as_deref() != Some("leasehold-network"));
        let mut blocking = Vec::new();
        for _ in 0..4 {
            assert_eq!(setup.connections.perform(&soon()), fault(FaultKind::Server));
            blocking.push(on_caller());
        }
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let mut here = Vec::new();
        for _ in 0..4 {
            let answer = runtime.block_on(async { setup.connections.call_on_caller(soon()).ok().unwrap().await });
            assert_eq!(answer, fault(FaultKind::Server));
            here.push(on_caller());
        }
        assert_eq!([blocking, here], [[false, false, true, true]; 2]);
    }

    #[test]
    fn a_runtime_without_sockets_or_timers_is_left_alone() {
        let setup = Setup::new();
        for runtime in
            [Builder::new_current_thread().enable_time().build(), Builder::new_current_thread().enable_io().build()]
        {
            let runtime = runtime.unwrap();
            for _ in 0..2 {
                assert!(runtime.block_on(async { setup.connections.call_on_caller(soon()).is_err() }));
            }
        }
        assert_eq!(setup.made(), 0);
    }

    #[test]
    fn a_blocking_call_inside_a_runtime_neither_panics_nor_hangs() {
        let setup = Setup::new();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let answer = runtime.block_on(async { setup.connections.perform(&soon()) });
        assert_eq!(answer, fault(FaultKind::Server));
        assert!(setup.threads.lock().contains(&Some("leasehold-network".into())));
    }

    #[test]
    fn connections_may_be_dropped_inside_a_runtime() {
        let setup = Setup::new();
        setup.connections.perform(&soon()).unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            setup.connections.call_on_caller(soon()).ok().unwrap().await.unwrap();
            drop(setup);
        });
    }

    #[test]
    fn a_deadline_ends_the_wait() {
        let setup = Setup::new();
        assert_eq!(setup.connections.perform(&request(Duration::ZERO)), fault(FaultKind::Timeout));
        let never = async {
            let over = until(Monotonic::default(), std::future::pending::<()>()).await;
            assert_eq!(over, None);
        };
        Builder::new_current_thread().enable_all().build().unwrap().block_on(never);
    }
}
