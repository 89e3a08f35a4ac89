//! The route of a request: which thread or future sends it to its store.

use crate::transport::Transport;

/// The thread or future that makes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A thread, which may wait for answers.
    Blocking,
    /// A future, which must not be held up.
    Async,
    /// None: the call is not awaited.
    Background,
    /// The task that hears of turns in the queue: where it can, it runs beside the future that waits.
    Listener,
}

/// The way of a request to its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// The calling thread sends it, and waits for the answer.
    Inline,
    /// The caller's future sends it, and is polled until the answer is there.
    CallerFuture,
    /// A task of the runtime that runs now sends it, if callers live there; else as in the background.
    Here,
    /// A thread of the store's sends it.
    Background,
}

/// The way in which a store waits for its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// It does not wait: it answers in microseconds.
    Immediate,
    /// The sending thread waits, for a disk.
    Thread,
    /// No thread has to wait: it is behind a socket.
    Socket,
}

impl Reach {
    pub(super) fn of(store: &dyn Transport) -> Self {
        if store.is_instant() {
            return Self::Immediate;
        }
        if store.network().is_some() { Self::Socket } else { Self::Thread }
    }
}

impl Route {
    /// Chooses the route of a request. `is_own` means that it serves the caller's lock and no other; `is_quorum`, that the client
    /// has several stores.
    pub(super) fn choose(caller: Caller, is_own: bool, store: Reach, is_quorum: bool) -> Self {
        match (store, caller) {
            // Handing it to another thread would take longer.
            (Reach::Immediate, _) => Self::Inline,
            // No caller is held up by requests of others.
            (_, _) if !is_own => Self::Background,
            // The nodes of a quorum are asked at the same time, and not one after the other.
            (_, Caller::Blocking) if is_quorum => Self::Background,
            (_, Caller::Blocking) => Self::Inline,
            (Reach::Socket, Caller::Async) => Self::CallerFuture,
            (Reach::Socket, Caller::Listener) => Self::Here,
            (Reach::Thread, Caller::Async | Caller::Listener) | (_, Caller::Background) => Self::Background,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLERS: [Caller; 4] = [Caller::Blocking, Caller::Async, Caller::Background, Caller::Listener];
    const REACHES: [Reach; 3] = [Reach::Immediate, Reach::Thread, Reach::Socket];

    #[test]
    fn an_immediate_store_is_asked_on_the_calling_thread() {
        for caller in CALLERS {
            for (is_own, is_quorum) in [(true, false), (true, true), (false, false), (false, true)] {
                assert_eq!(Route::choose(caller, is_own, Reach::Immediate, is_quorum), Route::Inline, "{caller:?}");
            }
        }
    }

    #[test]
    fn a_request_for_others_leaves_in_the_background() {
        for caller in CALLERS {
            for reach in [Reach::Thread, Reach::Socket] {
                for is_quorum in [false, true] {
                    assert_eq!(
                        Route::choose(caller, false, reach, is_quorum),
                        Route::Background,
                        "{caller:?} {reach:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_blocking_caller_waits_for_one_store_itself_and_has_several_asked_at_once() {
        for reach in [Reach::Thread, Reach::Socket] {
            assert_eq!(Route::choose(Caller::Blocking, true, reach, false), Route::Inline, "{reach:?}");
            assert_eq!(Route::choose(Caller::Blocking, true, reach, true), Route::Background, "{reach:?}");
        }
    }

    #[test]
    fn a_future_sends_its_requests_itself_only_behind_a_socket() {
        for is_quorum in [false, true] {
            assert_eq!(Route::choose(Caller::Async, true, Reach::Socket, is_quorum), Route::CallerFuture);
            assert_eq!(Route::choose(Caller::Async, true, Reach::Thread, is_quorum), Route::Background);
        }
    }

    #[test]
    fn who_hears_of_a_turn_takes_it_and_leaves_the_requests_of_others_to_the_background() {
        assert_eq!(Route::choose(Caller::Listener, true, Reach::Socket, false), Route::Here);
        assert_eq!(Route::choose(Caller::Listener, false, Reach::Socket, false), Route::Background);
        assert_eq!(Route::choose(Caller::Listener, true, Reach::Thread, false), Route::Background);
    }

    #[test]
    fn a_call_that_nobody_waits_for_leaves_in_the_background_unless_the_store_is_immediate() {
        for reach in REACHES {
            let expected = if reach == Reach::Immediate { Route::Inline } else { Route::Background };
            for is_quorum in [false, true] {
                assert_eq!(Route::choose(Caller::Background, true, reach, is_quorum), expected, "{reach:?}");
            }
        }
    }
}
