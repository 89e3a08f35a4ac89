"""Detects calls from within a callback of an election or of shards."""

from __future__ import annotations

import traceback
from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_running: ContextVar[object] = ContextVar("leasehold_callback", default=None)


class Callbacks:
    """The callbacks of one candidacy or of one worker's shards."""

    def __init__(self) -> None:
        self._running: set[object] = set()
        self.failure: BaseException | None = None
        """The exception of the last one that has raised."""

    def own(self, callback: Callable[..., object]) -> Callback:
        """Wraps a callback, to know when it runs."""
        return Callback(self, callback)

    def is_within(self) -> bool:
        """True if the caller runs within a callback that runs still, also in a task or thread started by it: a callback must
        not wait for its own end.
        """
        return _running.get() in self._running


class Callback:
    """A wrapped callback, with the ``repr`` of the original."""

    def __init__(self, callbacks: Callbacks, callback: Callable[..., object]) -> None:
        self._callbacks = callbacks
        self._callback = callback

    def __call__(self, *arguments: object) -> object:
        this = object()
        self._callbacks._running.add(this)
        # Tasks, and threads of asyncio.to_thread, inherit the context.
        _running.set(this)
        try:
            return self._callback(*arguments)
        finally:
            self._callbacks._running.discard(this)

    def note(self, error: BaseException) -> None:
        """Keeps its exception, without the values of its variables."""
        traceback.clear_frames(error.__traceback__)
        self._callbacks.failure = error

    def __repr__(self) -> str:
        return repr(self._callback)
