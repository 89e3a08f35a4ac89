"""The client of the protocol below a fake client."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import replace

from leasehold._errors import (
    ClosedError,
    ConfigError,
    LeaseholdError,
    LeaseLostError,
    LockBusyError,
    LockTimeoutError,
    NotOwnedError,
    StoreRefusedError,
    StoreUnavailableError,
)
from leasehold._fake_clock import ENDLESS
from leasehold._fake_election import FakeElection
from leasehold._fake_lease import PATIENCE, FakeLease, FakeRun, about
from leasehold._fake_permits import FakeChanges, FakeComposed, FakePages, set_number
from leasehold._fake_runs import FakeRunRequest, forget_run, inspect_run
from leasehold._fake_shards import FakeShards, check_count
from leasehold._fakes import FakeInfo, FakeLeases, FakeReleaseIfOutcome, FakeRevokeOutcome, checker, to_ns, to_wait
from leasehold._native import is_meant
from leasehold.protocol import Client as Machine
from leasehold.protocol import (
    CommandRejectedError,
    Config,
    Event,
    Failure,
    Holding,
    LockOptions,
    NodeConfig,
    Now,
    Output,
    Renewal,
    Wait,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing_extensions import Unpack

    from leasehold import _types
    from leasehold._fake_clock import FakeClock
    from leasehold._native import SessionInfo
    from leasehold._runs import Completion, RunInfo
    from leasehold._types import AllOptions, AnyOptions, Seconds

# The sentences of the real client.
_CLOSED = "the client is closed: connect again"
_ANOTHER = "since another worker may have the lock"
_REASONS = {
    "expired": "no renewal was confirmed in time",
    "max_hold": "max_hold has passed",
    "taken_over": "somebody else holds the lock now",
    "released": "somebody broke the lock",
    "record_gone": "the store has lost the record",
    "revoked": "somebody revoked it",
}
_LAST_SEQ = 2**32 - 1
"""The number of a send that a revoke writes: no client sends it."""


class Process:
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
                name = "".join(f"_{c.lower()}" if c.isupper() else c for c in type(reason).__name__)[1:]
                must = "the work it protected must stop"
                advice = f"{must}; the lock is released once it has ended" if name == "revoked" else f"{must}, {_ANOTHER}"
                error = LeaseLostError(f"the lease is lost: {_REASONS[name]}; {advice}")
                error.reason = name
                lease._end(error)
            case Event.Released():
                self._leases.pop(lock)._is_free = True
            case Event.Finished(confirmed):
                run = self._leases.pop(lock)
                run._is_free, run._is_unconfirmed = True, not confirmed
            case _:
                pass

    def request(self, name: str, **options: Unpack[_types.LockOptions]) -> Request:
        return Request(self, name, options)

    def run_request(self, name: str, **options: Unpack[_types.OnceOptions]) -> FakeRunRequest:
        return FakeRunRequest(self, name, options)

    def composed(
        self, kind: _types.Kind, names: list[str], count: int | None = None, **options: Unpack[AnyOptions]
    ) -> FakeComposed:
        return FakeComposed(self, kind, names, count, options)

    def set_permits(self, name: str, permits: int) -> None:
        with self.clock._mutex:
            set_number(self, name, "permit", permits)

    def set_readers(self, name: str, readers: int) -> None:
        with self.clock._mutex:
            set_number(self, name, "read", readers)

    def shards(
        self,
        name: str,
        count: int | None = None,
        *,
        on_gain: Callable[..., object] | None = None,
        on_loss: Callable[..., object] | None = None,
        ttl: Seconds | None = None,
        owner: str | None = None,
        look_every: Seconds | None = None,
    ) -> FakeShards:
        if self._is_closed:
            raise about(ClosedError(_CLOSED), name)
        options: _types.LockOptions = {"owner": owner} if ttl is None else {"owner": owner, "ttl": ttl}
        return FakeShards(self, name, count, {"on_gain": on_gain, "on_loss": on_loss}, look_every, options)

    def set_shards(self, name: str, count: int) -> None:
        clock = self.clock
        with clock._mutex:
            check_count(name, count)
            if clock._workers.get(name):
                raise about(LockBusyError("a worker runs"), name)
            clock._numbers[name, "shards"] = count

    def pages(self, prefix: str) -> FakePages:
        return FakePages(self, prefix)

    def changes(self, name: str, every: Seconds | None = None) -> FakeChanges:
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
        patience = to_ns(options.wait.wait) + to_ns(ENDLESS) if isinstance(options.wait, Wait.For) else to_ns(ENDLESS)
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
            raise about(ClosedError(_CLOSED), name)
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
            message = (
                "this thread already holds the lock, so it would wait for itself forever: locks are not reentrant. "
                "Release it first; if another thread will release it, set a wait"
            )
            raise about(ConfigError(message), name)

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
                error = LockBusyError(f"busy: {_shown(name, holding)}")
            case Failure.TimedOut(holding):
                error = LockTimeoutError(f"not free within the wait: {_shown(name, holding)}")
            case Failure.Refused(detail=detail):
                error = StoreRefusedError(f"the store refuses: {detail}")
            case Failure.Throttled(detail=detail):
                error = StoreUnavailableError(f"the store is throttling requests ({detail})")
            case Failure.Unavailable(detail=detail):
                error = StoreUnavailableError(f"the store cannot be used now ({detail})")
            case other:
                error = StoreUnavailableError(str(other))
        if isinstance(failure, (Failure.Busy, Failure.TimedOut)) and failure.holding is not None:
            error.holder = _info(name, failure.holding)  # type: ignore[assignment]
        return about(error, name)

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
        checker().inspect(name)
        clock = self.clock
        with clock._mutex:
            if not clock._store.is_up:
                raise about(StoreUnavailableError("the test has taken the store down"), name)
            holding = clock._store.holder(name, clock._read())
        return None if holding is None else _info(name, holding)

    def inspect_run(self, name: str, key: str | None = None) -> RunInfo:
        with self.clock._mutex:
            return inspect_run(self, name, key)

    def forget_run(self, name: str, key: str | None = None) -> Completion | None:
        with self.clock._mutex:
            return forget_run(self, name, key)

    def release_if(self, name: str, token: int | None, owner: str | None) -> FakeReleaseIfOutcome:
        checker().release_if(name, token=token, owner=owner)
        with self.clock._mutex:
            holder = self.inspect(name)
            has_token, has_owner = (None, None) if holder is None else (holder.token, holder.owner)
            released = is_meant(token, owner, has_token, has_owner) and holder is not None
            if released:
                self.clock._store.free(name)
            return FakeReleaseIfOutcome(released, holder)

    def revoke(self, name: str, token: int, owner: str | None) -> FakeRevokeOutcome:
        checker().revoke(name, token, owner=owner)
        clock = self.clock
        with clock._mutex:
            holder = self.inspect(name)
            has_token, has_owner = (None, None) if holder is None else (holder.token, holder.owner)
            revoked = is_meant(token, owner, has_token, has_owner) and holder is not None
            if revoked:
                clock._store.revoke(name, clock._read())
                holder = self.inspect(name)
            return FakeRevokeOutcome(revoked, holder)

    def sessions(self) -> list[SessionInfo]:
        return []  # Fake clients are given no names.

    def revoke_session(self, label: str) -> list[SessionInfo]:
        if not label:
            raise ConfigError("the name of the session is empty")
        return self.sessions()

    def elect(
        self,
        name: str,
        *,
        ttl: Seconds | None = None,
        owner: str | None = None,
        on_start: Callable[..., object] | None = None,
        on_stop: Callable[..., object] | None = None,
    ) -> FakeElection:
        if self._is_closed:
            raise about(ClosedError(_CLOSED), name)
        return FakeElection(self, name, ttl=ttl, owner=owner, on_start=on_start, on_stop=on_stop)

    def release_revoked(self, lock: int) -> None:
        with contextlib.suppress(CommandRejectedError):
            self.machine.release(lock, self.clock._read())
        self.clock._settle()

    def lose(self, name: str) -> None:
        clock = self.clock
        with clock._mutex:
            held = [lease for lease in self._leases.values() if lease.resource == name and not lease._is_over()]
            if not held:
                raise about(NotOwnedError("this client does not hold it"), name)
            clock._store.free(name)
            for lease in held:
                self.machine.declare_lost(lease._lock, clock._read())
            clock._settle()

    def close(self) -> None:
        clock = self.clock
        with clock._mutex:
            for worker in [worker for workers in clock._workers.values() for worker in workers]:
                if worker._process is self:
                    worker.stop()
            self._is_closed = True
            for lease in self._leases.values():
                if not lease._is_over():
                    message = "the client was closed, and the lease released with it; the work it protected must stop"
                    lease._end(NotOwnedError(message))
            self.machine.close(clock._read())
            clock._until(clock._ns + to_ns(PATIENCE), self.machine.is_idle)
            if not self.machine.is_idle():
                raise StoreUnavailableError("the store has not confirmed that everything is released")


class Request:
    """The options of an acquisition, checked before it starts."""

    def __init__(self, process: Process, name: str, options: _types.LockOptions) -> None:
        # Rejects what cannot be now, not in the middle of the work.
        checker().request(name, **options)
        given = {**options}
        wait, renew, every = given.pop("wait", None), given.pop("renew", True), given.pop("renew_every", None)
        # The reference store keeps no queue of waiters, and expires records itself.
        given.pop("fair", None)
        given.pop("watch_holder", None)
        self._process = process
        self._name = name
        given["owner"] = given.get("owner") or process._owner
        given["wait"] = to_wait(wait)
        if renew is False:
            given["renewal"] = Renewal.Off()
        elif every is not None:
            given["renewal"] = Renewal.Every(every)  # type: ignore[arg-type]
        self._options = LockOptions(**given)  # type: ignore[arg-type]
        start = Now(0, 0)
        try:
            Machine.create(Config([NodeConfig()]), bytes(32), start).acquire(0, name, self._options, bytes(16), start)
        except ConfigError:
            # The real client refuses it too, in its own words.
            again: _types.LockOptions = {**options, "wait": 0}
            checker().request(name, **again).acquire().release()
            raise

    def acquire(self) -> FakeLease:
        return self._process.acquire(self._name, self._options)

    def try_acquire(self) -> FakeLease | None:
        try:
            return self._process.acquire(self._name, replace(self._options, wait=Wait.Once()))
        except LockBusyError:
            return None


def _shown(name: str, holding: Holding | None) -> str:
    return "held by another client" if holding is None else str(_info(name, holding))


def _info(name: str, holding: Holding) -> FakeInfo:
    def seconds(ms: int | None) -> float | None:
        return None if ms is None else ms / 1e3

    since, ttl, left = seconds(holding.since_unix_ms), seconds(holding.record_ttl_ms), seconds(holding.left_ms)
    revoked = holding.holder is not None and holding.holder.seq == _LAST_SEQ
    return FakeInfo(name, holding.owner, holding.counter, since, ttl, left, holding.data, revoked=revoked)
