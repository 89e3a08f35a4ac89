"""Requests whose sockets are on asyncio's own event loops."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import LOOPS, PATIENCE, REQUEST_TIMEOUT, TTL

import leasehold
import leasehold.aio as aio
from leasehold import _aio_loop


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> asyncio.AbstractEventLoop:
    return LOOPS[request.param]()


async def use(client: aio.Client, name: str, turns: int = 50) -> None:
    for turn in range(turns):
        async with client.lock(f"{name} {turn}", ttl=TTL) as lease:
            lease.check()


def test_a_loop_that_can_watch_sockets_is_called_by_no_thread(loop: asyncio.AbstractEventLoop, redis: str, name: str) -> None:
    async def body() -> None:
        async with aio.connect(redis, request_timeout=REQUEST_TIMEOUT) as client:
            await use(client, name, 1)
            assert _aio_loop.reactor_of(asyncio.get_running_loop()).fileno() is not None
        if sys.platform == "linux":
            names = []
            for thread in Path("/proc/self/task").iterdir():
                # One that has ended meanwhile has no name any more.
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    names.append(thread.joinpath("comm").read_text().strip())
            assert "leasehold-loop" not in names

    try:
        loop.run_until_complete(asyncio.wait_for(body(), PATIENCE))
    finally:
        loop.close()


def test_loops_of_two_threads_use_one_client(redis: str, name: str) -> None:
    client = aio.Client(leasehold.connect(redis, request_timeout=REQUEST_TIMEOUT)._native)
    together = threading.Barrier(2)

    def run(thread: int) -> None:
        together.wait(PATIENCE)
        asyncio.run(asyncio.wait_for(use(client, f"{name} {thread}"), PATIENCE))

    with ThreadPoolExecutor(2) as threads:
        for ran in [threads.submit(run, thread) for thread in range(2)]:
            ran.result(PATIENCE)
    client._native.close()


# A destroyed task that was granted its lock drops the lease, and the drop is reported.
@pytest.mark.filterwarnings("ignore:.*was dropped while it was held:ResourceWarning")
def test_a_loop_is_closed_with_requests_under_way(loop: asyncio.AbstractEventLoop, redis: str, name: str) -> None:
    client = aio.Client(leasehold.connect(redis, request_timeout=REQUEST_TIMEOUT)._native)

    async def begin() -> list[asyncio.Task[aio.Lease]]:
        await use(client, name)
        tasks = [asyncio.ensure_future(client.acquire(f"{name} {n}", ttl=1)) for n in range(100)]
        # They have written nothing, written, or been answered.
        await asyncio.sleep(0)
        return tasks

    tasks = loop.run_until_complete(begin())
    loop.close()
    while tasks:
        # A task that is destroyed while it waits is reported. It may have a lease that nobody has taken from it.
        tasks.pop()._log_destroy_pending = False  # type: ignore[attr-defined]
    asyncio.run(asyncio.wait_for(use(client, name), PATIENCE))
    client._native.close()


def test_a_loop_that_stands_still_holds_up_no_other(loop: asyncio.AbstractEventLoop, redis: str, name: str) -> None:
    client = aio.Client(leasehold.connect(redis, request_timeout=REQUEST_TIMEOUT)._native)

    async def begin() -> asyncio.Task[aio.Lease]:
        await use(client, name)
        task = asyncio.ensure_future(client.acquire(f"{name} first", ttl=1))
        await asyncio.sleep(0)
        return task

    task = loop.run_until_complete(begin())
    asyncio.run(asyncio.wait_for(use(client, name), PATIENCE))
    # For longer than its grant lasts without renewal.
    time.sleep(2)

    async def end() -> None:
        lease = await task
        lease.check()
        await lease.release()

    loop.run_until_complete(asyncio.wait_for(end(), PATIENCE))
    loop.close()
    client._native.close()


def test_one_of_many_requests_is_cancelled_alone(loop: asyncio.AbstractEventLoop, redis: str, name: str) -> None:
    many, one = 10_000, 5_000

    async def body() -> None:
        async with await aio.connect(redis, request_timeout=REQUEST_TIMEOUT) as client:
            await use(client, name)
            tasks = [asyncio.ensure_future(client.try_acquire(f"{name} {n}", ttl=60)) for n in range(many)]
            await asyncio.sleep(0)
            assert tasks[one].cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
            assert isinstance(ends.pop(one), asyncio.CancelledError)
            leases = [end for end in ends if isinstance(end, aio.Lease)]
            assert len({lease.resource for lease in leases}) == many - 1
            # Each release is awaited for 2 s, and a loaded machine may need longer for all of them.
            for at in range(0, len(leases), 1_000):
                await asyncio.gather(*(lease.release() for lease in leases[at : at + 1_000]))
            async with client.lock(f"{name} {one}", ttl=TTL, wait=PATIENCE):
                pass

    try:
        loop.run_until_complete(asyncio.wait_for(body(), 2 * PATIENCE))
    finally:
        loop.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_leaves_the_sockets_of_its_parent_alone(redis: str, name: str) -> None:
    async def body() -> None:
        async with await aio.connect(redis, request_timeout=REQUEST_TIMEOUT) as client:
            async with client.lock(name, ttl=TTL) as lease:
                waiting = asyncio.ensure_future(client.acquire(f"{name} 2", ttl=TTL))
                child = os.fork()
                if child == 0:
                    # The child ends its copies of everything, and leaves the loop without running it.
                    del waiting
                    os._exit(0 if lease.remaining() == 0 else 1)
                assert os.waitpid(child, 0)[1] == 0
                lease.check()
                await (await waiting).release()
            await use(client, name)

    asyncio.run(asyncio.wait_for(body(), PATIENCE))
