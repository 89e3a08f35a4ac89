"""Lists, watches, permits, readers and writers of fake clients."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from leasehold._errors import ClosedError, ConfigError, LeaseholdError, LeaseLostError, LockBusyError, StoreUnavailableError
from leasehold._fake_clock import ENDLESS
from leasehold._fake_lease import FakeLease, FakePermit, about
from leasehold._fakes import checker, to_ns
from leasehold._watch import Change
from leasehold.protocol import Failure, Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from leasehold._fake_process import Process
    from leasehold._fakes import FakeInfo
    from leasehold._types import AnyOptions, Kind, Seconds
    from leasehold.protocol import LockOptions as Settings

TURNS = 20
"""Turns of an event loop in which tasks that are ready may run, before a wait moves the clock."""

_MOST = 64
_READERS = 16
_WORDS: dict[Kind, str] = {"permit": "permits", "read": "readers", "write": "readers"}


class FakeComposed:
    """A request for what is made of locks."""

    def __init__(self, process: Process, kind: Kind, names: list[str], count: int | None, options: AnyOptions) -> None:
        self._process = process
        self._kind = kind
        self._names = names
        self._count = _READERS if count is None else count
        # Rejects invalid options now, not in the middle of the work.
        checker().composed(kind, names, count, **options)
        try:
            self._options = process.request("fake", **options)._options
        except ConfigError:
            once = options.copy()
            once["wait"] = 0
            checker().composed(kind, names, count, **once).acquire().release()
            raise

    def acquire(self) -> FakeLease:
        with self._process.clock._mutex:
            return self._acquire(self._options)

    def try_acquire(self) -> FakeLease | None:
        try:
            with self._process.clock._mutex:
                return self._acquire(replace(self._options, wait=Wait.Once()))
        except LockBusyError:
            return None

    def _acquire(self, options: Settings) -> FakeLease:
        process, until = self._process, _Until(self._process, options)
        if self._kind == "any":
            if not 1 <= len(self._names) <= _MOST:
                message = f"one of {len(self._names)} locks cannot be acquired: name at least one, and at most {_MOST}"
                raise ConfigError(message)
            return _first(process, self._names, until)[1]
        name = self._names[0]
        resources = locks(name, self._kind, self._count)
        if self._kind == "permit":
            at, permit = _first(process, resources, until, FakePermit)
            assert isinstance(permit, FakePermit)
            permit.index = at
            self._agree(name, [permit])
            return permit
        gate = process.acquire(f"{name}#gate", until.left(), FakeLease if self._kind == "read" else FakeWrite)
        taken = [gate]
        try:
            if self._kind == "read":
                taken.append(_first(process, resources, until)[1])
            else:
                self._refuse_upgrade(resources, options)
                taken += [process.acquire(resource, until.left()) for resource in resources]
        except BaseException:
            _give_back(taken)
            raise
        self._agree(name, taken)
        if isinstance(gate, FakeWrite):
            gate._join(taken[1:])
            return gate
        taken[1].token = gate.token
        gate.release()
        return taken[1]

    def _agree(self, name: str, taken: list[FakeLease]) -> None:
        """Compares the number with that of the other clients, and releases what was taken where they differ."""
        word = _WORDS[self._kind]
        recorded = self._process.clock._numbers.setdefault((name, word), self._count)
        if recorded != self._count:
            _give_back(taken)
            message = (
                f"{word} is {self._count} here, and {recorded} in the store: all clients must name the same number; "
                "`leasehold permits set` changes it while nobody holds any"
            )
            raise about(ConfigError(message), name)

    def _refuse_upgrade(self, resources: list[str], options: Settings) -> None:
        if isinstance(options.wait, Wait.Forever) and any(self._process.is_held_here(name) for name in resources):
            message = "a reader cannot become a writer, since it would wait for itself forever: release the read lock first"
            raise about(ConfigError(message), self._names[0])


class FakeWrite(FakeLease):
    """The lease of a writer: that of the gate, valid only while all other locks are held as well."""

    _others: tuple[FakeLease, ...] = ()

    def _join(self, others: list[FakeLease]) -> None:
        self._others = tuple(others)
        for other in others:
            other._callbacks.append(self._end)

    def remaining(self) -> float:
        return min([super().remaining(), *(other.remaining() for other in self._others)])

    def release(self) -> None:
        with self._process.clock._mutex:
            loss = self._loss()
            others, self._others = self._others, ()
            try:
                if loss is None:
                    super().release()
                else:
                    self._process.let_go(self)
                    raise loss
            finally:
                _give_back(list(others))


class _Until:
    """The end of a wait for several locks."""

    def __init__(self, process: Process, options: Settings) -> None:
        self._clock = process.clock
        self._options = options
        wait = options.wait
        self._end = self._clock._ns + to_ns(wait.wait) if isinstance(wait, Wait.For) else None
        self.is_once = isinstance(wait, Wait.Once)

    def left(self) -> Settings:
        """The settings, with what is left of the wait."""
        if self._end is None:
            return self._options
        return replace(self._options, wait=Wait.For(max(1, self._end - self._clock._ns) / 1e9))

    def once(self) -> Settings:
        return replace(self._options, wait=Wait.Once())


def _first(
    process: Process, names: list[str], until: _Until, kind: type[FakeLease] = FakeLease
) -> tuple[int, FakeLease]:
    """One of the locks, and its position: tried one by one from a random one on, and then all at the same time."""
    start = process.clock._random(1)[0] % len(names)
    failures: list[tuple[str, Failure.Case]] = []
    for at in (*range(start, len(names)), *range(start)):
        answer = process.attempt(names[at], until.once(), kind)
        if isinstance(answer, FakeLease):
            return at, answer
        failures.append((names[at], answer))
    if not until.is_once and not any(isinstance(failure, Failure.Refused) for _, failure in failures):
        at, answer = process.first(names, until.left(), kind)
        if isinstance(answer, FakeLease):
            return at, answer
        failures = [(names[at], answer)]
    # A lock that could not be asked for may be free.
    failures.sort(key=lambda failed: isinstance(failed[1], (Failure.Busy, Failure.TimedOut)))
    raise process.error(*failures[0])


def locks(name: str, kind: Kind, count: int) -> list[str]:
    """The locks of which each holder has one."""
    if not 1 <= count <= _MOST:
        raise about(ConfigError(f"{_WORDS[kind]} is {count}; it can be 1 to {_MOST}"), name)
    before = "#" if kind == "permit" else "#reader"
    return [f"{name}{before}{at}" for at in range(count)]


def set_number(process: Process, name: str, kind: Kind, count: int) -> None:
    """Changes a number, while nobody holds any of the locks."""
    word = _WORDS[kind]
    before = process.clock._numbers.get((name, word), count)
    gate = [] if kind == "permit" else [f"{name}#gate"]
    locks(name, kind, count)
    for resource in [*locks(name, kind, max(count, before)), *gate]:
        holder = process.inspect(resource)
        if holder is not None:
            raise about(LockBusyError(f"busy: {holder}"), resource)
    process.clock._numbers[name, word] = count


def _give_back(taken: list[FakeLease]) -> None:
    for lease in reversed(taken):
        with contextlib.suppress(LeaseholdError):
            lease.release()


class FakePages:
    """The held locks, on one page."""

    def __init__(self, process: Process, prefix: str) -> None:
        self._process = process
        self._prefix = prefix
        self._is_over = False

    async def begin_next(self) -> list[FakeInfo] | None:
        return self.next()

    def next(self) -> list[FakeInfo] | None:
        if self._is_over:
            return None
        # Rejects a prefix that no name can have.
        checker().pages(self._prefix).next()
        names = sorted(name for name in self._process.clock._names if name.startswith(self._prefix))
        seen = [self._process.inspect(name) for name in names]
        self._is_over = True
        return [info for info in seen if info is not None]


class FakeChanges:
    """The changes of a lock. The clock moves to the next one."""

    def __init__(self, process: Process, name: str, every: Seconds | None) -> None:
        self._process = process
        self._name = name
        self._every = to_ns(1 if every is None else every)
        self._told: object = None

    def next(self) -> Change:
        clock = self._process.clock
        for _ in self._readings():
            with clock._mutex:
                if (change := self._changed()) is not None:
                    return change
        raise RuntimeError(f"nobody took or released {self._name!r} within an hour of the fake clock")

    async def begin_next(self) -> Change:
        import asyncio

        for _ in self._readings():
            if (change := self._changed()) is not None:
                return change
            for _ in range(TURNS):
                await asyncio.sleep(0)
        raise RuntimeError(f"nobody took or released {self._name!r} within an hour of the fake clock")

    def _readings(self) -> Iterator[None]:
        if self._every < to_ns(0.1):
            raise about(ConfigError(f"{self._every // 10**6} ms between two readings is too short; the shortest is 100 ms"), self._name)
        self._process.request(self._name)
        clock = self._process.clock
        end = clock._ns + to_ns(ENDLESS)
        while clock._ns < end:
            yield

    def _changed(self) -> Change | None:
        clock = self._process.clock
        if self._told is not None:
            clock._until(clock._ns + self._every, lambda: False)
        if self._process._is_closed:
            raise about(ClosedError("the client was closed"), self._name)
        change = self._read()
        told = (change.kind, change.holder and change.holder.token)
        if told == self._told:
            return None
        self._told = told
        return change

    def _read(self) -> Change:
        try:
            holder = self._process.inspect(self._name)
        except StoreUnavailableError as error:
            return Change("unreadable", error=error)
        return Change("free") if holder is None else Change("held", holder)  # type: ignore[arg-type]

