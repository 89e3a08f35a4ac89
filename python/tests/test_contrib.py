"""Adapters, with the real packages and with processes of which one is killed."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis as redis_py
from conftest import PATIENCE, connect, eventually
from test_processes import says, start
from test_recipes import running

import leasehold
from leasehold import AlreadyDone, Ran

LOGS = """
import os, redis
def log(what):
    with redis.Redis.from_url(os.environ["LEASEHOLD_STORE"]) as server:
        server.rpush(LOG, what)
def wait():
    with redis.Redis.from_url(os.environ["LEASEHOLD_STORE"], socket_timeout=None) as server:
        server.blpop(LOG + "-go", 120)
"""


@pytest.fixture
def log_of(redis: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Reads what the processes of a test have logged, and lets one of them go on."""
    monkeypatch.setenv("LEASEHOLD_STORE", redis)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(redis_py.Redis.from_url(redis, decode_responses=True))

        def log_of(name: str) -> tuple[Callable[[], list[str]], Callable[[], int]]:
            return lambda: server.lrange(name, 0, -1), lambda: server.rpush(f"{name}-go", "go")

        yield log_of


def killed(process: Any) -> None:
    os.killpg(process.pid, signal.SIGKILL)


SHOP = """
from celery import Celery
from leasehold.contrib.celery import once
app = Celery("shop", broker=os.environ["LEASEHOLD_STORE"], backend=os.environ["LEASEHOLD_STORE"])
app.conf.beat_schedule = {"tick": {"task": "shop.tick", "schedule": 2.0}}

@app.task
@once(ttl=1, retry_in=0.2)
def charge(invoice):
    log(f"in {os.getpgid(0)}")
    wait()
    log("out")

@app.task
@once("invoice-{invoice}", keep=3600, ttl=1, retry_in=0.2)
def bill(invoice, fail=False):
    log(f"bill {invoice}")
    if fail:
        raise ZeroDivisionError

@app.task
@once("receipt-{invoice}", keep=3600, ttl=1, retry_in=0.2, save_result=True)
def receipt(invoice):
    log(f"receipt {invoice}")
    return {"number": invoice, "lines": (1, 2)}

@app.task
def tick():
    log("tick")
"""


def worker(tmp_path: Path, queue: str, name: str) -> Any:
    command = ("celery", "-A", "shop", "worker", "--pool", "prefork", "-c", "1", "-Q", queue, "-n", name)
    return running(*command, cwd=tmp_path, C_FORCE_ROOT="1")


def shop(tmp_path: Path, log: str) -> Any:
    (tmp_path / "shop.py").write_text(f"LOG = {log!r}\n{LOGS}{SHOP}")
    names: dict[str, Any] = {}
    exec(compile((tmp_path / "shop.py").read_text(), "shop", "exec"), names)
    return names["app"]


def test_a_celery_message_that_is_delivered_twice_is_done_once(log_of: Any, redis: str, tmp_path: Path) -> None:
    app, queue, (log, go) = shop(tmp_path, "shop-log"), f"queue-{uuid.uuid4()}", log_of("shop-log")
    # A worker fetches more messages than it works on.
    with worker(tmp_path, f"{queue}-1", "a") as first, worker(tmp_path, queue, "b"):
        app.send_task("shop.charge", ["42"], task_id="message-1", queue=f"{queue}-1")
        eventually("one is at it", lambda: log() == [f"in {first.pid}"])
        app.send_task("shop.charge", ["42"], task_id="message-1", queue=queue)
        killed(first)
        eventually("the other one has taken over", lambda: len(log()) == 2)
        assert log()[1] != log()[0]
        go()
        eventually("it has finished", lambda: log()[-1] == "out")
        app.send_task("shop.charge", ["42"], task_id="message-1", queue=queue)
        for fail in (True, False, False):
            app.send_task("shop.bill", ["7"], {"fail": fail}, queue=queue)
        app.send_task("shop.bill", ["8"], queue=queue)
        eventually("the last one is done", lambda: log()[-1] == "bill 8")
        assert log()[2:] == ["out", "bill 7", "bill 7", "bill 8"]
        receipts = [app.send_task("shop.receipt", ["7"], queue=queue).get(timeout=PATIENCE) for _ in range(2)]
        assert receipts == [{"number": "7", "lines": [1, 2]}] * 2 and log()[6:] == ["receipt 7"]
    app.close()


