"""Runs of fake clients: they behave like those of real clients."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any

import pytest
from test_testing import TTL
from test_testing import client as client
from test_testing import clock as clock
from test_testing import rival as rival
from test_testing import two as two

import leasehold
from leasehold import AlreadyDone, Ran, RunningElsewhere, testing

Two = tuple[leasehold.Client, leasehold.Client]


def test_a_run_is_done_once(two: Two) -> None:
    client, rival = two
    late = rival.once("job", key="s")
    with client.once("job", key="s", ttl=TTL) as run:
        assert run is not None and run.resource == "job@s"
        with late as nothing:
            assert nothing is None
        assert isinstance(late.outcome, RunningElsewhere)
        assert late.outcome.holder is not None and late.outcome.holder.owner == "me"
        info = rival.inspect_run("job", "s")
        assert info.done is None and info.holder is not None and info.holder.token == run.token
    with late as nothing:
        assert nothing is None
    assert isinstance(late.outcome, AlreadyDone)
    assert (late.outcome.token, late.outcome.owner) == (run.token, "me")
    info = rival.inspect_run("job", "s")
    assert info.done == leasehold.Completion(late.outcome.at, "me", run.token, info.done.left if info.done else 0)
    assert not run.lost.is_set()


def test_a_body_that_raises_leaves_no_completion(two: Two) -> None:
    client, _ = two
    for ending in (ZeroDivisionError, SystemExit, KeyboardInterrupt, GeneratorExit):
        with pytest.raises(ending), client.once("job", keep=604_800, ttl=TTL):
            raise ending
        assert client.inspect_run("job").holder is None and client.inspect_run("job").done is None


def test_a_body_may_finish_or_release_by_itself(two: Two) -> None:
    client, _ = two
    with client.once("job", key="finished", ttl=TTL) as run:
        assert run is not None
        run.finish()
        with pytest.raises(leasehold.NotOwnedError):
            run.finish()
    with client.once("job", key="released", ttl=TTL) as run:
        assert run is not None
        run.release()
        with pytest.raises(leasehold.NotOwnedError):
            run.finish()
    assert client.inspect_run("job", "finished").done and not client.inspect_run("job", "released").done


def test_a_decorated_function_is_called_once(two: Two) -> None:
    client, rival = two

    def report(day: str) -> str:
        return day.upper()

    assert client.once("report-{day}", keep=604_800, ttl=TTL)(report)("mon") == Ran("MON")
    assert isinstance(rival.once("report-{day}", keep=604_800, ttl=TTL)(report)("mon"), AlreadyDone)
    assert rival.once("report-{day}", keep=604_800, ttl=TTL)(report)("tue") == Ran("TUE")


def test_a_run_can_be_forgotten(two: Two) -> None:
    client, rival = two
    assert rival.forget_run("job") is None
    with client.once("job", keep=604_800, ttl=TTL) as run:
        assert run is not None
    completion = rival.forget_run("job")
    assert completion is not None and completion.token == run.token


@pytest.mark.parametrize(
    "options",
    [
        {"key": ""},
        {"key": "x" * 1024},
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
        {"every": 60, "offset": 60},
        {"key": "s", "offset": 5},
        {"cooldown": 60, "keep": 60},
        {"keep": 29},
        {"every": 3600, "keep": 3599},
        {"keep": timedelta(days=36501)},
        {"key": "s", "ttl": 0.01},
        {"key": "s", "renew": False, "renew_every": 1},
    ],
)
def test_impossible_settings_are_refused_at_once(two: Two, options: Any) -> None:
    with pytest.raises(leasehold.ConfigError, match="say when the work may be done again: key .* keep "):
        two[0].once("job", ttl=5)
    with pytest.raises(leasehold.ConfigError):
        two[0].once("job", **options)
    with pytest.raises(TypeError, match="key must be a str"):
        two[0].once("job", key=7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="wait="):
        two[0].once("job", timeout=3)  # type: ignore[call-arg]


def test_a_mark_stands_for_as_long_as_it_is_kept(
    clock: testing.FakeClock, client: testing.FakeClient, rival: testing.FakeClient
) -> None:
    cooled = client.once("job", cooldown=60)
    with cooled as run:
        assert run is not None
    clock.advance(58)
    assert not bool(rival.once("job", cooldown=60)(lambda: None)())
    clock.advance(5)
    assert rival.once("job", cooldown=60)(lambda: None)()


def test_each_period_is_done_once(clock: testing.FakeClock, client: testing.FakeClient) -> None:
    daily = client.once("job", every=timedelta(days=1))
    for _ in range(3):
        with daily as run:
            assert run is not None and "T00:00:00Z" in run.resource
        with daily as run:
            assert run is None
        clock.advance(timedelta(days=1))


@pytest.mark.parametrize(("days", "kept"), [(1, 7), (7, 14), (30, 60), (36500, 36500)])
def test_the_mark_of_a_period_outlasts_it(client: testing.FakeClient, days: int, kept: int) -> None:
    with client.once("job", every=timedelta(days=days)) as run:
        assert run is not None
        resource = run.resource
    done = client.inspect_run("job", resource.partition("@")[2]).done
    assert done is not None and done.left == kept * 86400


def test_a_stand_by_takes_over(
    clock: testing.FakeClock, client: testing.FakeClient, rival: testing.FakeClient
) -> None:
    with pytest.raises(leasehold.LeaseLostError), client.once("job", keep=604_800) as run:
        assert run is not None
        client.lose(run.resource)
        with rival.once("job", keep=604_800, wait=10) as taken:
            assert taken is not None and taken.token > run.token
    info = client.inspect_run("job")
    assert taken is not None and info.done is not None and info.done.token == taken.token


def test_a_run_without_renewal_is_lost_when_its_ttl_has_passed(clock: testing.FakeClock, client: testing.FakeClient) -> None:
    with pytest.raises(leasehold.LeaseLostError), client.once("job", key="s", ttl=5, renew=False) as run:
        assert run is not None
        clock.advance(6)
    with client.once("job", key="s", ttl=5) as run:
        assert run is not None
        clock.advance(6)


def test_a_stand_by_gives_up_after_its_wait(
    clock: testing.FakeClock, client: testing.FakeClient, rival: testing.FakeClient
) -> None:
    with client.once("job", keep=604_800):
        before, late = clock.now(), rival.once("job", keep=604_800, wait=10)
        with late as nothing:
            assert nothing is None and isinstance(late.outcome, RunningElsewhere)
        assert clock.now() - before == pytest.approx(10, abs=0.1)


def test_a_store_that_is_down_leaves_a_finish_unconfirmed(
    clock: testing.FakeClock, client: testing.FakeClient
) -> None:
    with pytest.raises(leasehold.FinishUnconfirmedError), client.once("job", keep=604_800, ttl=TTL):
        client.store_down()
    with pytest.raises(leasehold.StoreUnavailableError), client.once("job", keep=604_800, wait=1):
        raise AssertionError
    with pytest.raises(leasehold.StoreUnavailableError):
        client.inspect_run("job")
    client.store_up()
    assert client.once("job", keep=604_800)(lambda: 7)() == Ran(7)


def test_a_run_of_a_closed_client_writes_no_completion(client: testing.FakeClient, rival: testing.FakeClient) -> None:
    with pytest.raises(leasehold.NotOwnedError), client.once("job", keep=604_800):
        client.close()
    assert rival.inspect_run("job").done is None


def test_a_run_that_goes_on_is_not_forgotten(client: testing.FakeClient, rival: testing.FakeClient) -> None:
    with client.once("job", key="s"):
        pass
    with contextlib.ExitStack() as stack:
        # As an operator who lets it go on although it was done.
        held = stack.enter_context(client.lock("job@s"))
        with pytest.raises(leasehold.LockTimeoutError):
            rival.forget_run("job", "s")
        held.check()
    assert rival.forget_run("job", "s") is not None
