"""Permits, readers and writers, lists and watches on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TypeVar

import pytest
from conftest import PATIENCE, REQUEST_TIMEOUT
from test_aio import Run, connect, eventually, under_way
from test_aio import run as run

import leasehold
import leasehold.aio as aio

T = TypeVar("T")
LONG = 300.0
"""For leases that must not be lost, and are released."""


async def next_of(answers: AsyncGenerator[T, None]) -> T:
    return await answers.__anext__()


async def is_waiting() -> bool:
    return under_way() > 0


def test_tasks_share_permits(run: Run, store: str, name: str) -> None:
    now = most = 0

    async def work(client: aio.Client) -> None:
        nonlocal now, most
        for _ in range(3):
            async with client.semaphore(name, 2, ttl=LONG, wait=PATIENCE, on_lost="cancel") as permit:
                assert isinstance(permit, aio.Permit) and permit.resource == f"{name}#{permit.index}"
                now += 1
                most = max(most, now)
                await asyncio.sleep(0)
                permit.check()
                now -= 1

    async def body() -> None:
        async with await connect(store) as client, await connect(store) as other:
            await asyncio.gather(*(work(one) for one in (client, other, client, other)))
            with pytest.raises(leasehold.ConfigError, match="permits is 3 here, and 2 in the store"):
                async with client.semaphore(name, 3, wait=PATIENCE):
                    pass

            async def is_changed() -> bool:
                try:
                    await other.set_permits(name, 3)
                except leasehold.LockBusyError:
                    return False
                return True

            await eventually("the number can be changed", is_changed)
            with pytest.raises(leasehold.ConfigError, match="permits is 65; it can be 1 to 64"):
                await client.set_permits(name, 65)
            with pytest.raises(leasehold.ConfigError, match="permits is 0; it can be 1 to 64"):
                await client.semaphore(name, 0).acquire()
            assert under_way() == 0

    run(body())
    assert 1 <= most <= 2


def test_a_cancelled_wait_for_any_leaves_nothing_held(run: Run, store: str, name: str) -> None:
    names = [f"{name}/a", f"{name}/b"]

    async def body() -> None:
        async with await connect(store) as client, await connect(store) as other:
            held = await client.lock_all(names, ttl=LONG)
            waiting = asyncio.ensure_future(other.lock_any(names, ttl=LONG).acquire())
            await eventually("it waits", is_waiting)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await held.release()
            await (await client.lock_all(names, ttl=LONG, wait=PATIENCE)).release()
            any_of = other.lock_any(iter(names), ttl=LONG, wait=PATIENCE)
            async with any_of as lease:
                assert lease.resource in any_of.names

            @other.lock_any([f"{name}/{{part}}"], ttl=LONG, wait=PATIENCE)
            async def work(part: str) -> bool:
                return await client.inspect(f"{name}/{part}") is not None

            assert await work("a")

    run(body())


def test_readers_share_and_writers_are_alone(run: Run, store: str, name: str) -> None:
    async def body() -> None:
        async with await connect(store) as client, await connect(store) as other:
            lock = client.rw_lock(name, readers=2, ttl=LONG, wait=PATIENCE)
            async with lock.read() as first, other.rw_lock(name, readers=2, ttl=LONG, wait=PATIENCE).read() as second:
                assert not await client.rw_lock(name, readers=2, wait=0).write().acquire()
                with pytest.raises(leasehold.ConfigError, match="readers is 3 here, and 2 in the store"):
                    await first.release()
                    await client.rw_lock(name, readers=3, wait=PATIENCE).read().acquire()
                with pytest.raises(leasehold.LockBusyError):
                    await client.set_readers(name, 3)
            async with lock.write() as third:
                assert third.token > max(first.token, second.token)
                assert not await other.rw_lock(name, readers=2, wait=0).read().acquire()

            @lock.read()
            async def look() -> int:
                return len([info async for info in other.list(f"{name}#")])

            assert await look() == 1 and lock.name == name

    run(body())


def test_a_task_that_reads_cannot_write(run: Run, memory: str) -> None:
    async def body() -> None:
        async with await aio.connect(memory) as client:
            lock = client.rw_lock("catalog", ttl=LONG)
            async with lock.read():
                with pytest.raises(leasehold.ConfigError, match="a reader cannot become a writer"):
                    await lock.write().acquire()

    run(body())


def test_locks_are_listed_and_watched(run: Run, store: str, name: str) -> None:
    locks = {f"{name}/{number}" for number in range(150)}

    async def body() -> None:
        async with await connect(store) as client:
            changes = client.watch(f"{name}/7", every=0.1)
            assert (await next_of(changes)).kind == "free"
            async with await client.lock_all(locks, ttl=LONG, owner="me"):
                seen = [info.resource async for info in client.list(f"{name}/")]
                assert len(seen) == len(locks) and set(seen) == locks
                change = await next_of(changes)
                assert change.kind == "held" and change.holder is not None and change.holder.owner == "me"
            async for change in changes:
                assert change.kind == "free"
                break
            changes = client.watch(name)
            await next_of(changes)
            waiting = asyncio.ensure_future(next_of(changes))
            await eventually("it waits", is_waiting)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert under_way() == 0
            with pytest.raises(leasehold.ConfigError):
                await next_of(client.list("a\n"))

    run(body())


def test_a_lock_that_need_not_be_fair_is_a_lock(run: Run, redis: str, name: str) -> None:
    async def body() -> None:
        async with await aio.connect(redis, request_timeout=REQUEST_TIMEOUT) as client:
            async with client.lock(name, ttl=LONG, fair=False):
                assert await client.try_acquire(name, fair=False) is None
            await (await client.acquire(name, ttl=LONG, fair=False)).release()

    run(body())
