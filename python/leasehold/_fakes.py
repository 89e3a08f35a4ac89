"""Answers of fake clients."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FakeInfo:
    """The holder of a lock; see :class:`leasehold.LockInfo`."""

    resource: str
    owner: str | None
    token: int | None
    since: float | None
    ttl: float | None
    left: float | None
    data: bytes | None
    foreign: bool = False
    votes: int = 1
    of: int = 1

    def __str__(self) -> str:
        return f"held by {self.owner or 'somebody'} with token {self.token}"


@dataclass(frozen=True)
class FakeReleaseIfOutcome:
    """The outcome of a conditional release; see :class:`leasehold.ReleaseIfOutcome`."""

    released: bool
    holder: FakeInfo | None

    def __bool__(self) -> bool:
        return self.released
