"""Runs whose completion is a part of the user's transaction, by real drivers, and the recipes with lock, guard and work in one database."""

from __future__ import annotations

import asyncio
import itertools
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from conftest import PATIENCE, TTL, connect, eventually
from test_processes import says, start
from test_recipes import blocks, run

import leasehold
import leasehold.aio
from leasehold.fence import PostgresGuard
from leasehold.testing import FakeClock

SECTION = "PostgreSQL: lock, guard and work in one database"
_schemas = itertools.count()


class Database:
    """A schema with the table of locks, the user's data, and marks of a guard."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.schema = f"shop_{next(_schemas)}"
        self.store = f"{server}?schema={self.schema}"
        create = [sys.executable, "-m", "leasehold", "store", "create", "--store", self.store]
        subprocess.run(create, check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL)
        self.conninfo = f"{server}?options=-csearch_path%3D{self.schema}"
        with psycopg.connect(self.conninfo) as db:
            db.execute("CREATE TABLE bills (month text)")
            db.execute("CREATE TABLE invoices (id bigint PRIMARY KEY, total bigint)")
            db.execute("INSERT INTO invoices VALUES (42, 100)")
            db.execute(PostgresGuard().create_sql.encode())

    def read(self, sql: str) -> Any:
        with psycopg.connect(self.conninfo) as db:
            row = db.execute(sql.encode()).fetchone()
        assert row is not None
        return row[0]

    def bills(self) -> Any:
        return self.read("SELECT count(*) FROM bills")


@pytest.fixture
def database(postgres: str, monkeypatch: pytest.MonkeyPatch) -> Database:
    database = Database(postgres)
    monkeypatch.setenv("LEASEHOLD_STORE", database.store)
    return database


@pytest.fixture
def client(database: Database) -> Iterator[leasehold.Client]:
    with connect(database.store) as client:
        yield client


def test_work_and_mark_are_committed_together(database: Database, client: leasehold.Client) -> None:
    once = client.once("bill", key="2026-11", ttl=TTL, owner="biller")
    with once as mine:
        assert mine is not None
        with psycopg.connect(database.conninfo) as db:
            db.execute("INSERT INTO bills VALUES ('2026-11')")
            db.execute(*mine.completion_in(paramstyle="pyformat"))
            assert client.inspect_run("bill", "2026-11").done is None
        # A process that is killed here sends no finish.
        done = client.inspect_run("bill", "2026-11").done
        assert done is not None and (done.owner, done.token) == ("biller", mine.token)
    with pytest.raises(leasehold.NotOwnedError):
        mine.completion_in()
    with client.once("bill", key="2026-11") as again:
        assert again is None
    assert database.bills() == 1


def test_a_transaction_that_is_rolled_back_leaves_no_completion(database: Database, client: leasehold.Client) -> None:
    with pytest.raises(ZeroDivisionError), client.once("bill", keep=604_800, ttl=TTL) as mine:
        assert mine is not None
        with psycopg.connect(database.conninfo) as db:
            db.execute("INSERT INTO bills VALUES ('2026-11')")
            db.execute(*mine.completion_in(paramstyle="pyformat"))
            raise ZeroDivisionError
    assert database.bills() == 0
    with client.once("bill", keep=604_800, ttl=TTL) as again:
        assert again is not None


def test_a_lost_lease_fails_the_transaction(database: Database, client: leasehold.Client) -> None:
    with pytest.raises(leasehold.LeaseLostError), client.once("bill", keep=604_800, ttl=TTL, renew_every=0.1) as mine:
        assert mine is not None
        sql, parameters = mine.completion_in(paramstyle="pyformat")
        assert client.release_if("bill@", token=mine.token)
        with pytest.raises(psycopg.DataError, match="the lease of this run is lost"), psycopg.connect(database.conninfo) as db:
            db.execute("INSERT INTO bills VALUES ('2026-11')")
            db.execute(sql, parameters)
        assert database.bills() == 0
        eventually("the loss is told", mine.lost.is_set)
        with pytest.raises(leasehold.LeaseLostError):
            mine.completion_in()


def test_a_mark_that_was_committed_after_the_lease_is_found(database: Database, client: leasehold.Client) -> None:
    with client.once("bill", keep=604_800, ttl=1) as mine:
        assert mine is not None
        with psycopg.connect(database.conninfo) as db:
            db.execute(*mine.completion_in(paramstyle="pyformat"))
            assert mine.lost.wait(PATIENCE), "the row is locked, so that it cannot be renewed"
    with pytest.raises(leasehold.LeaseLostError), client.once("other", keep=604_800, ttl=1) as mine:
        assert mine is not None
        with psycopg.connect(database.conninfo) as db:
            db.execute(*mine.completion_in(paramstyle="pyformat"))
            assert mine.lost.wait(PATIENCE)
            db.rollback()


def test_only_a_database_can_mark_in_a_transaction(memory: str) -> None:
    with connect(memory) as client, client.once("bill", keep=604_800) as mine:
        assert mine is not None
        with pytest.raises(leasehold.ConfigError, match="PostgreSQL database of the work"):
            mine.completion_in()
    with leasehold.testing.connect(FakeClock()) as fake, fake.once("bill", keep=604_800) as mine:
        assert mine is not None
        with pytest.raises(leasehold.ConfigError, match="PostgreSQL database of the work"):
            mine.completion_in()


def test_a_paramstyle_is_known(client: leasehold.Client) -> None:
    with client.once("bill", keep=604_800, ttl=TTL) as mine:
        assert mine is not None
        sql, parameters = mine.completion_in()
        assert "$1" in sql and "%" not in sql and isinstance(parameters, tuple) and len(parameters) == 1
        sql, named = mine.completion_in(paramstyle="pyformat")
        assert "%(run)s" in sql and "$" not in sql and named == {"run": parameters[0]}
        with pytest.raises(leasehold.ConfigError, match="paramstyle"):
            mine.completion_in(paramstyle="qmark")  # type: ignore[arg-type]


BILLER = """
        import psycopg
        store, conninfo, stop = sys.argv[1:]
        def pause(at):
            if at == stop:
                print(at, flush=True)
                sys.stdin.read()
        with leasehold.connect(store) as client, client.once("bill", key="2026-11", ttl=2, wait=PATIENCE) as run:
            if run:
                with psycopg.connect(conninfo) as db:
                    db.execute("INSERT INTO bills VALUES ('2026-11')")
                    pause("at work")
                    db.execute(*run.completion_in(paramstyle="pyformat"))
                    pause("marked")
                pause("committed")
            print("done" if run else "done before", flush=True)
