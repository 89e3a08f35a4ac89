"""The clock of fake clients, which the test moves."""

from __future__ import annotations

import sys
import threading
from collections import deque
from hashlib import sha256
from types import SimpleNamespace

from leasehold import _callbacks
from leasehold._fakes import to_ns
from leasehold._functions import refuse_result
from leasehold._native import TestStore
from leasehold.protocol import Now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from leasehold._errors import LeaseholdError
    from leasehold._fake_process import Process
    from leasehold._fake_shards import FakeShards
    from leasehold._types import Seconds

ENDLESS = 3600.0
"""The limit of a wait without a limit: nobody else moves the clock meanwhile."""


class FakeClock:
    """Time that passes when a test says so, and the store that all of its clients share."""

    def __init__(self) -> None:
        self._ns = 1_000_000_000
        self._store = TestStore()
        self._clients: list[Process] = []
        self._drawn = 0
        # All locks that were ever asked for, and the numbers of permits, readers and shards.
        self._names: set[str] = set()
        self._numbers: dict[tuple[str, str], int] = {}
        self._workers: dict[str, list[FakeShards]] = {}
        self._is_balancing = False
        self._calls: deque[tuple[Callable[[LeaseholdError], object], LeaseholdError]] = deque()
        # A test may have threads; one at a time moves the clock.
        self._mutex = threading.RLock()

    def now(self) -> float:
        """Seconds since an arbitrary instant."""
        return self._ns / 1e9

    def advance(self, seconds: Seconds) -> None:
        """Lets this much time pass, with everything that happens meanwhile: renewals, losses, and callbacks."""
        with self._mutex:
            self._until(self._ns + to_ns(seconds), lambda: False)
            self._balance()

    def _set_up(self, is_up: bool) -> None:
        """Lets requests reach the store, or not."""
        with self._mutex:
            self._store.is_up = is_up
            if is_up:
                self._balance()

    def _balance(self) -> None:
        if self._workers:
            from leasehold import _fake_shards

            _fake_shards.balance(self)

    def _read(self) -> Now:
        return Now(self._ns, 1_700_000_000_000 + self._ns // 1_000_000)

    def _random(self, count: int) -> bytes:
        """The same in each run."""
        self._drawn += 1
        return sha256(self._drawn.to_bytes(8, "big")).digest()[:count]

    def _until(self, end: int, is_over: Callable[[], bool]) -> None:
        """Moves from one due time to the next."""
        while True:
            self._settle()
            if is_over() or self._ns >= end:
                return
            due = [client.wake_at for client in self._clients if client.wake_at is not None]
            self._ns = max(self._ns + 1, min([end, *due]))

    def _settle(self) -> None:
        """Does everything that is due now."""
        while self._drive():
            # A callback may do everything that a test may do.
            while self._calls:
                call(*self._calls.popleft())

    def _drive(self) -> bool:
        """Does everything that is due now except callbacks. Returns True if there are any."""
        while any([client.drive() for client in self._clients]):
            pass
        return bool(self._calls)


def call(callback: Callable[..., object], *arguments: object) -> BaseException | None:
    """Calls a callback as the native half does. Returns what it has raised."""
    try:
        refuse_result(callback(*arguments), _callbacks.AWAITED)
        return None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if sys.unraisablehook is sys.__unraisablehook__:
            # The default hook accepts only arguments made by the interpreter.
            import traceback

            print(f"Exception ignored in: {callback!r}", file=sys.stderr)
            traceback.print_exception(type(error), error, error.__traceback__)
        else:
            kind, trace = type(error), error.__traceback__
            sys.unraisablehook(
                SimpleNamespace(exc_type=kind, exc_value=error, exc_traceback=trace, err_msg=None, object=callback)
            )
        return error
