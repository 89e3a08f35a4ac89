"""Fake clients: they behave like the real client."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from conftest import PATIENCE

import leasehold
from leasehold import testing
from leasehold._types import LockOptions

TTL = 30.0
LONG = 3_600.0
"""So long that no renewal is due in a test."""


@pytest.fixture
def clock() -> testing.FakeClock:
    return testing.FakeClock()


@pytest.fixture
def client(clock: testing.FakeClock) -> testing.FakeClient:
    return testing.connect(clock, owner="me")


@pytest.fixture
def rival(clock: testing.FakeClock) -> testing.FakeClient:
    return testing.connect(clock, owner="rival")


def token_of(lease: leasehold.Lease) -> int:
    """The token of a lease that is given back."""
    lease.release()
    return lease.token


@pytest.fixture(autouse=True)
def _no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: float) -> None:
        raise AssertionError("a test with a fake clock never sleeps")

    monkeypatch.setattr(time, "sleep", refuse)


_names = itertools.count()


@pytest.fixture(params=["fake", "real"])
def two(request: pytest.FixtureRequest) -> Iterator[tuple[leasehold.Client, leasehold.Client]]:
    """Two clients of one store, real and fake: the same assertions hold for both kinds."""
    if request.param == "fake":
        clock = testing.FakeClock()
        yield testing.connect(clock, owner="me"), testing.connect(clock, owner="rival")
        return
    store = f"memory:testing-{next(_names)}"
    with leasehold.connect(store, owner="me") as client, leasehold.connect(store, owner="rival") as rival:
        yield client, rival


def test_a_fake_client_does_what_the_real_one_does(two: tuple[leasehold.Client, leasehold.Client]) -> None:
    client, rival = two
    with client.lock("job", ttl=TTL, data=b"here") as lease:
        assert (lease.resource, lease.owner) == ("job", "me") and TTL / 2 < lease.remaining() <= TTL
        lease.check(1)
        with pytest.raises(leasehold.LeaseLostError):
            lease.check(2 * TTL)
        assert not lease.lost.is_set() and lease.lost.reason is None
        assert rival.try_acquire("job") is None
        with pytest.raises(leasehold.LockBusyError) as busy:
            rival.acquire("job", wait=0)
        assert busy.value.resource == "job" and busy.value.holder is not None and busy.value.holder.owner == "me"
        with pytest.raises(leasehold.LockTimeoutError):
            rival.acquire("job", wait=0.01)
        info = rival.inspect("job")
        assert info is not None and (info.owner, info.token, info.data) == ("me", lease.token, b"here")
        assert info.ttl == TTL and info.left is not None and info.left <= TTL and "me" in str(info)
    assert rival.inspect("job") is None and lease.remaining() == 0.0
    with pytest.raises(leasehold.NotOwnedError):
        lease.release()
    with pytest.raises(leasehold.NotOwnedError):
        lease.check()
    other = rival.acquire("job")
    assert other.token > lease.token
    with client.lock_all(["b", "a"], ttl=TTL) as leases:
        assert [leases[0].resource, leases["b"].resource] == ["a", "b"] and len(leases) == 2
        leases.check(1)
    with pytest.raises(leasehold.LockTimeoutError):
        client.lock_all(["a", "job"], wait=0.01)
    again = rival.try_acquire("a")
    assert again is not None
    rival.close()
    with pytest.raises(leasehold.ClosedError):
        rival.acquire("c")
    client.acquire("job").release()


def test_a_lock_decorates_and_replaces_a_threading_lock(two: tuple[leasehold.Client, leasehold.Client]) -> None:
    client, rival = two

    @client.lock("report-{day}", wait=0)
    def report(day: str) -> bool:
        return rival.inspect(f"report-{day}") is not None

    assert report("monday") and rival.inspect("report-monday") is None
    lock = client.lock("b")
    assert lock.acquire(timeout=5) and lock.locked() and not rival.lock("b").acquire(blocking=False)
    lock.release()


def test_release_if_releases_only_the_named_holder(two: tuple[leasehold.Client, leasehold.Client]) -> None:
    client, rival = two
    lease = client.acquire("job", ttl=TTL, owner="worker-7:1234:main")
    assert not rival.release_if("job", token=lease.token + 1) and not rival.release_if("job", owner="worker-7:12:*")
    with pytest.raises(leasehold.ConfigError):
        rival.release_if("job")
    answer = rival.release_if("job", token=lease.token, owner="worker-7:*")
    assert answer and answer.holder is not None and answer.holder.token == lease.token
    with rival.lock("job") as again:
        assert again.token > lease.token
        assert lease.lost.wait(TTL)


def test_revoke_tells_the_named_holder_and_keeps_others_out(two: tuple[leasehold.Client, leasehold.Client]) -> None:
    client, rival = two
    lease = client.acquire("job", ttl=TTL)
    assert not rival.revoke("job", lease.token + 1)
    answer = rival.revoke("job", lease.token)
    assert answer and answer.holder is not None and answer.holder.revoked
    assert lease.lost.wait(TTL)
    assert isinstance(lease.lost.reason, leasehold.LeaseLostError) and lease.lost.reason.reason == "revoked"
    assert rival.try_acquire("job") is None
    with pytest.raises(leasehold.LeaseLostError):
        lease.release()
    with rival.lock("job", wait=0) as again:
        assert again.token > lease.token


def test_a_release_of_a_lock_that_is_not_ours_is_a_loss(two: tuple[leasehold.Client, leasehold.Client]) -> None:
    client, rival = two
    told: list[leasehold.LeaseholdError] = []
    with pytest.raises(leasehold.LeaseLostError) as lost:
        with client.lock("job", ttl=LONG) as lease:
            lease.on_lost(told.append)
            assert rival.release_if("job", owner="me")
            theirs = rival.acquire("job", wait=0)
            lease.check()
    assert lost.value.resource == "job" and told == []
    assert lease.lost.is_set() and isinstance(lease.lost.reason, leasehold.LeaseLostError) and "lost" in repr(lease)
    for refused in (lease.check, lease.release):
        with pytest.raises(leasehold.LeaseLostError):
            refused()
    assert rival.inspect("job") is not None, "it was left alone"
    theirs.release()
    with pytest.raises(ZeroDivisionError):
        with client.lock("job", ttl=LONG):
            assert rival.release_if("job", owner="me")
            raise ZeroDivisionError
    with pytest.raises(leasehold.LeaseLostError):
        with client.lock("job", ttl=LONG) as lease:
            assert rival.release_if("job", owner="me")
            with pytest.raises(leasehold.LeaseLostError):
                lease.release()
    leases = client.lock_all(["a", "b"], ttl=LONG)
    assert rival.release_if("a", owner="me")
    with pytest.raises(leasehold.LeaseLostError):
        leases.release()
    rival.acquire("b", wait=0).release()


def test_a_lease_refuses_invalid_calls(two: tuple[leasehold.Client, leasehold.Client]) -> None:
    client, _ = two
    lease = client.acquire("job")
    with pytest.raises(leasehold.ConfigError, match="reentrant"):
        client.acquire("job")
    with pytest.raises(leasehold.LockTimeoutError):
        client.acquire("job", wait=0.01)

    async def later(error: leasehold.LeaseholdError) -> None: ...

    for callback in (later, None):
        with pytest.raises(TypeError):
            lease.on_lost(callback)  # type: ignore[arg-type]
    lease.release()


def test_a_client_that_is_closed_loses_its_leases(two: tuple[leasehold.Client, leasehold.Client]) -> None:
    client, rival = two
    lease, told = client.acquire("job"), threading.Event()
    lease.on_lost(lambda error: told.set() if isinstance(error, leasehold.NotOwnedError) else None)
    client.close()
    assert told.wait(PATIENCE) and lease.lost.is_set() and isinstance(lease.lost.reason, leasehold.NotOwnedError)
    for call in (lease.check, lease.release):
        with pytest.raises(leasehold.NotOwnedError):
            call()
    again = rival.try_acquire("job")
    assert again is not None
    again.release()


def test_callbacks_run_last_and_cannot_disturb_others(
    client: testing.FakeClient, clock: testing.FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[type[BaseException]] = []
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: shown.append(unraisable.exc_type))
    leases = [client.acquire(f"job-{n}") for n in range(3)]
    lost: list[list[bool]] = []

    def stop(error: leasehold.LeaseholdError) -> None:
        lost.append([lease.lost.is_set() for lease in leases])
        raise SystemExit

    for lease in leases:
        lease.on_lost(stop)
    client.store_down()
    clock.advance(2 * TTL)
    assert lost == [[True] * 3] * 3 and shown == [RuntimeError] * 3
    leases[0].on_lost(stop)
    assert shown == [RuntimeError] * 4
    client.store_up()
    assert token_of(client.acquire("job-0", wait=2 * TTL)) > leases[0].token


def test_a_lease_is_lost_at_its_deadline(client: testing.FakeClient, clock: testing.FakeClock) -> None:
    lease = client.acquire("job", ttl=TTL, renew=False)
    clock.advance(lease.remaining() - 0.001)
    assert lease.remaining() > 0 and not lease.lost.is_set()
    clock.advance(0.001)
    assert lease.remaining() == 0 and lease.lost.is_set()
    with pytest.raises(leasehold.LeaseLostError):
        lease.check()


SETTINGS: list[LockOptions] = [
    {"ttl": 0.01},
    {"ttl": -1},
    {"renew": False, "renew_every": 1},
    {"owner": "a\nb"},
    {"data": bytes(5000)},
    {"ttl": float("inf")},
]


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_both_refuse_the_same_settings(options: LockOptions, two: tuple[leasehold.Client, leasehold.Client]) -> None:
    with pytest.raises(leasehold.ConfigError):
        two[0].acquire("job", **options)
    with pytest.raises(leasehold.ConfigError):
        two[0].acquire("")


def test_code_can_be_tested_for_a_lost_lock(client: testing.FakeClient, rival: testing.FakeClient) -> None:
    told: list[leasehold.LeaseholdError] = []
    with pytest.raises(leasehold.LeaseLostError) as lost, client.lock("job") as lease:
        lease.on_lost(told.append)
        client.lose("job")
        assert lease.lost.is_set() and lease.lost.wait() and lease.remaining() == 0.0
        with pytest.raises(leasehold.LeaseLostError):
            lease.check()
        assert token_of(rival.acquire("job", wait=0)) > lease.token
    assert lost.value.resource == "job"
    assert [type(error) for error in told] == [leasehold.LeaseLostError]
    lease.on_lost(told.append)
    assert len(told) == 2
    with pytest.raises(leasehold.NotOwnedError):
        client.lose("job")
    with pytest.raises(KeyError), client.lock("other"):
        client.lose("other")
        raise KeyError("the body's own error goes first")


def test_code_can_be_tested_for_a_store_that_is_down(client: testing.FakeClient, clock: testing.FakeClock) -> None:
    lease = client.acquire("job", ttl=TTL)
    client.store_down()
    with pytest.raises(leasehold.StoreUnavailableError):
        client.acquire("other", wait=3)
    with pytest.raises(leasehold.StoreUnavailableError):
        client.acquire("other", wait=0)
    with pytest.raises(leasehold.StoreUnavailableError):
        client.inspect("job")
    assert not lease.lost.is_set()
    clock.advance(lease.remaining())
    assert lease.lost.is_set()
    client.store_up()
    # Leases end a little before their record does, for clocks that differ.
    assert token_of(client.acquire("job", wait=TTL)) > lease.token


def test_a_release_that_the_store_does_not_confirm(client: testing.FakeClient, rival: testing.FakeClient) -> None:
    with client.lock("job", ttl=TTL):
        client.store_down()
    # The body was done under the lock, so nothing is raised.
    client.store_up()
    lease = rival.acquire("job", wait=2 * TTL)
    client.store_down()
    with pytest.raises(leasehold.StoreUnavailableError):
        lease.release()
    with pytest.raises(leasehold.NotOwnedError):
        lease.release()


def test_leases_are_renewed_while_the_clock_is_moved(client: testing.FakeClient, clock: testing.FakeClock) -> None:
    lease, once = client.acquire("job", ttl=TTL), client.acquire("once", ttl=TTL, renew=False)
    bounded = client.acquire("bounded", ttl=TTL, max_hold=2 * TTL)
    before = clock.now()
    clock.advance(timedelta(hours=1))
    assert clock.now() - before == 3600 and lease.remaining() > TTL / 3 and once.lost.is_set() and bounded.lost.is_set()
    lease.release()
    clock.advance(0)
    with pytest.raises(leasehold.ConfigError):
        clock.advance(-1)


def test_waiting_moves_the_clock(client: testing.FakeClient, rival: testing.FakeClient) -> None:
    clock = client.clock
    lease = client.acquire("job", ttl=TTL, renew=False)
    before = clock.now()
    other = rival.acquire("job", wait=2 * TTL)
    assert lease.lost.is_set() and other.token > lease.token and TTL - 1 < clock.now() - before < 2 * TTL
    with pytest.raises(RuntimeError, match="never ends"):
        client.acquire("job")
    before = clock.now()
    with pytest.raises(leasehold.LockTimeoutError):
        client.acquire("job", wait=7200)
    assert clock.now() - before >= 7200
    assert not other.lost.wait(timeout=5)
    other.release()


def test_an_abandoned_acquisition_does_not_wait(client: testing.FakeClient, rival: testing.FakeClient) -> None:
    lease, job = client.acquire("mine", ttl=TTL, renew=False), rival.acquire("job", ttl=TTL)

    def stop(error: leasehold.LeaseholdError) -> None:
        raise KeyboardInterrupt

    lease.on_lost(stop)
    with pytest.raises(KeyboardInterrupt):
        client.acquire("job")
    job.release()
    assert token_of(rival.acquire("job", wait=0)) > job.token


def test_each_run_is_the_same() -> None:
    def story() -> tuple[float, float]:
        clock = testing.FakeClock()
        client, rival = testing.connect(clock), testing.connect(clock)
        lost, ours = client.acquire("job", ttl=TTL, renew=False), rival.acquire("job", wait=100)
        left = ours.remaining()
        assert token_of(ours) > lost.token
        return left, clock.now()

    assert story() == story()


def test_threads_may_share_a_clock(client: testing.FakeClient, clock: testing.FakeClock) -> None:
    errors: list[BaseException] = []

    def work(call: Callable[[], object]) -> None:
        try:
            for _ in range(20):
                call()
        except BaseException as error:
            errors.append(error)

    def holds(name: str) -> Callable[[], object]:
        def held() -> None:
            with client.lock(name, ttl=TTL, wait=0) as lease:
                lease.check()

        return held

    calls = [holds("a"), holds("b"), lambda: clock.advance(1), lambda: client.inspect("a")]
    threads = [threading.Thread(target=work, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_candidate_leads_until_it_resigns_or_loses(two: tuple[leasehold.Client, leasehold.Client]) -> None:
    client, rival = two
    told: list[tuple[str, object]] = []
    done = threading.Event()

    def started(lease: leasehold.Lease) -> None:
        lease.check()
        told.append(("start", lease.resource))
        done.set()

    def stopped(error: leasehold.LeaseholdError | None) -> None:
        told.append(("stop", error and error.code))

    election = client.elect("leader", ttl=TTL, on_start=started, on_stop=stopped)
    assert done.wait(PATIENCE) and election.resource == "leader" and election.last_error is None
    info = rival.inspect("leader")
    assert info is not None and election.token == info.token
    with rival.elect("leader") as other:
        assert other.token is None
    assert rival.try_acquire("leader") is None
    election.resign()
    assert told == [("start", "leader"), ("stop", None)] and election.token is None
    rival.acquire("leader", wait=0).release()
    with pytest.raises(TypeError):
        client.elect("leader", on_start=5)  # type: ignore[arg-type]
    with pytest.raises(leasehold.ConfigError):
        client.elect("leader", ttl=0)


def test_code_can_be_tested_for_a_lost_election(client: testing.FakeClient, rival: testing.FakeClient) -> None:
    told: list[str] = []

    def candidate(who: testing.FakeClient, name: str) -> leasehold.Election:
        return who.elect(
            "leader",
            on_start=lambda lease: told.append(f"{name} leads"),
            on_stop=lambda error: told.append(f"{name} stops: {error and error.code}"),
        )

    mine, theirs = candidate(client, "I"), candidate(rival, "they")
    client.lose("leader")
    assert told == ["I leads", "I stops: lost", "they leads"] and mine.token is None and theirs.token is not None
    client.store_down()
    client.clock.advance(2 * TTL)
    assert told[3:] == ["they stops: lost"] and isinstance(mine.last_error, leasehold.StoreUnavailableError)
    client.store_up()
    # One that is in the middle of an attempt tries again within seconds.
    client.clock.advance(10)
    first, second = (mine, theirs) if told[4:] == ["I leads"] else (theirs, mine)
    assert first.token is not None and second.token is None and "leading" in repr(first)
    before = client.clock.now()
    first.resign()
    assert len(told) == 7 and "over" in repr(first) and second.token is not None and client.clock.now() == before
    rival.close()
    client.close()
    assert len(told) == 8 and second.token is None


def test_a_callback_that_raises_ends_a_fake_term(
    client: testing.FakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: None)
    election = client.elect("leader", on_start=lambda lease: 1 / 0)
    assert isinstance(election.last_error, leasehold.CallbackError) and client.inspect("leader") is None
    assert str(election.last_error) == '"leader": on_start has raised ZeroDivisionError: division by zero'
    with client.lock("job") as lease:
        assert "test:" in repr(client) and "token=" in repr(lease)


FIXTURES_IN_USE = """
import asyncio
import leasehold

pytest_plugins = ["leasehold.contrib.pytest"]

def test_fakes(leasehold_client, leasehold_async_client, leasehold_clock):
    lease = leasehold_client.acquire("job")
    assert asyncio.run(leasehold_async_client.inspect("job")).token == lease.token
    leasehold_clock.advance(3600)
    lease.check()

def test_store(leasehold_store):
    with leasehold.connect() as client:
        assert client.stores == [leasehold_store]
        client.acquire("job", ttl=600)

def test_each_test_has_its_own(leasehold_store, leasehold_client):
    with leasehold.connect() as client, client.lock("job", wait=0), leasehold_client.lock("job", wait=0):
        pass
"""


def test_fixtures_for_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_fixtures.py").write_text(FIXTURES_IN_USE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:anyio", "test_fixtures.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "3 passed" in ran.stdout, ran.stdout + ran.stderr
