"""Guards in databases: Python's SQLite, and a real PostgreSQL with psycopg."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import leasehold
from leasehold.fence import PostgresGuard, PostgresRowGuard, SqliteGuard, SqliteRowGuard

ITEM = "invoice/42"
OLD, NEW = 33, 34


@pytest.fixture(params=["implicit", "explicit", "always"])
def connect(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], sqlite3.Connection]:
    """Connections that begin transactions by themselves, that do not, and that are always in one."""
    modes: dict[str, dict[str, Any]] = {
        "implicit": {},
        "explicit": {"isolation_level": None},
        "always": {"autocommit": False},
    }
    if request.param == "always" and sys.version_info < (3, 12):
        pytest.skip("newer than this Python")

    def connect() -> sqlite3.Connection:
        db: sqlite3.Connection = sqlite3.connect(tmp_path / "app.db", timeout=0, **modes[request.param])
        db.row_factory = lambda cursor, row: {"row": row}
        return db

    db = connect()
    db.executescript(
        "CREATE TABLE invoices (id INTEGER PRIMARY KEY, total INTEGER, fence INTEGER);"
        "INSERT INTO invoices VALUES (42, 100, NULL);"
        "CREATE TABLE pairs (id INTEGER, fence INTEGER);"
        "INSERT INTO pairs VALUES (1, 33), (1, 34);"
    )
    db.commit()
    SqliteGuard().create(db)
    db.commit()
    db.close()
    return connect


def total(db: sqlite3.Connection) -> object:
    (answer,) = db.execute("SELECT total FROM invoices").fetchone()["row"]
    return answer


def begin(db: sqlite3.Connection) -> None:
    if db.isolation_level is None:
        db.execute("BEGIN IMMEDIATE")


Check = Callable[[sqlite3.Connection, int], None]


@pytest.fixture(params=["table", "row"])
def guard(request: pytest.FixtureRequest) -> tuple[Check, Check]:
    """A claim and a check."""
    if request.param == "table":
        marks = SqliteGuard()
        return lambda db, token: marks.claim(db, ITEM, token), lambda db, token: marks.check(db, ITEM, token)
    rows = SqliteRowGuard("invoices", "id", "fence")
    return lambda db, token: rows.claim(db, 42, token), lambda db, token: rows.check(db, 42, token)


def test_a_late_write_is_refused_in_sqlite(
    connect: Callable[[], sqlite3.Connection], guard: tuple[Check, Check]
) -> None:
    claim, check = guard
    old, new = connect(), connect()

    def write(db: sqlite3.Connection, token: int, value: int) -> None:
        begin(db)
        with db:
            check(db, token)
            assert db.in_transaction
            db.execute("UPDATE invoices SET total = ?", (value,))

    with pytest.raises(leasehold.ConfigError, match="never claimed"):
        write(old, OLD, 101)
    old.rollback()
    claim(old, OLD)
    old.commit()
    write(old, OLD, 101)
    write(old, OLD, 102)
    claim(new, NEW)
    new.commit()
    with pytest.raises(leasehold.StaleTokenError, match=r"33.*34"):
        write(old, OLD, 999)
    with pytest.raises(leasehold.StaleTokenError, match=r"33.*34"):
        claim(old, OLD)
    assert total(old) == 102
    old.rollback()
    write(new, NEW, 103)
    assert total(new) == 103
    old.close()
    new.close()


def test_a_claim_is_committed_at_once_outside_a_transaction(
    connect: Callable[[], sqlite3.Connection], guard: tuple[Check, Check]
) -> None:
    claim, check = guard
    one, two = connect(), connect()
    was_within = one.in_transaction
    claim(one, OLD)
    assert one.in_transaction == was_within
    one.commit()
    claim(two, OLD)
    two.commit()
    # A claim that is rolled back has no effect.
    begin(one)
    one.execute("UPDATE invoices SET total = 7")
    claim(one, NEW)
    assert one.in_transaction
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        claim(two, OLD)
    assert two.in_transaction == was_within
    one.rollback()
    two.rollback()
    claim(two, OLD)
    two.commit()
    assert total(two) == 100
    one.close()
    two.close()


def test_a_check_needs_a_transaction(tmp_path: Path, guard: tuple[Check, Check]) -> None:
    claim, check = guard
    db = sqlite3.connect(tmp_path / "app.db", isolation_level=None)
    db.execute("CREATE TABLE invoices (id INTEGER PRIMARY KEY, total INTEGER, fence INTEGER)")
    db.execute("INSERT INTO invoices VALUES (42, 100, NULL)")
    SqliteGuard().create(db)
    claim(db, OLD)
    with pytest.raises(leasehold.ConfigError, match="transaction"):
        check(db, OLD)
    db.execute("BEGIN")
    check(db, OLD)
    db.rollback()
    db.close()


def test_errors_of_a_sqlite_row_guard_say_what_is_wrong(connect: Callable[[], sqlite3.Connection]) -> None:
    db = connect()
    pairs = SqliteRowGuard("pairs", "id", "fence")
    for act in (pairs.claim, pairs.check):
        with pytest.raises(leasehold.ConfigError, match="2 rows"):
            act(db, 1, OLD)
    db.rollback()
    rows = SqliteRowGuard("invoices", "id", "fence")
    with pytest.raises(leasehold.ConfigError, match="no such row"):
        rows.claim(db, 43, OLD)
    begin(db)
    with pytest.raises(leasehold.StaleTokenError, match="gone"):
        rows.check(db, 43, OLD)
    db.rollback()
    for mark in ("text", 1.5, b"blob", 2**53):
        db.execute("UPDATE invoices SET fence = ?", (mark,))
        with pytest.raises(leasehold.StoreRefusedError, match="not a token"):
            rows.claim(db, 42, OLD)
        db.rollback()
        db.execute("UPDATE invoices SET fence = NULL")
    for token in (-1, 2**53, 2**64):
        with pytest.raises(leasehold.ConfigError):
            rows.claim(db, 42, token)
    for names in (("", "id", "fence"), ("t", "", "fence"), ("t", "id", "\0")):
        with pytest.raises(leasehold.ConfigError):
            SqliteRowGuard(*names)
    with pytest.raises(leasehold.ConfigError):
        SqliteGuard("")
    db.close()


Database = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def schema(postgres: str, name: str) -> Iterator[Callable[[], Database]]:
    """Connects to a separate schema for the test."""
    made = name.replace("-", "_")
    opened: list[Database] = []

    def connect() -> Database:
        opened.append(psycopg.connect(postgres, options=f"-csearch_path={made}", autocommit=True))
        return opened[-1]

    connect().execute(f"CREATE SCHEMA {made}".encode())
    yield connect
    for db in opened:
        db.close()


# In the last name, psycopg could mistake the percent sign for a parameter, and a wrong implementation the dollar.
@pytest.mark.parametrize("table", [None, 'ma"rks', "%s $1 %(item)s"])
def test_a_late_write_is_refused_by_postgres(schema: Callable[[], Database], table: str | None) -> None:
    guard = PostgresGuard(table, paramstyle="pyformat")
    old, new = schema(), schema()
    old.execute(guard.create_sql.encode())
    old.execute(guard.create_sql.encode())
    old.execute("CREATE TABLE invoices (id bigint PRIMARY KEY, total bigint)")
    old.execute("INSERT INTO invoices VALUES (42, 100)")

    def fenced(db: Database, sql: str, token: int) -> None:
        row = db.execute(sql.encode(), guard.parameters(ITEM, token)).fetchone()
        guard.outcome(ITEM, token, None if row is None else row[0])

    def write(db: Database, token: int, total: int) -> None:
        with db.transaction():
            fenced(db, guard.check_sql, token)
            db.execute("UPDATE invoices SET total = %s WHERE id = 42", [total])

    with pytest.raises(leasehold.ConfigError, match="never claimed"):
        write(old, OLD, 101)
    fenced(old, guard.claim_sql, OLD)
    write(old, OLD, 101)
    fenced(new, guard.claim_sql, NEW)
    assert new.execute(guard.read_sql.encode(), {"item": ITEM}).fetchone() == (NEW,)
    with pytest.raises(leasehold.StaleTokenError, match=r"33.*34"):
        write(old, OLD, 999)
    with pytest.raises(leasehold.StaleTokenError):
        fenced(old, guard.claim_sql, OLD)
    assert old.execute("SELECT total FROM invoices").fetchone() == (101,)


@pytest.mark.parametrize("paramstyle", ["pyformat", "numeric_dollar"])
def test_a_row_of_postgres_has_its_own_mark(schema: Callable[[], Database], paramstyle: Any) -> None:
    guard = PostgresRowGuard("jobs", "id", "fence", paramstyle=paramstyle)
    db = schema()
    db.execute("CREATE TABLE jobs (id bigint, state text, fence bigint)")
    db.execute("INSERT INTO jobs VALUES (7, 'new', NULL), (8, 'new', 33), (8, 'new', 34)")
    # The parameters of PostgreSQL itself, as for asyncpg.
    cursor: Any = db.cursor() if paramstyle == "pyformat" else psycopg.RawCursor(db)

    def marks(sql: str, parameters: Any) -> list[int | None]:
        return [mark for (mark,) in cursor.execute(sql, parameters)]

    def claim(key: int, token: int) -> None:
        guard.claim_outcome(token, marks(guard.claim_sql, guard.parameters(key, token)))

    def check(key: int, token: int) -> None:
        guard.check_outcome(token, marks(guard.check_sql, guard.parameters(key, token)))

    with pytest.raises(leasehold.ConfigError, match="never claimed"):
        check(7, OLD)
    with pytest.raises(leasehold.ConfigError, match="no such row"):
        claim(9, OLD)
    with pytest.raises(leasehold.StaleTokenError, match="gone"):
        check(9, OLD)
    with pytest.raises(leasehold.ConfigError, match="2 rows"):
        check(8, OLD)
    claim(7, OLD)
    check(7, OLD)
    claim(7, NEW)
    with pytest.raises(leasehold.StaleTokenError, match=r"33.*34"):
        check(7, OLD)

    def write(token: int) -> int:
        given: Any
        if paramstyle == "pyformat":
            key, given = "%(id)s", {"id": 7, "mine": token}
            raised, allowed = guard.raise_sql("mine"), guard.condition_sql("mine")
        else:
            key, given = "$2", (token, 7)
            raised, allowed = guard.raise_sql(1), guard.condition_sql(1)
        cursor.execute(f"UPDATE jobs SET state = 'done', {raised} WHERE id = {key} AND {allowed}", given)
        changed: int = cursor.rowcount
        return changed

    read = {"key": 7} if paramstyle == "pyformat" else (7,)
    assert write(OLD) == 0
    with pytest.raises(leasehold.StaleTokenError, match=r"33.*34"):
        raise guard.refusal(OLD, marks(guard.read_sql, read))
    assert write(NEW + 1) == 1
    assert marks(guard.read_sql, read) == [NEW + 1]


def test_a_parameter_of_the_wrong_style_is_refused() -> None:
    numbers, names = PostgresRowGuard("t", "id", "f"), PostgresRowGuard("t", "id", "f%", paramstyle="pyformat")
    assert (numbers.raise_sql(), numbers.condition_sql(7)) == ('"f" = $2::bigint', '"f" BETWEEN 0 AND $7::bigint')
    assert names.raise_sql() == '"f%%" = %(token)s::bigint'
    for guard, parameter in ((numbers, "token"), (names, 2)):
        with pytest.raises(leasehold.ConfigError, match="paramstyle"):
            guard.raise_sql(parameter)
    qmark: Any = "qmark"
    with pytest.raises(leasehold.ConfigError, match="psycopg"):
        PostgresGuard(paramstyle=qmark)
    with pytest.raises(leasehold.ConfigError, match="psycopg"):
        PostgresRowGuard("t", "id", "f", paramstyle=qmark)
