"""Elections: callbacks that resign, fail, or are slow, and loops that are closed meanwhile."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from conftest import LOOPS, PATIENCE, TTL, connect, eventually, until

import leasehold
import leasehold.aio as aio
from leasehold import _aio_loop
from leasehold._within import Callbacks

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> asyncio.AbstractEventLoop:
    return LOOPS[request.param]()


@pytest.fixture
def run(loop: asyncio.AbstractEventLoop) -> Run:
    """Runs a body on a loop that is closed afterwards, even with pending work."""

    def run(body: Coroutine[Any, Any, None]) -> None:
        try:
            loop.run_until_complete(asyncio.wait_for(body, PATIENCE))
        finally:
            loop.close()

    return run


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The types of exceptions raised by callbacks."""
    shown: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: shown.append(unraisable.exc_type))
    return shown


def free(client: leasehold.Client, name: str) -> bool:
    return client.inspect(name) is None


def test_a_callback_may_resign(memory: str, name: str) -> None:
    client = connect(memory)
    elections: list[leasehold.Election] = []
    resigned: list[str] = []
    stands = threading.Event()

    def start(lease: leasehold.Lease) -> None:
        assert stands.wait(PATIENCE)
        elections[0].resign()
        resigned.append("start")

    def stop(error: leasehold.LeaseholdError | None) -> None:
        assert error is None
        with elections[0]:
            resigned.append("stop")

    elections.append(client.elect(name, ttl=TTL, on_start=start, on_stop=stop))
    stands.set()
    eventually("it is free", lambda: "over" in repr(elections[0]))
    assert resigned == ["start", "stop"] and free(client, name)
    # Afterwards, and outside the callback, resigning waits for the end.
    elections[0].resign()
    client.close()


def test_a_callback_on_a_loop_may_resign(run: Run, memory: str, name: str) -> None:
    async def body() -> None:
        client = await aio.connect(memory)
        over = asyncio.Event()
        resigned: list[str] = []

        async def start(lease: aio.Lease) -> None:
            # In another task as well.
            await asyncio.wait_for(election.resign(), PATIENCE)
            await election.resign()
            resigned.append("start")

        async def stop(error: leasehold.LeaseholdError | None) -> None:
            await election.resign()
            resigned.append("stop")
            over.set()

        election = client.elect(name, ttl=TTL, on_start=start, on_stop=stop)
        await over.wait()
        await election.resign()
        assert resigned == ["start", "stop"] and await client.inspect(name) is None
        await client.close()

    run(body())


def test_a_task_started_by_a_callback_is_within_it_only_while_it_runs() -> None:
    callbacks, others = Callbacks(), Callbacks()
    kept: list[contextvars.Context] = []

    def within(_: object) -> object:
        kept.append(contextvars.copy_context())
        return callbacks.is_within(), others.is_within(), kept[0].run(callbacks.is_within)

    call = callbacks.own(within)
    assert repr(call) == repr(within)
    assert contextvars.copy_context().run(call, None) == (True, False, True)
    assert kept[0].run(callbacks.is_within) is False
    # It is not within the next call.
    assert contextvars.copy_context().run(call, None) == (True, False, False)


def test_a_term_that_is_over_is_none(memory: str, name: str) -> None:
    client = connect(memory)
    terms: list[int | None] = []
    began, go_on, over = threading.Event(), threading.Event(), threading.Event()

    def start(lease: leasehold.Lease) -> None:
        # Its lease ends while it runs.
        lease.release()
        began.set()
        assert go_on.wait(PATIENCE)

    def stop(error: leasehold.LeaseholdError | None) -> None:
        terms.append(election.token)
        over.set()

    election = client.elect(name, ttl=TTL, on_start=start, on_stop=stop)
    assert began.wait(PATIENCE)
    assert election.token is None and "standing" in repr(election)
    go_on.set()
    assert over.wait(PATIENCE)
    election.resign()
    assert set(terms) == {None}
    client.close()


def test_a_candidate_whose_coroutine_raises_stands_again(
    run: Run, memory: str, name: str, shown: list[object]
) -> None:
    async def body() -> None:
        client = await aio.connect(memory)
        began, stopped = asyncio.Event(), asyncio.Event()

        async def start(lease: aio.Lease) -> None:
            await asyncio.sleep(0)
            if not stopped.is_set():
                raise ZeroDivisionError("on purpose")
            began.set()

        async def stop(error: leasehold.LeaseholdError | None) -> None:
            stopped.set()

        election = client.elect(name, ttl=TTL, on_start=start, on_stop=stop)
        await stopped.wait()
        while await client.inspect(name) is not None:
            await asyncio.sleep(0.01)
        error = election.last_error
        assert isinstance(error, leasehold.CallbackError) and isinstance(error.__cause__, ZeroDivisionError)
        assert str(error) == f'"{name}": on_start has raised ZeroDivisionError: on purpose'
        await began.wait()
        await until(lambda: election.last_error is None)
        await election.resign()
        await client.close()

    run(body())
    assert shown == [ZeroDivisionError]


