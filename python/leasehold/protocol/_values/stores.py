"""Generated from wit/leasehold.wit by ``cargo xtask component --bless``. Do not edit.

Plain values: frozen, compared by what is in them, and made to be taken apart by ``match``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from leasehold.protocol._values.types import Seconds

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


CLASSES: dict[str, type] = {
    "sort-key": SortKey,
    "store.operations": Store.Operations,
    "store.redis": Store.Redis,
    "store.redis-http": Store.RedisHttp,
    "store.dynamodb": Store.Dynamodb,
    "credentials.aws": Credentials.Aws,
    "credentials.token": Credentials.Token,
    "credentials.password": Credentials.Password,
}

__all__ = [
    "Access",
    "Credentials",
    "Dialect",
    "Plaintext",
    "SortKey",
    "Store",
]
