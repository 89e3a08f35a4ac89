"""Generated from wit/leasehold.wit by ``cargo xtask component --bless``. Do not edit.

Plain values: frozen, compared by what is in them, and made to be taken apart by ``match``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from leasehold.protocol._values.ops import DenialKind, Fault, FaultKind, Holding, LockOp
from leasehold.protocol._values.types import SettingError


class Failure:
    """Why an acquisition ended without the lock."""

    @dataclass(frozen=True, slots=True)
    class Busy:
        """Held by somebody else; asked with ``Wait.Once``."""

        _of: ClassVar[str] = "failure.busy"
        holding: Holding | None = None
        """By whom, where the store shows it."""

    @dataclass(frozen=True, slots=True)
    class TimedOut:
        """Held by somebody else for as long as the caller would wait."""

        _of: ClassVar[str] = "failure.timed-out"
        holding: Holding | None = None
        """By whom, where the store shows it."""

    @dataclass(frozen=True, slots=True)
    class Throttled:
        """The store asked for patience for as long as the caller would wait."""

        _of: ClassVar[str] = "failure.throttled"
        kind: FaultKind
        """What kind of failure."""
        detail: str | None = None
        """What the store or the operating system said, without secrets; more than 512 bytes are cut."""

    @dataclass(frozen=True, slots=True)
    class Unavailable:
        """The store could not be reached, or did not answer."""

        _of: ClassVar[str] = "failure.unavailable"
        kind: FaultKind
        """What kind of failure."""
        detail: str | None = None
        """What the store or the operating system said, without secrets; more than 512 bytes are cut."""

    @dataclass(frozen=True, slots=True)
    class Abstains:
        """The store's memory of past grants is in doubt."""

        _of: ClassVar[str] = "failure.abstains"
        left_ms: int
        """For how long still, as far as is known; rounded up."""

    @dataclass(frozen=True, slots=True)
    class Refused:
        """The store refuses, and trying again will not help."""

        _of: ClassVar[str] = "failure.refused"
        kind: DenialKind
        """What kind of refusal."""
        detail: str
        """What the store said and what to look at, without secrets; more than 512 bytes are cut."""

    @dataclass(frozen=True, slots=True)
    class Cancelled:
        """Released before it was granted."""

        _of: ClassVar[str] = "failure.cancelled"

    @dataclass(frozen=True, slots=True)
    class Other:
        """What this version of the interface has no case for."""

        _of: ClassVar[str] = "failure.other"
        message: str
        """What happened, in words."""

    Case: TypeAlias = Busy | TimedOut | Throttled | Unavailable | Abstains | Refused | Cancelled | Other


class LostReason:
    """Why a lease is over."""

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
        """The record is somebody else's."""

        _of: ClassVar[str] = "lost-reason.taken-over"
        by: Holding | None = None
        """Whose the record is now, where the store shows it."""

    @dataclass(frozen=True, slots=True)
    class Released:
        """The record was released by somebody else, such as an administrator."""

        _of: ClassVar[str] = "lost-reason.released"

    @dataclass(frozen=True, slots=True)
    class RecordGone:
        """The record is gone."""

        _of: ClassVar[str] = "lost-reason.record-gone"

    @dataclass(frozen=True, slots=True)
    class Other:
        """What this version of the interface has no case for."""

        _of: ClassVar[str] = "lost-reason.other"
        message: str
        """What happened, in words."""

    Case: TypeAlias = Expired | MaxHold | TakenOver | Released | RecordGone | Other


