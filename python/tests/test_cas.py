"""Compare-and-set: updates of items without a lock, blocking and on asyncio."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import leasehold
import pytest
from conftest import PATIENCE, unix
from leasehold import cas
from lossy import LossyProxy

TRIES = 1_000


def one_more(old: bytes | None) -> bytes:
    return str(int(old or b"0") + 1).encode()


@pytest.fixture(params=["memory", "sqlite", "redis", "webdis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    kind: str = request.param
    if kind == "memory":
        return f"memory:{tmp_path.name}"
    if kind == "sqlite":
        return f"sqlite:{tmp_path}/items.db"
    address: str = request.getfixturevalue(kind)
    return address if kind == "redis" else f"webdis+{address}"


@pytest.fixture
def item(request: pytest.FixtureRequest) -> str:
    """A name of this test's own: the servers are shared."""
    return f"item {request.node.name}"


def test_an_item_is_made_changed_left_and_read(url: str, item: str) -> None:
    items = cas.connect(url)
    assert items.read(item) is None
    assert items.update(item, lambda old: None) is None
    assert items.read(item) is None
    assert items.update(item, lambda old: b"\0\xff" if old is None else None) == cas.Item(b"\0\xff", 1)
    assert items.update(item, lambda old: (old or b"") + b"!") == (b"\0\xff!", 2)
    assert cas.connect(url).read(item) == cas.Item(b"\0\xff!", 2)
    assert items.update(item, lambda old: b"") == cas.Item(b"", 3)


def test_an_exception_passes_as_it_is_and_nothing_is_written(url: str, item: str) -> None:
    items = cas.connect(url)
    reason = ZeroDivisionError("mine")

    def fail(old: bytes | None) -> bytes:
        raise reason

    with pytest.raises(ZeroDivisionError) as raised:
        items.update(item, fail)
    assert raised.value is reason
    for odd in ["text", 1, bytearray(b"x")]:
        with pytest.raises(TypeError, match="bytes"):
            items.update(item, lambda old, odd=odd: odd)  # type: ignore[misc]

    async def later(old: bytes | None) -> bytes:
        return b"x"

    with pytest.raises(TypeError, match="connect_async"):
        items.update(item, later)  # type: ignore[arg-type]
    assert items.read(item) is None


def test_no_update_of_several_threads_is_lost(url: str, item: str) -> None:
    items = cas.connect(url, tries=TRIES)

    def count() -> None:
        for _ in range(5):
            items.update(item, one_more)

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert items.read(item) == cas.Item(b"15", 15)


def test_others_that_are_faster_each_time_are_told(url: str, item: str) -> None:
    items, others = cas.connect(url, tries=2), cas.connect(url)

    def interfere(old: bytes | None) -> bytes:
        others.update(item, one_more)
        return one_more(old)

    with pytest.raises(leasehold.TooManyConflictsError, match="tried 2 times") as raised:
        items.update(item, interfere)
    error = raised.value
    assert (error.code, error.tries, error.fate) == ("too_many_conflicts", 2, "not_written")
    assert (error.resource, error.temporary) == (item, True)
    assert others.read(item) == cas.Item(b"2", 2)


def test_what_cannot_be_an_item_is_refused(url: str) -> None:
    items = cas.connect(url)
    for bad in ["", "a\nb"]:
        with pytest.raises(leasehold.ConfigError):
            items.update(bad, one_more)
    with pytest.raises(leasehold.ConfigError, match="at most") as raised:
        items.update("large", lambda old: bytes((380 << 10) + 1))
    assert (raised.value.fate, raised.value.tries) == ("not_written", 1)
    with pytest.raises(leasehold.ConfigError):
        cas.connect("redis://a redis://b redis://c")
    with pytest.raises(leasehold.StoreUnavailableError):
        cas.connect("redis://127.0.0.1:1")


