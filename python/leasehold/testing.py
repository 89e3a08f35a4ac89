"""Locks for tests of your own code: no server, no sleeping, and a clock that the test moves.

>>> from leasehold import testing
>>> clock = testing.FakeClock()
>>> client, rival = testing.connect(clock), testing.connect(clock, owner="rival")
>>> lease = client.acquire("job", ttl=30)
>>> rival.try_acquire("job") is None              # busy
True
>>> clock.advance(1000)                           # it is renewed meanwhile
>>> client.lose("job")
>>> lease.lost.is_set()
True
>>> rival.acquire("job").token > lease.token
True

Runs as well, here one that ends without an answer of the store:

>>> with client.once("report", slot="monday") as run:
...     client.store_down()
Traceback (most recent call last):
    ...
leasehold.FinishUnconfirmedError: ...

A fake client has the interface of :class:`leasehold.Client`, without elections. It runs the real protocol with the clock of
the test, over the reference store. All clients of one clock share one store, each as a separate process. A wait
moves the clock, so ``acquire("job", wait=10)`` takes no real time, and each run of a test gives the same result.
Callbacks run in the call that moves the clock, after everything that is due has happened. Threads may share a clock, but a
waiting thread moves it for all of them, even if another thread is about to release. For tests of threads that
compete for locks, use ``memory:NAME``.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import deque
from copy import copy
from dataclasses import replace
from hashlib import sha256
from types import SimpleNamespace

from leasehold import _callbacks
from leasehold._client import Client
from leasehold._errors import (
    ClosedError,
    ConfigError,
    FinishUnconfirmedError,
    LeaseholdError,
    LeaseLostError,
    LockBusyError,
    LockTimeoutError,
    NotOwnedError,
    StoreRefusedError,
    StoreUnavailableError,
)
from leasehold._fake_runs import FakeRunRequest, forget_run, inspect_run
from leasehold._fakes import FakeInfo, FakeLeases, FakeReleaseIfOutcome, FakeRevokeOutcome, to_ns, to_wait
from leasehold._functions import refuse_result
from leasehold._native import TestStore, is_meant
from leasehold.protocol import (
    CommandRejectedError,
    Config,
    Event,
    Failure,
    Holding,
    LockOptions,
    LostReason,
    NodeConfig,
    Now,
    Output,
    Renewal,
    Wait,
)
from leasehold.protocol import Client as Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import NoReturn, TypeVar

    from typing_extensions import Self, Unpack

    from leasehold import _types
    from leasehold._fake_permits import FakeChanges, FakeComposed, FakePages
    from leasehold._runs import Mark, RunInfo
    from leasehold._types import AllOptions, AnyOptions, ParamStyle, Seconds

    E = TypeVar("E", bound=LeaseholdError)

__all__ = ["FakeClient", "FakeClock", "FakeInfo", "FakeLease", "FakePermit", "FakeRun", "connect"]

_PATIENCE = 2.0
"""The wait for a release, as in the real client."""
_ENDLESS = 3600.0
# A revoke writes it: no client sends it.
_LAST_SEQ = 2**32 - 1
"""The limit of a wait without a limit: nobody else moves the clock meanwhile."""


def connect(
    clock: FakeClock | None = None,
    *,
    owner: str = "fake",
    drift_ppm: int | None = None,
    request_timeout: Seconds | None = None,
) -> FakeClient:
    """A client of the clock's store. Without a clock, the client has its own, in ``client.clock``."""
    return FakeClient(clock or FakeClock(), owner, Config([NodeConfig()], drift_ppm, request_timeout))


class FakeClock:
    """Time that passes when a test says so, and the store that all of its clients share."""

    def __init__(self) -> None:
        self._ns = 1_000_000_000
        self._store = TestStore()
        self._clients: list[_Process] = []
        self._drawn = 0
        # All locks that were ever asked for, and the numbers of permits and readers.
        self._names: set[str] = set()
        self._numbers: dict[tuple[str, str], int] = {}
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
                _call(*self._calls.popleft())

    def _drive(self) -> bool:
        """Does everything that is due now except callbacks. Returns True if there are any."""
        while any([client.drive() for client in self._clients]):
            pass
        return bool(self._calls)


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

    def wait(self, wait: Seconds | None = None) -> bool:
        """Moves the clock until the lease is over, by at most ``wait`` seconds. Returns True if it was lost."""
        clock = self._lease._process.clock
        with clock._mutex:
            clock._until(clock._ns + to_ns(_ENDLESS if wait is None else wait), lambda: self._lease._is_over())
        return self.is_set()


