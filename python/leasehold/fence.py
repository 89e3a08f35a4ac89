"""Guards for the protected resource: refuse whoever holds an older token.

Between a holder's last check and its write any time can pass. Only the resource itself can refuse a write that comes too
late, by comparing tokens in one atomic step with the write. **Claim** every item before the first read of it; **check**
with every write. One mark belongs to one lock resource, since tokens of different resources cannot be compared.

=================================  ==========================================================================
items of your own process          :class:`Guards`, or :class:`Guard` for a single one
rows in SQLite                     :class:`SqliteGuard`, :class:`SqliteRowGuard`, for connections of ``sqlite3``
rows in PostgreSQL                 :class:`PostgresGuard`, :class:`PostgresRowGuard`: SQL for the driver that you have
keys in Redis                      :class:`RedisGuard`: Lua for the client library that you have
items in DynamoDB                  :class:`DynamodbGuard`: pieces of expressions for the client library that you have
=================================  ==========================================================================

In a database the one kind keeps its marks in a table of its own, where they survive whatever happens to your rows, and the
other uses a column of your table.
"""

from __future__ import annotations

from leasehold import _native
from leasehold._fence_sqlite import SqliteGuard, SqliteRowGuard
from leasehold._functions import refuse_result
from leasehold._native import DynamodbGuard, PostgresGuard, PostgresRowGuard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    R = TypeVar("R")

__all__ = [
    "DynamodbGuard",
    "Guard",
    "Guards",
    "PostgresGuard",
    "PostgresRowGuard",
    "RedisGuard",
    "SqliteGuard",
    "SqliteRowGuard",
]


_LATER = "a coroutine would write after the guard is left: run it to its end in a plain function"


class Guards(_native.Guards):
    """The marks of many items in one process, for any number of threads: ``Guards(most)``, where ``most`` bounds how many
    items there may be.
    """

    def write(self, item: str, token: int, write: Callable[[], R], *, number: int | None = None) -> R:
        """Calls ``write()`` if ``token`` may, and answers what it answers: nobody can claim the item in between. ``write``
        must not come back for the same item, which would wait for itself. ``number`` starts at 1, grows with each write,
        and refuses delayed writes of the same lease as well. Raises StaleTokenError, and ConfigError for an item that was
        never claimed; then ``write`` has not been called. Raises TypeError for what has yet to run when ``write`` returns,
        such as a coroutine, which would write when others may have claimed the item.
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
        """Makes ``token`` the only one that is accepted from now on, apart from higher ones: with each new lease, before
        the first read. Raises StaleTokenError when a later holder has claimed.
        """
        self._guards.claim("", token)

    def write(self, token: int, write: Callable[[], R], *, number: int | None = None) -> R:
        """Calls ``write()`` if ``token`` may, and answers what it answers; see :meth:`Guards.write`."""
        return self._guards.write("", token, write, number=number)

    def check(self, token: int, *, number: int | None = None) -> None:
        """Raises StaleTokenError unless a write with ``token`` would be let through now; see :meth:`Guards.check`."""
        self._guards.check("", token, number=number)

    @property
    def high_water(self) -> int | None:
        """The highest token that has claimed; None where none has."""
        return self._guards.high_water("")


class RedisGuard:
    """Lua that keeps the mark of a key beside it, and compares in the script that writes. Each script answers one
    integer, which :meth:`outcome` explains.
    """

    CHECK = _native.redis_check()
    """A function ``leasehold_check(mark_key, token)`` to put in front of a script of your own: it answers whether the
    write may go on, and what the script has to return."""
    CLAIM_SCRIPT = _native.redis_claim_script()
    """KEYS: mark. ARGV: token. Before the first read, with each new lease."""
    CHECK_SCRIPT = _native.redis_check_script()
    """KEYS: mark. ARGV: token. For giving up early; it protects nothing."""
    CHECK_AND_SET_SCRIPT = _native.redis_check_and_set_script()
    """KEYS: mark, key. ARGV: token, value."""

    @staticmethod
    def mark_key(key: str) -> str:
        """The key of the mark that guards ``key``, in the same hash slot. Raises ConfigError where there is none."""
        return _native.redis_mark_key(key)

    @staticmethod
    def outcome(item: str, token: int, reply: int) -> None:
        """What the answer of a script means. Raises StaleTokenError when a later holder has claimed the item, ConfigError
        for an item that was never claimed; then the script has written nothing.
        """
        _native.redis_outcome(item, token, reply)
