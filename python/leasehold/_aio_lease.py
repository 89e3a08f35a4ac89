"""Held leases for asyncio."""

from __future__ import annotations

import asyncio

from leasehold._aio_loop import perform
from leasehold._aio_pending import asked
from leasehold._misuse import AsyncOnly
from leasehold._results import NoResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, NoReturn

    from typing_extensions import Self

    from leasehold import _native
    from leasehold._errors import LeaseholdError
    from leasehold._runs import Attempts
    from leasehold._types import ParamStyle, Seconds

# Tasks that nobody awaits.
_callbacks: set[asyncio.Future[Any]] = set()


def refuse_uncallable(callback: object) -> None:
    if not callable(callback):
        raise TypeError(f"a callback must be callable, and {callback!r} is not")


class Lost:
    """An event that is set once the lease is lost."""

    def __init__(self, native: _native.Lease) -> None:
        self._native = native

    def is_set(self) -> bool:
        """True if the lease ended without having been released."""
        return self._native.lost.is_set()

    @asked
    async def wait(self) -> LeaseholdError:
        """Waits until the lease is lost, and returns the reason. After a release it waits forever."""
        error: LeaseholdError = await perform(self._native._begin_lost())
        return error

    @property
    def reason(self) -> LeaseholdError | None:
        """The reason of the loss; None while the lease is held or after it was released."""
        return self._native.lost.reason


class _Held(AsyncOnly):
    """A lease or several, held for the body of ``async with``."""

    _native: Any

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await perform(self._native._begin_exit(kind is not None))

    def __repr__(self) -> str:
        return repr(self._native)


class Lease(_Held):
    """A held lock; see :class:`leasehold.Lease`. Dropping the last reference to it releases it."""

    def __init__(self, native: _native.Lease) -> None:
        self._native: _native.Lease = native

    @property
    def token(self) -> int:
        """The fencing token: grows with every grant of the resource, below 2**53."""
        return self._native.token

    @property
    def resource(self) -> str:
        """The name of the lock."""
        return self._native.resource

    @property
    def owner(self) -> str:
        """The label that others see."""
        return self._native.owner

    @property
    def lost(self) -> Lost:
        """The loss of the lease, as an event that can be awaited."""
        return Lost(self._native)

    def remaining(self) -> float:
        """Seconds for which the lease is valid if no further renewal succeeds; never waits."""
        return self._native.remaining()

    def check(self, min: Seconds | None = None) -> None:
        """Raises LeaseLostError unless at least ``min`` seconds of validity are left, NotOwnedError after a release."""
        self._native.check(min)

    def extend(self, seconds: Seconds | None = None) -> NoReturn:
        """Raises ConfigError, with advice; see :meth:`leasehold.Lease.extend`."""
        self._native.extend(seconds)

    def on_lost(self, callback: Callable[[LeaseholdError], object]) -> None:
        """Calls ``callback(error)`` once, on the running event loop, if the lease is lost. It may be a coroutine
        function, which then runs as a separate task.
        """
        loop = asyncio.get_running_loop()
        refuse_uncallable(callback)

        def call(error: LeaseholdError) -> None:
            result = callback(error)
            if asyncio.iscoroutine(result) or isinstance(result, asyncio.Future):
                # The loop itself keeps no reference to a task.
                _callbacks.add(task := asyncio.ensure_future(result, loop=loop))
                task.add_done_callback(_callbacks.discard)

        def told(error: LeaseholdError) -> None:
            try:
                loop.call_soon_threadsafe(call, error)
            except RuntimeError:
                # The loop is closed, and the work under the lease has ended with it.
                pass

        self._native.on_lost(told)

    async def release(self) -> None:
        """Releases the lock; see :meth:`leasehold.Lease.release`. Cancelling does not stop the release."""
        await perform(self._native._begin_release())

    def __reduce__(self) -> NoReturn:
        raise TypeError("a lease belongs to the process that took it: pass its token on, not the lease")


class Permit(Lease):
    """A held permit of a semaphore; see :class:`leasehold.Permit`."""

    _native: _native.Permit

    @property
    def index(self) -> int:
        """The number of the permit, from 0: which of N equal things its holder may use."""
        return self._native.index


class Run(Lease):
    """A lease under which work is done that is done once; see :class:`leasehold.Run`."""

    _native: _native.Run

    async def finish(self, *, result: object = NoResult.NONE) -> None:
        """Writes down that the work is done, and releases the lock; see :meth:`leasehold.Run.finish`. Cancelling does not
        stop it.
        """
        await perform(self._native._begin_finish(result=result))

    def completion_in(
        self, *, paramstyle: ParamStyle = "numeric_dollar", result: object = NoResult.NONE
    ) -> tuple[str, Any]:
        """A statement that writes the completion in a transaction of yours, and its parameters; see :meth:`leasehold.Run.completion_in`."""
        return self._native.completion_in(paramstyle=paramstyle, result=result)

    async def fail(self, why: str | BaseException, /) -> None:
        """Says why the work has failed, and releases the lock; see :meth:`leasehold.Run.fail`."""
        await perform(self._native._begin_fail(why))

    @property
    def attempts(self) -> Attempts | None:
        """The attempts at the work with this one; None without ``max_attempts``."""
        return self._native.attempts

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await perform(self._native._begin_exit(kind is not None, error))


class Leases(_Held):
    """Several leases that were taken together, in the order of their names; see :class:`leasehold.Leases`."""

    def __init__(self, native: _native.Leases) -> None:
        self._native: _native.Leases = native

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, which: int | str) -> Lease:
        return Lease(self._native[which])

    def check(self, min: Seconds | None = None) -> None:
        """Raises LeaseLostError unless each has at least ``min`` seconds of validity left."""
        self._native.check(min)

    async def release(self) -> None:
        """Releases all of them, the last one taken first."""
        await perform(self._native._begin_release())
