//! Held leases.

use std::sync::Arc;

use leasehold::ffi::{self, Held};
use napi_derive::napi;

use crate::failure::Failure;
use crate::options::length;
use crate::reactor::{Operation, Outcome};

/// A lease that JavaScript knows by its number.
#[napi(object, object_from_js = false)]
pub struct KeptLease {
    /// Its number, as long as it is held.
    pub number: u32,
    /// The fencing token.
    pub token: i64,
    /// The locked resource.
    pub resource: String,
    /// The label that others see.
    pub owner: String,
}

/// Leases by number, each with the number of the task that watches for its loss.
#[derive(Default)]
pub(crate) struct KeptLeases {
    kept: Vec<Option<(Held, u64)>>,
    free: Vec<u32>,
}

impl KeptLeases {
    pub(crate) fn insert(&mut self, held: Held) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.kept.push(None);
            u32::try_from(self.kept.len() - 1).expect("invariant: memory is full before 2^32 leases are held")
        });
        self.kept[number as usize] = Some((held, 0));
        number
    }

    pub(crate) fn set_watch(&mut self, number: u32, task: u64) {
        if let Some(Some((_, watch))) = self.kept.get_mut(number as usize) {
            *watch = task;
        }
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Held> {
        self.kept.get(number as usize)?.as_ref().map(|(held, _)| held)
    }

    /// Removes a lease that its watch has found lost. One that was revoked stays until JavaScript drops it: its record keeps
    /// others out until the work has ended. Returns false if there is no such lease.
    pub(crate) fn lose(&mut self, number: u32, watch: u64) -> bool {
        let kept = self.kept.get_mut(number as usize).and_then(Option::as_mut).filter(|(_, task)| *task == watch);
        match kept {
            Some((held, watch)) if !held.protected_for().is_zero() => {
                *watch = 0;
                true
            }
            Some(_) => self.remove(number, None).is_some(),
            None => false,
        }
    }

    /// Removes a lease, if there is one with that number, and with that watch where one is given.
    pub(crate) fn remove(&mut self, number: u32, watch: Option<u64>) -> Option<(Held, u64)> {
        let removed =
            self.kept.get_mut(number as usize)?.take_if(|(_, task)| watch.is_none_or(|watch| watch == *task))?;
        self.free.push(number);
        Some(removed)
    }
}

/// The error of a lease that was released before.
#[napi(catch_unwind)]
pub fn already_released(resource: String) -> Failure {
    ffi::already_released(&resource).into()
}

/// Several leases that were taken together, in the order of their names.
#[napi]
pub struct Leases(Arc<leasehold::Leases>);

impl Leases {
    pub(crate) fn new(leases: leasehold::Leases) -> Self {
        Self(Arc::new(leases))
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = Held> {
        (0..self.0.len()).map(|at| Held::OneOf(Arc::clone(&self.0), at))
    }
}

#[napi]
impl Leases {
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

    /// Releases at the end of a body, and fails if the body was not protected to its end.
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
