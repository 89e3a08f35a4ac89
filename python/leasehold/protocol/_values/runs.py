"""Generated from wit/leasehold.wit by ``cargo xtask component --bless``. Do not edit.

Plain values: frozen, compared by what is in them, and made to be taken apart by ``match``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias


@dataclass(frozen=True, slots=True)
class AttemptLimit:
    """How often the work of a run may be begun."""

    _of: ClassVar[str] = "attempt-limit"
    max: int
    """The number of attempts, 1 or more."""
    retry_after_ms: int
    """The pause from the start of an attempt to the start of the next one."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often the work of a run was begun."""

    _of: ClassVar[str] = "attempts"
    count: int
    """The number of attempts that were begun."""
    max: int
    """How many were allowed when the last one began."""
    since_unix_ms: int
    """When the first of them began, in milliseconds since 1970 by the clock of the one that began it."""
    retry_unix_ms: int
    """When the next one may begin, in milliseconds since 1970 by the clock of the one that began the last."""
    reason: str | None = None
    """Why the last one failed; absent where it did not say so, or is still under way."""


class NextAttempt:
    """The decision about the next attempt."""

    @dataclass(frozen=True, slots=True)
    class Begin:
        """It may begin, once these are written."""

        _of: ClassVar[str] = "next-attempt.begin"
        count: int
        """The number of attempts that were begun."""
        max: int
        """How many were allowed when the last one began."""
        since_unix_ms: int
        """When the first of them began, in milliseconds since 1970 by the clock of the one that began it."""
        retry_unix_ms: int
        """When the next one may begin, in milliseconds since 1970 by the clock of the one that began the last."""
        reason: str | None = None
        """Why the last one failed; absent where it did not say so, or is still under way."""

    @dataclass(frozen=True, slots=True)
    class Later:
        """Not before these say so."""

        _of: ClassVar[str] = "next-attempt.later"
        count: int
        """The number of attempts that were begun."""
        max: int
        """How many were allowed when the last one began."""
        since_unix_ms: int
        """When the first of them began, in milliseconds since 1970 by the clock of the one that began it."""
        retry_unix_ms: int
        """When the next one may begin, in milliseconds since 1970 by the clock of the one that began the last."""
        reason: str | None = None
        """Why the last one failed; absent where it did not say so, or is still under way."""

    @dataclass(frozen=True, slots=True)
    class GivenUp:
        """As often as allowed it was begun, and never finished."""

        _of: ClassVar[str] = "next-attempt.given-up"
        count: int
        """The number of attempts that were begun."""
        max: int
        """How many were allowed when the last one began."""
        since_unix_ms: int
        """When the first of them began, in milliseconds since 1970 by the clock of the one that began it."""
        retry_unix_ms: int
        """When the next one may begin, in milliseconds since 1970 by the clock of the one that began the last."""
        reason: str | None = None
        """Why the last one failed; absent where it did not say so, or is still under way."""

    @dataclass(frozen=True, slots=True)
    class Unsure:
        """Too few nodes show the holder of the count: read it again."""

        _of: ClassVar[str] = "next-attempt.unsure"

    Case: TypeAlias = Begin | Later | GivenUp | Unsure


CLASSES: dict[str, type] = {
    "attempt-limit": AttemptLimit,
    "attempts": Attempts,
    "next-attempt.begin": NextAttempt.Begin,
    "next-attempt.later": NextAttempt.Later,
    "next-attempt.given-up": NextAttempt.GivenUp,
    "next-attempt.unsure": NextAttempt.Unsure,
}

__all__ = [
    "AttemptLimit",
    "Attempts",
    "NextAttempt",
]