def test_a_celery_task_is_a_function_as_well(log_of: Any, redis: str) -> None:
    from celery import Celery

    from leasehold.contrib.celery import once

    app = Celery("plain", set_as_current=True)
    calls: list[str] = []

    @app.task(name="plain.each")  # type: ignore[untyped-decorator]
    @once()
    def each() -> None:
        calls.append("each")

    @app.task(name="plain.named")  # type: ignore[untyped-decorator]
    @once("plain-{what}", keep=3600, ttl=1)
    def named(what: str) -> str:
        calls.append(what)
        if what == "nested":
            named(what)
        return what.upper()

    @app.task(name="plain.saved")  # type: ignore[untyped-decorator]
    @once("saved-{what}", keep=3600, ttl=1, save_result=True)
    def saved(what: Any) -> Any:
        calls.append("saved")
        return "x" * 5000 if what == "long" else what

    for what in ("a", None, 7):
        assert saved(what) == saved(what) == what
    with pytest.raises(leasehold.ResultNotKeptError):
        saved("long")
    assert saved("long") is None, "its result was not kept, and the work is done"
    assert calls == ["saved"] * 4
    calls.clear()
    each()
    each()
    assert (named("a"), named("a")) == ("A", None)
    with pytest.raises(leasehold.LockBusyError):
        named("nested")
    assert calls == ["each", "each", "a", "nested"]

    @once()
    def part() -> None:
        calls.append("part")

    @app.task(name="plain.whole")  # type: ignore[untyped-decorator]
    def whole() -> None:
        each()
        part()

    with pytest.raises(leasehold.ConfigError, match="name the run"):
        whole.apply(throw=True)
    assert calls[4:] == ["each"]
    with pytest.raises(leasehold.ConfigError, match="which is not a parameter"):
        once("{nothing}", keep=3600)(lambda what: None)
    app.close()


def test_a_celery_task_whose_result_is_not_settled_is_tried_again() -> None:
    from leasehold.contrib.celery import _busy

    unsettled = AlreadyDone(at=0, owner=None, token=1, left=1, result=leasehold.NoResult.UNSETTLED)
    assert "ask again" in str(_busy(unsettled, True)) and _busy(unsettled, False) is None
    assert _busy(AlreadyDone(at=0, owner=None, token=1, left=1), True) is None


def test_several_celery_beats_send_each_entry_once(log_of: Any, redis: str, tmp_path: Path) -> None:
    app = shop(tmp_path, "beat-log")
    queue = f"beat-{uuid.uuid4()}"
    source = (tmp_path / "shop.py").read_text()
    (tmp_path / "shop.py").write_text(f"{source}\napp.conf.task_default_queue = {queue!r}\n")

    def beat(name: str) -> Any:
        command = ("celery", "-A", "shop", "beat", "--scheduler", "leasehold.contrib.celery:Scheduler", "-s", name)
        return running(*command, "--pidfile", f"{name}.pid", "--max-interval", "1", cwd=tmp_path)

    with redis_py.Redis.from_url(redis) as server, beat("a") as first, beat("b"), beat("c"):
        began = time.time()
        eventually("three are sent", lambda: server.llen(queue) >= 3)
        sent, lasted = server.llen(queue), time.time() - began
        assert sent <= lasted / 2 + 2, "one in each period of 2 s"
        killed(first)
        eventually("the others go on", lambda: server.llen(queue) >= sent + 3)
        assert server.llen(queue) <= (time.time() - began) / 2 + 2
    app.close()


def test_a_celery_crontab_has_a_key_for_each_of_its_times() -> None:
    from datetime import datetime, timezone
    from types import SimpleNamespace

    from celery.schedules import crontab, schedule

    from leasehold.contrib.celery import _occurrence

    nightly = crontab(hour=2, minute=0)
    for begun in (datetime(2026, 11, 23, 2, 0, 5, tzinfo=timezone.utc), datetime(2026, 11, 23, 12, tzinfo=timezone.utc)):
        assert _occurrence(SimpleNamespace(schedule=nightly, last_run_at=begun)) == {"key": "2026-11-24T02:00Z"}
    hourly = SimpleNamespace(schedule=schedule(3600), last_run_at=None)
    assert _occurrence(hourly)["every"] == timedelta(hours=1)


