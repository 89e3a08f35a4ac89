"""Results: what the first caller of a run leaves for those who come later."""

from __future__ import annotations

import math
import time
from typing import Any

import pytest
from conftest import TTL, connect
from test_aio import Run as Runner
from test_aio import connect as aio_connect
from test_aio import run as run

import leasehold
from leasehold import AlreadyDone, NoResult, Ran


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(request.param)
    return url


@pytest.mark.parametrize(
    "value", [None, True, 7, "é", [1, {"a": None}], b"", b"\x00\xff" * 2048], ids=lambda value: type(value).__name__
)
def test_who_comes_later_gets_the_result(client: leasehold.Client, store: str, name: str, value: object) -> None:
    before = time.time()
    with client.once(name, key="s", ttl=TTL) as run:
        assert run is not None
        run.finish(result=value)
    with connect(store) as other:
        late = other.once(name, key="s")
        with late as nothing:
            assert nothing is None
        done = late.outcome
        assert isinstance(done, AlreadyDone) and done.result == value and type(done.result) is type(value)
        assert done.began is not None and before - 5 < done.began <= done.at + 5
        info = other.inspect_run(name, "s").done
        assert info is not None and info.result == value
        forgotten = other.forget_run(name, "s")
        assert forgotten is not None and forgotten.result == value


def test_a_run_without_a_result_has_none(client: leasehold.Client, store: str, name: str) -> None:
    with client.once(name, key="s", ttl=TTL) as run:
        assert run
    info = client.inspect_run(name, "s").done
    assert info is not None and info.result is NoResult.NONE and not info.result and info.began is None
    assert repr(info.result) == "leasehold.NoResult.NONE"


def test_both_callers_of_a_function_get_the_same_value(client: leasehold.Client, store: str, name: str) -> None:
    calls = []

    @client.once(f"{name}-{{n}}", keep=86_400, ttl=TTL, save_result=True)
    def work(n: int) -> tuple[int, dict[str, int]]:
        calls.append(n)
        return n, {"n": n}

    first, second = work(1), work(1)
    # What JSON makes of a tuple.
    assert isinstance(first, Ran) and first.value == [1, {"n": 1}]  # type: ignore[comparison-overlap]
    assert isinstance(second, AlreadyDone) and second.result == first.value and calls == [1]


def test_a_result_is_saved_only_where_it_is_asked_for(client: leasehold.Client, store: str, name: str) -> None:
    @client.once(name, keep=86_400, ttl=TTL)
    def work() -> object:
        return object()

    assert isinstance(work(), Ran)
    again = work()
    assert isinstance(again, AlreadyDone) and again.result is NoResult.NONE


UNFIT: list[tuple[Any, str]] = [
    (b"x" * 4097, "result has 4097 bytes; at most 4096 are allowed"),
    (math.nan, "neither bytes nor a value that JSON can hold"),
    ({"at": object()}, "neither bytes nor a value that JSON can hold"),
    ("\ud800", "neither bytes nor a value that JSON can hold"),
]


@pytest.mark.parametrize(("value", "words"), UNFIT, ids=["long", "nan", "object", "surrogate"])
def test_a_result_that_cannot_be_kept_is_told_and_the_work_counts(
    client: leasehold.Client, store: str, name: str, value: object, words: str
) -> None:
    once = client.once(name, key="s", ttl=TTL)
    with pytest.raises(leasehold.ResultNotKeptError, match=words) as told, once as run:
        assert run is not None
        run.finish(result=value)
    assert (told.value.code, told.value.resource, told.value.temporary) == ("result_not_kept", f"{name}@s", False)
    done = client.inspect_run(name, "s").done
    assert run is not None and done is not None
    assert done.token == run.token and done.result is NoResult.NONE

    calls = []

    @client.once(f"{name}-saved", keep=86_400, ttl=TTL, save_result=True)
    def work() -> object:
        calls.append(1)
        return value

    with pytest.raises(leasehold.ResultNotKeptError, match=words):
        work()
    assert isinstance(work(), AlreadyDone) and calls == [1]


def test_on_event_loops(run: Runner, store: str, name: str) -> None:
    async def body() -> None:
        async with await aio_connect(store) as client, await aio_connect(store) as other:
            async with client.once(name, key="s", ttl=TTL) as work:
                assert work is not None
                await work.finish(result={"rows": 7})
            late = other.once(name, key="s")
            async with late as nothing:
                assert nothing is None
            assert isinstance(late.outcome, AlreadyDone) and late.outcome.result == {"rows": 7}

            @other.once(f"{name}-saved", keep=86_400, ttl=TTL, save_result=True)
            async def saved() -> tuple[int, ...]:
                return (1, 2)

            first, second = await saved(), await saved()
            assert isinstance(first, Ran) and isinstance(second, AlreadyDone)
            assert first.value == second.result == [1, 2]
            with pytest.raises(leasehold.ResultNotKeptError):
                async with other.once(name, key="long", ttl=TTL) as work:
                    assert work is not None
                    await work.finish(result="x" * 4096)

    run(body())
