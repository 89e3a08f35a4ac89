//! Futures of the client on Node's event loop.
//!
//! Node's own thread polls them. A wake-up calls a function that any thread may call; JavaScript then polls all futures that
//! can go on. A future that is ready at once costs no wake-up of the loop.
//!
//! The loop also watches the sockets of requests, where it is libuv's on Unix. An event of a socket polls the futures whose replies have
//! arrived, and calls JavaScript once with all that have ended.

use std::future::{Future, poll_fn};
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use leasehold::ffi::{self, Executor, Held, Interest, Mutex, Poller, RawFd};
use napi::bindgen_prelude::{Buffer, Float64Array, Function, FunctionRef, JsValue, Object, ToNapiValue, Unknown};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Either, Env, Result, Status, check_status, sys};
use napi_derive::napi;

use crate::calls;
use crate::client::Client;
use crate::election::{Election, Step};
use crate::failure::{Failure, either};
use crate::info::{LockInfo, ReleaseIfOutcome, RevokeOutcome, SessionInfo, whole};
use crate::items::{ItemStep, Items};
use crate::lease::{KeptLease, KeptLeases, Leases};
use crate::libuv::Uv;
use crate::options::length;
use crate::run::{self, Attempts, Completion, Marking, RunInfo, Skipped};
use crate::series::Changed;
use crate::shards::{ShardStep, Shards};
use crate::test_clock;
use crate::waiter::{Wait, Waiter};

/// The result of an operation.
pub(crate) enum Outcome {
    Nothing,
    /// With warnings that no observer hears.
    Client(leasehold::Client, Vec<String>),
    Lease(leasehold::Lease),
    MaybeLease(Option<leasehold::Lease>),
    Leases(leasehold::Leases),
    MaybeHeld(Option<Held>),
    Page(Option<Vec<leasehold::LockInfo>>),
    Runs(Option<Vec<leasehold::RunInfo>>),
    Change(leasehold::Change),
    Info(Option<leasehold::LockInfo>),
    ReleaseIf(leasehold::ReleaseIfOutcome),
    Revoke(leasehold::RevokeOutcome),
    Sessions(Vec<leasehold::SessionInfo>),
    Items(leasehold::cas::Items),
    ItemStep(leasehold::cas::Step),
    Run(leasehold::Run),
    Skipped(Skipped),
    RunInfo(leasehold::RunInfo),
    Completion(Option<leasehold::Completion>),
    Election(Election),
    Step(Step),
    Shards(Shards),
    ShardStep(ShardStep),
}

pub(crate) type End = std::result::Result<Outcome, Failure>;
/// See [`ffi::Task`].
pub(crate) type Task = ffi::Task<Outcome, Failure>;
/// The reactor's part that functions and callbacks refer to.
pub(crate) type Owner = Weak<Shared>;

/// An operation that a reactor can run.
#[napi]
pub struct Operation(Option<Task>, Wait);

impl Operation {
    pub(crate) fn new(future: impl Future<Output = End> + Send + 'static) -> Self {
        Self::waiting(Wait::Client, future)
    }

    pub(crate) fn waiting(wait: Wait, future: impl Future<Output = End> + Send + 'static) -> Self {
        Self(Some(Box::pin(future)), wait)
    }

    /// An operation that fails at once.
    pub(crate) fn failed(failure: Failure) -> Self {
        Self::new(std::future::ready(Err(failure)))
    }
}

type Call<const UNHEEDED: bool> = ThreadsafeFunction<(), (), (), Status, false, UNHEEDED>;
type Callback = FunctionRef<(), ()>;

