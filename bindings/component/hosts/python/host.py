"""A host of the component: a loop, clocks, randomness and an HTTP client, and not one decision about locks.

`Host.run` is the loop. Requests are made by threads of their own, so that a server that is slow delays nothing, least
of all the news that a lease is lost. The loop ends what is not over at its deadline.
"""

import http.client
import os
import queue
import socket
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from urllib.parse import SplitResult, urlsplit

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
        self.under_way: set[Exchange] = set()
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
                    self.begin(Exchange(output.payload))
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
        """Until that instant, until a request is due, or until there is something in the inbox."""
        instants = [exchange.request.deadline_ns for exchange in self.under_way]
        if until_ns is not None:
            instants.append(until_ns)
        left_s = (min(instants) - now().monotonic_ns) / 1e9 if instants else LONGEST_SLEEP_S
        with suppress(queue.Empty):
            self.inbox.get(timeout=min(max(left_s, 0), LONGEST_SLEEP_S))()
        instant = now().monotonic_ns
        for exchange in [exchange for exchange in self.under_way if exchange.request.deadline_ns <= instant]:
            self.conclude(exchange, exchange.failed("timeout", "no response in time"))

    def begin(self, exchange: "Exchange") -> None:
        self.under_way.add(exchange)
        try:
            threading.Thread(target=self.perform, args=[exchange], daemon=True).start()
        except RuntimeError as error:
            self.conclude(exchange, exchange.failed("busy", error))

    def perform(self, exchange: "Exchange") -> None:
        try:
            response = exchange.perform()
        except Exception as error:
            # Whatever it is: a request of which nothing is heard would be waited for.
            kind = "timeout" if isinstance(error, TimeoutError) else "reset" if exchange.line else "unreachable"
            response = exchange.failed(kind, error)
        self.inbox.put(partial(self.conclude, exchange, response))

    def conclude(self, exchange: "Exchange", response: Variant) -> None:
        # One that was ended at its deadline may have an answer later.
        if exchange in self.under_way:
            self.under_way.remove(exchange)
            exchange.end()
            self.machine.method("handle-response", exchange.request.id, response, now())


class Exchange:
    """One request and what becomes of it. It is sent once."""

    def __init__(self, request: Record) -> None:
        self.request = request
        # Between the thread of the request and the loop: after `failed` has said that nothing was sent, nothing is.
        self.lock = threading.Lock()
        self.is_over = False
        # A second handle of the connection, from when something may be sent. The loop shuts it down; the first is
        # closed by the thread, after which its number may be that of anything.
        self.line: socket.socket | None = None

    def failed(self, kind: str, why) -> Variant:
        """Ends it. In doubt its fate is `unknown`."""
        with self.lock:
            self.is_over = True
        fate = "not-sent" if self.line is None else "unknown"
        # What others say may be no text of Unicode.
        return Variant(fate, Record(kind=kind, detail=str(why).encode(errors="replace").decode()))

    def end(self) -> None:
        """Whatever waits for this connection stops to do so, however slowly something comes. For the loop."""
        with self.lock:
            self.is_over = True
        if self.line is not None:
            with suppress(OSError):
                self.line.shutdown(socket.SHUT_RDWR)
            self.line.close()

    def perform(self) -> Variant:
        request = self.request
        url = urlsplit(request.url)
        left_s = max(request.deadline_ns - now().monotonic_ns, 1_000_000) / 1e9
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection = kind(url.hostname, url.port, timeout=left_s)
        try:
            try:
                # A handshake of TLS that fails belongs to it: nothing of the request has left.
                connection.connect()
            except OSError as error:
                return self.failed("unreachable", error)
            with self.lock:
                if self.is_over:
                    raise TimeoutError("the deadline has passed")
                self.line = socket.socket(fileno=os.dup(connection.sock.fileno()))
            return self.ask(connection, url)
        finally:
            connection.close()

    def ask(self, connection: http.client.HTTPConnection, url: SplitResult) -> Variant:
        request = self.request
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        connection.putrequest(request.method, path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("host", url.netloc)
        connection.putheader("content-length", str(len(request.body)))
        for header in request.headers:
            connection.putheader(header.name, header.value)
        connection.endheaders(request.body)
        with connection.getresponse() as response:
            body = response.read(MOST_BODY)
            if response.length and len(body) < MOST_BODY:
                return self.failed("reset", "the end of the response is missing")
            headers = [Record(name=name, value=value) for name, value in response.getheaders()]
            return Variant("http-response", Record(status=response.status, headers=headers, body=body))
