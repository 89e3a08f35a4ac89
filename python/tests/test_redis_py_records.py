"""Records that people change by hand, with redis-py's locks and with their replacement."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import redis as redis_py
from conftest import PATIENCE, eventually
from redis.exceptions import LockNotOwnedError
from redis.lock import Lock as Theirs
from test_redis_py import LONG, SHORT, Make, Run, done, entered, run, runner, server

from leasehold.compat.redis_py import Lock as Ours
from leasehold.compat.redis_py import _lock

__all__ = ["run", "server"]


@pytest.mark.parametrize("ends", ["timeout", "deletion"])
def test_a_loss_at_the_end_of_a_body_keeps_the_exception_of_the_body(
    run: Run, server: redis_py.Redis, name: str, ends: str
) -> None:
    async def body(make: Make) -> None:
        with pytest.raises(LockNotOwnedError) as lost:
            async with entered(make(name, timeout=SHORT if ends == "timeout" else LONG)):
                if ends == "deletion":
                    server.delete(name)
                eventually("the lock is gone", lambda: not server.exists(name))
                raise ZeroDivisionError
        contexts: list[BaseException] = []
        error: BaseException | None = lost.value
        while (error := error.__context__ if error is not None else None) is not None:
            contexts.append(error)
        assert any(isinstance(error, ZeroDivisionError) for error in contexts)
        # So that it is found as with redis-py.
        assert isinstance(lost.value.__context__, ZeroDivisionError)

    run(body)


def test_a_key_that_is_deleted_by_hand_frees_the_lock_at_once(run: Run, server: redis_py.Redis, name: str) -> None:
    async def body(make: Make) -> None:
        stuck = make(name, timeout=LONG)
        assert await done(stuck.acquire())
        server.delete(name)
        # By the same process, which still has its own lease, and without waiting for a renewal.
        other = make(name, timeout=LONG)
        assert await done(other.acquire(blocking=False)) is True
        with pytest.raises(LockNotOwnedError):
            await done(stuck.release())
        assert await done(other.owned())
        await done(other.release())

    run(body)


@pytest.mark.parametrize("kind", [Theirs, Ours])
def test_a_waiter_gets_a_key_that_is_deleted_by_hand(
    kind: Any, server: redis_py.Redis, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that no renewal detects it.
    monkeypatch.setattr(_lock, "DEFAULT_TTL", LONG)
    stuck = kind(server, name, timeout=LONG)
    assert stuck.acquire()
    had = threading.Event()

    def wait() -> None:
        waiting = kind(server, name, timeout=LONG, sleep=0.05)
        if waiting.acquire(blocking_timeout=LONG):
            had.set()
            waiting.release()

    thread = threading.Thread(target=wait)
    thread.start()
    assert not had.wait(0.3)
    server.delete(name)
    assert had.wait(PATIENCE)
    thread.join(PATIENCE)
    with pytest.raises(LockNotOwnedError):
        stuck.release()


@pytest.mark.parametrize("how", ["reacquire", "extend"])
def test_a_time_to_live_that_was_shortened_by_hand_is_restored(
    run: Run, server: redis_py.Redis, name: str, how: str
) -> None:
    async def body(make: Make) -> None:
        lock = make(name, timeout=25)
        assert await done(lock.acquire())
        server.pexpire(name, 5_000)
        assert await done(lock.reacquire() if how == "reacquire" else lock.extend(10)) is True
        assert 10_000 < server.pttl(name)
        await done(lock.release())

    run(body)


@pytest.mark.parametrize("named", [42, 4.5, b"bytes", memoryview(b"view")])
@pytest.mark.parametrize("kinds", [("redis-py", "leasehold"), ("redis-py asyncio", "leasehold asyncio")])
def test_bytes_and_numbers_name_the_same_key(kinds: tuple[str, str], named: Any, redis: str) -> None:
    async def body(make: Make) -> None:
        theirs, ours = make(named, of=0, timeout=LONG), make(named, of=1, timeout=LONG)
        assert await done(theirs.acquire(blocking=False))
        assert await done(ours.acquire(blocking=False)) is False
        await done(theirs.release())
        assert await done(ours.acquire(blocking=False))
        assert await done(theirs.acquire(blocking=False)) is False
        await done(ours.release())

    runner(redis, list(kinds))(body)
    for refused in (None, True, ["a"]):
        with pytest.raises(TypeError, match="name must be"):
            Ours(redis, refused)  # type: ignore[arg-type]


