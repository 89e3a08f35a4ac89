"""Redis as the programs meet it: alone, under a Sentinel that hands it over, and over TLS with certificates that change."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from service import PATIENCE, BrokenPromiseError

NAME = "main"
CHILDREN: list[subprocess.Popen[bytes]] = []
"""All that was started here."""


def start(args: list[str], **options: Any) -> subprocess.Popen[bytes]:
    CHILDREN.append(subprocess.Popen(args, **options))
    return CHILDREN[-1]


def end_all() -> None:
    for child in list(CHILDREN):
        if child.poll() is None:
            child.kill()


def eventually(what: str, holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        with contextlib.suppress(ConnectionError):
            if holds():
                return
        if time.monotonic() > end:
            raise BrokenPromiseError(f"{what}: not within {PATIENCE:.0f} s")
        time.sleep(0.02)


def insist(port: int, *words: str) -> None:
    """A command that may be repeated: a server that changes its role closes connections."""

    def is_done() -> bool:
        ask(port, *words)
        return True

    eventually(words[0], is_done)


def free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port: int = chosen.getsockname()[1]
        return port


def ask(port: int, *words: str) -> Any:
    """One command on its own connection."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection, connection.makefile("rb") as answer:
        parts = [f"*{len(words)}\r\n", *(f"${len(word.encode())}\r\n{word}\r\n" for word in words)]
        connection.sendall("".join(parts).encode())
        return _reply(answer)


def _reply(answer: Any) -> Any:
    line = answer.readline().decode().rstrip("\r\n")
    if not line:
        raise ConnectionResetError("closed before its answer")
    kind, rest = line[:1], line[1:]
    if kind == "$":
        return None if rest == "-1" else answer.read(int(rest) + 2)[:-2].decode()
    if kind == "*":
        return [_reply(answer) for _ in range(int(rest))]
    if kind == "-":
        raise OSError(rest)
    return int(rest) if kind == ":" else rest


