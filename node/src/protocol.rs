//! The protocol without I/O: its calls by name, with plain objects.

use leasehold::ffi;
use leasehold_protocol::testing::{Connectivity, Store};
use leasehold_protocol::wit::{client, fence, redis, runs};
use leasehold_protocol::{Problem, Sink, Unfit, UnfitKind, contained};
use napi::Either;
use napi_derive::napi;

use crate::failure::Failure;
use crate::options::{HolderOptions, natural};
use crate::value::{Value, Values};

/// A client, a guard or a reader of replies.
#[napi]
pub struct Protocol(Object);

enum Object {
    Client(Box<client::Client>),
    Guard(fence::Guard),
    Reader(Box<redis::Reader>),
}

/// Makes one, by the name of its kind and of its constructor.
#[napi(catch_unwind)]
pub fn protocol_make(of: String, name: String, args: Vec<Value>) -> Either<Protocol, Failure> {
    let args: Vec<&Value> = args.iter().collect();
    let made = contained(|| match of.as_str() {
        "client" => client::Client::make(&name, &args).map(|made| Object::Client(Box::new(made))),
        "guard" => fence::Guard::make(&name, &args).map(Object::Guard),
        _ => redis::Reader::make(&name, &args).map(|made| Object::Reader(Box::new(made))),
    });
    either(made.map(Protocol))
}

/// A function of the interface `redis`.
#[napi(catch_unwind)]
pub fn protocol_redis(name: String, args: Vec<Value>) -> Either<Value, Failure> {
    let args: Vec<&Value> = args.iter().collect();
    either(contained(|| redis::call(&name, &args, &Values)))
}

/// A function of the interface `runs`.
#[napi(catch_unwind)]
pub fn protocol_runs(name: String, args: Vec<Value>) -> Either<Value, Failure> {
    let args: Vec<&Value> = args.iter().collect();
    either(contained(|| runs::call(&name, &args, &Values)))
}

#[napi]
impl Protocol {
    /// Calls a method by its name.
    #[napi(catch_unwind)]
    pub fn call(&self, name: String, args: Vec<Value>) -> Either<Value, Failure> {
        let args: Vec<&Value> = args.iter().collect();
        either(contained(|| match &self.0 {
            Object::Client(client) => client.call(&name, &args, &Values),
            Object::Guard(guard) => guard.call(&name, &args, &Values),
            Object::Reader(reader) => reader.call(&name, &args, &Values),
        }))
    }
}

/// The store of `leasehold/testing`.
#[napi]
#[derive(Default)]
pub struct TestStore(Store);

#[napi]
impl TestStore {
    /// An empty store that can be reached.
    #[napi(constructor, catch_unwind)]
    pub fn new() -> Self {
        Self::default()
    }

    /// See `Store::drive`.
    #[napi(catch_unwind)]
    pub fn drive(&self, client: &Protocol, fresh: Value, now: Value) -> Either<Value, Failure> {
        either(contained(|| match &client.0 {
            Object::Client(client) => self.0.drive(client, [&&fresh, &&now], &Values),
            Object::Guard(_) | Object::Reader(_) => Err(Unfit::ty("only a client is driven").into()),
        }))
    }

    /// Sets if requests reach the store.
    #[napi(catch_unwind)]
    pub fn set_up(&self, is_up: bool) {
        self.0.set_reach(if is_up { Connectivity::Up } else { Connectivity::Down });
    }

    /// Tells if requests reach the store.
    #[napi(getter, catch_unwind)]
    pub fn is_up(&self) -> bool {
        self.0.reach() == Connectivity::Up
    }

    /// See `Store::free`.
    #[napi(catch_unwind)]
    pub fn free(&self, resource: Value) -> Option<Failure> {
        contained(|| self.0.free(&&resource)).err().map(failure)
    }

    /// See `Store::revoke`.
    #[napi(catch_unwind)]
    pub fn revoke(&self, resource: Value, now: Value) -> Option<Failure> {
        contained(|| self.0.revoke([&&resource, &&now])).err().map(failure)
    }

    /// See `Store::holder`.
    #[napi(catch_unwind)]
    pub fn holder(&self, resource: Value, now: Value) -> Either<Value, Failure> {
        either(contained(|| self.0.holder([&&resource, &&now], &Values)))
    }

    /// See `Store::completion`.
    #[napi(catch_unwind)]
    pub fn completion(&self, resource: Value, now: Value) -> Either<Value, Failure> {
        either(contained(|| self.0.completion([&&resource, &&now], &Values)))
    }

    /// See `Store::forget`.
    #[napi(catch_unwind)]
    pub fn forget(&self, resource: Value) -> Option<Failure> {
        contained(|| self.0.forget(&&resource)).err().map(failure)
    }
}

/// Tells if a holder is the one that is meant, for `leasehold/testing`.
#[napi(catch_unwind)]
pub fn is_meant(meant: HolderOptions, token: Option<f64>, owner: Option<String>) -> Either<bool, Failure> {
    let judged = meant.meant().and_then(|meant| {
        let token = token.map(|token| natural("token", token)).transpose()?;
        Ok(ffi::is_meant(&meant, token, owner.as_deref())?)
    });
    match judged {
        Ok(is_meant) => Either::A(is_meant),
        Err(failure) => Either::B(failure),
    }
}

/// The clocks of this machine, as the WIT's `now`.
#[napi(catch_unwind)]
pub fn clocks() -> Value {
    let (monotonic_ns, unix_ms) = ffi::clocks();
    let to = &Values;
    to.record("now", vec![("monotonic-ns", to.nanoseconds(monotonic_ns)), ("unix-ms", to.number(unix_ms))])
}

fn either<T>(result: Result<T, Problem>) -> Either<T, Failure> {
    match result {
        Ok(value) => Either::A(value),
        Err(problem) => Either::B(failure(problem)),
    }
}

fn failure(problem: Problem) -> Failure {
    let message = problem.to_string();
    let kind = match &problem {
        Problem::Unfit(unfit) if unfit.kind() == UnfitKind::Type => "type",
        Problem::Unfit(_) | Problem::Config(_) => "config",
        Problem::Command(_) => "rejected",
        Problem::Rejected(fence::Rejected::Stale(_) | fence::Rejected::OutOfOrder(_)) => "stale_token",
        Problem::Rejected(fence::Rejected::Unclaimed | fence::Rejected::InvalidToken(_)) => "config",
        Problem::Malformed(_) => "store_unavailable",
        Problem::Broken(_) => "broken",
    };
    Failure::new(kind, message, problem.reason(&Values))
}
