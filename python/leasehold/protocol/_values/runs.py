"""Generated from wit/leasehold.wit by ``cargo xtask component --bless``. Do not edit.

Plain values: frozen, compared by what is in them, and made to be taken apart by ``match``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from leasehold.protocol._values.ops import Completion, Holding, Outcome


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


class ReplaceStep:
    """The next step of a request that replaces the runner."""

    @dataclass(frozen=True, slots=True)
    class Look:
        """Read the run, by ``Client.read`` and ``read_run``: ``looked``."""

        _of: ClassVar[str] = "replace-step.look"

    @dataclass(frozen=True, slots=True)
    class TakeNumber:
        """Acquire the ``newest_resource`` as a run with ``even_if_done``, and finish it: ``numbered``, or
        ``unconfirmed``.
        """

        _of: ClassVar[str] = "replace-step.take-number"
        ttl_ms: int
        """The ttl in milliseconds, where a quorum does not allow less."""
        wait_ms: int
        """The wait in milliseconds."""

    @dataclass(frozen=True, slots=True)
    class Ask:
        """Acquire the run: ``granted`` or ``refused``."""

        _of: ClassVar[str] = "replace-step.ask"
        even_if_done: bool
        """The ``even_if_done`` of its run."""
        wait_ms: int
        """The wait in milliseconds; 0 asks once."""

    @dataclass(frozen=True, slots=True)
    class ReadNewest:
        """Acquire the ``newest_resource`` as a run that may be done: ``newest``. Where the lock is granted, since the
        store has forgotten the completion, finish it as in ``take_number``.
        """

        _of: ClassVar[str] = "replace-step.read-newest"
        ttl_ms: int
        """The ttl in milliseconds, where a quorum does not allow less."""
        wait_ms: int
        """The wait in milliseconds."""

    @dataclass(frozen=True, slots=True)
    class CountNewest:
        """Acquire the ``newest_resource`` as a run with ``even_if_done``, read it by ``Client.read``, and release it:
        ``counted``.
        """

        _of: ClassVar[str] = "replace-step.count-newest"
        ttl_ms: int
        """The ttl in milliseconds, where a quorum does not allow less."""
        wait_ms: int
        """The wait in milliseconds."""

    @dataclass(frozen=True, slots=True)
    class End:
        """Revoke this lease: ``ended``."""

        _of: ClassVar[str] = "replace-step.end"
        holder: bytes
        """The nonce of the lease to revoke."""

    @dataclass(frozen=True, slots=True)
    class Begin:
        """The work is the caller's, if its lease is still held; else ``failed``."""

        _of: ClassVar[str] = "replace-step.begin"

    @dataclass(frozen=True, slots=True)
    class Replaced:
        """A newer request has taken the place of this one."""

        _of: ClassVar[str] = "replace-step.replaced"

    @dataclass(frozen=True, slots=True)
    class Done:
        """The work was done before this request, as the last ``look`` has shown."""

        _of: ClassVar[str] = "replace-step.done"

    @dataclass(frozen=True, slots=True)
    class Running:
        """The runner has not ended in time, or cannot be asked to: the refusal that came last is the answer."""

        _of: ClassVar[str] = "replace-step.running"

    @dataclass(frozen=True, slots=True)
    class Unsettled:
        """Too few nodes show which request is the newest."""

        _of: ClassVar[str] = "replace-step.unsettled"

    @dataclass(frozen=True, slots=True)
    class Fail:
        """The error that came last is the answer."""

        _of: ClassVar[str] = "replace-step.fail"

    Case: TypeAlias = (
        Look
        | TakeNumber
        | Ask
        | ReadNewest
        | CountNewest
        | End
        | Begin
        | Replaced
        | Done
        | Running
        | Unsettled
        | Fail
    )