class FakeLease:
    """A held lock; see :class:`leasehold.Lease`. It stays held until it is released or lost, even without references to it."""

    def __init__(self, process: _Process, lock: int, resource: str, owner: str, token: int) -> None:
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
        if (loss := self._loss()) is not None:
            raise loss
        if self._is_released:
            raise _about(NotOwnedError(f"the lease of {self.resource!r} was released"), self.resource)
        least, left = to_ns(min or 0) / 1e9, self.remaining()
        if left <= 0 or left < least:
            raise _about(LeaseLostError(f"{self.resource!r} has only {left:.3f} s left"), self.resource)

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
            _call(callback, loss)
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
            clock._until(clock._ns + to_ns(_PATIENCE), lambda: self._is_free or self._why is not None)
        if (loss := self._loss()) is not None:
            raise loss
        if not self._is_free:
            message = f"the store has not confirmed that {self.resource!r} is released"
            raise _about(StoreUnavailableError(message), self.resource)

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
            self._why = _about(why, self.resource)
            self._process.clock._calls.extend((callback, copy(why)) for callback in self._callbacks)
            self._callbacks.clear()


class FakePermit(FakeLease):
    """A held permit of a semaphore; see :class:`leasehold.Permit`."""

    index = 0
    """The number of the permit, from 0."""


class FakeRun(FakeLease):
    """A lease under which work is done that is done once; see :class:`leasehold.Run`."""

    def finish(self) -> None:
        """Writes the mark that the work is done, and releases the lock. Raises the errors of
        :meth:`leasehold.Run.finish`; a store that is down makes it FinishUnconfirmedError, once the clock has reached the
        end of the lease.
        """
        clock = self._process.clock
        with clock._mutex:
            self.check()
            end = clock._ns + to_ns(self.remaining() + _PATIENCE)
            self._is_released = True
            self._callbacks.clear()
            self._process.machine.finish(self._lock, clock._read())
            clock._until(end, lambda: self._is_free or self._why is not None)
        if (loss := self._loss()) is not None:
            raise loss
        if self._is_unconfirmed or not self._is_free:
            message = f"the work of {self.resource!r} was done, and the store has not confirmed that its mark stands"
            raise _about(FinishUnconfirmedError(message), self.resource)

    def mark_in(self, *, paramstyle: ParamStyle = "numeric_dollar") -> NoReturn:
        """Raises ConfigError, as every store but PostgreSQL: there is no database for the mark."""
        raise _about(ConfigError(f"a fake store has no transactions ({paramstyle})"), self.resource)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            super().__exit__(kind, error, traceback)
        elif self._why is not None or not self._is_released:
            self.finish()


class FakeClient(Client):
    """A client without a server; made by :func:`connect`."""

    def __init__(self, clock: FakeClock, owner: str, config: Config) -> None:
        self._process = _Process(clock, owner, config)
        super().__init__(self._process)  # type: ignore[arg-type]

    @property
    def clock(self) -> FakeClock:
        """The clock of this client."""
        return self._process.clock

    def lose(self, name: str) -> None:
        """Makes this client lose the lock, as if it had not been renewed for too long: the lease is over now, and the lock
        is free for others. Raises NotOwnedError unless this client holds it.
        """
        self._process.lose(name)

    def store_down(self) -> None:
        """From now on no request of any client of this clock reaches the store. Leases last until they expire."""
        with self.clock._mutex:
            self.clock._store.is_up = False

    def store_up(self) -> None:
        """Requests reach the store again; its records are still there."""
        with self.clock._mutex:
            self.clock._store.is_up = True


