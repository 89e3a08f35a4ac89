"""Generated from wit/leasehold.wit by ``cargo xtask component --bless``. Do not edit.

Plain values: frozen, compared by what is in them, and made to be taken apart by ``match``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from leasehold.protocol._values.types import Durability

Birth: TypeAlias = Literal["yes", "no"]
"""Whether a client has found a quorum unborn.

yes: All nodes abstained at once, and all were waited out: none of them has ever forgotten anything.

no: Anything else.
"""


@dataclass(frozen=True, slots=True)
class Membership:
    """What a client of a quorum says along with every acquire.

    A node remembers, beside its locks, the quorum it belongs to. One that finds no such memory, or one of an earlier
    run of its server that is not declared durable, has lost its data: it writes down ``fresh`` and abstains until a
    client comes that has waited that loss out.
    """

    _of: ClassVar[str] = "membership"
    quorum: bytes
    """The quorum it means; a node of another refuses for good."""
    max_ttl_ms: int
    """The longest time that a record of this quorum stands; a node that knows another refuses for good."""
    durability: Durability
    """What is known of this node."""
    fresh: bytes
    """The name of a loss, should this send be the first to find it; never used before."""
    waited_out: bytes | None
    """The loss whose abstention this client has waited out, or which it has seen to be over, before this attempt began.
    """
    birth: Birth
    """Whether this client found the quorum unborn."""
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
        """Which send of the attempt this is."""
        record_ttl_ms: int
        """How long the record stands unless renewed."""
        floor: int
        """The smallest token to mint."""
        expect: bytes | None
        """A foreign version that has been observed for its whole ttl and may be overwritten."""
        owner: str
        """Label for people."""
        data: bytes | None = None
        """Bytes for others to read."""
        member: Membership | None = None
        """The quorum that is asked, which the node checks before the lock itself, in the same atomic step; absent for a
        single store.
        """

    @dataclass(frozen=True, slots=True)
    class Renew:
        """Push the expiry out, if the record is still ours. Never shortens it, never creates a record."""

        _of: ClassVar[str] = "op.renew"
        nonce: bytes = field(repr=False)
        """The attempt that was granted."""
        seq: int
        """Which send of the attempt this is."""
        record_ttl_ms: int
        """How long the record stands from now on."""
        quorum: Durability | None = None
        """In a quorum, what is known of the node, which then tells a record that is gone (``conflict``) from a memory
        that is (``abstains``); absent for a single store.
        """

    @dataclass(frozen=True, slots=True)
    class Release:
        """Free the resource if the record is still ours; its token counter survives."""

        _of: ClassVar[str] = "op.release"
        nonce: bytes = field(repr=False)
        """The attempt whose record is to be freed."""
        quorum: Durability | None = None
        """In a quorum, what is known of the node, as in ``renew``; absent for a single store."""

    @dataclass(frozen=True, slots=True)
    class Raise:
        """Lift the node's counter to at least a token, if the record is still ours; answer the counter."""

        _of: ClassVar[str] = "op.raise"
        nonce: bytes = field(repr=False)
        """The attempt that must still own the record."""
        token: int
        """The least that the counter must show afterwards."""
        loss: bytes | None = None
        """The loss since which the node is in doubt; from then on it is trusted with this resource."""

    @dataclass(frozen=True, slots=True)
    class Read:
        """Show what is there."""

        _of: ClassVar[str] = "op.read"

    Case: TypeAlias = Acquire | Renew | Release | Raise | Read


@dataclass(frozen=True, slots=True)
class LockOp:
    """One operation on one resource, on behalf of one lock."""

    _of: ClassVar[str] = "lock-op"
    lock: int
    """For whom, so that a host can tell one caller's requests from another's."""
    resource: str
    """On what."""
    op: Op.Case
    """What to do."""

FaultKind: TypeAlias = Literal["timeout", "reset", "unreachable", "cancelled", "server", "busy", "protocol"]
"""Kinds of passing failures.

timeout: No reply in time.

reset: The connection broke after something was sent.

unreachable: No connection could be made.

cancelled: The caller went away while the request was in flight.

server: The store said that it failed.

busy: The store is busy or throttles.

protocol: The store's answer makes no sense.
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure that may pass by itself."""

    _of: ClassVar[str] = "fault"
    kind: FaultKind
    """What kind of failure."""
    detail: str | None = None
    """What the store or the operating system said, without secrets; more than 512 bytes are cut."""

DenialKind: TypeAlias = Literal["permission", "schema", "corrupt_record", "tokens_exhausted", "storage_full", "membership", "other"]
"""Kinds of lasting refusals.

permission: Not allowed to do this here.

schema: The table, schema or kind of value is not what this client can work with.

corrupt_record: The record was not written by an honest client: a ttl of years, a token above 2^53, bytes that make no
record.

tokens_exhausted: The counter has reached 2^53 - 1.

storage_full: No room left to write.

membership: The node belongs to another quorum, or has other settings than its clients.

other: Anything else that a retry does not mend.
"""


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """A writer that speaks this protocol."""

    _of: ClassVar[str] = "lease-holder"
    nonce: bytes = field(repr=False)
    """Its attempt."""
    seq: int | None = None
    """The send that wrote the record last, where the store keeps it."""


@dataclass(frozen=True, slots=True)
class Holding:
    """A record, as much of it as the store keeps."""

    _of: ClassVar[str] = "holding"
    holder: LeaseHolder | None
    """The client that wrote it; absent where another library did."""
    version: bytes
    """Names this state of the record."""
    released: bool
    """Freed by its holder: only its history is left."""
    counter: int | None = None
    """The node's token counter; of several nodes the token that a majority may have, absent where it is open which."""
    owner: str | None = None
    """The holder's label."""
    record_ttl_ms: int | None = None
    """The ttl written in the record; rounded up."""
    left_ms: int | None = None
    """Time until the store frees the record by itself, rounded up; absent where it does not, and observers must wait it
    out.
    """
    since_unix_ms: int | None = None
    """When the lease was granted, by the holder's or store's wall clock, in milliseconds since 1970."""
    data: bytes | None = None
    """The holder's bytes."""


