"""Generated from wit/leasehold.wit by ``cargo xtask component --bless``. Do not edit.

Plain values: frozen, compared by what is in them, and made to be taken apart by ``match``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from leasehold.protocol._values.types import Durability

Birth: TypeAlias = Literal["yes", "no"]
"""The state of a quorum as a client has found it.

yes: All nodes abstained at once, and all were waited out: it is a new quorum.

no: Any other state.
"""


@dataclass(frozen=True, slots=True)
class Membership:
    """The membership data that a client of a quorum sends with every acquire.

    A node remembers, beside its locks, the quorum it belongs to. One that finds no such memory, or one of an earlier
    run of its server that is not declared durable, has lost its data: it writes down ``fresh`` and abstains until a
    client comes that has waited that loss out.
    """

    _of: ClassVar[str] = "membership"
    quorum: bytes
    """The client's quorum; a node of another quorum refuses for good."""
    max_ttl_ms: int
    """The longest record of this quorum; a node with another value refuses for good."""
    durability: Durability
    """The declared durability of this node."""
    fresh: bytes
    """A new id for a loss, if this send is the first to detect it."""
    waited_out: bytes | None
    """The loss whose abstention this client has waited out, or which it has seen to be over, before this attempt began.
    """
    birth: Birth
    """True if this client found a quorum without a past."""
    retention_ms: int
    """For how long the counters of a node that votes again stay in doubt, unless they are raised: 604,800,000 (7 days).
    """


class Op:
    """An operation."""

    @dataclass(frozen=True, slots=True)
    class Acquire:
        """Write our record if the resource is free, or released, or still at the expected foreign version; mint a
        token.
        """

        _of: ClassVar[str] = "op.acquire"
        nonce: bytes = field(repr=False)
        """The attempt."""
        seq: int
        """The number of this send within the attempt."""
        record_ttl_ms: int
        """How long the record lasts unless renewed."""
        floor: int
        """The smallest token to mint."""
        expect: bytes | None
        """A foreign version that has been observed for its whole ttl and may be overwritten."""
        owner: str
        """Label for people."""
        data: bytes | None
        """Bytes for others to read."""
        member: Membership | None
        """The membership, which the node checks before the lock itself, in the same atomic step; absent for a single
        store.
        """
        unless_done: bool
        """Refuse (``done``) if a completion says that the work is done."""

    @dataclass(frozen=True, slots=True)
    class Renew:
        """Extend the expiry, if the record is still ours. Never shortens it, never creates a record."""

        _of: ClassVar[str] = "op.renew"
        nonce: bytes = field(repr=False)
        """The attempt that was granted."""
        seq: int
        """The number of this send within the attempt."""
        record_ttl_ms: int
        """How long the record lasts from now on."""
        quorum: Durability | None = None
        """In a quorum, the declared durability of the node, which then distinguishes a lost record (``conflict``) from
        lost memory (``abstains``); absent for a single store.
        """

    @dataclass(frozen=True, slots=True)
    class Release:
        """Free the resource if the record is still ours; its token counter survives."""

        _of: ClassVar[str] = "op.release"
        nonce: bytes = field(repr=False)
        """The attempt whose record to free."""
        quorum: Durability | None = None
        """In a quorum, as in ``renew``; absent for a single store."""

    @dataclass(frozen=True, slots=True)
    class Finish:
        """Write the completion that the work is done, and free the resource, in one step, if the record is still ours.
        """

        _of: ClassVar[str] = "op.finish"
        nonce: bytes = field(repr=False)
        """The attempt whose work is done."""
        token: int
        """The fencing token of the lease."""
        counter: int
        """The counter that the grant has shown. Refuse as not ours where the record's is another: its grant is another
        as well.
        """
        keep_ms: int
        """How long the completion stands from now on."""
        owner: str
        """The label of the holder; may be empty."""
        about: bytes | None = None
        """The record of the run, to keep beside the completion and to show with it; absent for a run without a result.
        ``Runs.read_about`` reads it. A store that has no room for it may refuse the finish: the next one carries none.
        """
        quorum: Durability | None = None
        """In a quorum, as in ``renew``; absent for a single store."""

    @dataclass(frozen=True, slots=True)
    class Revoke:
        """Mark the record if it is still that of the attempt: its renewals are refused from then on, release and finish
        free it as ever. The expiry stays. No client of this interface sends it.
        """

        _of: ClassVar[str] = "op.revoke"
        nonce: bytes = field(repr=False)
        """The attempt whose record to mark."""

    @dataclass(frozen=True, slots=True)
    class Raise:
        """Raise the node's counter to at least a token, if the record is still ours; return the counter."""

        _of: ClassVar[str] = "op.raise"
        nonce: bytes = field(repr=False)
        """The attempt that must still own the record."""
        token: int
        """The minimum of the counter afterwards."""
        loss: bytes | None = None
        """The loss since which the node is in doubt; after the raise its counter of this resource is trusted."""

    @dataclass(frozen=True, slots=True)
    class Read:
        """Read the record."""

        _of: ClassVar[str] = "op.read"

    Case: TypeAlias = Acquire | Renew | Release | Finish | Revoke | Raise | Read


