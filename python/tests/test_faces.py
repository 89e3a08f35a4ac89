"""The two faces of the package are used alike, and say which of them a statement is for."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import warnings
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from conftest import PATIENCE, TTL

import leasehold
import leasehold.aio as aio
from leasehold import testing


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, PATIENCE))


def test_calls_of_asyncio_are_awaited_or_entered(memory: str) -> None:
    async def body() -> None:
        async with aio.connect(memory) as client:
            async with client.acquire("job", ttl=TTL) as lease:
                lease.check()
            async with await client.acquire("job", ttl=TTL) as lease:
                lease.check()
            async with client.lock_all(["a", "b"], ttl=TTL) as leases:
                leases.check()
            async with client.elect("leader") as election:
                assert election.resource == "leader"
            election = await client.elect("leader")
            await election.resign()
            async with client.shards("queue") as shards:
                assert shards.name == "queue"
            shards = await client.shards("queue")
            await shards.stop()
        with pytest.raises(leasehold.ClosedError):
            await client.acquire("job")
        client = await aio.connect(memory)
        task = asyncio.create_task(client.acquire("job", ttl=TTL), name="as a coroutine")
        assert "acquire" in repr(task)
        await (await task).release()
        await client.close()

    run(body())


def test_an_error_of_a_call_is_raised_where_it_is_entered() -> None:
    async def body() -> None:
        with pytest.raises(leasehold.ConfigError, match="scheme"):
            async with aio.connect("nowhere:"):
                raise AssertionError("never entered")
        async with aio.connect("memory:") as client:
            with pytest.raises(ZeroDivisionError):
                async with client.acquire("job", ttl=TTL):
                    raise ZeroDivisionError
            with pytest.raises(TypeError, match="no timeout here"):
                await client.acquire("job", timeout=5)  # type: ignore[call-arg]
            assert await client.inspect("job") is None

    run(body())


def test_a_forgotten_await_is_named() -> None:
    async def body() -> None:
        forgotten: Any = aio.connect("memory:")
        with pytest.raises(AttributeError, match=r"connect\(\) has not been awaited, so there is no 'lock'"):
            forgotten.lock("job")
        with pytest.raises(TypeError, match=r"use `async with`: connect\(\)"):
            with forgotten:
                pass
        async with forgotten as client:
            forgotten = client.acquire("job")
            with pytest.raises(AttributeError, match=r"acquire\(\) has not been awaited"):
                forgotten.token
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                del forgotten
                gc.collect()
            assert ["was never awaited" in str(each.message) for each in told] == [True]

    run(body())


Enter = Callable[[Any], Any]
PARTS: dict[str, Enter] = {
    "client": lambda client: client,
    "lock": lambda client: client.lock("job"),
    "run": lambda client: client.once("job", keep=604_800),
    "semaphore": lambda client: client.semaphore("jobs", 2),
    "any": lambda client: client.lock_any(["a", "b"]),
    "reader": lambda client: client.rw_lock("book").read(),
}


@pytest.mark.parametrize("part", PARTS)
def test_the_statement_of_the_other_face_is_refused(part: str) -> None:
    async def body() -> None:
        async with aio.connect("memory:") as client:
            with pytest.raises(TypeError, match="use `async with`: .* is for asyncio"):
                with PARTS[part](client):
                    raise AssertionError("never entered")
        with leasehold.connect("memory:") as plain:
            with pytest.raises(TypeError, match="use `with`: .* is for threads"):
                async with PARTS[part](plain):
                    raise AssertionError("never entered")

    run(body())


def test_extending_a_lease_names_the_renewal() -> None:
    with leasehold.connect("memory:") as client, client.lock("job", ttl=TTL) as lease:
        with pytest.raises(leasehold.ConfigError, match="renewed in the background.*nothing to extend"):
            lease.extend(10)
    with testing.connect().lock("job") as fake:
        with pytest.raises(leasehold.ConfigError, match="renewed in the background"):
            fake.extend()

    async def body() -> None:
        async with aio.connect("memory:") as client, client.lock("job", ttl=TTL) as lease:
            with pytest.raises(leasehold.ConfigError, match="nothing to extend"):
                lease.extend()

    run(body())


def test_a_wait_that_ends_with_the_client_says_so(memory: str) -> None:
    async def body() -> None:
        async with aio.connect(memory) as other, other.lock("job", ttl=TTL):
            client = await aio.connect(memory)
            waiting = asyncio.create_task(client.acquire("job", ttl=TTL))
            # It has sent its first request, and waits.
            await asyncio.sleep(0)
            await client.close()
            with pytest.raises(leasehold.ClosedError, match="the client (is|was) closed"):
                await waiting

    run(body())


ENDS_IN_A_CALLBACK = """
import asyncio, sys, time
import leasehold.aio

async def main(what):
    client = await leasehold.aio.connect("memory:")
    started = asyncio.Event()

    async def work(lease):
        started.set()
        await asyncio.Event().wait()

    made = client.shards("queue", on_gain=work) if what == "shards" else client.elect("leader", on_start=work)
    await started.wait()
    return made

made = asyncio.run(main(sys.argv[1]))
while "over" not in repr(made):
    time.sleep(0.01)
"""


@pytest.mark.parametrize("what", ["election", "shards"])
def test_a_loop_that_ends_cancels_callbacks_in_silence(what: str) -> None:
    command = [sys.executable, "-W", "error", "-c", ENDS_IN_A_CALLBACK, what]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


Ask = Callable[[Any], Any]
QUESTIONS: dict[str, Ask] = {
    "try_acquire": lambda client: client.try_acquire("job"),
    "acquire": lambda client: client.acquire("job"),
    "lock_all": lambda client: client.lock_all(["job"]),
    "lock.locked": lambda client: client.lock("job").locked(),
    "lock.acquire": lambda client: client.lock("job").acquire(),
    "semaphore.acquire": lambda client: client.semaphore("jobs", 2).acquire(),
    "inspect": lambda client: client.inspect("job"),
    "inspect_run": lambda client: client.inspect_run("job", "monday"),
    "forget_run": lambda client: client.forget_run("job", "monday"),
    "release_if": lambda client: client.release_if("job", token=1),
    "revoke": lambda client: client.revoke("job", 1),
    "sessions": lambda client: client.sessions(),
    "revoke_session": lambda client: client.revoke_session("worker-7"),
    "connect": lambda client: aio.connect("memory:"),
}


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_that_is_not_awaited_is_no_condition(question: str) -> None:
    async def body() -> None:
        async with aio.connect("memory:") as client:
            name = question.rpartition(".")[2]
            with pytest.raises(TypeError, match=rf"{name}\(\) has not been awaited.*write `if await ...{name}\(\):`"):
                if QUESTIONS[question](client):
                    raise AssertionError("never reached")
        async with testing.connect_async() as fake:
            if question != "connect":
                with pytest.raises(TypeError, match="has not been awaited"):
                    bool(QUESTIONS[question](fake))

    run(body())


def test_each_question_of_asyncio_is_known() -> None:
    """A method whose awaited result could be a condition raises if it is used as one without `await`."""
    asks = {name for name, value in vars(aio.Client).items() if not name.startswith("_") and callable(value)}
    plain = {"lock", "once", "semaphore", "lock_any", "rw_lock", "list", "runs", "watch", "elect", "shards"}
    silent = {"set_permits", "set_readers", "set_shards", "close"}
    assert asks - plain - silent == {name for name in QUESTIONS if "." not in name} - {"connect"}
