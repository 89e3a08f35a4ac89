//! A held lease.

use std::sync::Arc;

use leasehold::ffi::{self, Held};
use napi_derive::napi;

use crate::failure::Failure;
use crate::info::whole;
use crate::options::{length, milliseconds};
use crate::reactor::{Operation, Outcome};

/// A held lock.
#[napi]
pub struct Lease(Held);

impl Lease {
    pub(crate) fn new(lease: leasehold::Lease) -> Self {
        Self::of(Arc::new(lease))
    }

    pub(crate) fn of(lease: Arc<leasehold::Lease>) -> Self {
        Self(Held::Single(lease))
    }
}

#[napi]
impl Lease {
    /// The fencing token.
    #[napi(getter, catch_unwind)]
    pub fn token(&self) -> i64 {
        whole(self.0.token())
    }

    /// The locked resource.
    #[napi(getter, catch_unwind)]
    pub fn resource(&self) -> &str {
        self.0.resource()
    }

    /// The label that others see.
    #[napi(getter, catch_unwind)]
    pub fn owner(&self) -> &str {
        self.0.owner()
    }

    /// Milliseconds for which the lease is valid if no renewal succeeds.
    #[napi(catch_unwind)]
    pub fn remaining(&self) -> f64 {
        milliseconds(self.0.remaining())
    }

    /// True if the lease has ended without having been released.
    #[napi(catch_unwind)]
    pub fn is_lost(&self) -> bool {
        self.0.is_lost()
    }

    /// Fails unless at least `min` milliseconds of validity are left.
    #[napi(catch_unwind)]
    pub fn check(&self, min: f64) -> Option<Failure> {
        let min = match length("check", min) {
            Ok(min) => min,
            Err(failure) => return Some(failure),
        };
        self.0.check(min).err().map(Failure::from)
    }

    /// See `Lease::release`.
    #[napi(catch_unwind)]
    pub fn release(&self) -> Operation {
        let held = self.0.clone();
        Operation::new(async move {
            held.release().await?;
            Ok(Outcome::Nothing)
        })
    }

    /// Releases at the end of a body, and fails if the body was not protected to its end.
    #[napi(catch_unwind)]
    pub fn leave(&self) -> Operation {
        let held = self.0.clone();
        Operation::new(async move {
            let was_lost = held.is_lost();
            let released = held.release().await;
            ffi::left(was_lost, released)?;
            Ok(Outcome::Nothing)
        })
    }

    /// Fails with the reason when the lease is lost; never ends once it was released. It does not keep the lease alive.
    #[napi(catch_unwind)]
    pub fn lost(&self) -> Operation {
        let lost = self.0.lost();
        Operation::new(async move { Err(lost.await.into()) })
    }
}

/// Several leases that were taken together, in the order of their names.
#[napi]
pub struct Leases(Arc<leasehold::Leases>);

impl Leases {
    pub(crate) fn new(leases: leasehold::Leases) -> Self {
        Self(Arc::new(leases))
    }
}

#[napi]
impl Leases {
    /// Each of them.
    #[napi(catch_unwind)]
    pub fn each(&self) -> Vec<Lease> {
        (0..self.0.len()).map(|at| Lease(Held::OneOf(Arc::clone(&self.0), at))).collect()
    }

    /// Fails unless each has at least `min` milliseconds of validity left.
    #[napi(catch_unwind)]
    pub fn check(&self, min: f64) -> Option<Failure> {
        let min = match length("check", min) {
            Ok(min) => min,
            Err(failure) => return Some(failure),
        };
        self.0.check(min).err().map(Failure::from)
    }

    /// See `Leases::release`.
    #[napi(catch_unwind)]
    pub fn release(&self) -> Operation {
        let leases = Arc::clone(&self.0);
        Operation::new(async move {
            leases.release().await?;
            Ok(Outcome::Nothing)
        })
    }

    /// As [`Lease::leave`], of all.
    #[napi(catch_unwind)]
    pub fn leave(&self) -> Operation {
        let leases = Arc::clone(&self.0);
        Operation::new(async move {
            let was_lost = leases.iter().any(leasehold::Lease::is_lost);
            let released = leases.release().await;
            ffi::left(was_lost, released)?;
            Ok(Outcome::Nothing)
        })
    }
}
