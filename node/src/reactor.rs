//! Futures of the client on Node's event loop.
//!
//! Node's own thread polls them. A wake-up calls a function that any thread may call; JavaScript then polls all futures that
//! can go on. A future that is ready at once costs no wake-up of the loop.

use std::future::Future;

use leasehold::ffi::{self, Executor, Task};
use napi::bindgen_prelude::{Function, ToNapiValue, Unknown};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Result, Status};
use napi_derive::napi;

use crate::client::Client;
use crate::election::{Election, Step};
use crate::failure::Failure;
use crate::info::{LockInfo, ReleaseIfOutcome, whole};
use crate::lease::{Lease, Leases};

/// The result of an operation.
pub(crate) enum Outcome {
    Nothing,
    Client(leasehold::Client),
    Lease(leasehold::Lease),
    MaybeLease(Option<leasehold::Lease>),
    Leases(leasehold::Leases),
    Info(Option<leasehold::LockInfo>),
    ReleaseIf(leasehold::ReleaseIfOutcome),
    Election(Election),
    Step(Step),
}

type End = std::result::Result<Outcome, Failure>;

/// An operation that a reactor can run.
#[napi]
pub struct Operation(Option<Task<End>>);

impl Operation {
    pub(crate) fn new(future: impl Future<Output = End> + Send + 'static) -> Self {
        Self(Some(ffi::task(future)))
    }

    /// An operation that fails at once.
    pub(crate) fn failed(failure: Failure) -> Self {
        Self::new(std::future::ready(Err(failure)))
    }
}

type Call<const UNHEEDED: bool> = ThreadsafeFunction<(), (), (), Status, false, UNHEEDED>;

/// Runs operations on one event loop.
#[napi]
pub struct Reactor {
    executor: Executor<End>,
    /// While it refers to the loop, the process stays alive.
    anchor: Call<false>,
}

#[napi]
impl Reactor {
    /// `awake` is called on the loop when [`Reactor::run`] has something to do.
    #[napi(constructor, catch_unwind)]
    pub fn new(env: Env, awake: Function<'_, (), ()>) -> Result<Self> {
        let build = || awake.build_threadsafe_function::<()>().callee_handled::<false>();
        // Does not keep the process alive.
        let notify: Call<true> = build().weak::<true>().build()?;
        // Once the loop has ended there is nothing to notify.
        let executor = Executor::new(move || {
            notify.call((), ThreadsafeFunctionCallMode::NonBlocking);
        });
        let mut reactor = Self { executor, anchor: build().weak::<false>().build()? };
        reactor.let_go(env)?;
        Ok(reactor)
    }

    /// Starts an operation. Returns the number by which [`Reactor::run`] reports its end, or its result if it has
    /// ended.
    #[napi(catch_unwind)]
    pub fn start<'env>(&mut self, env: &'env Env, operation: &mut Operation) -> Result<Unknown<'env>> {
        let task = operation.0.take().ok_or_else(|| napi::Error::from_reason("the operation was started before"))?;
        match self.executor.start(task) {
            (id, None) => whole(id).into_unknown(env),
            (_, Some(end)) => shown(env, end),
        }
    }

    /// Gives an operation up, with everything it has begun. Does nothing if it has ended.
    #[napi(catch_unwind)]
    pub fn cancel(&mut self, id: i64) {
        self.executor.cancel(id.unsigned_abs());
    }

    /// Polls all operations that can go on. Returns the numbers of operations that have ended, each followed by its
    /// result.
    #[napi(catch_unwind)]
    pub fn run<'env>(&mut self, env: &'env Env) -> Result<Vec<Unknown<'env>>> {
        let mut ended = Vec::new();
        for (id, end) in self.executor.run() {
            ended.push(whole(id).into_unknown(env)?);
            ended.push(shown(env, end)?);
        }
        Ok(ended)
    }

    /// The number of operations that have not ended; for tests.
    #[napi(getter, catch_unwind)]
    pub fn running(&self) -> u32 {
        u32::try_from(self.executor.running()).unwrap_or(u32::MAX)
    }

    /// Keeps the process alive from now on.
    #[napi(catch_unwind)]
    pub fn hold(&mut self, env: Env) -> Result<()> {
        self.keep_alive(env)
    }

    /// Lets the process end from now on.
    #[napi(catch_unwind)]
    pub fn let_go(&mut self, env: Env) -> Result<()> {
        self.keep_alive_no_more(env)
    }
}

impl Reactor {
    #[expect(deprecated, reason = "a function made anew for each wait would cost more than the wait")]
    fn keep_alive(&mut self, env: Env) -> Result<()> {
        self.anchor.refer(&env)
    }

    #[expect(deprecated, reason = "as above")]
    fn keep_alive_no_more(&mut self, env: Env) -> Result<()> {
        self.anchor.unref(&env)
    }
}

fn shown(env: &Env, end: End) -> Result<Unknown<'_>> {
    match end {
        Ok(Outcome::Nothing) => ().into_unknown(env),
        Ok(Outcome::Client(client)) => Client::new(client).into_unknown(env),
        Ok(Outcome::Lease(lease)) => Lease::new(lease).into_unknown(env),
        Ok(Outcome::MaybeLease(lease)) => lease.map(Lease::new).into_unknown(env),
        Ok(Outcome::Leases(leases)) => Leases::new(leases).into_unknown(env),
        Ok(Outcome::Info(info)) => info.map(LockInfo::from).into_unknown(env),
        Ok(Outcome::ReleaseIf(outcome)) => ReleaseIfOutcome::from(outcome).into_unknown(env),
        Ok(Outcome::Election(election)) => election.into_unknown(env),
        Ok(Outcome::Step(step)) => step.into_unknown(env),
        Err(failure) => failure.into_unknown(env),
    }
}
