"""Generated from wit/leasehold.wit by ``cargo xtask component --bless``. Do not edit.

Plain values: frozen, compared by what is in them, and made to be taken apart by ``match``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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
    """The node's token counter."""
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

Dialect: TypeAlias = Literal["upstash", "webdis"]
"""How a Redis behind HTTP is spoken to.

upstash: The REST interface of Upstash, and of what behaves like it.

webdis: Webdis.
"""

Access: TypeAlias = Literal["anonymous", "with_credentials"]
"""Whether a server behind HTTP wants to know who asks.

anonymous: Requests carry no credentials.

with_credentials: Requests wait for ``Client.set_credentials``.
"""

Plaintext: TypeAlias = Literal["refused", "allowed"]
"""Whether secrets may be sent where others on the way can read them.

refused: Only to this machine.

allowed: The network is trusted.
"""


@dataclass(frozen=True, slots=True)
class SortKey:
    """The second half of a primary key, the same for all locks."""

    _of: ClassVar[str] = "sort-key"
    name: str
    """The attribute."""
    value: str
    """What stands in it."""


class Store:
    """How requests to a node are written."""

    @dataclass(frozen=True, slots=True)
    class Operations:
        """Not at all: the host is given whole operations, in ``Output.Transmit``, and performs them itself."""

        _of: ClassVar[str] = "store.operations"

    @dataclass(frozen=True, slots=True)
    class Redis:
        """Redis from version 5 on, or Valkey: commands for a connection or a library of the host's."""

        _of: ClassVar[str] = "store.redis"
        retention: Seconds | None = None
        """How long the token counter of an unused lock is kept: 0.001 to 3,153,600,000 (100 years). Default 604,800 (7
        days). In seconds.
        """
        replicas: int | None = None
        """Counts a grant only when so many replicas have it. Each request then has ``WAIT`` in it and needs a
        connection that it does not share. Default: replicas are not asked.
        """

    @dataclass(frozen=True, slots=True)
    class RedisHttp:
        """A Redis behind HTTP."""

        _of: ClassVar[str] = "store.redis-http"
        dialect: Dialect
        """Which of the two."""
        url: str = field(repr=False)
        """``https://host``, ``http://host:port``, either with a path that the server's own stands below. No user,
        password or token, no ``?`` or ``#``.
        """
        access: Access
        """Whether the server wants to know who asks."""
        retention: Seconds | None = None
        """As in ``redis_store``. In seconds."""
        plaintext: Plaintext | None = None
        """Whether credentials may be sent over ``http:`` beyond this machine. Default ``refused``."""

    @dataclass(frozen=True, slots=True)
    class Dynamodb:
        """One table of DynamoDB."""

        _of: ClassVar[str] = "store.dynamodb"
        table: str
        """The table, by name or ARN."""
        region: str
        """The Region that requests are signed for."""
        url: str
        """The endpoint: ``https://host`` or ``http://host:port``, without a path."""
        key: str | None = None
        """The attribute of the partition key. Default ``key``."""
        sort_key: SortKey | None = None
        """The sort key of a table that has one."""
        expires: str | None = None
        """An attribute for DynamoDB's time to live, in which the row's end of use stands. Default: none is written."""
        plaintext: Plaintext | None = None
        """Whether requests may be sent over ``http:`` beyond this machine. Default ``refused``."""

    Case: TypeAlias = Operations | Redis | RedisHttp | Dynamodb


class Credentials:
    """Who asks. Secrets stand in nothing that the client says but the headers of requests. The client overwrites what
    it keeps of them when it drops it: when they are replaced and no request that carries them is under way, and with
    the client. Whatever made them, and requests that have been handed out, are the host's to forget.
    """

    @dataclass(frozen=True, slots=True)
    class Aws:
        """For ``Store.Dynamodb``."""

        _of: ClassVar[str] = "credentials.aws"
        access_key_id: str
        """Names the key, and is no secret."""
        secret_access_key: str = field(repr=False)
        """The secret."""
        session_token: str | None = field(default=None, repr=False)
        """Comes with keys that expire."""
        expires_unix_ms: int | None = None
        """When they expire, in milliseconds since 1970. Others are asked for five minutes before, and they are used
        until ten seconds before, but for five seconds in any case: where they seem to have expired when they come, the
        host's clock is more likely to be wrong. Absent where they do not expire.
        """

    @dataclass(frozen=True, slots=True)
    class Token:
        """For ``Store.RedisHttp``; usual for Upstash."""

        _of: ClassVar[str] = "credentials.token"
        token: str = field(repr=False)
        """The secret."""

    @dataclass(frozen=True, slots=True)
    class Password:
        """For ``Store.RedisHttp``; usual for Webdis."""

        _of: ClassVar[str] = "credentials.password"
        user: str
        """The user, without a colon; may be empty."""
        password: str = field(repr=False)
        """The secret."""

    Case: TypeAlias = Aws | Token | Password


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
        """The store has confirmed it; otherwise the record has run out by itself by now."""

    Case: TypeAlias = Acquired | Contended | Failed | Renewed | RenewDelayed | Shortened | Expiring | Lost | Released


