"""Runs on event loops."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import pytest
from conftest import TTL, Server, unix, without_left
from test_aio import Run as Runner
from test_aio import connect, eventually
from test_aio import run as run
from test_observe import listen

import leasehold
import leasehold.aio as aio
from leasehold import AlreadyDone, Ran, RunningElsewhere


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(request.param)
    return url


async def is_open(client: aio.Client, name: str, key: str | None = None) -> bool:
    info = await client.inspect_run(name, key)
    return info.holder is None and info.done is None


async def stands_by(caplog: pytest.LogCaptureFixture, name: str) -> None:
    async def is_told() -> bool:
        fields = {"event": "lock.contended", "resource": f"{name}@"}
        return any(fields.items() <= vars(record).items() for record in tuple(caplog.records))

    await eventually("somebody stands by", is_told)


def test_a_key_is_done_once(run: Runner, store: str, name: str) -> None:
    async def body() -> None:
        async with await connect(store) as client, await connect(store) as other:
            async with client.once(name, key="s", ttl=TTL) as work:
                assert isinstance(work, aio.Run) and isinstance(work, aio.Lease) and work
                work.check(0.1)
                late = other.once(name, key="s")
                async with late as nothing:
                    assert nothing is None
                assert isinstance(late.outcome, RunningElsewhere) and late.outcome.holder is not None
            async with late as nothing:
                assert nothing is None
            assert isinstance(late.outcome, AlreadyDone) and late.outcome.token == work.token
            completion = await other.forget_run(name, "s")
            assert completion is not None and completion.token == work.token

            async def is_forgotten() -> bool:
                return await is_open(client, name, "s")

            await eventually("the completion is gone", is_forgotten)
            async with late as again:
                assert again is not None and late.outcome is None

    run(body())


@pytest.mark.parametrize("ending", [ZeroDivisionError, SystemExit, asyncio.CancelledError])
def test_an_exception_leaves_no_completion(run: Runner, store: str, name: str, ending: type[BaseException]) -> None:
    async def body() -> None:
        async with await connect(store) as client:
            with pytest.raises(ending):
                async with client.once(name, keep=604_800, ttl=TTL):
                    raise ending
            assert await is_open(client, name)

    run(body())


def test_a_cancelled_body_leaves_no_completion(run: Runner, store: str, name: str) -> None:
    async def body() -> None:
        async with await connect(store) as client:
            runs = asyncio.Event()

            @client.once(name, keep=604_800, ttl=TTL)
            async def work() -> None:
                runs.set()
                await asyncio.sleep(3600)

            task = asyncio.ensure_future(work())
            await runs.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await is_open(client, name)

    run(body())


def test_a_cancelled_stand_by_gets_nothing(
    run: Runner, store: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    listen(caplog, logging.DEBUG)

    async def body() -> None:
        async with await connect(store) as client, await connect(store) as other:

            async def stand_by() -> None:
                async with other.once(name, keep=604_800, ttl=TTL, wait=3600):
                    raise AssertionError

            async with client.once(name, keep=604_800, ttl=TTL):
                task = asyncio.ensure_future(stand_by())
                await stands_by(caplog, name)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert (await client.inspect_run(name)).done

    run(body())


def test_a_stand_by_learns_that_the_work_is_done(
    run: Runner, store: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    listen(caplog, logging.DEBUG)

    async def body() -> None:
        async with await connect(store) as client, await connect(store) as other:
            calls = 0

            async def work() -> int:
                nonlocal calls
                calls += 1
                await stands_by(caplog, name)
                return calls

            workers = [each.once(name, keep=604_800, ttl=TTL, wait=3600)(work) for each in (client, other)]
            first, second = await asyncio.gather(*(worker() for worker in workers))
            assert {type(first), type(second)} == {Ran, AlreadyDone} and Ran(1) in (first, second)

    run(body())


def test_a_body_may_finish_or_release_by_itself(run: Runner, store: str, name: str) -> None:
    async def body() -> None:
        async with await connect(store) as client:
            async with client.once(name, key="finished", ttl=TTL) as work:
                assert work is not None
                await work.finish()
                with pytest.raises(leasehold.NotOwnedError):
                    await work.finish()
            assert (await client.inspect_run(name, "finished")).done
            async with client.once(name, key="released", ttl=TTL) as work:
                assert work is not None
                await work.release()
            assert await is_open(client, name, "released")

    run(body())


def test_a_lost_run_writes_no_completion(run: Runner, store: str, name: str) -> None:
    async def body() -> None:
        async with await connect(store) as client, await connect(store) as other:
            with pytest.raises(leasehold.LeaseLostError):
                async with client.once(name, keep=604_800, ttl=1) as work:
                    assert work is not None
                    assert await other.release_if(work.resource, token=work.token)
                    await work.lost.wait()
            assert (await client.inspect_run(name)).done is None
            with pytest.raises(leasehold.LeaseLostError):
                async with client.once(name, key="not renewed", ttl=0.3, renew=False) as work:
                    assert work is not None
                    await work.lost.wait()
            assert (await client.inspect_run(name, "not renewed")).done is None
            with pytest.raises(leasehold.LeaseholdError):
                async with client.once(name, keep=604_800, ttl=TTL):
                    await client.close()
            assert (await other.inspect_run(name)).done is None

    run(body())


@unix
def test_a_store_that_does_not_answer_leaves_a_finish_unconfirmed(run: Runner) -> None:
    server = Server("redis")

    async def body() -> None:
        client = await aio.connect(server.url, request_timeout=0.2)
        with pytest.raises(leasehold.FinishUnconfirmedError):
            async with client.once("job", keep=604_800, ttl=1):
                server.freeze()
        with contextlib.suppress(leasehold.StoreUnavailableError):
            await client.close()

    try:
        run(body())
    finally:
        server.close()


def test_a_cancelled_finish_goes_on(run: Runner, store: str, name: str) -> None:
    async def body() -> None:
        async with await connect(store) as client:

            async def work() -> None:
                task = asyncio.current_task()
                assert task is not None
                async with client.once(name, keep=604_800, ttl=TTL):
                    # While it finishes.
                    asyncio.get_running_loop().call_soon(task.cancel)

            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.ensure_future(work())

            async def is_done() -> bool:
                return (await client.inspect_run(name)).done is not None

            await eventually("the completion stands", is_done)

    run(body())


def test_a_decorated_coroutine_function_is_called_once(run: Runner, store: str, name: str) -> None:
    async def body() -> None:
        async with await connect(store) as client:

            @client.once(name + "-{day}", key="{part}", ttl=TTL)
            async def report(day: str, part: int = 1) -> str:
                """Reports."""
                if part == 3:
                    raise ZeroDivisionError
                return f"{day}.{part}"

            assert report.__doc__ == "Reports."
            assert await report("mon") == Ran("mon.1")
            assert isinstance(await report("mon", 1), AlreadyDone)
            assert await report("mon", 2) == Ran("mon.2")
            for _ in range(2):
                with pytest.raises(ZeroDivisionError):
                    await report("mon", part=3)
            with pytest.raises(TypeError):
                client.once(name, keep=604_800)(lambda: None)  # type: ignore[arg-type, return-value]
            with pytest.raises(leasehold.ConfigError):
                client.once(name, key="s", cooldown=60)

    run(body())


def test_runs_are_listed(run: Runner, store: str, name: str) -> None:
    async def body() -> None:
        async with await connect(store) as client:
            async with client.once(name, key="mon", ttl=TTL) as work:
                assert work
                [under_way] = [each async for each in client.runs(f"{name}@")]
                assert under_way.done is None and under_way.holder is not None and under_way.holder.token == work.token
            [done] = [each async for each in client.runs(f"{name}@")]
            assert without_left(done) == without_left(await client.inspect_run(name, "mon")) and done.done is not None

    run(body())
