"""Runs: work that is done once."""

from __future__ import annotations

import contextlib
import math
import pickle
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest
from conftest import PATIENCE, TTL, Server, connect, eventually, unix
from test_processes import run as run_script
from test_processes import says, start

import leasehold
from leasehold import AlreadyDone, Ran, RunningElsewhere
from leasehold.protocol import period_key, run_resource


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(request.param)
    return url


def is_open(client: leasehold.Client, name: str, key: str | None = None) -> bool:
    """True if nobody is at it, and no completion stands."""
    info = client.inspect_run(name, key)
    return info.holder is None and info.done is None


def test_a_key_is_done_once(client: leasehold.Client, store: str, name: str) -> None:
    with client.once(name, key="2026-11-24", ttl=TTL, owner="first") as run:
        assert isinstance(run, leasehold.Run) and isinstance(run, leasehold.Lease) and run
        assert (run.resource, run.owner) == (f"{name}@2026-11-24", "first")
        run.check(0.1)
        assert repr(run).startswith("<Run ")
        info = client.inspect_run(name, "2026-11-24")
        assert info.done is None and info.holder is not None and info.holder.token == run.token
    assert run.remaining() == 0.0 and not run.lost.is_set()
    with connect(store) as other:
        again = other.once(name, key="2026-11-24")
        with again as nothing:
            assert nothing is None
        done = again.outcome
        assert isinstance(done, AlreadyDone) and not done
        assert (done.owner, done.token) == ("first", run.token)
        assert done.at > 1.7e9 and 6.9 * 86400 < done.left <= 7 * 86400
        info = other.inspect_run(name, "2026-11-24")
        assert info.holder is None and info.resource == f"{name}@2026-11-24"
        assert info.done and info.done.token == run.token and type(info.done) is leasehold.Completion
        following = other.once(name, key="2026-11-25")
        with following as next_run:
            assert next_run is not None
        assert following.outcome is None
    # A plain lock does not look at completions.
    client.acquire(f"{name}@2026-11-24", ttl=TTL, wait=0).release()


def test_a_run_that_is_under_way_is_left_alone(client: leasehold.Client, store: str, name: str) -> None:
    with client.once(name, keep=604_800, ttl=TTL, owner="runner", data=b"\x00") as run, connect(store) as other:
        assert run is not None
        late = other.once(name, keep=604_800)
        with late as nothing:
            assert nothing is None
        assert isinstance(late.outcome, RunningElsewhere) and not late.outcome
        assert late.outcome.holder is not None
        assert (late.outcome.holder.owner, late.outcome.holder.data) == ("runner", b"\x00")