class Server:
    """A redis-server, ended with its owner."""

    def __init__(self, folder: Path, name: str, options: Callable[[int], list[str]]) -> None:
        for _ in range(10):
            self.port = free_port()
            home = folder / f"{name}-{self.port}"
            home.mkdir()
            with (home / "log").open("wb") as said:
                args = ["redis-server", *options(self.port)]
                self.process = start(args, stdout=said, stderr=said, cwd=home)
            if self._answers():
                return
            self.end()
        raise RuntimeError("redis-server does not start")

    def _answers(self) -> bool:
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            try:
                return f"process_id:{self.process.pid}\r" in ask(self.port, "INFO", "server")
            except OSError:
                time.sleep(0.02)
        return False

    def end(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def plain(port: int) -> list[str]:
    return ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--repl-diskless-sync-delay", "0"]


class Store:
    """One Redis."""

    def __init__(self, folder: Path) -> None:
        self.servers = [Server(folder, "redis", plain)]
        self.url = f"redis://127.0.0.1:{self.servers[0].port}"

    def disturb(self) -> None:
        raise AssertionError("nothing happens to this one")

    def close(self) -> None:
        for server in reversed(self.servers):
            server.end()


class Watched(Store):
    """A master, its replica, and a Sentinel."""

    def __init__(self, folder: Path) -> None:
        self.master = Server(folder, "redis", plain)
        self.servers = [self.master]
        try:
            follow = ["--replicaof", "127.0.0.1", str(self.master.port)]
            self.replica = Server(folder, "redis", lambda port: [*plain(port), *follow])
            self.servers.append(self.replica)
            eventually("the replica is in sync", self._is_in_sync)
            self.sentinel = Server(folder, "sentinel", lambda port: self._watch(folder, port))
            self.servers.append(self.sentinel)
            eventually("the Sentinel knows the replica", lambda: len(ask(self.sentinel.port, "SENTINEL", "REPLICAS", NAME)) == 1)
        except BaseException:
            self.close()
            raise
        self.url = f"redis+sentinel://127.0.0.1:{self.sentinel.port}/{NAME}"

    def _watch(self, folder: Path, port: int) -> list[str]:
        config = folder / f"sentinel-{port}.conf"
        # It takes part in what is done here, and starts nothing by itself.
        lines = [f"port {port}", "bind 127.0.0.1", f"sentinel monitor {NAME} 127.0.0.1 {self.master.port} 1"]
        lines += [f"sentinel down-after-milliseconds {NAME} 600000", f"sentinel failover-timeout {NAME} 3000"]
        config.write_text("\n".join(lines) + "\n")
        return [str(config), "--sentinel"]

    def _is_in_sync(self) -> bool:
        role = ask(self.replica.port, "ROLE")
        if role[0] != "slave" or role[2] != self.master.port or role[3] != "connected":
            return False
        return bool(ask(self.master.port, "ROLE")[1] == role[4])

    def disturb(self) -> None:
        """Hands over to the replica while nobody writes, so that nothing is lost."""
        old, new = self.master, self.replica
        eventually("the replica follows", lambda: ask(new.port, "ROLE")[0:4:3] == ["slave", "connected"])
        # Longer than anything below may take; it ends with the hand-over.
        insist(old.port, "CLIENT", "PAUSE", str(int(10 * PATIENCE * 1000)), "WRITE")
        eventually("the replica is in sync", self._is_in_sync)
        eventually("the Sentinel begins", self._begin)
        address = ["127.0.0.1", str(new.port)]
        eventually("the replica is the master", lambda: ask(new.port, "ROLE")[0] == "master")
        eventually(
            "the Sentinel names it", lambda: bool(ask(self.sentinel.port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME) == address)
        )
        # Not by the Sentinel, whose own message waits for the end of the pause.
        insist(old.port, "REPLICAOF", *address)
        insist(old.port, "CLIENT", "UNPAUSE")
        self.master, self.replica = new, old

    def _begin(self) -> bool:
        try:
            ask(self.sentinel.port, "SENTINEL", "FAILOVER", NAME)
        except OSError as error:
            # The one before is not over, or the replica is not known yet.
            if str(error).startswith(("INPROG", "NOGOODSLAVE")):
                return False
            raise
        return True


class Encrypted(Store):
    """A Redis that takes certificates of a new authority, at the same paths, while clients are connected."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._issue()
        self.tls_port = free_port()
        paths = {name: str(folder / name) for name in ("ca.pem", "server.pem", "server.key")}
        tls = ["--tls-port", str(self.tls_port), "--tls-auth-clients", "no", "--tls-ca-cert-file", paths["ca.pem"]]
        self._files = ["tls-cert-file", paths["server.pem"], "tls-key-file", paths["server.key"], "tls-ca-cert-file", paths["ca.pem"]]
        tls += ["--tls-cert-file", paths["server.pem"], "--tls-key-file", paths["server.key"]]
        self.servers = [Server(folder, "redis", lambda port: [*plain(port), *tls])]
        self.url = f"rediss://127.0.0.1:{self.tls_port}?ca={paths['ca.pem']}"

    def disturb(self) -> None:
        before = (self.folder / "ca.pem").read_text()
        self._issue()
        port = self.servers[0].port
        ask(port, "CONFIG", "SET", *self._files)
        for kind in ("normal", "pubsub"):
            ask(port, "CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")
        if not self._is_trusted((self.folder / "ca.pem").read_text()) or self._is_trusted(before):
            raise RuntimeError("the server still shows its old certificate")

    def _is_trusted(self, authority: str) -> bool:
        context = ssl.create_default_context(cadata=authority)
        try:
            with socket.create_connection(("127.0.0.1", self.tls_port), PATIENCE) as connection:
                context.wrap_socket(connection, server_hostname="127.0.0.1").close()
        except ssl.SSLCertVerificationError:
            return False
        return True

    def _issue(self) -> None:
        """Files of a new authority, each of which appears whole."""
        new = self.folder / "new"
        new.mkdir(exist_ok=True)
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        who = f"/CN=authority {time.monotonic_ns()}"
        _openssl(new, "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", who)
        _openssl(new, "req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=127.0.0.1")
        (new / "names").write_text("subjectAltName=IP:127.0.0.1\n")
        signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"]
        _openssl(new, "x509", "-req", "-in", "server.csr", *signed, "-out", "server.pem")
        for name in ("ca.pem", "server.key", "server.pem"):
            os.replace(new / name, self.folder / name)


def _openssl(folder: Path, *args: str) -> None:
    done = subprocess.run(["openssl", *args], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {args[0]}: {done.stderr}")
