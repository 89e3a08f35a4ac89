//! Requests that an async caller sends itself, as part of the future that it polls.

use std::task::{Context, Poll};

use leasehold_core::op::{Fault, FaultKind, TransportFault};
use leasehold_core::{LockId, NodeId, RequestId, Transmit};

use super::report::Stopwatch;
use super::{Caller, Driver};
use crate::sync::Arc;
use crate::transport::{Answer, Answering, Network};

/// The requests of one lock that its caller has in flight. They go on while [`CallerRequests::poll`] is called.
///
/// Dropping them tells the core that their outcome is unknown. Those to the nodes of a quorum go on by themselves instead:
/// a majority has decided, or the caller has gone, and the core must hear of a grant that a slower node still makes.
#[derive(Default)]
pub(crate) struct CallerRequests(Vec<CallerRequest>);

struct CallerRequest {
    lock: LockId,
    request: (RequestId, NodeId),
    answering: Answering,
    #[cfg(feature = "network")]
    runtime: Option<tokio::runtime::Handle>,
    stopwatch: Option<Stopwatch>,
    /// `None` once the core knows the outcome.
    driver: Option<Arc<Driver>>,
}

impl CallerRequests {
    /// Sends a request.
    ///
    /// # Errors
    /// The request, where the caller has no runtime that could send it.
    pub(super) fn send(
        &mut self,
        driver: &Arc<Driver>,
        lock: LockId,
        network: &dyn Network,
        transmit: Transmit,
    ) -> Result<(), Transmit> {
        let (id, stopwatch) = ((transmit.id, transmit.node), Some(Stopwatch::start(&transmit)));
        let answering = network.call_on_caller(transmit)?;
        self.0.push(CallerRequest {
            lock,
            request: id,
            answering,
            #[cfg(feature = "network")]
            runtime: tokio::runtime::Handle::try_current().ok().filter(|_| driver.is_quorum()),
            stopwatch,
            driver: Some(Arc::clone(driver)),
        });
        Ok(())
    }

    /// Goes on with all of them, and with the requests that the core makes next for the same lock.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) {
        let mut at = 0;
        while let Some(request) = self.0.get_mut(at) {
            match request.answering.as_mut().poll(context) {
                Poll::Pending => at += 1,
                Poll::Ready(answer) => {
                    let mut next = self.0.swap_remove(at).finish(answer);
                    self.0.append(&mut next.0);
                }
            }
        }
    }
}

#[cfg(feature = "network")]
impl Drop for CallerRequests {
    fn drop(&mut self) {
        let mut requests = std::mem::take(&mut self.0);
        // Taken, because they are dropped a second time if that runtime ends.
        let runtimes = requests.iter_mut().filter_map(|request| request.runtime.take());
        let Some(runtime) = runtimes.last() else { return };
        if requests.iter().any(CallerRequest::is_inherited) {
            return;
        }
        let mut rest = Self(requests);
        runtime.spawn(std::future::poll_fn(move |context| {
            rest.poll(context);
            if rest.0.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        }));
    }
}

impl CallerRequest {
    #[cfg(feature = "network")]
    fn is_inherited(&self) -> bool {
        self.driver.as_ref().is_some_and(|driver| driver.is_inherited())
    }

    fn finish(mut self, answer: Answer) -> CallerRequests {
        if let Some(stopwatch) = self.stopwatch.take() {
            stopwatch.stop();
        }
        match self.driver.take() {
            Some(driver) => driver.on_answer(self.request, answer, Caller::Async, Some(self.lock)),
            None => CallerRequests::default(),
        }
    }
}

impl Drop for CallerRequest {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.take().filter(|driver| !driver.is_inherited()) {
            let fault = TransportFault::Unknown(Fault::of(FaultKind::Cancelled));
            let next = driver.on_answer(self.request, Err(fault), Caller::Background, None);
            debug_assert!(next.0.is_empty(), "there is no future to send requests");
        }
    }
}
