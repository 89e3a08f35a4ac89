//! The clock of `leasehold/testing`, which the test moves.
//!
//! Code of the program runs after each step of the clock: listeners hear of a loss at its time. What the clock does by itself when the loop
//! is idle is [`crate::reactor::Reactor::tick`].

use std::cell::RefCell;

use leasehold::ffi::{self, Settler};
use leasehold::testing;
use napi::Either;
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;

use crate::client::Client;
use crate::failure::{Failure, either};
use crate::items::{ItemStep, Items};
use crate::options::{ConnectOptions, length, milliseconds, natural};
use crate::reactor::Reactor;

thread_local! {
    /// The clocks of this thread.
    static CLOCKS: RefCell<Vec<Settler>> = const { RefCell::new(Vec::new()) };
}

/// Lets happen what is due by all clocks of this thread. Answers whether there was anything.
pub(crate) fn settle_all() -> bool {
    let mut has_acted = false;
    let mut known = CLOCKS.take();
    known.retain(|clock| {
        let settled = clock.settle();
        has_acted |= settled == Some(true);
        settled.is_some()
    });
    CLOCKS.with_borrow_mut(|clocks| clocks.append(&mut known));
    has_acted
}

/// See `leasehold::testing::TestClock`.
#[napi]
pub struct TestClock(testing::TestClock);

/// A clock with an empty store.
#[napi(catch_unwind)]
pub fn make_test_clock(seed: f64) -> Either<TestClock, Failure> {
    either(natural("seed", seed).map(|seed| {
        let clock = testing::TestClock::new(seed);
        CLOCKS.with_borrow_mut(|clocks| clocks.push(Settler::of(&clock)));
        TestClock(clock)
    }))
}

#[napi]
impl TestClock {
    /// See `TestClock::connect_with`.
    #[napi(catch_unwind)]
    pub fn connect(&self, options: ConnectOptions) -> Either<Client, Failure> {
        let connected = options.builder().and_then(|builder| Ok(self.0.connect_with(builder)?));
        either(connected.map(|client| Client::new(client, Vec::new())))
    }

    /// Milliseconds since the clock began.
    #[napi(catch_unwind)]
    pub fn now(&self) -> f64 {
        milliseconds(self.0.now())
    }

    /// See `TestClock::advance`.
    #[napi(catch_unwind)]
    pub fn advance(&self, reactor: &Reactor, ms: f64) -> Option<Failure> {
        let end = match length("advance", ms) {
            Ok(time) => self.0.now().saturating_add(time),
            Err(failure) => return Some(failure),
        };
        while ffi::step_until(&self.0, end) {
            reactor.run();
        }
        self.0.advance(end.saturating_sub(self.0.now()));
        reactor.run();
        None
    }

    /// See `TestClock::settle`.
    #[napi(catch_unwind)]
    pub fn settle(&self, reactor: &Reactor) {
        self.0.settle();
        reactor.run();
    }

    /// See `TestClock::step`.
    #[napi(catch_unwind)]
    pub fn step(&self, reactor: &Reactor) -> bool {
        let has_acted = self.0.step();
        reactor.run();
        has_acted
    }

    /// See `ffi::lose`.
    #[napi(catch_unwind)]
    pub fn lose(&self, reactor: &Reactor, client: &Client, name: String) -> Option<Failure> {
        let lost = ffi::lose(&self.0, client.client(), &name);
        reactor.run();
        lost.err().map(Failure::from)
    }

    /// See `TestClock::store_down`.
    #[napi(catch_unwind)]
    pub fn store_down(&self) {
        self.0.store_down();
    }

    /// See `TestClock::store_up`.
    #[napi(catch_unwind)]
    pub fn store_up(&self, reactor: &Reactor) {
        self.0.store_up();
        reactor.run();
    }

    /// See `TestClock::lose_reply`.
    #[napi(catch_unwind)]
    pub fn lose_reply(&self) {
        self.0.lose_reply();
    }

    /// See `TestClock::late`.
    #[napi(catch_unwind)]
    pub fn late(&self, ms: f64) -> Option<Failure> {
        length("late", ms).map(|time| self.0.late(time)).err()
    }

    /// See `TestClock::items`.
    #[napi(catch_unwind)]
    pub fn items(&self) -> Items {
        Items::new(self.0.items())
    }

    /// Writes an item now, whatever requests meet.
    #[napi(catch_unwind)]
    #[allow(clippy::needless_pass_by_value, reason = "an argument from JavaScript")]
    pub fn write_item(&self, name: String, value: Uint8Array) -> Either<ItemStep, Failure> {
        either(ItemStep::write(&ffi::items_beside(&self.0), &name, &value))
    }
}