class _Process:
    """One state machine of the protocol with its locks; :class:`leasehold.Client` uses it as its native client."""

    def __init__(self, clock: FakeClock, owner: str, config: Config) -> None:
        self.clock = clock
        self.wake_at: int | None = None
        self._owner = owner
        self._locks = 0
        self._failed: dict[int, Failure.Case] = {}
        self._pending: dict[int, tuple[str, LockOptions, type[FakeLease]]] = {}
        self._leases: dict[int, FakeLease] = {}
        # A callback may end a lease before its owner has it.
        self._granted: dict[int, FakeLease] = {}
        self._is_closed = False
        with clock._mutex:
            self.machine = Machine.create(config, clock._random(32), clock._read())
            clock._clients.append(self)

    @property
    def stores(self) -> list[str]:
        return ["fake:"]

    def drive(self) -> bool:
        """Does what is due. Returns True if anything has happened."""
        clock = self.clock
        stepped = clock._store.drive(self.machine._native, clock._random(16), clock._read())
        self.wake_at = stepped.wake_at_ns
        for output in stepped.outputs:
            if isinstance(output, Output.Event):
                self._happened(output.lock, output.event)
        return bool(stepped.outputs)

    def _happened(self, lock: int, event: Event.Case) -> None:
        match event:
            case Event.Acquired(token=token):
                resource, options, kind = self._pending.pop(lock)
                kind = kind if options.run is None else FakeRun
                self._leases[lock] = self._granted[lock] = kind(self, lock, resource, options.owner or "", token)
            case Event.Failed(failure):
                del self._pending[lock]
                self._failed[lock] = failure
            case Event.Lost(reason):
                lease = self._leases.pop(lock)
                error = LeaseLostError(f"the lease of {lease.resource!r} is over: {type(reason).__name__}")
                error.reason = "".join(f"_{c.lower()}" if c.isupper() else c for c in type(reason).__name__)[1:]
                lease._end(error)
            case Event.Released():
                self._leases.pop(lock)._is_free = True
            case Event.Finished(confirmed):
                run = self._leases.pop(lock)
                run._is_free, run._is_unconfirmed = True, not confirmed
            case _:
                pass

    def request(self, name: str, **options: Unpack[_types.LockOptions]) -> _Request:
        return _Request(self, name, options)

    def run_request(self, name: str, **options: Unpack[_types.OnceOptions]) -> FakeRunRequest:
        return FakeRunRequest(self, name, options)

    def composed(
        self, kind: _types.Kind, names: list[str], count: int | None = None, **options: Unpack[AnyOptions]
    ) -> FakeComposed:
        from leasehold._fake_permits import FakeComposed

        return FakeComposed(self, kind, names, count, options)  # type: ignore[arg-type]

    def set_permits(self, name: str, permits: int) -> None:
        from leasehold._fake_permits import set_number

        with self.clock._mutex:
            set_number(self, name, "permit", permits)

    def set_readers(self, name: str, readers: int) -> None:
        from leasehold._fake_permits import set_number

        with self.clock._mutex:
            set_number(self, name, "read", readers)

    def pages(self, prefix: str) -> FakePages:
        from leasehold._fake_permits import FakePages

        return FakePages(self, prefix)

    def changes(self, name: str, every: Seconds | None = None) -> FakeChanges:
        from leasehold._fake_permits import FakeChanges

        return FakeChanges(self, name, every)

    def acquire(self, name: str, options: LockOptions, kind: type[FakeLease] | None = None) -> FakeLease:
        answer = self.attempt(name, options, kind)
        if isinstance(answer, FakeLease):
            return answer
        raise self.error(name, answer)

    def attempt(self, name: str, options: LockOptions, kind: type[FakeLease] | None = None) -> FakeLease | Failure.Case:
        with self.clock._mutex:
            self._refuse_deadlock(name, options)
            return self.first([name], options, kind)[1]

    def first(
        self, names: list[str], options: LockOptions, kind: type[FakeLease] | None = None
    ) -> tuple[int, FakeLease | Failure.Case]:
        """The first of these locks that is granted, and its position, or else the last failure."""
        clock, locks = self.clock, [self._begin(name, options, kind or FakeLease) for name in names]
        patience = to_ns(options.wait.wait) + to_ns(_ENDLESS) if isinstance(options.wait, Wait.For) else to_ns(_ENDLESS)
        try:
            clock._until(
                clock._ns + patience,
                lambda: any(lock in self._granted for lock in locks) or not any(lock in self._pending for lock in locks),
            )
        except BaseException:
            # A callback of another lease, or Ctrl-C.
            for lock in locks:
                self._give_up(lock)
            raise
        granted = next((at for at, lock in enumerate(locks) if lock in self._granted), None)
        is_pending = any(lock in self._pending for lock in locks)
        answer = None if granted is None else self._granted.pop(locks[granted])
        failures = [(at, self._failed.pop(lock)) for at, lock in enumerate(locks) if lock in self._failed]
        for lock in locks:
            if answer is None or lock != answer._lock:
                self._give_up(lock)
        if granted is not None and answer is not None:
            return granted, answer
        if is_pending:
            message = f"{names[0]!r} stayed locked for an hour of the fake clock: set wait=, or this test never ends"
            raise RuntimeError(message)
        return failures[-1]

    def _begin(self, name: str, options: LockOptions, kind: type[FakeLease]) -> int:
        if self._is_closed:
            raise _about(ClosedError("the client was closed"), name)
        self._locks += 1
        self.machine.acquire(self._locks, name, options, self.clock._random(16), self.clock._read())
        self._pending[self._locks] = (name, options, kind)
        self.clock._names.add(name)
        return self._locks

    def is_held_here(self, name: str) -> bool:
        """True if this thread holds the lock."""
        me = threading.get_ident()
        return any(lease.resource == name and lease._thread == me and not lease._is_over() for lease in self._leases.values())

    def let_go(self, lease: FakeLease) -> None:
        """Releases a lease that counts as lost, unless it is."""
        lease._is_released = True
        if lease._lock in self._leases:
            self.machine.release(lease._lock, self.clock._read())
            self.clock._settle()

    def _refuse_deadlock(self, name: str, options: LockOptions) -> None:
        if not isinstance(options.wait, Wait.Forever):
            return
        if self.is_held_here(name):
            message = f"{name!r}: this thread holds the lock, and would wait for itself forever: locks are not reentrant"
            raise _about(ConfigError(message), name)

    def _give_up(self, lock: int) -> None:
        granted = self._granted.pop(lock, None)
        if lock in self._pending or granted is not None:
            self.machine.release(lock, self.clock._read())
            self.drive()
        self._failed.pop(lock, None)

    def error(self, name: str, failure: Failure.Case) -> LeaseholdError:
        error: LeaseholdError
        match failure:
            case Failure.Busy(holding):
                error = LockBusyError(f"{name!r} is held by {_owner(holding)}")
            case Failure.TimedOut(holding):
                error = LockTimeoutError(f"{name!r} was held by {_owner(holding)} for the whole wait")
            case Failure.Refused(detail=detail):
                error = StoreRefusedError(f"{name!r}: {detail}")
            case Failure.Throttled(detail=detail) | Failure.Unavailable(detail=detail):
                error = StoreUnavailableError(f"{name!r}: {detail}")
            case other:
                error = StoreUnavailableError(f"{name!r}: {other}")
        if isinstance(failure, (Failure.Busy, Failure.TimedOut)) and failure.holding is not None:
            error.holder = _info(name, failure.holding)  # type: ignore[assignment]
        return _about(error, name)

    def acquire_all(self, names: list[str], **given: Unpack[AllOptions]) -> FakeLeases:
        leases: list[FakeLease] = []
        options: _types.LockOptions = {**given}  # type: ignore[typeddict-item]
        wait = options.get("wait")
        end = None if wait is None else self.clock._ns + to_ns(wait)
        try:
            for name in sorted(set(names)):
                if end is not None:
                    options["wait"] = max(0, end - self.clock._ns) / 1e9
                leases.append(self.request(name, **options).acquire())
        except BaseException:
            FakeLeases(leases).__exit__(BaseException, None, None)
            raise
        return FakeLeases(leases)

    def inspect(self, name: str) -> FakeInfo | None:
        clock = self.clock
        with clock._mutex:
            if not clock._store.is_up:
                raise _about(StoreUnavailableError(f"{name!r}: the test has taken the store down"), name)
            holding = clock._store.holder(name, clock._read())
        return None if holding is None else _info(name, holding)

    def inspect_run(self, name: str, slot: str | None = None) -> RunInfo:
        with self.clock._mutex:
            return inspect_run(self, name, slot)

    def forget_run(self, name: str, slot: str | None = None) -> Mark | None:
        with self.clock._mutex:
            return forget_run(self, name, slot)

    def release_if(self, name: str, *, token: int | None, owner: str | None) -> FakeReleaseIfOutcome:
        with self.clock._mutex:
            holder = self.inspect(name)
            has_token, has_owner = (None, None) if holder is None else (holder.token, holder.owner)
            released = is_meant(token, owner, has_token, has_owner) and holder is not None
            if released:
                self.clock._store.free(name)
            return FakeReleaseIfOutcome(released, holder)

    def revoke(self, name: str, token: int, *, owner: str | None) -> FakeRevokeOutcome:
        clock = self.clock
        with clock._mutex:
            holder = self.inspect(name)
            has_token, has_owner = (None, None) if holder is None else (holder.token, holder.owner)
            revoked = is_meant(token, owner, has_token, has_owner) and holder is not None
            if revoked:
                clock._store.revoke(name, clock._read())
                holder = self.inspect(name)
            return FakeRevokeOutcome(revoked, holder)

    def elect(self, name: str, **_: object) -> NoReturn:
        raise ConfigError(f"a fake client has no elections: acquire {name!r} instead")

    def release_revoked(self, lock: int) -> None:
        with contextlib.suppress(CommandRejectedError):
            self.machine.release(lock, self.clock._read())
        self.clock._settle()

    def lose(self, name: str) -> None:
        clock = self.clock
        with clock._mutex:
            held = [lease for lease in self._leases.values() if lease.resource == name and not lease._is_over()]
            if not held:
                raise _about(NotOwnedError(f"this client does not hold {name!r}"), name)
            clock._store.free(name)
            for lease in held:
                self.machine.declare_lost(lease._lock, clock._read())
            clock._settle()

    def close(self) -> None:
        clock = self.clock
        with clock._mutex:
            self._is_closed = True
            for lease in self._leases.values():
                if not lease._is_over():
                    message = f"{lease.resource!r}: the client was closed, and the lease released with it"
                    lease._end(NotOwnedError(message))
            self.machine.close(clock._read())
            clock._until(clock._ns + to_ns(_PATIENCE), self.machine.is_idle)
            if not self.machine.is_idle():
                raise StoreUnavailableError("the store has not confirmed that everything is released")


