"""Replacing: the newest call for a run gets it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from conftest import PATIENCE, TTL
from test_aio import Run as Runner
from test_aio import connect as aio_connect
from test_aio import run as run

import leasehold


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(request.param)
    return url


def test_the_newest_call_replaces_the_runner(client: leasehold.Client, store: str, name: str) -> None:
    began = threading.Event()

    def older() -> None:
        with client.once(name, key="k", ttl=TTL * 10, renew_every=0.2) as held:
            assert held is not None
            began.set()
            assert held.lost.wait(PATIENCE)

    @client.once(name, key="k", ttl=TTL, replace=True)
    def newer() -> str:
        return "newest"

    with ThreadPoolExecutor(1) as pool:
        former: Future[Any] = pool.submit(older)
        assert began.wait(PATIENCE)
        assert newer() == leasehold.Ran("newest")
        with pytest.raises(leasehold.LeaseLostError) as lost:
            former.result(PATIENCE)
    assert lost.value.reason == "revoked"
    assert isinstance(newer(), leasehold.AlreadyDone)


def test_an_older_call_steps_aside(client: leasehold.Client, store: str, name: str) -> None:
    with leasehold.connect(store) as other, ThreadPoolExecutor(2) as pool:
        older = other.once(name, key="k", ttl=TTL, replace=True)
        newer = client.once(name, key="k", ttl=TTL, replace=True)(lambda: "newest")

        def enter() -> object:
            with older as run:
                assert run is None
            return older.outcome

        with pytest.raises(leasehold.LeaseLostError), client.once(name, key="k", ttl=TTL * 10, renew_every=0.2) as held:
            assert held is not None
            asked = pool.submit(enter)
            assert held.lost.wait(PATIENCE)
            newest = pool.submit(newer)
            replaced = asked.result(PATIENCE)
            assert isinstance(replaced, leasehold.Replaced)
            assert not replaced
        assert newest.result(PATIENCE) == leasehold.Ran("newest")


def test_tasks_replace_one_another(run: Runner, store: str, name: str) -> None:
    async def main() -> None:
        async with await aio_connect(store) as client:
            began = asyncio.Event()

            async def older() -> None:
                with pytest.raises(leasehold.LeaseLostError):
                    async with client.once(name, key="k", ttl=TTL * 10, renew_every=0.2) as held:
                        assert held is not None
                        began.set()
                        await held.lost.wait()

            former = asyncio.create_task(older())
            await began.wait()
            async with client.once(name, key="k", ttl=TTL, replace=True) as newest:
                assert newest is not None
            await former

    run(main())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_attempts": 2}, "also count attempts"),
        ({"wait": 0}, "give a wait above zero"),
        ({"watch_holder": True}, "also watch the holder"),
    ],
)
def test_settings_that_contradict_it_are_refused(client: leasehold.Client, name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(leasehold.ConfigError, match=words), client.once(name, key="k", replace=True, **options):
        pass


def test_a_thread_does_not_wait_for_itself(client: leasehold.Client, store: str, name: str) -> None:
    with client.once(name, key="k", ttl=TTL) as held:
        assert held is not None
        with pytest.raises(leasehold.ConfigError, match="runs the work itself"), client.once(name, key="k", replace=True):
            pass
        held.check()