/// Functions of JavaScript that a reactor calls.
#[napi(object, object_to_js = false)]
pub struct Callbacks<'a> {
    /// Calls [`Reactor::run`].
    pub run: Function<'a, (), ()>,
    /// Has [`Reactor::end_turn`] called once the current code is through.
    pub schedule: Function<'a, (), ()>,
    /// Takes so many results from the shared memory.
    pub settle: Function<'a, (), ()>,
    /// Takes a result for a slot and generation.
    pub settle_value: Function<'a, (), ()>,
    /// Takes the loss of the lease with this number.
    pub lose: Function<'a, (), ()>,
}

/// Runs operations on one event loop.
#[napi]
pub struct Reactor(Arc<Shared>);

#[napi]
impl Reactor {
    /// `results` is the memory that is shared. A loop that is not libuv's does not take sockets.
    #[napi(constructor, catch_unwind)]
    pub fn new(env: Env, callbacks: Callbacks<'_>, results: Float64Array, takes_sockets: bool) -> Result<Self> {
        let build = || callbacks.run.build_threadsafe_function::<()>().callee_handled::<false>();
        // Does not keep the process alive.
        let notify: Call<true> = build().weak::<true>().build()?;
        let anchor: Call<false> = build().weak::<false>().build()?;
        // Once the loop has ended there is nothing to notify.
        let executor = Executor::new(move || {
            notify.call((), ThreadsafeFunctionCallMode::NonBlocking);
        });
        let [schedule, settle, settle_value, lose] =
            [callbacks.schedule, callbacks.settle, callbacks.settle_value, callbacks.lose]
                .map(|call| call.create_ref());
        let (schedule, settle, settle_value, lose) = (schedule?, settle?, settle_value?, lose?);
        let shared = Arc::new_cyclic(|owner: &Owner| {
            let target = Weak::clone(owner);
            let on_event = move |socket| target.upgrade().into_iter().for_each(|shared| shared.on_event(socket));
            let uv = if takes_sockets { Uv::of(env, on_event) } else { None };
            let executor = match uv {
                Some(uv) => executor.with_poller(NodePoller { uv, owner: Weak::clone(owner) }),
                None => executor,
            };
            Shared {
                executor,
                env,
                schedule,
                settle,
                settle_value,
                lose,
                results: Mutex::new(results),
                leases: Mutex::default(),
                awaited: AtomicI64::new(0),
                anchor: Mutex::new(anchor),
                is_native: AtomicBool::new(false),
                needs_turn: AtomicBool::new(false),
            }
        });
        shared.keep_alive(false);
        Ok(Self(shared))
    }

