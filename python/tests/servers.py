"""Servers that tests and benchmarks start for themselves."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

PATIENCE = 60.0
"""The longest wait of a test for something that must happen, on a busy machine."""


async def until(holds: Callable[[], object]) -> None:
    """Polls until a condition is true, and lets the event loop run meanwhile."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"not within {PATIENCE} s"
        await asyncio.sleep(0.01)


def eventually(what: str, holds: Callable[[], bool]) -> None:
    """Polls until a condition is true."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"{what}: not within {PATIENCE} s"
        time.sleep(0.01)


class Server:
    """A server of the repository's ``leasehold-servers``, on a free port of 127.0.0.1, until it is closed.

    It is one of ``redis``, ``webdis`` with the port of a Redis, ``etcd``, ``postgres``, and those of cloud services.
    """

    def __init__(self, *words: object) -> None:
        program = os.environ.get("LEASEHOLD_SERVERS")
        assert program, "LEASEHOLD_SERVERS is not set: cargo xtask python starts these tests"
        command = [program, *map(str, words)]
        # Its input ends with this process, and it ends with its input.
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.facts: dict[str, Any] = self._hear()
        self.port: int = self.facts["port"]
        self.url: str = self.facts["url"]

    def freeze(self) -> None:
        """Stops it where it is: connections stay open, and there are no answers."""
        self._obey("freeze")

    def go_on(self) -> None:
        """Ends what :meth:`freeze` has begun."""
        self._obey("continue")

    def kill(self) -> None:
        """Ends it as a crash would."""
        self._obey("kill")

    def close(self) -> None:
        """Stops it, and waits for its end."""
        self._process.communicate(timeout=PATIENCE)

    def _obey(self, order: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()
        self._hear()

    def _hear(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"{self._process.args!r} has failed; stderr says why"
        return json.loads(line)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()
