//! The protocol without I/O: its calls by name, with plain objects.

use leasehold::ffi;
use leasehold_protocol::wit::{client, fence, redis, runs};
use leasehold_protocol::{Problem, Sink, UnfitKind, contained};
use napi::Either;
use napi_derive::napi;

use crate::failure::Failure;
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
