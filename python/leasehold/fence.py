"""Guards for the protected resource: they reject writers with older tokens.

Any amount of time can pass between a holder's last check and its write. Only the resource itself can reject a late
write, by comparing tokens atomically with the write. **Claim** every item before the first read of it; **check**
with every write. One mark belongs to one lock resource, since tokens of different resources cannot be compared.

=================================  ==========================================================================
items of your own process          :class:`Guards`, or :class:`Guard` for a single one
rows in SQLite                     :class:`SqliteGuard`, :class:`SqliteRowGuard`, for connections of ``sqlite3``
rows in PostgreSQL                 :class:`PostgresGuard`, :class:`PostgresRowGuard`: SQL for your driver
keys in Redis                      :class:`RedisGuard`: Lua for your client library
items in DynamoDB                  :class:`DynamodbGuard`: parts of expressions for your client library
items in Cosmos DB                 :class:`CosmosGuard`: parts of patches for your client library
objects in cloud storage           :class:`ObjectGuard`: bodies for conditional writes with your client library
=================================  ==========================================================================

In a database, one kind of guard keeps its marks in a separate table, where they survive the deletion of your rows. The
other kind, a row guard, uses a column of your table.
"""

from __future__ import annotations

from leasehold import _hints, _native
from leasehold._fence_sqlite import SqliteGuard, SqliteRowGuard
from leasehold._functions import refuse_result
from leasehold._native import CosmosGuard, DynamodbGuard, PostgresGuard, PostgresRowGuard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    R = TypeVar("R")

__all__ = [
    "CosmosGuard",
    "DynamodbGuard",
    "Guard",
    "Guards",
    "ObjectGuard",
    "PostgresGuard",
    "PostgresRowGuard",
    "RedisGuard",
    "SqliteGuard",
    "SqliteRowGuard",
]


_LATER = "a coroutine would write after the guard has ended: run it to its end in a plain function"


class Guards(_native.Guards):
    """The marks of many items in one process, for any number of threads: ``Guards(most)``, where ``most`` is the maximum
    number of items.
    """

    def write(self, item: str, token: int, write: Callable[[], R], *, number: int | None = None) -> R:
        """Calls ``write()`` if ``token`` may write, and returns its result. Nobody can claim the item in between. ``write``
        must not use the guard of the same item, which would wait for itself. ``number`` starts at 1 and grows with each
        write; with it, delayed writes of the same lease are rejected as well. Raises StaleTokenError, and ConfigError for an
        item that was never claimed; then ``write`` has not been called. Raises TypeError if ``write`` returns work that has
        not run yet, such as a coroutine: it would write when others may have claimed the item.
        """
        with self._enter(item, token, number=number):
            written = write()
            refuse_result(written, _LATER)
            return written


class Guard:
    """The mark of one item of this process, for any number of threads."""

    def __init__(self) -> None:
        self._guards = Guards(1)

    def claim(self, token: int) -> None:
        """From now on only ``token`` and higher ones are accepted. Call it with each new lease, before
        the first read. Raises StaleTokenError when a later holder has claimed.
        """
        self._guards.claim("", token)

    def write(self, token: int, write: Callable[[], R], *, number: int | None = None) -> R:
        """Calls ``write()`` if ``token`` may write, and returns its result; see :meth:`Guards.write`."""
        return self._guards.write("", token, write, number=number)

    def check(self, token: int, *, number: int | None = None) -> None:
        """Raises StaleTokenError unless a write with ``token`` would be accepted now; see :meth:`Guards.check`."""
        self._guards.check("", token, number=number)

    @property
    def high_water(self) -> int | None:
        """The highest token that has claimed; None if none has."""
        return self._guards.high_water("")


class RedisGuard:
    """Lua scripts that keep the mark of a key beside it, and compare tokens in the script that writes. Each script returns one
    integer, which :meth:`outcome` interprets.
    """

    CHECK = _native.redis_check()
    """A function ``leasehold_check(mark_key, token)`` to put in front of your own script: it returns whether the
    write is allowed, and the value that the script must return otherwise."""
    CLAIM_SCRIPT = _native.redis_claim_script()
    """KEYS: mark. ARGV: token. Before the first read, with each new lease."""
    CHECK_SCRIPT = _native.redis_check_script()
    """KEYS: mark. ARGV: token. For stopping early; it protects nothing."""
    CHECK_AND_SET_SCRIPT = _native.redis_check_and_set_script()
    """KEYS: mark, key. ARGV: token, value."""

    @staticmethod
    def mark_key(key: str) -> str:
        """The key of the mark that guards ``key``, in the same hash slot. Raises ConfigError if there can be none."""
        return _native.redis_mark_key(key)

    @staticmethod
    def outcome(item: str, token: int, reply: int) -> None:
        """Interprets the answer of a script. Raises StaleTokenError when a later holder has claimed the item, ConfigError
        for an item that was never claimed; then the script has written nothing.
        """
        _native.redis_outcome(item, token, reply)


class ObjectGuard:
    """Keeps the mark of an object in front of its data, as ``34 data``. It makes the bodies that you write with your own
    client library, on the condition that nobody has written since you read the object (``If-Match``, ``ifGenerationMatch``).
    When somebody has, read again and make the body again.
    """

    @staticmethod
    def claim(item: str, token: int, seen: bytes | None) -> bytes:
        """The body of a claim, with the data unchanged: with each new lease, before you use the data. ``seen`` is the object
        as you read it; None if there is none. Raises StaleTokenError when a later holder has claimed it, and
        StoreRefusedError for an object that no guard has written.
        """
        return _native.object_claim(item, token, seen)

    @staticmethod
    def write(item: str, token: int, seen: bytes | None, data: bytes) -> bytes:
        """The body of a write. Raises as :meth:`claim` does, and StaleTokenError if there is no object."""
        return _native.object_write(item, token, seen, data)

    @staticmethod
    def data(body: bytes) -> bytes | None:
        """The data of an object; None for one that no guard has written."""
        return _native.object_data(body)


_hints.resolve(globals())
