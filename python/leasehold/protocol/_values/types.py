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
    """Readings of the host's clocks, sampled after the last input was read and before the first output is performed."""

    _of: ClassVar[str] = "now"
    monotonic_ns: int
    """Decides everything about validity. It must count suspended time; only differences matter. A value below an
    earlier one counts as that earlier one.
    """
    unix_ms: int
    """Milliseconds since 1970, for token floors and readable records only; never for validity."""


@dataclass(frozen=True, slots=True)
class Quorum:
    """The settings of a quorum; all its clients must have the same."""

    _of: ClassVar[str] = "quorum"
    id: bytes
    """The id."""
    max_ttl: Seconds | None = None
    """Bounds ``ttl`` and ``lock_delay`` of every lock together: 0.1 to 172,800 (48 h). Default 60. A node that has lost
    its data abstains for a little longer than this. In seconds.
    """

Durability: TypeAlias = Literal["declared", "not_declared"]
"""The durability of a node's acknowledged writes across a restart.

declared: Declared by its operator: a restart alone does not count as a loss.

not_declared: Not known: a restart counts as a loss.
"""

Poll: TypeAlias = Literal["acquire", "read"]
"""How a waiter checks a held lock.

acquire: A refused acquire is as cheap as a read (Redis, memory).

read: Reads are cheaper than refused writes (DynamoDB, SQLite): read first, write once it is free.
"""


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """The abilities of one store."""

    _of: ClassVar[str] = "node-config"
    poll: Poll | None = None
    """How to check if a held lock became free."""
    watch: bool | None = None
    """True if the store can notify waiters of a release."""
    batch: int | None = None
    """Most renewals in one request, at least 1. Default 100."""
    durability: Durability | None = None
    """In a quorum: the durability of acknowledged writes. Default ``not_declared``."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one client's state; each at least 1."""

    _of: ClassVar[str] = "limits"
    locks: int | None = None
    """Acquisitions alive at once, held, waiting or queued. Default 1,000,000."""
    orphans: int | None = None
    """Background releases alive at once; above it, a record is left to expire. Default 100,000."""
    observations: int | None = None
    """Resources whose foreign versions are observed. Default 1,024."""


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
    """The longest wait for one reply: 0.01 to 60. Default 0.5; never more than a sixth of a lock's ttl. In seconds."""
    limits: Limits | None = None
    """Limits of the client's state."""
    quorum: Quorum | None = None
    """Makes the nodes remember their quorum, so that a node that has lost its data does not vote as if it had not.
    Without it, nodes must never lose data. A single node ignores it.
    """

ResultKind: TypeAlias = Literal["bytes", "json", "output"]
"""The form of a result.

bytes: Bytes of any kind.

json: A value as JSON writes it, in UTF-8.

output: The output of a command.
"""


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run, for those who come later."""

    _of: ClassVar[str] = "run-result"
    kind: ResultKind
    """The form of the bytes."""
    bytes: bytes
    """At most 4,096 bytes."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The record of a run beside its completion."""

    _of: ClassVar[str] = "run-record"
    began_unix_ms: int
    """When the run began, by the clock of the one that did it, in milliseconds since 1970."""
    attempts: int
    """The number of attempts with this one; 0 if they were not counted."""
    run_result: RunResult | None = None
    """The result, if one was kept."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run."""

    _of: ClassVar[str] = "run-options"
    keep: Seconds | None = None
    """How long the completion of finished work stands: from ``ttl`` to 3,153,600,000 (100 years); in a quorum no more
    than the default, 604,800 (7 days). In seconds.
    """
    trust_quorum: bool | None = None
    """True is the word of an operator that no completion was lost: nodes of a quorum that have lost their data count
    all the same.
    """
    even_if_done: bool | None = None
    """Run although a completion may say that the work is done. Default false."""


class Wait:
    """How long to try."""

    @dataclass(frozen=True, slots=True)
    class Once:
        """One attempt, answered as soon as it is decided."""

        _of: ClassVar[str] = "wait.once"

    @dataclass(frozen=True, slots=True)
    class For:
        """New attempts until some time has passed. A pending attempt is still awaited, for at most one request timeout.
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
    """When to extend a lease's expiry."""

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
        """At a given interval."""

        _of: ClassVar[str] = "renewal.every"
        interval: Seconds
        """Time between renewals: 0.01 to half the ttl. In seconds."""

    Case: TypeAlias = Automatic | Off | Every


