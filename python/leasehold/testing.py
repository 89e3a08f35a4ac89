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
>>> theirs = rival.acquire("job")
>>> theirs.token > lease.token
True

Runs as well, here one that ends without an answer of the store:

>>> with client.once("report", key="monday") as run:
...     client.store_down()
Traceback (most recent call last):
    ...
leasehold.FinishUnconfirmedError: ...

A fake client is a real :class:`leasehold.Client`, whose time, randomness, threads and store are those of a clock. All clients of one
clock share one store, each as a separate process. A wait moves the clock, so ``acquire("job", wait=10)`` takes no real time, and each
run of a test gives the same result. Callbacks run in the call that moves the clock, on its thread, after everything that is due has
happened. Threads may share a clock, but a waiting thread moves it for all of them, even if another thread is about to release. For
tests of threads that compete for locks, use ``memory:NAME``.
"""

from __future__ import annotations

from collections import deque

from leasehold import _hints, _native, cas
from leasehold._client import Client
from leasehold._native import Election as FakeElection
from leasehold._native import Lease as FakeLease
from leasehold._native import LockInfo as FakeInfo
from leasehold._native import Permit as FakePermit
from leasehold._native import Run as FakeRun
from leasehold._native import Shard as FakeShard
from leasehold._native import Shards as FakeShards
from leasehold.cas import AsyncItems, Items

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from leasehold._testing_aio import FakeAsyncClient, FakeAsyncElection
    from leasehold._types import Seconds

__all__ = [
    "FakeAsyncClient",
    "FakeAsyncElection",
    "FakeClient",
    "FakeClock",
    "FakeElection",
    "FakeInfo",
    "FakeItemStore",
    "FakeLease",
    "FakePermit",
    "FakeRun",
    "FakeShard",
    "FakeShards",
    "connect",
    "connect_async",
    "connect_items",
    "connect_items_async",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # It needs asyncio, which takes long to import.
        if name not in ("FakeAsyncClient", "FakeAsyncElection"):
            raise AttributeError(f"module 'leasehold.testing' has no attribute {name!r}")
        from leasehold import _testing_aio

        value = getattr(_testing_aio, name)
        _hints.resolve_class(value)
        return value



def connect(
    clock: FakeClock | None = None,
    *,
    owner: str = "fake",
    session: str | None = None,
    drift_ppm: int | None = None,
    request_timeout: Seconds | None = None,
) -> FakeClient:
    """A client of the clock's store. Without a clock, the client has its own, in ``client.clock``. The settings are those of
    :func:`leasehold.connect`.
    """
    clock = clock or FakeClock()
    return FakeClient(clock, clock._connected(owner, session, drift_ppm, request_timeout))


def connect_async(
    clock: FakeClock | None = None,
    *,
    owner: str = "fake",
    session: str | None = None,
    drift_ppm: int | None = None,
    request_timeout: Seconds | None = None,
) -> FakeAsyncClient:
    """The same for asyncio: a real :class:`leasehold.aio.Client`. It is not awaited. Before a wait moves the clock, other tasks that
    are ready run.
    """
    from leasehold._testing_aio import FakeAsyncClient

    clock = clock or FakeClock()
    return FakeAsyncClient(clock, clock._connected(owner, session, drift_ppm, request_timeout))


def connect_items(store: FakeItemStore | None = None, *, tries: int = 10) -> Items:
    """Items as those of :func:`leasehold.cas.connect`, whose pauses take no time. Tests of several clients give them one store."""
    return Items(_FakeItems(store or FakeItemStore()), tries)  # type: ignore[arg-type]


def connect_items_async(store: FakeItemStore | None = None, *, tries: int = 10) -> AsyncItems:
    """As :func:`connect_items`, for asyncio. It is not awaited."""
    return AsyncItems(_FakeItems(store or FakeItemStore()), tries)  # type: ignore[arg-type]


class FakeClock:
    """Time that passes when a test says so, and the store that all of its clients share. What is random follows from the seed."""

    def __init__(self, seed: int = 1) -> None:
        self._native = _native.TestClock(seed)

    def now(self) -> float:
        """Seconds since the clock began."""
        return self._native.now()

    def advance(self, seconds: Seconds) -> None:
        """Lets this much time pass, with everything that happens meanwhile: renewals, losses, and callbacks."""
        self._native.advance(seconds)

    def settle(self) -> None:
        """Lets happen what is due now, such as the release of a lease that was dropped. No time passes."""
        self._native.settle()

    def step(self) -> bool:
        """Lets happen what is due now, or if that is nothing, moves the clock to the next time at which something is due. False if
        nothing ever will be.
        """
        return self._native.step()

    def store_down(self) -> None:
        """From now on no request of any client reaches the store. Leases last until they expire."""
        self._native.store_down()

    def store_up(self) -> None:
        """Requests reach the store again; its records are still there."""
        self._native.store_up()

    def lose_reply(self) -> None:
        """The next request is served, and its answer is lost: its sender does not know what has become of it."""
        self._native.lose_reply()

    def late(self, seconds: Seconds) -> None:
        """From now on every answer of the store takes this long, or does not come before the sender's patience ends. 0, as at the
        beginning, for none.
        """
        self._native.late(seconds)

    def _connected(
        self, owner: str, session: str | None, drift_ppm: int | None, request_timeout: Seconds | None
    ) -> _native.Client:
        settings = _native.Connector(
            "memory:", owner=owner, session=session, drift_ppm=drift_ppm, request_timeout=request_timeout
        )
        return self._native.connect(settings)

    def __repr__(self) -> str:
        return f"<leasehold.testing.FakeClock at {self.now()} s>"


class FakeClient(Client):
    """A client without a server; made by :func:`connect`."""

    def __init__(self, clock: FakeClock, native: _native.Client) -> None:
        super().__init__(native)
        self._clock = clock

    @property
    def clock(self) -> FakeClock:
        """The clock of this client."""
        return self._clock

    def lose(self, name: str) -> None:
        """Makes this client lose the lock, as if it had not been renewed for too long: the lease is over now, and the lock
        is free for others. Raises NotOwnedError unless this client holds it.
        """
        self._clock._native.lose(self._native, name)

    def store_down(self) -> None:
        """See :meth:`FakeClock.store_down`."""
        self._clock.store_down()

    def store_up(self) -> None:
        """See :meth:`FakeClock.store_up`."""
        self._clock.store_up()


class FakeItemStore:
    """The items of fake clients, and what others do to them."""

    def __init__(self) -> None:
        self._clock = _native.TestClock(1)
        self._others = Items(self._clock.items_beside(), 1)
        self._next: dict[str, deque[bytes]] = {}

    def write(self, name: str, value: bytes) -> cas.Item:
        """Writes an item now, as another client."""
        written = self._others.update(name, lambda _: value)
        assert written is not None
        return written

    def write_first(self, name: str, values: Iterable[bytes]) -> None:
        """Makes another client write these values, each just before the next write to the item, which then fails and is tried
        again.
        """
        self._next.setdefault(name, deque()).extend(values)

    def down(self) -> None:
        """From now on no request reaches the store."""
        self._clock.store_down()

    def up(self) -> None:
        """Requests reach the store again; its items are still there."""
        self._clock.store_up()

    def _interfere(self, name: str) -> None:
        others = self._next.get(name)
        if others:
            self.write(name, others.popleft())


class _FakeItems:
    """Items as :class:`leasehold.cas.Items` uses its native ones."""

    def __init__(self, store: FakeItemStore) -> None:
        self._store = store
        self._native = store._clock.items()

    def begin(self, name: str, tries: int) -> _FakeUpdate:
        return _FakeUpdate(self._store, name, self._native.begin(name, tries))


class _FakeUpdate:
    """One update of one item, before whose writes others write."""

    def __init__(self, store: FakeItemStore, name: str, native: _native.Update) -> None:
        self._store = store
        self._name = name
        self._native = native
        self._writes = False

    def step(self) -> tuple[bool, tuple[bytes, int] | None]:
        self._interfere()
        return self._native.step()

    def begin_step(self) -> _native.Operation:
        self._interfere()
        return self._native.begin_step()

    def write(self, value: bytes) -> None:
        self._native.write(value)
        self._writes = True

    def _interfere(self) -> None:
        if self._writes:
            self._writes = False
            self._store._interfere(self._name)


_hints.resolve(globals())
