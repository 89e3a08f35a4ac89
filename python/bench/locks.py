"""`cargo xtask bench python`: this package beside other locks on Redis, in one run, against one real server.

Figures of one machine mean nothing on another, so each column that is measured is followed by its ratio to the floor: two
commands on a socket, written by hand.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import importlib.metadata
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

# aioredlock needs it, and few have it: redis-py would use it too.
sys.modules["hiredis"] = None  # type: ignore[assignment]
import pottery
import redis
import redis.asyncio
import redis_lock

del sys.modules["hiredis"]
import aioredlock
import leasehold
import leasehold.aio
from leasehold.compat.redis_py import Lock as CompatLock
from leasehold.compat.redis_py.asyncio import Lock as CompatAsyncLock

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from servers import Server  # noqa: E402

TTL = 30
FLOOR = "socket, by hand"
OVERALL = "time per pair, overall"
RELEASE = b"if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0"

Pair = Callable[[str], None]
AsyncPair = Callable[[str], Awaitable[None]]


def command(*words: bytes) -> bytes:
    return b"".join([b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)])


def acquiring(name: str) -> bytes:
    return command(b"SET", name.encode(), b"0123456789abcdef", b"NX", b"PX", b"%d" % (TTL * 1000))


def releasing(name: str) -> bytes:
    sha = hashlib.sha1(RELEASE).hexdigest().encode()
    return command(b"EVALSHA", sha, b"1", name.encode(), b"0123456789abcdef")


def pairs(port: int) -> dict[str, Pair]:
    """One acquisition and release, without asyncio."""
    import socket

    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(command(b"SCRIPT", b"LOAD", RELEASE))
    connection.recv(256)
    server = redis.Redis(port=port)
    client = leasehold.connect(f"redis://127.0.0.1:{port}")

    def by_hand(name: str) -> None:
        connection.sendall(acquiring(name))
        assert connection.recv(256) == b"+OK\r\n"
        connection.sendall(releasing(name))
        assert connection.recv(256) == b":1\r\n"

    def ours(name: str) -> None:
        client.acquire(name, ttl=TTL).release()

    def of(make: Callable[[str], Any]) -> Pair:
        def pair(name: str) -> None:
            lock = make(name)
            assert lock.acquire()
            lock.release()

        return pair

    return {
        FLOOR: by_hand,
        "leasehold": ours,
        "leasehold.compat.redis_py": of(lambda name: CompatLock(server, name, timeout=TTL)),
        "redis-py Lock": of(lambda name: redis.lock.Lock(server, name, timeout=TTL)),
        "python-redis-lock": of(lambda name: redis_lock.Lock(server, name, expire=TTL)),
        "pottery Redlock": of(lambda name: pottery.Redlock(key=name, masters={server}, auto_release_time=TTL)),
    }


async def async_pairs(port: int) -> dict[str, AsyncPair]:
    """As above, each task on a connection of its own where the library has a pool."""
    server = redis.asyncio.Redis(port=port)
    client = await leasehold.aio.connect(f"redis://127.0.0.1:{port}")
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def by_hand(name: str) -> None:
        reader, writer = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", port)
        writer.write(acquiring(name))
        assert await reader.readline() == b"+OK\r\n"
        writer.write(releasing(name))
        assert await reader.readline() == b":1\r\n"
        idle.append((reader, writer))

    async def ours(name: str) -> None:
        lease = await client.acquire(name, ttl=TTL)
        await lease.release()

    manager = aioredlock.Aioredlock([("127.0.0.1", port)])

    async def aioredlocks(name: str) -> None:
        lock = await manager.lock(name, lock_timeout=TTL)
        await manager.unlock(lock)

    def of(make: Callable[[str], Any]) -> AsyncPair:
        async def pair(name: str) -> None:
            lock = make(name)
            assert await lock.acquire()
            await lock.release()

        return pair

    return {
        FLOOR: by_hand,
        "leasehold.aio": ours,
        "leasehold.compat.redis_py": of(lambda name: CompatAsyncLock(server, name, timeout=TTL)),
        "redis-py Lock": of(lambda name: redis.asyncio.lock.Lock(server, name, timeout=TTL)),
        "pottery AIORedlock": of(
            lambda name: pottery.AIORedlock(key=name, masters={server}, auto_release_time=TTL)
        ),
        "aioredlock": aioredlocks,
    }


class Figures:
    """Of one library: seconds of each pair, and of the clock and the processor for all of them."""

    def __init__(self) -> None:
        self.took: list[float] = []
        self.wall = 0.0
        self.cpu = 0.0

    def p50_us(self) -> float:
        return statistics.median(self.took) * 1e6

    def overall_us(self) -> float:
        return self.wall / len(self.took) * 1e6

    def cpu_us(self) -> float:
        return self.cpu / len(self.took) * 1e6


def measure(port: int, rounds: int, times: int) -> dict[str, Figures]:
    figures: dict[str, Figures] = {}
    everyone = pairs(port)
    for number in range(rounds + 1):
        for library, pair in everyone.items():
            now = Figures()
            began, at = time.process_time(), time.perf_counter()
            for n in range(times):
                start = time.perf_counter()
                pair(f"bench-{n % 16}")
                now.took.append(time.perf_counter() - start)
            now.wall, now.cpu = time.perf_counter() - at, time.process_time() - began
            add(figures, library, now, number)
    return figures


async def measure_async(port: int, tasks: int, rounds: int, times: int) -> dict[str, Figures]:
    figures: dict[str, Figures] = {}
    everyone = await async_pairs(port)
    for number in range(rounds + 1):
        for library, pair in everyone.items():
            now = Figures()

            async def work(task: int, pair: AsyncPair = pair, now: Figures = now) -> None:
                for _ in range(max(times // tasks, 1)):
                    start = time.perf_counter()
                    await pair(f"bench-{task}")
                    now.took.append(time.perf_counter() - start)

            began, at = time.process_time(), time.perf_counter()
            await asyncio.gather(*(work(task) for task in range(tasks)))
            now.wall, now.cpu = time.perf_counter() - at, time.process_time() - began
            add(figures, library, now, number)
    return figures


def add(figures: dict[str, Figures], library: str, now: Figures, number: int) -> None:
    # The first round connects, loads scripts and warms up.
    if number > 0:
        known = figures.setdefault(library, Figures())
        known.took += now.took
        known.wall += now.wall
        known.cpu += now.cpu


def holding(port: int, locks: int, seconds: float) -> dict[str, tuple[float, int]]:
    """Seconds of the processor while so many locks are held and renewed every ten seconds, and how many are lost."""
    names = [f"held-{n}" for n in range(locks)]

    def ours() -> Callable[[], int]:
        client = leasehold.connect(f"redis://127.0.0.1:{port}", request_timeout=5)
        held = [client.acquire(name, ttl=TTL) for name in names]

        def end() -> int:
            lost = sum(lease.lost.is_set() for lease in held)
            client.close()
            return lost

        return end

    def heartbeat() -> Callable[[], int]:
        server = redis.Redis(port=port)
        held = [redis.lock.Lock(server, name, timeout=TTL, thread_local=False) for name in names]
        assert all(lock.acquire() for lock in held)
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(TTL / 3):
                for lock in held:
                    lock.reacquire()

        thread = threading.Thread(target=beat)
        thread.start()

        def end() -> int:
            ended.set()
            thread.join()
            return failed([lock.release for lock in held])

        return end

    def threads() -> Callable[[], int]:
        # A thread and a connection for each lock; renewed when two thirds of the expiry have passed.
        server = redis.Redis(port=port, max_connections=4 * locks)
        held = [redis_lock.Lock(server, name, expire=TTL // 2, auto_renewal=True) for name in names]
        assert all(lock.acquire() for lock in held)
        return lambda: failed([lock.release for lock in held])

    used = {}
    for library, begin in {
        "leasehold": ours,
        "redis-py Lock, one thread that reacquires": heartbeat,
        "python-redis-lock, auto_renewal": threads,
    }.items():
        end = begin()
        began = time.process_time()
        time.sleep(seconds)
        cpu = time.process_time() - began
        used[library] = cpu, end()
    return used


def handovers(port: int, processes: int, seconds: float) -> dict[str, float]:
    """Commands to Redis for each time that a lock is held, where eight workers in all these processes want it."""
    server = redis.Redis(port=port)
    each = {}
    for library in ("leasehold", "python-redis-lock"):
        server.flushall()
        before = server.info("stats")["total_commands_processed"]
        words = [sys.executable, __file__, "--contend", library, str(port), str(8 // processes), str(seconds)]
        workers = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(processes)]
        held = sum(int(worker.communicate()[0]) for worker in workers)
        each[library] = (server.info("stats")["total_commands_processed"] - before) / max(held, 1)
    return each


def contend(library: str, port: str, threads: str, seconds: str) -> None:
    """One process: holds the lock for 1 ms and pauses for 10 ms, over and over; prints how many times."""
    server = redis.Redis(port=int(port))
    client = leasehold.connect(f"redis://127.0.0.1:{port}")
    counts = []
    end = time.monotonic() + float(seconds)

    def work() -> None:
        count = 0
        while time.monotonic() < end:
            if library == "leasehold":
                lease = client.acquire("contended", ttl=TTL, wait=60)
            else:
                lease = redis_lock.Lock(server, "contended", expire=TTL)
                assert lease.acquire()
            time.sleep(0.001)
            lease.release()
            count += 1
            time.sleep(0.01)
        counts.append(count)

    workers = [threading.Thread(target=work) for _ in range(int(threads))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    client.close()
    print(sum(counts))


def failed(releases: list[Callable[[], object]]) -> int:
    count = 0
    for release in releases:
        try:
            release()
        except (redis.exceptions.LockError, redis_lock.NotAcquired):
            count += 1
    return count


def imports(times: int) -> dict[str, float]:
    """Seconds that an import takes over the bare interpreter."""
    statements = ["pass", "import leasehold", "import leasehold.aio", "import redis", "import redis_lock", "import pottery"]
    took: dict[str, list[float]] = {statement: [] for statement in statements}
    for _ in range(times):
        for statement in statements:
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            took[statement].append(time.perf_counter() - start)
    medians = {statement: statistics.median(values) for statement, values in took.items()}
    return {statement: value - medians["pass"] for statement, value in medians.items() if statement != "pass"}


def sizes() -> dict[str, int]:
    """Bytes of what pip installs, without bytecode."""
    sets = {
        "leasehold": ["leasehold-sdk"],
        "redis": ["redis"],
        "python-redis-lock, with redis": ["python-redis-lock", "redis"],
        "pottery, with redis": ["pottery", "redis", "mmh3", "typing_extensions"],
    }
    return {name: sum(map(size, packages)) for name, packages in sets.items()}


def size(package: str) -> int:
    files = importlib.metadata.files(package) or []
    paths = [Path(str(file.locate())) for file in files if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in paths if path.is_file())


def tell(case: str, measure: str, unit: str, values: dict[str, float], base: str | None = None) -> None:
    """For `cargo xtask bench --plot`: a line for each figure, in the file that it names."""
    for who, value in values.items():
        beside = f"{value / values[base]:f} | {base}" if base else "- | -"
        write([f"figure | Python | {case} | {measure} | {unit} | {who} | {value:f} | {beside}"])


def write(lines: Iterable[str]) -> None:
    if path := os.environ.get("LEASEHOLD_FIGURES"):
        with open(path, "a") as file:
            file.writelines(f"{line}\n" for line in lines)


def tell_versions() -> None:
    packages = {name: importlib.metadata.version(name) for name in ("redis", "python-redis-lock", "pottery", "aioredlock")}
    named = {"python": platform.python_version()} | {f"{name} for Python": found for name, found in packages.items()}
    write(f"version | {name} | {found}" for name, found in named.items())


def show(title: str, figures: dict[str, Figures]) -> None:
    floor = figures[FLOOR]
    case = title.removeprefix("acquire and release, ")
    tell(case, "p50", "us", {library: now.p50_us() for library, now in figures.items()}, FLOOR)
    tell(case, "CPU", "us", {library: now.cpu_us() for library, now in figures.items()}, FLOOR)
    tell(case, OVERALL, "us", {library: now.overall_us() for library, now in figures.items()}, FLOOR)
    print(f"\n{title}\n  {'':28} {'p50':>10} {'to floor':>9}   {'CPU/pair':>10} {'to floor':>9}   {'pairs/s':>7}")
    for library, now in figures.items():
        p50, cpu = now.p50_us(), now.cpu_us()
        ratios = f"{p50 / floor.p50_us():>8.1f}x", f"{cpu / floor.cpu_us():>8.1f}x"
        rate = 1e6 / now.overall_us()
        print(f"  {library:28} {p50:>7.0f} us {ratios[0]}   {cpu:>7.0f} us {ratios[1]}   {rate:>7.0f}")


def show_ratios(title: str, values: dict[str, float], unit: str) -> None:
    first = next(iter(values.values()))
    print(f"\n{title}")
    for name, value in values.items():
        print(f"  {name:44} {value:>9.1f} {unit} {value / first:>8.1f}x")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="much less of it, to see that it runs")
    parser.add_argument("--contend", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.contend:
        return contend(*given.contend)
    quick = given.quick
    # Heartbeats come every ten seconds.
    rounds, times, seconds = (2, 50, 12.0) if quick else (10, 500, 30.0)
    tell_versions()
    with Server("redis") as server:
        port = server.port
        show("acquire and release, without asyncio", measure(port, rounds, times))
        for tasks in (1, 64):
            title = f"acquire and release, asyncio, {tasks} task{'s' if tasks > 1 else ''}"
            show(title, asyncio.run(measure_async(port, tasks, rounds, times)))
        for processes in (1, 4):
            case = f"8 workers want one lock, in {processes} process{'es' if processes > 1 else ''}"
            each = handovers(port, processes, 2 if quick else 10)
            show_ratios(f"commands to Redis, {case}", each, "")
            tell(case, "commands", "1", each, "python-redis-lock")
        locks = 100 if quick else 1_000
        title = f"processor while {locks} locks are held for {seconds:.0f} s"
        held = holding(port, locks, seconds)
        cpu = {library: cpu * 1e3 for library, (cpu, _) in held.items()}
        lost = {library: float(lost) for library, (_, lost) in held.items()}
        show_ratios(title, cpu, "ms")
        print("  lost meanwhile:", ", ".join(f"{library} {count:.0f}" for library, count in lost.items()))
        case = f"{locks} locks held for {seconds:.0f} s"
        tell(case, "CPU", "ms", cpu, "redis-py Lock, one thread that reacquires")
        tell(case, "lost", "1", lost)
    took = {statement: seconds * 1e3 for statement, seconds in imports(5 if quick else 30).items()}
    show_ratios("import, over the bare interpreter", took, "ms")
    # On a busy machine the bare interpreter may happen to be slower.
    tell("import", "time", "ms", {name.removeprefix("import "): max(ms, 0.01) for name, ms in took.items()}, "redis")
    megabytes = {name: size / 1e6 for name, size in sizes().items()}
    show_ratios("installed, without bytecode", megabytes, "MB")
    tell("installed", "size", "MB", megabytes, "redis")


if __name__ == "__main__":
    main()