@dataclass(frozen=True, slots=True)
class LockOptions:
    """The options of one acquisition."""

    _of: ClassVar[str] = "lock-options"
    ttl: Seconds | None = None
    """How long a grant lasts without renewal: 0.1 to 86,400 (24 h). Default 30. In seconds."""
    wait: Wait.Case | None = None
    """How long to try."""
    lock_delay: Seconds | None = None
    """How long the lock stays closed after a lease has expired, at most 86,400 (24 h). 0 is usual; a released lock is
    free at once either way. In seconds.
    """
    max_hold: Seconds | None = None
    """Stops renewal this long after the grant, so that a stuck worker cannot hold forever; at least the ttl. Default:
    no bound. In seconds.
    """
    renewal: Renewal.Case | None = None
    """When to extend the expiry."""
    owner: str | None = None
    """A label for people, at most 256 bytes without control characters; may be empty."""
    data: bytes | None = None
    """Bytes that others can read while the lease lasts."""
    run: RunOptions | None = None
    """Makes it a run: work that is done once, so that the acquisition fails if a completion says that it is done.
    Default: a plain lock, which neither reads nor writes completions.
    """


class SettingError:
    """The reason why a setting or an argument was rejected: the value and its bound."""

    @dataclass(frozen=True, slots=True)
    class EmptyResource:
        """A resource without a name."""

        _of: ClassVar[str] = "config-error.empty-resource"

    @dataclass(frozen=True, slots=True)
    class EmptyKey:
        """A key of a run without a name."""

        _of: ClassVar[str] = "config-error.empty-key"

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
    class SessionLabel:
        """A label of a session that is empty, too long, or has a character that not every store can keep in a name."""

        _of: ClassVar[str] = "config-error.session-label"
        given: str
        """The label given; of a long one its beginning."""

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
    class KeepBelowTtl:
        """A completion of finished work that would end before the lease of its run."""

        _of: ClassVar[str] = "config-error.keep-below-ttl"
        keep_ms: int
        """How long the completion would stand."""
        ttl_ms: int
        """The ttl of the lease."""

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
        """No node, or too many nodes."""

        _of: ClassVar[str] = "config-error.nodes"
        count: int
        """How many were given."""
        max: int
        """The most."""

    @dataclass(frozen=True, slots=True)
    class ZeroLimit:
        """A limit of zero."""

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
        """The settings or credentials of one store are invalid."""

        _of: ClassVar[str] = "config-error.store"
        node: int
        """The node."""
        detail: str
        """The problem, and how to fix it, without secrets."""

    @dataclass(frozen=True, slots=True)
    class Other:
        """Anything without a case in this version of the interface."""

        _of: ClassVar[str] = "config-error.other"
        message: str
        """A message for people."""

    Case: TypeAlias = (
        EmptyResource
        | EmptyKey
        | TooLong
        | ControlCharacter
        | SessionLabel
        | TooShort
        | TooFar
        | KeepBelowTtl
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
    "run-result": RunResult,
    "run-record": RunRecord,
    "run-options": RunOptions,
    "wait.once": Wait.Once,
    "wait.for": Wait.For,
    "wait.forever": Wait.Forever,
    "renewal.automatic": Renewal.Automatic,
    "renewal.off": Renewal.Off,
    "renewal.every": Renewal.Every,
    "lock-options": LockOptions,
    "config-error.empty-resource": SettingError.EmptyResource,
    "config-error.empty-key": SettingError.EmptyKey,
    "config-error.too-long": SettingError.TooLong,
    "config-error.control-character": SettingError.ControlCharacter,
    "config-error.session-label": SettingError.SessionLabel,
    "config-error.too-short": SettingError.TooShort,
    "config-error.too-far": SettingError.TooFar,
    "config-error.keep-below-ttl": SettingError.KeepBelowTtl,
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
    "ResultKind",
    "RunOptions",
    "RunRecord",
    "RunResult",
    "SettingError",
    "Wait",
]
