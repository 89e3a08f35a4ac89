"""How long a lock takes in Python without a network: bench.py COMPONENT [SECONDS].

One lock over Webdis is taken and given back, over and over; the answers of the server are made up.
"""

import json
import os
import platform
import sys
import time
from importlib.metadata import version

from host import Host, fresh
from leasehold_component import Program, Record, Variant

OPTIONS = Record(
    ttl_ms=None,
    wait=Variant("once"),
    lock_delay_ms=0,
    max_hold_ms=None,
    renewal=Variant("automatic"),
    owner="bench",
    data=None,
)
STORE = Variant(
    "redis-http",
    Record(dialect="webdis", url="http://127.0.0.1", access="anonymous", retention_ms=None, plaintext=None),
)
HEADERS = [Record(name="content-type", value="application/json")]


def main(component: str, seconds: str = "3") -> None:
    began = time.perf_counter()
    program = Program(component)
    print(f"loaded in {(time.perf_counter() - began) * 1e3:.1f} ms")
    for first in (True, False):
        began = time.perf_counter()
        host = Host(program, STORE)
        print(f"{'the first' if first else 'another'} client in {(time.perf_counter() - began) * 1e3:.1f} ms")
    cycles, calls, began = 0, 0, time.process_time()
    while not cycles or time.process_time() - began < float(seconds):
        cycles += 1
        calls += cycle(host.machine, cycles, Record(monotonic_ns=cycles, unix_ms=1_700_000_000_000))
    each = (time.process_time() - began) / cycles
    print(f"{each * 1e6:.0f} us of CPU for acquire and release, {calls // cycles} calls")
    tell(f"version | python | {platform.python_version()}")
    tell(f"version | wasmtime for Python and C | {version('wasmtime')}")
    tell(f"figure | WebAssembly | as requests over HTTP | time | us | wasmtime, in Python | {each * 1e6:.3f} | - | -")


def tell(line: str) -> None:
    """For `cargo xtask bench --plot`, in the file that it names."""
    if path := os.environ.get("LEASEHOLD_FIGURES"):
        with open(path, "a") as file:
            file.write(f"{line}\n")


def cycle(machine, lock: int, now: Record) -> int:
    machine.method("acquire", lock, "invoice/42", OPTIONS, fresh(), now)
    calls = 1 + drain(machine, "acquired", lock, now)
    machine.method("release", lock, now)
    return calls + 1 + drain(machine, "released", lock, now)


def drain(machine, expected: str, token: int, now: Record) -> int:
    """Plays the server, and says how many calls it took to hear what was expected."""
    calls, heard = 0, None
    while True:
        output = machine.method("poll-output", now)
        calls += 1
        match output.tag:
            case "http-request":
                body = answer(expected, token, output.payload.body)
                response = Variant("http-response", Record(status=200, headers=HEADERS, body=body))
                machine.method("handle-response", output.payload.id, response, now)
                calls += 1
            case "event":
                heard = output.payload.event.tag
            case "wake-at":
                assert heard == expected, heard
                return calls


def answer(expected: str, token: int, request: bytes) -> bytes:
    """What a script says, with the number that stands last in the request."""
    said = ["granted", str(1_700_000_000_000 + token)] if expected == "acquired" else ["released"]
    return json.dumps({"EVALSHA": [*said, request.rpartition(b"/")[2].decode()]}).encode()


if __name__ == "__main__":
    main(*sys.argv[1:])
