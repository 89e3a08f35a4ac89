"""Advice for arguments that are probably mistakes."""

from __future__ import annotations

import asyncio
import inspect
import socket
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
import redis as redis_py
from conftest import PATIENCE, TTL, Server

import leasehold
import leasehold.aio as aio
import leasehold.testing


def test_milliseconds_raise_a_warning_at_the_line_of_the_caller(memory: str, name: str) -> None:
    client = leasehold.connect(memory)
    calls: list[Callable[[], object]] = [
        lambda: client.acquire(name, ttl=30_000).release(),
        lambda: client.acquire(name, wait=5000).release(),
        lambda: client.lock(name, ttl=30_000.0),
        lambda: client.lock_all([name], ttl=30_000).release(),
    ]
    for call in calls:
        with pytest.warns(UserWarning, match="=(30000|5000) is [81] h 2[03] min.* write (ttl=30|wait=5), ") as warned:
            call()
        assert len(warned) == 1 and warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for meant in (3600, 86_400, 90, 999, timedelta(seconds=30_000)):
            client.acquire(name, ttl=meant).release()
        client.acquire(name, wait=float("inf")).release()


def test_a_period_of_years_raises_a_warning_at_the_line_of_the_caller(memory: str, name: str) -> None:
    client = leasehold.connect(memory)
    calls: list[Callable[[], object]] = [
        lambda: client.once(name, every=86_400_000),
        lambda: client.once(name, cooldown=86_400_000),
        lambda: client.once(name, key="s", keep=86_400_000.0),
    ]
    for call in calls:
        with pytest.warns(UserWarning, match="=86400000 is 1000 days, since .* seconds: .* write [a-z]+=86400, ") as warned:
            call()
        assert len(warned) == 1 and warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for keep in (86_400, 365 * 86_400, 10 * 365 * 86_400, timedelta(days=1000)):
            client.once(name, key="s", keep=keep)


def test_a_period_of_years_is_logged_once_in_a_process() -> None:
    script = """
import logging, sys
from datetime import timedelta

import leasehold

logging.basicConfig(level=logging.WARNING, stream=sys.stdout)
with leasehold.connect("memory:") as client:
    for name in ("a", "b"):
        with client.once(name, every=timedelta(days=1000)) as run:
            assert run
"""
    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert said.stdout.count("was a smaller unit meant?") == 1 and said.stderr == "", said
    assert 'every of "a" is 1000 days, a thousand times 24 h' in said.stdout


def test_a_bool_is_not_a_duration(memory: str, name: str) -> None:
    client = leasehold.connect(memory)
    for options in ({"wait": True}, {"wait": False}, {"ttl": True}):
        with pytest.raises(TypeError, match="number of seconds or a timedelta, not bool"):
            client.acquire(name, **options)  # type: ignore[arg-type]


def test_the_error_for_timeout_names_ttl_and_wait(memory: str, name: str) -> None:
    client = leasehold.connect(memory)
    calls: list[tuple[Callable[..., object], str]] = [
        (client.acquire, "acquire"),
        (client.lock, "acquire"),
        (client.try_acquire, "acquire"),
        (lambda name, **options: client.lock_all([name], **options), "lock_all"),
    ]
    for call, what in calls:
        with pytest.raises(TypeError, match=rf"^{what}\(\) got .* 'timeout': .*ttl= .*wait= ") as refused:
            call(name, timeout=3)
        shown = "".join(traceback.format_exception_only(refused.type, refused.value))
        assert "_native" not in shown and "Client.request" not in shown
    with pytest.raises(TypeError, match="'tll': it has ttl, wait, owner"):
        client.acquire(name, tll=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'timeout': request_timeout= "):
        leasehold.connect(memory, timeout=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'url': the stores come first"):
        leasehold.connect(url=memory)  # type: ignore[call-arg]

    async def body() -> None:
        with pytest.raises(TypeError, match="'timeout': request_timeout= "):
            await aio.connect(memory, timeout=3)  # type: ignore[call-arg]
        async with await aio.connect(memory) as other:
            acquires: list[Callable[..., Awaitable[object]]] = [other.acquire, other.try_acquire]
            for acquire in acquires:
                with pytest.raises(TypeError, match="'timeout': .*ttl= .*wait= "):
                    await acquire(name, timeout=3)

    asyncio.run(body())


LOCK = ["name", "ttl", "wait", "owner", "data", "lock_delay", "max_hold", "renew_every", "renew", "fair", "watch_holder"]
TRY = [option for option in LOCK if option != "wait"]
ALL = ["names", "ttl", "wait", "owner", "max_hold"]
ANY = ["ttl", "wait", "owner", "data", "max_hold"]
CONNECT = ["stores", "owner", "session", "drift_ppm", "request_timeout", "max_ttl", "quorum_id", "create_quorum"]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (leasehold.connect, CONNECT),
        (leasehold.Client.acquire, ["self", *LOCK]),
        (leasehold.Client.lock, ["self", *LOCK]),
        (leasehold.Client.try_acquire, ["self", *TRY]),
        (leasehold.Client.lock_all, ["self", *ALL]),
        (leasehold.Client.lock_any, ["self", "names", *ANY]),
        (leasehold.Client.semaphore, ["self", "name", "permits", *ANY]),
        (leasehold.Client.rw_lock, ["self", "name", "readers", *ALL[1:]]),
        (aio.connect, CONNECT),
        (aio.Client.acquire, ["self", *LOCK]),
        (aio.Client.lock, ["self", "name", "on_lost", *LOCK[1:]]),
        (aio.Client.try_acquire, ["self", *TRY]),
        (aio.Client.lock_all, ["self", *ALL]),
        (aio.Client.lock_any, ["self", "names", "on_lost", *ANY]),
        (aio.Client.semaphore, ["self", "name", "permits", "on_lost", *ANY]),
        (aio.Client.rw_lock, ["self", "name", "on_lost", "readers", *ALL[1:]]),
    ],
)
def test_signatures_show_the_options(function: Callable[..., object], expected: list[str]) -> None:
    assert list(inspect.signature(function).parameters) == expected


