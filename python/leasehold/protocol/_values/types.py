"""Generated from wit/leasehold.wit by ``cargo xtask component --bless``. Do not edit.

Plain values: frozen, compared by what is in them, and made to be taken apart by ``match``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Literal, TypeAlias

Seconds: TypeAlias = float | timedelta


@dataclass(frozen=True, slots=True)
class Now:
    """What the host's clocks show, sampled after the last input was read and before the first output is performed."""

    _of: ClassVar[str] = "now"
    monotonic_ns: int
    """Decides everything about validity. It must count on while the machine is suspended; only differences matter. A
    value below an earlier one counts as that earlier one.
    """
    unix_ms: int
    """Milliseconds since 1970, for token floors and readable records only; never for validity."""


@dataclass(frozen=True, slots=True)
class Quorum:
    """What several nodes agree on that form a quorum; all its clients must have the same."""

    _of: ClassVar[str] = "quorum"
    id: bytes
    """Which quorum."""
    max_ttl: Seconds | None = None
    """Bounds ``ttl`` and ``lock_delay`` of every lock together: 0.1 to 172,800 (48 h). Default 60. A node that has lost
    its data abstains for a little longer than this. In seconds.
    """

Durability: TypeAlias = Literal["declared", "not_declared"]
"""Whether a node is known to keep across a restart all that it has acknowledged.

declared: Its operator says so: a restart alone then means nothing.

not_declared: Not known: a restart counts as lost memory.
"""

Poll: TypeAlias = Literal["acquire", "read"]
"""Who decides that a record has run out.

acquire: A refused acquire is as cheap as a read (Redis, memory).

read: Reads are cheaper than refused writes (DynamoDB, SQLite): look first, write once it is free.
"""


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """What one store can do."""

    _of: ClassVar[str] = "node-config"
    poll: Poll | None = None
    """How to look whether a held lock became free."""
    watch: bool | None = None
    """Whether the store can tell waiters of a release."""
    batch: int | None = None
    """Most renewals in one request, at least 1. Default 100."""
    durability: Durability | None = None
    """In a quorum: whether the store keeps every acknowledged write through a crash. Default ``not_declared``."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what one client keeps; each at least 1."""

    _of: ClassVar[str] = "limits"
    locks: int | None = None
    """Acquisitions alive at once, held, waiting or queued. Default 1,000,000."""
    orphans: int | None = None
    """Background releases alive at once; above it a record is left to run out. Default 100,000."""
    observations: int | None = None
    """Resources whose foreign versions are remembered. Default 1,024."""


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of one client."""

    _of: ClassVar[str] = "config"
    nodes: Sequence[NodeConfig]
    """One entry for each store, 1 to 31; several form a quorum."""
    drift_ppm: int | None = None
    """How far the rate of a clock may be off, in parts per million: 100 to 100,000. Default 10,000, which is 1%. Every
    client of a store should use the same value.
    """
    request_timeout: Seconds | None = None
    """The longest that one reply is awaited: 0.01 to 60. Default 0.5. A sixth of a lock's ttl binds as well. In
    seconds.
    """
    limits: Limits | None = None
    """Bounds on what the client keeps."""
    quorum: Quorum | None = None
    """Has the nodes remember which quorum they belong to, so that one that has lost its data does not vote as if it had
    not. Without it, that must never happen. A single node has no use for it, and ignores it.
    """


class Wait:
    """How long to try."""

    @dataclass(frozen=True, slots=True)
    class Once:
        """One attempt, answered as soon as it is decided."""

        _of: ClassVar[str] = "wait.once"

    @dataclass(frozen=True, slots=True)
    class For:
        """New attempts until some time has passed. One in flight by then is still awaited, for at most one request
        timeout.
        """

        _of: ClassVar[str] = "wait.for"
        wait: Seconds
        """How long to go on trying. In seconds."""

    @dataclass(frozen=True, slots=True)
    class Forever:
        """Until granted, cancelled or refused."""

        _of: ClassVar[str] = "wait.forever"

    Case: TypeAlias = Once | For | Forever


class Renewal:
    """When to push a lease's expiry out."""

    @dataclass(frozen=True, slots=True)
    class Automatic:
        """Every third of the ttl."""

        _of: ClassVar[str] = "renewal.automatic"

    @dataclass(frozen=True, slots=True)
    class Off:
        """Never: the lease ends at its first deadline."""

        _of: ClassVar[str] = "renewal.off"

    @dataclass(frozen=True, slots=True)
    class Every:
        """At an interval of one's own."""

        _of: ClassVar[str] = "renewal.every"
        interval: Seconds
        """Time between renewals: 0.01 to half the ttl. In seconds."""

    Case: TypeAlias = Automatic | Off | Every


@dataclass(frozen=True, slots=True)
class LockOptions:
    """What one acquisition asks for."""

    _of: ClassVar[str] = "lock-options"
    ttl: Seconds | None = None
    """How long a grant lasts without renewal: 0.1 to 86,400 (24 h). Default 30. In seconds."""
    wait: Wait.Case | None = None
    """How long to try."""
    lock_delay: Seconds | None = None
    """How long the lock stays closed after a holder let its lease run out, at most 86,400 (24 h). 0 is usual; a
    released lock is free at once either way. In seconds.
    """
    max_hold: Seconds | None = None
    """Stops renewal this long after the grant, so that a wedged worker cannot hold for ever; at least the ttl. Default:
    no bound. In seconds.
    """
    renewal: Renewal.Case | None = None
    """When to push the expiry out."""
    owner: str | None = None
    """A label for people, at most 256 bytes without control characters; may be empty."""
    data: bytes | None = None
    """Bytes that others can read while the lease stands."""


