"""One program in one language under one kind of fault: several processes, and what must have become of their work."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from faults import Faults
from stores import Encrypted, Store, Watched, start
from service import PATIENCE, BrokenPromiseError, Counts, Service, Worker

STORES: dict[str, Callable[[Path], Store]] = {"failover": Watched, "certificate": Encrypted}
ENDLESS = ("leader", "partitions")
PARTITIONS = 8
PERMITS = 3


@dataclass
class Row:
    """A line of the table."""

    program: str
    language: str
    fault: str
    faults: int
    counts: Counts
    broken: list[str]
    seconds: float


class Process:
    """A process of a program, in a folder with all that it says."""

    def __init__(self, run: Run, args: list[str]) -> None:
        self.args = args
        self.log = run.folder / f"{next(run.numbers)}.log"
        environment = {**os.environ, "LEASEHOLD_STORE": run.url, "LEASEHOLD_REQUIRE_STORE": "1", "LEDGER": run.service.url, "PORT": "0", "PYTHONFAULTHANDLER": "1"}
        with self.log.open("wb") as said:
            command = [*run.command, *args]
            self.popen = start(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment)
        self.worker: Worker = run.service.start(self.popen.pid)
        run.processes.append(self)

    def has_ended(self, service: Service) -> bool:
        if self.popen.poll() is None:
            return False
        service.gone(self.worker)
        return True

    def end(self) -> None:
        for number in (signal.SIGCONT, signal.SIGTERM):
            self.popen.send_signal(number)
        try:
            self.popen.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            # Python then writes what each thread does to the log.
            self.popen.send_signal(signal.SIGABRT)
            self.popen.wait()
            raise BrokenPromiseError(f"a process does not end when it is told to: see {self.log}") from None


class Run:
    """Plays a scenario."""

    def __init__(self, program: str, language: str, fault: str, number: int, seed: int, command: list[str], folder: Path) -> None:
        self.program, self.language, self.fault, self.seed = program, language, fault, seed
        self.command, self.folder = command, folder
        self.numbers = itertools.count()
        self.processes: list[Process] = []
        self.random = random.Random(seed)
        folder.mkdir(parents=True)
        self.store = STORES.get(fault, Store)(folder)
        self.url = "memory:" if fault == "unshared" else self.store.url
        self.faults = Faults(fault, number, seed, self.store, program in ENDLESS)
        self.service = Service(folder, seed, self.faults.interfere)
        self.faults.service = self.service
        self.expected: list[str] = []

    def play(self) -> Row:
        began = time.monotonic()
        broken = []
        try:
            {
                "nightly": self._nightly,
                "orders": self._orders,
                "calls": self._calls,
                "migrate": self._migrate,
                "leader": self._endless,
                "partitions": self._endless,
            }[self.program]()
        except (BrokenPromiseError, AssertionError) as error:
            broken.append(str(error))
        finally:
            for process in self.processes:
                if process.popen.poll() is None:
                    process.popen.kill()
                    process.popen.wait()
            self.service.close()
            self.store.close()
        counts = self._count()
        broken += self._judge(counts)
        return Row(self.program, self.language, self.fault, self.faults.happened, counts, broken, time.monotonic() - began)

    def _count(self) -> Counts:
        counts = self.service.counts
        lines = self.service.lines()
        counts.lost = len(set(self.expected) - set(lines))
        if self.program in (*ENDLESS, "migrate"):
            for item in self.service.items():
                found = self.service.lines(item)
                names = sorted(set(found), key=lambda line: int("".join(c for c in line.split("/")[-1] if c.isdigit())))
                counts.disorder += sum(line != name for line, name in zip(dict.fromkeys(found), names, strict=True))
                if self.program in ENDLESS:
                    numbers = {int("".join(c for c in line.split("/")[-1] if c.isdigit())) for line in found}
                    counts.lost += max(numbers) + 1 - len(numbers)
        return counts

    def _judge(self, counts: Counts) -> list[str]:
        most = {"calls": PERMITS, "leader": 1, "migrate": 1, "nightly": 1, "partitions": PARTITIONS}.get(self.program)
        wrong = {
            "done twice": counts.twice,
            # Where the record is read after the claim, not even a death repeats work.
            "done again": 0 if self.program in ("nightly", "calls") else counts.again,
            "lost": counts.lost,
            "two at once": counts.overlaps,
            "more at once than allowed": 0 if most is None else max(0, counts.most - most),
            "out of order": counts.disorder,
        }
        broken = [f"{what}: {number}" for what, number in wrong.items() if number]
        if self.fault == "stop" and self.faults.happened and not counts.refused:
            broken.append("no late write was tried: the faults do not do what they should")
        if not counts.done:
            broken.append("nothing was done")
        return broken

    def _together(self, starts: list[list[str]]) -> None:
        """Processes with these arguments at once, each started again until it ends well, as a supervisor does."""
        running = [Process(self, args) for args in starts]
        end = time.monotonic() + 2 * PATIENCE
        while running:
            for process in [process for process in running if process.has_ended(self.service)]:
                running.remove(process)
                if process.popen.returncode != 0:
                    running.append(Process(self, self._rest(process.args)))
            if running and all(process.worker.is_stopped for process in running):
                # All others have ended, so another machine comes.
                running.append(Process(self, starts[0]))
            if time.monotonic() > end:
                raise BrokenPromiseError(f"{self.program} does not end: see {running[0].log}")
            self._look()
            time.sleep(0.02)

    def _rest(self, args: list[str]) -> list[str]:
        return [call for call in args if call not in self.service.lines()] if self.program == "calls" else args

    def _look(self) -> None:
        with self.service.condition:
            if self.service.notes:
                raise BrokenPromiseError("; ".join(self.service.notes))

    def _rounds(self, play: Callable[[int], None]) -> None:
        """Until all faults have happened, and once more."""
        for number in itertools.count(1):
            is_last = self.faults.are_over()
            play(number)
            if is_last:
                return

    def _nightly(self) -> None:
        def night(number: int) -> None:
            day = f"2026-11-{number:02}"
            lines = [f"{day}/sales", f"{day}/stock"]
            self.expected += lines
            self._together([[day]] * 3)
            with self.service.condition:
                self.service.finished.update(lines)
            # One that comes late.
            self._together([[day]])

        self._rounds(night)

    def _migrate(self) -> None:
        def release(number: int) -> None:
            self.expected += [f"{2 * number - 1:04}", f"{2 * number:04}"]
            self._together([list(self.expected)] * 3)

        self._rounds(release)

    def _calls(self) -> None:
        numbers = itertools.count()

        def some() -> list[str]:
            chosen = [f"call-{next(numbers)}" for _ in range(3)]
            self.expected += chosen
            return chosen

        running = [Process(self, some()) for _ in range(5)]
        end = time.monotonic() + 4 * PATIENCE
        while running:
            for process in [process for process in running if process.has_ended(self.service)]:
                running.remove(process)
                rest = self._rest(process.args) if process.popen.returncode != 0 else []
                if rest or not self.faults.are_over():
                    running.append(Process(self, rest or some()))
            if time.monotonic() > end:
                raise BrokenPromiseError(f"calls do not end: see {running[0].log}")
            self._look()
            time.sleep(0.02)

    def _orders(self) -> None:
        instances = [Process(self, []) for _ in range(3)]

        def port(place: int) -> int:
            """Of an instance that listens; one that has died is started again."""
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end:
                if instances[place].has_ended(self.service):
                    instances[place] = Process(self, [])
                said = instances[place].log.read_text().partition("listening on port ")[2]
                if "\n" in said:
                    return int(said.split()[0])
                time.sleep(0.02)
            raise BrokenPromiseError(f"an API does not start: see {instances[place].log}")

        lock = threading.Lock()
        failed: list[BaseException] = []

        def send(order: str, place: int) -> None:
            """As a client that tries again, elsewhere, until its order is done."""
            end = time.monotonic() + 2 * PATIENCE
            try:
                while time.monotonic() < end:
                    with lock:
                        url = f"http://127.0.0.1:{port(place % 3)}/orders/{order}"
                    try:
                        with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=2 * PATIENCE):
                            return
                    except (urllib.error.URLError, OSError):
                        place += 1
                        time.sleep(0.1)
                raise BrokenPromiseError(f"order {order} is never done: see {self.folder}")
            except BaseException as error:
                failed.append(error)

        def batch(number: int) -> None:
            orders = [f"{number}-{place}" for place in range(4)]
            self.expected.extend(orders)
            # Each twice, through two instances, as an impatient client would send it.
            places = {order: self.random.randrange(3) for order in orders}
            sends = [(order, places[order] + again) for order in orders for again in range(2)]
            threads = [threading.Thread(target=send, args=[*each]) for each in sends]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if failed:
                raise failed[0]
            self._look()
            with self.service.condition:
                self.service.finished.update(orders)

        self._rounds(batch)

    def _endless(self) -> None:
        """Workers that go on until they are told to end, of which the dead are replaced."""
        running = [Process(self, []) for _ in range(3)]
        if self.fault == "unshared":
            self.service.wait("two at once", lambda: self.service.counts.overlaps > 0)
            return
        items = PARTITIONS if self.program == "partitions" else 1
        end = time.monotonic() + 3 * PATIENCE

        def go_on(holds: Callable[[], bool], may_replace: bool) -> None:
            while not holds():
                for place, process in enumerate(running):
                    if process.has_ended(self.service) and may_replace:
                        running[place] = Process(self, [])
                if time.monotonic() > end:
                    raise BrokenPromiseError(f"the work does not go on: see {running[0].log}")
                self._look()
                time.sleep(0.05)

        go_on(lambda: self.faults.are_over() and len(self.service.items()) == items, may_replace=True)
        # One that works ends. Those who have lived through it all take over, and each item gets more lines.
        with self.service.condition:
            working = {session.worker.pid for session in self.service.active()}
        leaving = next((process for process in running if process.popen.pid in working), running[0])
        running.remove(leaving)
        leaving.end()
        leaving.has_ended(self.service)
        enough = {item: len(self.service.lines(item)) + 5 for item in self.service.items()}
        go_on(lambda: all(len(self.service.lines(item)) >= number for item, number in enough.items()), may_replace=False)
        for process in running:
            process.end()
            process.has_ended(self.service)


def command(language: str, program: str, built: Path) -> list[str]:
    """The command that starts a program."""
    if language == "python":
        return [sys.executable, str(Path(__file__).parent.parent / "python" / f"{program}.py")]
    return ["node", str(built / f"{program}.mjs")]
