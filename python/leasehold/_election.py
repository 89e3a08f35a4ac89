"""Detects calls from within a callback of an election."""

from __future__ import annotations

from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_running: ContextVar[object] = ContextVar("leasehold_callback", default=None)


class Callbacks:
    """The callbacks of one candidacy; one runs at a time."""

    def __init__(self) -> None:
        self._running: object = None

    def own(self, callback: Callable[[object], object]) -> Callback:
        """Wraps a callback, to know when it runs."""
        return Callback(self, callback)

    def is_within(self) -> bool:
        """True if the caller runs within the current callback, also in a task or thread started by it: a callback must not
        wait for its own end.
        """
        return self._running is not None and _running.get() is self._running


class Callback:
    """A wrapped callback, with the ``repr`` of the original."""

    def __init__(self, callbacks: Callbacks, callback: Callable[[object], object]) -> None:
        self._callbacks = callbacks
        self._callback = callback

    def __call__(self, argument: object) -> object:
        self._callbacks._running = this = object()
        # Tasks, and threads of asyncio.to_thread, inherit the context.
        _running.set(this)
        try:
            return self._callback(argument)
        finally:
            self._callbacks._running = None

    def __repr__(self) -> str:
        return repr(self._callback)