class Event:
    """What happened to a lock. An acquisition ends with ``acquired`` or ``failed``, a lease with ``lost`` or
    ``released``.
    """

    @dataclass(frozen=True, slots=True)
    class Acquired:
        """The lock is held."""

        _of: ClassVar[str] = "event.acquired"
        token: int
        """The fencing token."""
        deadline_ns: int
        """Until when the lease is believed in unless renewed."""
        recovered: bool
        """The reply to the acquire was lost, and the record itself told."""

    @dataclass(frozen=True, slots=True)
    class Contended:
        """Somebody else holds the lock; told once for each acquisition."""

        _of: ClassVar[str] = "event.contended"
        holding: Holding
        """Who."""

    @dataclass(frozen=True, slots=True)
    class Failed:
        """The acquisition ended without the lock."""

        _of: ClassVar[str] = "event.failed"
        failure: Failure.Case
        """Why."""

    @dataclass(frozen=True, slots=True)
    class Renewed:
        """The deadline moved out."""

        _of: ClassVar[str] = "event.renewed"
        deadline_ns: int
        """The new deadline."""
        left_ns: int
        """Validity that was left before: the best early warning there is."""
        recovered: bool
        """The reply to an earlier renewal was lost, and the record itself told."""

    @dataclass(frozen=True, slots=True)
    class RenewDelayed:
        """A renewal did not succeed; another follows while there is time."""

        _of: ClassVar[str] = "event.renew-delayed"
        deadline_ns: int
        """The deadline, unmoved."""
        fault: Fault
        """What went wrong."""

    @dataclass(frozen=True, slots=True)
    class Shortened:
        """A node of the quorum lost our record, and the others vouch for less."""

        _of: ClassVar[str] = "event.shortened"
        deadline_ns: int
        """The new, earlier deadline."""

    @dataclass(frozen=True, slots=True)
    class Expiring:
        """Less than the danger zone is left and no renewal has succeeded."""

        _of: ClassVar[str] = "event.expiring"
        deadline_ns: int
        """When the lease will be lost."""

    @dataclass(frozen=True, slots=True)
    class Lost:
        """The lease is over and the lock was not released: the work must stop."""

        _of: ClassVar[str] = "event.lost"
        reason: LostReason.Case
        """Why."""

    @dataclass(frozen=True, slots=True)
    class Released:
        """The release has ended."""

        _of: ClassVar[str] = "event.released"
        confirmed: bool
        """The store has confirmed that the record was ours until then. Otherwise an answer was lost and the next one
        shows no record of ours, or the record has run out by itself by now.
        """

    Case: TypeAlias = Acquired | Contended | Failed | Renewed | RenewDelayed | Shortened | Expiring | Lost | Released


class CommandError:
    """A command that was not accepted."""

    @dataclass(frozen=True, slots=True)
    class DuplicateLock:
        """The lock id is in use; take a new one for each acquisition."""

        _of: ClassVar[str] = "error.duplicate-lock"

    @dataclass(frozen=True, slots=True)
    class UnknownLock:
        """No such lock is alive: never acquired, lost, or released before."""

        _of: ClassVar[str] = "error.unknown-lock"

    @dataclass(frozen=True, slots=True)
    class TooManyLocks:
        """As many locks as the client may have are alive."""

        _of: ClassVar[str] = "error.too-many-locks"
        limit: int
        """The limit."""

    @dataclass(frozen=True, slots=True)
    class AboveMaxTtl:
        """The record would stand for longer than the quorum allows."""

        _of: ClassVar[str] = "error.above-max-ttl"
        record_ttl_ms: int
        """What was asked for: ``ttl`` and ``lock_delay`` together."""
        max_ttl_ms: int
        """The most: ``max_ttl`` of the quorum."""

    @dataclass(frozen=True, slots=True)
    class Closed:
        """The client was closed."""

        _of: ClassVar[str] = "error.closed"

    @dataclass(frozen=True, slots=True)
    class Invalid:
        """An argument was refused."""

        _of: ClassVar[str] = "error.invalid"
        error: SettingError.Case
        """Which, and why."""

    @dataclass(frozen=True, slots=True)
    class Other:
        """What this version of the interface has no case for."""

        _of: ClassVar[str] = "error.other"
        message: str
        """What happened, in words."""

    Case: TypeAlias = DuplicateLock | UnknownLock | TooManyLocks | AboveMaxTtl | Closed | Invalid | Other