SCHEDULER = """
from apscheduler.schedulers.background import BackgroundScheduler
from leasehold.contrib.apscheduler import OnceExecutor
import datetime

def work():
    log(f"in {os.getpid()}")
    wait()
    log("out")

def fails():
    log("fails")
    1 / 0

at = datetime.datetime.fromtimestamp(float(sys.argv[2]), datetime.timezone.utc)
scheduler = BackgroundScheduler(executors={"default": OnceExecutor(sys.argv[1], ttl=1)})
scheduler.start()
scheduler.add_job(work, "date", run_date=at, id="work", misfire_grace_time=60)
print("ready", flush=True)
sys.stdin.readline()
scheduler.shutdown()
print("ended", flush=True)
"""


def test_several_apschedulers_run_a_job_once(log_of: Any, redis: str) -> None:
    log, go = log_of("apscheduler-log")
    at = str(time.time())
    script = f"LOG = 'apscheduler-log'\n{LOGS}{SCHEDULER}"
    all_of_them = [start(script, redis, at) for _ in range(3)]
    schedulers = {process.pid: process for process in all_of_them}
    try:
        assert all(says(process) == "ready" for process in schedulers.values())
        eventually("one runs it", lambda: len(log()) == 1)
        victim = schedulers.pop(int(log()[0].split()[1]))
        victim.kill()
        victim.communicate()
        eventually("another one has taken over", lambda: len(log()) == 2)
        runner = schedulers.pop(int(log()[1].split()[1]))
        (other,) = schedulers.values()
        # It stands by no longer.
        said, complained = other.communicate("end\n", timeout=PATIENCE)
        assert (said.strip(), complained) == ("ended", "")
        go()
        eventually("it has finished", lambda: log()[-1] == "out")
        said, complained = runner.communicate("end\n", timeout=PATIENCE)
        assert (said.strip(), complained) == ("ended", "") and len(log()) == 3
    finally:
        for process in all_of_them:
            process.kill()
            process.communicate()


def test_an_apscheduler_job_that_raises_leaves_no_completion(memory: str, caplog: pytest.LogCaptureFixture) -> None:
    from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_EXECUTED
    from apscheduler.schedulers.background import BackgroundScheduler

    from leasehold.contrib.apscheduler import OnceExecutor

    told: list[tuple[str, int]] = []
    fails = iter([True, False])

    def work() -> None:
        if next(fails):
            raise ZeroDivisionError

    executor = OnceExecutor(memory, ttl=1, wait=timedelta(seconds=5))
    scheduler = BackgroundScheduler(executors={"default": executor})
    scheduler.add_listener(lambda event: told.append((event.job_id, event.code)), EVENT_JOB_ERROR | EVENT_JOB_EXECUTED)
    scheduler.start()
    try:
        every = {"trigger": "interval", "days": 20_000, "id": "work"}
        for n in range(3):
            scheduler.add_job(work, **every, next_run_time=scheduler_now())
            eventually("it has run", lambda: len(told) == min(n, 1) + 1)
            scheduler.remove_all_jobs()
        scheduler.add_job(work, "cron", minute="*", jitter=5, id="jitter", next_run_time=scheduler_now())
        eventually("a jitter is refused", lambda: len(told) == 3)
        assert "job jitter has a jitter" in caplog.text
        assert told == [("work", EVENT_JOB_ERROR), ("work", EVENT_JOB_EXECUTED), ("jitter", EVENT_JOB_ERROR)]
        events = executor._run(scheduler.get_job("jitter"), [scheduler_now(), scheduler_now()])
        assert [event.code for event in events] == [EVENT_JOB_ERROR] * 2, "one time does not keep the others from theirs"
    finally:
        scheduler.shutdown()
    with pytest.raises(leasehold.ConfigError, match="leave out every"):
        OnceExecutor(memory, every=60)