def test_the_exception_of_a_coroutine_is_raised_at_the_end(
    run: Run, memory: str, name: str, shown: list[object]
) -> None:
    async def body() -> None:
        client = await aio.connect(memory)

        async def start(lease: aio.Lease) -> None:
            raise ZeroDivisionError("on purpose")

        with pytest.raises(ZeroDivisionError, match="on purpose"):
            async with client.elect(name, ttl=TTL, on_start=start) as election:
                await until(lambda: election.last_error)
        await client.close()

    run(body())
    assert set(shown) == {ZeroDivisionError}


def test_the_exception_of_a_callback_is_raised_at_the_end(
    memory: str, name: str, shown: list[object], caplog: pytest.LogCaptureFixture
) -> None:
    client = connect(memory)

    def fails(error: object) -> None:
        raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError, match="on purpose") as raised:
        with client.elect(name, ttl=TTL, on_start=fails) as election:
            eventually("it is known", lambda: election.last_error is not None)
    assert [entry.name for entry in raised.traceback][-1] == "fails"
    with pytest.raises(ZeroDivisionError):
        with client.elect(name, ttl=TTL, on_stop=fails) as election:
            eventually("it leads", lambda: election.token is not None)
    # That of the body says more.
    with pytest.raises(KeyError):
        with client.elect(name, ttl=TTL, on_stop=fails) as election:
            eventually("it leads", lambda: election.token is not None)
            raise KeyError
    assert free(client, name)

    def told() -> bool:
        texts = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        return any("callback.failed" in text and "on_stop has raised ZeroDivisionError" in text for text in texts)

    eventually("the log has it", told)
    client.close()


def test_the_next_step_waits_for_a_coroutine_that_is_slow(run: Run, memory: str, name: str) -> None:
    async def body() -> None:
        client = await aio.connect(memory)
        may_return, began = asyncio.Event(), asyncio.Event()
        happened: list[str] = []

        async def start(lease: aio.Lease) -> None:
            began.set()
            await may_return.wait()
            happened.append("started")

        async def stop(error: leasehold.LeaseholdError | None) -> None:
            happened.append("stopped")

        election = client.elect(name, ttl=TTL, on_start=start, on_stop=stop)
        await began.wait()
        resigning = asyncio.ensure_future(election.resign())
        # Longer than the time between two checks of the loop.
        await asyncio.sleep(2 * _aio_loop.LOOK)
        assert happened == [] and not resigning.done()
        may_return.set()
        await resigning
        assert happened == ["started", "stopped"] and await client.inspect(name) is None
        await client.close()

    run(body())


@pytest.mark.parametrize("callback", ["none", "done", "pending"])
def test_an_election_ends_with_its_loop(
    callback: str, loop: asyncio.AbstractEventLoop, run: Run, memory: str, name: str, shown: list[object]
) -> None:
    client = connect(memory)
    kept: list[aio.Election] = []

    async def body() -> None:
        began = asyncio.Event()

        async def start(lease: aio.Lease) -> None:
            began.set()
            if callback == "pending":
                await asyncio.sleep(10 * PATIENCE)

        election = aio.Client(client._native).elect(name, ttl=TTL, on_start=None if callback == "none" else start)
        kept.append(election)
        while election.token is None:
            await asyncio.sleep(0.01)
        if callback != "none":
            await began.wait()
        assert not free(client, name)

    run(body())
    eventually("it is over", lambda: "over" in repr(kept[0]))
    assert free(client, name) and kept[0].token is None and shown == []
    client.close()


def test_a_loop_that_never_runs_again_is_waited_for_until_it_is_closed(loop: asyncio.AbstractEventLoop) -> None:
    ran: list[bool] = []

    async def work() -> None:
        ran.append(True)

    waits = threading.Thread(target=_aio_loop.run_on, args=(loop, work()))
    waits.start()
    waits.join(2 * _aio_loop.LOOK)
    assert waits.is_alive()
    loop.close()
    waits.join(PATIENCE)
    assert not waits.is_alive()
    _aio_loop.run_on(loop, work())
    assert ran == []


def test_several_locks_end_at_their_max_hold(memory: str, name: str) -> None:
    client = connect(memory)
    names = [f"{name}-{n}" for n in range(2)]
    leases = client.lock_all(names, ttl=1, max_hold=1)
    assert all(leases[at].lost.wait(PATIENCE) for at in range(2))
    with pytest.raises(leasehold.ConfigError, match="max_hold"):
        client.lock_all(names, ttl=10, max_hold=1)
    client.close()


def test_several_locks_time_out_however_short_their_wait(memory: str, name: str) -> None:
    client = connect(memory)
    names = [f"{name}-{n}" for n in range(2)]
    with client.lock_all(names, ttl=TTL):
        for wait in (1e-9, 5e-4):
            with pytest.raises(leasehold.LockTimeoutError):
                client.lock_all(names, wait=wait)
        with pytest.raises(leasehold.LockBusyError):
            client.lock_all(names, wait=0)
    client.close()
