"""Generated from wit/leasehold.wit by ``cargo xtask component --bless``. Do not edit.

Plain values: frozen, compared by what is in them, and made to be taken apart by ``match``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from leasehold.protocol._values.types import Seconds

Notify: TypeAlias = Literal["off", "on"]
"""The audience of releases in PostgreSQL.

off: Nobody.

on: Those who listen, such as clients of other languages. All commits that notify wait for one another.
"""

ObjectsService: TypeAlias = Literal["s3", "azure_blob", "gcs", "gcs_xml", "cosmos_db"]
"""A storage service, by its API.

s3: Amazon S3, R2, and others that honour ``If_Match``. Takes ``Credentials.Aws``.

azure_blob: Azure Blob Storage. Takes ``Credentials.AccountKey``, ``access_signature`` and ``token``.

gcs: Google Cloud Storage by its JSON API. Takes ``Credentials.Token``.

gcs_xml: Google Cloud Storage by its XML API. Takes an HMAC key as ``Credentials.Aws``, and ``token``.

cosmos_db: Azure Cosmos DB for NoSQL, in a container with the partition key ``/id``. Takes ``Credentials.AccountKey``
and ``token``. It cannot be a node of a quorum.
"""

Dialect: TypeAlias = Literal["upstash", "webdis"]
"""The format of a Redis over HTTP.

upstash: The REST interface of Upstash, or a compatible one.

webdis: Webdis.
"""

Access: TypeAlias = Literal["anonymous", "with_credentials"]
"""The access to a server over HTTP.

anonymous: Requests carry no credentials.

with_credentials: Requests wait for ``Client.set_credentials``.
"""

Plaintext: TypeAlias = Literal["refused", "allowed"]
"""The permission to send secrets unencrypted.

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
    """Its value."""


class Store:
    """The format of requests to a node."""

    @dataclass(frozen=True, slots=True)
    class Operations:
        """None: the host gets whole operations, in ``Output.Transmit``, and performs them itself."""

        _of: ClassVar[str] = "store.operations"

    @dataclass(frozen=True, slots=True)
    class Redis:
        """Redis 5 or newer, or Valkey: commands for a connection or a library of the host."""

        _of: ClassVar[str] = "store.redis"
        retention: Seconds | None = None
        """How long the token counter of an unused lock is kept: 0.001 to 3,153,600,000 (100 years). Default 604,800 (7
        days). In seconds.
        """
        replicas: int | None = None
        """A grant counts only when this many replicas have it. Each request then contains ``WAIT`` and needs its own
        connection. Default: no wait for replicas.
        """

    @dataclass(frozen=True, slots=True)
    class RedisHttp:
        """A Redis behind HTTP."""

        _of: ClassVar[str] = "store.redis-http"
        dialect: Dialect
        """The dialect."""
        url: str = field(repr=False)
        """``https://host``, ``http://host:port``, either with a base path. No user, password or token, no ``?`` or
        ``#``.
        """
        access: Access
        """True if the server requires a login."""
        retention: Seconds | None = None
        """As in ``redis_store``. In seconds."""
        plaintext: Plaintext | None = None
        """Permission to send credentials over ``http:`` to other machines. Default ``refused``."""

    @dataclass(frozen=True, slots=True)
    class Dynamodb:
        """One table of DynamoDB."""

        _of: ClassVar[str] = "store.dynamodb"
        table: str
        """The table, by name or ARN."""
        region: str
        """The Region in the signatures of requests."""
        url: str
        """The endpoint: ``https://host`` or ``http://host:port``, without a path."""
        key: str | None = None
        """The attribute of the partition key. Default ``key``."""
        sort_key: SortKey | None = None
        """The sort key of a table that has one."""
        expires: str | None = None
        """An attribute for DynamoDB's time to live, for the time when the row is no longer needed. Default: none is
        written.
        """
        plaintext: Plaintext | None = None
        """Permission to send requests over ``http:`` to other machines. Default ``refused``."""

    @dataclass(frozen=True, slots=True)
    class Etcd:
        """One etcd."""

        _of: ClassVar[str] = "store.etcd"
        url: str
        """The endpoint: ``https://host`` or ``http://host:port``, without a path."""
        prefix: str | None
        """The prefix of the keys. Default ``leasehold/``."""
        access: Access
        """True if etcd has users. The host gets a token by ``POST /v3/auth/authenticate``."""
        plaintext: Plaintext | None = None
        """Permission to send the token over ``http:`` to other machines. Default ``refused``."""

    @dataclass(frozen=True, slots=True)
    class Objects:
        """Objects in a bucket or container of a cloud."""

        _of: ClassVar[str] = "store.objects"
        service: ObjectsService
        """The service and its API."""
        url: str
        """The endpoint: ``https://host`` or ``http://host:port``, without a path."""
        place: str
        """The bucket; empty for S3 if the host names it. The container of Azure; ``ACCOUNT/CONTAINER`` if the host does
        not name the account. ``DATABASE/CONTAINER`` of Cosmos DB.
        """
        prefix: str | None
        """The prefix of the objects' names, with a slash at its end. Default ``leasehold/``."""
        region: str | None
        """The region in the signatures of requests to S3, ``auto`` for R2. Absent for other services."""
        access: Access
        """True if the service requires credentials; emulators may not."""
        plaintext: Plaintext | None = None
        """Permission to send credentials over ``http:`` to other machines. Default ``refused``."""

    @dataclass(frozen=True, slots=True)
    class Postgres:
        """One table of PostgreSQL: statements for a driver of the host."""

        _of: ClassVar[str] = "store.postgres"
        schema: str | None = None
        """The schema of the table ``leasehold``. Default ``public``."""
        notify: Notify | None = None
        """The waiters that a release notifies. Default ``off``."""

    Case: TypeAlias = Operations | Redis | RedisHttp | Dynamodb | Etcd | Objects | Postgres


