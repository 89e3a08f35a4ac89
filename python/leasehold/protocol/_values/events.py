"""Generated from wit/leasehold.wit by ``cargo xtask component --bless``. Do not edit.

Plain values: frozen, compared by what is in them, and made to be taken apart by ``match``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from leasehold.protocol._values.ops import DenialKind, Fault, FaultKind, Holding


class Failure:
    """The reason why an acquisition ended without the lock."""

    @dataclass(frozen=True, slots=True)
    class Busy:
        """Held by somebody else; asked with ``Wait.Once``."""

        _of: ClassVar[str] = "failure.busy"
        holding: Holding | None = None
        """The holder, if the store shows it."""

    @dataclass(frozen=True, slots=True)
    class TimedOut:
        """Held by somebody else for the whole wait."""

        _of: ClassVar[str] = "failure.timed-out"
        holding: Holding | None = None
        """The holder, if the store shows it."""

    @dataclass(frozen=True, slots=True)
    class Throttled:
        """The store throttled requests for the whole wait."""

        _of: ClassVar[str] = "failure.throttled"
        kind: FaultKind
        """The kind of failure."""
        detail: str | None = None
        """The message of the store or the operating system, without secrets; cut after 512 bytes."""

    @dataclass(frozen=True, slots=True)
    class Unavailable:
        """The store could not be reached, or did not answer."""

        _of: ClassVar[str] = "failure.unavailable"
        kind: FaultKind
        """The kind of failure."""
        detail: str | None = None
        """The message of the store or the operating system, without secrets; cut after 512 bytes."""

    @dataclass(frozen=True, slots=True)
    class Abstains:
        """The store may have lost past grants."""

        _of: ClassVar[str] = "failure.abstains"
        left_ms: int
        """The remaining time, as far as it is known; rounded up."""

    @dataclass(frozen=True, slots=True)
    class Refused:
        """The store refuses, and trying again will not help."""

        _of: ClassVar[str] = "failure.refused"
        kind: DenialKind
        """The kind of refusal."""
        detail: str
        """The message of the store and advice, without secrets; cut after 512 bytes."""

    @dataclass(frozen=True, slots=True)
    class Done:
        """The work of a run is done: the completion that stands."""

        _of: ClassVar[str] = "failure.done"
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
    class CompletionsInDoubt:
        """Nodes of the quorum may have lost completions of finished work, and too few others are left to say that none
        stands.
        """

        _of: ClassVar[str] = "failure.completions-in-doubt"

    @dataclass(frozen=True, slots=True)
    class Cancelled:
        """Released before it was granted."""

        _of: ClassVar[str] = "failure.cancelled"

    @dataclass(frozen=True, slots=True)
    class Other:
        """Anything without a case in this version of the interface."""

        _of: ClassVar[str] = "failure.other"
        message: str
        """A message for people."""

    Case: TypeAlias = (
        Busy
        | TimedOut
        | Throttled
        | Unavailable
        | Abstains
        | Refused
        | Done
        | CompletionsInDoubt
        | Cancelled
        | Other
    )


class LostReason:
    """The reason why a lease is over."""

    @dataclass(frozen=True, slots=True)
    class Expired:
        """No renewal was confirmed before the deadline."""

        _of: ClassVar[str] = "lost-reason.expired"

    @dataclass(frozen=True, slots=True)
    class MaxHold:
        """``max_hold`` has ended the renewals."""

        _of: ClassVar[str] = "lost-reason.max-hold"

    @dataclass(frozen=True, slots=True)
    class TakenOver:
        """The record belongs to somebody else."""

        _of: ClassVar[str] = "lost-reason.taken-over"
        by: Holding | None = None
        """The new holder, if the store shows it."""

    @dataclass(frozen=True, slots=True)
    class Released:
        """The record was released by somebody else, such as an administrator."""

        _of: ClassVar[str] = "lost-reason.released"

    @dataclass(frozen=True, slots=True)
    class RecordGone:
        """The store has lost data: it shows no record, or one that is older than the lease."""

        _of: ClassVar[str] = "lost-reason.record-gone"

    @dataclass(frozen=True, slots=True)
    class Revoked:
        """The lease was revoked. Its record still keeps others out: call ``Client.release`` once the work has ended,
        which frees it. Otherwise the record runs out by itself.
        """

        _of: ClassVar[str] = "lost-reason.revoked"

    @dataclass(frozen=True, slots=True)
    class Other:
        """Anything without a case in this version of the interface."""

        _of: ClassVar[str] = "lost-reason.other"
        message: str
        """A message for people."""

    Case: TypeAlias = Expired | MaxHold | TakenOver | Released | RecordGone | Revoked | Other


class Event:
    """An event of a lock. An acquisition ends with ``acquired`` or ``failed``, a lease with ``lost``, ``released`` or
    ``finished``.
    """

    @dataclass(frozen=True, slots=True)
    class Acquired:
        """The lock is held."""

        _of: ClassVar[str] = "event.acquired"
        token: int
        """The fencing token."""
        deadline_ns: int
        """The deadline of the lease unless it is renewed."""
        recovered: bool
        """The reply to the acquire was lost, and the record itself showed the grant."""

    @dataclass(frozen=True, slots=True)
    class Contended:
        """Somebody else holds the lock; reported once for each acquisition."""

        _of: ClassVar[str] = "event.contended"
        holding: Holding
        """The holder."""

    @dataclass(frozen=True, slots=True)
    class Failed:
        """The acquisition ended without the lock."""

        _of: ClassVar[str] = "event.failed"
        failure: Failure.Case
        """The reason."""

    @dataclass(frozen=True, slots=True)
    class Renewed:
        """The deadline was extended."""

        _of: ClassVar[str] = "event.renewed"
        deadline_ns: int
        """The new deadline."""
        left_ns: int
        """Validity that was left before: the best early warning."""
        recovered: bool
        """The reply to an earlier renewal was lost, and the record itself showed the renewal."""

    @dataclass(frozen=True, slots=True)
    class RenewDelayed:
        """A renewal failed; it is repeated while there is time."""

        _of: ClassVar[str] = "event.renew-delayed"
        deadline_ns: int
        """The unchanged deadline."""
        fault: Fault
        """The failure."""

    @dataclass(frozen=True, slots=True)
    class Shortened:
        """A node of the quorum lost our record, and the others cover a shorter time."""

        _of: ClassVar[str] = "event.shortened"
        deadline_ns: int
        """The new, earlier deadline."""

    @dataclass(frozen=True, slots=True)
    class Expiring:
        """The danger zone at the end of the ttl has begun, and no renewal has succeeded."""

        _of: ClassVar[str] = "event.expiring"
        deadline_ns: int
        """The time when the lease will be lost."""

    @dataclass(frozen=True, slots=True)
    class Lost:
        """The lease is over and the lock was not released: the work must stop."""

        _of: ClassVar[str] = "event.lost"
        reason: LostReason.Case
        """The reason."""

    @dataclass(frozen=True, slots=True)
    class Released:
        """The release has ended."""

        _of: ClassVar[str] = "event.released"
        confirmed: bool
        """The store has confirmed that the record was ours until then. Otherwise an answer was lost and the next one
        shows no record of ours, or the record has expired by now.
        """

    @dataclass(frozen=True, slots=True)
    class Finished:
        """The finish of a run has ended."""

        _of: ClassVar[str] = "event.finished"
        confirmed: bool
        """The completion stands. Otherwise no answer says that it does, and the work may be done again."""
        result_dropped: bool
        """The work is done, but its result was not kept: too few nodes had room for it."""

    Case: TypeAlias = (
        Acquired
        | Contended
        | Failed
        | Renewed
        | RenewDelayed
        | Shortened
        | Expiring
        | Lost
        | Released
        | Finished
    )


CLASSES: dict[str, type] = {
    "failure.busy": Failure.Busy,
    "failure.timed-out": Failure.TimedOut,
    "failure.throttled": Failure.Throttled,
    "failure.unavailable": Failure.Unavailable,
    "failure.abstains": Failure.Abstains,
    "failure.refused": Failure.Refused,
    "failure.done": Failure.Done,
    "failure.completions-in-doubt": Failure.CompletionsInDoubt,
    "failure.cancelled": Failure.Cancelled,
    "failure.other": Failure.Other,
    "lost-reason.expired": LostReason.Expired,
    "lost-reason.max-hold": LostReason.MaxHold,
    "lost-reason.taken-over": LostReason.TakenOver,
    "lost-reason.released": LostReason.Released,
    "lost-reason.record-gone": LostReason.RecordGone,
    "lost-reason.revoked": LostReason.Revoked,
    "lost-reason.other": LostReason.Other,
    "event.acquired": Event.Acquired,
    "event.contended": Event.Contended,
    "event.failed": Event.Failed,
    "event.renewed": Event.Renewed,
    "event.renew-delayed": Event.RenewDelayed,
    "event.shortened": Event.Shortened,
    "event.expiring": Event.Expiring,
    "event.lost": Event.Lost,
    "event.released": Event.Released,
    "event.finished": Event.Finished,
}

__all__ = [
    "Event",
    "Failure",
    "LostReason",
]
