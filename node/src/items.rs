//! Items of compare-and-set.

use leasehold::DefaultStore;
use leasehold::cas::{self, Step};
use leasehold::ffi::ItemUpdate;
use napi::Either;
use napi::bindgen_prelude::{Buffer, Uint8Array};
use napi_derive::napi;

use crate::failure::{Failure, either};
use crate::info::whole;
use crate::options::count;
use crate::reactor::{Operation, Outcome};

/// The items of one store.
#[napi]
pub struct Items(cas::Items);

impl Items {
    pub(crate) fn new(items: cas::Items) -> Self {
        Self(items)
    }
}

/// Connects to the store that a url names.
#[napi(catch_unwind)]
pub fn connect_items(url: Option<String>) -> Operation {
    Operation::new(async move {
        let items = match url {
            Some(url) => cas::Items::connect_async(url).await?,
            None => cas::Items::connect_async(DefaultStore).await?,
        };
        Ok(Outcome::Items(items))
    })
}

#[napi]
impl Items {
    /// Begins an update, which is tried so many times. Asks nothing yet.
    #[napi(catch_unwind)]
    pub fn begin(&self, name: String, tries: f64) -> Either<Update, Failure> {
        either(count("tries", tries).and_then(|tries| {
            let items = self.0.clone().tries(u32::try_from(tries).unwrap_or(u32::MAX));
            Ok(Update(ItemUpdate::begin(&items, &name)?))
        }))
    }
}

/// One update of one item.
#[napi]
pub struct Update(ItemUpdate);

#[napi]
impl Update {
    /// The next step.
    #[napi(catch_unwind)]
    pub fn step(&self) -> Operation {
        let step = self.0.step_async();
        Operation::new(async move { Ok(Outcome::ItemStep(step.await?)) })
    }

    /// The value that the next step writes.
    #[napi(catch_unwind)]
    #[allow(clippy::needless_pass_by_value, reason = "an argument from JavaScript")]
    pub fn write(&self, value: Uint8Array) -> Option<Failure> {
        self.0.write(value.to_vec()).err().map(Failure::from)
    }
}

/// A step: the item to decide on, or the one that was written.
#[napi]
pub struct ItemStep(Step);

impl ItemStep {
    pub(crate) fn new(step: Step) -> Self {
        Self(step)
    }

    /// Writes an item, whatever it was.
    pub(crate) fn write(items: &cas::Items, name: &str, value: &[u8]) -> Result<Self, Failure> {
        match items.update(name, |_| Some(value.to_vec()))? {
            Some(item) => Ok(Self(Step::Written(item))),
            None => Err(Failure::internal("the value was not written".to_owned())),
        }
    }

    fn item(&self) -> Option<&cas::Item> {
        match &self.0 {
            Step::Decide(item) => item.as_ref(),
            Step::Written(item) => Some(item),
        }
    }
}

#[napi]
impl ItemStep {
    /// The new value is in place.
    #[napi(getter, catch_unwind)]
    pub fn is_written(&self) -> bool {
        matches!(self.0, Step::Written(_))
    }

    /// The value of the item, if there is one.
    #[napi(getter, catch_unwind)]
    pub fn value(&self) -> Option<Buffer> {
        self.item().map(|item| item.value.clone().into())
    }

    /// Its version.
    #[napi(getter, catch_unwind)]
    pub fn version(&self) -> Option<i64> {
        self.item().map(|item| whole(item.version))
    }
}
