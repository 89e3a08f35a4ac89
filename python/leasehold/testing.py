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

from leasehold._client import Client
from leasehold._fake_clock import FakeClock
from leasehold._fake_lease import FakeLease, FakePermit, FakeRun
from leasehold._fake_process import Process
from leasehold._fake_shards import FakeShard, FakeShards
from leasehold._fakes import FakeInfo
from leasehold.protocol import Config, NodeConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from leasehold._types import Seconds

__all__ = [
    "FakeClient",
    "FakeClock",
    "FakeInfo",
    "FakeLease",
    "FakePermit",
    "FakeRun",
    "FakeShard",
    "FakeShards",
    "connect",
]


def connect(
    clock: FakeClock | None = None,
    *,
    owner: str = "fake",
    drift_ppm: int | None = None,
    request_timeout: Seconds | None = None,
) -> FakeClient:
    """A client of the clock's store. Without a clock, the client has its own, in ``client.clock``."""
    return FakeClient(clock or FakeClock(), owner, Config([NodeConfig()], drift_ppm, request_timeout))


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
        with self.clock._mutex:
            self.clock._store.is_up = False

    def store_up(self) -> None:
        """Requests reach the store again; its records are still there."""
        with self.clock._mutex:
            self.clock._store.is_up = True
            self.clock._balance()
