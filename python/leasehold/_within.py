"""Detects calls from within a callback of an election or of shards."""

from __future__ import annotations

import traceback
from contextlib import contextmanager
from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_running: ContextVar[object] = ContextVar("leasehold_callback", default=None)


class Callbacks:
    """The callbacks of one candidacy or of one worker's shards."""

    def __init__(self) -> None:
        self._running: set[object] = set()
        self._failures: dict[str | None, BaseException] = {}

    def own(self, callback: Callable[..., object]) -> Callback:
        """Wraps a callback, to know when it runs."""
        return Callback(self, callback)

    def failure(self, resource: str) -> BaseException | None:
        """The exception of the last one that has raised, for this shard or in the election."""
        return self._failures.get(resource, self._failures.get(None))

    def forget_values(self) -> None:
        """Forgets the values of variables of callbacks that have raised: some may keep alive what should end."""
        for failure in list(self._failures.values()):
            error: BaseException | None = failure
            while error is not None:
                traceback.clear_frames(error.__traceback__)
                error = error.__cause__ or error.__context__

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
        with self.running():
            return self._callback(*arguments)

    @property
    def original(self) -> Callable[..., object]:
        """The callback that is wrapped."""
        return self._callback

    @contextmanager
    def running(self) -> Iterator[None]:
        """It runs meanwhile."""
        this = object()
        self._callbacks.forget_values()
        self._callbacks._running.add(this)
        # Tasks, and threads of asyncio.to_thread, inherit the context.
        _running.set(this)
        try:
            yield
        finally:
            self._callbacks._running.discard(this)

    def note(self, error: BaseException, arguments: tuple[object, ...]) -> None:
        """Keeps its exception."""
        shard = next(iter(arguments), None)
        key = shard.resource if hasattr(shard, "index") and hasattr(shard, "resource") else None
        self._callbacks._failures[key] = error

    def __repr__(self) -> str:
        return repr(self._callback)
