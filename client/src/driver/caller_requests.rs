//! Requests that an async caller sends itself, as part of the future that it polls.

use std::task::{Context, Poll};

use leasehold_core::op::{Fault, FaultKind, TransportFault};
use leasehold_core::{LockId, Transmit};

use super::report::Stopwatch;
use super::send::Sent;
use super::{Caller, Driver};
#[cfg(feature = "network")]
use crate::event_loop::{self, EventLoop};
use crate::host::sync::Arc;
#[cfg(feature = "network")]
use crate::host::sync::Weak;
use crate::transport::{Answer, Answering, Network};

/// The requests of one lock that its caller has in flight. They go on while [`CallerRequests::poll`] is called.
///
/// Dropping them tells the core that their outcome is unknown. Those to the nodes of a quorum go on by themselves instead:
/// a majority has decided, or the caller has gone, and the core must hear of a grant that a slower node still makes. So do
/// those of an event loop, which may not have been written yet: what the core sends next would overtake them.
#[derive(Default)]
pub(crate) struct CallerRequests(Vec<CallerRequest>);

struct CallerRequest {
    lock: LockId,
    request: Sent,
    answering: Answering,
    /// Where it goes on by itself, once its caller has gone.
    #[cfg(feature = "network")]
    home: Option<Home>,
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
        let (request, stopwatch) = (Sent::of(&transmit), Some(Stopwatch::start(&transmit, driver.time())));
        let answering = network.call_on_caller(transmit)?;
        self.0.push(CallerRequest {
            lock,
            request,
            answering,
            #[cfg(feature = "network")]
            home: Home::current().filter(|home| driver.is_quorum() || matches!(home, Home::Loop(_))),
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
        let homes = requests.iter_mut().filter_map(|request| request.home.take());
        let Some(home) = homes.last() else { return };
        if requests.iter().any(CallerRequest::is_inherited) {
            return;
        }
        let mut rest = Self(requests);
        home.spawn(std::future::poll_fn(move |context| {
            rest.poll(context);
            if rest.0.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        }));
    }
}

/// The runtime or event loop whose task makes a request.
#[cfg(feature = "network")]
enum Home {
    Runtime(tokio::runtime::Handle),
    Loop(Weak<EventLoop>),
}

#[cfg(feature = "network")]
impl Home {
    fn current() -> Option<Self> {
        let event_loop = event_loop::current().map(|current| Self::Loop(Arc::downgrade(&current)));
        event_loop.or_else(|| tokio::runtime::Handle::try_current().ok().map(Self::Runtime))
    }

    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        match self {
            Self::Runtime(runtime) => {
                runtime.spawn(future);
            }
            Self::Loop(event_loop) => {
                if let Some(event_loop) = event_loop.upgrade() {
                    event_loop.spawn(future);
                }
            }
        }
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
            Some(driver) => driver.on_answer(&self.request, answer, Caller::Async, Some(self.lock)),
            None => CallerRequests::default(),
        }
    }
}

impl Drop for CallerRequest {
    fn drop(&mut self) {
        if let Some(driver) = self.driver.take().filter(|driver| !driver.is_inherited()) {
            let fault = TransportFault::Unknown(Fault::of(FaultKind::Cancelled));
            let next = driver.on_answer(&self.request, Err(fault), Caller::Background, None);
            debug_assert!(next.0.is_empty(), "there is no future to send requests");
        }
    }
}