"""


@pytest.mark.parametrize("stop", ["at work", "marked", "committed"])
def test_the_work_of_killed_processes_exists_exactly_once(stop: str, database: Database) -> None:
    first = start(BILLER, database.store, database.conninfo, stop)
    try:
        assert says(first) == stop
        first.send_signal(signal.SIGKILL)
        first.communicate(timeout=PATIENCE)
        second = start(BILLER, database.store, database.conninfo, "nowhere")
        said, complained = second.communicate(timeout=PATIENCE)
        assert (said.strip(), complained) == ("done before" if stop == "committed" else "done", "")
    finally:
        first.kill()
    assert database.bills() == 1


def test_psycopg(database: Database) -> None:
    names = run(blocks(SECTION)[0], SECTION)
    shared(database, lambda: names.add(database.conninfo, 42, 5), lambda: names.bill(database.conninfo, "2026-11"))
    names.locks.close()


def test_sqlalchemy(database: Database) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    names = run(blocks(SECTION)[1], SECTION)
    engine = sqlalchemy.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(database.conninfo))
    shared(database, lambda: names.add(engine, 42, 5), lambda: names.bill(engine, "2026-11"))
    from sqlalchemy.orm import Session

    with names.locks.once("session", keep=604_800, ttl=TTL) as mine, Session(engine) as session, session.begin():
        session.connection().exec_driver_sql(*mine.completion_in(paramstyle="pyformat"))
    assert names.locks.inspect_run("session", None).done is not None
    engine.dispose()
    names.locks.close()


def test_django(database: Database) -> None:
    # Of Django's settings there is one set for each process.
    script = f"""
        import django
        from django.conf import settings
        postgres = {{"ENGINE": "django.db.backends.postgresql", "NAME": "postgres", "USER": "postgres", "HOST": "127.0.0.1"}}
        postgres["PORT"] = sys.argv[1]
        postgres["OPTIONS"] = {{"options": "-c search_path=" + sys.argv[2]}}
        settings.configure(DATABASES={{"default": postgres}})
        django.setup()
        exec({blocks(SECTION)[2]!r})
        for line in sys.stdin:
            try:
                {{"add": lambda: add(42, 5), "bill": lambda: bill("2026-11")}}[line.strip()]()
                print("", flush=True)
            except Exception as error:
                print(type(error).__name__, flush=True)
        locks.close()
"""
    process = start(script, str(urlsplit(database.server).port), database.schema)

    def asked(what: str) -> None:
        assert process.stdin is not None
        process.stdin.write(f"{what}\n")
        process.stdin.flush()
        if said := says(process):
            raise getattr(leasehold, said)

    try:
        shared(database, lambda: asked("add"), lambda: asked("bill"))
        assert process.communicate(timeout=PATIENCE) == ("", "")
    finally:
        process.kill()


def test_asyncpg(database: Database) -> None:
    pytest.importorskip("asyncpg")
    names = run(blocks(SECTION)[3], SECTION)
    dsn = f"{database.server}?search_path={database.schema}"

    def asked(function: Callable[..., Any], *args: object) -> Callable[[], None]:
        async def main() -> None:
            async with await leasehold.aio.connect(database.store) as locks:
                await function(locks, dsn, *args)

        return lambda: asyncio.run(main())

    shared(database, asked(names.add, 42, 5), asked(names.bill, "2026-11"))


def shared(database: Database, add: Callable[[], None], bill: Callable[[], None]) -> None:
    add()
    add()
    assert database.read("SELECT total FROM invoices") == 110
    # A later holder has claimed the item meanwhile.
    with psycopg.connect(database.conninfo) as db:
        db.execute("UPDATE leasehold_fence SET fence = 9007199254740991")
    with pytest.raises(leasehold.StaleTokenError):
        add()
    assert database.read("SELECT total FROM invoices") == 110
    bill()
    bill()
    assert database.bills() == 1
    assert database.read("SELECT released AND done_until > now() FROM leasehold WHERE resource = 'bill@2026-11'")
