"""The service that owns the data: it takes writes by their fencing tokens, and keeps what is needed to judge them later."""

from __future__ import annotations

import json
import random
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import leasehold
from leasehold.fence import SqliteGuard

PATIENCE = 90.0
"""The longest wait for anything that must happen, on a busy machine."""


class BrokenPromiseError(Exception):
    """Something that must happen did not, or something happened that must not."""


@dataclass
class Worker:
    """One process of a program."""

    pid: int
    is_gone: bool = False
    is_killed: bool = False
    is_stopped: bool = False
    stops: list[float] = field(default_factory=list)


@dataclass
class Session:
    """The work of one worker under one lease, from its claim to its end."""

    worker: Worker
    item: str
    token: int
    since: float
    arrived: float
    is_left: bool = False
    is_delayed: bool = False
    superseded: float | None = None

    def is_active(self) -> bool:
        return not (self.is_left or self.worker.is_killed or self.worker.is_gone) and self.superseded is None

    def is_excused(self) -> bool:
        """True if its worker or its request was held up, so that a later holder may have begun before this one knew."""
        later = self.superseded or 0.0
        return self.worker.is_killed or self.is_delayed or any(self.since <= stop <= later for stop in self.worker.stops)

    def was_disturbed(self) -> bool:
        return self.worker.is_killed or self.is_delayed or any(self.since <= stop for stop in self.worker.stops)


@dataclass
class Counts:
    done: int = 0
    again: int = 0
    twice: int = 0
    lost: int = 0
    most: int = 0
    overlaps: int = 0
    disorder: int = 0
    refused: int = 0


Interference = Callable[[str, Session], "str | None"]