    /// The functions of [`crate::calls`].
    #[napi(catch_unwind, ts_return_type = "object")]
    pub fn calls<'env>(&self, env: &'env Env) -> Result<Object<'env>> {
        Ok(Object::from_raw(env.raw(), calls::functions(env, &Arc::downgrade(&self.0))?))
    }

    /// Starts an operation. Returns its number; or if it has ended its result, or 0 for one in the shared memory.
    #[napi(catch_unwind)]
    pub fn start<'env>(
        &self,
        env: &'env Env,
        operation: &mut Operation,
        slot: u32,
        generation: u32,
    ) -> Result<Unknown<'env>> {
        let task = operation.0.take().ok_or_else(|| napi::Error::from_reason("the operation was started before"))?;
        self.0.begun(env, Waiter::Call { slot, generation, wait: operation.1 }, task)
    }

    /// Gives an operation up, with everything it has begun. Does nothing if it has ended. Not for one that waits for callbacks.
    #[napi(catch_unwind)]
    pub fn cancel(&self, id: i64) {
        if self.0.executor.cancel(id.unsigned_abs()) {
            self.0.count(-1);
        }
    }

    /// Polls all operations that can go on, and settles those that have ended.
    #[napi(catch_unwind)]
    pub fn run(&self) {
        self.0.deliver(self.0.executor.run());
    }

    /// Has test clocks go on after a turn of the loop in which nothing was ready: what is due happens, and if that is nothing, those move
    /// for which calls wait. Answers whether something may be left to do after another turn.
    #[napi(catch_unwind)]
    pub fn tick(&self, is_called_back: bool) -> bool {
        let ended = self.0.executor.run();
        let ended = if !ended.is_empty() {
            Some(ended)
        } else if test_clock::settle_all() {
            Some(self.0.executor.run())
        } else {
            self.0.executor.step(|waiter| waiter.moves_clock(is_called_back))
        };
        let goes_on = ended.is_some();
        self.0.deliver(ended.unwrap_or_default());
        goes_on
    }

    /// Writes the requests that were made since it was scheduled, and settles operations that have ended.
    #[napi(catch_unwind)]
    pub fn end_turn(&self) {
        self.0.deliver(self.0.executor.end_turn());
    }

    /// Fails unless the lease of this number has at least `min` milliseconds of validity left.
    #[napi(catch_unwind)]
    pub fn check(&self, lease: u32, min: f64) -> Option<Failure> {
        let min = match length("check", min) {
            Ok(min) => min,
            Err(failure) => return Some(failure),
        };
        self.0.look(lease, |held| held.check(min).err().map(Failure::from))?
    }

    /// Begins to mark the run of this number in a transaction of the user's, with a result or none.
    #[napi(catch_unwind)]
    pub fn completion_in(
        &self,
        lease: u32,
        kind: Option<String>,
        result: Option<Either<String, Buffer>>,
    ) -> Either<Marking, Failure> {
        let gone = || Err(Failure::internal("there is no such lease".to_owned()));
        let (text, bytes) = match result {
            Some(Either::A(text)) => (Some(text), None),
            Some(Either::B(bytes)) => (None, Some(bytes.to_vec())),
            None => (None, None),
        };
        let outcome = run::outcome(kind.as_deref(), text, bytes);
        either(self.0.look(lease, |held| Marking::of(held, outcome)).unwrap_or_else(gone))
    }

    /// The attempts at the work of the run of this number, where they are counted.
    #[napi(catch_unwind)]
    pub fn attempts(&self, lease: u32) -> Option<Attempts> {
        self.0.look(lease, |held| ffi::attempts(held).cloned().map(Attempts::from))?
    }

    /// The resource of the lease of this number.
    #[napi(catch_unwind)]
    pub fn resource(&self, lease: u32) -> Option<String> {
        self.0.look(lease, |held| held.resource().to_owned())
    }

    /// The number of the permit that the lease of this number is.
    #[napi(catch_unwind)]
    pub fn permit(&self, lease: u32) -> Option<u32> {
        let index = self.0.look(lease, Held::index)??;
        u32::try_from(index).ok()
    }

    /// The leases that were taken together, in the order of their names.
    #[napi(catch_unwind)]
    pub fn each(&self, leases: &Leases) -> Vec<KeptLease> {
        leases.each().map(|held| self.0.keep(held)).collect()
    }

    /// The lease of an election's term, if one has begun.
    #[napi(catch_unwind)]
    pub fn term(&self, step: &Step) -> Option<KeptLease> {
        step.begun().map(|lease| self.0.keep(Held::Single(lease)))
    }

    /// The lease of a shard.
    #[napi(catch_unwind)]
    pub fn shard(&self, step: &ShardStep) -> KeptLease {
        self.0.keep(Held::Shard(step.shard()))
    }

    /// The number of operations that have not ended; for tests.
    #[napi(getter, catch_unwind)]
    pub fn running(&self) -> u32 {
        u32::try_from(self.0.executor.running()).unwrap_or(u32::MAX)
    }
}

/// The executor, the leases, and how events of the loop reach them and JavaScript.
pub(crate) struct Shared {
    executor: Executor<Waiter, Outcome, Failure>,
    env: Env,
    schedule: Callback,
    settle: Callback,
    settle_value: Callback,
    lose: Callback,
    results: Mutex<Float64Array>,
    leases: Mutex<KeptLeases>,
    /// The number of calls that go on.
    awaited: AtomicI64,
    /// While it refers to the loop, the process stays alive.
    anchor: Mutex<Call<false>>,
    /// An event of the loop is handled, with no JavaScript below it on the stack.
    is_native: AtomicBool,
    /// That event needs another [`Executor::end_turn`].
    needs_turn: AtomicBool,
}

