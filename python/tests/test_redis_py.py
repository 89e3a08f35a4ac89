"""redis-py's locks and their replacement: both must behave alike, and exclude each other."""

from __future__ import annotations

import asyncio
import copy
import gc
import inspect
import logging
import os
import pickle
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import redis as redis_py
import redis.asyncio as redis_py_asyncio
from conftest import PATIENCE, eventually
from redis.asyncio.lock import Lock as TheirsAsync
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Unreachable
from redis.exceptions import LockError, LockNotOwnedError
from redis.lock import Lock as Theirs
from redis.retry import Retry

import leasehold
import leasehold.aio
from leasehold.compat.redis_py import Lock as Ours
from leasehold.compat.redis_py import LockConnectionError, _lock
from leasehold.compat.redis_py import LockError as OurError
from leasehold.compat.redis_py._urls import url_of
from leasehold.compat.redis_py.asyncio import Lock as OursAsync

LONG = 3600.0
"""More seconds than any test lasts."""
SHORT = 0.5
"""Seconds after which a lock is gone by itself; no step of a test takes longer."""

KINDS = {"redis-py": Theirs, "leasehold": Ours, "redis-py asyncio": TheirsAsync, "leasehold asyncio": OursAsync}
Make = Callable[..., Any]
Run = Callable[[Callable[[Make], Awaitable[None]]], None]


async def done(result: Any) -> Any:
    """The result of a lock's method, with asyncio or without."""
    return await result if inspect.isawaitable(result) else result


@asynccontextmanager
async def entered(lock: Any) -> AsyncIterator[Any]:
    if hasattr(lock, "__aenter__"):
        async with lock as held:
            yield held
    else:
        with lock as held:
            yield held


@pytest.fixture
def server(redis: str) -> Iterator[redis_py.Redis]:
    with redis_py.Redis.from_url(redis) as client:
        yield client


def runner(url: str, kinds: list[str]) -> Run:
    """Runs a body with a factory of locks of each kind; the last kind is the default."""

    def run(body: Callable[[Make], Awaitable[None]]) -> None:
        async def go() -> None:
            plain, twin = redis_py.Redis.from_url(url), redis_py_asyncio.Redis.from_url(url)

            def make(*args: Any, of: int = -1, **options: Any) -> Any:
                kind: Any = KINDS[kinds[of]]
                return kind(twin if "asyncio" in kinds[of] else plain, *args, **options)

            try:
                await asyncio.wait_for(done(body(make)), PATIENCE)
            finally:
                plain.close()
                await twin.aclose()

        asyncio.run(go())

    return run


@pytest.fixture(params=KINDS)
def run(request: pytest.FixtureRequest, redis: str) -> Run:
    return runner(redis, [request.param])


def test_a_lock_is_acquired_and_released(run: Run, server: redis_py.Redis, name: str) -> None:
    async def body(make: Make) -> None:
        lock = make(name)
        assert not await done(lock.locked()) and not await done(lock.owned())
        assert await done(lock.acquire()) is True
        assert server.exists(name) and await done(lock.locked()) and await done(lock.owned())
        other = make(name)
        assert await done(other.locked()) and not await done(other.owned())
        assert await done(other.acquire(blocking=False)) is False
        assert await done(lock.release()) is None
        assert not server.exists(name) and not await done(lock.locked()) and not await done(lock.owned())
        assert await done(other.acquire(blocking=False)) is True
        await done(other.release())

    run(body)


def test_a_wait_ends_at_its_timeout(run: Run, name: str) -> None:
    async def body(make: Make) -> None:
        held = make(name, timeout=LONG)
        await done(held.acquire())
        assert await done(make(name, sleep=0.01).acquire(blocking_timeout=0.05)) is False
        assert await done(make(name, sleep=0.01, blocking_timeout=0.05).acquire()) is False
        assert await done(make(name, blocking=False).acquire()) is False
        assert await done(make(name, sleep=0.01).acquire(blocking_timeout=0)) is False
        with pytest.raises(LockError, match="Unable to acquire"):
            async with entered(make(name, sleep=0.01, blocking_timeout=0.05)):
                raise AssertionError("nobody has the lock")
        await done(held.release())
        assert await done(make(name, timeout=LONG).acquire(blocking_timeout=LONG)) is True

    run(body)


def test_a_body_holds_the_lock_and_releases_it(run: Run, server: redis_py.Redis, name: str) -> None:
    async def body(make: Make) -> None:
        lock = make(name, timeout=LONG)
        async with entered(lock) as held:
            assert held is lock and server.exists(name)
        assert not server.exists(name)
        with pytest.raises(ZeroDivisionError):
            async with entered(lock):
                raise ZeroDivisionError
        assert not server.exists(name)

    run(body)


