"""Stores for tests: in memory, in a file, and a real server."""

from __future__ import annotations

import itertools
import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import leasehold

PATIENCE = 60.0
"""How long a test waits for something that has to come, on a busy machine."""
TTL = 8.0
"""For leases that must not be lost."""
REQUEST_TIMEOUT = 5.0

_numbers = itertools.count()


def eventually(what: str, holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"{what}: not within {PATIENCE} s"
        time.sleep(0.01)


def connect(store: str) -> leasehold.Client:
    return leasehold.connect(store, request_timeout=REQUEST_TIMEOUT)


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The url of a server that is stopped when the tests are over."""
    server, port = start_redis(tmp_path_factory.mktemp("redis"))
    try:
        yield f"redis://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(PATIENCE)


@pytest.fixture(scope="session")
def webdis(redis: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The url of a Webdis in front of the Redis; it is stopped when the tests are over."""
    folder = tmp_path_factory.mktemp("webdis")
    settings = {"redis_host": "127.0.0.1", "redis_port": int(redis.rpartition(":")[2]), "http_host": "127.0.0.1"}
    for _ in range(10):
        port = free_port()
        config = folder / "webdis.json"
        quiet = {"threads": 1, "daemonize": False, "verbosity": 0, "logfile": str(folder / "log")}
        config.write_text(json.dumps({**settings, **quiet, "http_port": port}))
        server = subprocess.Popen(["webdis", str(config)], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            if answers(server, port, b"GET /PING HTTP/1.0\r\n\r\n", b"HTTP/"):
                yield f"http://127.0.0.1:{port}"
                return
        finally:
            server.terminate()
            server.wait(PATIENCE)
    raise RuntimeError("webdis does not start")


def free_port() -> int:
    # Somebody else may take it between its choice and the server's start.
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port: int = chosen.getsockname()[1]
        return port


def answers(server: subprocess.Popen[bytes], port: int, question: bytes, answer: bytes) -> bool:
    """Whether it does before it ends."""
    end = time.monotonic() + PATIENCE
    while server.poll() is None and time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as connection:
                connection.sendall(question)
                if connection.recv(16).startswith(answer):
                    return True
        except OSError:
            pass
        time.sleep(0.05)
    return False


def start_redis(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    for _ in range(10):
        port = free_port()
        args = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        server = subprocess.Popen(args, stdout=subprocess.DEVNULL)
        if answers(server, port, b"PING\r\n", b"+PONG"):
            return server, port
        server.kill()
        server.wait()
    raise RuntimeError("redis-server does not start")


@pytest.fixture
def memory() -> str:
    return f"memory:test-{next(_numbers)}"


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'locks.db'}"


@pytest.fixture(params=["memory", "sqlite", "redis"])
def store(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(request.param)
    return url


@pytest.fixture
def name() -> str:
    """The name of a lock that no other test uses."""
    return f"job-{next(_numbers)}"


@pytest.fixture
def client(store: str) -> Iterator[leasehold.Client]:
    with connect(store) as client:
        yield client