def scheduler_now() -> Any:
    from datetime import datetime, timezone

    return datetime.now(timezone.utc)


COMMAND = """
from django.conf import settings
settings.configure(LEASEHOLD_STORE=sys.argv[1])
import django
django.setup()
from django.core.management import CommandError, call_command
from django.core.management.base import BaseCommand
from leasehold.contrib.django import OnceMixin

class Command(OnceMixin, BaseCommand):
    once_name, once = "report", {"key": "monday", "ttl": 1}
    def handle(self, *args, **options):
        print("handles", self.run.token, flush=True)
        sys.stdin.readline()

try:
    call_command(Command())
except CommandError as error:
    print(error.returncode, error, flush=True)
"""


def test_a_django_command_is_done_once(redis: str) -> None:
    first = start(COMMAND, redis)
    token = int(says(first).removeprefix("handles "))
    second = start(COMMAND, redis)
    said, _ = second.communicate(timeout=PATIENCE)
    assert said.startswith("75 report runs elsewhere: held by ") and f"token {token}" in said
    first.kill()
    first.communicate()
    with connect(redis) as client:
        eventually("its lease is over", lambda: client.inspect_run("report", "monday").holder is None)
    third = start(COMMAND, redis)
    assert int(says(third).removeprefix("handles ")) > token
    assert third.communicate("end\n", timeout=PATIENCE) == ("", "") and third.returncode == 0
    fourth = start(COMMAND, redis)
    said, complained = fourth.communicate(timeout=PATIENCE)
    assert said == "" and complained.startswith("report: done already by ") and fourth.returncode == 0


COUNT = """
from django.conf import settings
settings.configure(LEASEHOLD_STORE=sys.argv[1])
import django
django.setup()
from django.core.management import call_command
from django.core.management.base import BaseCommand
from leasehold.contrib.django import OnceMixin

class Command(OnceMixin, BaseCommand):
    once_name, once, once_saves_output = sys.argv[2], {"key": "monday", "ttl": 1}, True
    def handle(self, *args, **options):
        return None if self.once_name == "silent" else f"counted under {self.run.token}"

given = call_command(Command())
print(f"gave {given}", flush=True)
"""


def test_a_django_command_writes_what_the_first_one_has_written(redis: str) -> None:
    for name in ("count", "silent"):
        (first, _), (second, complained) = (start(COUNT, redis, name).communicate(timeout=PATIENCE) for _ in range(2))
        assert first == second and complained.startswith(f"{name}: done already by ")
        assert first == "gave None\n" if name == "silent" else "counted under " in first and "gave counted" in first


def test_a_django_function_is_called_once(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from leasehold.contrib import django as adapter

    monkeypatch.setattr(adapter, "_stores", lambda: memory)

    @adapter.once("welcome-{user}", keep=604_800)
    def welcome(user: int) -> str:
        return f"welcome, {user}"

    assert welcome(1) == Ran("welcome, 1") and isinstance(welcome(1), AlreadyDone) and welcome(2)
    assert getattr(welcome(1), "result", None) is leasehold.NoResult.NONE

    @adapter.once("number-{order}", keep=604_800, save_result=True)
    def number(order: int) -> dict[str, Any]:
        return {"order": order, "lines": (1, 2)}

    kept = {"order": 1, "lines": [1, 2]}
    assert number(1) == Ran(kept)
    assert getattr(number(1), "result", None) == kept

    class Base:
        def execute(self, *args: Any, **options: Any) -> str:
            return f"token {self.run.token}"  # type: ignore[attr-defined]

    class Command(adapter.OnceMixin, Base):
        once = {"cooldown": 3600}

    said = io.StringIO()
    assert str(Command().execute()).startswith("token ")
    assert Command().execute(stderr=said) is None and "test_contrib: done already by" in said.getvalue()


def test_a_process_has_one_client_for_each_store(memory: str) -> None:
    from leasehold.contrib._clients import _clients, client_of

    client = client_of(memory)
    assert client_of(memory) is client
    # As in a forked child.
    _clients[os.getpid() + 1, repr(memory)] = client
    assert client_of(memory) is client and client_of(f"{memory}-2") is not client