// SAFETY: the environment is used on the loop's thread alone, by what the loop calls. Other threads may hold weak references.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// Starts the task of a call, and answers as [`Reactor::start`] does.
    pub(crate) fn begun<'env>(&self, env: &'env Env, waiter: Waiter, task: Task) -> Result<Unknown<'env>> {
        match self.executor.start(waiter, task) {
            (id, None) => {
                if waiter.keeps_alive() {
                    self.count(1);
                }
                whole(id).into_unknown(env)
            }
            (_, Some((waiter, end))) => match self.post(0, waiter, end) {
                None => 0_u32.into_unknown(env),
                Some((_, end)) => shown(env, end),
            },
        }
    }

    /// Gives a lease a number, and watches for its loss.
    fn keep(&self, held: Held) -> KeptLease {
        let (token, resource, owner) = (whole(held.token()), held.resource().to_owned(), held.owner().to_owned());
        KeptLease { number: self.insert(held), token, resource, owner }
    }

    fn insert(&self, held: Held) -> u32 {
        let (lost, mut is_early) = (held.lost(), held.is_lost());
        let number = self.leases.lock().insert(held);
        // JavaScript has to know the lease before it hears of its loss.
        let known = poll_fn(move |context| {
            if !std::mem::take(&mut is_early) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        });
        let watch = async move {
            known.await;
            Err(lost.await.into())
        };
        let (id, _) = self.executor.start(Waiter::Lease(number), Box::pin(watch));
        self.leases.lock().set_watch(number, id);
        number
    }

    /// Takes a lease from its number, which may stand for another one from now on.
    pub(crate) fn take(&self, number: u32) -> Option<Held> {
        let (held, watch) = self.leases.lock().remove(number, None)?;
        self.executor.cancel(watch);
        Some(held)
    }

    pub(crate) fn look<T>(&self, number: u32, look: impl FnOnce(&Held) -> T) -> Option<T> {
        self.leases.lock().get(number).map(look)
    }

    /// Writes a result to the shared memory, at a place that is counted in results. Returns a result that is not made of
    /// numbers, or for which there is no room.
    fn post(&self, at: usize, waiter: Waiter, end: End) -> Option<(Waiter, End)> {
        let Waiter::Call { slot, generation, .. } = waiter else { return Some((waiter, end)) };
        let mut results = self.results.lock();
        // SAFETY: the loop's thread runs no JavaScript meanwhile, and no other thread has the memory.
        let results = unsafe { results.as_mut() };
        let Some(place) = results.get_mut(at * calls::FIELDS..).and_then(<[f64]>::first_chunk_mut) else {
            return Some((waiter, end));
        };
        let lease = match end {
            Ok(Outcome::Nothing | Outcome::MaybeLease(None) | Outcome::MaybeHeld(None)) => None,
            Ok(Outcome::Lease(lease) | Outcome::MaybeLease(Some(lease))) => Some(Held::from(lease)),
            Ok(Outcome::MaybeHeld(Some(held))) => Some(held),
            Ok(Outcome::Run(run)) => Some(Held::from(ffi::run_lease(run))),
            end => return Some((waiter, end)),
        };
        let (lease, token) = match lease {
            None => (calls::NO_LEASE, 0.0),
            Some(held) => {
                #[expect(clippy::cast_precision_loss, reason = "tokens are below 2^53")]
                let token = held.token() as f64;
                (self.insert(held).into(), token)
            }
        };
        *place = [slot.into(), generation.into(), lease, token];
        None
    }

    /// Called by the loop, for a socket or the timer. The code that waits for the results runs before the turn ends, so that
    /// one write takes all that it asks for.
    fn on_event(&self, socket: Option<RawFd>) {
        self.is_native.store(true, Ordering::Relaxed);
        let mut ended = match socket {
            Some(socket) => self.executor.on_ready(socket),
            None => self.executor.on_timer(),
        };
        loop {
            if !ended.is_empty() {
                self.executor.expect_requests();
                self.deliver(ended);
            }
            if !self.needs_turn.swap(false, Ordering::Relaxed) {
                break;
            }
            ended = self.executor.end_turn();
        }
        self.is_native.store(false, Ordering::Relaxed);
    }

    /// Hands results to JavaScript, in their order.
    fn deliver(&self, ended: Vec<(u64, (Waiter, End))>) {
        let mut posted = 0;
        for (id, (waiter, end)) in ended {
            if waiter.keeps_alive() {
                self.count(-1);
            }
            let Some((waiter, end)) = self.post(posted, waiter, end) else {
                posted += 1;
                continue;
            };
            self.settle(std::mem::take(&mut posted));
            // The memory has room again.
            let Some((waiter, end)) = self.post(0, waiter, end) else {
                posted = 1;
                continue;
            };
            match waiter {
                Waiter::Call { slot, generation, .. } => self.call(&self.settle_value, |env| {
                    Ok(vec![slot.into_unknown(env)?, generation.into_unknown(env)?, shown(env, end)?])
                }),
                Waiter::Lease(number) => {
                    if self.leases.lock().lose(number, id) {
                        self.call(&self.lose, |env| Ok(vec![number.into_unknown(env)?, shown(env, end)?]));
                    }
                }
            }
        }
        self.settle(posted);
    }

    fn settle(&self, posted: usize) {
        if let Ok(posted @ 1..) = u32::try_from(posted) {
            self.call(&self.settle, |env| Ok(vec![posted.into_unknown(env)?]));
        }
    }

    /// Calls JavaScript from the loop, and then what it has put off.
    fn call(&self, function: &Callback, arguments: impl FnOnce(&Env) -> Result<Vec<Unknown<'_>>>) {
        let env = self.env.raw();
        let mut scope = ptr::null_mut();
        // SAFETY: the loop's thread runs this while the environment lives: its end closes the handles that lead here. The
        // scope is closed below.
        if unsafe { sys::napi_open_handle_scope(env, &raw mut scope) } != sys::Status::napi_ok {
            return;
        }
        // It fails only where the thread is being ended.
        let _ = self.call_in_scope(function, arguments);
        // SAFETY: as above.
        unsafe { sys::napi_close_handle_scope(env, scope) };
    }

    fn call_in_scope(
        &self,
        function: &Callback,
        arguments: impl FnOnce(&Env) -> Result<Vec<Unknown<'_>>>,
    ) -> Result<()> {
        let env = self.env.raw();
        let function = function.borrow_back(&self.env)?;
        let arguments: Vec<_> = arguments(&self.env)?.iter().map(JsValue::raw).collect();
        let mut global = ptr::null_mut();
        // SAFETY: in the scope of `call`, as are the values; without a context the callback runs in that of the process.
        let status = unsafe {
            check_status!(sys::napi_get_global(env, &raw mut global))?;
            let (context, count) = (ptr::null_mut(), arguments.len());
            // Nobody looks at the result; Deno needs a place for it, which Node does not.
            let mut result = ptr::null_mut();
            sys::napi_make_callback(env, context, global, function.raw(), count, arguments.as_ptr(), &raw mut result)
        };
        if status == sys::Status::napi_pending_exception {
            let mut exception = ptr::null_mut();
            // SAFETY: as above. A bug of this package, or the end of a worker.
            unsafe {
                sys::napi_get_and_clear_last_exception(env, &raw mut exception);
                sys::napi_fatal_exception(env, exception);
            }
        }
        Ok(())
    }

    /// Counts the calls that go on. The process stays alive for them.
    fn count(&self, change: i64) {
        let before = self.awaited.fetch_add(change, Ordering::Relaxed);
        if (before > 0) != (before + change > 0) {
            self.keep_alive(change > 0);
        }
    }

    #[expect(deprecated, reason = "a function made again for each wait would cost more than the wait")]
    fn keep_alive(&self, keeps: bool) {
        let mut anchor = self.anchor.lock();
        // It fails only where the thread is being ended.
        let _ = if keeps { anchor.refer(&self.env) } else { anchor.unref(&self.env) };
    }
}