class SettingError:
    """Why a setting or an argument was refused: the value and its bound."""

    @dataclass(frozen=True, slots=True)
    class EmptyResource:
        """A resource without a name."""

        _of: ClassVar[str] = "config-error.empty-resource"

    @dataclass(frozen=True, slots=True)
    class TooLong:
        """A text or payload above its bound."""

        _of: ClassVar[str] = "config-error.too-long"
        what: str
        """Which setting."""
        bytes: int
        """Its size."""
        max_bytes: int
        """The most it may have."""

    @dataclass(frozen=True, slots=True)
    class ControlCharacter:
        """A NUL, newline or other control character in a name or label."""

        _of: ClassVar[str] = "config-error.control-character"
        what: str
        """Which setting."""
        at: int
        """Byte offset of the character."""
        code: int
        """Its code point."""

    @dataclass(frozen=True, slots=True)
    class TooShort:
        """A duration below its bound."""

        _of: ClassVar[str] = "config-error.too-short"
        what: str
        """Which setting."""
        value_ms: int
        """The value given."""
        min_ms: int
        """The smallest allowed."""

    @dataclass(frozen=True, slots=True)
    class TooFar:
        """A duration above its bound."""

        _of: ClassVar[str] = "config-error.too-far"
        what: str
        """Which setting."""
        value_ms: int
        """The value given."""
        max_ms: int
        """The largest allowed."""

    @dataclass(frozen=True, slots=True)
    class Drift:
        """A drift outside its bounds."""

        _of: ClassVar[str] = "config-error.drift"
        ppm: int
        """The value given."""
        min_ppm: int
        """The smallest allowed."""
        max_ppm: int
        """The largest allowed."""

    @dataclass(frozen=True, slots=True)
    class Nodes:
        """No node at all, or more than can be counted."""

        _of: ClassVar[str] = "config-error.nodes"
        count: int
        """How many were given."""
        max: int
        """The most."""

    @dataclass(frozen=True, slots=True)
    class ZeroLimit:
        """A limit of zero, which would allow nothing."""

        _of: ClassVar[str] = "config-error.zero-limit"
        what: str
        """Which limit."""

    @dataclass(frozen=True, slots=True)
    class TooFewBytes:
        """A seed, an entropy or a name of a quorum below its size."""

        _of: ClassVar[str] = "config-error.too-few-bytes"
        what: str
        """``seed``, ``fresh`` or ``quorum id``."""
        bytes: int
        """How many were given."""
        min_bytes: int
        """The fewest."""

    @dataclass(frozen=True, slots=True)
    class Stores:
        """``Client.create_wired`` was given another number of stores than of nodes."""

        _of: ClassVar[str] = "config-error.stores"
        count: int
        """How many were given."""
        nodes: int
        """How many nodes there are."""

    @dataclass(frozen=True, slots=True)
    class Store:
        """The settings or credentials of one store make no sense."""

        _of: ClassVar[str] = "config-error.store"
        node: int
        """Whose."""
        detail: str
        """What is wrong, and what would be right, without secrets."""

    @dataclass(frozen=True, slots=True)
    class Other:
        """What this version of the interface has no case for."""

        _of: ClassVar[str] = "config-error.other"
        message: str
        """What happened, in words."""

    Case: TypeAlias = (
        EmptyResource
        | TooLong
        | ControlCharacter
        | TooShort
        | TooFar
        | Drift
        | Nodes
        | ZeroLimit
        | TooFewBytes
        | Stores
        | Store
        | Other
    )


CLASSES: dict[str, type] = {
    "now": Now,
    "quorum": Quorum,
    "node-config": NodeConfig,
    "limits": Limits,
    "config": Config,
    "wait.once": Wait.Once,
    "wait.for": Wait.For,
    "wait.forever": Wait.Forever,
    "renewal.automatic": Renewal.Automatic,
    "renewal.off": Renewal.Off,
    "renewal.every": Renewal.Every,
    "lock-options": LockOptions,
    "config-error.empty-resource": SettingError.EmptyResource,
    "config-error.too-long": SettingError.TooLong,
    "config-error.control-character": SettingError.ControlCharacter,
    "config-error.too-short": SettingError.TooShort,
    "config-error.too-far": SettingError.TooFar,
    "config-error.drift": SettingError.Drift,
    "config-error.nodes": SettingError.Nodes,
    "config-error.zero-limit": SettingError.ZeroLimit,
    "config-error.too-few-bytes": SettingError.TooFewBytes,
    "config-error.stores": SettingError.Stores,
    "config-error.store": SettingError.Store,
    "config-error.other": SettingError.Other,
}

__all__ = [
    "Config",
    "Durability",
    "Limits",
    "LockOptions",
    "NodeConfig",
    "Now",
    "Poll",
    "Quorum",
    "Renewal",
    "SettingError",
    "Wait",
]
