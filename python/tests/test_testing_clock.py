"""The clock of fake clients: what moves it, what happens meanwhile, and the faults of its store."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from test_testing import TTL
from test_testing import client as client
from test_testing import clock as clock
from test_testing import rival as rival

import leasehold
from leasehold import testing


def test_a_blocking_wait_moves_the_clock_no_further_than_it_has_to(
    client: testing.FakeClient, rival: testing.FakeClient
) -> None:
    clock = client.clock
    with client.lock("job", ttl=TTL) as lease:
        with pytest.raises(leasehold.LockTimeoutError):
            rival.acquire("job", wait=7)
        assert clock.now() == 7
        assert not lease.lost.wait(timeout=3) and clock.now() == 10
        rival.set_permits("permits", 2)
        assert rival.inspect("job") is not None and clock.now() == 10, "nothing is waited for"


def test_a_wait_that_never_ends_is_an_error_of_the_test(client: testing.FakeClient, rival: testing.FakeClient) -> None:
    changes = client.watch("job", every=60)
    with client.lock("job", ttl=TTL) as lease:
        assert next(changes).kind == "held"
        calls: list[Callable[[], object]] = [
            lambda: rival.acquire("job"),
            lease.lost.wait,
            lambda: next(changes),
            lambda: rival.lock_any(["job"]).acquire(),
        ]
        for call in calls:
            before = client.clock.now()
            with pytest.raises(RuntimeError, match="never ends") as raised:
                call()
            assert type(raised.value) is RuntimeError, "code that tries again after errors of the client does not catch it"
            assert 3_600 - TTL <= client.clock.now() - before <= 3_600


def test_a_clock_is_moved_step_by_step(clock: testing.FakeClock, client: testing.FakeClient) -> None:
    assert not clock.step(), "nothing will ever be due"
    lease = client.acquire("job", ttl=TTL, renew=False)
    told: list[float] = []
    lease.on_lost(lambda error: told.append(clock.now()))
    while not told:
        assert lease.remaining() > 0 and clock.step()
    assert told == [clock.now()] and TTL - 1 < clock.now() < TTL
    assert "FakeClock" in repr(clock)


def test_what_was_dropped_is_released_when_the_clock_settles(
    clock: testing.FakeClock, client: testing.FakeClient, rival: testing.FakeClient
) -> None:
    lease = client.acquire("job")
    with pytest.warns(ResourceWarning, match="dropped while it was held"):
        del lease
    clock.settle()
    rival.acquire("job", wait=0).release()
    assert clock.now() == 0


def test_callbacks_come_one_by_one_on_the_thread_that_moves_the_clock(
    clock: testing.FakeClock, client: testing.FakeClient, rival: testing.FakeClient
) -> None:
    told: list[tuple[str, int]] = []
    mine = client.acquire("mine", ttl=TTL, renew=False)
    late = client.acquire("late", ttl=2 * TTL, renew=False)

    def wait(error: leasehold.LeaseholdError) -> None:
        # It may wait, which moves the clock, and brings about the next one meanwhile.
        told.append(("mine", threading.get_ident()))
        rival.acquire("late", wait=3 * TTL).release()
        told.append(("taken", threading.get_ident()))

    mine.on_lost(wait)
    late.on_lost(lambda error: told.append(("late", threading.get_ident())))
    clock.advance(TTL)
    assert [what for what, _ in told] == ["mine", "late", "taken"]
    assert {thread for _, thread in told} == {threading.get_ident()}
    assert 2 * TTL - 1 < clock.now() < 3 * TTL, "the wait was longer than what was to pass"


def test_variables_that_a_callback_sets_in_its_context_are_its_own(client: testing.FakeClient) -> None:
    from contextvars import ContextVar

    variable: ContextVar[str] = ContextVar("variable", default="of the test")
    seen: list[str] = []
    lease = client.acquire("job")

    def told(error: leasehold.LeaseholdError) -> None:
        seen.append(variable.get())
        variable.set("of the callback")

    lease.on_lost(told)
    lease.on_lost(told)
    client.lose("job")
    assert seen == ["of the test"] * 2 and variable.get() == "of the test"


def test_an_interrupt_in_a_callback_ends_what_moves_the_clock(clock: testing.FakeClock, client: testing.FakeClient) -> None:
    def stop(error: leasehold.LeaseholdError | None) -> None:
        raise KeyboardInterrupt

    leases = [client.acquire(f"job-{n}", ttl=TTL, renew=False) for n in range(2)]
    leases[0].on_lost(stop)
    with pytest.raises(KeyboardInterrupt):
        clock.advance(2 * TTL)
    leases[1].on_lost(lambda error: None)
    election = client.elect("leader", on_stop=stop)
    with pytest.raises(KeyboardInterrupt):
        election.resign()


def test_a_lost_answer_is_no_lost_lock(
    clock: testing.FakeClock, client: testing.FakeClient, rival: testing.FakeClient
) -> None:
    clock.lose_reply()
    lease = client.acquire("job")
    assert rival.try_acquire("job") is None
    clock.lose_reply()
    lease.release()
    rival.acquire("job", wait=0).release()
    clock.lose_reply()
    with pytest.raises(leasehold.StoreUnavailableError):
        rival.inspect("job")


def test_a_slow_store_costs_time(clock: testing.FakeClock, client: testing.FakeClient) -> None:
    clock.late(0.1)
    lease = client.acquire("job", ttl=TTL)
    assert clock.now() == pytest.approx(0.1)
    clock.advance(10 * TTL)
    lease.check(TTL / 2)
    lease.release()
    clock.late(5)
    with pytest.raises(leasehold.StoreUnavailableError):
        client.acquire("job", wait=3)
    clock.late(0)
    client.acquire("job", wait=TTL).release()
    with pytest.raises(leasehold.ConfigError):
        clock.late(-1)


def test_the_settings_of_a_client_are_those_of_real_ones(clock: testing.FakeClock) -> None:
    clock.late(0.6)
    with pytest.raises(leasehold.StoreUnavailableError):
        testing.connect(clock).inspect("job")
    patient = testing.connect(clock, request_timeout=2)
    assert patient.inspect("job") is None
    for settings in ({"request_timeout": 0}, {"drift_ppm": 10**6}, {"owner": "a\nb"}):
        with pytest.raises(leasehold.ConfigError):
            testing.connect(clock, **settings)


def test_another_seed_gives_another_course() -> None:
    def steps(seed: int) -> list[float]:
        clock = testing.FakeClock(seed)
        client = testing.connect(clock)
        lease = client.acquire("job", ttl=TTL)
        times = [clock.now() for _ in range(20) if clock.step()]
        lease.release()
        return times

    assert steps(1) == steps(1) != steps(2)
