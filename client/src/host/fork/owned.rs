//! Values that a forked child cannot reach.

use super::generation;

/// A value of the process that made it. A forked child does not get it: a thread of its parent may have locked what is in it, and is not
/// there to unlock it.
#[derive(Debug)]
pub(crate) struct Owned<T> {
    generation: u64,
    value: T,
}

impl<T> Owned<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { generation: generation(), value }
    }

    /// The value, in its own process.
    pub(crate) fn get(&self) -> Option<&T> {
        (self.generation == generation()).then_some(&self.value)
    }
}

#[cfg(all(test, unix, not(leasehold_concurrency)))]
mod tests {
    use super::*;
    use crate::host::fork::install;
    use crate::host::fork::tests::{alone, in_forked_child};

    #[test]
    fn a_child_does_not_get_what_its_parent_owns() {
        alone(|| {
            install().unwrap();
            let owned = Owned::new(7);
            assert_eq!(in_forked_child(|| i32::from(owned.get().is_some())), 0);
            assert_eq!(owned.get(), Some(&7));
        });
    }
}
