"""A host of the component: a loop, clocks, randomness and an HTTP client, and not one decision about locks.

`Host.run` is the loop. Requests are made by threads of their own, so that a server that is slow delays nothing, least
of all the news that a lease is lost.
"""

import http.client
import os
import queue
import sys
import threading
import time
from functools import partial
from urllib.parse import urlsplit

from leasehold_component import Machine, Program, Record, Variant

# It has to go on counting while the machine is suspended. Elsewhere than on Linux, CLOCK_MONOTONIC does.
CLOCK = time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC
# A sleep does not count a suspension, so none is longer: after it the clock is read.
LONGEST_SLEEP_S = 1.0
# One byte more than the longest body that is understood.
MOST_BODY = 1_048_577


def now() -> Record:
    return Record(monotonic_ns=time.clock_gettime_ns(CLOCK), unix_ms=time.time_ns() // 1_000_000)


def fresh() -> bytes:
    """Bytes for one call. They come from the system each time, so that no fork and no cloned machine repeats them."""
    return os.urandom(16)


class Refused(Exception):
    """A setting or a command that the component does not take: the error is a `Variant` of the WIT."""


def accepted(answer):
    """The value of a result that is no error."""
    if isinstance(answer, Variant):
        raise Refused(answer)
    return answer


class Host:
    """One client of one store. `credentials` are those of the WIT, or `None` where the store asks for none."""

    def __init__(self, program: Program, store: Variant, credentials: Variant | None = None) -> None:
        self.machine = Machine(program)
        self.credentials = credentials
        # What other threads have for the loop: functions to be called by it.
        self.inbox: queue.SimpleQueue = queue.SimpleQueue()
        node = Record(poll="acquire", watch=False, batch=None, durability=None)
        limits = Record(locks=None, orphans=None, observations=None)
        config = Record(nodes=[node], drift_ppm=None, request_timeout_ms=10_000, limits=limits, quorum=None)
        create = "[static]client.create-wired"
        self.machine.client = accepted(self.machine.call(create, config, [store], os.urandom(32), now()))

    def acquire(self, lock: int, resource: str, options: Record) -> None:
        accepted(self.machine.method("acquire", lock, resource, options, fresh(), now()))

    def release(self, lock: int) -> None:
        accepted(self.machine.method("release", lock, now()))

    def close(self) -> None:
        """Gives everything back; `run` ends when that is done."""
        self.machine.method("close", now())

    def run(self):
        """Does what the component says, and yields what it tells: pairs of a lock and an event."""
        while True:
            output = self.machine.method("poll-output", now())
            match output.tag:
                case "http-request":
                    threading.Thread(target=self.perform, args=[output.payload], daemon=True).start()
                case "event":
                    yield output.payload.lock, output.payload.event
                case "need-credentials":
                    # One that takes some was given none: its requests fail at their deadline.
                    if self.credentials:
                        node = output.payload.node
                        accepted(self.machine.method("set-credentials", node, self.credentials, now()))
                case "wake-at":
                    if self.machine.method("is-idle"):
                        return
                    self.sleep(output.payload.at_ns)
                    accepted(self.machine.method("handle-timeout", fresh(), now()))
                case other:
                    raise AssertionError(f"this store has no {other}")

    def sleep(self, until_ns: int | None) -> None:
        """Until that instant, or until there is something in the inbox."""
        left_s = LONGEST_SLEEP_S
        if until_ns is not None:
            left_s = min(max(until_ns - now().monotonic_ns, 0) / 1e9, left_s)
        try:
            self.inbox.get(timeout=left_s)()
        except queue.Empty:
            pass

    def perform(self, request: Record) -> None:
        self.inbox.put(partial(self.respond, request.id, exchange(request)))

    def respond(self, request: int, response: Variant) -> None:
        self.machine.method("handle-response", request, response, now())


def exchange(request: Record) -> Variant:
    """What became of a request. It is sent once; where its fate is in doubt, `unknown` says so."""
    url = urlsplit(request.url)
    left_s = max(request.deadline_ns - now().monotonic_ns, 1_000_000) / 1e9
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.hostname, url.port, timeout=left_s)
    try:
        # A handshake of TLS that fails belongs to it: nothing of the request has left.
        connection.connect()
    except OSError as error:
        return Variant("not-sent", fault("unreachable", error))
    try:
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection.putrequest(request.method, path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("host", url.netloc)
        connection.putheader("content-length", str(len(request.body)))
        for header in request.headers:
            connection.putheader(header.name, header.value)
        connection.endheaders(request.body)
        response = connection.getresponse()
        body = response.read(MOST_BODY)
        if response.length and len(body) < MOST_BODY:
            return Variant("unknown", fault("reset", "the end of the response is missing"))
        headers = [Record(name=name, value=value) for name, value in response.getheaders()]
        return Variant("http-response", Record(status=response.status, headers=headers, body=body))
    except TimeoutError as error:
        return Variant("unknown", fault("timeout", error))
    except (OSError, http.client.HTTPException) as error:
        return Variant("unknown", fault("reset", error))
    finally:
        connection.close()


def fault(kind: str, why) -> Record:
    return Record(kind=kind, detail=str(why))
