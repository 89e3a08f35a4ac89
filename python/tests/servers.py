"""Servers that tests and benchmarks start for themselves."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE = 60.0
"""The longest wait of a test for something that must happen, on a busy machine."""


async def until(holds: Callable[[], object]) -> None:
    """Polls until a condition is true, and lets the event loop run meanwhile."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"not within {PATIENCE} s"
        await asyncio.sleep(0.01)


def eventually(what: str, holds: Callable[[], bool]) -> None:
    """Polls until a condition is true."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"{what}: not within {PATIENCE} s"
        time.sleep(0.01)


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


def start_webdis(folder: Path, redis_port: int) -> tuple[subprocess.Popen[bytes], int]:
    for _ in range(10):
        port = free_port()
        where = {"redis_host": "127.0.0.1", "redis_port": redis_port, "http_host": "127.0.0.1", "http_port": port}
        quiet = {"threads": 1, "daemonize": False, "verbosity": 0, "logfile": str(folder / "log")}
        config = folder / "webdis.json"
        config.write_text(json.dumps({**where, **quiet}))
        server = subprocess.Popen(["webdis", str(config)], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if answers(server, port, b"GET /PING HTTP/1.0\r\n\r\n", b"HTTP/"):
            return server, port
        server.kill()
        server.wait()
    raise RuntimeError("webdis does not start")


def start_etcd(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """One member, without users."""
    for number in range(10):
        port = free_port()
        client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{free_port()}"
        settings = {
            "name": "one",
            "data-dir": folder / str(number),
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"one={peer}",
            "logger": "zap",
            "log-outputs": "/dev/null",
        }
        args = ["etcd", "--unsafe-no-fsync", *(f"--{name}={value}" for name, value in settings.items())]
        server = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if answers(server, port, b"GET /health HTTP/1.0\r\n\r\n", b"HTTP/1.0 200"):
            return server, port
        server.kill()
        server.wait()
    raise RuntimeError("etcd does not start")


def start_postgres(folder: Path) -> subprocess.Popen[bytes]:
    """Listens on a socket in the folder alone. It is ended by SIGQUIT: a kill would leave its shared memory behind."""
    # Debian does not put the programs on the path.
    versions = {int(path.parts[-3]): path for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")}
    programs = (versions[max(versions)] if versions else Path(shutil.which("postgres") or "postgres")).parent
    options: dict[str, Any] = {}
    if sys.platform != "win32" and os.getuid() == 0:
        import pwd

        # It refuses to run as root, and its user needs a name.
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
        options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": folder}
    data, log = str(folder / "data"), folder / "log"
    made = ["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "-D", data]
    quick = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB"]
    with log.open("wb") as said:
        options |= {"stdout": said, "stderr": said}
        subprocess.run([str(programs / "initdb"), *made], check=True, **options)
        server = subprocess.Popen([str(programs / "postgres"), "-D", data, "-k", str(folder), *quick], **options)
    ready = [str(programs / "pg_isready"), "--quiet", "-h", str(folder)]
    eventually("PostgreSQL answers", lambda: server.poll() is not None or subprocess.run(ready).returncode == 0)
    assert server.poll() is None, log.read_text()
    return server


def free_port() -> int:
    # Another process may take the port between its choice and the server's start.
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port: int = chosen.getsockname()[1]
        return port


def answers(server: subprocess.Popen[bytes], port: int, question: bytes, answer: bytes) -> bool:
    """True if the server listens before it exits."""

    def is_up() -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as connection:
                connection.sendall(question)
                return connection.recv(16).startswith(answer)
        except OSError:
            return False

    try:
        eventually(f"the server on port {port} answers", lambda: server.poll() is not None or is_up())
    except AssertionError:
        return False
    return server.poll() is None