def test_on_asyncio_the_function_may_be_async(url: str, item: str) -> None:
    async def main() -> None:
        items = await cas.connect_async(url, tries=TRIES)
        assert await items.read(item) is None

        async def slow(old: bytes | None) -> bytes:
            await asyncio.sleep(0)
            return one_more(old)

        assert await items.update(item, slow) == cas.Item(b"1", 1)
        assert await items.update(item, one_more) == cas.Item(b"2", 2)
        assert await items.update(item, lambda old: None) is None
        await asyncio.gather(*(items.update(item, slow) for _ in range(6)))
        assert await items.read(item) == cas.Item(b"8", 8)

        reason = ZeroDivisionError("mine")

        async def fail(old: bytes | None) -> bytes:
            raise reason

        with pytest.raises(ZeroDivisionError) as raised:
            await items.update(item, fail)
        assert raised.value is reason

        few = await cas.connect_async(url, tries=2)

        async def interfere(old: bytes | None) -> bytes:
            await items.update(item, one_more)
            return one_more(old)

        with pytest.raises(leasehold.TooManyConflictsError) as contended:
            await few.update(item, interfere)
        assert (contended.value.tries, contended.value.fate) == (2, "not_written")
        with pytest.raises(leasehold.ConfigError):
            await items.update("", one_more)

    asyncio.run(main())


Updates = Callable[..., "cas.Item | None"]


def blocking(url: str, tries: int = 10) -> Updates:
    return cas.connect(url, tries=tries).update


def awaited(url: str, tries: int = 10) -> Updates:
    async def update(item: str, new: Callable[[bytes | None], bytes]) -> cas.Item | None:
        return await (await cas.connect_async(url, tries=tries)).update(item, new)

    return lambda item, new: asyncio.run(update(item, new))


@pytest.mark.parametrize("connected", [blocking, awaited])
def test_a_write_whose_answer_is_lost_counts_once(connected: Callable[..., Updates], redis: str, item: str) -> None:
    direct, asked = cas.connect(redis), 0

    def counted(old: bytes | None) -> bytes:
        nonlocal asked
        asked += 1
        return one_more(old)

    # A part of the script that writes, and of no other.
    with LossyProxy(int(redis.rpartition(":")[2]), b"'raced'").running() as proxy:
        url = f"redis://127.0.0.1:{proxy.port}"
        update = connected(url)
        assert update(item, one_more) == cas.Item(b"1", 1)
        proxy.loses = 1
        assert update(item, counted) == cas.Item(b"2", 2)
        assert (proxy.lost, asked, direct.read(item)) == (1, 1, cas.Item(b"2", 2))
        proxy.loses = 1_000
        with pytest.raises(leasehold.StoreUnavailableError) as raised:
            connected(url, tries=2)(item, one_more)
        assert (raised.value.fate, raised.value.tries, raised.value.resource) == ("unknown", 2, item)
        assert direct.read(item) == cas.Item(b"3", 3), "and it was written"
        proxy.loses = 0
        assert update(item, one_more) == cas.Item(b"4", 4)


def test_a_function_that_never_ends_delays_no_renewal_and_can_be_cancelled(redis: str, item: str) -> None:
    async def main() -> None:
        items = await cas.connect_async(redis)
        is_asked = asyncio.Event()

        async def endless(old: bytes | None) -> bytes:
            is_asked.set()
            await asyncio.Event().wait()
            return b"never"

        updating = asyncio.ensure_future(items.update(item, endless))
        await asyncio.wait_for(is_asked.wait(), PATIENCE)
        assert await items.update(item, one_more) == cas.Item(b"1", 1), "it holds up nobody"
        updating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await updating
        assert await items.read(item) == cas.Item(b"1", 1)

    asyncio.run(main())


COUNTER = """
import sys
from leasehold import cas
items = cas.connect(sys.argv[1], tries=1000)
while True:
    items.update(sys.argv[2], lambda old: str(int(old or b"0") + 1).encode())
    print("counted", flush=True)
"""


@unix
def test_a_process_that_is_killed_stops_nobody_and_loses_nothing(redis: str, item: str) -> None:
    items = cas.connect(redis, tries=TRIES)
    with subprocess.Popen([sys.executable, "-c", COUNTER, redis, item], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        for _ in range(5):
            assert other.stdout.readline() == b"counted\n"
            items.update(item, one_more)
        other.send_signal(signal.SIGKILL)
        other.wait(PATIENCE)
    last = items.update(item, one_more)
    assert last is not None and int(last.value) == last.version >= 11
