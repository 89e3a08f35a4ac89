"""Processes patched by gevent or eventlet, with the real packages: refused at once, with advice."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import urllib.request
from pathlib import Path

import pytest
import redis as redis_py
from conftest import PATIENCE, eventually
from test_recipes import running

PATCHES = {
    "gevent": "from gevent import monkey\nmonkey.patch_all()\n",
    # It emits a deprecation warning.
    "eventlet": "import warnings\nwarnings.simplefilter('ignore')\nimport eventlet\neventlet.monkey_patch()\n",
}
CONNECTS = {
    "client": "leasehold.connect('memory:')",
    "asyncio": "leasehold.aio.connect('memory:').send(None)",
    "redis-py": "leasehold.compat.redis_py.Lock('redis://localhost', 'job').acquire()",
}
IMPORTS = "import leasehold, leasehold.aio, leasehold.compat.redis_py\n"
TRY = """
try:
    {connect}
except leasehold.ConfigError as error:
    print(error)
"""


def run(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("connects", CONNECTS)
@pytest.mark.parametrize("first", ["patched", "imported"])
@pytest.mark.parametrize("library", PATCHES)
def test_a_patched_process_is_refused_with_advice(library: str, first: str, connects: str) -> None:
    before = PATCHES[library] + IMPORTS if first == "patched" else IMPORTS + PATCHES[library]
    said = run(before + TRY.format(connect=CONNECTS[connects]))
    assert said.startswith(f"{library} has patched this process") and "--pool threads" in said
    assert "from greenlets `leasehold serve`" in said


def test_a_process_that_only_uses_gevent_is_not_refused() -> None:
    assert run(IMPORTS + "import gevent, gevent.monkey\nprint(leasehold.connect('memory:').acquire('job').token > 0)") == "True"


def test_callbacks_run_on_threads_though_they_are_patched_later() -> None:
    script = """
    import leasehold, queue
    client = leasehold.connect("memory:")
    told = queue.SimpleQueue()
    from gevent import monkey
    monkey.patch_all()
    lease = client.acquire("job", ttl=0.1, renew=False)
    lease.on_lost(told.put)
    print(type(told.get(timeout=60)).__name__)
    """
    assert run(textwrap.dedent(script)) == "LeaseLostError"


@pytest.mark.parametrize("pool", PATCHES)
def test_celery_shows_the_refusal(pool: str, redis: str, tmp_path: Path) -> None:
    tasks = """
    import celery, leasehold, os, redis
    app = celery.Celery("tasks", broker=os.environ["STORE"])

    @app.task
    def work():
        try:
            leasehold.connect(os.environ["STORE"])
        except leasehold.ConfigError as error:
            redis.Redis.from_url(os.environ["STORE"]).rpush(os.environ["LOG"], str(error))
    """
    (tmp_path / "tasks.py").write_text(textwrap.dedent(tasks))
    log, queue = f"refused-by-{pool}", f"celery-{pool}"
    command = ("celery", "-A", "tasks", "worker", "--pool", pool, "-c", "2", "-Q", queue)
    call = ("import tasks", f"tasks.work.apply_async(queue={queue!r})")
    settings = {"STORE": redis, "LOG": log, "C_FORCE_ROOT": "1"}
    with redis_py.Redis.from_url(redis, decode_responses=True) as server:
        with running(*command, cwd=tmp_path, **settings) as process:
            done = subprocess.run(
                [sys.executable, "-c", "\n".join(call)], cwd=tmp_path, env={**os.environ, **settings}, timeout=PATIENCE
            )
            assert done.returncode == 0
            eventually("the task has ended", lambda: bool(server.llen(log)) or process.poll() is not None)
            (said,) = server.lrange(log, 0, -1)
    assert said.startswith(f"{pool} has patched this process")


def test_gunicorn_shows_the_refusal(tmp_path: Path) -> None:
    site = """
    import leasehold

    def app(environ, start_response):
        start_response("200 OK", [])
        try:
            leasehold.connect("memory:")
        except leasehold.ConfigError as error:
            return [str(error).encode()]
        return [b"connected"]
    """
    (tmp_path / "site_of.py").write_text(textwrap.dedent(site))
    settings = """
    bind = "127.0.0.1:0"

    def when_ready(server):
        print("listens on", server.LISTENERS[0].getsockname()[1], flush=True)
    """
    (tmp_path / "settings.py").write_text(textwrap.dedent(settings))
    with running("gunicorn", "-c", "settings.py", "-k", "gevent", "site_of:app", cwd=tmp_path) as arbiter:
        assert arbiter.stdout is not None
        port = int(next(line for line in arbiter.stdout if line.startswith("listens on")).split()[2])
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE) as answer:
            assert answer.read().decode().startswith("gevent has patched this process")
