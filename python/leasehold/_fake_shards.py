"""Shards of fake clients."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

from leasehold import _callbacks
from leasehold._errors import CallbackError, ConfigError, LeaseholdError, StoreUnavailableError
from leasehold._fake_clock import call
from leasehold._fake_lease import FakeLease, about
from leasehold._fakes import to_ns
from leasehold.protocol import Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from typing_extensions import Self

    from leasehold._fake_clock import FakeClock
    from leasehold._fake_process import Process
    from leasehold._types import LockOptions, Seconds

_DEFAULT = 16
_MOST = 64
_SHORTEST_LOOK = 0.1
# Between the failures of a callback.
_SHORTEST_REST = 1
_LONGEST_REST = 60


class FakeShard(FakeLease):
    """A shard that a worker holds; see :class:`leasehold.Shard`."""

    index = 0
    """The number of the shard, from 0."""


class FakeShards:
    """A worker's part in the shards of a name; see :class:`leasehold.Shards`. Workers look at each other whenever one joins or
    leaves, a shard ends, or the clock moves. The callbacks run there, one after the other.
    """

    _names: Mapping[str, str] = {"on_gain": "on_gain", "on_loss": "on_loss"}

    def __init__(
        self,
        process: Process,
        name: str,
        count: int | None,
        callbacks: dict[str, Callable[..., object] | None],
        look_every: Seconds | None,
        options: LockOptions,
    ) -> None:
        self.name = name
        """The name that the workers share."""
        self._error: LeaseholdError | None = None
        self._resting: dict[int, _Rest] = {}
        self._process = process
        self._count = check_count(name, count)
        if look_every is not None and to_ns(look_every) < to_ns(_SHORTEST_LOOK):
            raise about(ConfigError(f"{look_every!r} between two looks is too short: at least {_SHORTEST_LOOK} s"), name)
        for callback in callbacks.values():
            if callback is not None:
                _callbacks.check(callback)
        self._callbacks = callbacks
        # Rejects invalid options now, not in the middle of the work.
        self._options = replace(process.request("fake", **options)._options, wait=Wait.Once())
        self._shards: list[FakeShard] = []
        self._is_stopping = False
        clock = process.clock
        with clock._mutex:
            clock._workers.setdefault(self._key, []).append(self)
            balance(clock)

    @property
    def last_error(self) -> LeaseholdError | None:
        """The error of the last try to join or acquire, if it failed, or that of a callback."""
        return next((rest.error for rest in self._resting.values()), self._error)

    @property
    def held(self) -> list[FakeShard]:
        """The shards that are held now, in the order of their numbers."""
        return sorted((shard for shard in self._shards if not shard._is_over()), key=lambda shard: shard.index)

    @property
    def members(self) -> int:
        """The number of workers, this one among them; 0 while it stands by."""
        members = _members(self._process.clock._workers.get(self._key, ()))
        return len(members) if self in members else 0

    def stop(self) -> None:
        """Leaves: ``on_loss`` is called for each shard, which is then released. In a callback of these shards it only begins. If a
        callback raised and this worker has not got that shard since, its exception is raised here.
        """
        self._stop()
        failure = next((rest.error.__cause__ for rest in self._resting.values()), None)
        if failure is not None and not self._process.clock._is_balancing:
            raise failure

    def _stop(self) -> None:
        clock = self._process.clock
        with clock._mutex:
            self._is_stopping = True
            balance(clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop() if kind is None else self._stop()

    def __repr__(self) -> str:
        if self not in self._process.clock._workers.get(self._key, ()):
            return f"<FakeShards {self.name!r} over>"
        return f"<FakeShards {self.name!r} held={','.join(str(shard.index) for shard in self.held)}>"

    @property
    def _key(self) -> str:
        return self.name

    def _resource(self, index: int) -> str:
        return f"{self.name}#shard{index}"

    def _agrees(self) -> bool:
        """Compares the number of shards with that of the other clients."""
        recorded = self._process.clock._numbers.setdefault((self.name, "shards"), self._count)
        if recorded != self._count:
            message = f"shards is {self._count} here, and {recorded} in the store: all clients must name the same number"
            self._error = about(ConfigError(message), self.name)
        return recorded == self._count

    def _rests(self, index: int) -> bool:
        rest = self._resting.get(index)
        return rest is not None and self._process.clock._ns < rest.until_ns

    def _stands_by(self) -> bool:
        """Returns True while it works on no shard since the callbacks of its whole share have raised."""
        workers = self._process.clock._workers.get(self._key, ())
        share = -(-self._count // max(1, sum(not worker._is_stopping for worker in workers)))
        return not self._shards and sum(self._rests(index) for index in self._resting) >= share

    def _let_go(self, share: int) -> bool:
        """Lets go of one shard that is over, or beyond the share. Returns True if there was one."""
        released = (shard for shard in self._shards if shard._is_released)
        shard = next(released, self._shards[-1] if len(self._shards) > share else None)
        if shard is None:
            return False
        self._end(shard, None)
        return True

    def _seek(self, share: int) -> bool:
        """Acquires one shard that is free, up to the share. Returns True if there was one."""
        if len(self._shards) >= share or self._is_stopping:
            return False
        if not self._process.clock._store.is_up:
            self._error = about(StoreUnavailableError("the test has taken the store down"), self.name)
            return False
        for index in range(self._count):
            if self._rests(index):
                continue
            shard = self._process.attempt(self._resource(index), self._options, FakeShard)
            if isinstance(shard, FakeShard):
                self._error = None
                shard.index = index
                self._shards.append(shard)
                shard._callbacks.append(lambda error: self._lost(shard, error))
                rest = self._resting.get(index)
                if self._call("on_gain", shard):
                    if self._resting.get(index) is rest:
                        self._resting.pop(index, None)
                elif shard in self._shards:
                    self._end(shard, None)
                return True
        return False

    def _lost(self, shard: FakeShard, error: LeaseholdError) -> None:
        if shard in self._shards:
            self._end(shard, error)
            balance(self._process.clock)

    def _end(self, shard: FakeShard, error: LeaseholdError | None) -> None:
        self._shards.remove(shard)
        self._call("on_loss", shard, error)
        if not shard._is_over():
            # A store that is down lets it expire.
            with contextlib.suppress(LeaseholdError):
                shard.release()

    def _call(self, name: str, shard: FakeShard, *arguments: object) -> bool:
        """Returns False if it has raised: then the shard is left to others for a while."""
        callback = self._callbacks[name]
        failure = None if callback is None else call(callback, shard, *arguments)
        if failure is None:
            return True
        self._rest(shard.index, self._names[name], failure)
        return False

    def _rest(self, index: int, name: str, failure: BaseException) -> None:
        error = CallbackError(f"{name} has raised {_callbacks.text_of(failure)}")
        error.__cause__ = failure
        before = self._resting.get(index)
        pause_ns = to_ns(_SHORTEST_REST) if before is None else min(2 * before.pause_ns, to_ns(_LONGEST_REST))
        until_ns = self._process.clock._ns + pause_ns
        self._resting[index] = _Rest(pause_ns, until_ns, about(error, self._resource(index)))

    def _fail(self, index: int, name: str, failure: BaseException) -> None:
        """Lets go of a shard, since a callback has raised after it returned."""
        clock = self._process.clock
        with clock._mutex:
            self._rest(index, name, failure)
            for shard in [shard for shard in self._shards if shard.index == index]:
                self._end(shard, None)
            balance(clock)


@dataclass(frozen=True)
class _Rest:
    """The time for which a shard whose callback has raised is left to others."""

    pause_ns: int
    until_ns: int
    error: LeaseholdError


def check_count(name: str, count: int | None) -> int:
    count = _DEFAULT if count is None else count
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"a number of shards is an int, not {type(count).__name__}")
    if not 1 <= count <= _MOST:
        raise about(ConfigError(f"shards is {count}; it can be 1 to {_MOST}"), name)
    return count


def balance(clock: FakeClock) -> None:
    """Moves shards until each worker has its share, as far as they are free."""
    # A callback may join, stop, or end a shard: the loop sees it.
    if clock._is_balancing:
        return
    clock._is_balancing = True
    try:
        while any([_step(workers) for workers in list(clock._workers.values())]):
            pass
    finally:
        clock._is_balancing = False


def _members(workers: list[FakeShards] | tuple[FakeShards, ...]) -> list[FakeShards]:
    willing = [worker for worker in workers if not (worker._is_stopping or worker._stands_by()) and worker._agrees()]
    return willing[: willing[0]._count] if willing else []


def _step(workers: list[FakeShards]) -> bool:
    """One change, if there is any to make. Shares are those of the real client."""
    members = _members(workers)
    shares = {worker: -(-(worker._count - rank) // len(members)) for rank, worker in enumerate(members)}
    if any(worker._let_go(shares.get(worker, 0)) for worker in list(workers)):
        return True
    over = [worker for worker in workers if worker._is_stopping and not worker._shards]
    for worker in over:
        workers.remove(worker)
    return bool(over) or any(worker._seek(shares[worker]) for worker in members)