def test_a_lock_that_is_not_held_cannot_be_released(run: Run, server: redis_py.Redis, name: str) -> None:
    async def body(make: Make) -> None:
        lock = make(name, timeout=LONG)
        with pytest.raises(LockError, match="already unlocked") as error:
            await done(lock.release())
        assert not isinstance(error.value, LockNotOwnedError) and isinstance(error.value, ValueError)
        assert getattr(error.value, "lock_name") == name
        await done(lock.acquire())
        server.set(name, "of somebody else")
        assert not await done(lock.owned())
        with pytest.raises(LockNotOwnedError, match="no longer owned"):
            await done(lock.release())
        # It is forgotten anyway.
        with pytest.raises(LockError) as again:
            await done(lock.release())
        assert not isinstance(again.value, LockNotOwnedError)
        assert server.get(name) == b"of somebody else"
        server.delete(name)

    run(body)


def test_a_loss_in_a_body_is_raised_or_logged(
    run: Run, server: redis_py.Redis, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def body(make: Make) -> None:
        with pytest.raises(LockNotOwnedError):
            async with entered(make(name, timeout=LONG)):
                server.delete(name)
        with caplog.at_level(logging.WARNING):
            async with entered(make(name, timeout=LONG, raise_on_release_error=False)):
                server.delete(name)
        assert "no longer owned when exiting" in caplog.text

    run(body)


def test_only_the_timeout_frees_an_unreleased_lock(run: Run, name: str) -> None:
    async def body(make: Make) -> None:
        forgotten = make(name, timeout=SHORT)
        await done(forgotten.acquire())
        # It stays held when it is dropped.
        other = make(f"{name}-other", timeout=LONG)
        await done(other.acquire())
        del other
        gc.collect()
        assert await done(make(f"{name}-other").locked())
        assert await done(make(name, sleep=0.05, timeout=LONG).acquire(blocking_timeout=PATIENCE))
        with pytest.raises(LockNotOwnedError):
            await done(forgotten.release())

    run(body)


async def in_time(steps: Callable[[], Awaitable[Any]]) -> Any:
    """Tries again on a busy machine, where a short lock may expire between two calls."""
    for _ in range(20):
        try:
            return await steps()
        except LockNotOwnedError:
            pass
    raise AssertionError("the lock is lost each time")


async def outlive(make: Make, name: str) -> None:
    """Waits until a short lock that was just acquired is gone."""
    clock = make(f"{name}-clock", timeout=SHORT)
    assert await done(clock.acquire())
    assert await done(make(f"{name}-clock", sleep=0.05, timeout=LONG).acquire(blocking_timeout=PATIENCE))


def test_a_lock_is_extended(run: Run, name: str) -> None:
    async def body(make: Make) -> None:
        # A lease that is short from the beginning would stay short, and could expire on a busy machine.
        lock = make(name, timeout=LONG, sleep=0.05)
        with pytest.raises(LockError, match="unlocked"):
            await done(lock.extend(1))

        async def acquire_and_extend() -> None:
            await done(lock.acquire())
            assert await done(lock.extend(SHORT, replace_ttl=True)) is True
            # Added to what is left.
            assert await done(lock.extend(LONG)) is True

        await in_time(acquire_and_extend)
        await outlive(make, name)
        assert await done(lock.owned())
        # Put in place of an hour.
        assert await done(lock.extend(SHORT, replace_ttl=True)) is True
        assert await done(make(name, sleep=0.05, timeout=LONG).acquire(blocking_timeout=PATIENCE))
        with pytest.raises(LockNotOwnedError):
            await done(lock.extend(LONG))
        endless = make(f"{name}-endless")
        await done(endless.acquire())
        with pytest.raises(LockError, match="no timeout"):
            await done(endless.extend(1))
        await done(endless.release())

    run(body)


def test_a_lost_lock_cannot_be_extended(run: Run, server: redis_py.Redis, name: str) -> None:
    async def body(make: Make) -> None:
        lock = make(name, timeout=LONG)
        await done(lock.acquire())
        server.set(name, "of somebody else")
        for call in (lambda: lock.extend(LONG), lock.reacquire):
            with pytest.raises(LockNotOwnedError):
                await done(call())
        assert server.get(name) == b"of somebody else"
        server.delete(name)

    run(body)


def test_reacquire_restarts_the_timeout(run: Run, name: str) -> None:
    async def body(make: Make) -> None:
        lock = make(name, timeout=LONG, sleep=0.05)
        with pytest.raises(LockError, match="unlocked"):
            await done(lock.reacquire())

        async def acquire_and_begin_anew() -> None:
            await done(lock.acquire())
            assert await done(lock.extend(SHORT, replace_ttl=True)) is True
            assert await done(lock.reacquire()) is True

        await in_time(acquire_and_begin_anew)
        await outlive(make, name)
        assert await done(lock.owned())
        await done(lock.release())
        endless = make(name)
        await done(endless.acquire())
        with pytest.raises(LockError, match="no timeout"):
            await done(endless.reacquire())
        await done(endless.release())

    run(body)


@pytest.mark.parametrize("kind", [Theirs, Ours])
def test_threads_see_only_their_own_lease(kind: Any, server: redis_py.Redis, name: str) -> None:
    lock = kind(server, name, timeout=LONG)
    shared = kind(server, f"{name}-shared", timeout=LONG, thread_local=False)
    assert lock.acquire() and shared.acquire()
    with ThreadPoolExecutor(1) as pool:
        # redis-py fails for a thread that has acquired nothing yet.
        with pytest.raises((LockError, AttributeError)):
            pool.submit(lock.release).result(PATIENCE)
        assert kind is Theirs or pool.submit(lock.owned).result(PATIENCE) is False
        assert pool.submit(shared.owned).result(PATIENCE) is True
        pool.submit(shared.release).result(PATIENCE)
    assert lock.owned() and not shared.locked()
    lock.release()
    # The thread is gone, and its lock is not.
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join(PATIENCE)
    gc.collect()
    assert lock.locked() and not lock.owned()


@pytest.mark.parametrize("kind", [Theirs, Ours])
def test_a_client_of_redis_py_makes_both_kinds_of_locks(kind: Any, server: redis_py.Redis, name: str) -> None:
    lock = server.lock(name, timeout=LONG, blocking_timeout=1.5, lock_class=kind)
    assert type(lock) is kind and (lock.timeout, lock.blocking_timeout, lock.sleep) == (LONG, 1.5, 0.1)
    with lock:
        assert server.exists(name)


@pytest.mark.parametrize("kind", [Theirs, Ours])
def test_a_server_that_is_down_is_not_a_busy_lock(kind: Any, name: str) -> None:
    with socket.socket() as taken:
        # Nobody listens on that port, and no other process takes it.
        taken.bind(("127.0.0.1", 0))
        with redis_py.Redis(port=taken.getsockname()[1], retry=Retry(NoBackoff(), 0)) as client, pytest.raises(Unreachable):
            kind(client, name).acquire(blocking=False)


@pytest.mark.parametrize("waits", KINDS)
@pytest.mark.parametrize("holds", KINDS)
def test_both_libraries_exclude_each_other(holds: str, waits: str, redis: str, name: str) -> None:
    async def body(make: Make) -> None:
        held, wanted = make(name, of=0), make(name, of=1, sleep=0.05)
        assert await done(held.acquire(blocking=False))
        assert await done(wanted.acquire(blocking=False)) is False
        assert await done(wanted.locked()) and not await done(wanted.owned())
        with pytest.raises(LockError):
            await done(wanted.release())
        assert await done(held.owned())
        await done(held.release())
        assert await done(wanted.acquire(blocking_timeout=PATIENCE))
        assert await done(held.acquire(blocking=False)) is False
        await done(wanted.release())

    runner(redis, [holds, waits])(body)


def test_workers_of_both_kinds_are_never_inside_together(redis: str, server: redis_py.Redis, name: str) -> None:
    rounds, workers = 25, [Theirs, Ours, Theirs, Ours]

    def work(kind: Any) -> None:
        with redis_py.Redis.from_url(redis) as client:
            for _ in range(rounds):
                with kind(client, name, timeout=LONG, sleep=0.005):
                    count = int(client.get(f"{name}-count") or 0)
                    client.set(f"{name}-count", count + 1)

    with ThreadPoolExecutor(len(workers)) as pool:
        for future in [pool.submit(work, kind) for kind in workers]:
            future.result(PATIENCE)
    assert int(server.get(f"{name}-count") or 0) == rounds * len(workers)


# Features that redis-py does not have.


def test_a_lock_has_a_lease_with_a_growing_token(server: redis_py.Redis, name: str) -> None:
    lock = Ours(server, name)
    assert lock.lease is None and lock.token is None
    with lock:
        first = lock.token
        assert lock.lease is not None and first == lock.lease.token
    with lock:
        assert first is not None and lock.token is not None and lock.token > first
    with pytest.raises(leasehold.ConfigError, match="cannot be chosen"):
        lock.acquire(token="mine")
    with lock, pytest.raises(leasehold.ConfigError, match="reentrant"):
        Ours(server, name).acquire()


@pytest.mark.parametrize("kind", [Theirs, Ours])
def test_a_thread_waits_for_its_own_lock_if_that_has_a_timeout(kind: Any, server: redis_py.Redis, name: str) -> None:
    assert kind(server, name, timeout=SHORT).acquire() and kind(server, name, timeout=LONG).acquire()


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan")])
def test_an_invalid_timeout_is_refused_at_once(timeout: float, server: redis_py.Redis, name: str) -> None:
    with pytest.raises(leasehold.ConfigError, match="timeout"):
        Ours(server, name, timeout=timeout)
    lock = Ours(server, name, timeout=LONG)
    with lock:
        with pytest.raises(leasehold.ConfigError):
            lock.extend(float("inf"))
        assert lock.extend(1) is True


@pytest.mark.parametrize("kind", ["leasehold", "leasehold asyncio"])
def test_a_release_is_one_request(kind: str, redis: str, server: redis_py.Redis, name: str) -> None:
    def requests() -> int:
        stats = server.info("commandstats")
        return sum(stats.get(f"cmdstat_{script}", {"calls": 0})["calls"] for script in ("eval", "evalsha"))

    async def body(make: Make) -> None:
        lock, counts = make(name), []
        # The server has to be told the script at first, and clients of earlier tests may still release something.
        for _ in range(10):
            await done(lock.acquire())
            before = requests()
            await done(lock.release())
            counts.append(requests() - before)
        assert min(counts) == 1, counts

    runner(redis, [kind])(body)


def test_a_lease_that_is_over_keeps_no_client_alive(server: redis_py.Redis, name: str) -> None:
    before = set(_lock._kept)
    lock = Ours(server, name, timeout=SHORT)
    assert lock.acquire() and set(_lock._kept) - before
    eventually("the lease is forgotten at its end", lambda: not set(_lock._kept) - before)
    lock = Ours(server, name, timeout=LONG)
    with lock:
        assert name in _lock._timed
    assert not set(_lock._kept) - before and name not in _lock._timed


def test_exceptions_have_the_attributes_of_redis_py(server: redis_py.Redis, name: str) -> None:
    with pytest.raises(LockError) as unlocked:
        Ours(server, name).release()
    with pytest.raises(LockError) as theirs:
        Theirs(server, name).release()
    again = pickle.loads(pickle.dumps(unlocked.value))
    for error in (unlocked.value, again, copy.copy(again)):
        assert isinstance(error, OurError) and (error.lock_name, error.resource) == (name, name)
        assert vars(theirs.value).keys() <= vars(error).keys() and str(error) == str(theirs.value)
    down = LockConnectionError("down")
    for error in (down, pickle.loads(pickle.dumps(down)), copy.copy(down)):
        assert vars(Unreachable("down")).items() <= vars(error).items()
        assert "LockConnectionError" in repr(error) and str(error) == "down" and error.args == ("down",)


def test_the_end_of_the_timeout_is_reported_as_a_loss(server: redis_py.Redis, name: str) -> None:
    lock = Ours(server, name, timeout=SHORT)
    assert lock.acquire() and lock.lease is not None
    assert lock.lease.lost.wait(PATIENCE)
    assert isinstance(lock.lease.lost.reason, leasehold.LeaseLostError)
    # The record is removed by then or soon after, whatever its ttl.
    eventually("the lock is free", lambda: not server.exists(name))
    with pytest.raises(LockNotOwnedError) as error:
        lock.release()
    assert isinstance(error.value, leasehold.LeaseholdError)


def test_other_ways_to_name_the_server(redis: str, name: str) -> None:
    with leasehold.connect(redis) as client, Ours(client, name), pytest.raises(LockError):
        Ours(redis, name, blocking_timeout=0).__enter__()

    async def body() -> None:
        async with await leasehold.aio.connect(redis) as client, OursAsync(client, name):
            assert await OursAsync(redis, name).acquire(blocking=False) is False

    asyncio.run(body())


def test_a_forked_child_has_locks_of_its_own(redis: str, server: redis_py.Redis, name: str) -> None:
    lock = Ours(server, name, timeout=LONG)
    assert lock.acquire()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert not lock.owned() and Ours(server, name).acquire(blocking=False) is False
            with Ours(server, f"{name}-childs", timeout=LONG) as own:
                assert own.owned()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0 and lock.owned()
    lock.release()


def test_without_redis_py_a_url_works(redis: str, name: str) -> None:
    script = """
import sys
import leasehold
assert not any(name.partition(".")[0] == "redis" for name in sys.modules)
sys.modules["redis"] = None
from leasehold.compat.redis_py import Lock, LockError, LockNotOwnedError
with Lock(sys.argv[1], sys.argv[2]) as lock:
    assert lock.owned() and not Lock(sys.argv[1], sys.argv[2]).acquire(blocking=False)
try:
    lock.release()
except ValueError as error:
    assert isinstance(error, LockError) and not isinstance(error, LockNotOwnedError)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", script, redis, name], check=True, timeout=PATIENCE)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://localhost", "redis://localhost:6379/0"),
        ("redis://us%40er:p%2Fw@host:1/3", "redis://us%40er:p%2Fw@host:1/3"),
        ("redis://:pw@[::1]:7/0", "redis://:pw@[::1]:7/0"),
        ("unix:///run/r.sock?db=2&password=a%26b", "redis+unix:///run/r.sock?db=2&password=a%26b"),
        ("rediss://host", "rediss://host:6379/0"),
        (
            "rediss://host?ssl_ca_certs=/ca.pem&ssl_certfile=/c.pem&ssl_keyfile=/k.pem",
            "rediss://host:6379/0?ca=%2Fca.pem&cert=%2Fc.pem&key=%2Fk.pem",
        ),
    ],
)
def test_connections_of_redis_py_become_urls(url: str, expected: str) -> None:
    with redis_py.Redis.from_url(url) as client:
        assert url_of(client) == expected


def test_passwords_may_be_bytes() -> None:
    theirs: Any = redis_py.Redis
    assert url_of(theirs(password="p/w é".encode())) == url_of(theirs(password="p/w é"))
    assert url_of(theirs(unix_socket_path="/r.sock", password=b"p&w")) == "redis+unix:///r.sock?password=p%26w"
    assert url_of(theirs(ssl=True, ssl_cert_reqs=ssl.CERT_REQUIRED)) == "rediss://localhost:6379/0"


def test_settings_that_no_url_can_express_are_refused(name: str) -> None:
    for refused in ("rediss://h?ssl_cert_reqs=none", "rediss://h?ssl_check_hostname=False"):
        with redis_py.Redis.from_url(refused) as client, pytest.raises(leasehold.ConfigError, match="pass a client"):
            Ours(client, name)
    provider = redis_py.credentials.UsernamePasswordCredentialProvider("a", "b")
    with redis_py.Redis(credential_provider=provider) as client, pytest.raises(leasehold.ConfigError, match="provider"):
        Ours(client, name)
    with pytest.raises(leasehold.ConfigError, match="not a client of redis-py"):
        Ours(object(), name)
    theirs: Any = redis_py.Redis
    secrets: list[tuple[Any, str]] = [
        (theirs(ssl=True, ssl_password="hunter2"), "ssl_password"),
        (theirs(ssl=True, ssl_ca_data="hunter2"), "ssl_ca_data"),
        (theirs(ssl=True, ssl_cert_reqs=None), "ssl_cert_reqs"),
        (b"redis://:hunter2@h", "a bytes is not a client"),
    ]
    for client, what in secrets:
        with pytest.raises(leasehold.ConfigError, match=what) as error:
            Ours(client, name)
        assert "hunter2" not in str(error.value)


def test_sentinels_and_clusters_become_urls() -> None:
    of_sentinels: Any = redis_py.Sentinel
    sentinel = of_sentinels([("a", 1), ("b", 2)], sentinel_kwargs={"password": "s p"})
    assert url_of(sentinel.master_for("my/master", db=4, password="p")) == (
        "redis+sentinel://:p@a:1,b:2/my%2Fmaster/4?sentinel_password=s%20p"
    )
    with pytest.raises(leasehold.ConfigError, match="master_for"):
        url_of(sentinel.slave_for("my/master"))
    # A real one connects at once.
    nodes = {"a:1": SimpleNamespace(host="a", port=1), "b:2": SimpleNamespace(host="b", port=2)}
    cluster = SimpleNamespace(nodes_manager=SimpleNamespace(startup_nodes=nodes, connection_kwargs={"password": "p"}))
    assert url_of(cluster) == "redis+cluster://:p@a:1,b:2"
