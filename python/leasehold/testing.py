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

>>> with client.once("report", key="monday") as run:
...     client.store_down()
Traceback (most recent call last):
    ...
leasehold.FinishUnconfirmedError: ...

A fake client has the interface of :class:`leasehold.Client`. It runs the real protocol with the clock of
the test, over the reference store. All clients of one clock share one store, each as a separate process. A wait
moves the clock, so ``acquire("job", wait=10)`` takes no real time, and each run of a test gives the same result.
Callbacks run in the call that moves the clock, after everything that is due has happened. Threads may share a clock, but a
waiting thread moves it for all of them, even if another thread is about to release. For tests of threads that
compete for locks, use ``memory:NAME``.
"""

from __future__ import annotations

from leasehold import _hints
from leasehold._client import Client
from leasehold._fake_clock import FakeClock
from leasehold._fake_election import FakeElection
from leasehold._fake_items import FakeItemStore, Native
from leasehold._fake_lease import FakeLease, FakePermit, FakeRun
from leasehold._fake_process import Process
from leasehold._fake_shards import FakeShard, FakeShards
from leasehold._fakes import FakeInfo
from leasehold.cas import AsyncItems, Items
from leasehold.protocol import Config, NodeConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from leasehold._fake_aio import FakeAsyncClient, FakeAsyncElection
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
        from leasehold import _fake_aio

        value = getattr(_fake_aio, name)
        _hints.resolve_class(value)
        return value



def connect(
    clock: FakeClock | None = None,
    *,
    owner: str = "fake",
    drift_ppm: int | None = None,
    request_timeout: Seconds | None = None,
) -> FakeClient:
    """A client of the clock's store. Without a clock, the client has its own, in ``client.clock``."""
    return FakeClient(clock or FakeClock(), owner, Config([NodeConfig()], drift_ppm, request_timeout))


def connect_async(
    clock: FakeClock | None = None,
    *,
    owner: str = "fake",
    drift_ppm: int | None = None,
    request_timeout: Seconds | None = None,
) -> FakeAsyncClient:
    """The same for asyncio, with the interface of :class:`leasehold.aio.Client`. It is not awaited. Before a wait moves the clock,
    other tasks that are ready run.
    """
    from leasehold._fake_aio import FakeAsyncClient

    return FakeAsyncClient(clock or FakeClock(), owner, Config([NodeConfig()], drift_ppm, request_timeout))


def connect_items(store: FakeItemStore | None = None, *, tries: int = 10) -> Items:
    """Items as those of :func:`leasehold.cas.connect`, without pauses. Tests of several clients give them one store."""
    return Items(Native(store or FakeItemStore()), tries)  # type: ignore[arg-type]


def connect_items_async(store: FakeItemStore | None = None, *, tries: int = 10) -> AsyncItems:
    """As :func:`connect_items`, for asyncio. It is not awaited."""
    return AsyncItems(Native(store or FakeItemStore()), tries)  # type: ignore[arg-type]


class FakeClient(Client):
    """A client without a server; made by :func:`connect`."""

    def __init__(self, clock: FakeClock, owner: str, config: Config) -> None:
        self._process = Process(clock, owner, config)
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
        self.clock._set_up(False)

    def store_up(self) -> None:
        """Requests reach the store again; its records are still there."""
        self.clock._set_up(True)


_hints.resolve(globals())