@dataclass(frozen=True, slots=True)
class LockOp:
    """One operation on one resource, on behalf of one lock."""

    _of: ClassVar[str] = "lock-op"
    lock: int
    """The lock, so that a host can distinguish the requests of callers."""
    resource: str
    """The resource."""
    op: Op.Case
    """The operation."""

FaultKind: TypeAlias = Literal["timeout", "reset", "unreachable", "cancelled", "server", "busy", "protocol"]
"""Kinds of temporary failures.

timeout: No reply in time.

reset: The connection broke after something was sent.

unreachable: No connection could be made.

cancelled: The caller cancelled the request.

server: The store reported a failure.

busy: The store is busy or throttles.

protocol: The store's answer is invalid.
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """A temporary failure."""

    _of: ClassVar[str] = "fault"
    kind: FaultKind
    """The kind of failure."""
    detail: str | None = None
    """The message of the store or the operating system, without secrets; cut after 512 bytes."""

DenialKind: TypeAlias = Literal["permission", "schema", "corrupt_record", "tokens_exhausted", "storage_full", "membership", "other"]
"""Kinds of permanent refusals.

permission: Permission denied.

schema: This client cannot work with the table, schema or type of value.

corrupt_record: No valid client wrote the record: a ttl of years, a token above 2^53, unreadable bytes.

tokens_exhausted: The counter has reached 2^53 - 1.

storage_full: No room left to write.

membership: The node belongs to another quorum, or has other settings than its clients.

other: Any other permanent refusal.
"""


@dataclass(frozen=True, slots=True)
class Completion:
    """The completion of finished work: while it stands, nobody does the work again."""

    _of: ClassVar[str] = "completion"
    token: int
    """The fencing token of the lease under which the work was done."""
    owner: str
    """The label of its holder; may be empty."""
    at_unix_ms: int
    """When the work was finished, by the holder's or store's wall clock, in milliseconds since 1970."""
    left_ms: int
    """How much longer the completion stands; rounded up."""
    about: bytes | None
    """The record of the run that wrote the completion, as it came with ``Op.Finish``; absent where none was kept, and
    where the store shows one that does not begin with the nonce of that finish. ``Runs.read_about`` reads it.
    """
    unsettled: bool
    """In a quorum: a node shows a record of the run, but no majority is known to show the same completion. A store says
    false.
    """


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """A writer that speaks this protocol."""

    _of: ClassVar[str] = "lease-holder"
    nonce: bytes = field(repr=False)
    """Its attempt."""
    seq: int | None = None
    """The send that wrote the record last, if the store keeps it."""


@dataclass(frozen=True, slots=True)
class Holding:
    """A record, as much of it as the store keeps."""

    _of: ClassVar[str] = "holding"
    holder: LeaseHolder | None
    """The client that wrote it; absent if another library did."""
    version: bytes
    """The id of this state of the record."""
    released: bool
    """Freed by its holder: only its history is left."""
    counter: int | None = None
    """The node's token counter; of several nodes, the token that a majority may have, absent if it is not certain."""
    owner: str | None = None
    """The holder's label."""
    record_ttl_ms: int | None = None
    """The ttl written in the record; rounded up."""
    left_ms: int | None = None
    """Time until the store frees the record by itself, rounded up; absent if the store does not, and observers must
    wait.
    """
    since_unix_ms: int | None = None
    """When the lease was granted, by the holder's or store's wall clock, in milliseconds since 1970."""
    data: bytes | None = None
    """The holder's data."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of a resource on a node."""

    _of: ClassVar[str] = "seen"
    holding: Holding | None = None
    """The record; absent if the resource is free without a trace of the last holder."""
    done: Completion | None = None
    """The completion of finished work, in the answer to ``Op.Read``; absent if none stands."""