class ReplaceAnswer:
    """The outcome of a step."""

    @dataclass(frozen=True, slots=True)
    class Looked:
        """The state of the run."""

        _of: ClassVar[str] = "replace-answer.looked"
        holding: Holding | None = None
        """The record; absent if the resource is free without a trace of the last holder."""
        done: Completion | None = None
        """The completion of finished work, in the answer to ``Op.Read``; absent if none stands."""

    @dataclass(frozen=True, slots=True)
    class Numbered:
        """The completion was written, with this token."""

        _of: ClassVar[str] = "replace-answer.numbered"
        token: int
        """The token of the completion."""

    @dataclass(frozen=True, slots=True)
    class Unconfirmed:
        """The completion may be written, with this token: the store has not answered. That error is the one that came
        last.
        """

        _of: ClassVar[str] = "replace-answer.unconfirmed"
        token: int
        """The token of the completion."""

    @dataclass(frozen=True, slots=True)
    class Granted:
        """The run is acquired."""

        _of: ClassVar[str] = "replace-answer.granted"

    @dataclass(frozen=True, slots=True)
    class Refused:
        """Somebody has the run."""

        _of: ClassVar[str] = "replace-answer.refused"
        holding: Holding | None = None
        """The holder of the run, as ``Failure.Busy`` and ``Failure.TimedOut`` show it."""

    @dataclass(frozen=True, slots=True)
    class Newest:
        """The completion that has refused the acquisition."""

        _of: ClassVar[str] = "replace-answer.newest"
        token: int
        """The fencing token of the lease under which the work was done."""
        owner: str
        """The label of its holder; may be empty."""
        at_unix_ms: int
        """When the work was finished, by the holder's or store's wall clock, in milliseconds since 1970."""
        left_ms: int
        """How much longer the completion stands; rounded up."""
        about: bytes | None
        """The record of the run that wrote the completion, as it came with ``Op.Finish``; absent where none was kept,
        and where the store shows one that does not begin with the nonce of that finish. ``Runs.read_about`` reads it.
        """
        unsettled: bool
        """In a quorum: a node shows a record of the run, but no majority is known to show the same completion. A store
        says false.
        """

    @dataclass(frozen=True, slots=True)
    class Counted:
        """The nodes' records while the ``newest_resource`` was locked."""

        _of: ClassVar[str] = "replace-answer.counted"
        read: Sequence[Outcome.Case]
        """The answers of ``Client.take_read``."""
        holder: bytes
        """The nonce of the lock, by ``Client.nonce``."""

    @dataclass(frozen=True, slots=True)
    class Ended:
        """The lease is revoked, or over."""

        _of: ClassVar[str] = "replace-answer.ended"

    @dataclass(frozen=True, slots=True)
    class Failed:
        """An error."""

        _of: ClassVar[str] = "replace-answer.failed"
        may_pass: bool
        """It may pass by itself: the store did not answer, or the lease was lost."""

    Case: TypeAlias = Looked | Numbered | Unconfirmed | Granted | Refused | Newest | Counted | Ended | Failed


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
    "replace-step.look": ReplaceStep.Look,
    "replace-step.take-number": ReplaceStep.TakeNumber,
    "replace-step.ask": ReplaceStep.Ask,
    "replace-step.read-newest": ReplaceStep.ReadNewest,
    "replace-step.count-newest": ReplaceStep.CountNewest,
    "replace-step.end": ReplaceStep.End,
    "replace-step.begin": ReplaceStep.Begin,
    "replace-step.replaced": ReplaceStep.Replaced,
    "replace-step.done": ReplaceStep.Done,
    "replace-step.running": ReplaceStep.Running,
    "replace-step.unsettled": ReplaceStep.Unsettled,
    "replace-step.fail": ReplaceStep.Fail,
    "replace-answer.looked": ReplaceAnswer.Looked,
    "replace-answer.numbered": ReplaceAnswer.Numbered,
    "replace-answer.unconfirmed": ReplaceAnswer.Unconfirmed,
    "replace-answer.granted": ReplaceAnswer.Granted,
    "replace-answer.refused": ReplaceAnswer.Refused,
    "replace-answer.newest": ReplaceAnswer.Newest,
    "replace-answer.counted": ReplaceAnswer.Counted,
    "replace-answer.ended": ReplaceAnswer.Ended,
    "replace-answer.failed": ReplaceAnswer.Failed,
}

__all__ = [
    "AttemptLimit",
    "Attempts",
    "NextAttempt",
    "Occurrence",
    "ReplaceAnswer",
    "ReplaceStep",
    "RunPlan",
    "ZoneOffset",
]