@pytest.mark.parametrize("ending", [ZeroDivisionError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_an_exception_leaves_no_completion(client: leasehold.Client, name: str, ending: type[BaseException]) -> None:
    with pytest.raises(ending), client.once(name, key="s", ttl=TTL):
        raise ending
    assert is_open(client, name, "s")
    with client.once(name, key="s", ttl=TTL) as run:
        assert run is not None


def test_a_generator_that_is_closed_leaves_no_completion(client: leasehold.Client, name: str) -> None:
    def work() -> Iterator[int]:
        with client.once(name, keep=604_800, ttl=TTL):
            yield 1

    working = work()
    assert next(working) == 1
    working.close()  # type: ignore[attr-defined]
    assert is_open(client, name)


def test_a_process_that_exits_in_its_body_leaves_no_completion(store: str) -> None:
    with connect(store) as client:
        run_script("with leasehold.connect(sys.argv[1]).once('exits', keep=604_800, ttl=300): sys.exit()", store)
        assert is_open(client, "exits")
        run_script("with leasehold.connect(sys.argv[1]).once('exits', keep=604_800, ttl=300): pass", store)
        assert client.inspect_run("exits").done


@unix
def test_a_stand_by_takes_over_from_a_killed_runner(store: str) -> None:
    runner = start(
        """
        with leasehold.connect(sys.argv[1]).once("killed", key="s", ttl=1) as run:
            print(run.token, flush=True)
            time.sleep(3600)
        """,
        store,
    )
    token = int(says(runner))
    runner.kill()
    runner.communicate()
    with connect(store) as client:
        with client.once("killed", key="s", ttl=TTL, wait=PATIENCE) as run:
            assert run is not None and run.token > token
        info = client.inspect_run("killed", "s")
        assert info.done and info.done.token == run.token


def test_a_stand_by_learns_that_the_work_is_done(client: leasehold.Client, store: str, name: str) -> None:
    outcomes: list[object] = []

    def stand_by() -> None:
        with connect(store) as other:
            once = other.once(name, keep=604_800, wait=math.inf)
            with once as nothing:
                assert nothing is None
            outcomes.append(once.outcome)

    with client.once(name, keep=604_800, ttl=TTL) as run:
        assert run is not None
        waiting = threading.Thread(target=stand_by)
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive() and not outcomes
    waiting.join(PATIENCE)
    (outcome,) = outcomes
    assert isinstance(outcome, AlreadyDone) and outcome.token == run.token


def test_a_body_may_finish_or_release_by_itself(client: leasehold.Client, name: str) -> None:
    with client.once(name, key="finished", ttl=TTL) as run:
        assert run is not None
        run.finish()
        with pytest.raises(leasehold.NotOwnedError):
            run.finish()
        with pytest.raises(leasehold.NotOwnedError):
            run.release()
    assert client.inspect_run(name, "finished").done
    with client.once(name, key="released", ttl=TTL) as run:
        assert run is not None
        run.release()
        with pytest.raises(leasehold.NotOwnedError):
            run.finish()
    assert is_open(client, name, "released")
    with pytest.raises(ZeroDivisionError), client.once(name, key="finished first", ttl=TTL) as run:
        assert run is not None
        run.finish()
        _ = 1 / 0
    assert client.inspect_run(name, "finished first").done, "the completion was written before the exception"


def test_a_lost_run_writes_no_completion(client: leasehold.Client, store: str, name: str) -> None:
    with pytest.raises(leasehold.LeaseLostError), client.once(name, key="s", ttl=1) as run, connect(store) as other:
        assert run is not None
        assert other.release_if(run.resource, token=run.token)
    assert client.inspect_run(name, "s").done is None
    # The loss is known before the end of the body.
    with pytest.raises(leasehold.LeaseLostError), client.once(name, key="s", ttl=0.5) as run, connect(store) as other:
        assert run is not None
        assert other.release_if(run.resource, token=run.token)
        assert run.lost.wait(PATIENCE)
    assert client.inspect_run(name, "s").done is None
    with pytest.raises(ZeroDivisionError), client.once(name, key="s", ttl=1) as run, connect(store) as other:
        assert run is not None
        assert other.release_if(run.resource, token=run.token)
        _ = 1 / 0


def test_a_run_without_renewal_is_lost_when_its_ttl_has_passed(client: leasehold.Client, name: str) -> None:
    with pytest.raises(leasehold.LeaseLostError), client.once(name, key="s", ttl=0.3, renew=False) as run:
        assert run is not None and run.lost.wait(PATIENCE)

    @client.once(name, key="{part}", ttl=0.3, renew=False)
    def outlasts(part: int) -> None:
        eventually("the lease is over", lambda: client.inspect_run(name, str(part)).holder is None)

    with pytest.raises(leasehold.LeaseLostError):
        outlasts(1)
    assert client.inspect_run(name, "s").done is None and client.inspect_run(name, "1").done is None


def test_a_run_of_a_closed_client_writes_no_completion(store: str, name: str) -> None:
    client = connect(store)
    with pytest.raises(leasehold.LeaseholdError), client.once(name, keep=604_800, ttl=TTL):
        client.close()
    with pytest.raises(leasehold.ClosedError), client.once(name, keep=604_800):
        raise AssertionError
    with connect(store) as other:
        eventually("it is free without a completion", lambda: is_open(other, name))


@unix
def test_a_store_that_does_not_answer_leaves_a_finish_unconfirmed() -> None:
    server = Server("redis")
    client = leasehold.connect(server.url, request_timeout=0.2)
    try:
        with pytest.raises(leasehold.FinishUnconfirmedError) as unconfirmed, client.once("job", keep=604_800, ttl=1):
            server.freeze()
        assert (unconfirmed.value.code, unconfirmed.value.temporary) == ("finish_unconfirmed", False)
        assert unconfirmed.value.resource == "job@"
        assert not isinstance(unconfirmed.value, OSError), "what retries on those must not do the work again"
    finally:
        server.close()
        with contextlib.suppress(leasehold.StoreUnavailableError):
            client.close()


@unix
def test_an_interrupt_ends_the_wait_for_a_finish() -> None:
    server = Server("redis")
    try:
        runner = start(
            """
            client = leasehold.connect(sys.argv[1], request_timeout=0.5)
            try:
                with client.once("job", keep=604_800, ttl=3600):
                    print("runs", flush=True)
                    sys.stdin.readline()
                    threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,)).start()
            except KeyboardInterrupt:
                print("interrupted", flush=True)
                os._exit(0)
            """,
            server.url,
        )
        assert says(runner) == "runs"
        server.freeze()
        said, _ = runner.communicate("go on\n", timeout=PATIENCE)
        assert said.strip() == "interrupted"
    finally:
        server.close()


def test_a_decorated_function_is_called_once(client: leasehold.Client, name: str) -> None:
    calls: list[object] = []

    @client.once(name + "-{day}", key="{part:02}", keep=timedelta(days=1), ttl=TTL)
    def report(day: str, part: int = 1) -> str:
        """Reports."""
        calls.append((day, part))
        if part == 3:
            raise ZeroDivisionError
        return f"{day}.{part}"

    assert (report.__name__, report.__doc__) == ("report", "Reports.")
    first = report("mon")
    assert first == Ran("mon.1") and first and isinstance(first, Ran) and first.value == "mon.1"
    again = report("mon", part=1)
    assert isinstance(again, AlreadyDone) and not again and again.left <= 86400
    assert report("mon", 2) == Ran("mon.2") and report(day="tue") == Ran("tue.1")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            report("mon", 3)
    assert calls == [("mon", 1), ("mon", 2), ("tue", 1), ("mon", 3), ("mon", 3)]
    assert client.inspect_run(f"{name}-mon", "01").done

    @client.once(name, keep=604_800, ttl=TTL)
    def recursive() -> object:
        return recursive()

    ran = recursive()
    assert isinstance(ran, Ran) and isinstance(ran.value, RunningElsewhere) and ran, "no value makes it false"


def test_functions_that_run_later_cannot_be_decorated(client: leasehold.Client, name: str) -> None:
    async def coroutine() -> None: ...

    def generator() -> Iterator[int]:
        yield 1

    for function in (coroutine, generator):
        with pytest.raises(TypeError):
            client.once(name, keep=604_800)(function)
    with pytest.raises(TypeError, match="asyncio|aio"):
        client.once(name, keep=604_800)(lambda: coroutine())()
    assert is_open(client, name)
    with pytest.raises(leasehold.ConfigError, match="key .* has the field 'week'"):
        client.once(name, key="{week}")(lambda day: None)
    with pytest.raises(leasehold.ConfigError, match="name of the run .* has the field 'week'"):
        client.once("{week}", keep=604_800)(lambda day: None)


@pytest.mark.parametrize(
    "options",
    [
        {"key": ""},
        {"key": "x" * 1024},
        {"key": "a\nb"},
        {"key": "s", "cooldown": 60},
        {"key": "s", "every": 60},
        {"key": "s", "cron": "0 2 * * *", "tz": "UTC"},
        {"every": 60, "cron": "0 2 * * *", "tz": "UTC"},
        {"cron": "0 2 * * *"},
        {"cron": "0 0 30 2 *", "tz": "UTC"},
        {"cron": "0 0 2 * * *", "tz": "UTC"},
        {"every": 86_400, "at": "02:00"},
        {"every": 86_400, "at": "2am", "tz": "UTC"},
        {"every": 86_400, "tz": "Europe/Berln"},
        {"key": "s", "at": "02:00", "tz": "UTC"},
        {"key": "s", "tz": "UTC"},
        {"every": 60, "cooldown": 60},
        {"every": 0},
        {"every": 0.5},
        {"every": timedelta(days=36501)},
        {"every": 60, "offset": 60},
        {"key": "s", "offset": 5},
        {"cooldown": 60, "keep": 60},
        {"keep": 29},
        {"every": 3600, "keep": 3599},
        {"keep": 0},
        {"keep": timedelta(days=36501)},
        {"keep": math.inf},
        {"keep": -1},
        {"key": "s", "ttl": 0.01},
        {"key": "s", "wait": -1},
        {"key": "s", "renew": False, "renew_every": 1},
    ],
)
def test_impossible_settings_are_refused_at_once(client: leasehold.Client, name: str, options: Any) -> None:
    with pytest.raises(leasehold.ConfigError, match="say when the work may be done again: key .* keep "):
        client.once(name)
    with pytest.raises(leasehold.ConfigError):
        client.once(name, **options)


def test_wrong_arguments_are_explained(client: leasehold.Client, name: str) -> None:
    with pytest.raises(leasehold.ConfigError):
        client.once("")
    with pytest.raises(TypeError, match="wait= is how long to try"):
        client.once(name, timeout=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="name"):
        client.once(7)  # type: ignore[arg-type]
    for call in (
        lambda: client.once(name, key=date(2026, 11, 24)),  # type: ignore[arg-type]
        lambda: client.inspect_run(name, date(2026, 11, 24)),  # type: ignore[arg-type]
        lambda: client.forget_run(name, date(2026, 11, 24)),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match="key must be a str, such as day.isoformat\\(\\) for a date, not date"):
            call()
    with pytest.raises(TypeError, match="if run:"):
        bool(client.once(name, keep=604_800))
    with pytest.raises(TypeError):
        pickle.dumps(client.once(name, keep=604_800))
    with client.once(name, keep=604_800, ttl=TTL) as run, pytest.raises(TypeError):
        pickle.dumps(run)
    with pytest.raises(leasehold.NotOwnedError):
        client.once(name, keep=604_800).__exit__(None, None, None)
    with pytest.raises(AttributeError):
        leasehold.unknown  # type: ignore[attr-defined]  # noqa: B018


def test_odd_keys_are_apart(client: leasehold.Client, name: str) -> None:
    pairs = [(f"{name}@b", "c"), (name, "b@c"), (f"{name}%40b", "c"), (name, "ü 🦀"), (name, "c"), (name, None)]
    for job, key in pairs:
        with client.once(job, key=key, keep=604_800, ttl=TTL) as run:
            assert run is not None, (job, key)
    assert all(client.inspect_run(job, key).done for job, key in pairs)
    assert len({client.inspect_run(job, key).resource for job, key in pairs}) == len(pairs)


def test_a_period_and_a_cooldown(client: leasehold.Client, name: str) -> None:
    # Not 24 h: a test that runs at midnight has two days.
    period = timedelta(days=30000)
    with client.once(name, every=period, ttl=TTL) as run:
        assert run is not None and run.resource == f"{name}@1970-01-01T00:00:00Z"
    with client.once(name, every=period, ttl=TTL) as run:
        assert run is None
    with client.once(name, every=period, offset=timedelta(days=1), ttl=TTL) as run:
        assert run is not None and run.resource == f"{name}@1970-01-02T00:00:00Z"
    cooled = client.once(name, cooldown=0.5, ttl=0.5)
    with cooled as run:
        assert run is not None and run.resource == f"{name}@"
    with cooled as run:
        assert run is None
    eventually("the cooldown is over", lambda: client.inspect_run(name).done is None)
    with cooled as run:
        assert run is not None


def test_times_of_a_zone(client: leasehold.Client, name: str) -> None:
    times: list[tuple[Any, str]] = [
        ({"every": timedelta(days=30000), "at": "02:30", "tz": "Europe/Berlin"}, r"1970-01-01T02:30\[Europe/Berlin\]"),
        # No test runs at the border of such a time, but once in four years.
        ({"cron": "30 2 29 feb *", "tz": "Asia/Tokyo"}, r"20\d\d-02-29T02:30\[Asia/Tokyo\]"),
    ]
    for options, key in times:
        with client.once(name, **options, ttl=TTL) as run:
            assert run is not None and re.fullmatch(f"{name}@{key}", run.resource)
        with client.once(name, **options, ttl=TTL) as run:
            assert run is None
    with pytest.raises(leasehold.ConfigError, match="one of key, every and cron"):
        client.once(name, key="s", every=60)


def test_a_run_can_be_repeated_by_hand(client: leasehold.Client, name: str) -> None:
    with client.once(name, key="s", ttl=TTL) as first:
        assert first is not None
    with client.once(name, key="s", ttl=TTL, even_if_done=True) as again:
        assert again is not None and again.token > first.token
    completion = client.inspect_run(name, "s").done
    assert completion is not None and completion.token == again.token


def test_a_run_can_be_forgotten(client: leasehold.Client, name: str) -> None:
    assert client.forget_run(name, "s") is None
    with client.once(name, key="s", ttl=TTL) as first:
        assert first is not None
    completion = client.forget_run(name, key="s")
    assert completion is not None and completion.token == first.token
    eventually("the completion is gone", lambda: client.inspect_run(name, "s").done is None)
    with client.once(name, key="s", ttl=TTL) as again:
        assert again is not None and again.token > first.token
    for call in (client.inspect_run, client.forget_run):
        with pytest.raises(leasehold.ConfigError):
            call(name, "")
        with pytest.raises(TypeError):
            call(7)  # type: ignore[arg-type]


def test_threads_share_a_once(client: leasehold.Client, name: str) -> None:
    once, got, gate = client.once(name, keep=604_800, ttl=TTL), [], threading.Barrier(8)

    def work() -> None:
        gate.wait()
        with once as run:
            if run is not None:
                got.append(run.token)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(got) == 1 and client.inspect_run(name).done


def test_a_dropped_run_leaves_no_completion(client: leasehold.Client, name: str) -> None:
    once = client.once(name, keep=604_800, ttl=TTL)
    once.__enter__()
    with pytest.warns(ResourceWarning, match="was dropped while it was held"):
        del once
    eventually("it is free without a completion", lambda: is_open(client, name))


def test_the_names_of_the_protocol() -> None:
    assert run_resource("a@b", "c%") == "a%40b@c%25"
    assert run_resource("job") == "job@"
    assert period_key(1_795_478_400_000, timedelta(days=1)) == "2026-11-24T00:00:00Z"
    assert period_key(1_795_478_400_000, 86400, 3600) == "2026-11-23T01:00:00Z"
    with pytest.raises(leasehold.ConfigError):
        run_resource("job", "")
    for every, offset in ((0, 0), (60, 60), (math.inf, 0)):
        with pytest.raises(leasehold.ConfigError):
            period_key(0, every, offset)


def test_the_answers_are_values() -> None:
    completion = AlreadyDone(1.5, "me", 7, 60.0)
    assert completion == AlreadyDone(1.5, "me", 7, 60.0) != leasehold.Completion(1.5, "me", 7, 60.0)
    assert pickle.loads(pickle.dumps(completion)) == completion and hash(Ran(1)) == hash(Ran(1))
    assert Ran(None) and not RunningElsewhere(None)
    with pytest.raises(AttributeError):
        completion.token = 8  # type: ignore[misc]
    code = "import leasehold, sys; assert 'dataclasses' not in sys.modules; print(leasehold.Ran(1))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.strip() == "Ran(value=1)"
