//! Updates of items by compare-and-set, whose decisions run in another language.

use crate::cas::{Error, Items, Step, Update};
use crate::error::{Error as Trouble, ErrorKind};
use crate::exec;
use crate::ffi::{asking, given_up};
use crate::host::sync::{Arc, Mutex};

/// See [`Update`]. One step at a time.
pub struct ItemUpdate(Arc<Mutex<Option<Update>>>);

impl ItemUpdate {
    /// See [`Items::begin`].
    ///
    /// # Errors
    /// As there.
    pub fn begin(items: &Items, name: &str) -> Result<Self, Error> {
        Ok(Self(Arc::new(Mutex::new(Some(items.begin(name)?)))))
    }

    /// See [`Update::step`]. Gives up once `interrupted` returns `true`; the value may have been written.
    ///
    /// # Errors
    /// As there; [`ErrorKind::Cancelled`] when it was interrupted.
    pub fn step(&self, interrupted: impl FnMut() -> bool) -> Result<Step, Error> {
        let step = exec::block_on_until(self.step_async(), asking(interrupted));
        step.unwrap_or_else(|stopped| Err(Error::before(stopped.into_error(given_up))))
    }

    /// As [`ItemUpdate::step`], for an executor. A step that is dropped ends the update.
    ///
    /// # Errors
    /// As [`Update::step`].
    pub fn step_async(&self) -> impl Future<Output = Result<Step, Error>> + Send + 'static {
        let place = Arc::clone(&self.0);
        async move {
            let taken = place.lock().take();
            let Some(mut update) = taken else { return Err(Error::before(elsewhere())) };
            let step = update.step_async().await;
            *place.lock() = Some(update);
            step
        }
    }

    /// See [`Update::write`].
    ///
    /// # Errors
    /// As there.
    pub fn write(&self, value: Vec<u8>) -> Result<(), Error> {
        match self.0.lock().as_mut() {
            Some(update) => update.write(value),
            None => Err(Error::before(elsewhere())),
        }
    }
}

fn elsewhere() -> Trouble {
    Trouble::new(ErrorKind::Config, "a step of this update is under way, or was given up")
}
