"""The election whose callback runs."""

from __future__ import annotations

from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_running: ContextVar[object] = ContextVar("leasehold_callback", default=None)


class Callbacks:
    """Those of one candidacy, of which one runs at a time."""

    def __init__(self) -> None:
        self._running: object = None

    def own(self, callback: Callable[[object], object]) -> Callback:
        """The callback as it is to be called."""
        return Callback(self, callback)

    def is_within(self) -> bool:
        """True if the caller belongs to the one that runs now, also where a task or another thread does its work: what
        waits for the end of a callback must not be waited for in it.
        """
        return self._running is not None and _running.get() is self._running


class Callback:
    """Shown as the one that it calls."""

    def __init__(self, callbacks: Callbacks, callback: Callable[[object], object]) -> None:
        self._callbacks = callbacks
        self._callback = callback

    def __call__(self, argument: object) -> object:
        self._callbacks._running = this = object()
        # Tasks, and threads of asyncio.to_thread, take the context along.
        _running.set(this)
        try:
            return self._callback(argument)
        finally:
            self._callbacks._running = None

    def __repr__(self) -> str:
        return repr(self._callback)
