//! The native half of the Python package `leasehold`.
//!
//! It converts and decides nothing: calls and values go to the crate `leasehold` and come back as Python's. A call
//! without async does its I/O on the calling thread with the interpreter detached. A call of asyncio is a future that
//! the event loop's own thread polls, woken through a watched pipe (`reactor`).

#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod asyncio;
mod callback;
mod client;
mod command;
mod convert;
mod election;
mod errors;
mod fence;
mod fence_sql;
mod info;
mod items;
mod lease;
mod lock;
mod observe;
mod once;
mod outside;
mod permit;
mod protocol;
mod pump;
mod reactor;
mod request;
mod run;
mod series;
mod shards;
mod signals;
mod test_clock;
mod tie;
mod wakeup;

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

#[global_allocator]
static MEMORY: leasehold::ffi::KeptMemory = leasehold::ffi::KeptMemory;

/// The contents of `leasehold._native`. All of it is private to the package, which exports it under better names.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::callback::Done;
    #[pymodule_export]
    use super::client::{Client, Connector, end};
    #[pymodule_export]
    use super::command::run;
    #[pymodule_export]
    use super::election::Election;
    #[pymodule_export]
    use super::fence::{
        CosmosGuard, DynamodbGuard, Guards, Writing, object_claim, object_data, object_write, redis_check,
        redis_check_and_set_script, redis_check_script, redis_claim_script, redis_mark_key, redis_outcome,
    };
    #[pymodule_export]
    use super::fence_sql::{PostgresGuard, PostgresRowGuard, SqliteGuard, SqliteRowGuard, Statements, token_parameter};
    #[pymodule_export]
    use super::info::{LockInfo, ReleaseIfOutcome, RevokeOutcome, SessionInfo};
    #[pymodule_export]
    use super::items::{Items, Update};
    #[pymodule_export]
    use super::lease::{Lease, Leases, Lost};
    #[pymodule_export]
    use super::lock::LockBase;
    #[pymodule_export]
    use super::observe::{observe, observed};
    #[pymodule_export]
    use super::once::OnceBase;
    #[pymodule_export]
    use super::permit::Permit;
    #[pymodule_export]
    use super::protocol::{Protocol, clocks, protocol_redis, protocol_runs};
    #[pymodule_export]
    use super::reactor::{Operation, Reactor};
    #[pymodule_export]
    use super::request::Request;
    #[pymodule_export]
    use super::run::{Run, RunRequest};
    #[pymodule_export]
    use super::series::{Changes, Pages, RunPages};
    #[pymodule_export]
    use super::shards::{Shard, Shards};
    #[pymodule_export]
    use super::test_clock::TestClock;
    use super::{Bound, PyModule, PyModuleMethods, PyResult, refuse_subinterpreters};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        refuse_subinterpreters()?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// # Errors
/// This is not the main interpreter. Exceptions and callbacks of one interpreter would end up in another one, and the
/// exit of the process waits for both.
fn refuse_subinterpreters() -> PyResult<()> {
    // SAFETY: a thread that imports a module is attached to an interpreter.
    let interpreter = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if interpreter == 0 {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "leasehold does not work in subinterpreters: import it in the main one, or start another process",
    ))
}
