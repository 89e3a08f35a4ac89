"""Answers and lengths of time of fake clients."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta

from leasehold import _native
from leasehold._errors import ConfigError, LeaseholdError
from leasehold.protocol import Wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from typing_extensions import Self

    from leasehold._fake_lease import FakeLease
    from leasehold._types import Seconds

_checker: tuple[int, _native.Client] | None = None


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
    session: str | None = None
    foreign: bool = False
    revoked: bool = False
    votes: int = 1
    nodes: int = 1
    unchanged: float | None = None

    def __str__(self) -> str:
        who = f"held by {self.owner or 'a client without a label'}, token {self.token}" + ", revoked" * self.revoked
        return who if self.left is None else f"{who}, {self.left:.1f} s {'at most' if self.revoked else 'left unless renewed'}"


@dataclass(frozen=True)
class FakeReleaseIfOutcome:
    """The outcome of a conditional release; see :class:`leasehold.ReleaseIfOutcome`."""

    released: bool
    holder: FakeInfo | None

    def __bool__(self) -> bool:
        return self.released


@dataclass(frozen=True)
class FakeRevokeOutcome:
    """The outcome of a revoke; see :class:`leasehold.RevokeOutcome`."""

    revoked: bool
    holder: FakeInfo | None

    def __bool__(self) -> bool:
        return self.revoked


class FakeLeases:
    """Several leases that were acquired together; see :class:`leasehold.Leases`."""

    def __init__(self, leases: list[FakeLease]) -> None:
        self._leases = leases

    def __len__(self) -> int:
        return len(self._leases)

    def __getitem__(self, which: int | str) -> FakeLease:
        if isinstance(which, int):
            try:
                return self._leases[which]
            except IndexError:
                raise IndexError(f"there is no lease at {which}") from None
        return {lease.resource: lease for lease in self._leases}[which]

    def __iter__(self) -> Iterator[FakeLease]:
        return iter(self._leases)

    def check(self, min: Seconds | None = None) -> None:
        """Raises LeaseLostError unless each has at least ``min`` seconds left."""
        for lease in self._leases:
            lease.check(min)

    def release(self) -> None:
        """Releases all of them, the last acquired first."""
        first: LeaseholdError | None = None
        for lease in reversed(self._leases):
            try:
                lease.release()
            except LeaseholdError as error:
                first = first or error
        if first is not None:
            raise first

    async def _begin_release(self) -> None:
        self.release()

    async def _begin_exit(self, has_raised: bool) -> None:
        self.__exit__(BaseException if has_raised else None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        first: LeaseholdError | None = None
        for lease in reversed(self._leases):
            try:
                lease.__exit__(kind, error, traceback)
            except LeaseholdError as lost:
                first = first or lost
        if first is not None:
            raise first


def to_wait(wait: object) -> Wait.Case:
    if wait is None or wait == float("inf"):
        return Wait.Forever()
    return Wait.Once() if wait == 0 else Wait.For(wait)  # type: ignore[arg-type]


def checker() -> _native.Client:
    """A real client, which nothing is acquired from: it refuses what real clients refuse, in the same words."""
    global _checker
    if _checker is None or _checker[0] != os.getpid():
        _checker = (os.getpid(), _native.Connector("memory:").connect()[0])
    return _checker[1]


def to_ns(seconds: Seconds) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float, timedelta)):
        raise TypeError(f"a length of time is a number of seconds or a timedelta, not {type(seconds).__name__}")
    length = seconds.total_seconds() if isinstance(seconds, timedelta) else seconds
    if not 0 <= length < float("inf"):
        raise ConfigError(f"{seconds!r} is not a length of time: give seconds, from 0 on")
    return int(length * 1e9)
