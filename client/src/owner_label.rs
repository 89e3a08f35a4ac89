//! The label of a lease whose caller has given none.

use std::cell::RefCell;

use crate::fork::PerProcess;
use crate::sync::thread;

thread_local! {
    /// The name that another language has given to this thread.
    static THREAD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// See [`ffi::name_thread`](crate::ffi::name_thread).
pub(crate) fn name_thread(name: &str) {
    THREAD.set(Some(name.to_owned()));
}

/// `host:pid:thread`, with control characters replaced and the length kept in bounds.
pub(crate) fn owner_label() -> String {
    static PROCESS: PerProcess<String> = PerProcess::new(|| {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        format!("{host}:{}", std::process::id())
    });
    let thread = THREAD.with_borrow(Clone::clone).unwrap_or_else(|| {
        let thread = thread::current();
        thread.name().map_or_else(|| format!("{:?}", thread.id()), str::to_owned)
    });
    let mut owner = format!("{}:{thread}", PROCESS.get()).replace(char::is_control, "?");
    owner.truncate(owner.floor_char_boundary(leasehold_core::Owner::MAX_BYTES));
    owner
}
