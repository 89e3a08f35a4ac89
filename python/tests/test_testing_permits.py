"""Permits, readers, writers, lists and watches of fake clients: they behave like the real ones."""

from __future__ import annotations

import pytest
from test_testing import client as client
from test_testing import clock as clock
from test_testing import rival as rival
from test_testing import two as two

import leasehold
from leasehold import testing

TTL = 30.0
Two = tuple[leasehold.Client, leasehold.Client]


def test_any_of_several_locks(two: Two) -> None:
    client, rival = two
    names = ["a", "b"]
    with client.lock_any(names, ttl=TTL) as first, client.lock_any(names, ttl=TTL) as second:
        assert {first.resource, second.resource} == {"a", "b"}
        assert not rival.lock_any(names).acquire(blocking=False)
        with pytest.raises(leasehold.LockTimeoutError) as held, rival.lock_any(names, wait=0.05):
            pass
        assert held.value.holder is not None and held.value.holder.owner == "me"
        first.release()
        with rival.lock_any(names, wait=1) as third:
            assert third.resource == first.resource and third.token > first.token
    for wrong in ([], [str(n) for n in range(65)]):
        with pytest.raises(leasehold.ConfigError, match="name at least one, and at most 64"):
            client.lock_any(wrong).acquire()


def test_permits(two: Two) -> None:
    client, rival = two
    with client.semaphore("license", 2, ttl=TTL) as one, rival.semaphore("license", 2, ttl=TTL) as other:
        assert {one.index, other.index} == {0, 1} and one.resource == f"license#{one.index}"
        assert not client.semaphore("license", 2).acquire(blocking=False)
        with pytest.raises(leasehold.ConfigError, match="permits is 3 here, and 2 in the store"):
            client.semaphore("license", 3).acquire()
        with pytest.raises(leasehold.LockBusyError):
            rival.set_permits("license", 3)
    for permits in (0, 65):
        for call in (lambda n: client.semaphore("license", n).acquire(), lambda n: client.set_permits("license", n)):
            with pytest.raises(leasehold.ConfigError, match=f"permits is {permits}; it can be 1 to 64"):
                call(permits)


def test_readers_and_writers(two: Two) -> None:
    client, rival = two
    ours, theirs = (client.rw_lock("catalog", readers=2, ttl=TTL) for client in two)
    with ours.read() as first, theirs.read() as second:
        assert not client.rw_lock("catalog", readers=2, wait=0).write().acquire()
        with pytest.raises(leasehold.ConfigError, match="a reader cannot become a writer"):
            ours.write().acquire()
    with ours.write() as writing:
        assert writing.token > max(first.token, second.token)
        writing.check(1)
        assert not rival.rw_lock("catalog", readers=2, wait=0).read().acquire()
        assert len(list(rival.list("catalog#"))) == 3
        with pytest.raises(leasehold.LockBusyError):
            rival.set_readers("catalog", 3)
    with theirs.read() as after:
        assert after.token > writing.token
    assert list(client.list("catalog")) == []


def test_lists_and_watches(two: Two) -> None:
    client, rival = two
    changes = rival.watch("job/1", every=0.1)
    assert next(changes).kind == "free"
    with client.lock("job/1", ttl=TTL, fair=False), client.lock("job/2", ttl=TTL), client.lock("other", ttl=TTL):
        assert sorted(info.resource for info in rival.list("job/")) == ["job/1", "job/2"]
        assert len(list(rival.list())) == 3
        change = next(changes)
        assert change.kind == "held" and change.holder is not None and change.holder.owner == "me"
    assert next(changes).kind == "free"
    for bad in (lambda: next(client.list("a\n")), lambda: next(client.watch("a\n")), lambda: next(client.watch("a", every=0.01))):
        with pytest.raises(leasehold.ConfigError):
            bad()


def test_a_number_can_be_changed_while_nobody_holds_any(client: testing.FakeClient, rival: testing.FakeClient) -> None:
    with client.semaphore("license", 2):
        pass
    rival.set_permits("license", 3)
    with client.semaphore("license", 3), pytest.raises(leasehold.ConfigError, match="permits is 2 here, and 3"):
        rival.semaphore("license", 2).acquire()


def test_the_permit_of_a_dead_holder_comes_back(client: testing.FakeClient, rival: testing.FakeClient) -> None:
    permit = client.semaphore("license", 1, ttl=TTL, max_hold=TTL).__enter__()
    with rival.semaphore("license", 1, wait=3 * TTL) as next_one:
        assert permit.lost.is_set() and next_one.token > permit.token


def test_a_write_is_lost_with_any_of_its_locks(client: testing.FakeClient, rival: testing.FakeClient) -> None:
    told: list[leasehold.LeaseholdError] = []
    writing = client.rw_lock("catalog", readers=2, ttl=TTL).write().__enter__()
    writing.on_lost(told.append)
    client.lose("catalog#reader1")
    assert writing.lost.is_set() and len(told) == 1 and writing.remaining() == 0.0
    with pytest.raises(leasehold.LeaseLostError):
        writing.release()
    with rival.rw_lock("catalog", readers=2, wait=0).write():
        pass


def test_a_store_that_is_down_is_told(client: testing.FakeClient) -> None:
    changes = client.watch("job")
    assert next(changes).kind == "free"
    client.store_down()
    change = next(changes)
    assert change.kind == "unreadable" and isinstance(change.error, leasehold.StoreUnavailableError)
    for call in (lambda: client.semaphore("license", 2, wait=0).acquire(), lambda: client.lock_any(["a"], wait=0).__enter__()):
        with pytest.raises(leasehold.StoreUnavailableError):
            call()
    client.store_up()
    assert next(changes).kind == "free"
    client.close()
    with pytest.raises(leasehold.ClosedError):
        next(changes)
