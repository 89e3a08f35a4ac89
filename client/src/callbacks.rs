//! Callbacks of leases, elections and shards, and the telling of those that fail.

use std::any::Any;
use std::borrow::Cow;
use std::future::{poll_fn, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tracing::Level;

use crate::error::{Error, ErrorKind};
use crate::transport::pauses::Pauses;
use crate::{metrics, reports};

/// The pauses of a candidate or worker after failures in a row.
pub(crate) const RESTS: Pauses = Pauses::new(Duration::from_secs(1), Duration::from_secs(60));

/// The failure of a callback that another language has run: a wrapper answers or panics with it. The text is its name with what it
/// has raised; without one the call was cancelled, as at the end of an event loop, and nothing is reported.
#[derive(Debug)]
pub struct CallbackEnd(pub Option<String>);

/// The end of a callback that may be awaited.
pub(crate) type Ending = Pin<Box<dyn Future<Output = Result<(), CallbackEnd>> + Send>>;

/// The end of a callback that has returned.
pub(crate) fn returned() -> Ending {
    Box::pin(ready(Ok(())))
}

/// Runs a callback for a resource.
///
/// # Errors
/// Its failure; none is to be told of where it was cancelled.
pub(crate) fn run<R>(resource: &str, callback: &'static str, call: impl FnOnce() -> R) -> Result<R, Option<Error>> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| panicked(resource, callback, panic))
}

/// The same, of one that may be awaited.
pub(crate) async fn run_to_end(
    resource: &str,
    callback: &'static str,
    call: impl FnOnce() -> Ending,
) -> Result<(), Option<Error>> {
    let mut ending = run(resource, callback, call)?;
    let poll = |context: &mut Context<'_>| match run(resource, callback, || ending.as_mut().poll(context)) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(Ok(()))) => Poll::Ready(Ok(())),
        Ok(Poll::Ready(Err(CallbackEnd(text)))) => Poll::Ready(Err(text.map(|text| failed(resource, callback, text)))),
        Err(failure) => Poll::Ready(Err(failure)),
    };
    poll_fn(poll).await
}

fn panicked(resource: &str, callback: &'static str, panic: Box<dyn Any + Send>) -> Option<Error> {
    let text = said(callback, &*panic);
    // The value of a panic may panic in turn when it is dropped.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
    text.map(|text| failed(resource, callback, text))
}

fn failed(resource: &str, callback: &'static str, text: String) -> Error {
    let error = Error::new(ErrorKind::Callback, text).on(resource);
    let (told, resource) = (error.clone(), resource.to_owned());
    reports::queue(Level::ERROR, move || {
        metrics::callback_failed(callback);
        tracing::error!(
            name: "callback.failed", target: "leasehold", resource, callback, error = %told,
            "callback.failed: a function of this program ended with an error"
        );
    });
    error
}

fn said(callback: &str, panic: &(dyn Any + Send)) -> Option<String> {
    if let Some(CallbackEnd(text)) = panic.downcast_ref() {
        return text.clone();
    }
    let text = panic.downcast_ref::<&str>().map(|text| Cow::Borrowed(*text));
    let text = text.or_else(|| panic.downcast_ref::<String>().map(|text| Cow::Borrowed(text.as_str())));
    let text = text.map(|text| format!(": {text}")).unwrap_or_default();
    Some(format!("{callback} has panicked{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_says_which_callback_and_why() {
        let failed = |call: fn()| run("job", "on_start", call).unwrap_err().unwrap().to_string();
        assert_eq!(failed(|| std::panic::panic_any(7)), r#""job": on_start has panicked"#);
        assert_eq!(failed(|| panic!("a {}", "text")), r#""job": on_start has panicked: a text"#);
        let raised = || std::panic::resume_unwind(Box::new(CallbackEnd(Some("onStart has thrown it".to_owned()))));
        assert_eq!(failed(raised), r#""job": onStart has thrown it"#);
        assert!(run("job", "on_start", || {}).is_ok());
        let cancelled = || std::panic::resume_unwind(Box::new(CallbackEnd(None)));
        assert!(run("job", "on_start", cancelled).unwrap_err().is_none());
    }

    #[test]
    fn value_that_panics_when_it_is_dropped_ends_no_thread() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("on purpose");
            }
        }
        assert!(run("job", "on_stop", || std::panic::panic_any(Bomb)).is_err());
    }
}
