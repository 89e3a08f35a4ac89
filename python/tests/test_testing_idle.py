"""Fake clients for asyncio: a loop that is idle moves the clock, and nothing else does."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from conftest import LOOPS, PATIENCE

import leasehold
import leasehold.aio as aio
from leasehold import testing

TTL = 30.0
MANY = 500
"""Turns of a loop after which it was idle for long enough."""


@pytest.fixture(params=LOOPS)
def loop_name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def run(body: Coroutine[Any, Any, None], loop: str = "asyncio") -> None:
    made = LOOPS[loop]()
    try:
        made.run_until_complete(asyncio.wait_for(body, PATIENCE))
    finally:
        made.close()


async def turns(count: int = MANY) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def two() -> tuple[testing.FakeAsyncClient, testing.FakeAsyncClient]:
    clock = testing.FakeClock()
    return testing.connect_async(clock, owner="me"), testing.connect_async(clock, owner="rival")


def test_an_idle_loop_moves_the_clock_for_calls_that_wait(loop_name: str) -> None:
    async def body() -> None:
        client, rival = two()
        held = await client.acquire("job", ttl=TTL)
        with pytest.raises(leasehold.LockTimeoutError):
            await rival.acquire("job", wait=7)
        assert client.clock.now() == 7
        await turns()
        assert client.clock.now() == 7, "no call waits"
        await held.release()
        client.clock.late(0.1)
        await (await rival.acquire("job", wait=0)).release()
        assert client.clock.now() == pytest.approx(7.2)

    run(body(), loop_name)


def test_other_tasks_run_before_the_clock_moves() -> None:
    async def body() -> None:
        client, rival = two()
        held = await client.acquire("job", ttl=TTL)
        waiting = asyncio.create_task(rival.acquire("job", wait=7))
        await turns(15)
        await held.release()
        await (await waiting).release()
        assert client.clock.now() == 0

    run(body())


def test_waiting_for_a_loss_moves_no_clock(loop_name: str) -> None:
    async def body() -> None:
        client, rival = two()
        async with client.lock("job", ttl=TTL, on_lost="cancel") as lease:
            waiting = asyncio.create_task(lease.lost.wait())
            await turns()
            assert client.clock.now() == 0 and not waiting.done()
            with pytest.raises(leasehold.LockTimeoutError):
                await rival.acquire("job", wait=2 * TTL)
            await turns()
            assert client.clock.now() == 2 * TTL and not waiting.done(), "only as far as the other call has waited"
            waiting.cancel()

    run(body(), loop_name)


def test_a_wait_that_never_ends_is_an_error_of_the_test() -> None:
    async def body() -> None:
        client, rival = two()
        held = await client.acquire("job", ttl=TTL)
        endless = asyncio.create_task(rival.acquire("job"))
        limited = asyncio.create_task(rival.acquire("job", wait=7_200))
        with pytest.raises(leasehold.LockTimeoutError):
            await limited
        assert client.clock.now() == 7_200 and not endless.done()
        with pytest.raises(RuntimeError, match="never ends") as raised:
            await endless
        assert type(raised.value) is RuntimeError
        changes = rival.watch("job", every=60)
        assert (await changes.__anext__()).kind == "held"
        with pytest.raises(RuntimeError, match="never ends"):
            await changes.__anext__()
        await held.release()

    run(body())


def test_each_clock_of_a_loop_moves_by_itself() -> None:
    async def body() -> None:
        (first, _), (second, _) = two(), two()
        held = [await client.acquire("job", ttl=TTL) for client in (first, second)]
        rivals = [testing.connect_async(client.clock) for client in (first, second)]
        late = [asyncio.create_task(rival.acquire("job", wait=wait)) for rival, wait in zip(rivals, (5, 50))]
        for task in late:
            with pytest.raises(leasehold.LockTimeoutError):
                await task
        assert (first.clock.now(), second.clock.now()) == (5, 50)
        for lease in held:
            await lease.release()

    run(body())


def test_time_stands_still_while_the_end_of_a_term_waits_for_its_callback(loop_name: str) -> None:
    async def body() -> None:
        client, rival = two()
        told: list[object] = []

        async def stopped(error: leasehold.LeaseholdError | None) -> None:
            await turns()
            told.append(client.clock.now())
            assert await rival.try_acquire("leader") is None
            with pytest.raises(leasehold.LockTimeoutError):
                await rival.acquire("leader", wait=5)
            told.append(client.clock.now())

        async with client.elect("leader", ttl=TTL, on_stop=stopped):
            pass
        assert told == [0, 5], "a call of the callback that waits moves it"
        await (await rival.acquire("leader", wait=0)).release()

    run(body(), loop_name)


def test_a_callback_that_raises_ends_a_term(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[object, str]] = []
    monkeypatch.setattr("sys.unraisablehook", lambda raised: shown.append((raised.exc_type, repr(raised.object))))

    async def fail(lease: aio.Lease) -> None:
        await asyncio.sleep(0)
        raise ZeroDivisionError

    async def body() -> None:
        client, _ = two()
        election = await client.elect("leader", on_start=fail)
        assert isinstance(election.last_error, leasehold.CallbackError) and await client.inspect("leader") is None
        assert [kind for kind, _ in shown] == [ZeroDivisionError] and "fail" in shown[0][1]
        with pytest.raises(ZeroDivisionError):
            await election.resign()

    run(body())


def test_shards_are_shared(loop_name: str) -> None:
    async def body() -> None:
        client, rival = two()
        told: list[tuple[str, int]] = []

        async def gained(shard: aio.Shard) -> None:
            await asyncio.sleep(0)
            told.append(("gain", shard.index))

        async def lost(shard: aio.Shard, error: leasehold.LeaseholdError | None) -> None:
            told.append(("loss", shard.index))
            if error is None:
                # It may stop its own worker.
                await mine.stop()

        mine = client.shards("mail", 4, on_gain=gained, on_loss=lost)
        await client.settle()
        assert sorted(told) == [("gain", index) for index in range(4)] and len(mine.held) == 4
        client.lose("mail#shard1")
        await client.settle()
        assert told[4:] == [("loss", 1), ("gain", 1)]
        theirs = rival.shards("mail", 4)
        for _ in range(3):
            client.clock.advance(6)
            await client.settle()
        assert [shard.index for shard in theirs.held] == [0, 1, 2, 3] and mine.held == []
        await theirs.stop()
        await rival.close()

    run(body(), loop_name)


def test_the_end_of_a_loop_ends_callbacks_under_way() -> None:
    clock = testing.FakeClock()
    begun: list[str] = []

    async def forever(lease: aio.Lease) -> None:
        begun.append("start")
        try:
            await asyncio.Event().wait()
        finally:
            begun.append("end")

    async def body() -> None:
        client = testing.connect_async(clock)
        client.elect("leader", on_start=forever)
        await turns(5)

    asyncio.run(body())
    assert begun == ["start", "end"]
    clock.settle()
    with testing.connect(clock).lock("leader", wait=2 * TTL):
        pass
