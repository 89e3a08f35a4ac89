"""The client on event loops: asyncio's own and uvloop's."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
import uvloop
from conftest import PATIENCE, REQUEST_TIMEOUT, TTL

import leasehold
import leasehold.aio as aio

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a test's body on a loop of its own, and never for longer than our patience."""

    def run(body: Coroutine[Any, Any, None]) -> None:
        loop = uvloop.new_event_loop() if request.param == "uvloop" else asyncio.new_event_loop()
        try:
            loop.run_until_complete(asyncio.wait_for(body, PATIENCE))
        finally:
            loop.close()

    return run


async def connect(store: str) -> aio.Client:
    return await aio.connect(store, request_timeout=REQUEST_TIMEOUT)


async def eventually(what: str, holds: Callable[[], Awaitable[bool]]) -> None:
    end = asyncio.get_running_loop().time() + PATIENCE
    while not await holds():
        assert asyncio.get_running_loop().time() < end, what
        await asyncio.sleep(0.01)


def under_way() -> int:
    return len(aio._reactor(asyncio.get_running_loop()))


async def is_free(client: aio.Client, name: str) -> bool:
    return await client.inspect(name) is None


def test_a_lock_is_had_by_one_at_a_time(run: Run, store: str, name: str) -> None:
    async def body() -> None:
        async with await connect(store) as client:
            async with client.lock(name, ttl=TTL) as lease:
                assert lease.resource == name and 0 < lease.remaining() <= TTL
                lease.check(0.5)
                assert await client.try_acquire(name) is None
                with pytest.raises(leasehold.LockBusyError):
                    await client.acquire(name, wait=0)
                with pytest.raises(leasehold.LockTimeoutError) as late:
                    await client.acquire(name, wait=0.2)
                assert late.value.resource == name
                info = await client.inspect(name)
                assert info is not None and info.token == lease.token
            assert await is_free(client, name)
            again = await client.try_acquire(name, ttl=TTL)
            assert again is not None and again.token > lease.token
            await again.release()
            with pytest.raises(leasehold.NotOwnedError):
                await again.release()
            async with await client.lock_all([name, f"{name}/2"], ttl=TTL) as leases:
                assert [leases[0].resource, leases[f"{name}/2"].resource] == [name, f"{name}/2"]

    run(body())


def test_tasks_take_turns(run: Run, store: str, name: str) -> None:
    async def body() -> None:
        client = await connect(store)
        inside = 0
        tokens = []

        async def work() -> None:
            nonlocal inside
            async with client.lock(name, ttl=TTL, wait=PATIENCE) as lease:
                inside += 1
                assert inside == 1
                tokens.append(lease.token)
                await asyncio.sleep(0)
                inside -= 1

        await asyncio.gather(*(work() for _ in range(64)))
        assert len(tokens) == 64 and tokens == sorted(set(tokens))
        held = await asyncio.gather(*(client.acquire(f"{name}/{n}", ttl=TTL) for n in range(64)))
        await asyncio.gather(*(lease.release() for lease in held))
        await client.close()

    run(body())


def test_a_cancelled_wait_leaves_nothing_held(run: Run, store: str, name: str) -> None:
    async def body() -> None:
        client = await connect(store)
        lease = await client.acquire(name, ttl=TTL)
        waiting = [asyncio.create_task(client.acquire(name, ttl=TTL)) for _ in range(4)]
        waiting.append(asyncio.create_task(client.lock_all([f"{name}/0", name], ttl=TTL)))  # type: ignore[arg-type]
        await asyncio.sleep(0.1)
        for task in waiting:
            task.cancel()
        ends = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ends), ends
        assert under_way() == 0, "they have left the line, though the lock is still held"
        await lease.release()
        for each in (name, f"{name}/0"):
            following = await client.acquire(each, ttl=TTL)
            await following.release()
        await client.close()

    run(body())


def test_a_task_cancelled_after_any_number_of_steps_leaves_nothing_held(run: Run, store: str, name: str) -> None:
    async def body() -> None:
        client = await connect(store)
        for steps in range(12):
            task = asyncio.create_task(client.acquire(name, ttl=3600, wait=PATIENCE))
            for _ in range(steps):
                await asyncio.sleep(0 if steps < 8 else 0.002)
            task.cancel()
            result = (await asyncio.gather(task, return_exceptions=True))[0]
            if isinstance(result, aio.Lease):
                await result.release()
            del task, result
            gc.collect()
            following = await client.acquire(name, ttl=TTL, wait=PATIENCE)
            await following.release()
        await client.close()

    run(body())


def test_a_result_that_comes_with_the_cancellation_is_given_back(run: Run, memory: str, name: str) -> None:
    async def body() -> None:
        client = await connect(memory)
        lease = await client.acquire(name, ttl=3600)
        task = asyncio.create_task(client.acquire(name, ttl=3600))
        await asyncio.sleep(0.05)
        await lease.release()
        # By now the grant is noted, and the loop has not looked.
        reactor = aio._reactor(asyncio.get_running_loop())
        reactor.run()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        await eventually("it is given back", lambda: is_free(client, name))
        del cancelled
        await client.close()

    run(body())