class Applied:
    """The answer to an operation that was applied."""

    @dataclass(frozen=True, slots=True)
    class Acquired:
        """The record is ours. The counter is the token of this grant; for a resend, the token it already had."""

        _of: ClassVar[str] = "applied.acquired"
        counter: int
        """The node's token counter."""

    @dataclass(frozen=True, slots=True)
    class AcquiredInDoubt:
        """The record is ours, but this node of a quorum may have lost tokens: its counter must be raised before it
        counts.
        """

        _of: ClassVar[str] = "applied.acquired-in-doubt"
        counter: int
        """The node's token counter."""
        stamp: bytes
        """The loss after which it is in doubt."""

    @dataclass(frozen=True, slots=True)
    class Renewed:
        """The expiry was extended."""

        _of: ClassVar[str] = "applied.renewed"

    @dataclass(frozen=True, slots=True)
    class Released:
        """The resource is free."""

        _of: ClassVar[str] = "applied.released"

    @dataclass(frozen=True, slots=True)
    class Finished:
        """The completion stands and the resource is free."""

        _of: ClassVar[str] = "applied.finished"

    @dataclass(frozen=True, slots=True)
    class Revoked:
        """The record is marked: nobody renews it any more."""

        _of: ClassVar[str] = "applied.revoked"

    @dataclass(frozen=True, slots=True)
    class Raised:
        """The counter is at least the requested token."""

        _of: ClassVar[str] = "applied.raised"
        counter: int
        """The node's token counter."""

    @dataclass(frozen=True, slots=True)
    class Read:
        """The contents of the record."""

        _of: ClassVar[str] = "applied.read"
        holding: Holding | None = None
        """The record; absent if the resource is free without a trace of the last holder."""
        done: Completion | None = None
        """The completion of finished work, in the answer to ``Op.Read``; absent if none stands."""

    Case: TypeAlias = Acquired | AcquiredInDoubt | Renewed | Released | Finished | Revoked | Raised | Read


