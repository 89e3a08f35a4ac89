"""The client on loops that watch no pipes and sockets, as those of Windows."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Coroutine
from typing import Any

import pytest
from conftest import PATIENCE, REQUEST_TIMEOUT, TTL

import leasehold
import leasehold.aio as aio
from leasehold import _aio_loop


class Unwatched(asyncio.SelectorEventLoop):
    def add_reader(self, fd: Any, callback: Any, *args: Any) -> Any:  # type: ignore[override]
        raise NotImplementedError


def run(body: Coroutine[Any, Any, None]) -> None:
    loop = Unwatched()
    try:
        loop.run_until_complete(asyncio.wait_for(body, PATIENCE))
    finally:
        loop.close()


def test_locks_go_from_one_to_the_next(store: str, name: str) -> None:
    async def body() -> None:
        async with aio.connect(store, request_timeout=REQUEST_TIMEOUT) as client:
            tokens: list[int] = []

            async def work() -> None:
                async with client.acquire(name, ttl=TTL, wait=PATIENCE) as lease:
                    tokens.append(lease.token)

            await asyncio.gather(*(work() for _ in range(10)))
            assert len(tokens) == 10 and tokens == sorted(tokens)
            assert await client.inspect(name) is None

    run(body())


def test_a_release_on_another_thread_wakes_a_waiter(memory: str, name: str) -> None:
    async def body() -> None:
        async with aio.connect(memory) as client:
            with leasehold.connect(memory) as other:
                held = other.acquire(name, ttl=TTL)
                waiter = asyncio.create_task(client.acquire(name, ttl=TTL, wait=PATIENCE))
                reactor = _aio_loop.reactor_of(asyncio.get_running_loop())
                while not len(reactor):
                    await asyncio.sleep(0)
                threading.Thread(target=held.release).start()
                await (await waiter).release()

    run(body())


def test_a_loop_that_is_closed_gives_its_operations_up(memory: str, name: str) -> None:
    gone: list[weakref.ref[object]] = []

    async def body(loop: asyncio.AbstractEventLoop) -> None:
        client = await aio.connect(memory)
        reactor = _aio_loop.reactor_of(loop)
        gone.append(weakref.ref(reactor))
        loop.create_task(client.acquire(name, ttl=TTL, wait=PATIENCE))
        while not len(reactor):
            await asyncio.sleep(0)

    with leasehold.connect(memory) as other:
        held = other.acquire(name, ttl=TTL)
        loop = Unwatched()
        loop.run_until_complete(body(loop))
        # Its task would be reported as pending.
        loop.set_exception_handler(lambda *_: None)
        loop.close()
        del loop
        gc.collect()
        held.release()
        with other.acquire(name, ttl=TTL, wait=0):
            assert [reactor() for reactor in gone] == [None]


def test_an_unwatched_loop_hears_of_a_loss(memory: str, name: str) -> None:
    async def body() -> None:
        async with aio.connect(memory) as client:
            with pytest.raises(leasehold.LeaseLostError):
                async with client.lock(name, ttl=0.3, renew=False, on_lost="cancel"):
                    await asyncio.sleep(PATIENCE)

    run(body())


def test_an_interpreter_waits_for_the_call_of_a_loop_before_it_ends() -> None:
    """It would end the thread that calls, in the middle of frames that cannot be unwound, and the process with it."""
    program = """
        import asyncio, sys, threading, time, types
        import leasehold.aio

        class Slow(asyncio.SelectorEventLoop):
            def add_reader(self, fd, callback, *args):
                raise NotImplementedError

            def call_soon_threadsafe(self, *args, **options):
                handle = super().call_soon_threadsafe(*args, **options)
                if threading.current_thread() is not threading.main_thread():
                    time.sleep(0.3)
                return handle

        class Late:
            def __del__(self, sleep=time.sleep):
                sleep(0.6)

        async def main():
            other = leasehold.connect("memory:")
            async with leasehold.aio.connect("memory:") as client:
                held = other.acquire("a")
                waiter = asyncio.create_task(client.acquire("a", wait=20))
                await asyncio.sleep(0.1)
                threading.Thread(target=held.release).start()
                await (await waiter).release()

        # Modules end last.
        late = sys.modules["late"] = types.ModuleType("late")
        late.late = Late()
        del late
        loop = Slow()
        loop.run_until_complete(main())
        print("done")
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=PATIENCE)
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr
