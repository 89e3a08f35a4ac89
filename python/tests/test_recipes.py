"""The blocks of docs/recipes-python.md with the real packages, and gunicorn with leases that were made before the fork."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import http.client
import io
import json
import logging
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis as redis_py
from conftest import PATIENCE, REQUEST_TIMEOUT, TTL, connect, eventually

import leasehold
import leasehold.aio
import leasehold.metrics
from leasehold import _observe

RECIPES = Path(__file__).resolve().parents[2] / "docs" / "recipes-python.md"


def blocks(heading: str) -> list[str]:
    section = RECIPES.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


def recipe(heading: str) -> str:
    return "\n".join(blocks(heading))


def worker(heading: str) -> SimpleNamespace:
    """The names that the recipe defines, as in one of several processes."""
    return run(recipe(heading), heading)


def run(code: str, heading: str) -> SimpleNamespace:
    names: dict[str, Any] = {"__name__": heading}
    exec(compile(code, f"{RECIPES}: {heading}", "exec"), names)
    return SimpleNamespace(**names)


@pytest.fixture
def its_store(redis: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("LEASEHOLD_STORE", redis)
    # The recipes keep the default, within which a busy machine does not always answer.
    for module in (leasehold, leasehold.aio):
        monkeypatch.setattr(module, "connect", functools.partial(module.connect, request_timeout=REQUEST_TIMEOUT))
    return redis


@contextlib.contextmanager
def running(*command: str, cwd: Path, **env: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=cwd,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        # Together with its forked children.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_logging(memory: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("leasehold")
    before = list(logger.handlers)
    worker("Logging")
    try:
        with connect(memory) as client:
            client.acquire(name, ttl=0.1, renew=False).lost.wait(PATIENCE)
            said: list[str] = []

            def is_told() -> bool:
                said.append(capsys.readouterr().out)
                return f"page somebody: {name} expired" in "".join(said)

            eventually("somebody is paged", is_told)
    finally:
        logger.handlers = before
        logger.setLevel(logging.NOTSET)
        _observe.look()


def test_opentelemetry(memory: str, name: str) -> None:
    from opentelemetry.metrics import set_meter_provider
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint

    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    set_meter_provider(provider)
    record = worker("OpenTelemetry").record
    points: dict[str, tuple[str | None, list[Any]]] = {}

    def counted(histogram: str) -> int:
        data = reader.get_metrics_data()
        for of_resource in data.resource_metrics if data else []:
            for scope in of_resource.scope_metrics:
                points.update({metric.name: (metric.unit, list(metric.data.data_points)) for metric in scope.metrics})
        return int(points[histogram][1][0].count) if histogram in points else 0

    try:
        with connect(memory) as client:
            for _ in range(3):
                client.acquire(name, ttl=TTL).release()
            eventually("the last release is counted", lambda: counted("leasehold_hold_seconds") == 3)
    finally:
        leasehold.metrics.unsubscribe(record)
        provider.shutdown()

    _, (acquired,) = points["leasehold_acquire_total"]
    assert isinstance(acquired, NumberDataPoint)
    assert (acquired.value, acquired.attributes) == (3, {"outcome": "acquired"})
    unit, (waited,) = points["leasehold_wait_seconds"]
    assert isinstance(waited, HistogramDataPoint) and (unit, waited.count) == ("s", 3)


def test_work_is_done_once(its_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import datetime, timezone

    import django
    from django.conf import settings
    from django.core.management import call_command

    from leasehold.contrib import _clients

    monkeypatch.setattr(_clients, "_clients", {})
    of_apscheduler, of_celery, of_django = blocks("Work that is done once")

    schedulers = [run(of_apscheduler, "APScheduler").scheduler for _ in range(2)]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        at = datetime.now(timezone.utc)
        for scheduler in schedulers:
            scheduler.modify_job("nightly-report", next_run_time=at)

        def have_looked() -> bool:
            return all(scheduler.get_job("nightly-report").next_run_time > at for scheduler in schedulers)

        eventually("both have begun", have_looked)
        for scheduler in schedulers:
            scheduler.shutdown()
    assert said.getvalue() == "reporting\n"

    shop = run(of_celery, "Celery")
    assert [shop.bill_once.apply(args=[42]).get() for _ in range(2)] == ["billed 42"] * 2
    shop.app.close()

    if not settings.configured:
        settings.configure()
        django.setup()
    said, complained = io.StringIO(), io.StringIO()
    for _ in range(2):
        call_command(run(of_django, "Django").Command(), stdout=said, stderr=complained)
    assert said.getvalue().count("rebuilding, with fencing token") == 1
    assert complained.getvalue().startswith("rebuild-index: done already by ")
    for client in _clients._clients.values():
        client.close()


def test_apscheduler(its_store: str) -> None:
    from datetime import datetime, timezone

    from apscheduler.schedulers.base import STATE_PAUSED, STATE_RUNNING

    workers = [worker("APScheduler") for _ in range(2)]

    def leaders() -> list[SimpleNamespace]:
        return [worker for worker in workers if worker.scheduler.state == STATE_RUNNING]

    with contextlib.redirect_stdout(io.StringIO()) as said:
        eventually("one leads", lambda: len(leaders()) == 1)
        (leader,) = leaders()
        (other,) = [worker for worker in workers if worker is not leader]
        for worker_ in workers:
            worker_.scheduler.modify_job("report", next_run_time=datetime.now(timezone.utc))
        token = leader.terms[-1].token
        eventually("the report is made", lambda: f"with fencing token {token}" in said.getvalue())
        assert other.scheduler.state == STATE_PAUSED and said.getvalue().count("reporting") == 1
        leader.election.resign()
        eventually("the other leads", lambda: leaders() == [other])
        # The postponed job runs now.
        eventually("its report is made", lambda: f"with fencing token {other.terms[-1].token}" in said.getvalue())
        assert other.terms[-1].token > token
        for worker_ in workers:
            worker_.election.resign()
            worker_.scheduler.shutdown()
            worker_.client.close()


def test_celery(its_store: str, tmp_path: Path) -> None:
    # It moves entries of a list instead of money, and the first charge lasts until the test ends it.
    charge = """
        def charge(invoice, token):
            import os, redis
            with redis.Redis.from_url(os.environ["LEASEHOLD_STORE"]) as server:
                server.rpush("celery-log", f"in {token}")
                server.blpop("celery-go", 60)
                server.rpush("celery-log", f"out {token}")
    """
    (tmp_path / "shop.py").write_text(recipe("Celery") + textwrap.dedent(charge))
    with redis_py.Redis.from_url(its_store, decode_responses=True) as server:
        log: Callable[[], list[str]] = lambda: server.lrange("celery-log", 0, -1)  # noqa: E731
        shop = worker("Celery")
        shop.app.conf.broker_url = its_store
        command = ("celery", "-b", its_store, "-A", "shop", "worker", "--pool", "prefork", "-c", "2", "-l", "info")
        with running(*command, cwd=tmp_path, C_FORCE_ROOT="1") as process:
            for _ in range(2):
                shop.app.send_task("shop.bill", ["42"])
            eventually("one of them charges", lambda: len(log()) >= 1 or process.poll() is not None)
            assert process.stdout is not None
            # The other task found the lock held, and was put back.
            lines: list[str] = []
            while not any("retry" in line.lower() for line in lines):
                lines.append(process.stdout.readline())
                assert lines[-1], "".join(lines)
            assert len(log()) == 1
            server.rpush("celery-go", "go", "go")
            eventually("both have charged", lambda: len(log()) == 4)
            tokens = [int(entry.split()[1]) for entry in log()]
            assert [entry.split()[0] for entry in log()] == ["in", "out", "in", "out"]
            assert tokens[0] == tokens[1] < tokens[2] == tokens[3]
        shop.app.close()


def test_django(its_store: str) -> None:
    import django
    from django.conf import settings
    from django.core.management import CommandError, call_command

    if not settings.configured:
        settings.configure()
        django.setup()
    said = io.StringIO()
    call_command(worker("Django").Command(), stdout=said)
    assert "rebuilding, with fencing token" in said.getvalue()
    with connect(its_store) as client, client.lock("rebuild-index", ttl=TTL):
        with pytest.raises(CommandError, match="held by") as busy:
            call_command(worker("Django").Command(), stdout=said)
        assert busy.value.returncode == 75


HELD_BY_THE_ARBITER = f"""
import leasehold, sys

