"""Logging and metrics: their contents, their listeners, and that they delay nothing."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PATIENCE, TTL, connect, eventually, unix

import leasehold
import leasehold.metrics
from leasehold import _native, _observe
from leasehold.metrics import Sample


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    logger = logging.getLogger("leasehold")
    before = logger.level
    yield logger
    logger.setLevel(before)
    _observe.look()


@pytest.fixture
def samples() -> Iterator[list[Sample]]:
    taken: list[Sample] = []
    leasehold.metrics.subscribe(taken.append)
    yield taken
    leasehold.metrics.unsubscribe(taken.append)


def listen(caplog: pytest.LogCaptureFixture, level: int) -> None:
    caplog.set_level(level, "leasehold")
    _observe.look()


def told(caplog: pytest.LogCaptureFixture, event: str, resource: str) -> logging.LogRecord:
    def seen() -> list[logging.LogRecord]:
        fields = {"event": event, "resource": resource}
        return [record for record in tuple(caplog.records) if fields.items() <= vars(record).items()]

    eventually(f"{event} of {resource} is told", lambda: bool(seen()))
    return seen()[0]


def test_events_are_records_with_fields(
    memory: str, name: str, logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    listen(caplog, logging.DEBUG)
    began = time.time()
    with connect(memory) as client, connect(memory) as other:
        lease = client.acquire(name, ttl=TTL, owner="worker-1")
        record = told(caplog, "lock.acquired", name)
        fields = vars(record)
        assert (record.name, record.levelno, fields["token"], fields["owner"]) == (
            "leasehold",
            logging.INFO,
            lease.token,
            "worker-1",
        )
        assert 0 <= fields["wait_s"] < PATIENCE and began - 1 <= record.created <= time.time() + 1
        assert record.getMessage().startswith("lock.acquired ") and repr(name) in record.getMessage()
        assert other.try_acquire(name) is None
        assert vars(told(caplog, "lock.contended", name))["holder"] == "worker-1"
        lease.release()
        fields = vars(told(caplog, "lock.released", name))
        assert fields["token"] == lease.token and 0 <= fields["held_s"] < PATIENCE
        short = client.acquire(f"{name}-short", ttl=3, renew=False)
        short.lost.wait(PATIENCE)
        told(caplog, "lock.expiring", f"{name}-short")
        record = told(caplog, "lock.lost", f"{name}-short")
        fields = vars(record)
        assert (record.levelno, fields["reason"], fields["token"]) == (logging.ERROR, "expired", short.token)
    assert "nonce" not in caplog.text.lower()


def test_a_failed_renewal_is_reported_without_credentials(
    redis: str, name: str, logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    import redis as redis_py

    listen(caplog, logging.DEBUG)
    with redis_py.Redis.from_url(redis) as server:
        server.acl_setuser("worker", enabled=True, passwords=["+hunter2"], keys=["*"], channels=["*"], commands=["+@all"])
        url = redis.replace("redis://", "redis://worker:hunter2@")
        client = connect(url)
        lease = client.acquire(name, ttl=0.6)
        server.acl_setuser("worker", reset_passwords=True, commands=["-@all"])
        assert lease.lost.wait(PATIENCE)
        fields = vars(told(caplog, "lock.renew_late", name))
        assert fields["fault"] and fields["token"] == lease.token
        told(caplog, "lock.lost", name)
        del lease, client
        server.acl_deluser("worker")
    assert "hunter2" not in caplog.text


def test_the_level_is_followed_while_clients_are_connected(
    memory: str, name: str, logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    with connect(memory) as client:
        listen(caplog, logging.ERROR)
        client.acquire(name, ttl=TTL).release()
        # The level is checked now and then, without a call.
        caplog.set_level(logging.INFO, "leasehold")

        def again() -> bool:
            client.acquire(f"{name}-again", ttl=TTL).release()
            return any(vars(record).get("resource") == f"{name}-again" for record in tuple(caplog.records))

        eventually("the new level is noticed", again)
        assert name not in [vars(record).get("resource") for record in caplog.records]
        assert "lock.contended" not in caplog.text


def test_a_handler_that_hangs_delays_no_lock(
    memory: str, name: str, logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    hangs, goes_on = threading.Event(), threading.Event()

    class Hanging(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if vars(record).get("resource") == name:
                hangs.set()
                goes_on.wait(PATIENCE)

    handler = Hanging()
    logger.addHandler(handler)
    listen(caplog, logging.INFO)
    try:
        with connect(memory) as client:
            lease = client.acquire(name, ttl=TTL)
            assert hangs.wait(PATIENCE)
            client.acquire(f"{name}-next", ttl=TTL).release()
            # Renewed while nobody fetches events.
            granted = lease.remaining()
            eventually("time passes", lambda: lease.remaining() < granted - TTL / 8)
            before = lease.remaining()
            eventually("it is renewed", lambda: lease.remaining() > before)
            lease.check()
            # Events above the limit are dropped, and that is reported.
            for _ in range(6_000):
                client.acquire(f"{name}-many", ttl=TTL).release()
            goes_on.set()
            lease.release()
        eventually("what was dropped is told", lambda: "lock.events_dropped" in caplog.text)
    finally:
        goes_on.set()
        logger.removeHandler(handler)


def test_exceptions_of_a_handler_are_printed_and_delivery_continues(
    memory: str, name: str, logger: logging.Logger, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            if vars(record).get("event") == "lock.acquired":
                raise ZeroDivisionError
            return True

    broken = Broken()
    logger.addFilter(broken)
    listen(caplog, logging.INFO)
    try:
        with connect(memory) as client:
            client.acquire(name, ttl=TTL).release()
            told(caplog, "lock.released", name)
        assert "ZeroDivisionError" in capsys.readouterr().err
    finally:
        logger.removeFilter(broken)


def test_metrics_are_samples_without_names_of_resources(memory: str, name: str, samples: list[Sample]) -> None:
    with connect(memory) as client:
        with client.lock(name, ttl=0.6) as lease:
            assert client.try_acquire(name) is None
            eventually("a renewal is told", lambda: has(samples, "leasehold_renew_total", outcome="renewed"))
            lease.check()
        lost = client.acquire(f"{name}-short", ttl=0.1, renew=False)
        lost.lost.wait(PATIENCE)
    for counter, labels in [
        ("leasehold_acquire_total", {"outcome": "acquired"}),
        ("leasehold_acquire_total", {"outcome": "busy"}),
        ("leasehold_release_total", {"outcome": "confirmed"}),
        ("leasehold_lost_total", {"reason": "expired"}),
    ]:
        eventually(counter, lambda: has(samples, counter, **labels))
    for histogram in ("wait", "hold", "renew_duration", "validity_left"):
        eventually(histogram, lambda: has(samples, f"leasehold_{histogram}_seconds"))
    for sample in samples:
        assert sample.kind == ("counter" if sample.name.endswith("_total") else "histogram")
        assert 0 <= sample.value < PATIENCE and name not in repr(sample)


def has(samples: list[Sample], name: str, **labels: str) -> bool:
    return any(sample.name == name and sample.labels == labels for sample in tuple(samples))


def count(samples: list[Sample], name: str) -> int:
    return sum(sample.name == name for sample in tuple(samples))


def test_an_unsubscribed_observer_gets_no_more_samples(
    memory: str, name: str, samples: list[Sample]
) -> None:
    told: list[Sample] = []
    leasehold.metrics.subscribe(told.append)
    with connect(memory) as client:
        client.acquire(name, ttl=TTL).release()
        eventually("it is told", lambda: count(told, "leasehold_acquire_total") == 1)
        leasehold.metrics.unsubscribe(told.append)
        client.acquire(name, ttl=TTL).release()
        # Later samples have been delivered to others by now.
        eventually("others are told", lambda: count(samples, "leasehold_release_total") == 2)
    assert count(told, "leasehold_acquire_total") == 1


def test_no_samples_are_kept_for_a_later_observer(memory: str, name: str) -> None:
    told: list[Sample] = []
    with connect(memory) as client:
        client.acquire(name, ttl=TTL).release()
        leasehold.metrics.subscribe(told.append)
        try:
            client.acquire(f"{name}-next", ttl=TTL).release()
            eventually("it is told", lambda: count(told, "leasehold_release_total") >= 1)
        finally:
            leasehold.metrics.unsubscribe(told.append)
    assert count(told, "leasehold_acquire_total") == 1


def test_an_observer_that_raises_does_not_affect_others(
    memory: str, name: str, samples: list[Sample], capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(sample: Sample) -> None:
        raise ZeroDivisionError

    with pytest.raises(TypeError):
        leasehold.metrics.subscribe(3)  # type: ignore[arg-type]
    leasehold.metrics.subscribe(broken)
    try:
        with connect(memory) as client:
            client.acquire(name, ttl=TTL).release()
            eventually("the others are told", lambda: has(samples, "leasehold_release_total", outcome="confirmed"))
        assert "ZeroDivisionError" in capsys.readouterr().err
    finally:
        leasehold.metrics.unsubscribe(broken)
    with pytest.raises(ValueError):
        leasehold.metrics.unsubscribe(broken)


def script(text: str) -> str:
    """The standard error output of a separate script."""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_system_exit_in_a_listener_has_no_effect(
    memory: str, name: str, samples: list[Sample], capsys: pytest.CaptureFixture[str]
) -> None:
    def leave(sample: Sample) -> None:
        sys.exit("enough")

    leasehold.metrics.subscribe(leave)
    try:
        with connect(memory) as client:
            for outcome in ("acquired", "busy"):
                lease = client.try_acquire(name, ttl=TTL)
                eventually("the others are told", lambda: has(samples, "leasehold_acquire_total", outcome=outcome))
                if outcome == "acquired":
                    held = lease
            assert held is not None
            held.release()
        assert "SystemExit: enough" in capsys.readouterr().err
    finally:
        leasehold.metrics.unsubscribe(leave)


def test_a_handler_that_hangs_does_not_delay_the_exit() -> None:
    said = script(
        """
