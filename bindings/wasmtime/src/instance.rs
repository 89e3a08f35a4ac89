//! One instance of the component, within its limits.

use wasmtime::{Store, StoreLimits, StoreLimitsBuilder, Trap};

use crate::bindings::Protocol;
use crate::component::Component;
use crate::error::HostError;

/// Limits of the memory, the instructions and the arguments of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory, of which 1 MiB is taken from the start. A lock takes up to 2 KiB, more with a long name or data,
    /// and a request that is under way from a client made with stores as much again: keep `limits.locks` of the
    /// configuration below what fits, since an instance that runs out is lost with all its locks. Default 256 MiB.
    pub memory_bytes: usize,
    /// Instructions of one call, roughly; a call that needs more ends with [`HostError::OutOfFuel`]. Default
    /// 4,000,000,000, which is two seconds or so. `close` needs about 25,000 for each lock.
    pub fuel: u64,
    /// Bytes of the arguments of one call, lists counted with some overhead. Default 2 MiB, so that every
    /// answer of a store that is understood fits.
    pub argument_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_bytes: 256 << 20, fuel: 4_000_000_000, argument_bytes: 2 << 20 }
    }
}

/// The host's data in the store; the component does not see it.
pub(crate) struct Guest {
    limits: StoreLimits,
}

pub(crate) struct Instance {
    store: Store<Guest>,
    exports: Protocol,
    limits: Limits,
    lost: Option<HostError>,
}

impl Instance {
    pub(crate) fn new(component: &Component, limits: Limits) -> Result<Self, HostError> {
        let guest = Guest { limits: StoreLimitsBuilder::new().memory_size(limits.memory_bytes).build() };
        let mut store = Store::new(&component.engine, guest);
        store.limiter(|guest| &mut guest.limits);
        let fuelled = store.set_fuel(limits.fuel);
        let exports = fuelled.and_then(|()| component.pre.instantiate(&mut store)).map_err(|error| cause(&error))?;
        Ok(Self { store, exports, limits, lost: None })
    }

    /// Makes one call whose arguments take about so many bytes.
    pub(crate) fn call<T>(
        &mut self,
        argument_bytes: usize,
        call: impl FnOnce(&mut Store<Guest>, &Protocol) -> wasmtime::Result<T>,
    ) -> Result<T, HostError> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        let max = self.limits.argument_bytes;
        if argument_bytes > max {
            return Err(HostError::TooLarge { bytes: argument_bytes, max });
        }
        let fuelled = self.store.set_fuel(self.limits.fuel);
        fuelled.and_then(|()| call(&mut self.store, &self.exports)).map_err(|error| {
            let lost = cause(&error);
            self.lost = Some(lost.clone());
            lost
        })
    }
}

fn cause(error: &wasmtime::Error) -> HostError {
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => HostError::OutOfFuel,
        Some(_) | None => HostError::Trap(format!("{error:#}")),
    }
}
