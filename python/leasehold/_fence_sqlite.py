"""Guards for data in SQLite, over connections of the standard library's ``sqlite3``."""

from __future__ import annotations

from leasehold import _native
from leasehold._errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any


class SqliteGuard:
    """Keeps the marks of guarded items in a separate table, in the database of the guarded data.

    The mark of an item outlives the item: a stale holder can neither write to a row that a later holder has deleted nor
    restore it. Items are named by text; the natural name is the resource of the lock. ``db`` is a connection of
    ``sqlite3``, whose errors are raised unchanged.
    """

    def __init__(self, table: str = "leasehold_fence") -> None:
        self._sql = _native.SqliteGuard(table)

    def create(self, db: sqlite3.Connection) -> None:
        """Creates the table of marks unless it exists. Needs SQLite 3.37 or newer."""
        db.execute(self._sql.create_sql)

    def claim(self, db: sqlite3.Connection, item: str, token: int) -> None:
        """From now on only ``token`` and higher ones are accepted. Call it with each new lease, **before**
        reading the item. Outside a transaction it is committed at once; inside one it is rolled back with it.

        Raises StaleTokenError when a later holder has claimed the item, ConfigError for an invalid token.
        """
        _claim(db, self._sql, item, token)

    def check(self, db: sqlite3.Connection, item: str, token: int) -> None:
        """Raises unless a write with ``token`` is allowed. Call it in the transaction of the write, before the
        write; when it raises, roll back, as ``with db:`` does. It begins the transaction if ``sqlite3`` does that by
        itself.

        Raises the errors of :meth:`claim`, and ConfigError for an item that was never claimed, and for a connection without
        a transaction.
        """
        _check(db, self._sql, item, token)


class SqliteRowGuard:
    """Uses a column of your own table as the mark of each row.

    The column must be an INTEGER that nothing else writes; NULL means that the row was never claimed. The key must match
    one row. Never delete a guarded row: mark it as deleted instead. Deleting a row deletes its mark, and a stale holder could
    insert the row again. If rows must be deleted, use :class:`SqliteGuard`.
    """

    def __init__(self, table: str, key_column: str, fence_column: str) -> None:
        self._sql = _native.SqliteRowGuard(table, key_column, fence_column)

    def claim(self, db: sqlite3.Connection, key: object, token: int) -> None:
        """As :meth:`SqliteGuard.claim`, for the row with this key. Raises ConfigError also for a row that does not exist, and
        for a key that matches several rows.
        """
        _claim(db, self._sql, key, token)

    def check(self, db: sqlite3.Connection, key: object, token: int) -> None:
        """As :meth:`SqliteGuard.check`, for the row with this key. Raises StaleTokenError also for a row that is gone, and
        ConfigError for a key that matches several rows.
        """
        _check(db, self._sql, key, token)


def _claim(
    db: sqlite3.Connection, sql: _native.SqliteGuard | _native.SqliteRowGuard, key: Any, token: int
) -> None:
    # A caller does not expect a transaction that `sqlite3` begins by itself to stay open.
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
        # Raising the mark to a valid token does no harm; a write that follows could.
        raise ConfigError("check belongs in the transaction of the write: begin one first")


def _marks_against(db: sqlite3.Connection, sql: str, read_sql: str, key: object, token: int) -> list[object] | None:
    """Raises a mark, or returns the marks that prevent it."""
    cursor = db.cursor()
    # The row factory of the connection may return any type.
    cursor.row_factory = None
    # By name: some versions of Python 3.12 warn of a sequence for `?1`.
    parameters = {"1": key, "2": _native.token_parameter(token)}
    if cursor.execute(sql, parameters).rowcount:
        return None
    return [mark for (mark,) in cursor.execute(read_sql, parameters)]
