"""Guards for data in SQLite, over connections of the standard library's ``sqlite3``."""

from __future__ import annotations

from leasehold import _native
from leasehold._errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any


class SqliteGuard:
    """Keeps the marks of guarded items in a table of its own, in the database of the data that they guard.

    The mark of an item outlives the item: a stale holder can neither write to a row that a later holder has deleted nor
    bring it back. Items are named by text; the natural name is the resource of the lock. ``db`` is a connection of
    ``sqlite3``, whose errors are raised as they are.
    """

    def __init__(self, table: str = "leasehold_fence") -> None:
        self._sql = _native.SqliteGuard(table)

    def create(self, db: sqlite3.Connection) -> None:
        """Makes the table of marks unless it is there. Needs SQLite 3.37 or newer."""
        db.execute(self._sql.create_sql)

    def claim(self, db: sqlite3.Connection, item: str, token: int) -> None:
        """Makes ``token`` the only one that is accepted from now on, apart from higher ones: with each new lease, **before**
        reading the item. Outside of a transaction it is committed at once; inside of one it is rolled back with it.

        Raises StaleTokenError when a later holder has claimed the item, ConfigError for what is no token.
        """
        _claim(db, self._sql, item, token)

    def check(self, db: sqlite3.Connection, item: str, token: int) -> None:
        """Raises unless a write with ``token`` may happen. Call it in the transaction of the write, before the
        write; when it raises, roll back, as ``with db:`` does. It begins the transaction where ``sqlite3`` does that by
        itself.

        Raises what :meth:`claim` raises, and ConfigError for an item that was never claimed, and for a connection without
        a transaction.
        """
        _check(db, self._sql, item, token)


class SqliteRowGuard:
    """Uses a column of your own table as the mark of each row.

    The column has to be an INTEGER that nothing else writes; NULL means that the row was never claimed. The key has to name
    one row. Never delete a guarded row, mark it as deleted instead: the mark goes with the row, and a stale holder could
    insert it again. Where rows come and go, use :class:`SqliteGuard`.
    """

    def __init__(self, table: str, key_column: str, fence_column: str) -> None:
        self._sql = _native.SqliteRowGuard(table, key_column, fence_column)

    def claim(self, db: sqlite3.Connection, key: object, token: int) -> None:
        """As :meth:`SqliteGuard.claim`, of the row with this key. Raises ConfigError also for a row that does not exist, and
        for a key that names several rows.
        """
        _claim(db, self._sql, key, token)

    def check(self, db: sqlite3.Connection, key: object, token: int) -> None:
        """As :meth:`SqliteGuard.check`, of the row with this key. Raises StaleTokenError also for a row that is gone, and
        ConfigError for a key that names several rows.
        """
        _check(db, self._sql, key, token)


def _claim(
    db: sqlite3.Connection, sql: _native.SqliteGuard | _native.SqliteRowGuard, key: Any, token: int
) -> None:
    # Of a transaction that `sqlite3` begins by itself nobody would expect that it goes on.
    is_alone = not db.in_transaction
    try:
        marks = _marks_against(db, sql.claim_sql, sql.read_sql, key, token)
        if is_alone:
            db.commit()
    except BaseException:
        if is_alone:
            db.rollback()
        raise
    if marks is not None:
        raise sql.claim_refusal(key, token, marks)


def _check(
    db: sqlite3.Connection, sql: _native.SqliteGuard | _native.SqliteRowGuard, key: Any, token: int
) -> None:
    marks = _marks_against(db, sql.check_sql, sql.read_sql, key, token)
    if marks is not None:
        raise sql.check_refusal(key, token, marks)
    if not db.in_transaction:
        # A mark that was raised to a token that was good enough does no harm; a write that follows could.
        raise ConfigError("check belongs in the transaction of the write: begin one first")


def _marks_against(db: sqlite3.Connection, sql: str, read_sql: str, key: object, token: int) -> list[object] | None:
    """Raises a mark, or answers what stands there instead."""
    cursor = db.cursor()
    # That of the connection may make anything of a row.
    cursor.row_factory = None
    # By name: some versions of Python 3.12 warn of a sequence for `?1`.
    parameters = {"1": key, "2": _native.token_parameter(token)}
    if cursor.execute(sql, parameters).rowcount:
        return None
    return [mark for (mark,) in cursor.execute(read_sql, parameters)]
