"""One lock of several, semaphores, and locks for readers and writers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import PATIENCE, TTL, connect, eventually, unix
from test_processes import says, start

import leasehold

LONG = 300.0
"""For leases that must not be lost, and are released."""


def test_any_of_several_locks_will_do(client: leasehold.Client, store: str, name: str) -> None:
    names = [f"{name}/{letter}" for letter in "abc"]
    with connect(store) as other:
        any_of = client.lock_any(names, ttl=LONG, owner="one")
        assert any_of.names == names
        leases = [any_of.__enter__() for _ in names]
        assert {lease.resource for lease in leases} == set(names)
        assert "held here" in repr(any_of)
        assert other.lock_any(iter(names)).acquire(blocking=False) is False
        with pytest.raises(leasehold.LockTimeoutError) as held, other.lock_any(names, wait=0.05):
            pass
        assert held.value.holder is not None and held.value.holder.owner == "one"
        with ThreadPoolExecutor() as pool:

            def wait() -> tuple[str, int]:
                with other.lock_any(names, ttl=LONG, wait=PATIENCE) as lease:
                    return lease.resource, lease.token

            waiting = pool.submit(wait)
            leases[1].release()
            resource, token = waiting.result(2 * PATIENCE)
        assert resource == leases[1].resource and token > leases[1].token
        for lease in (leases[0], leases[2]):
            lease.check(1)
            lease.release()
        # What was given up while it was waited for is held by nobody.
        other.lock_all(names, wait=PATIENCE).release()


def test_a_decorated_function_holds_one_of_several(client: leasehold.Client, name: str) -> None:
    @client.lock_any([f"{name}/{{port}}", f"{name}/other"], ttl=LONG, wait=PATIENCE)
    def serve(port: int) -> list[str]:
        return [info.resource for info in client.list(name)]

    assert serve(8080) in ([f"{name}/8080"], [f"{name}/other"])
    assert list(client.list(name)) == []


def test_a_semaphore_has_as_many_holders_as_permits(store: str, name: str) -> None:
    lock, now, most = threading.Lock(), 0, 0

    def work() -> None:
        nonlocal now, most
        with connect(store) as client:
            for _ in range(3):
                with client.semaphore(name, 2, ttl=LONG, wait=4 * PATIENCE) as permit:
                    assert permit.index < 2 and permit.resource == f"{name}#{permit.index}"
                    with lock:
                        now += 1
                        most = max(most, now)
                    permit.check()
                    with lock:
                        now -= 1

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work) for _ in range(4)]:
            done.result(5 * PATIENCE)
    assert 1 <= most <= 2


def test_a_permit_says_which_it_is(client: leasehold.Client, name: str) -> None:
    semaphore = client.semaphore(name, 2, ttl=LONG, data=b"here")
    with semaphore as first, semaphore as second:
        assert isinstance(first, leasehold.Permit) and isinstance(first, leasehold.Lease)
        assert {first.index, second.index} == {0, 1}
        assert f"<Permit {first.index} of" in repr(first)
        assert semaphore.acquire(blocking=False) is False
        info = client.inspect(first.resource)
        assert info is not None and info.data == b"here"

        @client.semaphore(f"{name}-{{part}}", 1, ttl=LONG)
        def convert(part: int) -> bool:
            return client.inspect(f"{name}-{part}#0") is not None

        assert convert(7)
    assert semaphore.name == name


def test_all_clients_agree_on_the_number_of_permits(client: leasehold.Client, store: str, name: str) -> None:
    with connect(store) as other:
        with client.semaphore(name, 2, ttl=LONG):
            with pytest.raises(leasehold.ConfigError, match="permits is 3 here, and 2 in the store"):
                other.semaphore(name, 3, wait=PATIENCE).acquire()
            with pytest.raises(leasehold.LockBusyError):
                other.set_permits(name, 3)

        def is_changed() -> bool:
            # What the refused request took goes back in the background.
            try:
                other.set_permits(name, 3)
            except leasehold.LockBusyError:
                return False
            return True

        eventually("the number can be changed", is_changed)
        with other.semaphore(name, 3, wait=PATIENCE) as permit:
            assert permit.index < 3
        with pytest.raises(leasehold.ConfigError, match="permits is 2 here, and 3 in the store"):
            client.semaphore(name, 2, wait=PATIENCE).acquire()


@pytest.mark.parametrize("permits", [0, 65, -1, 2**70])
def test_impossible_numbers_are_refused(memory: str, permits: int) -> None:
    with leasehold.connect(memory) as client:
        calls: list[Callable[[], object]] = [
            lambda: client.semaphore("license", permits).acquire(),
            lambda: client.set_permits("license", permits),
            lambda: client.rw_lock("license", readers=permits).read().acquire(),
            lambda: client.rw_lock("license", readers=permits).write().acquire(),
            lambda: client.set_readers("license", permits),
        ]
        for call in calls:
            with pytest.raises(leasehold.ConfigError, match="1 to 64") as refused:
                call()
            assert str(permits) in str(refused.value)


def test_values_of_other_types_are_refused(memory: str) -> None:
    with leasehold.connect(memory) as client:
        for wrong in ("5", True, 1.5, None):
            with pytest.raises(TypeError):
                client.semaphore("license", wrong).acquire()  # type: ignore[arg-type]
        for misfit in ("abc", ["a", 5], 5):
            with pytest.raises(TypeError):
                client.lock_any(misfit)  # type: ignore[arg-type]
        for names in ([], [str(n) for n in range(65)]):
            with pytest.raises(leasehold.ConfigError, match="name at least one, and at most 64"):
                client.lock_any(names).acquire()
        with pytest.raises(TypeError, match="it has ttl, wait, owner, data, max_hold"):
            client.semaphore("license", 5, lock_delay=1)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="unexpected keyword argument 'data'"):
            client.rw_lock("catalog", data=b"")  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="wait= is how long to try"):
            client.lock_any(["a"], timeout=1)  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            client.rw_lock(5)  # type: ignore[arg-type]


@unix
@pytest.mark.parametrize("kind", ["sqlite", "redis"])
def test_the_permit_of_a_killed_holder_comes_back(kind: str, name: str, request: pytest.FixtureRequest) -> None:
    store: str = request.getfixturevalue(kind)
    holder = start(
        """
        client = leasehold.connect(sys.argv[1], request_timeout=5)
        permit = client.semaphore(sys.argv[2], 1, ttl=3, wait=PATIENCE).__enter__()
        print(permit.index, permit.token, flush=True)
        sys.stdin.read()
        """,
        store,
        name,
    )
    try:
        index, token = map(int, says(holder).split())
    finally:
        holder.kill()
        holder.communicate()
    with connect(store) as client, client.semaphore(name, 1, ttl=LONG, wait=PATIENCE) as permit:
        assert (permit.index, index) == (0, 0) and permit.token > token


def test_readers_share_and_writers_are_alone(client: leasehold.Client, store: str, name: str) -> None:
    with connect(store) as other, ThreadPoolExecutor() as pool:
        ours, theirs = (client.rw_lock(name, readers=2, ttl=LONG, wait=PATIENCE) for client in (client, other))
        first, second = ours.read().__enter__(), theirs.read().__enter__()
        assert client.rw_lock(name, readers=2, wait=0).write().acquire() is False

        def write() -> tuple[int, int]:
            with other.rw_lock(name, readers=2, ttl=LONG, wait=4 * PATIENCE).write() as lease:
                lease.check(1)
                for wait in (0, 0.05):
                    assert client.rw_lock(name, readers=2, wait=wait).read().acquire() is False
                    assert client.rw_lock(name, readers=2, wait=wait).write().acquire() is False
                return lease.token, len(list(client.list(f"{name}#")))

        writing = pool.submit(write)
        eventually("the writer is at the gate", lambda: client.inspect(f"{name}#gate") is not None)
        # Readers who come after a writer wait for it.
        assert client.rw_lock(name, readers=2, wait=0).read().acquire() is False
        assert not writing.done()
        first.release()
        second.release()
        token, locks = writing.result(5 * PATIENCE)
        assert token > max(first.token, second.token) and locks == 3
        with ours.read() as after:
            assert after.token > token
            with pytest.raises(leasehold.ConfigError, match="readers is 3 here, and 2 in the store"):
                other.rw_lock(name, readers=3, wait=PATIENCE).read().acquire()
            with pytest.raises(leasehold.LockBusyError):
                other.set_readers(name, 3)


def test_readers_that_come_and_go_do_not_keep_a_writer_out(store: str, name: str) -> None:
    is_written = threading.Event()

    def read() -> int:
        reads = 0
        with connect(store) as client:
            lock = client.rw_lock(name, readers=4, ttl=LONG, wait=4 * PATIENCE)
            while not is_written.is_set():
                with lock.read():
                    reads += 1
                    has_read.set()
        return reads

    has_read = threading.Event()
    with ThreadPoolExecutor() as pool, connect(store) as client:
        readers = [pool.submit(read) for _ in range(3)]
        try:
            assert has_read.wait(PATIENCE)
            with client.rw_lock(name, readers=4, ttl=LONG, wait=4 * PATIENCE).write() as lease:
                lease.check(1)
        finally:
            is_written.set()
        assert sum(reader.result(5 * PATIENCE) for reader in readers) > 0


def test_a_reader_cannot_become_a_writer(client: leasehold.Client, name: str) -> None:
    lock = client.rw_lock(name, ttl=LONG)
    with lock.read(), pytest.raises(leasehold.ConfigError, match="a reader cannot become a writer"):
        lock.write().acquire()
    assert lock.name == name and name in repr(lock)

    @lock.write()
    def write() -> int:
        return len(list(client.list(f"{name}#")))

    assert write() == 17


def test_a_write_is_lost_with_any_of_its_locks(memory: str) -> None:
    with leasehold.connect(memory) as client:
        told = threading.Event()
        writing = client.rw_lock("catalog", readers=2, ttl=TTL).write().__enter__()
        writing.on_lost(lambda _: told.set())
        assert client.release_if("catalog#reader1", owner="*")
        assert writing.lost.wait(PATIENCE) and told.wait(PATIENCE)
        with pytest.raises(leasehold.LeaseLostError):
            writing.release()