class Response:
    """What became of a request. An answer of another kind than was asked for counts as unknown."""

    @dataclass(frozen=True, slots=True)
    class Outcomes:
        """The node answered, to ``Output.Transmit``."""

        _of: ClassVar[str] = "response.outcomes"
        outcomes: Sequence[Outcome.Case]
        """One for each operation of the request, in order; missing ones count as unknown."""

    @dataclass(frozen=True, slots=True)
    class HttpResponse:
        """The server answered, to ``Output.HttpRequest``, whatever its status."""

        _of: ClassVar[str] = "response.http-response"
        status: int
        """The status."""
        headers: Sequence[tuple[str, str]] = field(repr=False)
        """All of them, or at least ``content_type``, ``date`` and ``location``."""
        body: bytes = field(repr=False)
        """As it was sent, decompressed. No more than 1,048,577 bytes of it need be read: 1,048,576 is the longest that
        is understood.
        """

    @dataclass(frozen=True, slots=True)
    class RedisReplies:
        """The server answered, to ``Output.RedisCommands``, errors included."""

        _of: ClassVar[str] = "response.redis-replies"
        replies: bytes = field(repr=False)
        """One reply to each command, in order, in the format of the connection (RESP 2 or 3). Another number of them,
        or what is no RESP, counts as unknown.
        """

    @dataclass(frozen=True, slots=True)
    class NotSent:
        """Nothing left this machine: none of the operations was applied."""

        _of: ClassVar[str] = "response.not-sent"
        kind: FaultKind
        """What kind of failure."""
        detail: str | None = None
        """What the store or the operating system said, without secrets; more than 512 bytes are cut."""

    @dataclass(frozen=True, slots=True)
    class Unknown:
        """Something may have left: every operation may have been applied."""

        _of: ClassVar[str] = "response.unknown"
        kind: FaultKind
        """What kind of failure."""
        detail: str | None = None
        """What the store or the operating system said, without secrets; more than 512 bytes are cut."""

    Case: TypeAlias = Outcomes | HttpResponse | RedisReplies | NotSent | Unknown


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