def test_the_options_shown_are_the_options_accepted(memory: str, name: str) -> None:
    client = leasehold.connect(memory)
    for function in (client.acquire, client.try_acquire):
        shown = {key: option.default for key, option in inspect.signature(function).parameters.items() if key != "name"}
        lease = function(name, **shown)
        assert lease is not None
        lease.release()
    options = {key: option.default for key, option in inspect.signature(leasehold.connect).parameters.items()}
    leasehold.connect(**{**options, "stores": memory}).close()


def test_errors_are_shown_as_users_import_them(memory: str, name: str) -> None:
    client = leasehold.connect(memory)
    with client.lock(name, ttl=TTL), pytest.raises(leasehold.LockBusyError) as busy:
        client.acquire(name, wait=0)
    assert traceback.format_exception_only(busy.type, busy.value)[0].startswith("leasehold.LockBusyError: ")
    for public in leasehold.__all__:
        thing = getattr(leasehold, public)
        assert not isinstance(thing, type) or thing.__module__ == "leasehold", public


def test_the_owner_names_the_thread(memory: str, name: str) -> None:
    client = leasehold.connect(memory)
    owners: list[str] = []

    def work() -> None:
        with client.lock(name, ttl=TTL, wait=PATIENCE) as lease:
            owners.append(lease.owner)
        with client.lock_all([name], ttl=TTL, wait=PATIENCE) as leases:
            owners.append(leases[0].owner)

    thread = threading.Thread(target=work, name="billing-7")
    thread.start()
    thread.join(PATIENCE)
    work()
    assert [owner.rpartition(":")[2] for owner in owners] == ["billing-7"] * 2 + [threading.current_thread().name] * 2


def test_the_error_for_a_wrong_type_names_the_parameter(memory: str) -> None:
    client = leasehold.connect(memory)
    calls: list[Callable[[], object]] = [
        lambda: client.acquire(42),  # type: ignore[arg-type]
        lambda: client.try_acquire(42),  # type: ignore[arg-type]
        lambda: client.lock(42),  # type: ignore[arg-type]
        lambda: client.inspect(42),  # type: ignore[arg-type]
        lambda: client.elect(42),  # type: ignore[arg-type]
        lambda: client.lock_all([42]),  # type: ignore[list-item]
    ]
    for call in calls:
        with pytest.raises(TypeError, match="^name must be .*not int: 42"):
            call()
    for store, kind in ((redis_py.Redis(), "Redis"), (7, "int")):
        with pytest.raises(TypeError, match=f"^stores is a url.* not {kind}"):
            leasehold.connect(store)  # type: ignore[arg-type]


def test_a_task_that_would_wait_for_itself_is_refused(memory: str, name: str) -> None:
    async def body() -> None:
        async with await aio.connect(memory) as client:
            async with client.lock(name, ttl=TTL):
                with pytest.raises(leasehold.ConfigError, match="this task already holds the lock"):
                    await client.acquire(name)
                with pytest.raises(leasehold.ConfigError, match="reentrant"):
                    async with client.lock(name):
                        pass
                # A wait with a limit is allowed, and so is another task of the same thread.
                with pytest.raises(leasehold.LockTimeoutError):
                    await client.acquire(name, wait=0.01)
                other = asyncio.create_task(client.acquire(name))
                await asyncio.sleep(0.01)
                assert not other.done()
            await (await other).release()
            # A task that has released the lock can acquire it again.
            await (await client.acquire(name)).release()

    asyncio.run(body())


def test_an_absent_server_is_reported_once_with_advice() -> None:
    for url in ("redis://127.0.0.1:1", "webdis+http://127.0.0.1:1"):
        with pytest.raises(leasehold.StoreUnavailableError) as down:
            leasehold.connect(url)
        said = str(down.value)
        assert said.count("Connection refused") == said.count("127.0.0.1:1") == 1 and "is the server running" in said


def test_a_server_without_tls_is_reported() -> None:
    server = Server("redis")
    try:
        # A Redis waits for the rest of an incomplete command.
        with pytest.raises(leasehold.StoreUnavailableError, match="does not answer in TLS.*redis://"):
            leasehold.connect(f"rediss://127.0.0.1:{server.port}")
    finally:
        server.close()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            connection.recv(100)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.close()

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(leasehold.StoreUnavailableError, match="does not answer in TLS.*http instead of https"):
            leasehold.connect(f"upstash+https://:token@127.0.0.1:{listener.getsockname()[1]}")


def test_a_fake_client_prints_exceptions_of_callbacks_without_a_hook(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    monkeypatch.setattr("sys.unraisablehook", sys.__unraisablehook__)
    client = leasehold.testing.connect()
    lease = client.acquire("job")
    lease.on_lost(lambda error: 1 // 0)
    client.lose("job")
    assert "ZeroDivisionError" in capsys.readouterr().err and lease.lost.is_set()
