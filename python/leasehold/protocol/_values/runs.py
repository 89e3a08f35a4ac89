"""Generated from wit/leasehold.wit by ``cargo xtask component --bless``. Do not edit.

Plain values: frozen, compared by what is in them, and made to be taken apart by ``match``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias


@dataclass(frozen=True, slots=True)
class Occurrence:
    """The settings that say which part of a job is done once. One of ``key``, ``every_ms`` and ``cron`` names the
    occurrence; without any, it is the job as a whole, which needs a cooldown or a time for which its completion is
    kept.
    """

    _of: ClassVar[str] = "occurrence"
    key: str | None = None
    """The name of the occurrence: a date, an invoice, a batch."""
    every_ms: int | None = None
    """One occurrence in each period of this length, at least 1,000. Its key is the start of the period, in UTC or by
    the clocks of ``tz``.
    """
    offset_ms: int | None = None
    """How long after the start of 1970, a Thursday, the periods begin; less than a period. Default 0."""
    at: str | None = None
    """The time of day at which the periods begin, from ``00:00`` to ``23:59`` by the clocks of ``tz``. They are whole
    days then.
    """
    tz: str | None = None
    """The zone by whose clocks ``every_ms`` and ``cron`` count, by its name in the IANA database, as it was typed: it
    ends the key.
    """
    cron: str | None = None
    """One occurrence for each time of a cron expression of five fields by the clocks of ``tz``: the latest one until
    now.
    """
    cooldown_ms: int | None = None
    """Once done, the job is not done again for so long. In place of a key."""
    keep_ms: int | None = None
    """How long the completion stands: at least the ttl and the period. Default 604,800,000 (7 days), or what a longer
    period takes.
    """


@dataclass(frozen=True, slots=True)
class ZoneOffset:
    """The offset of the clocks of a zone since they were set."""

    _of: ClassVar[str] = "zone-offset"
    since_unix_ms: int
    """The time at which it began to count, in milliseconds since 1970."""
    shown_ms: int
    """The local time that they showed then, in milliseconds since they showed the start of 1970."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The resource of an occurrence, and how long its completion stands."""

    _of: ClassVar[str] = "run-plan"
    resource: str
    """The resource to acquire."""
    keep_ms: int
    """The ``keep`` of its run."""


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
    "occurrence": Occurrence,
    "zone-offset": ZoneOffset,
    "run-plan": RunPlan,
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
    "Occurrence",
    "RunPlan",
    "ZoneOffset",
]
