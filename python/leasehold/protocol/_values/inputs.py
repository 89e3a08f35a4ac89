"""Generated from wit/leasehold.wit by ``cargo xtask component --bless``. Do not edit.

Plain values: frozen, compared by what is in them, and made to be taken apart by ``match``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from leasehold.protocol._values.ops import FaultKind, Outcome
from leasehold.protocol._values.stores import Credentials, SqlValue
from leasehold.protocol._values.types import LockOptions, RunResult


@dataclass(frozen=True, slots=True)
class Row:
    """One row."""

    _of: ClassVar[str] = "row"
    columns: Sequence[SqlValue.Case]
    """Its columns, in order."""

RefusalTime: TypeAlias = Literal["at_login", "in_session", "at_the_end"]
"""When a server has refused.

at_login: When the host connected: the statement was not sent.

in_session: In answer to the statement, whose session goes on: the severity is ``ERROR``.

at_the_end: With the end of the session, or the driver does not show the severity.
"""


class Response:
    """The result of a request. An answer of an unexpected kind counts as unknown."""

    @dataclass(frozen=True, slots=True)
    class Outcomes:
        """The node answered, to ``Output.Transmit``."""

        _of: ClassVar[str] = "response.outcomes"
        outcomes: Sequence[Outcome.Case]
        """One for each operation of the request, in order; missing ones count as unknown. Of a read, one for each node.
        """

    @dataclass(frozen=True, slots=True)
    class HttpResponse:
        """The server answered, to ``Output.HttpRequest``, with any status."""

        _of: ClassVar[str] = "response.http-response"
        status: int
        """The status."""
        headers: Sequence[tuple[str, str]] = field(repr=False)
        """All of them, or at least ``content-type``, ``date`` and ``location``."""
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
    class Rows:
        """The server answered, to ``Output.Statement``."""

        _of: ClassVar[str] = "response.rows"
        rows: Sequence[Row] = field(repr=False)
        """All of them."""

    @dataclass(frozen=True, slots=True)
    class ServerError:
        """The server refused, to ``Output.Statement``, or did not let the host in."""

        _of: ClassVar[str] = "response.server-error"
        code: str
        """The SQLSTATE."""
        message: str
        """Its message."""
        when: RefusalTime
        """When the server said so."""

    @dataclass(frozen=True, slots=True)
    class NotSent:
        """Nothing left this machine: none of the operations was applied."""

        _of: ClassVar[str] = "response.not-sent"
        kind: FaultKind
        """The kind of failure."""
        detail: str | None = None
        """The message of the store or the operating system, without secrets; cut after 512 bytes."""

    @dataclass(frozen=True, slots=True)
    class Unknown:
        """Something may have left: every operation may have been applied."""

        _of: ClassVar[str] = "response.unknown"
        kind: FaultKind
        """The kind of failure."""
        detail: str | None = None
        """The message of the store or the operating system, without secrets; cut after 512 bytes."""

    Case: TypeAlias = Outcomes | HttpResponse | RedisReplies | Rows | ServerError | NotSent | Unknown


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
    class Finish:
        """As ``Client.finish``."""

        _of: ClassVar[str] = "input.finish"
        lock: int
        """The lock."""
        run_result: RunResult | None = None
        """The result of the run, for those who come later."""

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
        """Its result."""

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
        """The node."""
        resource: str
        """The resource."""

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
        """The node."""
        credentials: Credentials.Case
        """The credentials for its requests from now on."""

    @dataclass(frozen=True, slots=True)
    class NodeVotes:
        """As ``Client.node_votes``."""

        _of: ClassVar[str] = "input.node-votes"
        node: int
        """Which node."""
        loss: bytes | None = None
        """Its last loss of data, after which its counters are in doubt; absent if there was none."""

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
        | Finish
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


CLASSES: dict[str, type] = {
    "row": Row,
    "response.outcomes": Response.Outcomes,
    "response.http-response": Response.HttpResponse,
    "response.redis-replies": Response.RedisReplies,
    "response.rows": Response.Rows,
    "response.server-error": Response.ServerError,
    "response.not-sent": Response.NotSent,
    "response.unknown": Response.Unknown,
    "input.acquire": Input.Acquire,
    "input.release": Input.Release,
    "input.finish": Input.Finish,
    "input.declare-lost": Input.DeclareLost,
    "input.response": Input.Response,
    "input.notified": Input.Notified,
    "input.subscribed": Input.Subscribed,
    "input.credentials-renewed": Input.CredentialsRenewed,
    "input.set-credentials": Input.SetCredentials,
    "input.node-votes": Input.NodeVotes,
    "input.reseed": Input.Reseed,
    "input.close": Input.Close,
}

__all__ = [
    "Input",
    "RefusalTime",
    "Response",
    "Row",
]
