"""Held leases of fake clients."""

from __future__ import annotations

import json
import threading
from copy import copy

from leasehold import _callbacks
from leasehold._errors import (
    ConfigError,
    FinishUnconfirmedError,
    LeaseholdError,
    LeaseLostError,
    NotOwnedError,
    StoreUnavailableError,
)
from leasehold._fake_clock import ENDLESS, call
from leasehold._fakes import to_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import NoReturn, TypeVar

    from typing_extensions import Self

    from leasehold._fake_process import Process
    from leasehold._types import ParamStyle, Seconds

    E = TypeVar("E", bound=LeaseholdError)

PATIENCE = 2.0
"""The wait for a release, as in the real client."""


def about(error: E, resource: str) -> E:
    """An error of a resource, which its message begins with, as those of the real client do."""
    if error.resource is None:
        error.resource = resource
        error.args = (f"{json.dumps(resource, ensure_ascii=False)}: {error}", *error.args[1:])
    return error


class FakeLost:
    """The loss of a lease as an event; see :class:`leasehold.Lost`."""

    def __init__(self, lease: FakeLease) -> None:
        self._lease = lease

    def is_set(self) -> bool:
        """True if the lease ended without having been released."""
        return self.reason is not None

    @property
    def reason(self) -> LeaseholdError | None:
        """The reason of the loss; None while the lease is held or after it was released."""
        return self._lease._loss()

    def wait(self, timeout: Seconds | None = None) -> bool:
        """Moves the clock until the lease is over, by at most ``timeout`` seconds. Returns True if it was lost."""
        clock = self._lease._process.clock
        with clock._mutex:
            clock._until(clock._ns + to_ns(ENDLESS if timeout is None else timeout), lambda: self._lease._is_over())
        return self.is_set()