class Input:
    """The commands of ``client`` as data, for ``step``."""

    @dataclass(frozen=True, slots=True)
    class Acquire:
        """As ``Client.acquire``."""

        _of: ClassVar[str] = "input.acquire"
        lock: int
        """Chosen by the host."""
        resource: str
        """What to lock."""
        options: LockOptions
        """How."""

    @dataclass(frozen=True, slots=True)
    class Release:
        """As ``Client.release``."""

        _of: ClassVar[str] = "input.release"
        lock: int
        """Which."""

    @dataclass(frozen=True, slots=True)
    class DeclareLost:
        """As ``Client.declare_lost``."""

        _of: ClassVar[str] = "input.declare-lost"
        lock: int
        """Which."""

    @dataclass(frozen=True, slots=True)
    class Response:
        """As ``Client.handle_response``."""

        _of: ClassVar[str] = "input.response"
        id: int
        """The request."""
        response: Response.Case
        """What became of it."""

    @dataclass(frozen=True, slots=True)
    class Notified:
        """As ``Client.notified``."""

        _of: ClassVar[str] = "input.notified"
        resource: str
        """Which."""

    @dataclass(frozen=True, slots=True)
    class Subscribed:
        """As ``Client.subscribed``."""

        _of: ClassVar[str] = "input.subscribed"
        node: int
        """Where."""
        resource: str
        """For what."""

    @dataclass(frozen=True, slots=True)
    class CredentialsRenewed:
        """As ``Client.credentials_renewed``."""

        _of: ClassVar[str] = "input.credentials-renewed"
        node: int
        """Which."""

    @dataclass(frozen=True, slots=True)
    class SetCredentials:
        """As ``Client.set_credentials``."""

        _of: ClassVar[str] = "input.set-credentials"
        node: int
        """Whose."""
        credentials: Credentials.Case
        """What its requests carry from now on."""

    @dataclass(frozen=True, slots=True)
    class NodeVotes:
        """As ``Client.node_votes``."""

        _of: ClassVar[str] = "input.node-votes"
        node: int
        """Which node."""
        loss: bytes | None = None
        """The loss of data since which its counters are in doubt; absent where it had none."""

    @dataclass(frozen=True, slots=True)
    class Reseed:
        """As ``Client.reseed``."""

        _of: ClassVar[str] = "input.reseed"
        seed: bytes = field(repr=False)
        """The new seed."""

    @dataclass(frozen=True, slots=True)
    class Close:
        """As ``Client.close``."""

        _of: ClassVar[str] = "input.close"

    Case: TypeAlias = (
        Acquire
        | Release
        | DeclareLost
        | Response
        | Notified
        | Subscribed
        | CredentialsRenewed
        | SetCredentials
        | NodeVotes
        | Reseed
        | Close
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


class Rejected:
    """Why a claim or a write was refused."""

    @dataclass(frozen=True, slots=True)
    class Stale:
        """A later holder has claimed the item."""

        _of: ClassVar[str] = "rejected.stale"
        token: int
        """The token that was presented."""
        high_water: int
        """The highest token the item has seen."""

    @dataclass(frozen=True, slots=True)
    class OutOfOrder:
        """A write of the same lease with a higher number has already been accepted."""

        _of: ClassVar[str] = "rejected.out-of-order"
        write: int
        """The number that was presented."""
        last: int
        """The highest number accepted."""

    @dataclass(frozen=True, slots=True)
    class Unclaimed:
        """Nobody has claimed the item; a holder must claim before it writes."""

        _of: ClassVar[str] = "rejected.unclaimed"

    @dataclass(frozen=True, slots=True)
    class InvalidToken:
        """The number is no token."""

        _of: ClassVar[str] = "rejected.invalid-token"
        token: int
        """The number that was presented."""
        max: int
        """The largest token, 2^53 - 1."""

    Case: TypeAlias = Stale | OutOfOrder | Unclaimed | InvalidToken


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
    "sort-key": SortKey,
    "store.operations": Store.Operations,
    "store.redis": Store.Redis,
    "store.redis-http": Store.RedisHttp,
    "store.dynamodb": Store.Dynamodb,
    "credentials.aws": Credentials.Aws,
    "credentials.token": Credentials.Token,
    "credentials.password": Credentials.Password,
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
    "response.outcomes": Response.Outcomes,
    "response.http-response": Response.HttpResponse,
    "response.redis-replies": Response.RedisReplies,
    "response.not-sent": Response.NotSent,
    "response.unknown": Response.Unknown,
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
    "input.acquire": Input.Acquire,
    "input.release": Input.Release,
    "input.declare-lost": Input.DeclareLost,
    "input.response": Input.Response,
    "input.notified": Input.Notified,
    "input.subscribed": Input.Subscribed,
    "input.credentials-renewed": Input.CredentialsRenewed,
    "input.set-credentials": Input.SetCredentials,
    "input.node-votes": Input.NodeVotes,
    "input.reseed": Input.Reseed,
    "input.close": Input.Close,
    "stepped": Stepped,
    "stats": Stats,
    "rejected.stale": Rejected.Stale,
    "rejected.out-of-order": Rejected.OutOfOrder,
    "rejected.unclaimed": Rejected.Unclaimed,
    "rejected.invalid-token": Rejected.InvalidToken,
}

__all__ = [
    "Access",
    "Applied",
    "Birth",
    "CommandError",
    "Config",
    "Credentials",
    "DenialKind",
    "Dialect",
    "Durability",
    "Event",
    "Failure",
    "Fault",
    "FaultKind",
    "Holding",
    "Input",
    "LeaseHolder",
    "Limits",
    "LockOp",
    "LockOptions",
    "LostReason",
    "Membership",
    "NodeConfig",
    "Now",
    "Op",
    "Outcome",
    "Output",
    "Plaintext",
    "Poll",
    "Quorum",
    "Refusal",
    "Rejected",
    "Renewal",
    "Response",
    "SettingError",
    "SortKey",
    "Stats",
    "Stepped",
    "Store",
    "Wait",
]
