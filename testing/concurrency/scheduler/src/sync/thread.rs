//! Threads of a run. A thread belongs to the process of the thread that starts it.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::permit::Permit;
use crate::{clock, fork, world};

pub use shuttle::thread::{JoinHandle, ScopedJoinHandle, ThreadId, scope, yield_now};
pub use std::thread::Result;

shuttle::thread_local! {
    static CURRENT: RefCell<Option<Thread>> = RefCell::new(None);
}

/// A handle to a thread.
#[derive(Clone)]
pub struct Thread {
    inner: shuttle::thread::Thread,
    permit: Arc<Permit>,
}

impl Thread {
    /// Its name, where it has one.
    pub fn name(&self) -> Option<&str> {
        self.inner.name()
    }

    /// Its id.
    pub fn id(&self) -> ThreadId {
        self.inner.id()
    }

    /// Ends its sleep in [`park`], or the next one.
    pub fn unpark(&self) {
        self.permit.give();
    }
}

/// The calling thread.
pub fn current() -> Thread {
    CURRENT.with(|current| {
        let make = || Thread { inner: shuttle::thread::current(), permit: Permit::new() };
        current.borrow_mut().get_or_insert_with(make).clone()
    })
}

/// Sleeps until a call of [`Thread::unpark`].
pub fn park() {
    current().permit.wait();
}

/// The same, and no longer than this.
pub fn park_timeout(most: Duration) {
    let permit = current().permit;
    let _timer = clock::timer(most, &permit);
    permit.wait();
}

/// Sleeps for that long.
pub fn sleep(time: Duration) {
    let permit = Permit::new();
    let _timer = clock::timer(time, &permit);
    permit.wait();
}

/// Starts a thread.
pub fn spawn<T: Send + 'static>(act: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    start(shuttle::thread::Builder::new(), act).expect("invariant: threads can always be had")
}

/// Starts threads that have names.
#[derive(Debug, Default)]
pub struct Builder(Option<String>);

impl Builder {
    /// Without a name.
    pub fn new() -> Self {
        Self(None)
    }

    /// Names it.
    #[must_use]
    pub fn name(self, name: String) -> Self {
        Self(Some(name))
    }

    fn build(self) -> shuttle::thread::Builder {
        let builder = shuttle::thread::Builder::new();
        match self.0 {
            Some(name) => builder.name(name),
            None => builder,
        }
    }

    /// Starts it.
    ///
    /// # Errors
    /// Never.
    pub fn spawn<T: Send + 'static>(self, act: impl FnOnce() -> T + Send + 'static) -> io::Result<JoinHandle<T>> {
        start(self.build(), act)
    }

    /// Starts it within a scope, without its name.
    ///
    /// # Errors
    /// Never.
    pub fn spawn_scoped<'scope, T: Send + 'scope>(
        self,
        scope: &'scope shuttle::thread::Scope<'scope, '_>,
        act: impl FnOnce() -> T + Send + 'scope,
    ) -> io::Result<ScopedJoinHandle<'scope, T>> {
        let depth = fork::depth();
        Ok(scope.spawn(move || {
            fork::begin_at(depth);
            act()
        }))
    }
}

fn start<T: Send + 'static>(
    builder: shuttle::thread::Builder,
    act: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let (depth, alive) = (fork::depth(), world::Alive::new());
    builder.spawn(move || {
        let _alive = alive;
        fork::begin_at(depth);
        act()
    })
}