class Applied:
    """The answer to an operation that was applied."""

    @dataclass(frozen=True, slots=True)
    class Acquired:
        """The record is ours. The counter is the token minted with this grant, or for a resend the one it already had.
        """

        _of: ClassVar[str] = "applied.acquired"
        counter: int
        """The node's token counter."""

    @dataclass(frozen=True, slots=True)
    class AcquiredInDoubt:
        """The record is ours, but this node of a quorum may have forgotten tokens: its counter has to be raised before
        it counts.
        """

        _of: ClassVar[str] = "applied.acquired-in-doubt"
        counter: int
        """The node's token counter."""
        stamp: bytes
        """The loss after which it is in doubt."""

    @dataclass(frozen=True, slots=True)
    class Renewed:
        """The expiry was pushed out."""

        _of: ClassVar[str] = "applied.renewed"

    @dataclass(frozen=True, slots=True)
    class Released:
        """The resource is free."""

        _of: ClassVar[str] = "applied.released"

    @dataclass(frozen=True, slots=True)
    class Raised:
        """The counter is at least what was asked."""

        _of: ClassVar[str] = "applied.raised"
        counter: int
        """The node's token counter."""

    @dataclass(frozen=True, slots=True)
    class Read:
        """What is there."""

        _of: ClassVar[str] = "applied.read"
        holding: Holding | None = None
        """The record, absent when the resource is free and shows no trace of the last holder."""

    Case: TypeAlias = Acquired | AcquiredInDoubt | Renewed | Released | Raised | Read


class Refusal:
    """Why an operation was not applied."""

    @dataclass(frozen=True, slots=True)
    class Conflict:
        """The record that stood in the way; for renew, release and raise also: no record of ours."""

        _of: ClassVar[str] = "refusal.conflict"
        holding: Holding | None = None
        """The record, absent when the resource is free and shows no trace of the last holder."""

    @dataclass(frozen=True, slots=True)
    class Throttled:
        """The store asks for patience."""

        _of: ClassVar[str] = "refusal.throttled"
        kind: FaultKind
        """What kind of failure."""
        detail: str | None = None
        """What the store or the operating system said, without secrets; more than 512 bytes are cut."""

    @dataclass(frozen=True, slots=True)
    class Unavailable:
        """The store cannot serve now, and did not begin to: connection refused, database busy, loading."""

        _of: ClassVar[str] = "refusal.unavailable"
        kind: FaultKind
        """What kind of failure."""
        detail: str | None = None
        """What the store or the operating system said, without secrets; more than 512 bytes are cut."""

    @dataclass(frozen=True, slots=True)
    class Abstains:
        """The node's memory of past grants is in doubt, so it does not vote yet."""

        _of: ClassVar[str] = "refusal.abstains"
        stamp: bytes | None = None
        """Names the loss, where the node was asked for its vote."""

    @dataclass(frozen=True, slots=True)
    class NeedsCredentials:
        """Credentials are missing or have expired; fresh ones may help."""

        _of: ClassVar[str] = "refusal.needs-credentials"
        kind: FaultKind
        """What kind of failure."""
        detail: str | None = None
        """What the store or the operating system said, without secrets; more than 512 bytes are cut."""

    @dataclass(frozen=True, slots=True)
    class Denied:
        """Trying again will not help."""

        _of: ClassVar[str] = "refusal.denied"
        kind: DenialKind
        """What kind of refusal."""
        detail: str
        """What the store said and what to look at, without secrets; more than 512 bytes are cut."""

    Case: TypeAlias = Conflict | Throttled | Unavailable | Abstains | NeedsCredentials | Denied


class Outcome:
    """How an operation ended. One that cannot be read, such as a nonce of 15 bytes or a token of 2^53, counts as
    unknown.
    """

    @dataclass(frozen=True, slots=True)
    class Applied:
        """It happened."""

        _of: ClassVar[str] = "outcome.applied"
        applied: Applied.Case
        """The answer."""

    @dataclass(frozen=True, slots=True)
    class NotApplied:
        """It certainly did not happen, and this send of it never will."""

        _of: ClassVar[str] = "outcome.not-applied"
        refusal: Refusal.Case
        """Why."""

    @dataclass(frozen=True, slots=True)
    class Unknown:
        """It may have happened, or may yet happen."""

        _of: ClassVar[str] = "outcome.unknown"
        kind: FaultKind
        """What kind of failure."""
        detail: str | None = None
        """What the store or the operating system said, without secrets; more than 512 bytes are cut."""

    Case: TypeAlias = Applied | NotApplied | Unknown


CLASSES: dict[str, type] = {
    "membership": Membership,
    "op.acquire": Op.Acquire,
    "op.renew": Op.Renew,
    "op.release": Op.Release,
    "op.raise": Op.Raise,
    "op.read": Op.Read,
    "lock-op": LockOp,
    "fault": Fault,
    "lease-holder": LeaseHolder,
    "holding": Holding,
    "applied.acquired": Applied.Acquired,
    "applied.acquired-in-doubt": Applied.AcquiredInDoubt,
    "applied.renewed": Applied.Renewed,
    "applied.released": Applied.Released,
    "applied.raised": Applied.Raised,
    "applied.read": Applied.Read,
    "refusal.conflict": Refusal.Conflict,
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
]
