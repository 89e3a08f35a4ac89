"""Attempts: work that always fails is given up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from conftest import TTL
from test_aio import Run as Runner
from test_aio import connect as aio_connect
from test_aio import run as run

import leasehold


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(request.param)
    return url


def failing(client: leasehold.Client, name: str, error: BaseException, **options: Any) -> None:
    """Begins the work, which raises this."""
    with pytest.raises(type(error)), client.once(name, key="k", ttl=TTL, **options) as run:
        assert run is not None
        raise error


def test_work_that_always_fails_is_given_up(client: leasehold.Client, store: str, name: str) -> None:
    failing(client, name, ValueError("no\ndisk"), max_attempts=2)
    shown = client.inspect_run(name, "k").attempts
    assert shown is not None
    assert (shown.count, shown.max, shown.reason) == (1, 2, "ValueError: no disk")
    once = client.once(name, key="k", ttl=TTL, max_attempts=2)
    with once as run:
        assert run is not None
        assert run.attempts is not None
        assert (run.attempts.count, run.attempts.reason) == (2, None)
        run.fail("x" * 300)
    with pytest.raises(leasehold.GivenUpError, match="given up after 2 attempts") as told, once:
        pass
    error = told.value
    assert (error.code, error.resource, error.temporary) == ("given_up", f"{name}@k", False)
    assert (error.attempts.count, error.attempts.reason) == (2, "x" * 256)
    assert 0 < error.attempts.since <= error.attempts.retry_at
    [listed] = client.runs(f"{name}@")
    assert (listed.key, listed.done, listed.holder, listed.attempts) == ("k", None, None, error.attempts)
    assert client.forget_run(name, "k") is None
    with once as run:
        assert run is not None
        assert run.attempts is not None
        assert run.attempts.count == 1
    assert isinstance(once.outcome, type(None))
    with once as run:
        assert run is None
    assert isinstance(once.outcome, leasehold.AlreadyDone)


def test_the_next_attempt_waits_for_its_pause(client: leasehold.Client, store: str, name: str) -> None:
    failing(client, name, KeyError("rate"), max_attempts=3, retry_after=3600)
    once = client.once(name, key="k", ttl=TTL, max_attempts=3, retry_after=3600)
    with once as run:
        assert run is None
    later = once.outcome
    assert isinstance(later, leasehold.RetryLater)
    assert isinstance(later, leasehold.RunningElsewhere)
    assert not later
    assert later.holder is None
    assert (later.attempts.count, later.attempts.reason) == (1, "KeyError: 'rate'")
    assert later.attempts.retry_at == pytest.approx(later.attempts.since + 3600)


def test_decorated_functions_give_up(client: leasehold.Client, store: str, name: str) -> None:
    @client.once(name, key="k", max_attempts=1)
    def work() -> None:
        raise Mute

    with pytest.raises(Mute):
        work()
    with pytest.raises(leasehold.GivenUpError) as told:
        work()
    assert told.value.attempts.reason == "Mute"


class Mute(Exception):
    """One that fails to say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("nor this")


def test_coroutines_give_up(run: Runner, store: str, name: str) -> None:
    async def main() -> None:
        async with await aio_connect(store) as client:
            once = client.once(name, key="k", ttl=TTL, max_attempts=3)
            with pytest.raises(ValueError, match="no disk"):
                async with once as work:
                    assert work is not None
                    raise ValueError("no disk")
            async with once as work:
                assert work is not None
                assert work.attempts is not None
                assert work.attempts.count == 2
                await work.fail(TimeoutError("too slow"))
            task = asyncio.current_task()
            assert task is not None
            with pytest.raises(asyncio.CancelledError):
                async with once:
                    task.cancel()
                    await asyncio.sleep(TTL)
            with pytest.raises(leasehold.GivenUpError) as told:
                async with once:
                    pass
            assert (told.value.attempts.count, told.value.attempts.reason) == (3, "CancelledError")

    run(main())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_attempts": 0}, "with 0 attempts"),
        ({"retry_after": 1}, "needs a number of attempts"),
        ({"max_attempts": 2, "even_if_done": True}, "does it although it is done"),
        ({"max_attempts": 2, "retry_after": 8 * 86400}, "has to be shorter"),
    ],
)
def test_settings_that_cannot_be_are_refused(
    client: leasehold.Client, store: str, name: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(leasehold.ConfigError, match=words), client.once(name, key="k", **options):
        pass


@pytest.mark.parametrize("max_attempts", [-1, 1.5, "2", 2**32])
def test_a_number_of_attempts_is_a_whole_number(client: leasehold.Client, store: str, name: str, max_attempts: Any) -> None:
    with pytest.raises((TypeError, OverflowError)), client.once(name, key="k", max_attempts=max_attempts):
        pass


def test_a_reason_is_a_text_or_an_exception(client: leasehold.Client, store: str, name: str) -> None:
    with client.once(name, key="k", max_attempts=2) as run:
        assert run is not None
        with pytest.raises(TypeError, match="a text or an exception"):
            run.fail(7)  # type: ignore[arg-type]
        run.release()
