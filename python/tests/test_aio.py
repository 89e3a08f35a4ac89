"""The client on event loops: asyncio's own and uvloop's."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import os
import selectors
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from conftest import LOOPS, PATIENCE, REQUEST_TIMEOUT, TTL, Server, unix

import leasehold
import leasehold.aio as aio
from leasehold import _aio_loop

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a test's body on a separate loop, with a time limit."""

    def run(body: Coroutine[Any, Any, None]) -> None:
        loop = LOOPS[request.param]()
        try:
            loop.run_until_complete(asyncio.wait_for(body, PATIENCE))
        finally:
            loop.close()

    return run


async def connect(store: str) -> aio.Client:
    return await aio.connect(store, request_timeout=REQUEST_TIMEOUT)


async def eventually(what: str, holds: Callable[[], Awaitable[bool]]) -> None:
    """As in the other tests, while the loop runs."""
    end = asyncio.get_running_loop().time() + PATIENCE
    while not await holds():
        assert asyncio.get_running_loop().time() < end, what
        await asyncio.sleep(0.01)


def under_way() -> int:
    return len(_aio_loop.reactor_of(asyncio.get_running_loop()))


def run_to_the_end() -> None:
    """Completes pending operations while the loop itself does not run."""
    reactor = _aio_loop.reactor_of(asyncio.get_running_loop())
    end = time.monotonic() + PATIENCE
    while len(reactor):
        assert time.monotonic() < end
        time.sleep(0.001)
        reactor.run()


async def begun(operations: int) -> None:
    async def is_so() -> bool:
        return under_way() == operations

    await eventually(f"{operations} operations are under way", is_so)


async def is_free(client: aio.Client, name: str) -> bool:
    return await client.inspect(name) is None


def test_a_lock_has_one_holder_at_a_time(run: Run, store: str, name: str) -> None:
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
                other = await client.release_if(name, token=lease.token + 1)
                assert not other and other.holder is not None
                another = await client.revoke(name, lease.token + 1)
                assert not another and another.holder is not None and not another.holder.revoked
            assert await is_free(client, name)
            again = await client.acquire(name, ttl=TTL)
            assert again.token > lease.token
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
        await begun(len(waiting))
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


def test_a_lease_granted_during_a_cancellation_is_released(run: Run, memory: str, name: str) -> None:
    async def body() -> None:
        client = await connect(memory)
        lease = await client.acquire(name, ttl=3600)
        task = asyncio.create_task(client.acquire(name, ttl=3600))
        await begun(1)
        await lease.release()
        # Then the grant is recorded, and the loop has not seen it.
        run_to_the_end()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await task
        await eventually("it is given back", lambda: is_free(client, name))
        del cancelled
        # As with several locks.
        lease = await client.acquire(f"{name}-2", ttl=3600)
        several = asyncio.create_task(client.lock_all([name, f"{name}-2"], ttl=3600))
        await begun(1)
        await lease.release()
        run_to_the_end()
        several.cancel()
        with pytest.raises(asyncio.CancelledError) as cancelled:
            await several
        for each in (name, f"{name}-2"):
            await eventually("it is given back", lambda each=each: is_free(client, each))  # type: ignore[misc]
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
        # A cancellation by somebody else stays a cancellation.
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
        lock = client.lock(f"{name}/3", ttl=TTL, on_lost="cancel")
        async with lock:
            assert under_way() == 1
            watch = lock._held[0][2]
            assert watch is not None
            # The task learns of it in the loop's next step, when the body has ended.
            watch._waiter.set_result(leasehold.LeaseLostError("late"))
        assert under_way() == 0, "nobody watches any more"
        await asyncio.sleep(0)
        await eventually("all is free", lambda: is_free(client, f"{name}/2"))
        await client.close()

    run(body())
    with pytest.raises(leasehold.ConfigError, match="on_lost"):
        run(_bad_on_lost())


async def _bad_on_lost() -> None:
    (await aio.connect("memory:")).lock("job", on_lost="ignore")  # type: ignore[arg-type]


