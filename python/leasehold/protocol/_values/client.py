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


class CommandError:
    """A command that was not accepted."""

    @dataclass(frozen=True, slots=True)
    class DuplicateLock:
        """The lock id is in use; take a new one for each acquisition."""

        _of: ClassVar[str] = "error.duplicate-lock"

    @dataclass(frozen=True, slots=True)
    class UnknownLock:
        """No such lock is alive: it was never acquired, or it was lost or released."""

        _of: ClassVar[str] = "error.unknown-lock"

    @dataclass(frozen=True, slots=True)
    class TooManyLocks:
        """The client has as many locks as it may have."""

        _of: ClassVar[str] = "error.too-many-locks"
        limit: int
        """The limit."""

    @dataclass(frozen=True, slots=True)
    class AboveMaxTtl:
        """The record would last longer than the quorum allows."""

        _of: ClassVar[str] = "error.above-max-ttl"
        record_ttl_ms: int
        """The sum of ``ttl`` and ``lock_delay``."""
        max_ttl_ms: int
        """The limit: ``max_ttl`` of the quorum."""

    @dataclass(frozen=True, slots=True)
    class AboveMaxKeep:
        """The completion would stand for longer than the quorum allows."""

        _of: ClassVar[str] = "error.above-max-keep"
        keep_ms: int
        """The time that was asked for."""
        max_keep_ms: int
        """The limit: a node that may have lost completions is in doubt about them for so long."""

    @dataclass(frozen=True, slots=True)
    class NotARun:
        """A plain lock has no completion, so it cannot be finished."""

        _of: ClassVar[str] = "error.not-a-run"

    @dataclass(frozen=True, slots=True)
    class Closed:
        """The client was closed."""

        _of: ClassVar[str] = "error.closed"

    @dataclass(frozen=True, slots=True)
    class Invalid:
        """An argument was rejected."""

        _of: ClassVar[str] = "error.invalid"
        error: SettingError.Case
        """The argument and the reason."""

    @dataclass(frozen=True, slots=True)
    class Other:
        """Anything without a case in this version of the interface."""

        _of: ClassVar[str] = "error.other"
        message: str
        """A message for people."""

    Case: TypeAlias = (
        DuplicateLock
        | UnknownLock
        | TooManyLocks
        | AboveMaxTtl
        | AboveMaxKeep
        | NotARun
        | Closed
        | Invalid
        | Other
    )


class Output:
    """An output of the client for its host."""

    @dataclass(frozen=True, slots=True)
    class Transmit:
        """Perform these operations, and pass their outcomes to ``handle_response``."""

        _of: ClassVar[str] = "output.transmit"
        id: int
        """Correlates the response."""
        node: int
        """The node."""
        deadline_ns: int
        """When the host may stop waiting; from then on the client counts the request as unknown."""
        ops: Sequence[LockOp]
        """The operations, in order; several only for renewals."""

    @dataclass(frozen=True, slots=True)
    class HttpRequest:
        """Send this request over HTTP, and pass the response to ``handle_response``."""

        _of: ClassVar[str] = "output.http-request"
        id: int
        """Correlates the response. One request to a node may become several, each with its own id."""
        node: int
        """The node."""
        deadline_ns: int
        """When the host may stop waiting; from then on the client counts the request as unknown."""
        method: str
        """``GET``, ``PUT`` or ``POST``. A ``GET`` has no body."""
        url: str
        """The complete URL. A response from a cache is none."""
        headers: Sequence[tuple[str, str]] = field(repr=False)
        """In lowercase, each name once. They contain secrets."""
        body: bytes = field(repr=False)
        """UTF-8. It contains nonces, which are secrets."""

    @dataclass(frozen=True, slots=True)
    class RedisCommands:
        """Send these commands to a Redis, and pass the replies to ``handle_response``."""

        _of: ClassVar[str] = "output.redis-commands"
        id: int
        """Correlates the replies. One request to a node may become several, each with its own id."""
        node: int
        """The node."""
        deadline_ns: int
        """When the host may stop waiting; the client counts the request as unknown from then on. Close a connection
        with missing replies then: they would be read as those of later commands.
        """
        commands: Sequence[Sequence[bytes]] = field(repr=False)
        """At least one. They contain nonces, which are secrets."""

    @dataclass(frozen=True, slots=True)
    class Event:
        """An event of a lock."""

        _of: ClassVar[str] = "output.event"
        lock: int
        """The lock."""
        event: Event.Case
        """The event."""

    @dataclass(frozen=True, slots=True)
    class Subscribe:
        """Subscribe to wake-ups of a resource, then call ``subscribed``."""

        _of: ClassVar[str] = "output.subscribe"
        node: int
        """The node."""
        resource: str
        """The resource."""

    @dataclass(frozen=True, slots=True)
    class Unsubscribe:
        """Wake-ups of a resource are no longer needed."""

        _of: ClassVar[str] = "output.unsubscribe"
        node: int
        """The node."""
        resource: str
        """The resource."""

    @dataclass(frozen=True, slots=True)
    class NeedCredentials:
        """The node needs fresh credentials. For a node with the format of a store, call ``set_credentials``; requests
        wait for it until their deadline. Any other node has refused the old ones: call ``credentials_renewed`` when it
        has new ones.
        """

        _of: ClassVar[str] = "output.need-credentials"
        node: int
        """Which."""

    @dataclass(frozen=True, slots=True)
    class Rejected:
        """A command given to ``step`` was not accepted."""

        _of: ClassVar[str] = "output.rejected"
        lock: int
        """The lock of the command."""
        error: CommandError.Case
        """The reason."""

    @dataclass(frozen=True, slots=True)
    class WakeAt:
        """Nothing more to do: sleep until then, or until a response or a command, then call ``handle_timeout``."""

        _of: ClassVar[str] = "output.wake-at"
        at_ns: int | None = None
        """The time on the monotonic clock; absent when nothing is due."""

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
    """The result of one ``step``."""

    _of: ClassVar[str] = "stepped"
    outputs: Sequence[Output.Case]
    """In order, without ``wake_at``."""
    wake_at_ns: int | None = None
    """When to call again at the latest, on the monotonic clock; absent when nothing is due."""


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of a client's state and history."""

    _of: ClassVar[str] = "stats"
    locks: int
    """Acquisitions alive, in any state."""
    held: int
    """Of these, held."""
    in_flight: int
    """Requests without a response yet."""
    orphans: int
    """Background releases of abandoned attempts."""
    observations: int
    """Foreign versions under observation."""
    undrained: int
    """Outputs that the host has not drained."""
    ignored_responses: int
    """Responses so far without an open request: late, duplicate or invented."""
    timed_out_requests: int
    """Requests so far whose deadline passed without a response."""


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
    "error.duplicate-lock": CommandError.DuplicateLock,
    "error.unknown-lock": CommandError.UnknownLock,
    "error.too-many-locks": CommandError.TooManyLocks,
    "error.above-max-ttl": CommandError.AboveMaxTtl,
    "error.above-max-keep": CommandError.AboveMaxKeep,
    "error.not-a-run": CommandError.NotARun,
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