/// Node's event loop.
struct NodePoller {
    uv: Arc<Uv>,
    owner: Owner,
}

impl Poller for NodePoller {
    fn watch(&self, socket: RawFd, interest: Interest) -> io::Result<()> {
        self.uv.watch(socket, interest)
    }

    fn unwatch(&self, socket: RawFd) {
        self.uv.unwatch(socket);
    }

    fn call_soon(&self) {
        let Some(shared) = self.owner.upgrade() else { return };
        if shared.is_native.load(Ordering::Relaxed) {
            shared.needs_turn.store(true, Ordering::Relaxed);
        } else {
            // It fails only if the thread is being ended.
            let _ = shared.schedule.borrow_back(&shared.env).and_then(|schedule| schedule.call(()));
        }
    }

    fn call_later(&self, delay: Duration) {
        // Without a timer, requests end by that of the client's own thread, and their connection with the next one.
        let _ = self.uv.set_timer(delay);
    }
}

fn shown(env: &Env, end: End) -> Result<Unknown<'_>> {
    match end {
        Ok(Outcome::Nothing) => ().into_unknown(env),
        Ok(Outcome::Client(client, unheard)) => Client::new(client, unheard).into_unknown(env),
        Ok(Outcome::Lease(_) | Outcome::MaybeLease(_) | Outcome::MaybeHeld(_) | Outcome::Run(_)) => {
            Err(napi::Error::from_reason("leases travel by number"))
        }
        Ok(Outcome::Leases(leases)) => Leases::new(leases).into_unknown(env),
        Ok(Outcome::Page(page)) => {
            page.map(|page| page.into_iter().map(LockInfo::from).collect::<Vec<_>>()).into_unknown(env)
        }
        Ok(Outcome::Runs(page)) => {
            page.map(|page| page.into_iter().map(RunInfo::from).collect::<Vec<_>>()).into_unknown(env)
        }
        Ok(Outcome::Change(change)) => Changed::new(change).into_unknown(env),
        Ok(Outcome::Info(info)) => info.map(LockInfo::from).into_unknown(env),
        Ok(Outcome::ReleaseIf(outcome)) => ReleaseIfOutcome::from(outcome).into_unknown(env),
        Ok(Outcome::Revoke(outcome)) => RevokeOutcome::from(outcome).into_unknown(env),
        Ok(Outcome::Sessions(sessions)) => {
            sessions.into_iter().map(SessionInfo::from).collect::<Vec<_>>().into_unknown(env)
        }
        Ok(Outcome::Items(items)) => Items::new(items).into_unknown(env),
        Ok(Outcome::ItemStep(step)) => ItemStep::new(step).into_unknown(env),
        Ok(Outcome::Skipped(skipped)) => skipped.into_unknown(env),
        Ok(Outcome::RunInfo(info)) => RunInfo::from(info).into_unknown(env),
        Ok(Outcome::Completion(completion)) => completion.map(Completion::from).into_unknown(env),
        Ok(Outcome::Election(election)) => election.into_unknown(env),
        Ok(Outcome::Step(step)) => step.into_unknown(env),
        Ok(Outcome::Shards(shards)) => shards.into_unknown(env),
        Ok(Outcome::ShardStep(step)) => step.into_unknown(env),
        Err(failure) => failure.into_unknown(env),
    }
}