class Credentials:
    """Credentials. Of the client's outputs, only headers of requests contain secrets, and the URLs of requests with an
    access signature. The client overwrites its copies when it drops them: when they are replaced and no pending request
    uses them, and with the client. The host must erase its own copies and the requests that it got.
    """

    @dataclass(frozen=True, slots=True)
    class Aws:
        """For ``Store.Dynamodb``; for ``Store.Objects`` on S3 or by Google's XML API."""

        _of: ClassVar[str] = "credentials.aws"
        access_key_id: str
        """The id of the key; not a secret."""
        secret_access_key: str = field(repr=False)
        """The secret."""
        session_token: str | None = field(default=None, repr=False)
        """Comes with keys that expire."""
        expires_unix_ms: int | None = None
        """When they expire, in milliseconds since 1970. New ones are requested five minutes before, and they are used
        until ten seconds before, but for at least five seconds: if they seem to have expired on arrival, the host's
        clock is probably wrong. Absent if they do not expire.
        """

    @dataclass(frozen=True, slots=True)
    class Token:
        """For ``Store.RedisHttp``, usual for Upstash; for ``Store.Etcd`` and ``Store.Objects``."""

        _of: ClassVar[str] = "credentials.token"
        token: str = field(repr=False)
        """The secret."""
        expires_unix_ms: int | None = None
        """When it expires, as in ``aws_credentials``. Absent if that is not known."""

    @dataclass(frozen=True, slots=True)
    class Password:
        """For ``Store.RedisHttp``; usual for Webdis."""

        _of: ClassVar[str] = "credentials.password"
        user: str
        """The user, without a colon; may be empty."""
        password: str = field(repr=False)
        """The secret."""

    @dataclass(frozen=True, slots=True)
    class AccountKey:
        """For ``Store.Objects`` on Azure Blob Storage and Cosmos DB."""

        _of: ClassVar[str] = "credentials.account-key"
        key: str
        """The secret, in base64."""

    @dataclass(frozen=True, slots=True)
    class AccessSignature:
        """For ``Store.Objects`` on Azure Blob Storage."""

        _of: ClassVar[str] = "credentials.access-signature"
        query: str
        """The secret, such as ``sv=...&sig=...``."""
        expires_unix_ms: int | None = None
        """When it expires, as in ``aws_credentials``. Absent if that is not known."""

    Case: TypeAlias = Aws | Token | Password | AccountKey | AccessSignature


class SqlValue:
    """A parameter of a statement, or a column of a row, for PostgreSQL.

    Statements say the type of each parameter themselves. Whatever else a column has is given as ``null``.
    """

    @dataclass(frozen=True, slots=True)
    class Null:
        """Nothing."""

        _of: ClassVar[str] = "sql-value.null"

    @dataclass(frozen=True, slots=True)
    class Text:
        """A ``text``, or an array in PostgreSQL's own notation."""

        _of: ClassVar[str] = "sql-value.text"
        value: str
        """The text."""

    @dataclass(frozen=True, slots=True)
    class Bytes:
        """A ``bytea``."""

        _of: ClassVar[str] = "sql-value.bytes"
        value: bytes
        """The bytes."""

    @dataclass(frozen=True, slots=True)
    class Number:
        """A ``bigint``. Give a negative one as 0: it is a length of time that has passed."""

        _of: ClassVar[str] = "sql-value.number"
        value: int
        """The number."""

    @dataclass(frozen=True, slots=True)
    class Truth:
        """A ``boolean``."""

        _of: ClassVar[str] = "sql-value.truth"
        value: bool
        """True or false."""

    Case: TypeAlias = Null | Text | Bytes | Number | Truth


CLASSES: dict[str, type] = {
    "sort-key": SortKey,
    "store.operations": Store.Operations,
    "store.redis": Store.Redis,
    "store.redis-http": Store.RedisHttp,
    "store.dynamodb": Store.Dynamodb,
    "store.etcd": Store.Etcd,
    "store.objects": Store.Objects,
    "store.postgres": Store.Postgres,
    "credentials.aws": Credentials.Aws,
    "credentials.token": Credentials.Token,
    "credentials.password": Credentials.Password,
    "credentials.account-key": Credentials.AccountKey,
    "credentials.access-signature": Credentials.AccessSignature,
    "sql-value.null": SqlValue.Null,
    "sql-value.text": SqlValue.Text,
    "sql-value.bytes": SqlValue.Bytes,
    "sql-value.number": SqlValue.Number,
    "sql-value.truth": SqlValue.Truth,
}

__all__ = [
    "Access",
    "Credentials",
    "Dialect",
    "Notify",
    "ObjectsService",
    "Plaintext",
    "SortKey",
    "SqlValue",
    "Store",
]