class Quiet(ThreadingHTTPServer):
    """Says nothing of clients that are dead."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Service:
    """Writes that pass the guard are lines of a file; those of stalled workers are refused."""

    def __init__(self, folder: Path, seed: int, interfere: Interference) -> None:
        self.condition = threading.Condition()
        self.counts = Counts()
        self.workers: dict[int, Worker] = {}
        self.sessions: dict[tuple[str, int, int], Session] = {}
        self.writers: dict[str, Session] = {}
        self.finished: set[str] = set()
        """Lines of work that was reported as done, which nobody may write again."""
        self.notes: list[str] = []
        self._random = random.Random(seed)
        self._interfere = interfere
        # Of all threads of the server, one at a time: under the condition.
        self._db = sqlite3.connect(folder / "ledger.db", check_same_thread=False)
        self._db.execute("PRAGMA synchronous = OFF")
        self._db.execute("CREATE TABLE lines (number INTEGER PRIMARY KEY, item TEXT, line TEXT, token INTEGER, pid INTEGER)")
        self._guard = SqliteGuard()
        self._guard.create(self._db)
        self._db.commit()
        self._server = Quiet(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=[0.05], daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def wait(self, what: str, holds: Callable[[], bool]) -> None:
        """Waits for something that the service sees."""
        with self.condition:
            if not self.condition.wait_for(lambda: bool(self.notes) or holds(), PATIENCE):
                raise BrokenPromiseError(f"{what}: not within {PATIENCE:.0f} s")
            if self.notes:
                raise BrokenPromiseError("; ".join(self.notes))

    def lines(self, item: str | None = None) -> list[str]:
        """In the order in which they were written."""
        with self.condition:
            where = "" if item is None else "WHERE item = ?"
            found = self._db.execute(f"SELECT line FROM lines {where} ORDER BY number", [] if item is None else [item])
            return [line for (line,) in found]

    def items(self) -> list[str]:
        with self.condition:
            return [item for (item,) in self._db.execute("SELECT DISTINCT item FROM lines ORDER BY item")]

    def start(self, pid: int) -> Worker:
        with self.condition:
            self.workers[pid] = Worker(pid)
            return self.workers[pid]

    def gone(self, worker: Worker) -> None:
        with self.condition:
            worker.is_gone = True
            self.condition.notify_all()

    def active(self) -> list[Session]:
        return [session for session in self.sessions.values() if session.is_active()]

    def claim(self, session: Session) -> dict[str, Any] | None:
        with self.condition:
            newer = [other for other in self.sessions.values() if other.item == session.item and other.token > session.token]
            if newer:
                session.superseded = min(other.arrived for other in newer)
                if session.worker.stops:
                    # It may have been stopped before this claim.
                    session.since = 0.0
            self.sessions[session.item, session.token, session.worker.pid] = session
            try:
                self._guard.claim(self._db, session.item, session.token)
                self._db.commit()
            except leasehold.StaleTokenError:
                self._refuse(session)
                return None
            for other in self.sessions.values():
                if other.item == session.item and other.token < session.token and other.superseded is None:
                    other.superseded = session.arrived
            if any(other.item == session.item and other is not session for other in self.active()):
                # The same token twice.
                self.counts.overlaps += 1
            self.counts.most = max(self.counts.most, len(self.active()))
            self.condition.notify_all()
        if self._interfere("claim", session) == "drop":
            return None
        return {"lines": self.lines(session.item)}

    def write(self, session: Session, line: str) -> dict[str, Any] | None:
        if self._interfere("before", session) == "drop":
            return None
        with self.condition:
            taking = self._random.uniform(0.01, 0.04)
        # As long as work takes.
        time.sleep(taking)
        with self.condition:
            try:
                with self._db:
                    self._guard.check(self._db, session.item, session.token)
                    self._count(session, line)
                    values = [session.item, line, session.token, session.worker.pid]
                    self._db.execute("INSERT INTO lines (item, line, token, pid) VALUES (?, ?, ?, ?)", values)
            except leasehold.StaleTokenError:
                self._refuse(session)
                return None
            self.writers[line] = session
            self.condition.notify_all()
        if self._interfere("after", session) == "drop":
            return None
        return {"lines": []}

    def leave(self, session: Session) -> dict[str, Any]:
        with self.condition:
            session.is_left = True
            self.condition.notify_all()
        return {"lines": []}

    def _count(self, session: Session, line: str) -> None:
        earlier = self.writers.get(line)
        if earlier is None:
            self.counts.done += 1
        elif line in self.finished or not earlier.was_disturbed():
            self.counts.twice += 1
        else:
            self.counts.again += 1
        # The guard has refused what was superseded; here it is looked at once more.
        if session.superseded is not None:
            self.counts.overlaps += 1

    def _refuse(self, session: Session) -> None:
        if session.is_excused():
            self.counts.refused += 1
        else:
            self.counts.overlaps += 1
        self.condition.notify_all()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                token, pid = int(self.headers["x-fence"]), int(self.headers["x-worker"])
                answer = service._answer(self.path, body, token, pid)
                if answer is None:
                    self._say(409, {"error": f"token {token} is stale"})
                else:
                    self._say(200, answer)

            def _say(self, status: int, answer: dict[str, Any]) -> None:
                text = json.dumps(answer).encode()
                try:
                    self.send_response(status)
                    self.send_header("content-length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)
                except OSError:
                    # The process that asked is dead.
                    self.close_connection = True

            def log_message(self, *_: object) -> None: ...

        return Handler

    def _answer(self, path: str, body: dict[str, str], token: int, pid: int) -> dict[str, Any] | None:
        with self.condition:
            known = self.condition.wait_for(lambda: pid in self.workers, PATIENCE)
            assert known, f"process {pid} was not started here"
            worker, key = self.workers[pid], (body["item"], token, pid)
            session = self.sessions.get(key)
        if path == "/claim":
            now = time.monotonic()
            return self.claim(session or Session(worker, body["item"], token, now, now))
        assert session is not None, f"{path} of {key} without a claim"
        return self.write(session, body["line"]) if path == "/write" else self.leave(session)
