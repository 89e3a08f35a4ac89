"""Locks as decorators and in place of ``threading.Lock``."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from conftest import PATIENCE, TTL, connect, eventually, unix
from hypothesis import given
from hypothesis import strategies as st

import leasehold
from leasehold._types import LockOptions


def test_it_behaves_like_a_threading_lock(client: leasehold.Client, store: str, name: str) -> None:
    lock = client.lock(name, ttl=TTL)
    assert not lock.locked()
    assert lock.acquire() is True
    assert lock.locked() and "held here" in repr(lock)
    assert lock.acquire(blocking=False) is False
    assert lock.acquire(timeout=0.1) is False
    assert lock.acquire(True, 0) is False
    with connect(store) as other:
        assert other.lock(name).locked()
    lock.release()
    assert not lock.locked()
    with pytest.raises(RuntimeError) as unlocked:
        lock.release()
    assert isinstance(unlocked.value, leasehold.NotOwnedError)
    with pytest.raises(ValueError):
        lock.acquire(False, 1)
    with pytest.raises(ValueError):
        lock.acquire(timeout=-2)
    assert lock.acquire(blocking=True, timeout=PATIENCE)
    lock.release()


def test_another_thread_may_release(client: leasehold.Client, name: str) -> None:
    lock = client.lock(name, ttl=TTL)
    lock.acquire()
    with ThreadPoolExecutor() as pool:
        pool.submit(lock.release).result(PATIENCE)
    assert not lock.locked()


def test_a_condition_can_be_made_of_it(client: leasehold.Client, name: str) -> None:
    # A condition needs only the interface of threading.Lock.
    condition = threading.Condition(client.lock(name, ttl=TTL))  # type: ignore[arg-type]
    with condition:
        assert condition.wait(0.05) is False
    assert client.inspect(name) is None


def test_threads_that_share_a_lock_release_their_own_lease(client: leasehold.Client, name: str) -> None:
    class Requests:
        """Of a short lease, and then of one that lasts."""

        options: list[LockOptions] = [{"ttl": 0.3, "renew": False}, {"ttl": TTL}]

        def _request(self, *_: object) -> Requests:
            return self

        def acquire(self) -> leasehold.Lease:
            return client.acquire(name, **self.options.pop(0))

    lock = leasehold.Lock(Requests(), name, {})  # type: ignore[arg-type]
    first = lock.__enter__()
    assert first.lost.wait()
    entered, leave = threading.Event(), threading.Event()

    def second() -> None:
        with lock as lease:
            tokens.append(lease.token)
            entered.set()
            assert leave.wait(PATIENCE)
            lease.check()

    tokens: list[int] = []
    with ThreadPoolExecutor() as pool:
        done = pool.submit(second)
        assert entered.wait(PATIENCE)
        with pytest.raises(leasehold.LeaseLostError):
            lock.__exit__(None, None, None)
        info = client.inspect(name)
        assert info is not None and info.token == tokens[0]
        leave.set()
        done.result(PATIENCE)


def test_waiting_for_oneself_is_refused(memory: str, name: str) -> None:
    client = leasehold.connect(memory)
    with client.lock(name):
        with pytest.raises(leasehold.ConfigError, match="reentrant"):
            client.acquire(name)


def test_a_decorator_names_its_lock_from_the_arguments(memory: str) -> None:
    client = leasehold.connect(memory)
    seen: list[str] = []

    @client.lock("report-{day}-{kind:>3}", ttl=TTL, wait=0)
    def report(day: int, kind: str = "x", *rest: int) -> int:
        """Makes it."""
        name = f"report-{day}-{kind:>3}"
        assert client.inspect(name) is not None
        seen.append(name)
        return day + sum(rest)

    assert report(3) == 3
    assert report(day=4, kind="abcd") == 4
    assert report(5, "y", 6, 7) == 18
    assert seen == ["report-3-  x", "report-4-abcd", "report-5-  y"]
    assert (report.__name__, report.__doc__) == ("report", "Makes it.")
    held = client.acquire("report-9-  x")
    with pytest.raises(leasehold.LockBusyError):
        report(9)
    held.release()
    with pytest.raises(TypeError, match="missing"):
        report()  # type: ignore[call-arg]


def test_a_decorator_is_checked_when_it_is_applied(memory: str) -> None:
    client = leasehold.connect(memory)

    def job(order: object) -> None: ...

    with pytest.raises(leasehold.ConfigError, match="not a parameter.*order"):
        client.lock("job-{ordr.id}")(job)
    with pytest.raises(leasehold.ConfigError, match="not a parameter"):
        client.lock("job-{}")(job)
    with pytest.raises(leasehold.ConfigError, match="format"):
        client.lock("job-{order")(job)
    with pytest.raises(leasehold.ConfigError, match="'width'.*not a parameter"):
        client.lock("job-{order:{width}}")(job)
    client.lock("job-{order.id}")(job)

    def numbers() -> Iterator[int]:
        yield 1

    with pytest.raises(TypeError, match="generator"):
        client.lock("job")(numbers)

    async def later() -> None: ...

    with pytest.raises(TypeError, match="aio"):
        client.lock("job")(later)


@given(st.text(min_size=1, max_size=40))
def test_any_argument_makes_a_name_or_an_error(value: str) -> None:
    @_client.lock("a-{value}", ttl=TTL, wait=PATIENCE)
    def job(value: str) -> bool:
        return _client.inspect(f"a-{value}") is not None

    try:
        assert job(value)
    except leasehold.ConfigError:
        with pytest.raises(leasehold.ConfigError):
            _client.inspect(f"a-{value}")


_client = leasehold.connect("memory:")


def test_outside_of_decorators_braces_are_braces(memory: str) -> None:
    client = leasehold.connect(memory)
    with client.lock("a-{b}"):
        assert client.inspect("a-{b}") is not None
    eventually("it is free", lambda: client.inspect("a-{b}") is None)


def test_a_decorated_function_must_not_return_unfinished_work(memory: str) -> None:
    client = leasehold.connect(memory)
    ran: list[str] = []

    async def later() -> None:
        ran.append("coroutine")

    def numbers() -> Iterator[int]:
        ran.append("generator")
        yield 1

    async def later_numbers() -> AsyncIterator[int]:
        ran.append("asynchronous generator")
        yield 1

    class Caller:
        async def __call__(self) -> None:
            ran.append("object")

    for deferred in (later, numbers, later_numbers):
        with pytest.raises(TypeError, match="would run after"):
            client.lock("job")(lambda made=deferred: made())()
    for refused in (Caller(), contextlib.contextmanager(numbers), functools.wraps(numbers)(lambda: 3)):
        with pytest.raises(TypeError, match="run"):
            client.lock("job")(refused)
    assert not ran and client.inspect("job") is None
    # A wrapper that runs a coroutine to its end is accepted.
    client.lock("job")(functools.wraps(later)(lambda: asyncio.run(later())))()
    assert ran == ["coroutine"]


@unix
def test_a_signal_handler_that_raises_at_the_start_or_end_of_a_block_leaves_nothing_held(memory: str) -> None:
    class Stop(Exception):
        pass

    def stop(*_: object) -> None:
        raise Stop

    client = leasehold.connect(memory)
    lock = client.lock("shared", ttl=TTL, wait=0)
    stopped = 0
    before = signal.signal(signal.SIGALRM, stop)
    try:
        for n in range(20_000):
            try:
                # At any of the steps of a round, of which each takes some microseconds.
                signal.setitimer(signal.ITIMER_REAL, (1 + n % 60) / 1e6)
                for _ in range(20):
                    with lock:
                        pass
            except Stop:
                stopped += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert "not held" in repr(lock) and client.inspect("shared") is None
            if stopped == 1000:
                break
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert stopped > 100


def test_the_wait_of_a_call_overrides_that_of_the_lock(client: leasehold.Client, store: str, name: str) -> None:
    with connect(store) as other, ThreadPoolExecutor() as pool:
        held = other.acquire(name, ttl=TTL)
        assert client.lock(name, wait=99.5 * PATIENCE).acquire(timeout=0.05) is False
        wanted = client.lock(name, ttl=TTL, wait=0)
        waits = pool.submit(wanted.acquire, timeout=PATIENCE)
        # It waits, where the lock itself would not.
        with pytest.raises(TimeoutError):
            waits.result(0.3)
        held.release()
        assert waits.result(PATIENCE) is True
        wanted.release()


def test_the_wait_can_be_given_in_every_form(memory: str, name: str) -> None:
    client = leasehold.connect(memory)
    with client.lock(name, ttl=TTL), ThreadPoolExecutor() as pool:
        for timeout in (0, 0.01, timedelta(milliseconds=10)):
            assert pool.submit(client.lock(name).acquire, timeout=timeout).result(PATIENCE) is False
        for negative in (-2, timedelta(seconds=-1)):
            with pytest.raises(ValueError):
                client.lock(name).acquire(timeout=negative)
        with pytest.raises(TypeError, match="does not wait"):
            client.try_acquire(name, wait=3)  # type: ignore[call-arg]