def take():
    global client, lease
    client = leasehold.connect(request_timeout=5)
    lease = client.acquire("arbiters", ttl={TTL})
"""
SETTINGS = """
import held
workers, bind, graceful_timeout = 2, "127.0.0.1:0", 10

def on_starting(server):
    held.take()

def when_ready(server):
    print("listens on", server.LISTENERS[0].getsockname()[1], flush=True)
"""
OBSERVER = """
import held, json, leasehold, os

def raises(call):
    try:
        call()
    except leasehold.LeaseholdError as error:
        return type(error).__name__
    return None

def observed(environ, start_response):
    answer = {
        "pid": os.getpid(),
        "remaining": held.lease.remaining(),
        "is lost": held.lease.lost.is_set(),
        "release": raises(held.lease.release),
        "acquire": raises(lambda: held.client.acquire("other")),
        "token": int(b"".join(app(environ, start_response))),
        "arbiters": locks().inspect("arbiters").token,
    }
    return [json.dumps(answer).encode()]
"""


@pytest.mark.parametrize("preload", [["--preload"], []], ids=["preload", "no preload"])
def test_gunicorn(preload: list[str], its_store: str, tmp_path: Path) -> None:
    (tmp_path / "held.py").write_text(HELD_BY_THE_ARBITER)
    (tmp_path / "settings.py").write_text(SETTINGS)
    (tmp_path / "site_of.py").write_text(recipe("gunicorn") + OBSERVER)
    with connect(its_store) as client:
        with running("gunicorn", "-c", "settings.py", *preload, "site_of:observed", cwd=tmp_path) as arbiter:
            assert arbiter.stdout is not None
            port = int(next(line for line in arbiter.stdout if line.startswith("listens on")).split()[2])
            token = held_token(client, "arbiters")
            seen: dict[int, dict[str, Any]] = {}

            def have_answered(workers: int) -> bool:
                answer = ask(port)
                if answer is not None:
                    seen[answer["pid"]] = answer
                return len(seen) >= workers

            eventually("both workers have answered", lambda: have_answered(2))
            # Workers that exit, cleanly or not, affect no lease, and their successors work in the same way.
            for pid, kill in zip(tuple(seen), (signal.SIGTERM, signal.SIGKILL)):
                os.kill(pid, kill)
            eventually("both successors have answered", lambda: have_answered(4))
            expected = {
                "remaining": 0,
                "is lost": True,
                "release": "LeaseLostError",
                "acquire": "ConfigError",
                "arbiters": token,
            }
            for pid, answer in seen.items():
                assert pid != arbiter.pid
                assert {key: answer[key] for key in expected} == expected
            assert len({answer["token"] for answer in seen.values()}) == 4
            assert held_token(client, "arbiters") == token
            arbiter.terminate()
            arbiter.wait(PATIENCE)
        # Released at the arbiter's end.
        eventually("the arbiter's lock is free", lambda: client.inspect("arbiters") is None)


def test_fastapi(its_store: str) -> None:
    from fastapi.testclient import TestClient

    names = worker("FastAPI")
    entered, leave = threading.Event(), threading.Event()
    leaders: list[int] = []

    async def charge(number: int, token: int) -> dict[str, int]:
        entered.set()
        await asyncio.to_thread(leave.wait, PATIENCE)
        return {"invoice": number, "token": token}

    async def refresh(lease: leasehold.aio.Lease) -> None:
        leaders.append(lease.token)
        await asyncio.Event().wait()

    names.pay.__globals__.update(charge=charge, refresh=refresh)
    with connect(its_store) as observer, ThreadPoolExecutor() as pool:
        with TestClient(names.app) as app:

            def charging(number: int) -> Any:
                charged = pool.submit(app.post, f"/invoices/{number}/charge")
                eventually("it works", lambda: entered.is_set() or charged.done())
                assert entered.is_set(), charged.result().json()
                return charged

            eventually("it leads", lambda: leaders != [])
            assert leaders == [held_token(observer, "refresher")]
            first = charging(42)
            second = app.post("/invoices/42/charge")
            assert (second.status_code, second.json(), second.headers["retry-after"]) == (409, {"error": "busy"}, "1")
            leave.set()
            assert (first.result(PATIENCE).status_code, first.result().json()["invoice"]) == (200, 42)
            assert observer.inspect("invoice/42") is None
            # A lock that was lost during a request is no success.
            entered.clear()
            leave.clear()
            lost = charging(43)
            assert observer.release_if("invoice/43", token=held_token(observer, "invoice/43"))
            leave.set()
            assert (lost.result(PATIENCE).status_code, lost.result().json()) == (503, {"error": "lost"})
        assert observer.inspect("refresher") is None, "the leader has resigned"


SIGTERM = "Kubernetes and systemd: free locks on SIGTERM"
THREADS = """
import sys, threading
names = {"__name__": "worker", "never": threading.Event()}
exec(compile(open("recipe.py").read(), "recipe", "exec"), names)

