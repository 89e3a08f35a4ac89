//! The label of a lease whose caller has given none.

use std::cell::RefCell;

use leasehold_core::Owner;

use crate::host::fork;
use crate::host::sync::{thread, thread_local};

thread_local! {
    /// The name that another language has given to this thread.
    static NAME: RefCell<Option<String>> = const { RefCell::new(None) };
    /// The label of this thread, and the generation of the process that has it.
    static LABEL: RefCell<Option<(u64, Owner)>> = const { RefCell::new(None) };
}

/// See [`ffi::name_thread`](crate::ffi::name_thread).
pub(crate) fn name_thread(name: &str) {
    NAME.with(|known| *known.borrow_mut() = Some(name.to_owned()));
    LABEL.with(|label| *label.borrow_mut() = None);
}

/// Answers `host:pid:thread`, with control characters replaced and the length kept in bounds.
pub(crate) fn of_this_thread() -> Owner {
    LABEL.with(|label| {
        let (generation, mut label) = (fork::generation(), label.borrow_mut());
        match &mut *label {
            Some((of, owner)) if *of == generation => owner.clone(),
            _ => label.insert((generation, owner_label())).1.clone(),
        }
    })
}

#[cfg(unix)]
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(windows)]
fn host() -> String {
    std::env::var_os("COMPUTERNAME").unwrap_or_default().to_string_lossy().into_owned()
}

/// The number that Rust gave to a thread without a name.
fn unnamed() -> String {
    let id = format!("{:?}", thread::current().id());
    format!("thread-{}", id.trim_matches(|letter: char| !letter.is_ascii_digit()))
}

fn owner_label() -> Owner {
    let host = host();
    let thread = NAME.with(|name| name.borrow().clone()).unwrap_or_else(|| {
        let thread = thread::current();
        thread.name().map_or_else(unnamed, str::to_owned)
    });
    let mut owner = format!("{host}:{}:{thread}", std::process::id()).replace(char::is_control, "?");
    owner.truncate(owner.floor_char_boundary(Owner::MAX_BYTES));
    Owner::new(&owner).unwrap_or_default()
}
