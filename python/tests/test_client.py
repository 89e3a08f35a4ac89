"""Clients, on each kind of store."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from conftest import PATIENCE, REQUEST_TIMEOUT, TTL, Server, connect, eventually, until

import leasehold
import leasehold.aio as aio


def test_a_lock_has_one_holder_at_a_time(client: leasehold.Client, store: str, name: str) -> None:
    with client.lock(name, ttl=TTL) as lease:
        assert lease.resource == name
        assert isinstance(lease.token, int)
        assert 0 < lease.remaining() <= TTL
        lease.check()
        lease.check(timedelta(seconds=0.5))
        assert not lease.lost.is_set() and lease.lost.reason is None
        with connect(store) as other:
            assert other.try_acquire(name) is None
            with pytest.raises(leasehold.LockBusyError) as busy:
                other.acquire(name, wait=0)
            with pytest.raises(leasehold.LockTimeoutError) as late:
                other.acquire(name, wait=0.2)
    assert busy.value.resource == name
    assert busy.value.holder is not None and busy.value.holder.token == lease.token
    assert isinstance(late.value, TimeoutError) and late.value.holder is not None
    assert lease.remaining() == 0.0
    with pytest.raises(leasehold.NotOwnedError):
        lease.release()
    following = client.acquire(name)
    assert following.token > lease.token
    following.release()


def test_inspect_shows_the_holder(client: leasehold.Client, name: str) -> None:
    assert client.inspect(name) is None
    lease = client.acquire(name, ttl=timedelta(seconds=TTL), owner="worker 7", data=b"\x00\xff")
    info = client.inspect(name)
    assert info is not None
    assert (info.resource, info.owner, info.token, info.data) == (name, "worker 7", lease.token, b"\x00\xff")
    assert (info.votes, info.nodes, info.foreign) == (1, 1, False)
    assert info.since is not None and info.since > 1.7e9
    # Not every store records it.
    assert info.ttl in (TTL, None)
    assert "worker 7" in str(info) and name in repr(info)
    lease.release()


def test_release_if_releases_only_the_named_holder(client: leasehold.Client, name: str) -> None:
    assert not client.release_if(name, token=1)
    lease = client.acquire(name, ttl=TTL, owner="worker-7:1234:main")
    for other in ({"token": lease.token - 1}, {"owner": "worker-7:123:*"}, {"token": lease.token, "owner": "main"}):
        answer = client.release_if(name, **other)
        assert not answer and not answer.released
        assert answer.holder is not None and answer.holder.token == lease.token
    lease.check(0.1)
    for nobody in (None, -1, 1 << 64):
        with pytest.raises(leasehold.ConfigError):
            client.release_if(name, token=nobody)
    answer = client.release_if(name, token=lease.token, owner="worker-7:1234:*")
    assert answer and answer.released and answer.holder is not None and answer.holder.owner == lease.owner
    assert "released=True" in repr(answer)
    assert client.inspect(name) is None
    assert client.release_if(name, owner="*").holder is None
    with contextlib.suppress(leasehold.LeaseLostError):
        lease.release()


def test_revoke_tells_the_named_holder_and_keeps_others_out(client: leasehold.Client, name: str) -> None:
    assert not client.revoke(name, 1)
    lease = client.acquire(name, ttl=600, renew_every=0.2, owner="worker-7:1234:main")
    for token, owner in ((lease.token - 1, None), (lease.token, "main")):
        answer = client.revoke(name, token, owner=owner)
        assert not answer and not answer.revoked
        assert answer.holder is not None and answer.holder.token == lease.token and not answer.holder.revoked
    lease.check(0.1)
    answer = client.revoke(name, lease.token, owner="worker-7:*")
    assert answer and answer.revoked and answer.holder is not None and answer.holder.revoked
    assert "revoked=True" in repr(answer)
    assert lease.lost.wait(60)
    error = lease.lost.reason
    assert isinstance(error, leasehold.LeaseLostError) and error.reason == "revoked"
    info = client.inspect(name)
    assert info is not None and info.revoked and info.token == lease.token, "its work may still run"
    assert client.try_acquire(name) is None
    with pytest.raises(leasehold.LeaseLostError):
        lease.release()
    with client.lock(name, ttl=TTL, wait=60) as again:
        assert again.token > lease.token


def test_lock_all_acquires_all_or_none(client: leasehold.Client, store: str, name: str) -> None:
    names = [f"{name}/b", f"{name}/a", f"{name}/c"]
    with client.lock_all(names, ttl=TTL, wait=PATIENCE) as leases:
        leases.check(0.1)
        assert [leases[at].resource for at in range(len(leases))] == sorted(names)
        assert leases[names[1]].token == leases[0].token
        with pytest.raises(KeyError):
            leases["another"]
        with pytest.raises(IndexError):
            leases[3]
        with connect(store) as other:
            with pytest.raises(leasehold.LockBusyError):
                other.lock_all([f"{name}/0", names[0]], wait=0)
            assert other.inspect(f"{name}/0") is None, "what was taken before went back"
    assert all(client.inspect(each) is None for each in names)
    with pytest.raises(TypeError, match="letters"):
        client.lock_all("abc")


def test_a_lease_without_references_is_released(client: leasehold.Client, name: str) -> None:
    with pytest.warns(ResourceWarning, match=f'lease of "{name}" .token .* was dropped while it was held') as warned:
        client.acquire(name, ttl=TTL)
        gc.collect()
    assert warned[0].filename == __file__
    eventually("the lock is free", lambda: client.inspect(name) is None)
    leases = client.lock_all([name], ttl=TTL)
    one = leases[0]
    del leases
    one.check()
    with pytest.warns(ResourceWarning, match=name):
        del one
    eventually("the lock is free", lambda: client.inspect(name) is None)
    with pytest.warns(ResourceWarning, match=name):
        client.lock_all([name], ttl=TTL)
    lost = client.acquire(name, ttl=TTL).lost
    with pytest.warns(ResourceWarning, match=name):
        del lost
    # Neither a released nor a lost lease.
    client.acquire(name, ttl=TTL).release()
    assert client.acquire(name, ttl=0.1, renew=False).lost.wait(timeout=PATIENCE)


def test_a_dropped_lease_is_reported_with_its_name_and_line() -> None:
    lines = [
        "import leasehold",
        "lease = leasehold.connect('memory:').acquire('invoice/42')",
        "del lease",
    ]
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", "\n".join(lines)], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0 and "<string>:3: ResourceWarning: the lease of \"invoice/42\"" in done.stderr


def test_a_lost_lease_reports_the_loss_everywhere(client: leasehold.Client, name: str) -> None:
    told: list[BaseException] = []
    with pytest.raises(leasehold.LeaseLostError) as lost:
        with client.lock(name, ttl=0.2, renew=False) as lease:
            lease.on_lost(told.append)
            assert lease.lost.wait()
            assert lease.lost.is_set() and lease.remaining() == 0.0
            with pytest.raises(leasehold.LeaseLostError):
                lease.check()
    assert lost.value.resource == name
    assert isinstance(lease.lost.reason, leasehold.LeaseLostError)
    assert "lost" in repr(lease)
    eventually("the callback is called", lambda: len(told) == 1)
    assert isinstance(told[0], leasehold.LeaseLostError)
    lease.on_lost(told.append)
    eventually("the late callback is called", lambda: len(told) == 2)


def test_the_error_of_the_body_takes_precedence_over_the_loss(client: leasehold.Client, name: str) -> None:
    with pytest.raises(ZeroDivisionError):
        with client.lock(name, ttl=0.2, renew=False) as lease:
            lease.lost.wait()
            _ = 1 / 0


def test_a_lock_broken_since_the_last_renewal_is_reported_at_the_end_of_the_body(
    client: leasehold.Client, store: str, name: str
) -> None:
    with connect(store) as other:
        with pytest.raises(leasehold.LeaseLostError) as lost:
            with client.lock(name, ttl=3_600) as lease:
                assert other.release_if(name, token=lease.token)
        assert lost.value.resource == name and lease.lost.is_set()
        with pytest.raises(ZeroDivisionError):
            with client.lock(name, ttl=3_600) as lease:
                assert other.release_if(name, token=lease.token)
                _ = 1 / 0
        lease = client.acquire(name, ttl=3_600)
        assert other.release_if(name, token=lease.token)
        rival = other.acquire(name, wait=0)
        with pytest.raises(leasehold.LeaseLostError, match="somebody else holds the lock now"):
            lease.release()
        shown = other.inspect(name)
        assert shown is not None and shown.token == rival.token, "it was left alone"
        rival.release()


def test_a_lease_may_be_released_within_the_body(client: leasehold.Client, name: str) -> None:
    with client.lock(name) as lease:
        lease.release()
        assert not lease.lost.is_set()
        assert lease.lost.wait(0) is False


def test_waiting_for_a_loss_ends_when_the_time_is_over_or_the_lease(client: leasehold.Client, name: str) -> None:
    lease = client.acquire(name, ttl=TTL)
    assert lease.lost.wait(0.1) is False
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(lease.lost.wait)
        lease.release()
        assert waiting.result(PATIENCE) is False


def test_a_closed_client_has_released_everything(store: str, name: str) -> None:
    client = connect(store)
    lease = client.acquire(name, ttl=TTL)
    client.close()
    client.close()
    assert lease.lost.is_set()
    with pytest.raises(leasehold.NotOwnedError, match="closed"):
        lease.check()
    with pytest.raises(leasehold.ClosedError, match="closed"):
        client.acquire(name)
    if not store.startswith("memory:"):
        with connect(store) as other:
            assert other.inspect(name) is None


@pytest.mark.skipif(sys.platform != "linux", reason="it counts in /proc")
@pytest.mark.parametrize("is_async", [False, True])
def test_closing_ends_connections_and_threads(redis: str, name: str, is_async: bool) -> None:
    def is_open() -> list[int]:
        return [len(os.listdir(f"/proc/self/{of}")) for of in ("fd", "task")]

    def used() -> leasehold.Client:
        client = connect(redis)
        with client.lock(name):
            pass
        return client

    async def run_all() -> None:
        async def used_here() -> aio.Client:
            client = await aio.connect(redis)
            async with client.lock(name):
                pass
            return client

        await (await used_here()).close()
        before = is_open()
        clients = [await used_here() for _ in range(5)]
        for client in clients:
            await client.close()
        await until(lambda: all(now <= then for now, then in zip(is_open(), before)))

    if is_async:
        asyncio.run(asyncio.wait_for(run_all(), PATIENCE))
        return
    used().close()
    before = is_open()
    clients = [used() for _ in range(5)]
    for client in clients:
        client.close()
    eventually("all are closed", lambda: all(now <= then for now, then in zip(is_open(), before)))
    with pytest.raises(leasehold.ClosedError):
        clients[0].inspect(name)


def test_closing_the_client_ends_waits_with_an_error(store: str, name: str) -> None:
    with connect(store) as other, other.lock(name, ttl=TTL):
        # A caller that has not started to wait yet gets an error for the closed client.
        for pause in (0.1, 1, 10):
            client = connect(store)
            with ThreadPoolExecutor() as pool:
                waiting = pool.submit(client.acquire, name, ttl=TTL)
                time.sleep(pause)
                client.close()
                error = waiting.exception(PATIENCE)
            assert isinstance(error, leasehold.ClosedError)
            if "during" in str(error):
                break
        assert isinstance(error, leasehold.ClosedError) and "closed during the call" in str(error)
        assert pickle.loads(pickle.dumps(error)).code == "closed"


def test_many_threads_share_one_client(client: leasehold.Client, name: str) -> None:
    inside = threading.Lock()
    tokens: list[int] = []

    def work() -> None:
        for _ in range(20):
            with client.lock(name, ttl=TTL, wait=PATIENCE) as lease:
                assert inside.acquire(blocking=False), "two are inside"
                tokens.append(lease.token)
                inside.release()

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work) for _ in range(8)]:
            done.result(PATIENCE)
    assert tokens == sorted(set(tokens)) and len(tokens) == 160


def test_a_leader_works_until_it_resigns(client: leasehold.Client, name: str) -> None:
    happened: list[object] = []
    with client.elect(
        name, ttl=TTL, on_start=lambda lease: happened.append(lease.token), on_stop=happened.append
    ) as election:
        eventually("it leads", lambda: election.token is not None and len(happened) == 1)
        assert happened == [election.token] and election.last_error is None
        assert "leading" in repr(election)
    assert happened[1:] == [None]
    assert election.token is None and client.inspect(name) is None


def test_a_callback_that_raises_ends_the_term(
    client: leasehold.Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: shown.append(unraisable.exc_type))

    def fail(lease: leasehold.Lease) -> None:
        raise ZeroDivisionError

    election = client.elect(name, ttl=TTL, on_start=fail)
    eventually("its exception is known", lambda: election.last_error is not None)
    eventually("the term is over", lambda: election.token is None and shown == [ZeroDivisionError])
    with pytest.raises(ZeroDivisionError):
        election.resign()
    assert client.inspect(name) is None


def test_a_coroutine_function_is_refused_as_a_callback(
    memory: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def later(_: object) -> None: ...

    client = connect(memory)
    with client.lock(name, ttl=TTL) as lease:
        for callback in (later, 7):
            with pytest.raises(TypeError, match="callback"):
                lease.on_lost(callback)  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="callback"):
                client.elect(name, on_start=callback)  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="callback"):
                client.elect(name, on_stop=callback)  # type: ignore[arg-type]
    # An error that appears only in the call ends the term, as any exception does.
    shown: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda unraisable: shown.append(unraisable.exc_type))
    election = client.elect(name, ttl=TTL, on_start=lambda lease: later(lease))
    eventually("it is known", lambda: shown == [TypeError] and election.last_error is not None)
    with pytest.raises(TypeError, match="nobody awaits"):
        election.resign()
    client.close()


def test_a_dropped_election_steps_down_without_waiting(memory: str, name: str) -> None:
    client = connect(memory)
    go_on, leads, over = threading.Event(), threading.Event(), threading.Event()

    def stop(error: leasehold.LeaseholdError | None) -> None:
        assert go_on.wait(PATIENCE)
        over.set()

    election = client.elect(name, ttl=TTL, on_start=lambda lease: leads.set(), on_stop=stop)
    assert leads.wait(PATIENCE)
    del election
    assert not over.is_set()
    go_on.set()
    assert over.wait(PATIENCE)
    eventually("it is free", lambda: client.inspect(name) is None)
    client.close()


def test_three_stores_are_a_quorum(name: str) -> None:
    nodes = [Server("redis") for _ in range(3)]
    try:
        urls = [node.url for node in nodes]
        client = leasehold.connect(urls, create_quorum=True, request_timeout=REQUEST_TIMEOUT)
        nodes[0].kill()
        with client.lock(name, ttl=TTL) as lease:
            info = client.inspect(name)
            assert info is not None and (info.token, info.nodes) == (lease.token, 3) and info.votes >= 2
            assert client.try_acquire(name) is None
        # The release on the absent node is not confirmed.
        with contextlib.suppress(leasehold.StoreUnavailableError):
            client.close()
    finally:
        for node in nodes:
            node.close()