def step(lease):
    # In one write: the lines of two threads must not mix.
    print(f"holds {lease.resource}\\n", end="", flush=True)
    (names["never"] if lease.resource == "hangs" else names["stop"]).wait()

names["GRACE"] = float(sys.argv[1])
names["main"](sys.argv[2:], step)
"""
TASKS = """
import asyncio
names = {"__name__": "worker"}
exec(compile(open("recipe.py").read(), "recipe", "exec"), names)

async def work(lease):
    print("holds", lease.resource, flush=True)
    await asyncio.Event().wait()

names["run"](work)
"""


@pytest.mark.parametrize("grace, locks", [(PATIENCE, ["ends", "held elsewhere"]), (0, ["ends", "hangs"])], ids=str)
def test_sigterm_frees_the_locks_of_threads(grace: float, locks: list[str], its_store: str, tmp_path: Path) -> None:
    with connect(its_store) as client, client.lock("held elsewhere"):
        terminated(blocks(SIGTERM)[0], THREADS, [str(grace), *locks], locks[: 1 + (grace == 0)], tmp_path)
        for lock in ("ends", "hangs"):
            assert client.inspect(lock) is None


def test_sigterm_frees_the_locks_of_tasks(its_store: str, tmp_path: Path) -> None:
    with connect(its_store) as client:
        terminated(blocks(SIGTERM)[1], TASKS, [], ["leader"], tmp_path)
        assert client.inspect("leader") is None


def terminated(code: str, program: str, arguments: list[str], held: list[str], folder: Path) -> None:
    """Runs a program with this recipe, and sends SIGTERM once it holds these locks."""
    (folder / "recipe.py").write_text(code)
    (folder / "program.py").write_text(program)
    with running("program", *arguments, cwd=folder) as process:
        assert process.stdout is not None
        said = {process.stdout.readline() for _ in held}
        assert said == {f"holds {lock}\n" for lock in held}
        process.terminate()
        assert (process.wait(PATIENCE), process.stdout.read()) == (0, "")


def held_token(client: leasehold.Client, name: str) -> int:
    info = client.inspect(name)
    assert info is not None and info.token is not None
    return info.token


def ask(port: int) -> dict[str, Any] | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/")
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
        return answer
    except (OSError, http.client.HTTPException):
        # The worker was killed in the middle of the request.
        return None
    finally:
        connection.close()


def test_a_late_write_to_postgres_is_refused(its_store: str, postgres: str) -> None:
    names = worker("PostgreSQL")
    db = names.connect(postgres)
    db.execute("CREATE TABLE invoices (id bigint PRIMARY KEY, total bigint)")
    db.execute("INSERT INTO invoices VALUES (42, 100)")
    refuses_late_writes(names, db)
    db.close()


def test_a_late_write_to_sqlite_is_refused(its_store: str, tmp_path: Path) -> None:
    names = worker("SQLite")
    db = names.connect(tmp_path / "app.db")
    db.executescript("CREATE TABLE invoices (id INTEGER PRIMARY KEY, total); INSERT INTO invoices VALUES (42, 100)")
    refuses_late_writes(names, db)
    db.close()


def refuses_late_writes(names: SimpleNamespace, db: Any) -> None:
    with names.client.lock("invoice/42", ttl=TTL) as lease:
        late = lease.token
    names.add(db, 42, 10)
    names.add(db, 42, 5)
    with pytest.raises(leasehold.StaleTokenError, match=str(late)):
        names.write(db, "invoice/42", late, 42, 999)
    assert db.execute("SELECT total FROM invoices WHERE id = 42").fetchone() == (115,)
    names.client.close()


QUEUE_WORKER = """
import sys
names = {"__name__": "worker"}
exec(compile(open(sys.argv[1]).read(), "recipe", "exec"), names)
with names["work"](sys.argv[2], ttl=2, look_every=0.2) as shards:
    print("works", flush=True)
    sys.stdin.read()