import leasehold, logging, sys, threading
class Hanging(logging.Handler):
    def emit(self, record):
        assert threading.current_thread().name == "leasehold-observe"
        if record.event == "lock.released":
            threading.Event().wait()
logging.basicConfig(level=logging.INFO, handlers=[Hanging()])
sys.modules["kept"] = leasehold.connect("memory:").acquire("job")
"""
    )
    assert said == ""


def test_nothing_is_recorded_without_listeners(name: str) -> None:
    said = script(
        """
import leasehold, sys, threading
client = leasehold.connect("memory:")
client.acquire("job", ttl=0.1, renew=False).lost.wait(60)
assert "logging" not in sys.modules, "importing it takes longer than all else"
assert not [thread for thread in threading.enumerate() if thread.name == "leasehold-observe"]
"""
    )
    assert said == ""


def test_a_long_wait_is_told_of_without_a_logger_unless_that_is_off() -> None:
    waits = """
import leasehold
held = leasehold.connect("memory:cells").acquire("cell")
try:
    leasehold.connect("memory:cells").acquire("cell", wait=6)
except leasehold.LockTimeoutError:
    pass
"""
    said = script(waits)
    assert said.startswith('leasehold: lock.waiting: "cell" for 5 s so far: another lease of this process holds it (held by '), said
    assert said.count("lock.waiting") == 1
    assert "lock.waiting" in script(f"import logging{waits}")
    assert script(f"import logging; logging.disable(){waits}") == ""


def test_a_broken_logger_does_not_prevent_a_lock() -> None:
    said = script(
        """