class _Request:
    """The options of an acquisition, checked before it starts."""

    def __init__(self, process: _Process, name: str, options: _types.LockOptions) -> None:
        given = {**options}
        wait, renew, every = given.pop("wait", None), given.pop("renew", True), given.pop("renew_every", None)
        # The reference store keeps no line of waiters.
        given.pop("fair", None)
        if renew is False and every is not None:
            raise ConfigError("renew=False and renew_every contradict each other: leave one out")
        self._process = process
        self._name = name
        given["owner"] = given.get("owner") or process._owner
        given["wait"] = to_wait(wait)
        if renew is False:
            given["renewal"] = Renewal.Off()
        elif every is not None:
            given["renewal"] = Renewal.Every(every)  # type: ignore[arg-type]
        self._options = LockOptions(**given)  # type: ignore[arg-type]
        # Rejects invalid options now, not in the middle of the work.
        start = Now(0, 0)
        Machine.create(Config([NodeConfig()]), bytes(32), start).acquire(0, name, self._options, bytes(16), start)

    def acquire(self) -> FakeLease:
        return self._process.acquire(self._name, self._options)

    def try_acquire(self) -> FakeLease | None:
        try:
            return self._process.acquire(self._name, replace(self._options, wait=Wait.Once()))
        except LockBusyError:
            return None


def _call(callback: Callable[[LeaseholdError], object], loss: LeaseholdError) -> None:
    """Calls a callback as the native half does."""
    try:
        refuse_result(callback(loss), _callbacks.AWAITED)
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


def _about(error: E, resource: str) -> E:
    error.resource = resource
    return error


def _owner(holding: Holding | None) -> str:
    return (holding and holding.owner) or "somebody else"


def _info(name: str, holding: Holding) -> FakeInfo:
    def seconds(ms: int | None) -> float | None:
        return None if ms is None else ms / 1e3

    since, ttl, left = seconds(holding.since_unix_ms), seconds(holding.record_ttl_ms), seconds(holding.left_ms)
    revoked = holding.holder is not None and holding.holder.seq == _LAST_SEQ
    return FakeInfo(name, holding.owner, holding.counter, since, ttl, left, holding.data, revoked=revoked)
