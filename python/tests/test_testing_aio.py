"""Fake clients for asyncio: they behave like the real client."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from conftest import PATIENCE

import leasehold
import leasehold.aio as aio
from leasehold import testing

TTL = 30.0
LONG = 3_600.0

_names = itertools.count()
Pair = Callable[[], AbstractAsyncContextManager[tuple[aio.Client, aio.Client]]]


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, PATIENCE))


@asynccontextmanager
async def fakes() -> AsyncIterator[tuple[aio.Client, aio.Client]]:
    clock = testing.FakeClock()
    yield testing.connect_async(clock, owner="me"), testing.connect_async(clock, owner="rival")


@asynccontextmanager
async def reals() -> AsyncIterator[tuple[aio.Client, aio.Client]]:
    store = f"memory:testing-aio-{next(_names)}"
    async with aio.connect(store, owner="me") as client, aio.connect(store, owner="rival") as rival:
        yield client, rival


@pytest.mark.parametrize("two", [fakes, reals])
def test_a_fake_client_does_what_the_real_one_does(two: Pair) -> None:
    async def body() -> None:
        async with two() as (client, rival):
            async with client.lock("job", ttl=TTL, data=b"here") as lease:
                assert (lease.resource, lease.owner) == ("job", "me") and TTL / 2 < lease.remaining() <= TTL
                assert await rival.try_acquire("job") is None
                with pytest.raises(leasehold.LockBusyError) as busy:
                    await rival.acquire("job", wait=0)
                assert busy.value.holder is not None and busy.value.holder.owner == "me"
                with pytest.raises(leasehold.LockTimeoutError) as late:
                    await rival.acquire("job", wait=0.01)
                assert late.value.resource == "job"
                info = await rival.inspect("job")
                assert info is not None and (info.token, info.data) == (lease.token, b"here")
                assert [each.resource async for each in rival.list("jo")] == ["job"]
            with pytest.raises(leasehold.NotOwnedError):
                await lease.release()
            async with client.lock_all(["b", "a"], ttl=TTL) as leases:
                assert [leases[0].resource, leases["b"].resource] == ["a", "b"] and len(leases) == 2
                with pytest.raises(leasehold.LockTimeoutError):
                    await rival.lock_all(["0", "b"], wait=0.01)
                assert await rival.inspect("0") is None
            async with client.semaphore("jobs", 2) as one, rival.semaphore("jobs", 2) as two_:
                assert {one.index, two_.index} == {0, 1}
            async with client.rw_lock("book").read(), rival.rw_lock("book").read():
                with pytest.raises(leasehold.LockBusyError):
                    async with rival.rw_lock("book", wait=0).write():
                        raise AssertionError("never entered")
            async with client.lock_any(["x", "y"]) as either:
                assert either.resource in ("x", "y") and not isinstance(either, aio.Permit)
            held = await client.acquire("job", owner="worker-7", ttl=LONG)
            assert not await rival.release_if("job", token=held.token + 1)
            assert await rival.release_if("job", token=held.token)
            with pytest.raises(leasehold.LeaseLostError):
                await held.release()

            @client.once("bill-{number}", key="only")
            async def bill(number: int) -> str:
                return f"billed {number}"

            assert await bill(42) == leasehold.Ran("billed 42") and isinstance(await bill(42), leasehold.AlreadyDone)
            async with client.once("report", key="monday") as run:
                assert run is not None
                async with (once := rival.once("report", key="monday")) as none:
                    assert none is None and isinstance(once.outcome, leasehold.RunningElsewhere)
            assert (await client.inspect_run("report", "monday")).done is not None
            await client.close()
            with pytest.raises(leasehold.ClosedError):
                await client.acquire("job")

    asyncio.run(asyncio.wait_for(body(), PATIENCE))


@pytest.mark.parametrize("two", [fakes, reals])
def test_tasks_take_turns(two: Pair) -> None:
    async def body() -> None:
        async with two() as (client, rival):
            inside = 0

            async def work(who: aio.Client) -> None:
                nonlocal inside
                async with who.lock("job", ttl=TTL):
                    inside += 1
                    assert inside == 1
                    for _ in range(3):
                        await asyncio.sleep(0)
                    inside -= 1

            await asyncio.gather(*(work(who) for _ in range(8) for who in (client, rival)))

    run(body())


def test_waiting_lets_other_tasks_run_before_the_clock_moves() -> None:
    async def body() -> None:
        async with fakes() as (client, rival):
            assert isinstance(client, testing.FakeAsyncClient)
            before, lease = client.clock.now(), await client.acquire("job")
            waiting = asyncio.create_task(rival.acquire("job", wait=10))
            await asyncio.sleep(0)
            await lease.release()
            await (await waiting).release()
            assert client.clock.now() == before
            held = await client.acquire("job", ttl=TTL, renew=False)
            other = await rival.acquire("job", wait=2 * TTL)
            assert held.lost.is_set() and TTL - 1 < client.clock.now() - before < 2 * TTL and other.token > held.token
            with pytest.raises(RuntimeError, match="never ends"):
                await client.acquire("job")
            await other.release()

    run(body())


def test_a_loss_cancels_the_body_and_calls_back() -> None:
    async def body() -> None:
        async with fakes() as (client, rival):
            assert isinstance(client, testing.FakeAsyncClient)
            told: list[str] = []
            with pytest.raises(leasehold.LeaseLostError):
                async with client.lock("job", on_lost="cancel") as lease:
                    lease.on_lost(lambda error: told.append(str(type(error).__name__)))
                    client.lose("job")
                    await asyncio.Event().wait()
            assert told == ["LeaseLostError"] and isinstance(await lease.lost.wait(), leasehold.LeaseLostError)
            client.store_down()
            with pytest.raises(leasehold.StoreUnavailableError):
                await rival.acquire("job", wait=3)
            client.store_up()
            async with rival.lock("job", on_lost="cancel", wait=TTL):
                await asyncio.sleep(0)

    run(body())


@pytest.mark.parametrize("two", [fakes, reals])
def test_an_election_calls_back_in_order(two: Pair) -> None:
    async def body() -> None:
        async with two() as (client, rival):
            told: list[object] = []
            leads = asyncio.Event()

            async def started(lease: aio.Lease) -> None:
                await asyncio.sleep(0)
                lease.check()
                told.append("start")
                leads.set()

            async def stopped(error: leasehold.LeaseholdError | None) -> None:
                await asyncio.sleep(0)
                assert await rival.try_acquire("leader") is None, "it is held until the work has stopped"
                told.append(error)

            async with client.elect("leader", ttl=TTL, on_start=started, on_stop=stopped) as election:
                await leads.wait()
                assert election.token is not None and await rival.try_acquire("leader") is None
            assert told == ["start", None] and election.token is None
            await (await rival.acquire("leader", wait=0)).release()

    run(body())


def test_code_can_be_tested_for_a_lost_election() -> None:
    async def body() -> None:
        async with fakes() as (client, rival):
            assert isinstance(client, testing.FakeAsyncClient) and isinstance(rival, testing.FakeAsyncClient)
            told: list[str] = []

            async def stopped(error: leasehold.LeaseholdError | None) -> None:
                told.append(f"I stop: {error and error.code}")

            mine = await client.elect("leader", on_start=lambda lease: told.append("I lead"), on_stop=stopped)
            theirs = await rival.elect("leader", on_start=lambda lease: told.append("they lead"))
            assert told == ["I lead"]
            client.lose("leader")
            await client.settle()
            await rival.settle()
            assert sorted(told[1:]) == ["I stop: lost", "they lead"]
            assert theirs.token is not None
            await rival.close()
            await client.settle()
            assert told[3:] == ["I lead"] and mine.token is not None
            await mine.resign()

    run(body())


def test_a_watch_sees_each_change() -> None:
    async def body() -> None:
        async with fakes() as (client, rival):
            changes = rival.watch("job", every=1)
            assert (await changes.__anext__()).kind == "free"
            following = asyncio.create_task(changes.__anext__())
            async with client.lock("job"):
                assert (await following).kind == "held"

    run(body())
