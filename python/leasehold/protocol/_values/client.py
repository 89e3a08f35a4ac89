"""Generated from wit/leasehold.wit by ``cargo xtask component --bless``. Do not edit.

Plain values: frozen, compared by what is in them, and made to be taken apart by ``match``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from leasehold.protocol._values.events import Event
from leasehold.protocol._values.ops import LockOp, Outcome
from leasehold.protocol._values.stores import SqlValue
from leasehold.protocol._values.types import SettingError


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Payload of ``Response.Outcomes``, and the answers to a read."""

    _of: ClassVar[str] = "outcomes"
    outcomes: Sequence[Outcome.Case]
    """One for each operation of the request, in order; missing ones count as unknown. Of a read, one for each node."""


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
    class Statement:
        """Have a PostgreSQL execute this statement, and pass its rows or its error to ``handle_response``."""

        _of: ClassVar[str] = "output.statement"
        id: int
        """Correlates the rows. One request to a node may become several, each with its own id."""
        node: int
        """The node."""
        deadline_ns: int
        """When the host may stop waiting; the client counts the request as unknown from then on."""
        sql: str
        """The text."""
        params: Sequence[SqlValue.Case] = field(repr=False)
        """The parameters. They contain nonces, which are secrets."""

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
        | Statement
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


@dataclass(frozen=True, slots=True)
class Revocation:
    """The outcome of ``Client.revoke``."""

    _of: ClassVar[str] = "revocation"
    is_revoked: bool | None
    """True if the lease is revoked, false if it was over. Absent where too few nodes say so, and its holder may keep
    it: ask again.
    """
    troubles: Sequence[Outcome.Case]
    """The answers in the way, of nodes that were not reached or have refused."""


CLASSES: dict[str, type] = {
    "outcomes": Outcomes,
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
    "output.statement": Output.Statement,
    "output.event": Output.Event,
    "output.subscribe": Output.Subscribe,
    "output.unsubscribe": Output.Unsubscribe,
    "output.need-credentials": Output.NeedCredentials,
    "output.rejected": Output.Rejected,
    "output.wake-at": Output.WakeAt,
    "stepped": Stepped,
    "stats": Stats,
    "revocation": Revocation,
}

__all__ = [
    "CommandError",
    "Outcomes",
    "Output",
    "Revocation",
    "Stats",
    "Stepped",
]
