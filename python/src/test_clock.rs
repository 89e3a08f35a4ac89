//! The clock of `leasehold.testing`, by which real clients live. Everything that happens by it happens on the thread that moves it,
//! with the interpreter detached but for callbacks.

use leasehold::ffi;
use leasehold::testing;
use pyo3::prelude::*;

use crate::client::{Client, Connector};
use crate::convert::{Kept, Seconds};
use crate::errors::raised;
use crate::items::Items;

/// Time that passes when a test says so, and a store that all of its clients share.
#[pyclass(frozen, module = "leasehold._native")]
pub(crate) struct TestClock(Kept<testing::TestClock>);

impl TestClock {
    /// Lets things happen. The interrupt of a callback, which must end the test, is raised here.
    fn let_happen<R: Send>(&self, py: Python<'_>, happen: impl FnOnce(&testing::TestClock) -> R + Send) -> PyResult<R> {
        let answer = py.detach(|| happen(&self.0));
        py.check_signals()?;
        Ok(answer)
    }
}

#[pymethods]
impl TestClock {
    #[new]
    fn new(seed: u64) -> Self {
        Self(Kept::new(testing::TestClock::new(seed)))
    }

    /// Another client, with the settings of a connector. The end of the interpreter does not close it.
    fn connect(&self, py: Python<'_>, connector: &Connector) -> PyResult<Client> {
        let client = py.detach(|| self.0.connect_with(connector.settings()));
        client.map(Client::untracked).map_err(|error| raised(py, &error))
    }

    fn items(&self) -> Items {
        Items::new(self.0.items())
    }

    /// The items where no fault reaches them.
    fn items_beside(&self) -> Items {
        Items::new(ffi::items_beside(&self.0))
    }

    /// Seconds since the clock began.
    fn now(&self) -> f64 {
        self.0.now().as_secs_f64()
    }

    fn advance(&self, py: Python<'_>, time: Seconds) -> PyResult<()> {
        let time = time.finite(py, "the time")?;
        self.let_happen(py, |clock| clock.advance(time))
    }

    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        self.let_happen(py, testing::TestClock::settle)
    }

    fn step(&self, py: Python<'_>) -> PyResult<bool> {
        self.let_happen(py, testing::TestClock::step)
    }

    fn lose(&self, py: Python<'_>, client: &Client, resource: &str) -> PyResult<()> {
        let lost = self.let_happen(py, |clock| ffi::lose(clock, client.native(), resource))?;
        lost.map_err(|error| raised(py, &error))
    }

    fn store_down(&self) {
        self.0.store_down();
    }

    fn store_up(&self, py: Python<'_>) -> PyResult<()> {
        self.let_happen(py, testing::TestClock::store_up)
    }

    fn lose_reply(&self) {
        self.0.lose_reply();
    }

    fn late(&self, py: Python<'_>, time: Seconds) -> PyResult<()> {
        self.0.late(time.finite(py, "the time")?);
        Ok(())
    }
}