"""


def test_a_partitioned_queue_is_read_once_and_in_order(its_store: str, tmp_path: Path) -> None:
    code, path = tmp_path / "recipe.py", tmp_path / "queue.db"
    code.write_text(recipe("A partitioned queue"))
    names = worker("A partitioned queue")
    db = names.connect(path)
    db.execute("CREATE TABLE queue (id INTEGER PRIMARY KEY, partition INTEGER, body INTEGER)")
    db.execute("CREATE TABLE sent (partition INTEGER, body INTEGER, token INTEGER)")
    db.commit()
    added = 0

    def add(items: int) -> None:
        nonlocal added
        with db:
            rows = [(number % names.PARTITIONS, number) for number in range(added, added + items)]
            db.executemany("INSERT INTO queue (partition, body) VALUES (?, ?)", rows)
        added += items

    def is_sent(items: int) -> bool:
        (count,) = db.execute("SELECT count(*) FROM sent").fetchone()
        return bool(count >= items)

    workers: list[subprocess.Popen[str]] = []

    def join() -> None:
        command = [sys.executable, "-c", QUEUE_WORKER, str(code), str(path)]
        workers.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert workers[-1].stdout is not None and workers[-1].stdout.readline() == "works\n"

    try:
        join()
        add(80)
        eventually("some are sent", lambda: is_sent(40))
        join()
        join()
        add(80)
        eventually("more are sent", lambda: is_sent(120))
        workers[0].kill()
        add(40)
        workers[1].communicate(timeout=PATIENCE)
        assert workers[1].returncode == 0
        eventually("all are sent", lambda: is_sent(added))
    finally:
        for process in workers:
            process.kill()
            process.communicate()
    sent = db.execute("SELECT partition, body, token FROM sent ORDER BY rowid").fetchall()
    for partition in range(names.PARTITIONS):
        bodies = [body for of, body, _ in sent if of == partition]
        assert bodies == list(range(partition, added, names.PARTITIONS))
        tokens = [token for of, _, token in sent if of == partition]
        assert tokens == sorted(tokens)
    db.close()
    names.client.close()
