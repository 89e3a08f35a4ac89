//! Requests that an async caller performs itself, as part of the future that it polls.

use std::task::{Context, Poll};

use leasehold_core::op::{Fault, FaultKind, TransportFault};
use leasehold_core::{LockId, NodeId, RequestId, Transmit};

use super::report::Stopwatch;
use super::{Caller, Driver};
use crate::sync::Arc;
use crate::transport::{Answer, Answering, Network};

/// The requests of one lock that its caller has under way. They go on while [`Errands::poll`] is called.
///
/// Dropping them tells the core that their fate is unknown. Those to the nodes of a quorum go on by themselves instead:
/// a majority has decided, or the caller has gone, and what the slower nodes have granted must not stand there with nobody
/// knowing of it.
#[derive(Default)]
pub(crate) struct Errands(Vec<Errand>);

struct Errand {
    lock: LockId,
    whose: (RequestId, NodeId),
    answering: Answering,
    #[cfg(feature = "network")]
    runtime: Option<tokio::runtime::Handle>,
    stopwatch: Option<Stopwatch>,
    /// `None` once the core knows what came of it.
    driver: Option<Arc<Driver>>,
}

impl Errands {
    /// Begins a request.
    ///
    /// # Errors
    /// The request, where the caller has no runtime that could perform it.
    pub(super) fn run(
        &mut self,
        driver: &Arc<Driver>,
        lock: LockId,
        network: &dyn Network,
        request: Transmit,
    ) -> Result<(), Transmit> {
        let (whose, stopwatch) = ((request.id, request.node), Some(Stopwatch::start(&request)));
        let answering = network.call_on_caller(request)?;
        self.0.push(Errand {
            lock,
            whose,
            answering,
            #[cfg(feature = "network")]
            runtime: tokio::runtime::Handle::try_current().ok().filter(|_| driver.is_quorum()),
            stopwatch,
            driver: Some(Arc::clone(driver)),
        });
        Ok(())
    }

    /// Goes on with all of them, and with what the core wants next of the same lock.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) {
        let mut at = 0;
        while let Some(errand) = self.0.get_mut(at) {
            match errand.answering.as_mut().poll(context) {
                Poll::Pending => at += 1,
                Poll::Ready(answer) => {
                    let mut next = self.0.swap_remove(at).done(answer);
                    self.0.append(&mut next.0);
                }
            }
        }
    }
}

#[cfg(feature = "network")]
impl Drop for Errands {
    fn drop(&mut self) {
        let mut errands = std::mem::take(&mut self.0);
        // Taken away, for they are dropped a second time if that runtime ends.
        let runtimes = errands.iter_mut().filter_map(|errand| errand.runtime.take());
        let Some(runtime) = runtimes.last() else { return };
        if errands.iter().any(Errand::is_inherited) {
            return;
        }
        let mut rest = Self(errands);
        runtime.spawn(std::future::poll_fn(move |context| {
            rest.poll(context);
            if rest.0.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        }));
    }
}

impl Errand {
    #[cfg(feature = "network")]
    fn is_inherited(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.is_inherited())
    }

    fn done(mut self, answer: Answer) -> Errands {
        if let Some(stopwatch) = self.stopwatch.take() {
            stopwatch.stop();
        }
        match self.driver.take() {
            Some(driver) => driver.answered(self.whose, answer, Caller::Async, Some(self.lock)),
            None => Errands::default(),
        }
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.take().filter(|driver| !driver.is_inherited()) {
            let fault = TransportFault::Unknown(Fault::of(FaultKind::Cancelled));
            let none = driver.answered(self.whose, Err(fault), Caller::Nobody, None);
            debug_assert!(none.0.is_empty(), "nobody is there to run errands");
        }
    }
}
