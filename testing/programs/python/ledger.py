"""The client of the service that owns the data, which refuses all who hold an older token than the newest it has seen."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from typing import Any

import leasehold


class StaleError(Exception):
    """Somebody else has the lock by now: stop, and discard the work."""


class Ledger:
    """The lines of the item that a lease protects: claimed before the first read, and checked with each write."""

    def __init__(self, lease: leasehold.Lease) -> None:
        self._lease = lease
        self.lines: list[str] = []

    def __enter__(self) -> Ledger:
        self.lines = self._post("claim")["lines"]
        return self

    def write(self, line: str) -> None:
        self._lease.check(1)
        self._post("write", line=line)
        self.lines.append(line)

    def __exit__(self, *error: object) -> None:
        self._post("leave")

    def _post(self, path: str, **body: str) -> dict[str, Any]:
        data = json.dumps({"item": self._lease.resource, **body}).encode()
        headers = {"x-fence": str(self._lease.token), "x-worker": str(os.getpid())}
        request = urllib.request.Request(f"{os.environ['LEDGER']}/{path}", data, headers)
        try:
            with urllib.request.urlopen(request) as answer:
                answered: dict[str, Any] = json.load(answer)
                return answered
        except urllib.error.HTTPError as error:
            if error.code == 409:
                raise StaleError(error.read().decode()) from None
            raise
