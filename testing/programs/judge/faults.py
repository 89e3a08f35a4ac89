"""Faults of workers and of their store, at moments that the seed chooses: when a request of a worker is under way."""

from __future__ import annotations

import os
import random
import signal
import threading

from stores import Store
from service import PATIENCE, Service, Session

POINTS = {
    # Before its first work, before a write, and between a write and its answer.
    "kill": ["claim", "after", "before"],
    # Until somebody else has taken over: with a write under way, which then comes too late, or before any.
    "stop": ["before", "claim"],
    "failover": ["before"],
    "certificate": ["before"],
    # Every process has its own locks: the judge must notice.
    "unshared": [],
}


class Faults:
    """A number of faults of one kind, one after the other."""

    def __init__(self, kind: str, number: int, seed: int, store: Store, are_claims_rare: bool) -> None:
        self.kind = kind
        # A term of a leader has one claim, and many writes.
        self._chances = {"claim": 1.0 if are_claims_rare else 0.4}
        self.service: Service
        self._random = random.Random(seed)
        self._store = store
        self._lock = threading.Lock()
        points = POINTS[kind]
        self._planned = [points[place % len(points)] for place in range(number)] if points else []
        if kind == "stop" and are_claims_rare:
            # The next holder claims while the one before is still stopped, so only the first claim is there to be met.
            self._planned = ["claim", *["before"] * (number - 1)][:number] if number > 1 else ["before"]
        self._is_busy = False
        self.happened = 0

    def are_over(self) -> bool:
        with self._lock:
            return not self._planned and not self._is_busy

    def interfere(self, point: str, session: Session) -> str | None:
        if self.kind == "unshared" and point == "claim":
            self._wait_for_another(session)
        with self._lock:
            if self._is_busy or not self._planned or self._planned[0] != point or not session.is_active():
                return None
            if self._random.random() > self._chances.get(point, 0.4):
                return None
            self._planned.pop(0)
            self._is_busy = True
        try:
            if self.kind == "kill":
                return self._kill(session)
            if self.kind == "stop":
                return self._stop(session)
            with self.service.condition:
                # Its answer waits for the store's fault, which may last longer than its lease.
                session.is_delayed = True
            self._store.disturb()
            return None
        except Exception as error:
            with self.service.condition:
                self.service.notes.append(f"{self.kind}: {error!r}")
            return "drop"
        finally:
            with self._lock:
                self._is_busy = False
                self.happened += 1
            with self.service.condition:
                self.service.condition.notify_all()

    def _wait_for_another(self, session: Session) -> None:
        """Until another worker has the same item, so that processes that start one after the other meet, too."""

        def is_there() -> bool:
            sessions = self.service.sessions.values()
            return any(other.item == session.item and other.worker is not session.worker for other in sessions)

        with self.service.condition:
            # Of permits, another one may have been taken.
            self.service.condition.wait_for(is_there, 10)

    def _kill(self, session: Session) -> str:
        with self.service.condition:
            session.worker.is_killed = True
        os.kill(session.worker.pid, signal.SIGKILL)
        return "drop"

    def _stop(self, session: Session) -> str | None:
        worker = session.worker
        with self.service.condition:
            worker.stops.append(session.since)
            for other in self.service.active():
                if other.worker is worker:
                    # The moment does not matter, only that it comes before the next holder's claim.
                    worker.stops.append(other.since)
            os.kill(worker.pid, signal.SIGSTOP)
            worker.is_stopped = True
            taken = self.service.condition.wait_for(lambda: session.superseded is not None, PATIENCE)
            worker.is_stopped = False
        os.kill(worker.pid, signal.SIGCONT)
        if not taken:
            raise TimeoutError(f"nobody took {session.item} over from a stopped worker within {PATIENCE:.0f} s")
        return None
