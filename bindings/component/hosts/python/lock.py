"""Holds a lock until its input ends: lock.py COMPONENT STORE URL RESOURCE [OPTIONS].

An example of a program that runs the component itself, with the PyPI package `wasmtime` and nothing else. A program in
Python has less to write with `leasehold`, or with `leasehold.protocol` if it has a loop and sockets of its own.

STORE is `webdis`, `upstash` or `dynamodb`. Credentials come from the environment: UPSTASH_REDIS_REST_TOKEN for the
second, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, with AWS_SESSION_TOKEN or without, for the third. Each event is a
line. The status is 0 if the lock was released, 1 if it was not granted, 3 if the lease was lost, also by a mistake of
this program, and 2 for any other error.
"""

import argparse
import http.client
import os
import queue
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from wasmtime import Engine, Store
from wasmtime.component import Component, Linker, Record, Variant

CLIENT = "leasehold:protocol/client@0.1.0"
# The host chooses the numbers of its locks; this one has one.
LOCK = 1
# It has to go on counting while the machine is suspended. Elsewhere than on Linux, CLOCK_MONOTONIC does.
CLOCK = time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC
# A sleep does not count a suspension, so none is longer: after it the clock is read.
LONGEST_SLEEP_S = 1.0
# One byte more than the longest body that the component understands.
MOST_BODY = 1_048_577
MEMORY_BYTES = 256 << 20


class Machine:
    """An instance of the component, and the client in it."""

    def __init__(self, engine: Engine, component: Component) -> None:
        self.store = Store(engine)
        self.store.set_limits(memory_size=MEMORY_BYTES)
        # The component imports nothing, so nothing is linked.
        self.instance = Linker(engine).instantiate(self.store, component)
        self.interface = self.instance.get_export_index(self.store, CLIENT)
        self.client = None

    def function(self, name: str):
        index = self.instance.get_export_index(self.store, name, self.interface)
        return self.instance.get_func(self.store, index)

    def call(self, method: str, *arguments):
        return self.function(f"[method]client.{method}")(self.store, self.client, *arguments)


def loaded(file: str) -> tuple[Engine, Component]:
    """A `.cwasm` is machine code: keep it where only those can write who may change the program itself."""
    engine = Engine()
    load = Component.deserialize if file.endswith(".cwasm") else Component
    return engine, load(engine, Path(file).read_bytes())


def accepted(answer):
    """The value of a result that is no error of the WIT."""
    if isinstance(answer, Variant):
        raise ValueError(f"the component refuses: {answer}")
    return answer


def record(**fields) -> Record:
    """Names of the WIT have `-` where those of Python have `_`."""
    made = Record()
    made.__dict__.update({name.replace("_", "-"): value for name, value in fields.items()})
    return made


def monotonic_ns() -> int:
    return time.clock_gettime_ns(CLOCK)