class Output:
    """What the client tells its host."""

    @dataclass(frozen=True, slots=True)
    class Transmit:
        """Perform these operations, and hand their outcomes to ``handle_response``."""

        _of: ClassVar[str] = "output.transmit"
        id: int
        """Correlates the response."""
        node: int
        """To whom."""
        deadline_ns: int
        """When the host may stop waiting; the client counts the request as unknown from then on."""
        ops: Sequence[LockOp]
        """What to do, in order; several only for renewals."""

    @dataclass(frozen=True, slots=True)
    class HttpRequest:
        """Send this request over HTTP, and hand the response to ``handle_response``."""

        _of: ClassVar[str] = "output.http-request"
        id: int
        """Correlates the response. What is one request to a node may become several, each with an id of its own."""
        node: int
        """To whom."""
        deadline_ns: int
        """When the host may stop waiting; the client counts the request as unknown from then on."""
        method: str
        """Always ``POST``."""
        url: str
        """Where to, whole."""
        headers: Sequence[tuple[str, str]] = field(repr=False)
        """In lowercase, each name once. They hold secrets."""
        body: bytes = field(repr=False)
        """UTF-8. It names attempts, and so holds secrets too."""

    @dataclass(frozen=True, slots=True)
    class RedisCommands:
        """Send these commands to a Redis, and hand the replies to ``handle_response``."""

        _of: ClassVar[str] = "output.redis-commands"
        id: int
        """Correlates the replies. What is one request to a node may become several, each with an id of its own."""
        node: int
        """To whom."""
        deadline_ns: int
        """When the host may stop waiting; the client counts the request as unknown from then on. A connection on which
        replies are still missing then must be closed: they would be taken for those of later commands.
        """
        commands: Sequence[Sequence[bytes]] = field(repr=False)
        """At least one. They name attempts, and so hold secrets."""

    @dataclass(frozen=True, slots=True)
    class Event:
        """Something happened to a lock."""

        _of: ClassVar[str] = "output.event"
        lock: int
        """Which lock."""
        event: Event.Case
        """What happened."""

    @dataclass(frozen=True, slots=True)
    class Subscribe:
        """Ask for wake-ups on a resource, then call ``subscribed``."""

        _of: ClassVar[str] = "output.subscribe"
        node: int
        """Where."""
        resource: str
        """For what."""

    @dataclass(frozen=True, slots=True)
    class Unsubscribe:
        """Wake-ups on a resource are no longer needed."""

        _of: ClassVar[str] = "output.unsubscribe"
        node: int
        """Where."""
        resource: str
        """For what."""

    @dataclass(frozen=True, slots=True)
    class NeedCredentials:
        """The node wants fresh credentials. For nodes that are spoken to in the format of a store: call
        ``set_credentials``; requests wait for it until their deadline. For others the node has refused: call
        ``credentials_renewed`` when it has them.
        """

        _of: ClassVar[str] = "output.need-credentials"
        node: int
        """Which."""

    @dataclass(frozen=True, slots=True)
    class Rejected:
        """A command given to ``step`` was not accepted."""

        _of: ClassVar[str] = "output.rejected"
        lock: int
        """The lock that the command was about."""
        error: CommandError.Case
        """Why."""

    @dataclass(frozen=True, slots=True)
    class WakeAt:
        """Nothing more to do: sleep until then, or until a response or a command, then call ``handle_timeout``."""

        _of: ClassVar[str] = "output.wake-at"
        at_ns: int | None = None
        """When, on the monotonic clock; absent when nothing is due."""

    Case: TypeAlias = (
        Transmit
        | HttpRequest
        | RedisCommands
        | Event
        | Subscribe
        | Unsubscribe
        | NeedCredentials
        | Rejected
        | WakeAt
    )


@dataclass(frozen=True, slots=True)
class Stepped:
    """What one ``step`` brought."""

    _of: ClassVar[str] = "stepped"
    outputs: Sequence[Output.Case]
    """In order, without ``wake_at``."""
    wake_at_ns: int | None = None
    """When to call again at the latest, on the monotonic clock; absent when nothing is due."""


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of what a client keeps and has seen."""

    _of: ClassVar[str] = "stats"
    locks: int
    """Acquisitions alive, in any state."""
    held: int
    """Of these, held."""
    in_flight: int
    """Requests without a response yet."""
    orphans: int
    """Background releases of attempts that were given up."""
    observations: int
    """Foreign versions under observation."""
    undrained: int
    """Outputs that the host has not drained."""
    ignored_responses: int
    """Responses so far that belonged to no open request: late, duplicate or made up."""
    timed_out_requests: int
    """Requests so far whose deadline passed without a response."""


CLASSES: dict[str, type] = {
    "failure.busy": Failure.Busy,
    "failure.timed-out": Failure.TimedOut,
    "failure.throttled": Failure.Throttled,
    "failure.unavailable": Failure.Unavailable,
    "failure.abstains": Failure.Abstains,
    "failure.refused": Failure.Refused,
    "failure.cancelled": Failure.Cancelled,
    "failure.other": Failure.Other,
    "lost-reason.expired": LostReason.Expired,
    "lost-reason.max-hold": LostReason.MaxHold,
    "lost-reason.taken-over": LostReason.TakenOver,
    "lost-reason.released": LostReason.Released,
    "lost-reason.record-gone": LostReason.RecordGone,
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
    "error.duplicate-lock": CommandError.DuplicateLock,
    "error.unknown-lock": CommandError.UnknownLock,
    "error.too-many-locks": CommandError.TooManyLocks,
    "error.above-max-ttl": CommandError.AboveMaxTtl,
    "error.closed": CommandError.Closed,
    "error.invalid": CommandError.Invalid,
    "error.other": CommandError.Other,
    "output.transmit": Output.Transmit,
    "output.http-request": Output.HttpRequest,
    "output.redis-commands": Output.RedisCommands,
    "output.event": Output.Event,
    "output.subscribe": Output.Subscribe,
    "output.unsubscribe": Output.Unsubscribe,
    "output.need-credentials": Output.NeedCredentials,
    "output.rejected": Output.Rejected,
    "output.wake-at": Output.WakeAt,
    "stepped": Stepped,
    "stats": Stats,
}

__all__ = [
    "CommandError",
    "Event",
    "Failure",
    "LostReason",
    "Output",
    "Stats",
    "Stepped",
]