class Refusal:
    """The reason why an operation was not applied."""

    @dataclass(frozen=True, slots=True)
    class Conflict:
        """The conflicting record; for renew, release, finish, revoke and raise also: no record of ours. For a renewal
        also our own record, if it is revoked: it shows the seq 4,294,967,295.
        """

        _of: ClassVar[str] = "refusal.conflict"
        holding: Holding | None = None
        """The record; absent if the resource is free without a trace of the last holder."""
        done: Completion | None = None
        """The completion of finished work, in the answer to ``Op.Read``; absent if none stands."""

    @dataclass(frozen=True, slots=True)
    class Done:
        """The work is done: the completion that stands."""

        _of: ClassVar[str] = "refusal.done"
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
    class Throttled:
        """The store throttles requests."""

        _of: ClassVar[str] = "refusal.throttled"
        kind: FaultKind
        """The kind of failure."""
        detail: str | None = None
        """The message of the store or the operating system, without secrets; cut after 512 bytes."""

    @dataclass(frozen=True, slots=True)
    class Unavailable:
        """The store cannot serve now, and did not begin to: connection refused, database busy, loading."""

        _of: ClassVar[str] = "refusal.unavailable"
        kind: FaultKind
        """The kind of failure."""
        detail: str | None = None
        """The message of the store or the operating system, without secrets; cut after 512 bytes."""

    @dataclass(frozen=True, slots=True)
    class Abstains:
        """The node may have lost past grants, so it does not vote yet."""

        _of: ClassVar[str] = "refusal.abstains"
        stamp: bytes | None = None
        """The id of the loss, if a vote was requested."""

    @dataclass(frozen=True, slots=True)
    class NeedsCredentials:
        """Credentials are missing or have expired; fresh ones may help."""

        _of: ClassVar[str] = "refusal.needs-credentials"
        kind: FaultKind
        """The kind of failure."""
        detail: str | None = None
        """The message of the store or the operating system, without secrets; cut after 512 bytes."""

    @dataclass(frozen=True, slots=True)
    class Denied:
        """Trying again will not help."""

        _of: ClassVar[str] = "refusal.denied"
        kind: DenialKind
        """The kind of refusal."""
        detail: str
        """The message of the store and advice, without secrets; cut after 512 bytes."""

    Case: TypeAlias = Conflict | Done | Throttled | Unavailable | Abstains | NeedsCredentials | Denied


class Outcome:
    """The result of an operation. An invalid one, such as a nonce of 15 bytes or a token of 2^53, counts as unknown."""

    @dataclass(frozen=True, slots=True)
    class Applied:
        """It happened."""

        _of: ClassVar[str] = "outcome.applied"
        applied: Applied.Case
        """The answer."""

    @dataclass(frozen=True, slots=True)
    class NotApplied:
        """It certainly did not happen, and this send never will."""

        _of: ClassVar[str] = "outcome.not-applied"
        refusal: Refusal.Case
        """The reason."""

    @dataclass(frozen=True, slots=True)
    class Unknown:
        """It may have happened, or may still happen."""

        _of: ClassVar[str] = "outcome.unknown"
        kind: FaultKind
        """The kind of failure."""
        detail: str | None = None
        """The message of the store or the operating system, without secrets; cut after 512 bytes."""

    Case: TypeAlias = Applied | NotApplied | Unknown


CLASSES: dict[str, type] = {
    "membership": Membership,
    "op.acquire": Op.Acquire,
    "op.renew": Op.Renew,
    "op.release": Op.Release,
    "op.finish": Op.Finish,
    "op.revoke": Op.Revoke,
    "op.raise": Op.Raise,
    "op.read": Op.Read,
    "lock-op": LockOp,
    "fault": Fault,
    "completion": Completion,
    "lease-holder": LeaseHolder,
    "holding": Holding,
    "seen": Seen,
    "applied.acquired": Applied.Acquired,
    "applied.acquired-in-doubt": Applied.AcquiredInDoubt,
    "applied.renewed": Applied.Renewed,
    "applied.released": Applied.Released,
    "applied.finished": Applied.Finished,
    "applied.revoked": Applied.Revoked,
    "applied.raised": Applied.Raised,
    "applied.read": Applied.Read,
    "refusal.conflict": Refusal.Conflict,
    "refusal.done": Refusal.Done,
    "refusal.throttled": Refusal.Throttled,
    "refusal.unavailable": Refusal.Unavailable,
    "refusal.abstains": Refusal.Abstains,
    "refusal.needs-credentials": Refusal.NeedsCredentials,
    "refusal.denied": Refusal.Denied,
    "outcome.applied": Outcome.Applied,
    "outcome.not-applied": Outcome.NotApplied,
    "outcome.unknown": Outcome.Unknown,
}

__all__ = [
    "Applied",
    "Birth",
    "Completion",
    "DenialKind",
    "Fault",
    "FaultKind",
    "Holding",
    "LeaseHolder",
    "LockOp",
    "Membership",
    "Op",
    "Outcome",
    "Refusal",
    "Seen",
]
