"""Stores for tests: in memory, in a file, and a real server."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
from servers import PATIENCE as PATIENCE
from servers import Server as Server
from servers import eventually as eventually
from servers import until as until

import leasehold

# A caller that starts the tests in the background may ignore it, and programs that are interrupted here would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Speed is measured by the benchmark.
hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")

unix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no forks, signals and descriptors of this kind")

TTL = 8.0
"""For leases that must not be lost."""
REQUEST_TIMEOUT = 5.0

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
if sys.platform != "win32":
    import uvloop

    LOOPS["uvloop"] = uvloop.new_event_loop

_numbers = itertools.count()


def connect(store: str) -> leasehold.Client:
    return leasehold.connect(store, request_timeout=REQUEST_TIMEOUT)


def without_left(info: leasehold.RunInfo) -> leasehold.RunInfo:
    """The same, but for the time for which the completion still stands, which goes on."""
    return info if info.done is None else dataclasses.replace(info, done=dataclasses.replace(info.done, left=0.0))


@pytest.fixture(scope="session")
def redis() -> Iterator[str]:
    """The url of a server that is stopped when the tests are over."""
    with Server("redis") as server:
        yield server.url


@pytest.fixture(scope="session")
def webdis(redis: str) -> Iterator[str]:
    """The url of a Webdis in front of the Redis; it is stopped when the tests are over."""
    with Server("webdis", redis.rpartition(":")[2]) as server:
        yield server.url.removeprefix("webdis+")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The url of a PostgreSQL that is stopped when the tests are over."""
    with Server("postgres") as server:
        yield server.url


@pytest.fixture
def memory() -> str:
    return f"memory:test-{next(_numbers)}"


@pytest.fixture
def sqlite() -> Iterator[str]:
    # In memory where that can be had: a busy disk takes seconds to confirm hundreds of writes.
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() else None
    if sys.platform == "win32":
        # It deletes no file that a client still has open.
        yield f"sqlite:{Path(tempfile.mkdtemp(dir=place)) / 'locks.db'}"
        return
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield f"sqlite:{Path(folder) / 'locks.db'}"


@pytest.fixture(params=["memory", "sqlite", "redis"])
def store(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(request.param)
    return url


@pytest.fixture
def name() -> str:
    """The name of a lock that no other test uses."""
    return f"job-{next(_numbers)}"


@pytest.fixture
def client(store: str) -> Iterator[leasehold.Client]:
    with connect(store) as client:
        yield client