def test_a_lost_lease_cancels_the_body(run: Run, store: str, name: str) -> None:
    async def body() -> None:
        client = await connect(store)
        with pytest.raises(leasehold.LeaseLostError) as lost:
            async with client.lock(name, ttl=0.3, renew=False, on_lost="cancel"):
                await asyncio.sleep(PATIENCE)
        assert isinstance(lost.value.__cause__, asyncio.CancelledError)
        task = asyncio.current_task()
        if task is not None and hasattr(task, "cancelling"):
            assert task.cancelling() == 0
        # Somebody else's cancellation stays one.
        held = asyncio.Event()

        async def hold() -> None:
            async with client.lock(f"{name}/2", ttl=TTL, on_lost="cancel"):
                held.set()
                await asyncio.sleep(PATIENCE)

        holding = asyncio.create_task(hold())
        await held.wait()
        holding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await holding
        # A body that ends in time is not cancelled later.
        async with client.lock(f"{name}/3", ttl=0.5, renew=False, on_lost="cancel") as lease:
            assert under_way() == 1
        assert under_way() == 0, "nobody watches any more"
        await asyncio.sleep(0.6)
        assert lease.remaining() == 0
        await eventually("all is free", lambda: is_free(client, f"{name}/2"))
        await client.close()

    run(body())
    with pytest.raises(leasehold.ConfigError, match="on_lost"):
        run(_bad_on_lost())


async def _bad_on_lost() -> None:
    (await aio.connect("memory:")).lock("job", on_lost="ignore")  # type: ignore[arg-type]


def test_a_lost_lease_says_so(run: Run, store: str, name: str) -> None:
    async def body() -> None:
        client = await connect(store)
        told: asyncio.Queue[BaseException] = asyncio.Queue()
        with pytest.raises(leasehold.LeaseLostError):
            async with await client.acquire(name, ttl=0.3, renew=False) as lease:
                lease.on_lost(told.put_nowait)
                assert not lease.lost.is_set() and lease.lost.reason is None
                assert isinstance(await lease.lost.wait(), leasehold.LeaseLostError)
                assert lease.lost.is_set() and isinstance(lease.lost.reason, leasehold.LeaseLostError)
        assert isinstance(await told.get(), leasehold.LeaseLostError)
        await client.close()

    run(body())


def test_it_has_the_manners_of_an_asyncio_lock(run: Run, memory: str, name: str) -> None:
    async def body() -> None:
        client = await connect(memory)
        lock = client.lock(name, ttl=TTL, wait=0.2)
        assert not await lock.locked()
        assert await lock.acquire() and await lock.locked()
        assert not await lock.acquire()
        await lock.release()
        with pytest.raises(RuntimeError):
            await lock.release()

        @client.lock("report-{day}", wait=0)
        async def report(day: int) -> int:
            assert not await is_free(client, f"report-{day}")
            return day

        assert await report(day=3) == 3
        assert await is_free(client, "report-3")
        with pytest.raises(leasehold.ConfigError):
            client.lock("report-{dy}")(report)
        await client.close()

    run(body())


def test_a_leader_works_until_it_resigns(run: Run, memory: str, name: str) -> None:
    async def body() -> None:
        client = await connect(memory)
        happened: list[object] = []
        leads = asyncio.Event()

        async def start(lease: aio.Lease) -> None:
            await asyncio.sleep(0)
            happened.append(lease.token)
            leads.set()

        async with client.elect(name, ttl=TTL, on_start=start, on_stop=happened.append) as election:
            await leads.wait()
            assert election.term == happened[0] and election.last_error is None
        assert happened[1:] == [None] and election.term is None
        await client.close()

    run(body())


def test_a_blocked_loop_loses_no_lease(run: Run, sqlite: str, name: str) -> None:
    async def body() -> None:
        import time

        client = await connect(sqlite)
        async with client.lock(name, ttl=4) as lease:
            time.sleep(6)
            lease.check(0.5)
        await client.close()

    run(body())


def test_one_client_serves_several_loops_and_leaves_nothing_open(memory: str, name: str) -> None:
    client = leasehold.aio.Client(leasehold.connect(memory)._native)

    async def use() -> None:
        async with client.lock(name, ttl=TTL):
            pass

    asyncio.run(use())
    gc.collect()
    before = len(os.listdir("/dev/fd"))
    for _ in range(10):
        asyncio.run(use())
    gc.collect()
    assert len(os.listdir("/dev/fd")) <= before


def test_an_operation_given_up_by_its_coroutine_is_cancelled(memory: str, name: str) -> None:
    async def body() -> None:
        client = await connect(memory)
        lease = await client.acquire(name, ttl=3600)
        coroutine = client.acquire(name, ttl=3600)
        coroutine.send(None)
        coroutine.close()
        await lease.release()
        await (await client.acquire(name, ttl=TTL, wait=PATIENCE)).release()
        await client.close()

    asyncio.run(body())
