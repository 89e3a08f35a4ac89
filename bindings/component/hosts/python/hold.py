"""Holds a lock with the component that takes it by itself: hold.py COMPONENT STORE URL NAME [OPTIONS].

STORE is `webdis`, `upstash` or `dynamodb`; several URLs with commas between them are a quorum. Credentials come from the
environment, as for lock.py. Each line of the input is a call: `remaining`, `check MS`, `tend MS`, `again MS` (asks for the
same lock once more, and waits so long), `close`, `release`. Nothing is renewed while a line is awaited. The end of the
input releases the lock.

What comes of it is written line by line. The status is 0 if the lock was released, 1 if it was not granted, 3 if the lease
was lost, and 2 for anything else.
"""

import argparse
import os
import sys
from pathlib import Path

from wasmtime import Engine, Store, WasiConfig
from wasmtime.component import Component, Linker, Record, Variant

CLIENT = "leasehold:locks/client@0.1.0"
MEMORY_BYTES = 256 << 20


class Refused(Exception):
    """An error of the component: its `kind`, `message` and `holder`."""

    def __init__(self, error: Record) -> None:
        super().__init__(error.message)
        self.kind, self.holder = error.kind, error.holder


class Locks:
    """One instance, with the network that wasmtime has."""

    def __init__(self, engine: Engine, component: Component) -> None:
        linker = Linker(engine)
        linker.add_wasip2()
        linker.add_wasi_http()
        self.store = Store(engine)
        self.store.set_limits(memory_size=MEMORY_BYTES)
        # No arguments, environment, files or sockets: HTTP is all that it can reach.
        self.store.set_wasi(WasiConfig())
        self.store.set_wasi_http()
        self.instance = linker.instantiate(self.store, component)
        self.interface = self.instance.get_export_index(self.store, CLIENT)

    def call(self, name: str, *arguments):
        index = self.instance.get_export_index(self.store, name, self.interface)
        answer = self.instance.get_func(self.store, index)(self.store, *arguments)
        # Errors are the only records that are answered.
        if isinstance(answer, Record):
            raise Refused(answer)
        return answer


def record(**fields) -> Record:
    """Names of the WIT have `-` where those of Python have `_`."""
    made = Record()
    made.__dict__.update({name.replace("_", "-"): value for name, value in fields.items()})
    return made


def main() -> int:
    arguments = parser().parse_args()
    try:
        return hold(arguments, Locks(*loaded(arguments.component)))
    except Refused as refused:
        print(f"{refused.kind}: {refused}", flush=True)
        return {"busy": 1, "timed-out": 1, "store-unavailable": 1, "store-refused": 1, "lost": 3}.get(refused.kind, 2)


def hold(arguments: argparse.Namespace, locks: Locks) -> int:
    client = locks.call("[static]client.connect", config(arguments))
    options = record(
        ttl=arguments.ttl_ms, wait=arguments.wait_ms, lock_delay=None, max_hold=arguments.max_hold_ms, data=None
    )
    try:
        lease = locks.call("[method]client.acquire", client, arguments.name, options)
    except Refused:
        # It may have taken effect all the same: only calls take that back, and there will be no others.
        close(locks, client)
        raise
    print(f"acquired {locks.call('[method]lease.token', lease)}", flush=True)
    for line in sys.stdin:
        match line.split():
            case ["remaining"]:
                print(f"remaining {locks.call('[method]lease.remaining', lease)}", flush=True)
            case ["check", ms]:
                locks.call("[method]lease.check", lease, int(ms))
                print("held", flush=True)
            case ["tend", ms]:
                print(f"tended {locks.call('[method]client.tend', client, int(ms))}", flush=True)
            case ["again", ms]:
                print(f"again {again(locks, client, arguments.name, int(ms))}", flush=True)
            case ["close"]:
                locks.call("[method]client.close", client)
                print("closed", flush=True)
            case ["release"]:
                break
    locks.call("[method]lease.release", lease)
    print("released", flush=True)
    return 0


def again(locks: Locks, client, name: str, wait_ms: int) -> str:
    """What becomes of a second acquisition."""
    options = record(ttl=None, wait=wait_ms, lock_delay=None, max_hold=None, data=None)
    try:
        return f"acquired {locks.call('[method]client.acquire', client, name, options)}"
    except Refused as refused:
        return f"{refused.kind}: {refused}"


def close(locks: Locks, client) -> None:
    try:
        locks.call("[method]client.close", client)
    except Refused as refused:
        print(f"close: {refused}", file=sys.stderr)


def config(arguments: argparse.Namespace) -> Record:
    nodes = [
        record(store=store(arguments, url), credentials=credentials(arguments.store), durability=None)
        for url in arguments.url.split(",")
    ]
    quorum = arguments.quorum and record(id=arguments.quorum, max_ttl=arguments.max_ttl_ms)
    return record(nodes=nodes, owner=arguments.owner, request_timeout=arguments.reply_ms, drift_ppm=None, quorum=quorum)


def store(arguments: argparse.Namespace, url: str) -> Variant:
    if arguments.store == "dynamodb":
        optional = dict.fromkeys(["key", "sort_key", "expires", "plaintext"])
        return Variant("dynamodb", record(table=arguments.table, region=arguments.region, url=url, **optional))
    return Variant("redis-http", record(dialect=arguments.store, url=url, plaintext=None))


def credentials(kind: str) -> Variant | None:
    if kind == "upstash":
        return Variant("token", record(token=os.environ["UPSTASH_REDIS_REST_TOKEN"]))
    if kind == "dynamodb":
        keys = record(
            access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
            secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
            session_token=os.environ.get("AWS_SESSION_TOKEN"),
            expires_unix_ms=None,
        )
        return Variant("aws", keys)
    return None


def loaded(file: str) -> tuple[Engine, Component]:
    """A `.cwasm` is machine code: keep it where only those can write who may change the program itself."""
    made = Engine()
    load = Component.deserialize if Path(file).suffix == ".cwasm" else Component
    return made, load(made, Path(file).read_bytes())


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Holds a lock until its input ends.")
    parser.add_argument("component", help="leasehold-locks.wasm, or a .cwasm made of it")
    parser.add_argument("store", choices=["webdis", "upstash", "dynamodb"])
    parser.add_argument("url", help="several with commas between them for a quorum")
    parser.add_argument("name")
    parser.add_argument("--ttl-ms", type=int, help="default: 30000")
    parser.add_argument("--wait-ms", type=int, help="how long to try; default: once")
    parser.add_argument("--max-hold-ms", type=int, help="default: no bound")
    parser.add_argument("--reply-ms", type=int, help="how long to await a reply; default: 500")
    parser.add_argument("--owner", help="default: made up")
    parser.add_argument("--quorum", help="which one, if there are several urls")
    parser.add_argument("--max-ttl-ms", type=int, help="of the quorum; default: 60000")
    parser.add_argument("--table", default="", help="of DynamoDB")
    parser.add_argument("--region", default="us-east-1", help="of DynamoDB")
    return parser


if __name__ == "__main__":
    sys.exit(main())