class FakeLease:
    """A held lock; see :class:`leasehold.Lease`. It stays held until it is released or lost, even without references to it."""

    def __init__(self, process: Process, lock: int, resource: str, owner: str, token: int) -> None:
        self._process = process
        self._lock = lock
        self._thread = threading.get_ident()
        self.resource = resource
        """The name of the lock."""
        self.owner = owner
        """The label that others see."""
        self.token = token
        """The fencing token: grows with every grant of the resource."""
        self._why: LeaseholdError | None = None
        self._is_released = False
        self._is_free = False
        self._is_unconfirmed = False
        self._callbacks: list[Callable[[LeaseholdError], object]] = []

    def remaining(self) -> float:
        """Seconds for which the lease is valid if no further renewal succeeds; 0.0 once it is over."""
        clock = self._process.clock
        with clock._mutex:
            return 0.0 if self._is_over() else self._process.machine.remaining_ns(self._lock, clock._read()) / 1e9

    def check(self, min: Seconds | None = None) -> None:
        """Raises LeaseLostError unless at least ``min`` seconds are left, NotOwnedError after a release."""
        least = to_ns(min or 0) / 1e9
        if (loss := self._loss()) is not None:
            raise loss
        if self._is_released:
            raise about(NotOwnedError("this lease was already released"), self.resource)
        left = self.remaining()
        if left <= 0 or left < least:
            message = f"only {left:.3f} s of validity are left, and {least:.3f} s were asked for: renewals are late"
            raise about(LeaseLostError(message), self.resource)

    def extend(self, seconds: Seconds | None = None) -> NoReturn:
        """Raises ConfigError; see :meth:`leasehold.Lease.extend`."""
        raise ConfigError(
            "a lease is renewed in the background until it is released, so there is nothing to extend: call check(seconds) "
            "before a step that takes so long, pass a longer ttl to outlast longer stalls, or max_hold to end renewals"
        )

    @property
    def lost(self) -> FakeLost:
        """The loss of the lease, as an event."""
        return FakeLost(self)

    def on_lost(self, callback: Callable[[LeaseholdError], object]) -> None:
        """Calls ``callback(error)`` once if the lease is lost; now, if it was lost before. Its exceptions go to
        ``sys.unraisablehook``, except KeyboardInterrupt, which stops the test. Raises TypeError for a coroutine function.
        """
        _callbacks.check(callback)
        if (loss := self._loss()) is not None:
            call(callback, loss)
        else:
            self._callbacks.append(callback)

    def release(self) -> None:
        """Releases the lock. Raises LeaseLostError if the lease was lost before, or the store shows that the lock was no longer
        ours; NotOwnedError if it was released before; StoreUnavailableError if the store has not confirmed within 2 s of
        the clock: then the release continues.
        """
        clock = self._process.clock
        with clock._mutex:
            if isinstance(self._why, LeaseLostError) and self._why.reason == "revoked":
                # Its record keeps others out until the work has ended.
                self._process.release_revoked(self._lock)
            self.check()
            self._is_released = True
            self._callbacks.clear()
            self._process.machine.release(self._lock, clock._read())
            clock._until(clock._ns + to_ns(PATIENCE), lambda: self._is_free or self._why is not None)
        if (loss := self._loss()) is not None:
            raise loss
        if not self._is_free:
            message = "the release is not confirmed: it is tried again in the background, and otherwise the lock expires after its ttl"
            raise about(StoreUnavailableError(message), self.resource)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._why is not None or not self._is_released:
                self.release()
        except StoreUnavailableError:
            # The work was done under the lock.
            pass
        except LeaseholdError:
            if kind is None:
                raise

    async def _begin_release(self) -> None:
        self.release()

    async def _begin_exit(self, has_raised: bool) -> None:
        self.__exit__(BaseException if has_raised else None, None, None)

    async def _begin_lost(self) -> LeaseholdError:
        import asyncio

        loop = asyncio.get_running_loop()
        lost: asyncio.Future[LeaseholdError] = loop.create_future()

        def tell(error: LeaseholdError) -> None:
            if not lost.done():
                lost.set_result(error)

        self.on_lost(lambda error: loop.call_soon_threadsafe(tell, error) and None)
        return await lost

    def __reduce__(self) -> NoReturn:
        raise TypeError("a lease belongs to the process that took it: pass its token on, not the lease")

    def __repr__(self) -> str:
        ended = "lost" if self._why is not None else "released"
        state = ended if self._is_over() else f"remaining={self.remaining():.1f} s"
        return f"<FakeLease {self.resource!r} token={self.token} {state}>"

    def _is_over(self) -> bool:
        return self._is_released or self._why is not None

    def _loss(self) -> LeaseholdError | None:
        # A copy for each raise, with its own traceback.
        return copy(self._why)

    def _end(self, why: LeaseholdError) -> None:
        """Ends the lease. Its callbacks run after everything that is due now."""
        if self._why is None:
            self._why = about(why, self.resource)
            self._process.clock._calls.extend((callback, copy(why)) for callback in self._callbacks)
            self._callbacks.clear()


class FakePermit(FakeLease):
    """A held permit of a semaphore; see :class:`leasehold.Permit`."""

    index = 0
    """The number of the permit, from 0."""


class FakeRun(FakeLease):
    """A lease under which work is done that is done once; see :class:`leasehold.Run`."""

    def finish(self) -> None:
        """Writes the completion that the work is done, and releases the lock. Raises the errors of
        :meth:`leasehold.Run.finish`; a store that is down makes it FinishUnconfirmedError, once the clock has reached the
        end of the lease.
        """
        clock = self._process.clock
        with clock._mutex:
            self.check()
            end = clock._ns + to_ns(self.remaining() + PATIENCE)
            self._is_released = True
            self._callbacks.clear()
            self._process.machine.finish(self._lock, clock._read())
            clock._until(end, lambda: self._is_free or self._why is not None)
        if (loss := self._loss()) is not None:
            raise loss
        if self._is_unconfirmed or not self._is_free:
            message = "the work was done, but the store did not confirm its completion: it may be done again"
            raise about(FinishUnconfirmedError(message), self.resource)

    async def _begin_finish(self) -> None:
        self.finish()

    def completion_in(self, *, paramstyle: ParamStyle = "numeric_dollar") -> NoReturn:
        """Raises ConfigError, as every store but PostgreSQL: there is no database for the completion."""
        raise about(ConfigError(f"a fake store has no transactions ({paramstyle})"), self.resource)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            super().__exit__(kind, error, traceback)
        elif self._why is not None or not self._is_released:
            self.finish()