def now() -> Record:
    return record(monotonic_ns=monotonic_ns(), unix_ms=time.time_ns() // 1_000_000)


class Host:
    """The loop around one client: clocks, randomness and an HTTP client, and no decision about locks."""

    def __init__(self, machine: Machine, store: Variant, credentials: Variant | None) -> None:
        self.machine = machine
        self.credentials = credentials
        # Functions that other threads want called by the thread of the loop.
        self.inbox: queue.SimpleQueue = queue.SimpleQueue()
        node = record(poll="acquire", watch=False, batch=None, durability=None)
        limits = record(locks=None, orphans=None, observations=None)
        config = record(nodes=[node], drift_ppm=None, request_timeout_ms=10_000, limits=limits, quorum=None)
        create = machine.function("[static]client.create-wired")
        machine.client = accepted(create(machine.store, config, [store], os.urandom(32), now()))

    def run(self):
        """Does what the component says, and yields the events of its locks."""
        while True:
            output = self.machine.call("poll-output", now())
            match output.tag:
                case "http-request":
                    # A thread for each: a server that is slow does not delay the news that a lease is lost.
                    threading.Thread(target=self.perform, args=[output.payload], daemon=True).start()
                case "event":
                    yield output.payload.event
                case "need-credentials" if self.credentials:
                    accepted(self.machine.call("set-credentials", output.payload.node, self.credentials, now()))
                case "wake-at":
                    if self.machine.call("is-idle"):
                        return
                    self.sleep(vars(output.payload)["at-ns"])
                    accepted(self.machine.call("handle-timeout", os.urandom(16), now()))

    def sleep(self, until_ns: int | None) -> None:
        """Until that instant, or until there is something in the inbox."""
        left_s = LONGEST_SLEEP_S if until_ns is None else (until_ns - monotonic_ns()) / 1e9
        with suppress(queue.Empty):
            self.inbox.get(timeout=min(max(left_s, 0), LONGEST_SLEEP_S))()

    def perform(self, request: Record) -> None:
        """Sends a request once. In doubt its fate is `unknown`: it is `not-sent` only if no byte of it has left."""
        fate, deadline_ns, url = "not-sent", vars(request)["deadline-ns"], urlsplit(request.url)
        left_s = max(deadline_ns - monotonic_ns(), 1_000_000) / 1e9
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection = kind(url.hostname, url.port, timeout=left_s)
        try:
            connection.connect()
            # By then the component has given it up.
            if monotonic_ns() >= deadline_ns:
                raise TimeoutError("the deadline has passed")
            fate = "unknown"
            response = ask(connection, url.path or "/", request)
        except Exception as error:
            # Any at all: the component would wait for a request of which it hears nothing.
            response = fault(fate, "reset" if fate == "unknown" else "unreachable", error)
        finally:
            connection.close()
        # One that comes too late is ignored.
        self.inbox.put(lambda: self.machine.call("handle-response", request.id, response, now()))


def ask(connection: http.client.HTTPConnection, path: str, request: Record) -> Variant:
    headers = {header.name: header.value for header in request.headers}
    connection.request(request.method, path, request.body, headers)
    with connection.getresponse() as response:
        body = response.read(MOST_BODY)
        if response.length and len(body) < MOST_BODY:
            raise ConnectionError("the end of the response is missing")
        headers = [record(name=name, value=value) for name, value in response.getheaders()]
        return Variant("http-response", record(status=response.status, headers=headers, body=body))


def fault(fate: str, kind: str, why) -> Variant:
    # Text from others may not be valid Unicode.
    return Variant(fate, record(kind=kind, detail=str(why).encode(errors="replace").decode()))


def main() -> int:
    arguments = parser().parse_args()
    status = 1
    try:
        host = Host(Machine(*loaded(arguments.component)), *store(arguments))
        # Random bytes come from the system each time, so that no fork and no cloned machine repeats them.
        accepted(host.machine.call("acquire", LOCK, arguments.resource, options(arguments), os.urandom(16), now()))
        threading.Thread(target=close_at_end_of_input, args=[host], daemon=True).start()
        for event in host.run():
            status = {"acquired": 3, "lost": 3, "released": 0}.get(event.tag, status)
            detail = DETAILS.get(event.tag, lambda said: "")(event.payload)
            print(f"{event.tag} {detail}".rstrip(), flush=True)
            if event.tag in ("failed", "lost"):
                host.machine.call("close", now())
        return status
    except Exception:
        # Python's own status would be 1, which says that nothing was granted.
        traceback.print_exc()
        return 3 if status == 3 else 2


def close_at_end_of_input(host: Host) -> None:
    # By its number: the object keeps a lock while it reads, which would be in the way when the program ends first.
    while os.read(sys.stdin.fileno(), 4096):
        pass
    # The machine is for the thread of its loop alone.
    host.inbox.put(lambda: host.machine.call("close", now()))


def options(arguments: argparse.Namespace) -> Record:
    wait, every = arguments.wait_ms, arguments.renew_ms
    return record(
        ttl_ms=arguments.ttl_ms,
        wait=Variant("for", record(wait_ms=wait)) if wait else Variant("once"),
        lock_delay_ms=0,
        max_hold_ms=None,
        renewal=Variant("every", record(interval_ms=every)) if every else Variant("automatic"),
        owner=arguments.owner,
        data=None,
        run=None,
    )


def store(arguments: argparse.Namespace) -> tuple[Variant, Variant | None]:
    """The store, and the credentials for it."""
    names, environment = ["access_key_id", "secret_access_key", "session_token"], os.environ
    if arguments.store == "dynamodb":
        optional = dict.fromkeys(["key", "sort_key", "expires", "plaintext"])
        place = record(table=arguments.table, region=arguments.region, url=arguments.url, **optional)
        keys = {name: environment.get(f"AWS_{name.upper()}") for name in names}
        return Variant("dynamodb", place), Variant("aws", record(**keys, expires_unix_ms=None))
    token = environment.get("UPSTASH_REDIS_REST_TOKEN") if arguments.store == "upstash" else None
    access = "with-credentials" if token else "anonymous"
    place = record(dialect=arguments.store, url=arguments.url, access=access, retention_ms=None, plaintext=None)
    return Variant("redis-http", place), token and Variant("token", record(token=token, expires_unix_ms=None))


def owner(said: Record | None) -> str:
    """The holder that stands in the way, if the store shows one."""
    holding = getattr(said, "holding", None)
    return (holding and holding.owner) or ""


# The fields of an event that are printed beside its name.
DETAILS = {
    "acquired": lambda said: said.token,
    "contended": owner,
    "failed": lambda said: f"{said.failure.tag} {owner(said.failure.payload)}",
    "lost": lambda said: said.reason.tag,
    "released": lambda said: "" if said.confirmed else "unconfirmed",
}


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Holds a lock until its input ends.")
    parser.add_argument("component", help="leasehold.wasm, or a .cwasm made of it")
    parser.add_argument("store", choices=["webdis", "upstash", "dynamodb"])
    parser.add_argument("url")
    parser.add_argument("resource")
    for name, default in [("owner", ""), ("table", ""), ("region", "us-east-1")]:
        parser.add_argument(f"--{name}", default=default)
    for name in ["ttl-ms", "wait-ms", "renew-ms"]:
        parser.add_argument(f"--{name}", type=int)
    return parser


if __name__ == "__main__":
    sys.exit(main())
