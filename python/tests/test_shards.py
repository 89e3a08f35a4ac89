"""Shards: shared by clients, threads and loops; callbacks that stop, fail, or are slow; processes that end."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest
from conftest import PATIENCE, TTL, connect, eventually, until

import leasehold
import leasehold.aio as aio

COUNT = 4
OPTIONS: dict[str, Any] = {"ttl": TTL, "look_every": 0.2}


def indexes(shards: leasehold.Shards | aio.Shards) -> list[int]:
    return [shard.index for shard in shards.held]


def test_workers_share_and_the_callbacks_say_so(memory: str, name: str) -> None:
    clients = [connect(memory), connect(memory)]
    working: dict[int, int] = {}

    def gain(shard: leasehold.Shard) -> None:
        assert shard.resource == f"{name}#shard{shard.index}" and shard.remaining() > 0
        assert working.get(shard.index, 0) < shard.token
        working[shard.index] = shard.token

    def lose(shard: leasehold.Shard, error: leasehold.LeaseholdError | None) -> None:
        assert error is None
        assert working.pop(shard.index) == shard.token

    first = clients[0].shards(name, COUNT, on_gain=gain, on_loss=lose, **OPTIONS)
    eventually("one worker has all", lambda: indexes(first) == [0, 1, 2, 3] and first.members == 1)
    assert first.name == name and first.last_error is None
    assert repr(first) == f"<Shards '{name}' held=0,1,2,3 members=1>".replace("'", '"')
    assert repr(first.held[2]).startswith("<Shard 2 of ")
    second = clients[1].shards(name, COUNT, on_gain=gain, on_loss=lose, **OPTIONS)
    eventually("both share", lambda: len(indexes(first)) == len(indexes(second)) == 2)
    with pytest.raises(leasehold.LockBusyError):
        clients[0].set_shards(name, 5)
    with first:
        pass
    eventually("the other has all", lambda: len(indexes(second)) == COUNT and len(working) == COUNT)
    assert repr(first) == f'<Shards "{name}" over>' and first.held == [] and first.members == 0
    second.stop()
    assert working == {}
    clients[0].set_shards(name, 5)
    for client in clients:
        client.close()


def test_a_callback_may_stop(memory: str, name: str) -> None:
    client = connect(memory)
    stands = threading.Event()
    lost: list[int] = []

    def gain(shard: leasehold.Shard) -> None:
        assert stands.wait(PATIENCE)
        shards.stop()

    def lose(shard: leasehold.Shard, error: leasehold.LeaseholdError | None) -> None:
        shards.stop()
        lost.append(shard.index)

    shards = client.shards(name, COUNT, on_gain=gain, on_loss=lose, **OPTIONS)
    stands.set()
    eventually("it is over", lambda: "over" in repr(shards))
    shards.stop()
    assert lost and list(client.list(name)) == []
    client.close()


def test_a_slow_callback_delays_no_other_shard_and_no_loss(memory: str, name: str) -> None:
    client = connect(memory)
    may_return = threading.Event()
    lost: list[tuple[int, object]] = []

    def gain(shard: leasehold.Shard) -> None:
        if shard.index == 0:
            assert may_return.wait(PATIENCE)

    def lose(shard: leasehold.Shard, error: leasehold.LeaseholdError | None) -> None:
        lost.append((shard.index, getattr(error, "reason", None)))

    shards = client.shards(name, 3, on_gain=gain, on_loss=lose, ttl=4, look_every=0.2)
    eventually("it has all", lambda: indexes(shards) == [0, 1, 2])
    slow, other = shards.held[0], shards.held[2]
    assert client.revoke(slow.resource, slow.token) and client.revoke(other.resource, other.token)
    eventually("the loss of another shard is told", lambda: (2, "revoked") in lost)
    # Its own callback waits, and the lease tells the loss all the same.
    assert slow.lost.wait(PATIENCE)
    assert 0 not in indexes(shards) and all(index != 0 for index, _ in lost)
    may_return.set()
    eventually("the loss of the slow one is told", lambda: (0, "revoked") in lost)
    eventually("they are held again", lambda: indexes(shards) == [0, 1, 2])
    shards.stop()
    client.close()


def test_a_shard_whose_callback_raises_is_let_go(memory: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: shown.append(unraisable.exc_type))
    client = connect(memory)
    well: list[bool] = []

    def gain(shard: leasehold.Shard) -> None:
        if shard.index == 1 and not well:
            raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError):
        with client.shards(name, COUNT, on_gain=gain, **OPTIONS) as shards:
            eventually("it has the others", lambda: 1 not in indexes(shards) and len(indexes(shards)) == COUNT - 1)
            error = shards.last_error
            assert isinstance(error, leasehold.CallbackError) and isinstance(error.__cause__, ZeroDivisionError)
            assert "on_gain has raised ZeroDivisionError: on purpose" in str(error)
    with client.shards(name, COUNT, on_gain=gain, **OPTIONS) as shards:
        eventually("it has failed", lambda: isinstance(shards.last_error, leasehold.CallbackError))
        well.append(True)
        eventually("it has all", lambda: len(indexes(shards)) == COUNT and shards.last_error is None)
    assert set(shown) == {ZeroDivisionError} and list(client.list(name)) == []
    client.close()


def test_what_cannot_be_is_refused(memory: str, name: str) -> None:
    client = connect(memory)

    async def gain(shard: leasehold.Shard) -> None: ...

    for wrong in ({"count": 0}, {"count": 65}, {"look_every": 0.01}, {"ttl": 0}):
        with pytest.raises(leasehold.ConfigError):
            client.shards(name, **wrong)
    with pytest.raises(TypeError, match="nobody awaits"):
        client.shards(name, on_gain=gain)
    with pytest.raises(TypeError, match="name"):
        client.shards(3)  # type: ignore[arg-type]
    client.close()


def test_a_dropped_worker_stops_without_waiting(memory: str, name: str) -> None:
    client = connect(memory)
    stopped = threading.Event()
    shards = client.shards(name, COUNT, on_loss=lambda shard, error: stopped.set(), **OPTIONS)
    eventually("it works", lambda: len(indexes(shards)) == COUNT)
    del shards
    assert stopped.wait(PATIENCE)
    eventually("all are free", lambda: list(client.list(name)) == [])
    client.close()


def test_tasks_work_on_shards(memory: str, name: str) -> None:
    async def body() -> None:
        client, other = await aio.connect(memory), await aio.connect(memory)
        working: dict[int, asyncio.Task[None]] = {}

        async def gain(shard: aio.Shard) -> None:
            await asyncio.sleep(0)
            assert isinstance(shard, aio.Shard) and shard.remaining() > 0
            working[shard.index] = asyncio.ensure_future(asyncio.sleep(10 * PATIENCE))

        async def lose(shard: aio.Shard, error: leasehold.LeaseholdError | None) -> None:
            working.pop(shard.index).cancel()
            await asyncio.sleep(0)

        async with client.shards(name, COUNT, on_gain=gain, on_loss=lose, **OPTIONS) as shards:
            await until(lambda: len(working) == COUNT)
            assert indexes(shards) == [0, 1, 2, 3] and repr(shards).startswith("<Shards")
            beside = other.shards(name, COUNT, **OPTIONS)
            await until(lambda: len(working) == 2 and len(indexes(beside)) == 2)
            assert shards.members == 2 and shards.name == name and shards.last_error is None
            await beside.stop()
            await until(lambda: len(working) == COUNT)
        assert working == {}

        async def stop(shard: aio.Shard) -> None:
            await within.stop()

        within = client.shards(name, COUNT, on_gain=stop, **OPTIONS)
        await until(lambda: "over" in repr(within))
        await client.set_shards(name, 5)
        with pytest.raises(TypeError, match="callable"):
            client.shards(name, on_gain=3)  # type: ignore[arg-type]
        await client.close()
        await other.close()

    asyncio.run(asyncio.wait_for(body(), 4 * PATIENCE))


def test_shards_end_with_their_loop(memory: str, name: str) -> None:
    client = connect(memory)
    kept: list[aio.Shards] = []

    async def body() -> None:
        began = asyncio.Event()

        async def gain(shard: aio.Shard) -> None:
            began.set()
            await asyncio.sleep(10 * PATIENCE)

        kept.append(aio.Client(client._native).shards(name, COUNT, on_gain=gain, **OPTIONS))
        await began.wait()

    # The loop is closed while the callback is pending.
    loop = asyncio.new_event_loop()
    loop.run_until_complete(asyncio.wait_for(body(), PATIENCE))
    loop.close()
    eventually("it is over", lambda: "over" in repr(kept[0]))
    assert list(client.list(name)) == []
    client.close()


PROGRAM = """
import sys, threading, time
import leasehold
client = leasehold.connect(sys.argv[1])
slow = threading.Event()
def gain(shard):
    if sys.argv[2] == "gain":
        slow.set()
        time.sleep(3600)
def lose(shard, error):
    time.sleep(3600)
shards = client.shards(sys.argv[3], 2, ttl=60, look_every=0.2, on_gain=gain, on_loss=lose)
while sys.argv[2] == "gain" and not slow.is_set() or not shards.held:
    time.sleep(0.01)
print("ends")
"""


@pytest.mark.parametrize("within", ["gain", "loss"])
def test_a_process_ends_while_a_callback_is_slow(store: str, within: str, name: str) -> None:
    command = [sys.executable, "-c", PROGRAM, store, within, name]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=4 * PATIENCE)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ends\n", "")
    client = connect(store)
    eventually("its shards are free", lambda: list(client.list(name)) == [])
    client.close()