def test_a_lost_lease_reports_the_loss(run: Run, store: str, name: str) -> None:
    async def body() -> None:
        client = await connect(store)
        told: asyncio.Queue[BaseException] = asyncio.Queue()
        with pytest.raises(leasehold.LeaseLostError):
            async with await client.acquire(name, ttl=0.3, renew=False) as lease:
                lease.on_lost(told.put_nowait)
                lease.on_lost(told.put)
                with pytest.raises(TypeError, match="callback"):
                    lease.on_lost(7)  # type: ignore[arg-type]
                assert isinstance(await lease.lost.wait(), leasehold.LeaseLostError)
                assert lease.lost.is_set() and isinstance(lease.lost.reason, leasehold.LeaseLostError)
        # From the function and from the coroutine function.
        for _ in range(2):
            assert isinstance(await told.get(), leasehold.LeaseLostError)
        async with await client.acquire(f"{name}/2", ttl=TTL) as lease:
            assert not lease.lost.is_set() and lease.lost.reason is None
        await client.close()

    run(body())


def test_a_lock_broken_since_the_last_renewal_is_reported_at_the_end_of_the_body(run: Run, store: str, name: str) -> None:
    async def body() -> None:
        async with await connect(store) as client, await connect(store) as other:
            with pytest.raises(leasehold.LeaseLostError) as lost:
                async with client.lock(name, ttl=3_600) as lease:
                    assert await other.release_if(name, token=lease.token)
            assert lost.value.resource == name and lease.lost.is_set()
            with pytest.raises(ZeroDivisionError):
                async with client.lock(name, ttl=3_600) as lease:
                    assert await other.release_if(name, token=lease.token)
                    _ = 1 / 0
            lease = await client.acquire(name, ttl=3_600)
            assert await other.release_if(name, token=lease.token)
            rival = await other.acquire(name, wait=0)
            with pytest.raises(leasehold.LeaseLostError, match="somebody else holds the lock now"):
                await lease.release()
            await rival.release()

    run(body())


def test_it_behaves_like_an_asyncio_lock(run: Run, memory: str, name: str) -> None:
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
        with pytest.raises(TypeError, match="coroutine function"):
            client.lock("report")(lambda: 3)  # type: ignore[arg-type, return-value]
        with pytest.raises(TypeError, match="does not wait"):
            await client.try_acquire(name, wait=3)  # type: ignore[call-arg]

        class Caller:
            async def __call__(self) -> bool:
                return await is_free(client, "called")

        assert await client.lock("called")(Caller())() is False
        assert await client.lock("called")(functools.partial(is_free, client, "called"))() is False
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
            assert election.token == happened[0] and election.last_error is None
        assert happened[1:] == [None] and election.token is None
        with pytest.raises(TypeError, match="callback"):
            client.elect(name, on_stop=7)  # type: ignore[arg-type]
        await client.close()

    run(body())


def test_an_election_that_is_dropped_on_its_loop_steps_down(run: Run, memory: str, name: str) -> None:
    async def body() -> None:
        client = await connect(memory)
        leads, over = asyncio.Event(), asyncio.Event()

        async def start(lease: aio.Lease) -> None:
            leads.set()

        async def stop(error: leasehold.LeaseholdError | None) -> None:
            over.set()

        election = client.elect(name, ttl=TTL, on_start=start, on_stop=stop)
        await leads.wait()
        del election
        await over.wait()
        await eventually("it is free", lambda: is_free(client, name))
        await client.close()

    run(body())


def test_pending_operations_end_with_their_loop(memory: str, name: str) -> None:
    client = leasehold.connect(memory)
    for new_loop in LOOPS.values():
        held = client.acquire(name, ttl=TTL)

        async def begin() -> None:
            waits = asyncio.ensure_future(aio.Client(client._native).acquire(name, ttl=3600))
            await asyncio.sleep(0)
            assert under_way() == 1 and not waits.done()

        loop = new_loop()
        loop.run_until_complete(begin())
        loop.close()
        collected = weakref.ref(loop)
        del loop
        gc.collect()
        assert collected() is None
        held.release()
        # No other waiter is in the queue; it would keep the lock for an hour.
        client.acquire(name, ttl=TTL, wait=PATIENCE).release()
    client.close()


def test_one_failing_waiter_leaves_the_others_not_waiting(memory: str, name: str) -> None:
    client = leasehold.connect(memory)
    told: list[int] = []

    class Failing:
        def __init__(self, number: int) -> None:
            self.number = number

        def done(self) -> bool:
            told.append(self.number)
            raise ValueError(self.number)

    held = client.acquire(name, ttl=TTL)
    loop = asyncio.new_event_loop()
    reactor = leasehold._native.Reactor(loop, True)
    for number in range(4):
        reactor.start(client._native.request(name).begin_acquire(), Failing(number))
    # It ends all four before the loop checks them.
    client.close()
    with pytest.raises(ValueError):
        reactor.run()
    assert sorted(told) == [0, 1, 2, 3]
    assert held.remaining() == 0
    loop.close()


def test_a_blocked_loop_loses_no_lease(run: Run, sqlite: str, name: str) -> None:
    async def body() -> None:
        import time

        client = await connect(sqlite)
        async with client.lock(name, ttl=4) as lease:
            # The fault: the loop is blocked for longer than the ttl.
            time.sleep(6)
            lease.check()
        await client.close()

    run(body())


@unix
def test_one_client_serves_several_loops_and_leaves_nothing_open(memory: str, name: str) -> None:
    client = leasehold.aio.Client(leasehold.connect(memory)._native)

    async def use() -> None:
        async with client.lock(name, ttl=TTL):
            pass

    asyncio.run(use())
    gc.collect()
    before = len(os.listdir("/dev/fd"))
    for _ in range(50):
        asyncio.run(use())
    gc.collect()
    # Leftovers of other tests may close or open some meanwhile, but not so many.
    assert len(os.listdir("/dev/fd")) < before + 50


def test_closing_a_coroutine_cancels_its_operation(memory: str, name: str) -> None:
    async def body() -> None:
        client = await connect(memory)
        lease = await client.acquire(name, ttl=3600)
        coroutine = client.acquire(name, ttl=3600, wait=3600)
        coroutine.send(None)
        coroutine.close()
        await lease.release()
        await (await client.acquire(name, ttl=TTL, wait=PATIENCE)).release()
        await client.close()

    asyncio.run(body())


def test_three_stores_are_a_quorum(run: Run, name: str) -> None:
    nodes = [Server("redis") for _ in range(3)]

    async def body() -> None:
        urls = [node.url for node in nodes]
        client = await aio.connect(urls, create_quorum=True, request_timeout=REQUEST_TIMEOUT)
        nodes[0].kill()
        async with client.lock(name, ttl=TTL) as lease:
            info = await client.inspect(name)
            assert info is not None and (info.token, info.nodes) == (lease.token, 3) and info.votes >= 2
            assert await client.try_acquire(name) is None
        with contextlib.suppress(leasehold.StoreUnavailableError):
            await client.close()

    try:
        run(body())
    finally:
        for node in nodes:
            node.close()


def test_acquire_with_a_wait_of_0_returns_false_when_busy(run: Run, store: str, name: str) -> None:
    async def body() -> None:
        async with await connect(store) as client, await connect(store) as other, other.lock(name, ttl=TTL):
            assert await client.lock(name, wait=0).acquire() is False

    run(body())


def test_a_coroutine_callback_of_a_loss_survives_garbage_collection(run: Run, memory: str, name: str) -> None:
    async def body() -> None:
        waits: list[weakref.ref[asyncio.Future[str]]] = []
        told: list[str] = []
        begun = asyncio.Event()

        async def stop(error: leasehold.LeaseholdError) -> None:
            # Only this coroutine refers to the awaited future.
            future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            waits.append(weakref.ref(future))
            begun.set()
            told.append(await future)

        async with await connect(memory) as client:
            lease = await client.acquire(name, ttl=0.1, renew=False)
            lease.on_lost(stop)
            await begun.wait()
            gc.collect()
            waited = waits[0]()
            assert waited is not None, "the coroutine was collected"
            waited.set_result("stopped")
            del waited

            async def is_told() -> bool:
                return told == ["stopped"]

            await eventually("it goes on", is_told)

    run(body())


def test_an_idle_loop_sleeps(redis: str, name: str) -> None:
    looks = 0

    class Counting(selectors.DefaultSelector):
        def select(self, timeout: float | None = None) -> Any:
            nonlocal looks
            looks += 1
            return super().select(timeout)

    async def body() -> None:
        async with await connect(redis) as client, client.lock(name, ttl=TTL), await connect(redis) as other:
            waits = asyncio.create_task(other.acquire(name, wait=PATIENCE))
            await begun(1)
            await asyncio.sleep(0.2)
            before = looks
            await asyncio.sleep(1)
            # A loop that does not sleep polls some hundred thousand times.
            assert looks - before < 100
            waits.cancel()
            await asyncio.gather(waits, return_exceptions=True)

    loop = asyncio.SelectorEventLoop(Counting())
    try:
        loop.run_until_complete(body())
    finally:
        loop.close()
