"""Listing the locks of a store, and watching one."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from conftest import PATIENCE, Server, connect, without_left

import leasehold

LONG = 300.0
"""For leases that must not be lost."""


def test_the_held_locks_of_a_prefix_are_listed(client: leasehold.Client, store: str, name: str) -> None:
    locks = [f"{name}/{number}" for number in (1, 2, 30)]
    with connect(store) as other, client.lock_all(locks, ttl=LONG, owner="one"):
        seen = {info.resource: info for info in other.list(f"{name}/")}
        assert sorted(seen) == sorted(locks)
        assert all(info.owner == "one" and info.token and not info.foreign for info in seen.values())
        assert [info.resource for info in other.list(f"{name}/3")] == [f"{name}/30"]
        assert set(locks) <= {info.resource for info in other.list()}
    assert list(client.list(f"{name}/")) == []


def test_more_locks_than_a_page_are_listed_once_each(client: leasehold.Client, name: str) -> None:
    locks = {f"{name}/{number}" for number in range(260)}
    with client.lock_all(locks, ttl=LONG):
        seen = [info.resource for info in client.list(f"{name}/")]
        assert len(seen) == len(locks) and set(seen) == locks
        # It asks for pages as they are needed, and can be left.
        listing = client.list(f"{name}/")
        assert next(listing).resource in locks
        listing.close()


def test_runs_are_listed_while_they_are_under_way_and_done(client: leasehold.Client, store: str, name: str) -> None:
    with connect(store) as other:
        with client.once(name, key="mon", owner="night shift") as run:
            assert run is not None
            [under_way] = other.runs(f"{name}@")
            assert (under_way.name, under_way.key, under_way.done) == (name, "mon", None)
            assert under_way.holder is not None and under_way.holder.token == run.token
        [done] = other.runs(f"{name}@")
        assert without_left(done) == without_left(other.inspect_run(name, "mon"))
        assert done.holder is None and done.done is not None and done.done.owner == "night shift"
        assert done.resource in [each.resource for each in other.runs()]
    with client.once(name, keep=604_800):
        pass
    assert {run.key for run in client.runs(f"{name}@")} == {"mon", None}
    with pytest.raises(TypeError, match="prefix must be"):
        client.runs(5)  # type: ignore[arg-type]


def test_bad_prefixes_are_refused(client: leasehold.Client) -> None:
    for prefix in ("a\n", "x" * 1025):
        with pytest.raises(leasehold.ConfigError):
            list(client.list(prefix))
    with pytest.raises(TypeError, match="prefix must be"):
        client.list(5)  # type: ignore[arg-type]


def test_hostile_records_are_left_out(redis: str, name: str) -> None:
    port = int(redis.rpartition(":")[2])
    keys = {f"{name}/list": b"LPUSH %s x", f"{name}/text": b"SET %s not-ours", f"{name}/none": b"SET %s ''"}
    with connect(redis) as client, client.lock(f"{name}/held", ttl=LONG), socket.create_connection(("127.0.0.1", port)) as raw:
        for key, command in keys.items():
            raw.sendall(command % key.encode() + b"\r\n")
            assert raw.recv(100)[:1] in (b"+", b":")
        ours = [info.resource for info in client.list(f"{name}/") if not info.foreign]
        assert ours == [f"{name}/held"]
        for key in keys:
            raw.sendall(b"DEL " + key.encode() + b"\r\n")
            assert raw.recv(100)


def test_each_change_of_the_holder_is_told(client: leasehold.Client, store: str, name: str) -> None:
    with connect(store) as other:
        changes = other.watch(name, every=timedelta(seconds=0.1))
        assert next(changes) == leasehold.Change("free")
        with client.lock(name, ttl=LONG, owner="one") as lease:
            change = next(changes)
            assert change.kind == "held" and change.error is None and change.holder is not None
            assert (change.holder.owner, change.holder.token) == ("one", lease.token)
        assert next(changes).kind == "free"
        changes.close()
        # A loop is left by break.
        for change in other.watch(name):
            assert change.kind == "free"
            break


def test_a_watch_ends_with_its_client(client: leasehold.Client, name: str) -> None:
    changes = client.watch(name, every=0.1)
    assert next(changes).kind == "free"
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(next, changes)
        client.close()
        with pytest.raises(leasehold.ClosedError):
            waiting.result(PATIENCE)


def test_a_watch_tells_that_the_store_is_gone(name: str) -> None:
    server = Server("redis")
    try:
        client = connect(server.url)
        changes = client.watch(name, every=0.1)
        assert next(changes).kind == "free"
    finally:
        server.close()
    change = next(changes)
    assert change.kind == "unreadable" and isinstance(change.error, leasehold.StoreUnavailableError)


def test_bad_watches_are_refused(client: leasehold.Client, name: str) -> None:
    for bad, every in (("a\n", 1.0), (name, 0.01), (name, float("inf"))):
        with pytest.raises(leasehold.ConfigError):
            next(client.watch(bad, every=every))
    with pytest.raises(TypeError):
        client.watch(5)  # type: ignore[arg-type]


def test_a_lock_that_need_not_be_fair_is_a_lock(client: leasehold.Client, store: str, name: str) -> None:
    with connect(store) as other, ThreadPoolExecutor() as pool:
        lease = client.acquire(name, ttl=LONG, fair=False)
        assert other.try_acquire(name, fair=False) is None
        waiting = pool.submit(other.acquire, name, ttl=LONG, wait=PATIENCE, fair=False)
        lease.release()
        waiting.result(2 * PATIENCE).release()
    with pytest.raises(TypeError):
        client.lock(name, fair="no")  # type: ignore[arg-type]