import logging
class Broken(logging.Logger):
    def isEnabledFor(self, level):
        raise ZeroDivisionError
logging.setLoggerClass(Broken)
import leasehold
leasehold.connect("memory:").acquire("job").release()
"""
    )
    assert "ZeroDivisionError" in said


def test_an_exit_is_quiet_while_another_thread_imports_the_delivery() -> None:
    # The state of the module as that thread has it when it has just begun.
    begun = "sys.modules['leasehold._observe'] = types.ModuleType('leasehold._observe')"
    assert script(f"import leasehold, sys, types; leasehold.connect('memory:'); {begun}") == ""


def test_pending_events_are_delivered_before_the_exit() -> None:
    said = script(
        """
import leasehold, logging, sys, time
class Slow(logging.StreamHandler):
    def emit(self, record):
        # The fault: delivery takes longer than the rest of the program.
        time.sleep(0.05)
        super().emit(record)
logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[Slow()])
client = leasehold.connect("memory:")
sys.modules["kept"] = [client.acquire("first"), client.acquire("last")]
"""
    )
    assert "'first'" in said and "'last'" in said


def test_a_loss_is_printed_without_logging_set_up() -> None:
    said = script(
        """
import io, leasehold, logging, queue, sys
told = queue.SimpleQueue()
class Told(io.StringIO):
    def flush(self):
        if "lock.lost" in self.getvalue():
            told.put(self.getvalue())
shown, sys.stderr = sys.stderr, Told()
lease = leasehold.connect("memory:").acquire("job", ttl=0.1, renew=False)
print(told.get(timeout=60), file=shown)
"""
    )
    assert "lock.lost: the work must stop" in said and "'job'" in said and "lock.acquired" not in said


@unix
@pytest.mark.parametrize("uses", ["leasehold.connect('memory:').acquire('parent').release()", ""])
@pytest.mark.parametrize(
    "listens", ["logging.basicConfig(level=logging.INFO, handlers=[Told()])", "leasehold.metrics.subscribe(shown)"]
)
def test_a_forked_child_logs_its_own_events(listens: str, uses: str) -> None:
    said = script(
        f"""
import faulthandler, leasehold, leasehold.metrics, logging, os, queue, sys, warnings
warnings.simplefilter("ignore", DeprecationWarning)
told = queue.SimpleQueue()
def shown(sample):
    print(os.getpid(), sample.name, file=sys.stderr, flush=True)
    told.put(sample)
class Told(logging.StreamHandler):
    def emit(self, record):
        super().emit(record)
        told.put(record)
{listens}
{uses}
child = os.fork()
if child == 0:
    # One that hangs says where.
    faulthandler.dump_traceback_later({PATIENCE / 2}, exit=True)
    told = queue.SimpleQueue()
    client = leasehold.connect("memory:")
    client.acquire("childs").release()
    told.get()
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0
print("child was", child, file=sys.stderr)
"""
    )
    child = said.split("child was ")[1].strip()
    assert "'childs'" in said or f"{child} leasehold_acquire_total" in said


@unix
def test_a_child_forked_during_delivery_logs_its_own_events() -> None:
    said = script(
        """
import leasehold, logging, os, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
from leasehold import _observe
told = threading.Event()
class Told(logging.StreamHandler):
    def emit(self, record):
        super().emit(record)
        told.set()
logging.basicConfig(level=logging.INFO, format="%(process)d %(message)s", handlers=[Told()])
leasehold.connect("memory:").acquire("parents").release()
assert told.wait(60)
held, forked = threading.Event(), threading.Event()
def hold():
    # As the delivering thread does, at any moment.
    with _observe._starting, _observe._guard:
        _observe._fetched.append(("lock.acquired", 20, None, "of the parent's", {}))
        held.set()
        forked.wait(60)
        _observe._fetched.clear()
thread = threading.Thread(target=hold)
thread.start()
assert held.wait(60)
child = os.fork()
if child == 0:
    told.clear()
    leasehold.connect("memory:").acquire("childs").release()
    os._exit(0 if told.wait(60) else 1)
_, status = os.waitpid(child, 0)
forked.set()
thread.join()
assert status == 0
print("child was", child, file=sys.stderr)
"""
    )
    child = said.split("child was ")[1].strip()
    assert any(line.startswith(child) and "'childs'" in line for line in said.splitlines())
    assert not any(line.startswith(child) and "of the parent's" in line for line in said.splitlines())


@unix
def test_levels_outside_the_usual_range_are_accepted() -> None:
    assert _native.observe(100, False) == _native.observe(0, False)
    _observe.look()
    assert os.get_blocking(_native.observe(100, False))
    _observe.look()


@pytest.mark.parametrize("modules", ["logging, leasehold", "leasehold"])
def test_a_default_store_is_reported_and_can_be_forbidden(modules: str, tmp_path: Path) -> None:
    program = f"import {modules}; leasehold.connect().close()"

    def run(demand: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name != "LEASEHOLD_STORE"}
        environment |= {"XDG_STATE_HOME": str(tmp_path), "LEASEHOLD_REQUIRE_STORE": demand}
        return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)

    refused = run("1")
    assert refused.returncode == 1 and "ConfigError: no store is named" in refused.stderr
    assert not list(tmp_path.iterdir())
    told = run("")
    assert told.returncode == 0 and told.stderr.count("no store is named") == 1
    assert str(tmp_path) in told.stderr


@pytest.mark.parametrize("modules, times", [("logging, leasehold", 2), ("leasehold", 1)])
def test_a_warning_at_connect_is_shown_without_a_logger(modules: str, times: int, tmp_path: Path) -> None:
    # Of two nodes both are needed.
    program = (
        f"import {modules}\nfor _ in range(2):\n  leasehold.connect(['sqlite:a.db', 'sqlite:b.db'], create_quorum=True).close()"
    )
    told = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert told.returncode == 0 and told.stderr.count("survives no failure") == times, told.stderr
